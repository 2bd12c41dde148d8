/* SPDX-License-Identifier: BSD-2-Clause */
/* The software driver's start, its devices and their contexts. */
#include "tests/cuda/fake/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_MAX 16

static CUcontext primary[FAKE_DEVICES_MAX];
static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local unsigned depth;

static const struct {
	int code;
	const char *name;
} names[] = {
	{ CU_OK, "CUDA_SUCCESS" },
	{ CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
	{ CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
	{ CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED" },
	{ 34, "CUDA_ERROR_STUB_LIBRARY" },
	{ CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE" },
	{ CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE" },
	{ CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
	{ CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
	{ CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND" },
	{ CU_NOT_READY, "CUDA_ERROR_NOT_READY" },
	{ CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
	{ CU_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" },
	{ CU_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED" },
	{ CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED" },
	{ CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" },
	{ CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" },
	{ CU_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" },
};

int cuInit(unsigned flags)
{
	int code = fake_begin("cuInit");

	(void)flags;
	if (code == CU_NOT_INITIALIZED)
		code = fake_settings.init_code;
	if (!code && !fake_settings.devices)
		code = CU_NO_DEVICE;
	if (!code)
		fake_start();
	return fake_end(code);
}

int cuDriverGetVersion(int *version)
{
	int code = fake_begin("cuDriverGetVersion");

	*version = fake_settings.version;
	return fake_end(code == CU_NOT_INITIALIZED ? CU_OK : code);
}

int cuGetErrorName(int code, const char **name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].code == code) {
			*name = names[i].name;
			return CU_OK;
		}
	}
	*name = NULL;
	return CU_INVALID_VALUE;
}

int cuGetErrorString(int code, const char **text)
{
	return cuGetErrorName(code, text);
}

int cuDeviceGetCount(int *count)
{
	int code = fake_begin("cuDeviceGetCount");

	*count = fake_settings.devices;
	return fake_end(code);
}

/* A handle of a device is its number. */
static int check(int code, int device)
{
	if (code)
		return code;
	return device >= 0 && device < fake_settings.devices ? CU_OK : CU_INVALID_DEVICE;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return fake_end(check(fake_begin("cuDeviceGet"), ordinal));
}

int cuDeviceGetName(char *name, int bytes, int device)
{
	snprintf(name, (size_t)bytes, "Software GPU %d", device);
	return fake_end(check(fake_begin("cuDeviceGetName"), device));
}

size_t fake_device_bytes(int device)
{
	return (size_t)(16 + device) << 30;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = fake_device_bytes(device);
	return fake_end(check(fake_begin("cuDeviceTotalMem"), device));
}

/* Two devices on two sockets: 0000:3B:00.0 and 0000:AF:00.0. */
int cuDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:%02X:00.0", 0x3b + 0x74 * device);
	return fake_end(check(fake_begin("cuDeviceGetPCIBusId"), device));
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	int code = check(fake_begin("cuDeviceGetAttribute"), device);

	switch (attribute) {
	case 134: /* the host's NUMA node */
		*value = device;
		break;
	case 117: /* how to flush what cards write: by a call of the host's */
		*value = 1;
		break;
	case 124: /* dma-buf */
		*value = fake_settings.dma_buf;
		break;
	case 33: /* PCI bus */
		*value = 0x3b + 0x74 * device;
		break;
	default:
		*value = 0;
	}
	return fake_end(code);
}

CUcontext fake_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static int new_context(CUcontext *context, int device, bool is_primary)
{
	CUcontext fresh = calloc(1, sizeof(*fresh));

	fresh->device = device;
	fresh->primary = is_primary;
	fresh->stream = fake_new_stream(fresh);
	*context = fresh;
	return CU_OK;
}

int cuDevicePrimaryCtxRetain(CUcontext *context, int device)
{
	int code = check(fake_begin("cuDevicePrimaryCtxRetain"), device);

	if (!code && !primary[device])
		code = new_context(&primary[device], device, true);
	if (!code)
		*context = primary[device];
	return fake_end(code);
}

static int push(CUcontext context)
{
	if (depth == STACK_MAX)
		return CU_OUT_OF_MEMORY;
	stack[depth++] = context;
	return CU_OK;
}

int cuCtxCreate_v2(CUcontext *context, unsigned flags, int device)
{
	int code = check(fake_begin("cuCtxCreate"), device);

	(void)flags;
	if (!code)
		code = new_context(context, device, false);
	if (!code)
		code = push(*context);
	return fake_end(code);
}

int cuCtxDestroy_v2(CUcontext context)
{
	int code = fake_begin("cuCtxDestroy");

	/* Its memory stays known, as long as the program asks for what is there. */
	if (!code && fake_current() == context)
		depth--;
	return fake_end(code);
}

int cuCtxPushCurrent_v2(CUcontext context)
{
	int code = fake_begin("cuCtxPushCurrent");

	return fake_end(code ? code : push(context));
}

int cuCtxPopCurrent_v2(CUcontext *context)
{
	int code = fake_begin("cuCtxPopCurrent");

	if (!code && !depth)
		code = CU_INVALID_CONTEXT;
	if (!code)
		*context = stack[--depth];
	return fake_end(code);
}

int cuCtxSetCurrent(CUcontext context)
{
	int code = fake_begin("cuCtxSetCurrent");

	if (!code && depth)
		depth--;
	if (!code && context)
		code = push(context);
	return fake_end(code);
}

int cuCtxGetCurrent(CUcontext *context)
{
	int code = fake_begin("cuCtxGetCurrent");

	*context = fake_current();
	return fake_end(code);
}

int cuCtxGetDevice(int *device)
{
	int code = fake_begin("cuCtxGetDevice");

	if (!code && !fake_current())
		code = CU_INVALID_CONTEXT;
	if (!code)
		*device = fake_current()->device;
	return fake_end(code);
}

unsigned fake_cuda_depth(void)
{
	return depth;
}
