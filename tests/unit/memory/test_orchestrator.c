/* SPDX-License-Identifier: BSD-2-Clause */
/* Who gives memory to whom, on machines that are made for it. */
#include "memory/orchestrator.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "memory/cuda.h"
#include "tests/cuda/gpu.h"
#include "tests/forbid.h"
#include "tests/unit/machine.h"

#define CHOICES_MAX 8

static struct wf_orchestrator o;
static struct wf_orchestrator_choice choices[CHOICES_MAX];

/* The owner's word for memory of devices, which is else for those who name it. */
#define NEAR_DEVICES "allow p2pmem where class<=pxb"

static void open_machine(int which, const char *rules)
{
	struct wf_error e;

	if (wf_orchestrator_open(&o, machine_make(which), rules, gpu_fake_file(), &e))
		fail_msg("%s", e.text);
	assert_true(o.publishers.count <= CHOICES_MAX);
}

static int close_machine(void **state)
{
	(void)state;
	wf_orchestrator_close(&o);
	machine_remove();
	return 0;
}

/* Another machine in the same test. */
static void open_another(int which, const char *rules)
{
	close_machine(NULL);
	open_machine(which, rules);
}

/* A request for clients named with commas, of publishers likewise. */
static struct wf_orchestrator_request request(const char *clients, const char *from, uint64_t bytes)
{
	struct wf_orchestrator_request r = { .bytes = bytes };
	char list[200], *rest = list, *name;

	snprintf(list, sizeof(list), "%s", clients);
	while ((name = strsep(&rest, ",")))
		assert_int_equal(wf_topology_find(&o.topology, name, &r.clients[r.client_count++]), 0);
	if (from)
		assert_int_equal(wf_rules_who(from, &r.from, NULL), 0);
	return r;
}

static void judge(const char *clients, const char *from, uint64_t bytes)
{
	struct wf_orchestrator_request r = request(clients, from, bytes);

	wf_orchestrator_judge(&o, &r, choices);
}

/* The same where memory that the processor does not reach will do. */
static void judge_for_device(const char *clients, const char *from, uint64_t bytes)
{
	struct wf_orchestrator_request r = request(clients, from, bytes);

	r.device = true;
	wf_orchestrator_judge(&o, &r, choices);
}

static const struct wf_orchestrator_choice *choice_of(const char *publisher)
{
	for (size_t i = 0; i < o.publishers.count; i++)
		if (!strcmp(choices[i].publisher->name, publisher))
			return &choices[i];
	fail_msg("there is no publisher %s", publisher);
	return NULL;
}

/* Who serves. */
static void assert_first(const char *publisher, const char *why)
{
	size_t i = 0;

	while (choices[i].err && i + 1 < o.publishers.count)
		i++;
	assert_int_equal(choices[i].err, 0);
	assert_string_equal(choices[i].publisher->name, publisher);
	assert_string_equal(choices[i].why, why);
}

static void assert_refused(const char *publisher, int err, const char *why)
{
	const struct wf_orchestrator_choice *c = choice_of(publisher);

	assert_int_equal(c->err, err);
	assert_string_equal(c->why, why);
}

static struct wf_publisher_piece take(const char *publisher, uint64_t bytes)
{
	struct wf_publisher_piece piece = { 0 };
	struct wf_error e;

	judge("node0", NULL, bytes);
	if (wf_orchestrator_take(&o, choice_of(publisher)->publisher, bytes, &piece, &e))
		fail_msg("%s", e.text);
	return piece;
}

static void give(const char *publisher, struct wf_publisher_piece *piece)
{
	judge("node0", NULL, 1);
	wf_orchestrator_give(&o, choice_of(publisher)->publisher, piece);
}

static void the_nearest_serves(void **state)
{
	(void)state;
	open_machine(MACHINE_DUAL, "");
	judge("mlx5_0", NULL, MIB);
	assert_first("host:0", "PHB to mlx5_0");
	judge("eth3", NULL, MIB);
	assert_first("host:1", "PHB to eth3");
	judge("node1", NULL, MIB);
	assert_first("host:1", "X to node1");

	open_another(MACHINE_SWITCH, NEAR_DEVICES);
	judge("gpu1", NULL, MIB);
	assert_first("p2pmem:0000:1f:00.0", "PIX to gpu1");
	judge("mlx5_0", NULL, MIB);
	assert_first("p2pmem:0000:1f:00.0", "PXB to mlx5_0");
}

static void memory_of_a_device_stands_behind_the_hosts_unasked(void **state)
{
	(void)state;
	open_machine(MACHINE_SWITCH, "");
	judge("gpu1", NULL, MIB);
	assert_first("host:0", "PHB to gpu1");
	judge("gpu1", "p2pmem", MIB);
	assert_first("p2pmem:0000:1f:00.0", "PIX to gpu1");

	open_another(MACHINE_SWITCH, "prefer p2pmem for gpu1");
	judge("gpu1", NULL, MIB);
	assert_first("p2pmem:0000:1f:00.0", "'prefer p2pmem for gpu1'; PIX to gpu1");
	judge("mlx5_0", NULL, MIB);
	assert_first("host:0", "PHB to mlx5_0");
}

static void the_sum_over_all_clients_counts(void **state)
{
	(void)state;
	open_machine(MACHINE_DUAL, "");
	/* Two of three are on node 1. */
	judge("mlx5_0,mlx5_1,eth3", NULL, MIB);
	assert_first("host:1", "1117 to 3 clients, SYS at most");
	assert_int_equal(choice_of("host:0")->distance, 302 + 2 * 513);
	judge("mlx5_0,eth1,eth3", NULL, MIB);
	assert_first("host:0", "1117 to 3 clients, SYS at most");
}

static void the_publisher_that_has_given_least_of_equals_serves(void **state)
{
	struct wf_publisher_piece piece;

	(void)state;
	open_machine(MACHINE_DUAL, "");
	judge("mlx5_0,mlx5_1", NULL, MIB);
	assert_string_equal(choices[0].publisher->name, "host:0");
	piece = take("host:0", MIB);
	judge("mlx5_0,mlx5_1", NULL, MIB);
	assert_string_equal(choices[0].publisher->name, "host:1");
	give("host:0", &piece);
	judge("mlx5_0,mlx5_1", NULL, MIB);
	assert_string_equal(choices[0].publisher->name, "host:0");
}

static void memory_of_a_device_does_not_pass_the_processor_unasked(void **state)
{
	(void)state;
	open_machine(MACHINE_SWITCH, "");
	/* Near to one of two is not enough. */
	judge("gpu1,mlx5_1", NULL, MIB);
	assert_first("host:0", "819 to 2 clients, SYS at most");
	assert_refused("p2pmem:0000:1f:00.0", -EACCES,
		       "'deny p2pmem,software where class>pxb': it is SYS to mlx5_1");

	open_another(MACHINE_SWITCH, "allow p2pmem");
	judge("mlx5_1", "p2pmem", MIB);
	assert_first("p2pmem:0000:1f:00.0", "SYS to mlx5_1");
}

static void huge_pages_serve_whom_a_rule_allows_them(void **state)
{
	(void)state;
	open_machine(MACHINE_DUAL, "");
	judge("mlx5_1", "huge", MIB);
	assert_refused("huge:1", -EACCES, "'deny huge': it is PHB to mlx5_1");
	assert_first("host:1", "PHB to mlx5_1");

	open_another(MACHINE_DUAL, "allow huge for eth3; prefer huge,host");
	judge("eth3", NULL, MIB);
	assert_first("huge:1", "'prefer huge,host'; PHB to eth3");
	assert_int_equal(choices[0].publisher->bytes, 512 * 2 * MIB);
	assert_int_equal(choices[0].publisher->available_bytes, 256 * 2 * MIB);
	judge("eth2", NULL, MIB); /* mlx5_1 by its other name */
	assert_first("host:1", "'prefer huge,host'; PHB to mlx5_1");
}

static void pinned_memory_is_where_a_rule_allows_it(void **state)
{
	static const char *const without[] = {
		"", "allow any", "deny pinned; prefer pinned,host; limit pinned:0 1G",
		"deny cuda; prefer cuda,host; reserve cuda:0 1G",
	};
	struct wf_cuda_memory m;
	struct wf_publisher_piece piece;
	const void *at;

	(void)state;
	open_machine(MACHINE_DUAL, "");
	for (size_t i = 0; i < WF_COUNT(without); i++) {
		open_another(MACHINE_DUAL, without[i]);
		for (size_t p = 0; p < o.publishers.count; p++) {
			assert_string_not_equal(o.publishers.all[p].how->kind, "pinned");
			assert_string_not_equal(o.publishers.all[p].how->kind, "cuda");
		}
		assert_null(wf_cuda_driver()); /* it was not loaded for that */
	}

	open_another(MACHINE_DUAL, "allow pinned for eth3; prefer pinned,host");
	judge("mlx5_1", NULL, MIB);
	assert_refused("pinned:1", -EACCES, "'deny pinned': it is PHB to mlx5_1");
	open_another(MACHINE_DUAL, "allow pinned; prefer pinned,host");
	judge("mlx5_1", NULL, MIB);
	assert_first("pinned:1", "'prefer pinned,host'; PHB to mlx5_1");

	piece = take("pinned:0", 3 * MIB);
	memset(piece.base, 1, piece.bytes);
	assert_int_equal(wf_cuda_find((char *)piece.base + 2 * MIB, &m, NULL), 0);
	assert_int_equal(m.kind, WF_CUDA_PINNED);
	at = piece.base;
	give("pinned:0", &piece);
	assert_int_equal(wf_cuda_find(at, &m, NULL), 0);
	assert_int_equal(m.kind, WF_CUDA_HOST);
}

#define UNREACHED "the processor does not reach it, and the request is without WEFT_NEAR_DEVICE"

static void memory_of_a_cuda_device_is_for_who_says_that_it_will_do(void **state)
{
	(void)state;
	open_machine(MACHINE_GPUS, "allow cuda; prefer cuda,host");
	judge("gpu0", NULL, MIB);
	assert_first("host:0", "'prefer cuda,host'; PHB to gpu0");
	assert_refused("cuda:0", -EACCES, UNREACHED);
	judge("gpu0", "cuda,any", MIB);
	assert_first("host:0", "PHB to gpu0");
	assert_refused("cuda:0", -EACCES, UNREACHED);

	judge_for_device("gpu0", NULL, MIB);
	assert_first("cuda:0", "'prefer cuda,host'; X to gpu0");
	/* Of what the request names the host is not. */
	judge_for_device("gpu0", "host", MIB);
	assert_first("host:0", "PHB to gpu0");
	assert_refused("cuda:0", -EACCES, "the request names others");
}

static void the_cuda_device_nearest_by_its_address_serves(void **state)
{
	const struct wf_publisher *p;

	(void)state;
	open_machine(MACHINE_GPUS, "allow cuda");
	judge_for_device("gpu1", NULL, MIB);
	assert_first("cuda:1", "X to gpu1");
	p = choices[0].publisher;
	assert_string_equal(p->place.device->address, "0000:af:00.0");
	assert_int_equal(p->place.node, 1);
	assert_int_equal(p->bytes, 17 * GIB);
	judge_for_device("mlx5_0", NULL, MIB);
	assert_first("cuda:0", "PIX to mlx5_0");
	judge_for_device("mlx5_1", NULL, MIB);
	assert_first("cuda:1", "PIX to mlx5_1");
	judge_for_device("node0", NULL, MIB);
	assert_first("host:0", "X to node0");

	open_another(MACHINE_GPUS, "allow cuda:1; deny cuda for mlx5_1");
	judge_for_device("gpu0", NULL, MIB);
	assert_first("host:0", "PHB to gpu0");
	assert_refused("cuda:0", -EACCES, "'deny cuda': it is X to gpu0");

	/* What sysfs does not show is near to nothing. */
	open_another(MACHINE_DUAL, "allow cuda");
	judge_for_device("node0", "cuda", MIB);
	assert_first("cuda:0", "SYS to node0");
	assert_int_equal(choices[0].publisher->place.node, -1);
}

static void memory_of_a_cuda_device_has_its_limits(void **state)
{
	struct wf_publisher_piece piece;

	(void)state;
	open_machine(MACHINE_GPUS, "allow cuda; limit cuda:0 1M; reserve cuda:1 16G");
	judge_for_device("gpu0", NULL, MIB + 1);
	assert_refused("cuda:0", -ENOBUFS, "'limit cuda:0 1M', and 0 bytes are in use");
	piece = take("cuda:0", 4097);
	assert_int_equal(piece.bytes, 8192);
	judge_for_device("gpu0", NULL, MIB);
	assert_refused("cuda:0", -ENOBUFS, "'limit cuda:0 1M', and 8192 bytes are in use");
	assert_int_equal(choice_of("cuda:0")->publisher->available_bytes, 16 * GIB - 8192);
	give("cuda:0", &piece);
	judge_for_device("gpu0", NULL, MIB);
	assert_first("cuda:0", "X to gpu0");
	judge_for_device("gpu1", NULL, GIB + 1);
	assert_refused("cuda:1", -ENOBUFS, "'reserve cuda:1 16G', and 18253611008 bytes are available");
}

static void memory_of_a_cuda_device_is_the_drivers(void **state)
{
	struct wf_cuda_memory m;
	struct wf_publisher_piece piece;
	struct wf_publisher *p;
	struct wf_error e;
	unsigned left;
	const void *at;

	(void)state;
	assert_null(gpu_open(false));
	left = gpu.fake_cuda_left();
	open_machine(MACHINE_GPUS, "allow cuda");
	piece = take("cuda:1", 3 * MIB);
	p = choice_of("cuda:1")->publisher;
	assert_null(piece.file.base);
	assert_int_equal(wf_cuda_find((char *)piece.base + 2 * MIB, &m, NULL), 0);
	assert_int_equal(m.kind, WF_CUDA_DEVICE);
	assert_int_equal(m.device, 1);
	at = piece.base;
	give("cuda:1", &piece);
	assert_int_equal(wf_cuda_find(at, &m, NULL), 0);
	assert_int_equal(m.kind, WF_CUDA_HOST);

	/* Others have it. */
	gpu.fake_cuda_fail("cuMemAlloc", 1, CU_OUT_OF_MEMORY);
	assert_int_equal(wf_orchestrator_take(&o, p, MIB, &piece, &e), -ENOMEM);
	assert_string_equal(e.text, "cuda:1: no memory for 1048576 bytes of CUDA device 1: "
				    "CUDA_ERROR_OUT_OF_MEMORY (2)");
	assert_int_equal(p->used_bytes, 0);
	assert_int_equal(gpu.fake_cuda_left(), left);
}

static void without_a_driver_no_cuda_device_is_published(void **state)
{
	struct wf_error e;

	(void)state;
	if (wf_orchestrator_open(&o, machine_make(MACHINE_GPUS), "allow cuda", "no", &e))
		fail_msg("%s", e.text);
	judge_for_device("gpu0", "cuda", MIB);
	assert_first("host:0", "PHB to gpu0");
	assert_refused("cuda:0", -ENODEV,
		       "it is not published: CUDA is not looked for: WEFT_CUDA=no");
	assert_int_equal(choice_of("cuda:0")->publisher->bytes, 0);
}

static void a_denied_publisher_serves_nobody_whom_the_rule_means(void **state)
{
	(void)state;
	open_machine(MACHINE_SWITCH, "deny p2pmem for gpu1; deny host:0; " NEAR_DEVICES);
	judge("mlx5_0", NULL, MIB);
	assert_first("p2pmem:0000:1f:00.0", "PXB to mlx5_0");
	judge("mlx5_0,gpu1", NULL, MIB);
	assert_first("host:1", "1032 to 2 clients, SYS at most");
	assert_refused("p2pmem:0000:1f:00.0", -EACCES, "'deny p2pmem for gpu1': it is PIX to gpu1");
	assert_refused("host:0", -EACCES, "'deny host:0': it is PHB to mlx5_0");
}

static void an_order_goes_before_distance(void **state)
{
	(void)state;
	open_machine(MACHINE_SWITCH, "prefer host for mlx5_0; prefer host:1,p2pmem");
	judge("mlx5_0", NULL, MIB);
	assert_first("host:0", "'prefer host for mlx5_0'; PHB to mlx5_0");
	judge("gpu1", NULL, MIB);
	assert_first("host:1", "'prefer host:1,p2pmem'; SYS to gpu1");
	assert_string_equal(choices[1].publisher->name, "p2pmem:0000:1f:00.0");
	assert_string_equal(choices[2].publisher->name, "host:0");
	/* What the request says goes before both. */
	judge("mlx5_0", "p2pmem,host:1", MIB);
	assert_first("p2pmem:0000:1f:00.0", "PXB to mlx5_0");
	assert_string_equal(choices[1].publisher->name, "host:1");
}

static void the_host_stands_in_unless_the_request_is_strict(void **state)
{
	struct wf_orchestrator_request r;

	(void)state;
	open_machine(MACHINE_SWITCH, "");
	judge("gpu1", "p2pmem", 65 * MIB);
	assert_first("host:0", "PHB to gpu1");
	r = request("gpu1", "p2pmem", 65 * MIB);
	r.strict = true;
	wf_orchestrator_judge(&o, &r, choices);
	assert_string_equal(choices[0].publisher->name, "p2pmem:0000:1f:00.0");
	assert_refused("p2pmem:0000:1f:00.0", -ENOBUFS, "67108864 bytes are available");
	assert_refused("host:0", -EACCES, "the request names others");
}

static void a_publisher_without_room_is_passed_over(void **state)
{
	(void)state;
	open_machine(MACHINE_SWITCH, NEAR_DEVICES);
	judge("gpu1", NULL, 65 * MIB);
	assert_int_equal(choices[0].err, -ENOBUFS);
	assert_int_equal(choices[1].err, 0);
	assert_string_equal(choices[1].publisher->name, "host:0");
	/* Others have taken some. */
	machine_say(MACHINE_P2PMEM "available", "4096");
	judge("gpu1", NULL, 4097);
	assert_refused("p2pmem:0000:1f:00.0", -ENOBUFS, "4096 bytes are available");
	judge("gpu1", NULL, 4096);
	assert_first("p2pmem:0000:1f:00.0", "PIX to gpu1");
	/* More than can be counted in pages is too much for everybody. */
	judge("gpu1", NULL, UINT64_MAX);
	for (size_t i = 0; i < o.publishers.count; i++)
		assert_true(choices[i].err == -ENOBUFS || choices[i].err == -EACCES);
}

static void a_publisher_that_publishes_no_more_gives_nothing_and_its_pieces_stay(void **state)
{
	struct wf_publisher_piece piece;
	struct wf_publisher *p;
	struct wf_error e;

	(void)state;
	open_machine(MACHINE_SWITCH, NEAR_DEVICES);
	piece = take("p2pmem:0000:1f:00.0", MIB);
	p = choice_of("p2pmem:0000:1f:00.0")->publisher;
	machine_say(MACHINE_P2PMEM "published", "0");
	judge("gpu1", NULL, MIB);
	assert_first("host:0", "PHB to gpu1");
	assert_refused(p->name, -ENODEV, "it is not published");
	memset(piece.base, 7, piece.bytes);
	wf_orchestrator_give(&o, p, &piece);
	/* It may have been withdrawn since it was chosen. */
	assert_int_equal(wf_orchestrator_take(&o, p, MIB, &piece, &e), -ENOBUFS);
	assert_string_equal(e.text, "p2pmem:0000:1f:00.0: it is not published");
	machine_say(MACHINE_P2PMEM "published", "1");
	judge("gpu1", NULL, MIB);
	assert_first("p2pmem:0000:1f:00.0", "PIX to gpu1");
}

static void pieces_come_in_whole_pages_and_are_written_to(void **state)
{
	static const char *const names[] = { "host:0", "p2pmem:0000:1f:00.0", "software:0000:1b:00.0" };

	(void)state;
	open_machine(MACHINE_SWITCH, "publish software:mlx5_0 1M");
	for (size_t i = 0; i < WF_COUNT(names); i++) {
		struct wf_publisher_piece piece;

		/* Not every machine has the second node that this one says. */
		piece = take(names[i], 4097);
		assert_int_equal(piece.bytes, 8192);
		memset(piece.base, 7, piece.bytes);
		assert_int_equal(choice_of(names[i])->publisher->used_bytes, 8192);
		/* Only memory of our own is for others to map. */
		assert_int_equal(piece.file.base != NULL, i != 1);
		give(names[i], &piece);
		assert_null(piece.base);
		assert_int_equal(choice_of(names[i])->publisher->used_bytes, 0);
	}
}

static void a_rule_makes_a_publisher_in_the_place_of_a_device(void **state)
{
	struct wf_publisher_piece piece;
	struct wf_error e;

	(void)state;
	open_machine(MACHINE_SWITCH, "publish software:1a:00.0 1M");
	judge("mlx5_0", NULL, MIB);
	assert_first("software:0000:1a:00.0", "PIX to mlx5_0");
	piece = take("software:0000:1a:00.0", MIB / 2);
	judge("mlx5_0", NULL, MIB);
	assert_refused("software:0000:1a:00.0", -ENOBUFS, "524288 bytes are available");
	give("software:0000:1a:00.0", &piece);
	judge("mlx5_0", NULL, MIB);
	assert_first("software:0000:1a:00.0", "PIX to mlx5_0");

	close_machine(NULL);
	assert_int_equal(wf_orchestrator_open(&o, machine_make(MACHINE_DUAL),
					      "publish software:1a:00.0 1M", "", &e), -ENODEV);
	assert_non_null(strstr(e.text, "there is no device 1a:00.0"));
	machine_remove();
	open_machine(MACHINE_DUAL, "");
}

static void every_limit_holds(void **state)
{
	struct wf_publisher_piece host, device;

	(void)state;
	open_machine(MACHINE_SWITCH, "limit p2pmem:0000:1f:00.0 512K; limit any 1M; limit host:1 0; " NEAR_DEVICES);
	judge("gpu1", NULL, 513 * KIB);
	assert_refused("p2pmem:0000:1f:00.0", -ENOBUFS,
		       "'limit p2pmem:0000:1f:00.0 512K', and 0 bytes are in use");
	assert_refused("host:1", -ENOBUFS, "'limit host:1 0', and 0 bytes are in use");
	device = take("p2pmem:0000:1f:00.0", 512 * KIB);
	judge("gpu1", NULL, 1);
	assert_refused("p2pmem:0000:1f:00.0", -ENOBUFS,
		       "'limit p2pmem:0000:1f:00.0 512K', and 524288 bytes are in use");
	/* All that this node has together. */
	judge("gpu1", NULL, 513 * KIB);
	assert_refused("host:0", -ENOBUFS, "'limit any 1M', and 524288 bytes are in use");
	host = take("host:0", 512 * KIB);
	judge("gpu1", NULL, 1);
	assert_refused("host:0", -ENOBUFS, "'limit any 1M', and 1048576 bytes are in use");
	give("p2pmem:0000:1f:00.0", &device);
	judge("gpu1", NULL, 512 * KIB);
	assert_first("p2pmem:0000:1f:00.0", "PIX to gpu1");
	give("host:0", &host);
}

static void every_reserve_is_left(void **state)
{
	(void)state;
	open_machine(MACHINE_SWITCH, "reserve p2pmem 25%; reserve host:0 4G; " NEAR_DEVICES);
	judge("gpu1", NULL, 48 * MIB);
	assert_first("p2pmem:0000:1f:00.0", "PIX to gpu1");
	judge("gpu1", NULL, 48 * MIB + 1);
	assert_refused("p2pmem:0000:1f:00.0", -ENOBUFS,
		       "'reserve p2pmem 25%', and 67108864 bytes are available");
	/* Files that were read count as available: 6 GiB are. */
	judge("gpu1", NULL, 2 * GIB);
	assert_int_equal(choice_of("host:0")->err, 0);
	judge("gpu1", NULL, 2 * GIB + 1);
	assert_refused("host:0", -ENOBUFS, "'reserve host:0 4G', and 6442450944 bytes are available");
}

static void a_refusal_by_the_system_is_said(void **state)
{
	struct wf_publisher_piece piece;
	struct wf_error e;

	(void)state;
	open_machine(MACHINE_SWITCH, NEAR_DEVICES);
	judge("gpu1", NULL, MIB);
	/* As with a kernel before 6.2. */
	machine_drop(MACHINE_P2PMEM "allocate");
	assert_int_equal(wf_orchestrator_take(&o, choices[0].publisher, MIB, &piece, &e), -ENOBUFS);
	assert_string_equal(e.text, "p2pmem:0000:1f:00.0: it is not published: its memory can't be "
				    "opened: No such file or directory, as before Linux 6.2");
	assert_int_equal(choices[0].publisher->used_bytes, 0);
	assert_int_equal(choices[0].publisher->bytes, 64 * MIB);

	/* And it is not chosen. */
	judge("gpu1", NULL, MIB);
	assert_refused("p2pmem:0000:1f:00.0", -ENODEV, "it is not published: its memory "
						       "can't be opened: No such file or directory, as before Linux 6.2");
	assert_first("host:0", "PHB to gpu1");
}

static void a_process_that_may_not_place_memory_gets_it_and_is_told(void **state)
{
	int status;
	pid_t child;

	(void)state;
	open_machine(MACHINE_DUAL, "");
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct wf_publisher_piece piece;

		if (!forbid(SYS_mbind))
			_exit(2);
		_exit(wf_orchestrator_take(&o, &o.publishers.all[0], MIB, &piece, NULL) ||
		      !piece.anywhere);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void rules_that_can_not_be_read_are_an_error(void **state)
{
	struct wf_error e;

	(void)state;
	assert_int_equal(wf_orchestrator_open(&o, machine_make(MACHINE_DUAL), "deny gpu", "", &e),
			 -EINVAL);
	assert_non_null(strstr(e.text, "line 1: 'gpu' is no publisher"));
	machine_remove();
	open_machine(MACHINE_DUAL, "");
}

#define TEST(name) cmocka_unit_test_teardown(name, close_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_nearest_serves),
		TEST(memory_of_a_device_stands_behind_the_hosts_unasked),
		TEST(the_sum_over_all_clients_counts),
		TEST(the_publisher_that_has_given_least_of_equals_serves),
		TEST(memory_of_a_device_does_not_pass_the_processor_unasked),
		TEST(huge_pages_serve_whom_a_rule_allows_them),
		TEST(pinned_memory_is_where_a_rule_allows_it),
		TEST(memory_of_a_cuda_device_is_for_who_says_that_it_will_do),
		TEST(the_cuda_device_nearest_by_its_address_serves),
		TEST(memory_of_a_cuda_device_has_its_limits),
		TEST(memory_of_a_cuda_device_is_the_drivers),
		TEST(without_a_driver_no_cuda_device_is_published),
		TEST(a_denied_publisher_serves_nobody_whom_the_rule_means),
		TEST(an_order_goes_before_distance),
		TEST(the_host_stands_in_unless_the_request_is_strict),
		TEST(a_publisher_without_room_is_passed_over),
		TEST(a_publisher_that_publishes_no_more_gives_nothing_and_its_pieces_stay),
		TEST(pieces_come_in_whole_pages_and_are_written_to),
		TEST(a_rule_makes_a_publisher_in_the_place_of_a_device),
		TEST(every_limit_holds),
		TEST(every_reserve_is_left),
		TEST(a_refusal_by_the_system_is_said),
		TEST(a_process_that_may_not_place_memory_gets_it_and_is_told),
		TEST(rules_that_can_not_be_read_are_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
