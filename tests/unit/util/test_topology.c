/* SPDX-License-Identifier: BSD-2-Clause */
/* How far things are apart, on machines that are made for it. */
#include "util/topology.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/machine.h"

static struct wf_topology t;

static void open_machine(int which)
{
	assert_int_equal(wf_topology_open(&t, machine_make(which)), 0);
}

static int close_machine(void **state)
{
	(void)state;
	wf_topology_close(&t);
	machine_remove();
	return 0;
}

static struct wf_topology_place find(const char *name)
{
	struct wf_topology_place place;

	assert_int_equal(wf_topology_find(&t, name, &place), 0);
	return place;
}

static enum wf_topology_near near_of(const char *a, const char *b, unsigned *distance)
{
	struct wf_topology_place from = find(a), to = find(b);
	enum wf_topology_near there, back;

	*distance = wf_topology_distance(&t, &from, &to, &there);
	assert_int_equal(wf_topology_distance(&t, &to, &from, &back), *distance);
	assert_int_equal(there, back);
	return there;
}

struct pair {
	const char *a, *b;
	enum wf_topology_near near;
	unsigned distance;
};

static void check(const struct pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned distance;
		enum wf_topology_near near = near_of(pairs[i].a, pairs[i].b, &distance);

		assert_string_equal(wf_topology_classes[near], wf_topology_classes[pairs[i].near]);
		assert_int_equal(distance, pairs[i].distance);
	}
}

static void two_sockets_are_a_system_apart(void **state)
{
	static const struct pair pairs[] = {
		{ "mlx5_0", "eth0", WF_NEAR_SAME, 0 },
		{ "mlx5_0", "0000:00:01.0", WF_NEAR_PIX, 101 },
		{ "mlx5_0", "eth1", WF_NEAR_PHB, 304 },
		{ "mlx5_0", "nvme0", WF_NEAR_NODE, 406 },
		{ "mlx5_0", "mlx5_1", WF_NEAR_SYS, 517 },
		{ "eth2", "eth3", WF_NEAR_PHB, 304 },
		{ "mlx5_0", "node0", WF_NEAR_PHB, 302 },
		{ "mlx5_0", "node1", WF_NEAR_SYS, 513 },
		{ "node1", "node1", WF_NEAR_SAME, 0 },
		{ "node0", "node1", WF_NEAR_SYS, 511 },
	};

	(void)state;
	open_machine(MACHINE_DUAL);
	check(pairs, WF_COUNT(pairs));
}

static void a_switch_is_one_step_and_two_are_several(void **state)
{
	static const struct pair pairs[] = {
		{ "gpu0", "mlx5_0", WF_NEAR_PIX, 104 },
		{ "gpu1", "nvme0", WF_NEAR_PIX, 104 },
		{ "gpu0", "gpu1", WF_NEAR_PXB, 206 },
		{ "mlx5_0", "nvme0", WF_NEAR_PXB, 206 },
		{ "mlx5_0", "node0", WF_NEAR_PHB, 304 },
		{ "gpu1", "node0", WF_NEAR_PHB, 306 },
		{ "gpu0", "mlx5_1", WF_NEAR_SYS, 519 },
	};

	(void)state;
	open_machine(MACHINE_SWITCH);
	check(pairs, WF_COUNT(pairs));
}

static void devices_are_found_by_any_of_their_names(void **state)
{
	static const char *const names[] = { "mlx5_0", "eth0", "0000:01:00.0", "01:00.0" };
	struct wf_topology_place place;

	(void)state;
	open_machine(MACHINE_DUAL);
	for (size_t i = 0; i < WF_COUNT(names); i++) {
		place = find(names[i]);
		assert_string_equal(place.device->name, "mlx5_0");
		assert_int_equal(place.device->kind, WF_DEVICE_NIC);
		assert_int_equal(place.node, 0);
	}
	place = find("node1");
	assert_null(place.device);
	assert_int_equal(place.node, 1);
	assert_string_equal(find("0000:00:01.0").device->name, "0000:00:01.0");
}

static void a_device_that_is_not_there_is_not_found(void **state)
{
	static const char *const names[] = { "", "mlx5", "mlx5_0,eth0", "eth", "lo", "node2", "node",
					     "node0x", "gpu0", "09:00.0" };
	struct wf_topology_place place;

	(void)state;
	open_machine(MACHINE_DUAL);
	/* The card of a server's console is no GPU. */
	for (size_t i = 0; i < WF_COUNT(names); i++)
		assert_int_equal(wf_topology_find(&t, names[i], &place), -ENODEV);
}

static void only_who_publishes_has_memory_for_peers(void **state)
{
	(void)state;
	open_machine(MACHINE_SWITCH);
	assert_true(find("nvme0").device->p2pmem);
	assert_false(find("gpu0").device->p2pmem);
	assert_int_equal(find("gpu1").device->kind, WF_DEVICE_GPU);
	assert_string_equal(find("gpu1").device->address, "0000:1e:00.0");
}

/* A NIC of a virtual machine has a folder of its own below its PCI device; another has none. */
static void a_netdev_may_lie_deeper_than_its_device(void **state)
{
	char path[WF_SYSFS_PATH_BYTES], to[WF_SYSFS_PATH_BYTES];
	struct wf_topology_place place;
	const char *root;

	(void)state;
	root = machine_make(MACHINE_DUAL);
	machine_say("devices/pci0000:00/0000:00:1f.0/virtio2/status", "0x7");
	machine_say("devices/virtual/net/dummy0/flags", "0x1");
	machine_say("class/net/eth9/flags", "0x1");
	assert_true(wf_sysfs_path(path, root, "class/net/eth9/device"));
	assert_true(wf_sysfs_path(to, root, "devices/pci0000:00/0000:00:1f.0/virtio2"));
	assert_int_equal(symlink(to, path), 0);
	assert_true(wf_sysfs_path(path, root, "class/net/dummy0"));
	assert_true(wf_sysfs_path(to, root, "devices/virtual/net/dummy0"));
	assert_int_equal(symlink(to, path), 0);

	assert_int_equal(wf_topology_open(&t, root), 0);
	assert_string_equal(find("eth9").device->address, "0000:00:1f.0");
	assert_int_equal(wf_topology_find(&t, "dummy0", &place), -ENODEV);
}

static void a_kernel_without_numa_has_one_node(void **state)
{
	(void)state;
	machine_make(MACHINE_DUAL);
	assert_int_equal(wf_topology_open(&t, "/nonexistent"), 0);
	assert_int_equal(t.node_count, 1);
	assert_int_equal(t.device_count, 0);
	assert_int_equal(find("node0").node, 0);
	assert_int_equal(wf_topology_home(&t), -1);
	assert_int_equal(wf_topology_here(&t), 0);
}

static void a_process_is_at_home_where_all_its_processors_are(void **state)
{
	const char *root;

	(void)state;
	root = machine_make(MACHINE_DUAL);
	for (int home = 0; home < 2; home++) {
		machine_bind(home);
		assert_int_equal(wf_topology_open(&t, root), 0);
		assert_int_equal(wf_topology_home(&t), home);
		assert_int_equal(wf_topology_here(&t), home);
		wf_topology_close(&t);
	}
	/* On both it is at home nowhere. */
	machine_bind(-1);
	assert_int_equal(wf_topology_open(&t, root), 0);
	assert_int_equal(wf_topology_home(&t), -1);
}

static void lists_of_processors_are_read(void **state)
{
	(void)state;
	assert_true(wf_sysfs_lists("0-3,8", 0));
	assert_true(wf_sysfs_lists("0-3,8", 3));
	assert_true(wf_sysfs_lists("0-3,8", 8));
	assert_false(wf_sysfs_lists("0-3,8", 4));
	assert_false(wf_sysfs_lists("", 0));
	assert_false(wf_sysfs_lists("x", 0));
	assert_false(wf_sysfs_lists("4-", 5));
}

#define TEST(name) cmocka_unit_test_teardown(name, close_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_sockets_are_a_system_apart),
		TEST(a_switch_is_one_step_and_two_are_several),
		TEST(devices_are_found_by_any_of_their_names),
		TEST(a_device_that_is_not_there_is_not_found),
		TEST(only_who_publishes_has_memory_for_peers),
		TEST(a_netdev_may_lie_deeper_than_its_device),
		TEST(a_kernel_without_numa_has_one_node),
		TEST(a_process_is_at_home_where_all_its_processors_are),
		cmocka_unit_test(lists_of_processors_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
