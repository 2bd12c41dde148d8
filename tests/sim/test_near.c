/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory near to what uses it: given, registered once, read by many, given back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "tests/unit/machine.h"

#define S WF_NS_PER_S
#define MS WF_NS_PER_MS
#define BYTES (256 * KIB)
#define READERS 6

static uint8_t buffers[READERS][BYTES];

/* As the environment says, on a machine that is made for it. */
static void open_world(enum wf_world_shape shape, unsigned count, const char *rules)
{
	setenv("WEFT_SYSFS", machine_make(MACHINE_SWITCH), 1);
	setenv("WEFT_RULES", rules, 1);
	wf_world_open(shape, count, NULL);
	for (unsigned i = 1; i < count; i++)
		wf_world_connect(0, i);
}

static void close_world(void)
{
	assert_int_equal(wf_world_close(), 0);
	machine_remove();
}

static int try_alloc(const char *client, const char *from, unsigned flags, size_t bytes,
		     void **memory)
{
	const char *const clients[] = { client, NULL };
	struct weft_near_options options = { .size = sizeof(options), .from = from, .flags = flags,
					     .clients = client ? clients : NULL };

	return weft_alloc_near(wf_world_node(0), bytes, &options, memory);
}

static uint8_t *alloc(const char *client, size_t bytes)
{
	void *memory;

	if (try_alloc(client, NULL, 0, bytes, &memory))
		fail_msg("%s", weft_error());
	return memory;
}

static struct weft_placement place_of(const void *memory)
{
	struct weft_placement place = { .size = sizeof(place) };

	assert_int_equal(weft_memory_place(wf_world_node(0), memory, &place), 0);
	return place;
}

static void placed_memory_says_where_it_lies_and_why(void **state)
{
	struct weft_placement place;
	uint8_t *near, *device;
	void *pool;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, "publish software:1a:00.0 1M");
	near = alloc("node0", 5000);
	place = place_of(near + 4999);
	assert_string_equal(place.publisher, "host:0");
	assert_string_equal(place.why, "X to node0");
	assert_int_equal(place.numa_node, 0);
	assert_int_equal(place.bytes, 8192);
	assert_int_equal((uintptr_t)near % 4096, 0);
	memset(near, 7, 8192);

	device = alloc("mlx5_0", BYTES);
	place = place_of(device);
	assert_string_equal(place.publisher, "software:0000:1a:00.0");
	assert_string_equal(place.why, "PIX to mlx5_0");

	assert_int_equal(weft_alloc(wf_world_node(0), 100, &pool), 0);
	assert_int_equal(weft_memory_place(wf_world_node(0), pool, &place), -EINVAL);
	place.size = 0;
	assert_int_equal(weft_memory_place(wf_world_node(0), near, &place), -EINVAL);
	weft_free(wf_world_node(0), pool);
	weft_free(wf_world_node(0), near);
	weft_free(wf_world_node(0), device);
	close_world();
}

/* efa's row says that registering is dear; a body is pulled, and so needs it. */
static void many_readers_take_one_registration(void **state)
{
	struct wf_flight f[2 * READERS];
	struct weft_counters before, after;
	uint8_t *memory;

	(void)state;
	open_world(WF_WORLD_SHARED, READERS + 1, "");
	before = wf_world_count(0);
	memory = alloc("mlx5_0", BYTES);
	after = wf_world_count(0);
	assert_int_equal(after.registrations, before.registrations + 1);
	assert_int_equal(after.registered_bytes, before.registered_bytes + place_of(memory).bytes);

	wf_world_fill(memory, BYTES, 5);
	for (unsigned i = 0; i < READERS; i++) {
		wf_flight_receive(&f[2 * i], i + 1, 0, 7, buffers[i], BYTES, 0);
		wf_flight_share(&f[2 * i + 1], 0, i + 1, 7, memory, BYTES);
	}
	/* It is theirs now, too: they keep it for as long as they read. */
	weft_free(wf_world_node(0), memory);
	wf_flight_land(f, WF_COUNT(f), 5 * S);
	for (unsigned i = 0; i < READERS; i++) {
		assert_int_equal(f[2 * i].status, WEFT_OK);
		assert_int_equal(f[2 * i + 1].status, WEFT_OK);
		assert_true(wf_world_is_filled(buffers[i], BYTES, 5));
	}
	wf_flight_free(f, WF_COUNT(f));
	after = wf_world_count(0);
	assert_int_equal(after.registrations, before.registrations + 1);
	assert_true(after.registration_hits >= before.registration_hits + READERS);
	wf_world_pass(10 * MS);
	assert_int_equal(wf_world_count(0).registered_bytes, before.registered_bytes);
	close_world();
}

/* Where each operation has a key of its own anyway nothing stays registered. */
static void a_rail_that_registers_cheaply_is_only_tried(void **state)
{
	struct weft_counters before, after;
	struct wf_flight f[2];
	uint8_t *memory;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2, "");
	before = wf_world_count(0);
	memory = alloc(NULL, BYTES);
	after = wf_world_count(0);
	assert_int_equal(after.registrations, before.registrations + 1);
	assert_int_equal(after.registered_bytes, before.registered_bytes);
	wf_world_fill(memory, BYTES, 5);
	wf_flight_receive(&f[0], 1, 0, 7, buffers[0], BYTES, 0);
	wf_flight_share(&f[1], 0, 1, 7, memory, BYTES);
	wf_flight_land(f, 2, 2 * S);
	assert_true(wf_world_is_filled(buffers[0], BYTES, 5));
	wf_flight_free(f, 2);
	weft_free(wf_world_node(0), memory);
	close_world();
}

/* One buffer, and no copy at all. */
static void peers_of_this_host_look_at_it_where_it_is(void **state)
{
	struct wf_flight f[2 * READERS];
	uint8_t *memory;

	(void)state;
	open_world(WF_WORLD_SAME_HOST, READERS + 1, "limit any 256K");
	memory = alloc("node0", BYTES);
	wf_world_fill(memory, BYTES, 5);
	for (unsigned i = 0; i < READERS; i++) {
		struct weft_recv_options options = { .size = sizeof(options),
						     .op = wf_flight_begin(&f[2 * i], 0) };

		assert_int_equal(weft_recv(wf_world_node(i + 1), wf_world_peer(i + 1, 0), 7, "", 0,
					   NULL, &options, &f[2 * i].op), 0);
		wf_flight_share(&f[2 * i + 1], 0, i + 1, 7, memory, BYTES);
	}
	weft_free(wf_world_node(0), memory);
	wf_flight_land(f, WF_COUNT(f), 2 * S);
	for (unsigned i = 0; i < READERS; i++) {
		unsigned flags;
		const struct weft_tensor *t = weft_op_tensor(f[2 * i].op, &flags);

		assert_non_null(t);
		assert_int_equal(flags, WEFT_READONLY);
		assert_true(wf_world_is_filled(t->data, BYTES, 5));
		assert_int_equal(wf_world_count(i + 1).bytes_viewed, BYTES);
	}
	/* It is out for as long as anybody looks at it. */
	void *other;

	assert_int_equal(try_alloc("node0", NULL, 0, 1, &other), -ENOBUFS);
	wf_flight_free(f, WF_COUNT(f));
	wf_world_pass(20 * MS);
	weft_free(wf_world_node(0), alloc("node0", BYTES));
	close_world();
}

static void freed_memory_can_be_given_at_once(void **state)
{
	void *memory;

	(void)state;
	open_world(WF_WORLD_SHARED, 1, "limit any 1M");
	for (unsigned i = 0; i < 3; i++) {
		memory = alloc("node0", MIB);
		assert_int_equal(try_alloc("node0", NULL, 0, 1, &memory), -ENOBUFS);
		assert_non_null(strstr(weft_error(), "host:0: 'limit any 1M', and 1048576 bytes"));
		weft_free(wf_world_node(0), memory);
	}
	close_world();
}

static void placed_memory_is_freed_as_often_as_it_is_retained(void **state)
{
	struct weft_node *node;
	uint8_t *near, *other;
	void *pool;

	(void)state;
	open_world(WF_WORLD_SHARED, 1, "limit any 1M");
	node = wf_world_node(0);
	near = alloc("node0", MIB);
	assert_int_equal(weft_retain(node, near), 0);
	assert_int_equal(weft_retain(node, near + 64), -EINVAL);
	assert_int_equal(weft_retain(node, NULL), -EINVAL);
	assert_int_equal(weft_retain(node, &node), -EINVAL);
	weft_free(node, near);
	memset(near, 7, MIB);
	assert_int_equal(try_alloc("node0", NULL, 0, 1, (void **)&other), -ENOBUFS);
	weft_free(node, near);
	other = alloc("node0", MIB);
	weft_free(node, other);

	assert_int_equal(weft_alloc(node, 100, &pool), 0);
	assert_int_equal(weft_retain(node, pool), 0);
	weft_free(node, pool);
	assert_int_equal(wf_world_count(0).pool_bytes_used, 256);
	weft_free(node, pool);
	assert_int_equal(wf_world_count(0).pool_bytes_used, 0);
	close_world();
}

/* How many more registrations are refused. */
static unsigned refusals;

static int refuse(const char *call)
{
	if (strcmp(call, "fi_mr_reg") || !refusals)
		return 0;
	refusals--;
	return -EFAULT;
}

static void another_publisher_gives_what_a_rail_declines(void **state)
{
	static const enum wf_world_shape shapes[] = { WF_WORLD_SHARED, WF_WORLD_CONNECTED };

	(void)state;
	for (unsigned i = 0; i < WF_COUNT(shapes); i++) {
		struct weft_placement place;
		void *memory;

		open_world(shapes[i], 1, "limit p2pmem 0; publish software:1a:00.0 1M");
		wf_fake_knobs()->veto = refuse;
		refusals = 1;
		memory = alloc("mlx5_0", BYTES);
		place = place_of(memory);
		assert_string_equal(place.publisher, "host:0");
		assert_non_null(strstr(place.why, "PHB to mlx5_0; not software:0000:1a:00.0: "
						  "registering 262144 bytes with "));
		weft_free(wf_world_node(0), memory);

		/* Who is strict has it from there, or not at all. */
		refusals = 1;
		assert_int_equal(try_alloc("mlx5_0", NULL, WEFT_NEAR_STRICT, BYTES, &memory), -EFAULT);
		assert_non_null(strstr(weft_error(), "software:0000:1a:00.0: registering"));
		assert_null(strstr(weft_error(), "host:0"));
		refusals = 0;
		assert_int_equal(try_alloc("mlx5_0", NULL, WEFT_NEAR_STRICT, BYTES, &memory), 0);
		assert_string_equal(place_of(memory).publisher, "software:0000:1a:00.0");
		weft_free(wf_world_node(0), memory);

		/* And where nobody's is taken it is said of each. */
		refusals = 10;
		assert_int_equal(try_alloc("mlx5_0", "host:0", 0, BYTES, &memory), -EFAULT);
		assert_non_null(strstr(weft_error(), "host:0: registering"));
		wf_fake_knobs()->veto = NULL;
		close_world();
	}
}

static void several_workers_have_it_registered_each(void **state)
{
	struct wf_flight f[2 * READERS];
	struct weft_counters before;
	uint8_t *memory;

	(void)state;
	wf_world_set_workers(3);
	open_world(WF_WORLD_SHARED, READERS + 1, "limit any 256K");
	before = wf_world_count(0);
	memory = alloc("mlx5_0", BYTES);
	assert_int_equal(wf_world_count(0).registrations, before.registrations + 3);
	wf_world_fill(memory, BYTES, 5);
	for (unsigned i = 0; i < READERS; i++) {
		wf_flight_receive(&f[2 * i], i + 1, 0, 7, buffers[i], BYTES, 0);
		wf_flight_share(&f[2 * i + 1], 0, i + 1, 7, memory, BYTES);
	}
	wf_flight_land(f, WF_COUNT(f), 5 * S);
	for (unsigned i = 0; i < READERS; i++)
		assert_true(wf_world_is_filled(buffers[i], BYTES, 5));
	wf_flight_free(f, WF_COUNT(f));
	assert_int_equal(wf_world_count(0).registrations, before.registrations + 3);
	weft_free(wf_world_node(0), memory);
	/* It leaves one pool after the other, and that is waited for. */
	memory = alloc("mlx5_0", BYTES);
	weft_free(wf_world_node(0), memory);
	close_world();
}

static void placed_memory_goes_with_its_node(void **state)
{
	struct wf_flight f;
	uint8_t *memory;

	(void)state;
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		wf_world_set_workers(workers);
		open_world(WF_WORLD_SHARED, 2, "");
		memory = alloc("mlx5_0", BYTES);
		wf_flight_share(&f, 0, 1, 7, memory, BYTES); /* which nobody receives */
		wf_world_pass(10 * MS);
		wf_world_leave(0);
		assert_int_equal(f.outcomes, 1);
		wf_flight_free(&f, 1);
		close_world();
	}
}

static void a_request_that_can_not_be_is_refused(void **state)
{
	static const char *const many[] = {
		"mlx5_0", "mlx5_1", "gpu0", "gpu1", "nvme0", "node0", "node1", "17:00.0", "18:00.0",
		"mlx5_0", NULL,
	};
	struct weft_near_options options = { .size = sizeof(options), .clients = many };
	void *memory = NULL;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, "");
	assert_int_equal(try_alloc("mlx5_9", NULL, 0, 1, &memory), -ENODEV);
	assert_string_equal(weft_error(), "there is no device or NUMA node mlx5_9 here");
	assert_int_equal(try_alloc("mlx5_0", "ramdisk", 0, 1, &memory), -EINVAL);
	assert_non_null(strstr(weft_error(), "'ramdisk' is no publisher"));
	assert_int_equal(try_alloc("mlx5_0", NULL, 4, 1, &memory), -EINVAL);
	assert_int_equal(try_alloc("mlx5_0", NULL, 0, SIZE_MAX, &memory), -ENOBUFS);
	assert_int_equal(weft_alloc_near(wf_world_node(0), 1, &options, &memory), -ENODEV);
	options.size = 1;
	assert_int_equal(weft_alloc_near(wf_world_node(0), 1, &options, &memory), -EINVAL);
	assert_null(memory);
	assert_int_equal(weft_alloc_near(wf_world_node(0), 1, NULL, &memory), 0);
	weft_free(wf_world_node(0), memory);
	close_world();
}

static void rules_are_read_when_a_node_opens(void **state)
{
	struct weft_node_options options = { .size = sizeof(options), .mode = WEFT_MANUAL,
					     .rules = "deny gpu" };
	struct weft_node *node;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, "");
	assert_int_equal(weft_node_open(&options, &node), -EINVAL);
	assert_string_equal(weft_error(), "rules, line 1: 'gpu' is no publisher: any, host, huge, "
					  "pinned, cuda, p2pmem or software, or as host:0");
	close_world();
}

/* What a callback said when it asked for memory. */
static int inside;

static void ask_inside(struct weft_op *op, void *arg)
{
	void *memory;

	(void)op;
	(void)arg;
	inside = weft_alloc_near(wf_world_node(0), 1, NULL, &memory);
}

static void a_callback_can_not_wait_for_its_own_thread(void **state)
{
	struct weft_op_options options = { .size = sizeof(options), .done = ask_inside };
	struct weft_op *op;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2, "");
	inside = 0;
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &options, &op), 0);
	assert_int_equal(weft_wait(op, 5 * S), 0);
	assert_int_equal(inside, -EDEADLK);
	weft_op_free(op);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placed_memory_says_where_it_lies_and_why),
		cmocka_unit_test(many_readers_take_one_registration),
		cmocka_unit_test(a_rail_that_registers_cheaply_is_only_tried),
		cmocka_unit_test(peers_of_this_host_look_at_it_where_it_is),
		cmocka_unit_test(freed_memory_can_be_given_at_once),
		cmocka_unit_test(placed_memory_is_freed_as_often_as_it_is_retained),
		cmocka_unit_test(another_publisher_gives_what_a_rail_declines),
		cmocka_unit_test(several_workers_have_it_registered_each),
		cmocka_unit_test(placed_memory_goes_with_its_node),
		cmocka_unit_test(a_request_that_can_not_be_is_refused),
		cmocka_unit_test(rules_are_read_when_a_node_opens),
		cmocka_unit_test(a_callback_can_not_wait_for_its_own_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
