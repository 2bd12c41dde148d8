/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver's CUdeviceptr and CUcontext; code 0 of its functions is success. */
typedef uintptr_t address;
typedef void *context;

static struct driver {
	int (*cuInit)(unsigned flags);
	int (*cuDeviceGet)(int *device, int ordinal);
	int (*cuDevicePrimaryCtxRetain)(context *context, int device);
	int (*cuCtxSetCurrent)(context context);
	int (*cuCtxSynchronize)(void);
	int (*cuMemAlloc_v2)(address *at, size_t bytes);
	int (*cuMemFree_v2)(address at);
	int (*cuMemcpyHtoD_v2)(address to, const void *from, size_t bytes);
	int (*cuMemcpyDtoH_v2)(void *to, address from, size_t bytes);
	int (*cuGetErrorName)(int code, const char **name);
} cuda;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define FUNCTION(name) { #name, offsetof(struct driver, name) }
	FUNCTION(cuInit),
	FUNCTION(cuDeviceGet),
	FUNCTION(cuDevicePrimaryCtxRetain),
	FUNCTION(cuCtxSetCurrent),
	FUNCTION(cuCtxSynchronize),
	FUNCTION(cuMemAlloc_v2),
	FUNCTION(cuMemFree_v2),
	FUNCTION(cuMemcpyHtoD_v2),
	FUNCTION(cuMemcpyDtoH_v2),
	FUNCTION(cuGetErrorName),
#undef FUNCTION
};

static void *library;
static context contexts[CUDA_DEVICES_MAX]; /* NULL: not open; held until the process ends */
static char why[512];

/* Find the functions in the file of the driver that weft loads, too. */
static const char *load(void)
{
	const char *set = secure_getenv("WEFT_CUDA");

	if (library)
		return NULL;
	if (set && !strcmp(set, "no"))
		return "CUDA is not looked for: WEFT_CUDA=no";
	library = dlopen(set && strchr(set, '/') ? set : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function) {
			snprintf(why, sizeof(why), "%s", dlerror());
			dlclose(library);
			library = NULL;
			return why;
		}
		memcpy((char *)&cuda + functions[i].offset, &function, sizeof(function));
	}
	return NULL;
}

const char *cuda_open(unsigned ordinal)
{
	const char *said = load(), *name = NULL;
	context fresh;
	int device, code;

	if (said || contexts[ordinal])
		return said;
	code = cuda.cuInit(0);
	if (!code)
		code = cuda.cuDeviceGet(&device, (int)ordinal);
	if (!code)
		code = cuda.cuDevicePrimaryCtxRetain(&fresh, device);
	if (!code) {
		contexts[ordinal] = fresh;
		return NULL;
	}
	cuda.cuGetErrorName(code, &name);
	snprintf(why, sizeof(why), "CUDA device %u can't be used: %s", ordinal,
		 name ? name : "unknown error");
	return why;
}

/* Make the device's context current, for the calls that follow. */
static bool enter(unsigned ordinal)
{
	return !cuda.cuCtxSetCurrent(contexts[ordinal]);
}

void *cuda_take(unsigned ordinal, size_t bytes)
{
	address at;

	if (!enter(ordinal) || cuda.cuMemAlloc_v2(&at, bytes))
		return NULL;
	return (void *)(uintptr_t)at;
}

void cuda_give(unsigned ordinal, void *memory)
{
	if (memory && enter(ordinal))
		cuda.cuMemFree_v2((uintptr_t)memory);
}

int cuda_put(unsigned ordinal, void *to, const void *from, size_t bytes)
{
	/* The driver may still be copying from memory that is not pinned when the call returns. */
	bool put = enter(ordinal) && !cuda.cuMemcpyHtoD_v2((uintptr_t)to, from, bytes) &&
		   !cuda.cuCtxSynchronize();

	return put ? 0 : -EIO;
}

int cuda_get(unsigned ordinal, void *to, const void *from, size_t bytes)
{
	bool got = enter(ordinal) && !cuda.cuMemcpyDtoH_v2(to, (uintptr_t)from, bytes);

	return got ? 0 : -EIO;
}
