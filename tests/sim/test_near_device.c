/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of CUDA devices near to what uses it, of the software driver's: only for who asks for
 * it, whole when it is sent, and given back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cuda/gpu.h"
#include "tests/sim/world.h"
#include "tests/unit/machine.h"

#define S WF_NS_PER_S

static void open_world(enum wf_world_shape shape, unsigned count, const char *rules)
{
	setenv("WEFT_SYSFS", machine_make(MACHINE_GPUS), 1);
	setenv("WEFT_RULES", rules, 1);
	setenv("WEFT_CUDA", gpu_fake_file(), 1);
	wf_world_open(shape, count, NULL);
	for (unsigned i = 1; i < count; i++)
		wf_world_connect(0, i);
}

static void close_world(void)
{
	assert_int_equal(wf_world_close(), 0);
	machine_remove();
}

static int try_alloc(unsigned node, const char *client, const char *from, unsigned flags,
		     size_t bytes, void **memory)
{
	const char *const clients[] = { client, NULL };
	struct weft_near_options options = { .size = sizeof(options), .from = from, .flags = flags,
					     .clients = clients };

	return weft_alloc_near(wf_world_node(node), bytes, &options, memory);
}

static void *alloc(unsigned node, const char *client, unsigned flags, size_t bytes)
{
	void *memory;

	if (try_alloc(node, client, NULL, flags, bytes, &memory))
		fail_msg("%s", weft_error());
	return memory;
}

static struct weft_placement place_of(unsigned node, const void *memory)
{
	struct weft_placement place = { .size = sizeof(place) };

	assert_int_equal(weft_memory_place(wf_world_node(node), memory, &place), 0);
	return place;
}

/* A row of bytes in memory of @node, on the device that its placement tells. */
static struct weft_tensor row_of(unsigned node, void *memory, int64_t *bytes)
{
	return (struct weft_tensor){
		.data = memory,
		.device = place_of(node, memory).device,
		.ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 },
		.shape = bytes,
	};
}

static void memory_is_the_hosts_unless_a_device_is_asked_for(void **state)
{
	struct weft_placement place;
	void *memory;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, "allow cuda; prefer cuda,host");
	memory = alloc(0, "gpu0", 0, 5000);
	memset(memory, 7, 5000);
	place = place_of(0, memory);
	assert_string_equal(place.publisher, "host:0");
	assert_int_equal(place.device.type, WEFT_CPU);
	weft_free(wf_world_node(0), memory);

	/* Its name alone is no such word. */
	assert_int_equal(try_alloc(0, "gpu0", "cuda", 0, 1, &memory), 0);
	assert_string_equal(place_of(0, memory).publisher, "host:0");
	weft_free(wf_world_node(0), memory);
	memory = NULL;
	assert_int_equal(try_alloc(0, "gpu0", "cuda", WEFT_NEAR_STRICT, 1, &memory), -ENOBUFS);
	assert_non_null(strstr(weft_error(), "cuda:0: the processor does not reach it"));
	assert_null(memory);
	/* And no word gets what no rule allows. */
	close_world();
	open_world(WF_WORLD_CONNECTED, 1, "");
	assert_int_equal(try_alloc(0, "gpu0", "cuda", WEFT_NEAR_STRICT | WEFT_NEAR_DEVICE, 1, &memory),
			 -ENOBUFS);
	close_world();
}

static void memory_of_a_device_says_which_and_is_no_rails(void **state)
{
	struct weft_counters before;
	struct weft_placement place;
	uint8_t *memory;

	(void)state;
	open_world(WF_WORLD_SHARED, 1, "allow cuda");
	before = wf_world_count(0);
	memory = alloc(0, "mlx5_1", WEFT_NEAR_DEVICE, 5000);
	place = place_of(0, memory + 4999);
	assert_string_equal(place.publisher, "cuda:1");
	assert_string_equal(place.why, "PIX to mlx5_1");
	assert_int_equal(place.device.type, WEFT_CUDA);
	assert_int_equal(place.device.id, 1);
	assert_int_equal(place.numa_node, 1);
	assert_int_equal(place.bytes, 8192);
	assert_int_equal(wf_world_count(0).registrations, before.registrations);
	weft_free(wf_world_node(0), memory);

	/* That it will do is no wish for it: the nearest serves. */
	memory = alloc(0, "node0", WEFT_NEAR_DEVICE, 5000);
	assert_string_equal(place_of(0, memory).publisher, "host:0");
	weft_free(wf_world_node(0), memory);
	close_world();
}

/* From the first node's device 0 to the second's device 1. */
static void carry(int64_t bytes, uint64_t seed)
{
	struct weft_send_options out = { .size = sizeof(out), .stream = WEFT_NO_STREAM };
	struct weft_recv_options in = { .size = sizeof(in), .stream = WEFT_NO_STREAM };
	void *from = alloc(0, "gpu0", WEFT_NEAR_DEVICE, (size_t)bytes);
	void *to = alloc(1, "gpu1", WEFT_NEAR_DEVICE, (size_t)bytes);
	uint8_t *scratch = malloc((size_t)bytes);
	struct weft_tensor sent = row_of(0, from, &bytes), received = row_of(1, to, &bytes);
	struct wf_flight f[2];

	assert_int_equal(sent.device.type, WEFT_CUDA);
	assert_int_equal(received.device.id, 1);
	wf_world_fill(scratch, (size_t)bytes, seed);
	gpu_put(0, from, scratch, (size_t)bytes);
	memset(scratch, 0, (size_t)bytes);
	gpu_put(1, to, scratch, (size_t)bytes);
	out.op = wf_flight_begin(&f[0], 0);
	in.op = wf_flight_begin(&f[1], 0);
	assert_int_equal(weft_send(wf_world_peer(0, 1), seed, "", 0, &sent, &out, &f[0].op), 0);
	assert_int_equal(weft_recv(wf_world_node(1), NULL, seed, "", 0, &received, &in, &f[1].op), 0);
	wf_flight_land(f, 2, 5 * S);
	assert_int_equal(f[0].status, WEFT_OK);
	assert_int_equal(f[1].status, WEFT_OK);
	wf_flight_free(f, 2);
	gpu_get(1, to, scratch, (size_t)bytes);
	assert_true(wf_world_is_filled(scratch, (size_t)bytes, seed));
	free(scratch);
	weft_free(wf_world_node(0), from);
	weft_free(wf_world_node(1), to);
}

static void a_tensor_in_it_arrives_whole(void **state)
{
	static const int64_t sizes[] = { 1, 5000, 64 * KIB + 1, 3 * MIB + 5 };
	unsigned left = gpu.fake_cuda_left();

	(void)state;
	for (unsigned shape = 0; shape < WF_COUNT(wf_world_shapes); shape++) {
		open_world(wf_world_shapes[shape], 2, "allow cuda; limit cuda 4M");
		for (unsigned i = 0; i < WF_COUNT(sizes); i++)
			carry(sizes[i], i);
		close_world();
	}
	/* What the copies took has gone with the nodes. */
	assert_int_equal(gpu.fake_cuda_left(), left);
}

static void the_last_user_frees_memory_of_a_device_at_once(void **state)
{
	unsigned left = gpu.fake_cuda_left();
	struct weft_placement place = { .size = sizeof(place) };
	struct weft_node *node;
	char *memory;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, "allow cuda");
	node = wf_world_node(0);
	memory = alloc(0, "gpu0", WEFT_NEAR_DEVICE, MIB);
	assert_int_equal(gpu.fake_cuda_left(), left + 1);
	assert_int_equal(weft_retain(node, memory), 0);
	assert_int_equal(weft_retain(node, memory + 64), -EINVAL);
	weft_free(node, memory + 64);
	weft_free(node, memory);
	assert_int_equal(gpu.fake_cuda_left(), left + 1);
	weft_free(node, memory);
	assert_int_equal(gpu.fake_cuda_left(), left);
	assert_int_equal(weft_memory_place(node, memory, &place), -EINVAL);
	close_world();
}

static void memory_of_a_device_is_freed_with_its_node(void **state)
{
	unsigned left = gpu.fake_cuda_left();

	(void)state;
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		wf_world_set_workers(workers);
		open_world(WF_WORLD_CONNECTED, 1, "allow cuda");
		(void)alloc(0, "gpu0", WEFT_NEAR_DEVICE, MIB);
		(void)weft_retain(wf_world_node(0), alloc(0, "gpu1", WEFT_NEAR_DEVICE, MIB));
		assert_int_equal(gpu.fake_cuda_left(), left + 2);
		close_world();
		assert_int_equal(gpu.fake_cuda_left(), left);
	}
}

static void where_one_device_has_no_more_the_next_gives_it(void **state)
{
	const unsigned device = WEFT_NEAR_DEVICE, strict = WEFT_NEAR_DEVICE | WEFT_NEAR_STRICT;
	struct weft_placement place;
	void *first, *memory;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, "allow cuda; limit cuda:0 1M; prefer cuda,host");
	gpu.fake_cuda_fail("cuMemAlloc", 1, CU_OUT_OF_MEMORY);
	memory = alloc(0, "gpu0", device, MIB);
	place = place_of(0, memory);
	assert_string_equal(place.publisher, "cuda:1");
	assert_non_null(strstr(place.why, "SYS to gpu0; not cuda:0: no memory for 1048576 bytes of CUDA "
					  "device 0: CUDA_ERROR_OUT_OF_MEMORY (2)"));
	weft_free(wf_world_node(0), memory);
	gpu.fake_cuda_fail("cuMemAlloc", 1, CU_OUT_OF_MEMORY);
	assert_int_equal(try_alloc(0, "gpu0", "cuda:0", strict, MIB, &memory), -ENOMEM);
	assert_non_null(strstr(weft_error(), "cuda:0: no memory for 1048576 bytes of CUDA device 0"));

	/* By a rule it has no more, either, until it was given back. */
	first = alloc(0, "gpu0", device, MIB);
	memory = alloc(0, "gpu0", device, MIB);
	assert_string_equal(place_of(0, memory).publisher, "cuda:1");
	weft_free(wf_world_node(0), memory);
	assert_int_equal(try_alloc(0, "gpu0", "cuda:0", strict, 1, &memory), -ENOBUFS);
	assert_non_null(strstr(weft_error(), "cuda:0: 'limit cuda:0 1M', and 1048576 bytes are in use"));
	weft_free(wf_world_node(0), first);
	first = alloc(0, "gpu0", device, MIB);
	assert_string_equal(place_of(0, first).publisher, "cuda:0");
	weft_free(wf_world_node(0), first);
	close_world();
}

static void memory_of_a_device_can_not_be_shared(void **state)
{
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SHARE,
					     .stream = WEFT_NO_STREAM };
	int64_t bytes = 5000;
	struct weft_tensor t;
	struct weft_op *op = NULL;
	void *memory;

	(void)state;
	open_world(WF_WORLD_SAME_HOST, 2, "allow cuda");
	memory = alloc(0, "gpu0", WEFT_NEAR_DEVICE, (size_t)bytes);
	t = row_of(0, memory, &bytes);
	assert_int_equal(weft_send(wf_world_peer(0, 1), 1, "", 0, &t, &options, &op), -ENOTSUP);
	assert_string_equal(weft_error(),
			    "memory of CUDA device 0 can't be shared: no other process maps it so");
	/* Nor under the host's name. */
	t.device = (struct weft_device){ WEFT_CPU, 0 };
	assert_int_equal(weft_send(wf_world_peer(0, 1), 1, "", 0, &t, &options, &op), -EINVAL);
	assert_null(op);
	weft_free(wf_world_node(0), memory);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_the_hosts_unless_a_device_is_asked_for),
		cmocka_unit_test(memory_of_a_device_says_which_and_is_no_rails),
		cmocka_unit_test(a_tensor_in_it_arrives_whole),
		cmocka_unit_test(the_last_user_frees_memory_of_a_device_at_once),
		cmocka_unit_test(memory_of_a_device_is_freed_with_its_node),
		cmocka_unit_test(where_one_device_has_no_more_the_next_gives_it),
		cmocka_unit_test(memory_of_a_device_can_not_be_shared),
	};
	int status = gpu_begin(false);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
