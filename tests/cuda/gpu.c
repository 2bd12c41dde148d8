/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/cuda/gpu.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory/cuda.h"

#define PERIOD 251 /* a prime: no power of two repeats it */

struct gpu gpu;

static const struct {
	const char *name;
	size_t offset;
	bool fake; /* only the software driver has it */
} calls[] = {
#define CALL(function, of_fake) { #function, offsetof(struct gpu, function), of_fake }
	CALL(cuCtxCreate_v2, false),
	CALL(cuCtxDestroy_v2, false),
	CALL(cuCtxGetCurrent, false),
	CALL(cuCtxSetCurrent, false),
	CALL(cuCtxSynchronize, false),
	CALL(cuMemAlloc_v2, false),
	CALL(cuMemAllocManaged, false),
	CALL(cuMemFree_v2, false),
	CALL(cuMemHostAlloc, false),
	CALL(cuMemFreeHost, false),
	CALL(cuMemcpyHtoD_v2, false),
	CALL(cuMemcpyDtoH_v2, false),
	CALL(cuMemsetD8Async, false),
	CALL(cuStreamCreate, false),
	CALL(cuStreamDestroy_v2, false),
	CALL(cuStreamQuery, false),
	CALL(cuStreamSynchronize, false),
	CALL(cuStreamBeginCapture_v2, false),
	CALL(cuStreamEndCapture, false),
	CALL(cuGraphDestroy, false),
	CALL(cuLaunchHostFunc, false),
	CALL(fake_cuda_fail, true),
	CALL(fake_cuda_delay, true),
	CALL(fake_cuda_hold, true),
	CALL(fake_cuda_log, true),
	CALL(fake_cuda_log_clear, true),
	CALL(fake_cuda_note, true),
	CALL(fake_cuda_calls, true),
	CALL(fake_cuda_left, true),
	CALL(fake_cuda_depth, true),
#undef CALL
};

const char *gpu_fake_file(void)
{
	static char file[512];
	const char *build = getenv("top_builddir");

	snprintf(file, sizeof(file), "%s/tests/cuda/fake/.libs/libcuda.so.1",
		 build ? build : ".");
	return file;
}

const char *gpu_open(bool real)
{
	static struct wf_error e;
	void *library;

	if (wf_cuda_driver_load(real ? "" : gpu_fake_file(), &e) != WF_CUDA_READY)
		return e.text;
	library = dlopen(wf_cuda_driver_file(), RTLD_NOW);
	for (size_t i = 0; i < WF_COUNT(calls); i++) {
		void *function = dlsym(library, calls[i].name);

		if (!function && !(real && calls[i].fake))
			return calls[i].name;
		memcpy((char *)&gpu + calls[i].offset, &function, sizeof(function));
	}
	return NULL;
}

int gpu_begin(bool real)
{
	const char *why = gpu_open(real);

	if (!why)
		return real ? 0 : setenv("WEFT_CUDA", gpu_fake_file(), 1);
	printf("%s%s\n", real ? "skip: " : "", why);
	return real ? 77 : 99;
}

CUstream gpu_capture(unsigned flags)
{
	CUstream stream;

	assert_int_equal(wf_cuda_enter(0, NULL), 0);
	assert_int_equal(gpu.cuStreamCreate(&stream, flags), 0);
	wf_cuda_leave();
	assert_int_equal(gpu.cuStreamBeginCapture_v2(stream, 0), 0);
	return stream;
}

void gpu_capture_over(CUstream stream)
{
	CUgraph graph;

	assert_int_equal(gpu.cuStreamEndCapture(stream, &graph), 0);
	assert_int_equal(gpu.cuGraphDestroy(graph), 0);
	assert_int_equal(gpu.cuStreamDestroy_v2(stream), 0);
}

void *gpu_take(int ordinal, size_t bytes)
{
	CUdeviceptr at = 0;
	void *host;

	if (ordinal == GPU_HOST) {
		host = malloc(bytes);
		assert_non_null(host);
		return host;
	}
	assert_int_equal(wf_cuda_enter(ordinal, NULL), 0);
	assert_int_equal(gpu.cuMemAlloc_v2(&at, bytes), 0);
	wf_cuda_leave();
	return (void *)at;
}

void gpu_give(int ordinal, void *at)
{
	if (ordinal == GPU_HOST) {
		free(at);
		return;
	}
	assert_int_equal(wf_cuda_enter(ordinal, NULL), 0);
	assert_int_equal(gpu.cuMemFree_v2((CUdeviceptr)at), 0);
	wf_cuda_leave();
}

struct weft_tensor gpu_tensor(int ordinal, void *at, int64_t *bytes)
{
	struct weft_tensor t = { .data = at, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = bytes };

	if (ordinal != GPU_HOST)
		t.device = (struct weft_device){ WEFT_CUDA, ordinal };
	return t;
}

void gpu_pattern(void *at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)at)[i] = (unsigned char)(i % PERIOD + seed);
}

void gpu_put(int ordinal, void *at, const void *from, size_t bytes)
{
	if (ordinal == GPU_HOST) {
		memcpy(at, from, bytes);
		return;
	}
	assert_int_equal(wf_cuda_enter(ordinal, NULL), 0);
	assert_int_equal(gpu.cuMemcpyHtoD_v2((CUdeviceptr)at, from, bytes), 0);
	/* A short copy from memory that is not pinned may return before it has ended. */
	assert_int_equal(gpu.cuCtxSynchronize(), 0);
	wf_cuda_leave();
}

void gpu_get(int ordinal, const void *at, void *to, size_t bytes)
{
	if (ordinal == GPU_HOST) {
		memcpy(to, at, bytes);
		return;
	}
	assert_int_equal(wf_cuda_enter(ordinal, NULL), 0);
	assert_int_equal(gpu.cuMemcpyDtoH_v2(to, (CUdeviceptr)at, bytes), 0);
	wf_cuda_leave();
}

void gpu_fill(int ordinal, void *at, size_t bytes, unsigned seed)
{
	void *copy = malloc(bytes);

	gpu_pattern(copy, bytes, seed);
	gpu_put(ordinal, at, copy, bytes);
	free(copy);
}

bool gpu_holds(int ordinal, const void *at, size_t bytes, unsigned seed)
{
	unsigned char *copy = malloc(bytes);
	bool same = true;

	gpu_get(ordinal, at, copy, bytes);
	for (size_t i = 0; i < bytes; i++)
		same = same && copy[i] == (unsigned char)(i % PERIOD + seed);
	free(copy);
	return same;
}
