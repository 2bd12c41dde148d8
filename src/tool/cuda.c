/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the driver has for them; of its codes 0 is success. */
typedef uintptr_t address;
typedef void *context;

static struct {
	int (*init)(unsigned flags);
	int (*get)(int *device, int ordinal);
	int (*retain)(context *context, int device);
	int (*enter)(context context);
	int (*alloc)(address *at, size_t bytes);
	int (*release)(address at);
	int (*to_device)(address to, const void *from, size_t bytes);
	int (*to_host)(void *to, address from, size_t bytes);
	int (*settle)(void);
	int (*name)(int code, const char **name);
} cuda;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
	{ "cuInit", offsetof(__typeof__(cuda), init) },
	{ "cuDeviceGet", offsetof(__typeof__(cuda), get) },
	{ "cuDevicePrimaryCtxRetain", offsetof(__typeof__(cuda), retain) },
	{ "cuCtxSetCurrent", offsetof(__typeof__(cuda), enter) },
	{ "cuMemAlloc_v2", offsetof(__typeof__(cuda), alloc) },
	{ "cuMemFree_v2", offsetof(__typeof__(cuda), release) },
	{ "cuMemcpyHtoD_v2", offsetof(__typeof__(cuda), to_device) },
	{ "cuMemcpyDtoH_v2", offsetof(__typeof__(cuda), to_host) },
	{ "cuCtxSynchronize", offsetof(__typeof__(cuda), settle) },
	{ "cuGetErrorName", offsetof(__typeof__(cuda), name) },
};

static void *library;
static context contexts[CUDA_DEVICES_MAX]; /* NULL: not open; retained until the process ends */
static char why[512];

/* Find the functions in the file that weft loads, too. */
static const char *load(void)
{
	const char *set = getenv("WEFT_CUDA");

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
	code = cuda.init(0);
	if (!code)
		code = cuda.get(&device, (int)ordinal);
	if (!code)
		code = cuda.retain(&fresh, device);
	if (!code) {
		contexts[ordinal] = fresh;
		return NULL;
	}
	cuda.name(code, &name);
	snprintf(why, sizeof(why), "CUDA device %u can't be used: %s", ordinal,
		 name ? name : "unknown error");
	return why;
}

void *cuda_take(unsigned ordinal, size_t bytes)
{
	address at;

	if (cuda.enter(contexts[ordinal]) || cuda.alloc(&at, bytes))
		return NULL;
	return (void *)(uintptr_t)at;
}

void cuda_give(unsigned ordinal, void *memory)
{
	if (memory && !cuda.enter(contexts[ordinal]))
		cuda.release((uintptr_t)memory);
}

int cuda_put(unsigned ordinal, void *to, const void *from, size_t bytes)
{
	/* Of memory that is not pinned the driver may still be copying when it returns. */
	if (cuda.enter(contexts[ordinal]) || cuda.to_device((uintptr_t)to, from, bytes) ||
	    cuda.settle())
		return -EIO;
	return 0;
}

int cuda_get(unsigned ordinal, void *to, const void *from, size_t bytes)
{
	if (cuda.enter(contexts[ordinal]) || cuda.to_host(to, (uintptr_t)from, bytes))
		return -EIO;
	return 0;
}
