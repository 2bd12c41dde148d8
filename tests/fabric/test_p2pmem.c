/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a PCI device of this machine publishes, of a real one, over real providers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "tests/unit/machine.h"

#define MIB ((size_t)1024 * 1024)

/* One that goes with its header, and two that are pulled. */
static const size_t sizes[] = { 8, 300000, 4 * MIB };
#define BYTES_MAX (4 * MIB)

static char device[64]; /* its address */

/* Skips the test where there is none. */
static void find_device(void)
{
	struct weft_topology *t;

	*device = '\0';
	need(!weft_topology_open(NULL, &t));
	for (size_t i = 0; i < weft_topology_publishers(t); i++) {
		struct weft_publisher p = { .size = sizeof(p) };

		need(!weft_topology_publisher(t, i, &p));
		if (!strcmp(p.kind, "p2pmem") && p.published)
			snprintf(device, sizeof(device), "%s", p.address);
	}
	weft_topology_close(t);
	if (*device)
		return;
	print_message("skip: no device here publishes memory that programs can have\n");
	skip();
}

static void sysfs_path(char path[128], const char *file)
{
	snprintf(path, 128, "/sys/bus/pci/devices/%s/p2pmem/%s", device, file);
}

static uint64_t available_bytes(void)
{
	char path[128], text[32] = "";
	FILE *file;

	sysfs_path(path, "available");
	file = fopen(path, "r");
	need(file && fgets(text, sizeof(text), file));
	fclose(file);
	return strtoull(text, NULL, 10);
}

/* Memory for transfers to the device itself; with @flags. */
static int take(struct weft_node *node, unsigned flags, void **memory)
{
	const char *const clients[] = { device, NULL };
	struct weft_near_options options = { .size = sizeof(options), .from = "p2pmem",
					     .clients = clients, .flags = flags };

	return weft_alloc_near(node, BYTES_MAX, &options, memory);
}

static void send_from(struct pair *pair, void *memory, size_t bytes, uint64_t step)
{
	int64_t count = (int64_t)bytes;
	struct weft_tensor tensor = pair_tensor(memory, &count);
	struct weft_op *op;

	pair_do(&pair->other, "recv %" PRIu64 " there %zu 3", step, bytes);
	pair_fill(memory, bytes, 3);
	need(!weft_send(pair->peer, step, "there", 5, &tensor, NULL, &op));
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
	pair_do(&pair->other, "finish");
}

static void receive_into(struct pair *pair, void *memory, size_t bytes, uint64_t step)
{
	int64_t count = (int64_t)bytes;
	struct weft_tensor tensor = pair_tensor(memory, &count);
	struct weft_op *op;

	need(!weft_recv(pair->node, pair->peer, step, "here", 4, &tensor, NULL, &op));
	pair_do(&pair->other, "send %" PRIu64 " here %zu 4", step, bytes);
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
	pair_do(&pair->other, "finish");
	need(pair_matches(memory, bytes, 4));
}

static void exchange(struct pair *pair, void *memory)
{
	for (size_t i = 0; i < PAIR_COUNT(sizes); i++) {
		send_from(pair, memory, sizes[i], 2 * i + 1);
		receive_into(pair, memory, sizes[i], 2 * i + 2);
	}
}

static void await_available(uint64_t bytes)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	while (available_bytes() != bytes && pair_now_ns() < until)
		pair_sleep_ms(1);
	need(available_bytes() == bytes);
}

static void a_device_gives_memory_and_gets_it_back(void **state)
{
	struct weft_placement place = { .size = sizeof(place) };
	struct weft_node_options options = pair_options("tcp");
	struct weft_node *node;
	uint64_t before;
	void *memory;

	(void)state;
	find_device();
	before = available_bytes();
	need(!weft_node_open(&options, &node));
	need(!take(node, WEFT_NEAR_STRICT, &memory));
	need(available_bytes() == before - BYTES_MAX);
	need(!weft_memory_place(node, memory, &place));
	print_message("%s: %s\n", place.publisher, place.why);
	need(!strncmp(place.publisher, "p2pmem:", 7) && !strcmp(place.publisher + 7, device));
	pair_fill(memory, BYTES_MAX, 1);
	need(pair_matches(memory, BYTES_MAX, 1));
	weft_free(node, memory);
	await_available(before);
	need(!weft_node_close(node));
}

/* It goes by the rail, or the rail has said why not, and other memory is found. */
static void a_rail_takes_its_memory_or_says_why_not(void **state)
{
	(void)state;
	find_device();
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct weft_placement place = { .size = sizeof(place) };
		struct pair pair;
		void *memory;
		int err;

		pair_open(&pair, at, NULL);
		err = take(pair.node, WEFT_NEAR_STRICT, &memory);
		print_message("%s: %s\n", at, err ? weft_error() : "it takes it");
		if (err) {
			need(strstr(weft_error(), device));
			need(!take(pair.node, 0, &memory));
			need(!weft_memory_place(pair.node, memory, &place));
			print_message("%s: %s: %s\n", at, place.publisher, place.why);
			need(!strncmp(place.publisher, "host:", 5) && strstr(place.why, device));
		}
		exchange(&pair, memory);
		weft_free(pair.node, memory);
		pair_close(&pair);
	}
}

/* In the other process: what may well fail. */
static struct weft_op *doubtful;
static struct pair_send offered;

static void do_ask(struct pair *side, char *arguments)
{
	doubtful = pair_recv(side->node, side->peer, strtoull(arguments, NULL, 10), "there");
}

static void do_offer(struct pair *side, char *arguments)
{
	offered = pair_send(side->peer, strtoull(arguments, NULL, 10), "here", BYTES_MAX, 4);
	doubtful = offered.op;
}

static void do_drop(struct pair *side, char *arguments)
{
	(void)side;
	(void)arguments;
	weft_cancel(doubtful);
	need(!weft_wait(doubtful, PAIR_LIMIT_NS));
	weft_op_free(doubtful);
	free(offered.bytes);
	offered.bytes = NULL;
}

static const struct pair_command commands[] = {
	{ "ask", do_ask }, { "offer", do_offer }, { "drop", do_drop }, { NULL, NULL },
};

/* It has ended, and says why if it has not ended well. */
static bool has_come(struct weft_op *op, const char *what)
{
	bool good;

	need(!weft_wait(op, PAIR_LIMIT_NS));
	good = weft_op_status(op) == WEFT_OK;
	if (!good)
		print_message("%s: %s\n", what, weft_op_message(op));
	need(good || *weft_op_message(op));
	weft_op_free(op);
	return good;
}

/* A rail that does not reach the body says so, and goes on with others. */
static void try_both_ways(struct pair *pair, void *memory)
{
	int64_t count = BYTES_MAX;
	struct weft_tensor tensor = pair_tensor(memory, &count);
	struct weft_op *op;

	pair_do(&pair->other, "ask 1");
	need(!weft_send(pair->peer, 1, "there", 5, &tensor, NULL, &op));
	(void)has_come(op, pair->provider);
	pair_do(&pair->other, "drop");
	need(!weft_recv(pair->node, pair->peer, 2, "here", 4, &tensor, NULL, &op));
	pair_do(&pair->other, "offer 2");
	if (has_come(op, pair->provider))
		need(pair_matches(memory, BYTES_MAX, 4));
	pair_do(&pair->other, "drop");
	pair_exchange(pair, &pair->other);
}

/* What the program has mapped, and no node knows of. */
static void memory_that_a_program_maps_goes_where_a_rail_takes_it(void **state)
{
	char path[128];
	void *memory;
	int fd;

	(void)state;
	find_device();
	sysfs_path(path, "allocate");
	fd = open(path, O_RDWR | O_CLOEXEC);
	need(fd >= 0);
	memory = mmap(NULL, BYTES_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(memory != MAP_FAILED);
	close(fd);
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct pair pair;
		void *taken;

		pair_open(&pair, at, NULL);
		if (take(pair.node, WEFT_NEAR_STRICT, &taken)) {
			try_both_ways(&pair, memory);
		} else {
			weft_free(pair.node, taken);
			exchange(&pair, memory);
		}
		pair_close(&pair);
	}
	munmap(memory, BYTES_MAX);
}

/* A machine that is made up, and a file of no bytes: mapped it is there, and can't be read. */
static void shm_declines_memory_that_others_cannot_read(void **state)
{
	const char *const clients[] = { "nvme0", NULL };
	struct weft_near_options options = { .size = sizeof(options), .from = "p2pmem",
					     .clients = clients };
	struct weft_placement place = { .size = sizeof(place) };
	struct weft_node_options shm = pair_options("shm");
	struct weft_node *node;
	bool found = false;
	char path[256];
	void *memory;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next())
		found |= !strcmp(at, "shm");
	if (!found) {
		print_message("skip: libfabric does not offer shm\n");
		skip();
	}
	setenv("WEFT_SYSFS", machine_make(MACHINE_SWITCH), 1);
	snprintf(path, sizeof(path), "%s/" MACHINE_P2PMEM "allocate", getenv("WEFT_SYSFS"));
	need(!truncate(path, 0));
	need(!weft_node_open(&shm, &node));
	need(!weft_alloc_near(node, MIB, &options, &memory));
	need(!weft_memory_place(node, memory, &place));
	need(!strncmp(place.publisher, "host:", 5));
	need(strstr(place.why, "not p2pmem:0000:1f:00.0: with shm other processes read it "
			       "themselves, which fails: Bad address"));
	weft_free(node, memory);
	options.flags = WEFT_NEAR_STRICT;
	need(weft_alloc_near(node, MIB, &options, &memory) == -EFAULT);
	need(!weft_node_close(node));
	unsetenv("WEFT_SYSFS");
	machine_remove();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_device_gives_memory_and_gets_it_back, pair_teardown),
		cmocka_unit_test_teardown(a_rail_takes_its_memory_or_says_why_not, pair_teardown),
		cmocka_unit_test_teardown(memory_that_a_program_maps_goes_where_a_rail_takes_it,
					  pair_teardown),
		cmocka_unit_test_teardown(shm_declines_memory_that_others_cannot_read,
					  pair_teardown),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
