/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What weft asks of a CUDA driver, and gets: the same of the software driver
 * (test_copies) and of a real one, where there is a GPU (real_copies).
 */
#include "memory/kind.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/cuda/gpu.h"
#include "util/clock.h"

#define LIMIT_NS (60 * WF_NS_PER_S) /* for what takes milliseconds */

static struct wf_error e;
static const char *self;

/* Host memory in whole pages, pinned for device 0. */
static void *map_pinned(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(wf_cuda_pin(0, at, bytes, &e), 0);
	return at;
}

static void unmap_pinned(void *at, size_t bytes)
{
	wf_cuda_unpin(0, at);
	munmap(at, bytes);
}

/* Ask until it has come, or has failed. */
static int finish(struct wf_queue *queue)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;
	struct wf_queue_event *event;
	int err;

	assert_int_equal(wf_queue_record(queue, &event, &e), 0);
	do {
		err = wf_queue_poll(event, &e);
	} while (err == -EAGAIN && wf_clock_now() < until_ns);
	wf_queue_give(event);
	return err;
}

static void copy(struct wf_queue *queue, enum wf_queue_way way, void *to, const void *from,
		 size_t bytes)
{
	assert_int_equal(wf_queue_copy(queue, way, to, from, bytes, &e), 0);
	assert_int_equal(finish(queue), 0);
}

static void bytes_of_every_length_come_and_go(void **state)
{
	static const size_t sizes[] = { 1, 7, 4095, 4096, 65537, MIB, 3 * MIB + 1, 16 * MIB };
	const size_t room = 16 * MIB;
	unsigned char *out = map_pinned(room), *back = map_pinned(room), *device;
	struct wf_queue *queue;

	(void)state;
	device = gpu_take(0, room);
	assert_int_equal(wf_queue_open(0, &queue, &e), 0);
	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		gpu_pattern(out, sizes[i], (unsigned)i);
		memset(back, 0x77, room);
		copy(queue, WF_QUEUE_TO_DEVICE, device + (room - sizes[i]), out, sizes[i]);
		copy(queue, WF_QUEUE_TO_HOST, back, device + (room - sizes[i]), sizes[i]);
		assert_memory_equal(back, out, sizes[i]);
		if (sizes[i] < room)
			assert_int_equal(back[sizes[i]], 0x77);
	}
	wf_queue_close(queue);
	gpu_give(0, device);
	unmap_pinned(out, room);
	unmap_pinned(back, room);
}

static void bytes_go_from_one_device_to_the_other(void **state)
{
	struct wf_queue *queue;
	char *from, *to;
	int other = wf_cuda_driver_device_count() - 1; /* the same one where there is one */

	(void)state;
	from = gpu_take(0, MIB);
	to = gpu_take(other, MIB);
	gpu_fill(0, from, MIB, 5);
	assert_int_equal(wf_queue_open(0, &queue, &e), 0);
	copy(queue, WF_QUEUE_ON_DEVICE, to, from, MIB);
	assert_true(gpu_holds(other, to, MIB, 5));
	wf_queue_close(queue);
	gpu_give(0, from);
	gpu_give(other, to);
}

static void memory_is_found_to_be_what_it_is(void **state)
{
	char *device = gpu_take(0, 3 * MIB), *pinned = map_pinned(MIB), *host = malloc(100);
	CUdeviceptr managed = 0;
	struct wf_cuda_memory m;

	(void)state;
	assert_int_equal(wf_cuda_find(device + MIB + 5, &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_DEVICE);
	assert_int_equal(m.device, 0);
	assert_int_equal(m.start, (uintptr_t)device);
	assert_int_equal(m.bytes, 3 * MIB);
	assert_true(m.buffer > 0);

	assert_int_equal(wf_cuda_find(pinned + 4096, &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_PINNED);
	assert_int_equal(wf_cuda_find(host, &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_HOST);
	assert_int_equal(m.device, 0);

	assert_int_equal(wf_cuda_enter(0, &e), 0);
	assert_int_equal(gpu.cuMemAllocManaged(&managed, MIB, 1), 0);
	wf_cuda_leave();
	assert_int_equal(wf_cuda_find((void *)managed, &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_MANAGED);

	assert_int_equal(wf_cuda_enter(0, &e), 0);
	assert_int_equal(gpu.cuMemFree_v2(managed), 0);
	wf_cuda_leave();
	gpu_give(0, device);
	unmap_pinned(pinned, MIB);
	free(host);
}

static void an_allocation_in_the_place_of_another_has_another_number(void **state)
{
	struct wf_cuda_memory first, second;
	char *at = gpu_take(0, MIB), *again;

	(void)state;
	assert_int_equal(wf_cuda_find(at, &first, &e), 0);
	gpu_give(0, at);
	again = gpu_take(0, MIB);
	assert_int_equal(wf_cuda_find(again, &second, &e), 0);
	assert_int_not_equal(first.buffer, second.buffer);
	gpu_give(0, again);
}

static void memory_of_a_device_is_taken_and_given_back(void **state)
{
	int last = wf_cuda_driver_device_count() - 1;
	struct wf_cuda_device device;
	struct wf_cuda_memory m;
	CUstream stream;
	void *at = NULL;

	(void)state;
	assert_int_equal(wf_cuda_device(last, &device, &e), 0);
	assert_int_equal(wf_cuda_alloc(last, 3 * MIB, &at, &e), 0);
	assert_int_equal((uintptr_t)at % 256, 0);
	assert_int_equal(wf_cuda_find(at, &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_DEVICE);
	assert_int_equal(m.device, last);
	assert_int_equal(m.bytes, 3 * MIB);
	gpu_fill(last, at, 3 * MIB, 6);
	assert_true(gpu_holds(last, at, 3 * MIB, 6));
	wf_cuda_free(last, at);
	assert_int_equal(wf_cuda_find(at, &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_HOST);

	at = NULL;
	assert_int_equal(wf_cuda_alloc(last, device.bytes + MIB, &at, &e), -ENOMEM);
	assert_non_null(strstr(e.text, "CUDA_ERROR_OUT_OF_MEMORY (2)"));
	assert_int_equal(wf_cuda_alloc(last + 1, MIB, &at, &e), -EINVAL);
	assert_null(at);

	stream = gpu_capture(CU_STREAM_NON_BLOCKING);
	assert_int_equal(wf_cuda_alloc(0, MIB, &at, &e), 0);
	wf_cuda_free(0, at);
	gpu_capture_over(stream);
}

static void a_devices_description_of_itself_is_plausible(void **state)
{
	struct wf_cuda_device d;

	(void)state;
	for (int i = 0; i < wf_cuda_driver_device_count(); i++) {
		assert_int_equal(wf_cuda_device(i, &d, &e), 0);
		print_message("%d: %s, %s, %llu MiB, NUMA node %d, dma-buf: %d\n", i, d.name, d.pci,
			      (unsigned long long)(d.bytes / MIB), d.numa_node, d.gives_dma_buf);
		assert_true(strlen(d.name) > 0);
		assert_int_equal(strlen(d.pci), strlen("0000:3b:00.0"));
		assert_in_range(d.bytes, 16 * MIB, UINT64_MAX);
	}
	assert_int_equal(wf_cuda_device(wf_cuda_driver_device_count(), &d, &e), -EINVAL);
	assert_int_equal(wf_cuda_device(-1, &d, &e), -EINVAL);
	assert_int_equal(wf_cuda_enter(WF_CUDA_DEVICES_MAX, &e), -EINVAL);
}

/* What the thread @arg leaves current after weft has worked in it: nothing. */
static void *work_in_a_fresh_thread(void *arg)
{
	CUcontext before = NULL, after = NULL;
	struct wf_cuda_export export;
	struct wf_queue *queue;
	void *at = arg;

	if (gpu.cuCtxGetCurrent(&before) || before)
		return "a fresh thread has a context";
	if (wf_queue_open(0, &queue, &e) || finish(queue))
		return e.text;
	wf_queue_close(queue);
	(void)wf_cuda_export(at, &export, &e);
	if (gpu.cuCtxGetCurrent(&after) || after)
		return "weft has left a context";
	return NULL;
}

static void a_thread_keeps_the_context_it_has(void **state)
{
	CUcontext own, now = NULL;
	struct wf_queue *queue;
	pthread_t thread;
	void *at = gpu_take(0, 4096), *wrong;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, work_in_a_fresh_thread, at), 0);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	if (wrong)
		fail_msg("%s", (char *)wrong);

	assert_int_equal(gpu.cuCtxCreate_v2(&own, 0, 0), 0);
	assert_int_equal(wf_queue_open(0, &queue, &e), 0);
	assert_int_equal(finish(queue), 0);
	wf_queue_close(queue);
	assert_int_equal(gpu.cuCtxGetCurrent(&now), 0);
	assert_ptr_equal(now, own);
	assert_int_equal(gpu.cuCtxDestroy_v2(own), 0);
	gpu_give(0, at);
}

static void memory_of_a_programs_own_context_is_reached(void **state)
{
	unsigned char *host = map_pinned(MIB), *expected = malloc(MIB);
	struct wf_cuda_memory m;
	struct wf_queue *queue;
	CUdeviceptr at;
	CUcontext own;

	(void)state;
	gpu_pattern(expected, MIB, 9);
	assert_int_equal(gpu.cuCtxCreate_v2(&own, 0, 0), 0);
	assert_int_equal(gpu.cuMemAlloc_v2(&at, MIB), 0);
	assert_int_equal(gpu.cuMemcpyHtoD_v2(at, expected, MIB), 0);
	assert_int_equal(gpu.cuCtxSynchronize(), 0);
	assert_int_equal(gpu.cuCtxSetCurrent(NULL), 0);

	assert_int_equal(wf_cuda_find((void *)at, &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_DEVICE);
	assert_int_equal(wf_queue_open(0, &queue, &e), 0);
	copy(queue, WF_QUEUE_TO_HOST, host, (void *)at, MIB);
	assert_memory_equal(host, expected, MIB);
	memset(host, 3, MIB);
	copy(queue, WF_QUEUE_TO_DEVICE, (void *)at, host, MIB);
	wf_queue_close(queue);

	assert_int_equal(gpu.cuCtxSetCurrent(own), 0);
	assert_int_equal(gpu.cuMemcpyDtoH_v2(expected, at, MIB), 0);
	assert_memory_equal(host, expected, MIB);
	assert_int_equal(gpu.cuMemFree_v2(at), 0);
	assert_int_equal(gpu.cuCtxDestroy_v2(own), 0);
	unmap_pinned(host, MIB);
	free(expected);
}

static void wait_for_it(void *arg)
{
	while (sem_wait(arg))
		;
}

/* A stream of the program's that does nothing until @go, and then sets @bytes at @at. */
static CUstream busy_stream(sem_t *go, void *at, unsigned char value, size_t bytes)
{
	CUstream stream;

	assert_int_equal(sem_init(go, 0, 0), 0);
	assert_int_equal(wf_cuda_enter(0, &e), 0);
	assert_int_equal(gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(gpu.cuLaunchHostFunc(stream, wait_for_it, go), 0);
	assert_int_equal(gpu.cuMemsetD8Async((CUdeviceptr)at, value, bytes, stream), 0);
	wf_cuda_leave();
	return stream;
}

static int wait_until_passed(const struct wf_queue_mark *mark)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;
	int err;

	do {
		err = wf_queue_passed(mark, &e);
	} while (err == -EAGAIN && wf_clock_now() < until_ns);
	return err;
}

static void a_mark_is_passed_when_what_the_stream_had_then_has_ended(void **state)
{
	unsigned char *host = map_pinned(MIB);
	void *device = gpu_take(0, MIB);
	struct wf_queue_mark mark;
	struct wf_queue *queue;
	CUstream stream;
	sem_t go;

	(void)state;
	gpu_fill(0, device, MIB, 1);
	stream = busy_stream(&go, device, 42, MIB);
	assert_int_equal(wf_queue_mark(0, stream, &mark, &e), 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(wf_queue_passed(&mark, &e), -EAGAIN);

	/* Other copies go on meanwhile. */
	assert_int_equal(wf_queue_open(0, &queue, &e), 0);
	copy(queue, WF_QUEUE_TO_HOST, host, device, MIB);
	assert_int_not_equal(host[0], 42);

	sem_post(&go);
	assert_int_equal(wait_until_passed(&mark), 0);
	copy(queue, WF_QUEUE_TO_HOST, host, device, MIB);
	for (size_t i = 0; i < MIB; i++)
		if (host[i] != 42)
			fail_msg("byte %zu is %u", i, host[i]);
	wf_queue_unmark(&mark);
	wf_queue_close(queue);
	assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
	gpu_give(0, device);
	unmap_pinned(host, MIB);
	sem_destroy(&go);
}

static void default_streams_can_be_marked_with_and_without_a_context(void **state)
{
	struct wf_queue_mark mark;

	(void)state;
	for (uintptr_t stream = 0; stream <= 2; stream++) {
		assert_int_equal(wf_queue_mark(0, (void *)stream, &mark, &e), 0);
		assert_int_equal(wait_until_passed(&mark), 0);
		wf_queue_unmark(&mark);
		assert_int_equal(wf_cuda_enter(0, &e), 0);
		assert_int_equal(wf_queue_mark(0, (void *)stream, &mark, &e), 0);
		wf_cuda_leave();
		assert_int_equal(wait_until_passed(&mark), 0);
		wf_queue_unmark(&mark);
	}
}

static void copies_go_on_while_the_program_captures_a_graph(void **state)
{
	unsigned char *device = gpu_take(0, MIB), *host, *wanted = malloc(MIB);
	struct wf_queue_mark mark;
	struct wf_queue *queue;
	CUstream stream;

	(void)state;
	stream = gpu_capture(CU_STREAM_NON_BLOCKING);
	host = map_pinned(MIB);
	assert_int_equal(wf_queue_open(0, &queue, &e), 0);
	gpu_pattern(wanted, MIB, 7);
	memcpy(host, wanted, MIB);
	copy(queue, WF_QUEUE_TO_DEVICE, device, host, MIB);
	memset(host, 0, MIB);
	copy(queue, WF_QUEUE_TO_HOST, host, device, MIB);
	assert_memory_equal(host, wanted, MIB);
	assert_int_equal(wf_queue_mark(0, stream, &mark, &e), -EINVAL);
	assert_non_null(strstr(e.text, "captured into a graph"));
	assert_int_equal(wf_queue_mark(0, NULL, &mark, &e), 0);
	wf_queue_unmark(&mark);
	wf_queue_close(queue);
	unmap_pinned(host, MIB);
	gpu_capture_over(stream);
	gpu_give(0, device);
	free(wanted);
}

static void the_default_stream_is_not_marked_while_one_that_it_waits_for_is_captured(void **state)
{
	struct wf_queue_mark mark;
	CUstream stream = gpu_capture(CU_STREAM_DEFAULT);

	(void)state;
	assert_int_not_equal(wf_queue_mark(0, NULL, &mark, &e), 0);
	assert_non_null(strstr(e.text, "a stream beside one that is being captured"));
	gpu_capture_over(stream);
}

static void closing_a_queue_waits_for_its_copies(void **state)
{
	void *host = map_pinned(8 * MIB), *device = gpu_take(0, 8 * MIB);
	struct wf_queue_event *event;
	struct wf_queue *queue;

	(void)state;
	gpu_pattern(host, 8 * MIB, 12);
	assert_int_equal(wf_queue_open(0, &queue, &e), 0);
	assert_int_equal(wf_queue_copy(queue, WF_QUEUE_TO_DEVICE, device, host, 8 * MIB, &e), 0);
	assert_int_equal(wf_queue_record(queue, &event, &e), 0);
	wf_queue_close(queue);
	memset(host, 0, 8 * MIB);
	assert_true(gpu_holds(0, device, 8 * MIB, 12));
	gpu_give(0, device);
	unmap_pinned(host, 8 * MIB);
}

static void memory_is_pinned_once_at_a_time(void **state)
{
	char *at = map_pinned(MIB);

	(void)state;
	assert_int_equal(wf_cuda_pin(0, at, MIB, &e), -EEXIST);
	assert_non_null(strstr(e.text, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)"));
	wf_cuda_unpin(0, at);
	wf_cuda_unpin(0, at);
	assert_int_equal(wf_cuda_pin(0, at, MIB, &e), 0);
	unmap_pinned(at, MIB);
}

/* What the other process says of its memory. */
struct offer {
	struct wf_cuda_export export;
	bool fails;
};

/* The other process: it exports what begins within an allocation, until it may go. */
static int run_exporter(bool real)
{
	struct offer offer = { 0 };
	char *at, c;

	if (gpu_open(real))
		return 1;
	at = gpu_take(0, 4 * MIB);
	gpu_fill(0, at, 4 * MIB, 33);
	offer.fails = wf_cuda_export(at + 1000, &offer.export, &e);
	if (write(STDOUT_FILENO, &offer, sizeof(offer)) != sizeof(offer))
		return 1;
	/* It is written to by the other, and seen here. */
	if (read(STDIN_FILENO, &c, 1) != 1)
		return 1;
	return gpu_holds(0, at, MIB, 34) ? 0 : 2;
}

static pid_t start_exporter(int *in, int *out)
{
	int to[2], from[2];
	pid_t child;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	child = fork();
	if (!child) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		close(from[0]);
		execl(self, self, "--export", (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	*in = to[1];
	*out = from[0];
	return child;
}

static void another_process_reaches_what_one_exports(void **state)
{
	struct offer offer;
	int in, out, status;
	void *start;
	pid_t child = start_exporter(&in, &out);

	(void)state;
	assert_int_equal(read(out, &offer, sizeof(offer)), sizeof(offer));
	assert_false(offer.fails);
	assert_int_equal(offer.export.offset, 1000);
	assert_int_equal(offer.export.bytes, 4 * MIB);
	assert_int_equal(wf_cuda_import(0, &offer.export.handle, &start, &e), 0);
	assert_true(gpu_holds(0, start, 4 * MIB, 33));
	gpu_fill(0, start, MIB, 34);
	wf_cuda_drop_import(0, start);
	assert_int_equal(write(in, "g", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(in);
	close(out);
}

static void memory_that_is_no_devices_is_not_exported(void **state)
{
	struct wf_cuda_export export;
	uint64_t offset = 7;
	int fd = -5;

	(void)state;
	assert_int_equal(wf_cuda_export(&offset, &export, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is not memory of a CUDA device"));
	assert_int_equal(wf_cuda_dma_buf(&offset, 8, &fd, &offset, &e), -EINVAL);
	assert_int_equal(fd, -5);
	assert_int_equal(offset, 7);
}

static void a_dma_buf_begins_with_the_page_of_its_memory(void **state)
{
	char *at = gpu_take(0, 2 * MIB);
	struct wf_cuda_device device;
	uint64_t offset;
	int err, fd;

	(void)state;
	assert_int_equal(wf_cuda_device(0, &device, &e), 0);
	err = wf_cuda_dma_buf(at + 100, 5000, &fd, &offset, &e);
	if (device.gives_dma_buf) {
		assert_int_equal(err, 0);
		assert_int_equal(offset, 100);
		assert_int_equal(close(fd), 0);
	} else {
		assert_int_equal(err, -EOPNOTSUPP);
		assert_string_equal(e.text, "CUDA device 0 gives no dma-buf of its memory");
	}
	gpu_give(0, at);
}

static void a_body_is_where_it_is_said_to_be_or_refused(void **state)
{
	struct wf_kind_place place = { 0 };
	char *device = gpu_take(0, MIB), *host = malloc(100);
	const char *setting = wf_cuda_driver_file();
	int count = wf_cuda_driver_device_count();

	(void)state;
	assert_int_equal(wf_kind_find(2, 0, device + 1, MIB - 1, setting, &place, &e), 0);
	assert_ptr_equal(place.kind, &wf_kind_cuda);
	assert_false(place.kind->direct);
	assert_int_equal(wf_kind_find(1, 0, host, 100, setting, &place, &e), 0);
	assert_true(place.kind->direct);

	assert_int_equal(wf_kind_find(2, 0, device + 1, MIB, setting, &place, &e), -EINVAL);
	assert_non_null(strstr(e.text, "go beyond their allocation on CUDA device 0"));
	assert_int_equal(wf_kind_find(2, count, device, 1, setting, &place, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is memory of CUDA device 0, not"));
	assert_int_equal(wf_kind_find(2, 0, host, 1, setting, &place, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is memory of the host, not of CUDA device 0"));
	assert_int_equal(wf_kind_find(10, 0, host, 1, setting, &place, &e), -ENOTSUP);
	assert_int_equal(wf_kind_find(2, 0, device, 1, "no", &place, &e), -ENODEV);
	gpu_give(0, device);
	free(host);
}

/* Both ways through chunks of a pool, several under way at once. */
static void bodies_go_through_chunks_of_the_pool(void **state)
{
	enum { CHUNKS = 4 };
	struct wf_kinds kinds = { 0 };
	struct wf_kind_copy copies[CHUNKS];
	struct wf_kind_place place;
	struct wf_cuda_memory m;
	struct wf_pool pool;
	char *from = gpu_take(0, CHUNKS * MIB), *to = gpu_take(0, CHUNKS * MIB);
	void *chunks[CHUNKS];

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	assert_int_equal(wf_kind_find(2, 0, from, CHUNKS * MIB, "", &place, &e), 0);
	gpu_fill(0, from, CHUNKS * MIB, 77);
	for (unsigned i = 0; i < CHUNKS; i++)
		assert_int_equal(wf_pool_take(&pool, MIB, &chunks[i]), 0);
	for (unsigned way = 0; way < 2; way++) {
		for (unsigned i = 0; i < CHUNKS; i++) {
			copies[i] = (struct wf_kind_copy){
				.kinds = &kinds, .place = &place, .way = way, .pool = &pool,
				.body = (way == WF_KIND_INTO_CHUNK ? from : to) + i * MIB,
				.chunk = chunks[i], .bytes = MIB,
			};
			assert_int_equal(place.kind->begin(&copies[i], &e), 0);
		}
		for (unsigned i = CHUNKS; i--;) {
			int err;

			while ((err = place.kind->poll(&copies[i], &e)) == -EAGAIN)
				;
			assert_int_equal(err, 0);
			place.kind->end(&copies[i]);
		}
	}
	assert_true(gpu_holds(0, to, CHUNKS * MIB, 77));

	/* The slabs were pinned whole, and are not once they are forgotten. */
	assert_int_equal(wf_cuda_find(chunks[0], &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_PINNED);
	assert_int_equal(m.bytes, 2 * MIB);
	wf_kinds_fini(&kinds);
	wf_pool_forget(&pool, NULL);
	assert_int_equal(wf_cuda_find(chunks[0], &m, &e), 0);
	assert_int_equal(m.kind, WF_CUDA_HOST);
	wf_pool_fini(&pool);
	gpu_give(0, from);
	gpu_give(0, to);
}

static void a_copy_goes_through_a_chunk_beside_one_that_the_program_has_pinned(void **state)
{
	struct wf_kinds kinds = { 0 };
	struct wf_kind_place place;
	struct wf_kind_copy copy;
	struct wf_pool pool;
	char *from = gpu_take(0, MIB);
	void *chunk, *neighbour, *expected = malloc(MIB);
	int err;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	assert_int_equal(wf_kind_find(2, 0, from, MIB, "", &place, &e), 0);
	gpu_fill(0, from, MIB, 78);
	gpu_pattern(expected, MIB, 78);
	assert_int_equal(wf_pool_take(&pool, MIB, &chunk), 0);
	assert_int_equal(wf_pool_take(&pool, MIB, &neighbour), 0);
	assert_int_equal(wf_cuda_pin(0, neighbour, MIB, &e), 0);
	for (unsigned i = 0; i < 2; i++) {
		memset(chunk, 0, MIB);
		copy = (struct wf_kind_copy){
			.kinds = &kinds, .place = &place, .way = WF_KIND_INTO_CHUNK, .pool = &pool,
			.body = from, .chunk = chunk, .bytes = MIB,
		};
		assert_int_equal(place.kind->begin(&copy, &e), 0);
		while ((err = place.kind->poll(&copy, &e)) == -EAGAIN)
			;
		assert_int_equal(err, 0);
		place.kind->end(&copy);
		assert_memory_equal(chunk, expected, MIB);
		/* Without the program's pin the slab is pinned whole. */
		assert_int_equal(atomic_load(&pool.pinned_bytes), i ? 2 * MIB : 0);
		if (!i)
			wf_cuda_unpin(0, neighbour);
	}
	wf_kinds_fini(&kinds);
	wf_pool_forget(&pool, NULL);
	wf_pool_fini(&pool);
	gpu_give(0, from);
	free(expected);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_a_device_is_taken_and_given_back),
		cmocka_unit_test(a_devices_description_of_itself_is_plausible),
		cmocka_unit_test(bytes_of_every_length_come_and_go),
		cmocka_unit_test(bytes_go_from_one_device_to_the_other),
		cmocka_unit_test(memory_is_found_to_be_what_it_is),
		cmocka_unit_test(an_allocation_in_the_place_of_another_has_another_number),
		cmocka_unit_test(a_thread_keeps_the_context_it_has),
		cmocka_unit_test(memory_of_a_programs_own_context_is_reached),
		cmocka_unit_test(a_mark_is_passed_when_what_the_stream_had_then_has_ended),
		cmocka_unit_test(default_streams_can_be_marked_with_and_without_a_context),
		cmocka_unit_test(copies_go_on_while_the_program_captures_a_graph),
		cmocka_unit_test(
			the_default_stream_is_not_marked_while_one_that_it_waits_for_is_captured),
		cmocka_unit_test(closing_a_queue_waits_for_its_copies),
		cmocka_unit_test(memory_is_pinned_once_at_a_time),
		cmocka_unit_test(another_process_reaches_what_one_exports),
		cmocka_unit_test(memory_that_is_no_devices_is_not_exported),
		cmocka_unit_test(a_dma_buf_begins_with_the_page_of_its_memory),
		cmocka_unit_test(a_body_is_where_it_is_said_to_be_or_refused),
		cmocka_unit_test(bodies_go_through_chunks_of_the_pool),
		cmocka_unit_test(a_copy_goes_through_a_chunk_beside_one_that_the_program_has_pinned),
	};
	int status;

	self = argv[0];
	/* What the software driver is to have; a real one knows nothing of it. */
	setenv("FAKE_CUDA", "dma-buf", 1);
	if (argc > 1 && !strcmp(argv[1], "--export"))
		return run_exporter(REAL_CUDA);
	status = gpu_begin(REAL_CUDA);
	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
