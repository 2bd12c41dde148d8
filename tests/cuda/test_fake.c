/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the software driver shows that a real one would hide: that the CPU touches
 * device memory, that somebody is too early or too late, and what a failure does.
 */
#include "memory/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/cuda/gpu.h"

#define RUBBISH 0xee

static struct wf_error e;
static struct wf_queue *out, *in; /* to the device, and from it */
static unsigned char *device;
static struct wf_pool pool;
static unsigned char *host[2]; /* pinned */
static unsigned left;

static int begin(void **state)
{
	(void)state;
	left = gpu.fake_cuda_left();
	if (wf_pool_init(&pool, 64 * MIB) || wf_queue_open(0, &out, &e) || wf_queue_open(0, &in, &e))
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		void *chunk;

		if (wf_pool_take(&pool, MIB, &chunk) || wf_pool_pin(&pool, chunk, 0, &e))
			return -1;
		host[i] = chunk;
	}
	device = gpu_take(0, 2 * MIB);
	gpu.fake_cuda_delay(2);
	gpu.fake_cuda_log_clear();
	return 0;
}

/* Nothing is left behind, whatever the test did. */
static int end(void **state)
{
	(void)state;
	gpu.fake_cuda_hold(false);
	wf_queue_close(out);
	wf_queue_close(in);
	gpu_give(0, device);
	wf_pool_forget(&pool, NULL);
	wf_pool_fini(&pool);
	return gpu.fake_cuda_left() == left && !gpu.fake_cuda_depth() ? 0 : -1;
}

static void the_cpu_faults_where_it_touches_device_memory(void **state)
{
	int status;
	pid_t child;

	(void)state;
	for (unsigned write = 0; write < 2; write++) {
		child = fork();
		if (!child) {
			/* A sanitizer would report it, and exit. */
			signal(SIGSEGV, SIG_DFL);
			if (write)
				*(volatile unsigned char *)device = 1;
			_exit(*(volatile unsigned char *)device & 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSEGV);
	}
}

static void a_system_call_gets_efault_from_device_memory(void **state)
{
	int zero = open("/dev/zero", O_RDONLY), ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(read(zero, device, 100), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(write(ends[1], device, 100), -1);
	assert_int_equal(errno, EFAULT);
	close(zero);
	close(ends[0]);
	close(ends[1]);
}

static void a_copy_ends_after_as_many_questions_as_it_is_told(void **state)
{
	struct wf_queue_event *event;

	(void)state;
	gpu.fake_cuda_delay(5);
	gpu_pattern(host[0], MIB, 1);
	assert_int_equal(wf_queue_copy(out, WF_QUEUE_TO_DEVICE, device, host[0], MIB, &e), 0);
	assert_int_equal(wf_queue_record(out, &event, &e), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(wf_queue_poll(event, &e), -EAGAIN);
	assert_int_equal(wf_queue_poll(event, &e), 0);
	assert_int_equal(wf_queue_poll(event, &e), 0);
	wf_queue_give(event);
	assert_true(gpu_holds(0, device, MIB, 1));
}

static void a_reader_before_the_end_of_a_copy_sees_rubbish(void **state)
{
	struct wf_queue_event *event;

	(void)state;
	gpu_fill(0, device, MIB, 1);
	memset(host[0], 0, MIB);
	assert_int_equal(wf_queue_copy(in, WF_QUEUE_TO_HOST, host[0], device, MIB, &e), 0);
	assert_int_equal(wf_queue_record(in, &event, &e), 0);
	assert_int_equal(host[0][1], 0);
	assert_int_equal(wf_queue_poll(event, &e), -EAGAIN);
	assert_int_equal(host[0][1], RUBBISH);
	while (wf_queue_poll(event, &e))
		;
	assert_int_equal(host[0][1], 2);
	wf_queue_give(event);
}

static void a_chunk_that_is_reused_too_early_spoils_the_copy(void **state)
{
	struct wf_queue_event *event;

	(void)state;
	gpu_pattern(host[0], MIB, 1);
	assert_int_equal(wf_queue_copy(out, WF_QUEUE_TO_DEVICE, device, host[0], MIB, &e), 0);
	assert_int_equal(wf_queue_record(out, &event, &e), 0);
	assert_int_equal(wf_queue_poll(event, &e), -EAGAIN);
	gpu_pattern(host[0], MIB, 1 + 1);
	while (wf_queue_poll(event, &e))
		;
	wf_queue_give(event);
	assert_false(gpu_holds(0, device, MIB, 1));
	assert_false(gpu_holds(0, device, MIB, 2));
}

static void while_it_is_held_nothing_begins_or_ends(void **state)
{
	struct wf_queue_event *event;
	struct fake_cuda_entry entry;

	(void)state;
	gpu.fake_cuda_hold(true);
	assert_int_equal(wf_queue_copy(out, WF_QUEUE_TO_DEVICE, device, host[0], MIB, &e), 0);
	assert_int_equal(wf_queue_record(out, &event, &e), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(wf_queue_poll(event, &e), -EAGAIN);
	assert_int_equal(gpu.fake_cuda_log(&entry, 1), 0);
	gpu.fake_cuda_hold(false);
	while (wf_queue_poll(event, &e))
		;
	wf_queue_give(event);
	assert_int_equal(gpu.fake_cuda_log(&entry, 1), 2);
}

static void a_capture_forbids_what_is_not_relaxed_and_is_spoilt_by_it(void **state)
{
	CUstream stream = gpu_capture(CU_STREAM_NON_BLOCKING);
	CUgraph graph;
	int status;

	(void)state;
	assert_int_equal(wf_cuda_driver()->cuStreamIsCapturing((wf_cu_stream)stream, &status), 0);
	assert_int_equal(status, 1);
	assert_int_equal(gpu.cuStreamQuery(stream), CU_CAPTURE_UNSUPPORTED);
	assert_int_equal(gpu.cuStreamEndCapture(stream, &graph), CU_CAPTURE_INVALIDATED);
	assert_int_equal(gpu.cuStreamQuery(stream), 0);
	assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
}

static void the_log_shows_that_two_directions_overlap(void **state)
{
	struct wf_queue_event *events[2];
	struct fake_cuda_entry log[8];

	(void)state;
	assert_int_equal(wf_queue_copy(out, WF_QUEUE_TO_DEVICE, device, host[0], MIB, &e), 0);
	assert_int_equal(wf_queue_copy(in, WF_QUEUE_TO_HOST, host[1], device + MIB, MIB, &e), 0);
	assert_int_equal(wf_queue_record(out, &events[0], &e), 0);
	assert_int_equal(wf_queue_record(in, &events[1], &e), 0);
	gpu.fake_cuda_note(17);
	while (wf_queue_poll(events[0], &e) || wf_queue_poll(events[1], &e))
		;
	assert_int_equal(gpu.fake_cuda_log(log, WF_COUNT(log)), 5);
	assert_int_equal(log[0].what, FAKE_NOTE);
	assert_int_equal(log[0].note, 17);
	assert_int_equal(log[1].what, FAKE_TO_DEVICE);
	assert_int_equal(log[2].what, FAKE_TO_HOST);
	assert_false(log[1].ended || log[2].ended);
	assert_true(log[3].ended && log[4].ended);
	assert_int_equal(log[2].from, (uintptr_t)device + MIB);
	assert_int_equal(log[2].bytes, MIB);
	assert_int_not_equal(log[1].stream, log[2].stream);
	wf_queue_give(events[0]);
	wf_queue_give(events[1]);
}

static void copies_of_one_queue_follow_one_another(void **state)
{
	struct wf_queue_event *event;
	struct fake_cuda_entry log[8];

	(void)state;
	assert_int_equal(wf_queue_copy(out, WF_QUEUE_TO_DEVICE, device, host[0], MIB, &e), 0);
	assert_int_equal(wf_queue_copy(out, WF_QUEUE_TO_DEVICE, device + MIB, host[1], MIB, &e), 0);
	assert_int_equal(wf_queue_record(out, &event, &e), 0);
	while (wf_queue_poll(event, &e))
		;
	wf_queue_give(event);
	assert_int_equal(gpu.fake_cuda_log(log, WF_COUNT(log)), 4);
	assert_true(log[1].ended && log[3].ended);
	assert_int_equal(log[1].from, (uintptr_t)host[0]);
	assert_int_equal(log[2].from, (uintptr_t)host[1]);
}

static void memory_that_is_not_pinned_is_copied_before_the_call_returns(void **state)
{
	struct fake_cuda_entry log[2];
	unsigned char *paged = malloc(MIB);

	(void)state;
	gpu_pattern(paged, MIB, 8);
	assert_int_equal(wf_queue_copy(out, WF_QUEUE_TO_DEVICE, device, paged, MIB, &e), 0);
	assert_int_equal(gpu.fake_cuda_log(log, 2), 2);
	free(paged);
	assert_true(gpu_holds(0, device, MIB, 8));
}

static void a_copy_that_is_refused_says_what_and_why(void **state)
{
	struct wf_queue_event *event;

	(void)state;
	gpu.fake_cuda_fail("cuMemcpyDtoHAsync", 2, 700);
	assert_int_equal(wf_queue_copy(in, WF_QUEUE_TO_HOST, host[0], device, 100, &e), 0);
	assert_int_equal(wf_queue_copy(in, WF_QUEUE_TO_HOST, host[0], device, 100, &e), -EIO);
	assert_string_equal(e.text, "a copy of 100 bytes from CUDA device 0: "
				    "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	assert_int_equal(wf_queue_copy(in, WF_QUEUE_TO_HOST, host[0], device, 100, &e), 0);

	assert_int_equal(wf_queue_record(in, &event, &e), 0);
	gpu.fake_cuda_fail("cuEventQuery", 1, 700);
	assert_int_equal(wf_queue_poll(event, &e), -EIO);
	assert_string_equal(e.text,
			    "copies of CUDA device 0: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	wf_queue_give(event);
}

static void every_call_that_fails_leaves_the_thread_as_it_was(void **state)
{
	static const char *const calls[] = { "cuCtxPushCurrent", "cuStreamCreate" };
	struct wf_queue *queue = NULL;
	struct wf_cuda_memory m;
	struct wf_queue_mark mark;
	void *chunk;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(calls); i++) {
		gpu.fake_cuda_fail(calls[i], 1, 2);
		assert_int_equal(wf_queue_open(0, &queue, &e), -ENOMEM);
		assert_null(queue);
		assert_int_equal(gpu.fake_cuda_depth(), 0);
	}
	gpu.fake_cuda_fail("cuPointerGetAttributes", 1, 4);
	assert_int_equal(wf_cuda_find(device, &m, &e), -EIO);
	gpu.fake_cuda_fail("cuEventRecord", 1, 400);
	assert_int_equal(wf_queue_mark(0, NULL, &mark, &e), -EIO);
	gpu.fake_cuda_fail("cuMemHostRegister", 1, 2);
	assert_int_equal(wf_pool_take(&pool, 3 * MIB, &chunk), 0);
	assert_int_equal(wf_pool_pin(&pool, chunk, 0, &e), -ENOMEM);
	assert_string_equal(e.text,
			    "pinning 3145728 bytes of host memory: CUDA_ERROR_OUT_OF_MEMORY (2)");
	assert_int_equal(gpu.fake_cuda_depth(), 0);
}

static void a_copy_whose_end_nobody_would_know_is_waited_for(void **state)
{
	struct wf_kind_place place = { .kind = &wf_kind_cuda };
	struct wf_kinds kinds = { 0 };
	struct wf_kind_copy copy = { .kinds = &kinds, .place = &place, .body = device,
				     .chunk = host[0], .bytes = MIB, .pool = &pool };
	struct fake_cuda_entry log[4];

	(void)state;
	gpu.fake_cuda_fail("cuEventRecord", 1, 2);
	assert_int_equal(wf_kind_cuda.begin(&copy, &e), -ENOMEM);
	assert_null(copy.event);
	assert_int_equal(gpu.fake_cuda_log(log, 4), 2);
	assert_true(log[1].ended);
	wf_kinds_fini(&kinds);
}

static void a_process_that_exports_nothing_says_so(void **state)
{
	struct wf_cuda_export export;
	void *start;

	(void)state;
	/* Its own memory it can't open. */
	assert_int_equal(wf_cuda_export(device, &export, &e), 0);
	assert_int_equal(wf_cuda_import(0, &export.handle, &start, &e), -EIO);
	assert_non_null(strstr(e.text, "opening another process's memory on CUDA device 0"));
	gpu.fake_cuda_fail("cuIpcGetMemHandle", 1, 801);
	assert_int_equal(wf_cuda_export(device, &export, &e), -EOPNOTSUPP);
}

static void a_device_that_gives_no_dma_buf_says_so(void **state)
{
	uint64_t offset;
	int fd;

	(void)state;
	gpu.fake_cuda_fail("cuDeviceGetAttribute", 2, 801);
	assert_int_equal(wf_cuda_dma_buf(device, MIB, &fd, &offset, &e), -EOPNOTSUPP);
	assert_string_equal(e.text, "CUDA device 0 gives no dma-buf of its memory");
	assert_int_equal(wf_cuda_dma_buf(device, MIB, &fd, &offset, &e), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_cpu_faults_where_it_touches_device_memory),
		TEST(a_system_call_gets_efault_from_device_memory),
		TEST(a_copy_ends_after_as_many_questions_as_it_is_told),
		TEST(a_reader_before_the_end_of_a_copy_sees_rubbish),
		TEST(a_chunk_that_is_reused_too_early_spoils_the_copy),
		TEST(a_capture_forbids_what_is_not_relaxed_and_is_spoilt_by_it),
		TEST(while_it_is_held_nothing_begins_or_ends),
		TEST(the_log_shows_that_two_directions_overlap),
		TEST(copies_of_one_queue_follow_one_another),
		TEST(memory_that_is_not_pinned_is_copied_before_the_call_returns),
		TEST(a_copy_that_is_refused_says_what_and_why),
		TEST(every_call_that_fails_leaves_the_thread_as_it_was),
		TEST(a_copy_whose_end_nobody_would_know_is_waited_for),
		TEST(a_process_that_exports_nothing_says_so),
		TEST(a_device_that_gives_no_dma_buf_says_so),
	};
	int status;

	setenv("FAKE_CUDA", "dma-buf", 1);
	status = gpu_begin(false);
	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
