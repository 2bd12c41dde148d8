/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A GPU for a test: the software driver's, or a real one, by the library that weft has
 * loaded.  Functions that weft itself does not call are here under the driver's own names.
 */
#ifndef TESTS_CUDA_GPU_H
#define TESTS_CUDA_GPU_H

#include "tests/cuda/fake/control.h"
#include "tests/cuda/fake/driver.h"

#include <weft/tensor.h>

struct gpu {
	int (*cuCtxCreate_v2)(CUcontext *context, unsigned flags, int device);
	int (*cuCtxDestroy_v2)(CUcontext context);
	int (*cuCtxGetCurrent)(CUcontext *context);
	int (*cuCtxSetCurrent)(CUcontext context);
	int (*cuCtxSynchronize)(void);
	int (*cuMemAlloc_v2)(CUdeviceptr *at, size_t bytes);
	int (*cuMemAllocManaged)(CUdeviceptr *at, size_t bytes, unsigned flags);
	int (*cuMemFree_v2)(CUdeviceptr at);
	int (*cuMemHostAlloc)(void **at, size_t bytes, unsigned flags);
	int (*cuMemFreeHost)(void *at);
	int (*cuMemcpyHtoD_v2)(CUdeviceptr to, const void *from, size_t bytes);
	int (*cuMemcpyDtoH_v2)(void *to, CUdeviceptr from, size_t bytes);
	int (*cuMemsetD8Async)(CUdeviceptr at, unsigned char value, size_t bytes,
			       CUstream stream);
	int (*cuStreamCreate)(CUstream *stream, unsigned flags);
	int (*cuStreamDestroy_v2)(CUstream stream);
	int (*cuStreamQuery)(CUstream stream);
	int (*cuStreamSynchronize)(CUstream stream);
	int (*cuStreamBeginCapture_v2)(CUstream stream, int mode);
	int (*cuStreamEndCapture)(CUstream stream, CUgraph *graph);
	int (*cuGraphDestroy)(CUgraph graph);
	int (*cuLaunchHostFunc)(CUstream stream, void (*run)(void *arg), void *arg);

	/* Functions of the software driver alone; NULL with a real one. */
	void (*fake_cuda_fail)(const char *name, unsigned nth, int code);
	void (*fake_cuda_delay)(unsigned questions);
	void (*fake_cuda_hold)(bool hold);
	size_t (*fake_cuda_log)(struct fake_cuda_entry *entries, size_t most);
	void (*fake_cuda_log_clear)(void);
	void (*fake_cuda_note)(uint64_t note);
	unsigned (*fake_cuda_calls)(const char *name);
	unsigned (*fake_cuda_left)(void);
	unsigned (*fake_cuda_depth)(void);
};

extern struct gpu gpu;

/* The software driver's file, in the build folder of the tests.  Threads: one at a time. */
const char *gpu_fake_file(void);

/*
 * Have weft load the driver, the real one or the software's, and find its functions.
 * NULL: the driver is ready; else why not.
 */
const char *gpu_open(bool real);

/*
 * Open the GPU for main, and have nodes load the same driver.  0, or the status to end with, after
 * the reason was printed.
 */
int gpu_begin(bool real);

/*
 * Begin a capture of a graph, in this thread and in the mode that forbids most, which is also
 * the default, on a new stream of @flags.
 */
CUstream gpu_capture(unsigned flags);
/* End a capture, which nothing may have spoilt. */
void gpu_capture_over(CUstream stream);

/*
 * Allocate memory of device @ordinal, in its primary context, or with GPU_HOST of the host.
 * The functions that follow take GPU_HOST, too.  Any failure fails the test.
 */
#define GPU_HOST (-1)
void *gpu_take(int ordinal, size_t bytes);
void gpu_give(int ordinal, void *at);

/* A tensor of one row of bytes at @at. */
struct weft_tensor gpu_tensor(int ordinal, void *at, int64_t *bytes);

/* Write bytes that differ with @seed and with their place. */
void gpu_pattern(void *at, size_t bytes, unsigned seed);

/* Copy from and to host memory; the copies are over at return. */
void gpu_put(int ordinal, void *at, const void *from, size_t bytes);
void gpu_get(int ordinal, const void *at, void *to, size_t bytes);
void gpu_fill(int ordinal, void *at, size_t bytes, unsigned seed);
bool gpu_holds(int ordinal, const void *at, size_t bytes, unsigned seed);

#endif
