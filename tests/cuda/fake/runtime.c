/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/cuda/fake/runtime.h"

#include <string.h>

#include "tests/cuda/fake/internal.h"

static _Thread_local int device;

/* The runtime starts the driver by itself, and works in primary contexts. */
static int enter(void)
{
	CUcontext context;
	int code = cuInit(0);

	if (!code)
		code = cuDevicePrimaryCtxRetain(&context, device);
	return code ? code : cuCtxSetCurrent(context);
}

int cudaRuntimeGetVersion(int *version)
{
	*version = fake_settings.version;
	return CU_OK;
}

int cudaDriverGetVersion(int *version)
{
	return cuDriverGetVersion(version);
}

int cudaGetDeviceCount(int *count)
{
	*count = fake_settings.devices;
	return *count ? CU_OK : CU_NO_DEVICE;
}

int cudaGetDevice(int *current)
{
	*current = device;
	return CU_OK;
}

int cudaSetDevice(int next)
{
	if (next < 0 || next >= fake_settings.devices)
		return CU_INVALID_DEVICE;
	device = next;
	return enter();
}

int cudaDeviceSynchronize(void)
{
	int code = enter();

	return code ? code : cuCtxSynchronize();
}

const char *cudaGetErrorName(int code)
{
	const char *name;

	return cuGetErrorName(code, &name) ? "cudaErrorUnknown" : name;
}

const char *cudaGetErrorString(int code)
{
	return cudaGetErrorName(code);
}

int cudaMalloc(void **at, size_t bytes)
{
	CUdeviceptr fresh = 0;
	int code = enter();

	if (!code)
		code = cuMemAlloc_v2(&fresh, bytes);
	if (!code)
		*at = (void *)fresh;
	return code;
}

int cudaFree(void *at)
{
	int code = enter();

	return code || !at ? code : cuMemFree_v2((CUdeviceptr)at);
}

/* The kind is not needed where each address is of one place. */
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	const struct fake_memory *t, *f;
	int code = enter();

	(void)kind;
	if (code)
		return code;
	code = fake_begin("cudaMemcpy");
	t = fake_find((uintptr_t)to, bytes);
	f = fake_find((uintptr_t)from, bytes);
	if (!code) {
		fake_drain(fake_stream_of(NULL));
		memmove(t ? fake_reach((uintptr_t)to, bytes) : to,
			f ? fake_reach((uintptr_t)from, bytes) : from, bytes);
	}
	return fake_end(code);
}

int cudaMallocHost(void **at, size_t bytes)
{
	int code = enter();

	return code ? code : cuMemHostAlloc(at, bytes, 0);
}

int cudaFreeHost(void *at)
{
	int code = enter();

	return code || !at ? code : cuMemFreeHost(at);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, CUstream stream)
{
	int code = enter();

	if (code)
		return code;
	switch (kind) {
	case 1:
		return cuMemcpyHtoDAsync_v2((CUdeviceptr)to, from, bytes, stream);
	case 2:
		return cuMemcpyDtoHAsync_v2(to, (CUdeviceptr)from, bytes, stream);
	case 3:
		return cuMemcpyDtoDAsync_v2((CUdeviceptr)to, (CUdeviceptr)from, bytes, stream);
	default:
		return CU_NOT_SUPPORTED;
	}
}

int cudaMemsetAsync(void *at, int value, size_t bytes, CUstream stream)
{
	int code = enter();

	return code ? code : cuMemsetD8Async((CUdeviceptr)at, (unsigned char)value, bytes, stream);
}

int cudaStreamCreate(CUstream *stream)
{
	int code = enter();

	return code ? code : cuStreamCreate(stream, 0);
}

int cudaStreamDestroy(CUstream stream)
{
	int code = enter();

	return code ? code : cuStreamDestroy_v2(stream);
}

int cudaStreamSynchronize(CUstream stream)
{
	int code = enter();

	return code ? code : cuStreamSynchronize(stream);
}

int cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
	int code = enter();

	return code ? code : cuMemHostRegister_v2(at, bytes, flags);
}

int cudaHostUnregister(void *at)
{
	int code = enter();

	return code ? code : cuMemHostUnregister(at);
}

int cudaIpcGetMemHandle(CUipcMemHandle *handle, void *at)
{
	int code = enter();

	return code ? code : cuIpcGetMemHandle(handle, (CUdeviceptr)at);
}

int cudaIpcOpenMemHandle(void **at, CUipcMemHandle handle, unsigned flags)
{
	CUdeviceptr start = 0;
	int code = enter();

	if (!code)
		code = cuIpcOpenMemHandle_v2(&start, handle, flags);
	if (!code)
		*at = (void *)start;
	return code;
}

int cudaIpcCloseMemHandle(void *at)
{
	int code = enter();

	return code ? code : cuIpcCloseMemHandle((CUdeviceptr)at);
}
