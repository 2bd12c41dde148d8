/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CUDA driver in software, as libcuda.so.1: what of its interface weft, libfabric
 * and the tests use, under the names that a library has them by.
 *
 * Its device memory is mapped without any right, so that the CPU faults and a system
 * call gets EFAULT; the driver itself writes by a second mapping of the same pages.
 * Copies take time, which passes as events and streams are asked for: a copy is begun
 * when a first question finds it at the head of its stream, and its bytes are read then;
 * what it copies to holds rubbish until some questions later it has ended.  So whoever
 * looks, or lets go, too early sees it, and always at the same place.  A program that
 * has asked to be called at the end (cuLaunchHostFunc) need not ask: then a thread does.
 *
 * FAKE_CUDA in the environment, words with commas between them, says what is wrong
 * with the driver before it starts:
 *   devices=N        how many there are, 2 unless said otherwise
 *   version=N        what cuDriverGetVersion says, 13000 unless said otherwise
 *   without=NAME     cuGetProcAddress does not know this function
 *   init=CODE        what cuInit says
 *   fail=NAME:N:CODE the Nth call of a function, from now on, says this
 *   delay=N          questions until a copy that has begun has ended, 2 unless said otherwise
 *   no-ipc           no allocation can be exported
 *   own-ipc          what is exported its own process may import, too
 *   dma-buf          devices give dma-bufs of whole allocations
 *
 * A graph that is captured stays empty, but while one is, calls that the real driver holds to
 * be unsafe fail in threads that have not relaxed their mode, and spoil it.
 *
 * A call in a forked child of a process that has started it aborts: weft makes none.
 */
#ifndef FAKE_CUDA_DRIVER_H
#define FAKE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

enum {
	CU_OK = 0,
	CU_INVALID_VALUE = 1,
	CU_OUT_OF_MEMORY = 2,
	CU_NOT_INITIALIZED = 3,
	CU_NO_DEVICE = 100,
	CU_INVALID_DEVICE = 101,
	CU_INVALID_CONTEXT = 201,
	CU_INVALID_HANDLE = 400,
	CU_NOT_FOUND = 500,
	CU_NOT_READY = 600,
	CU_ILLEGAL_ADDRESS = 700,
	CU_ALREADY_REGISTERED = 712,
	CU_NOT_REGISTERED = 713,
	CU_NOT_SUPPORTED = 801,
	CU_CAPTURE_UNSUPPORTED = 900,
	CU_CAPTURE_INVALIDATED = 901,
	CU_CAPTURE_IMPLICIT = 906,
};

/* Flags of a stream. */
enum {
	CU_STREAM_DEFAULT = 0, /* what is put on the default stream waits for it, and it for that */
	CU_STREAM_NON_BLOCKING = 1,
};

typedef uintptr_t CUdeviceptr;
typedef struct fake_context *CUcontext;
typedef struct fake_stream *CUstream;
typedef struct fake_event *CUevent;
typedef struct fake_graph *CUgraph;
typedef struct {
	char bytes[64];
} CUipcMemHandle;

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
			int *status);
int cuGetErrorName(int code, const char **name);
int cuGetErrorString(int code, const char **text);

int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetPCIBusId(char *text, int bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);

int cuCtxCreate_v2(CUcontext *context, unsigned flags, int device);
int cuCtxDestroy_v2(CUcontext context);
int cuCtxPushCurrent_v2(CUcontext context);
int cuCtxPopCurrent_v2(CUcontext *context);
int cuCtxSetCurrent(CUcontext context);
int cuCtxGetCurrent(CUcontext *context);
int cuCtxGetDevice(int *device);
int cuCtxSynchronize(void);

int cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
int cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags);
int cuMemFree_v2(CUdeviceptr at);
int cuMemHostAlloc(void **at, size_t bytes, unsigned flags);
int cuMemFreeHost(void *at);
int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *at);
int cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr at);
int cuPointerGetAttribute(void *value, int attribute, CUdeviceptr at);
int cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr at);
int cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr at);
int cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at, size_t bytes, int type,
				  unsigned long long flags);
int cuFlushGPUDirectRDMAWrites(int target, int scope);

int cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at);
int cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags);
int cuIpcCloseMemHandle(CUdeviceptr at);

int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamDestroy_v2(CUstream stream);
int cuStreamQuery(CUstream stream);
int cuStreamSynchronize(CUstream stream);
int cuStreamGetCtx(CUstream stream, CUcontext *context);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuStreamIsCapturing(CUstream stream, int *status);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuGraphDestroy(CUgraph graph);
int cuEventCreate(CUevent *event, unsigned flags);
int cuEventDestroy_v2(CUevent event);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventQuery(CUevent event);
int cuEventSynchronize(CUevent event);
int cuLaunchHostFunc(CUstream stream, void (*run)(void *arg), void *arg);

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
int cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream);

#endif
