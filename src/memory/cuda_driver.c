/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/environment.h"
#include "util/fork.h"
#include "util/options.h"

/* The driver's name on every system: it comes with the kernel module, not with a toolkit. */
#define DRIVER_FILE "libcuda.so.1"

/*
 * Functions that weft calls, and the version of CUDA in which each got the form it has here.
 * The latest version of those needed is the oldest driver that will do: 11.0, of 2020.
 */
static const struct entry {
	const char *name;
	int version;
	size_t offset;
	bool needed;
} entries[] = {
#define ENTRY(function, since, must) \
	{ #function, since, offsetof(struct wf_cuda_driver, function), must }
	ENTRY(cuInit, 2000, true),
	ENTRY(cuDriverGetVersion, 2020, true),
	ENTRY(cuGetErrorName, 6000, true),
	ENTRY(cuDeviceGetCount, 2000, true),
	ENTRY(cuDeviceGet, 2000, true),
	ENTRY(cuDeviceGetName, 2000, true),
	ENTRY(cuDeviceTotalMem, 3020, true),
	ENTRY(cuDeviceGetPCIBusId, 4010, true),
	ENTRY(cuDeviceGetAttribute, 2000, true),
	ENTRY(cuDevicePrimaryCtxRetain, 7000, true),
	ENTRY(cuCtxPushCurrent, 4000, true),
	ENTRY(cuCtxPopCurrent, 4000, true),
	ENTRY(cuCtxGetCurrent, 4000, true),
	ENTRY(cuPointerGetAttributes, 7000, true),
	ENTRY(cuPointerSetAttribute, 6000, true),
	ENTRY(cuStreamCreate, 2000, true),
	ENTRY(cuStreamDestroy, 4000, true),
	ENTRY(cuStreamSynchronize, 2000, true),
	ENTRY(cuStreamGetCtx, 9020, true),
	ENTRY(cuStreamIsCapturing, 10000, true),
	ENTRY(cuThreadExchangeStreamCaptureMode, 10010, true),
	ENTRY(cuEventCreate, 2000, true),
	ENTRY(cuEventDestroy, 4000, true),
	ENTRY(cuEventRecord, 2000, true),
	ENTRY(cuEventQuery, 2000, true),
	ENTRY(cuMemAlloc, 3020, true),
	ENTRY(cuMemFree, 3020, true),
	ENTRY(cuMemcpyHtoDAsync, 3020, true),
	ENTRY(cuMemcpyDtoHAsync, 3020, true),
	ENTRY(cuMemcpyDtoDAsync, 3020, true),
	ENTRY(cuMemHostRegister, 6050, true),
	ENTRY(cuMemHostUnregister, 4000, true),
	ENTRY(cuIpcGetMemHandle, 4010, true),
	ENTRY(cuIpcOpenMemHandle, 11000, true),
	ENTRY(cuIpcCloseMemHandle, 4010, true),
	ENTRY(cuMemGetHandleForAddressRange, 11070, false),
	ENTRY(cuFlushGPUDirectRDMAWrites, 11030, false),
#undef ENTRY
};

static const char *const words[] = {
	[WF_CUDA_READY] = "ready",
	[WF_CUDA_OFF] = "off",
	[WF_CUDA_NO_DRIVER] = "no driver",
	[WF_CUDA_TOO_OLD] = "too old",
	[WF_CUDA_INCOMPLETE] = "incomplete",
	[WF_CUDA_FAILED] = "failed",
	[WF_CUDA_NO_DEVICE] = "no device",
	[WF_CUDA_FORKED] = "forked",
};

/* The errno for a code of the driver; all other codes are -EIO. */
static const struct {
	int code, err;
} errnos[] = {
	{ WF_CU_INVALID_VALUE, -EINVAL },
	{ WF_CU_OUT_OF_MEMORY, -ENOMEM },
	{ WF_CU_NO_DEVICE, -ENODEV },
	{ WF_CU_NOT_READY, -EAGAIN },
	{ WF_CU_ALREADY_REGISTERED, -EEXIST },
	{ WF_CU_NOT_SUPPORTED, -EOPNOTSUPP },
};

enum stage { UNTRIED, LOADING, TRIED };

/*
 * The driver of the process.  The thread that loads writes it under the lock, before @stage
 * says so; nothing changes after that.
 */
static struct {
	_Atomic int stage;
	_Atomic bool forked; /* a parent had begun to load the driver */
	pthread_mutex_t lock;
	enum wf_cuda_driver_state state;
	struct wf_error said;
	char file[256];
	void *library;
	int version, device_count;
	struct wf_cuda_driver driver;
} cuda = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef int (*find_function)(const char *name, void **function, int version, uint64_t flags,
			     int *status);

static void in_child(void)
{
	/* A load by another thread of the parent will not be finished here: its lock stays held. */
	pthread_mutex_init(&cuda.lock, NULL);
	if (cuda.stage != UNTRIED)
		cuda.forked = true;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static enum wf_cuda_driver_state say(enum wf_cuda_driver_state state, const char *format, ...)
	WF_PRINTF(2, 3);

static enum wf_cuda_driver_state say(enum wf_cuda_driver_state state, const char *format, ...)
{
	va_list args;

	cuda.said.code = state == WF_CUDA_READY ? 0 : -ENODEV;
	va_start(args, format);
	(void)vsnprintf(cuda.said.text, sizeof(cuda.said.text), format, args);
	va_end(args);
	return state;
}

/*
 * Find the function of @entry.  cuGetProcAddress decides; a driver that is too old to have it
 * gives the newest form of a name under "_v2", if there is more than one.
 */
static void *find(const struct entry *entry, find_function ask)
{
	void *function = NULL;
	char name[64];
	int status;

	if (ask)
		return ask(entry->name, &function, entry->version, 0, &status) ? NULL : function;
	(void)snprintf(name, sizeof(name), "%s_v2", entry->name);
	function = dlsym(cuda.library, name);
	return function ? function : dlsym(cuda.library, entry->name);
}

/* Fill the table.  Returns the name of a function that is needed and missing, or NULL. */
static const char *find_all(void)
{
	void *ask = dlsym(cuda.library, "cuGetProcAddress_v2");
	const char *missing = NULL;
	find_function typed;

	memcpy(&typed, &ask, sizeof(typed));
	for (size_t i = 0; i < WF_COUNT(entries); i++) {
		void *function = find(&entries[i], typed);

		memcpy((char *)&cuda.driver + entries[i].offset, &function, sizeof(function));
		if (!function && entries[i].needed && !missing)
			missing = entries[i].name;
	}
	return missing;
}

static int version_needed(void)
{
	int version = 0;

	for (size_t i = 0; i < WF_COUNT(entries); i++)
		if (entries[i].needed)
			version = WF_MAX(version, entries[i].version);
	return version;
}

/* The driver's name for @code; a driver that lacks the function has none. */
static const char *name_of(int code)
{
	const char *name = NULL;

	if (cuda.driver.cuGetErrorName && !cuda.driver.cuGetErrorName(code, &name) && name)
		return name;
	return "no name";
}

/* Count the devices; @code is cuInit's, which says already if there is none. */
static enum wf_cuda_driver_state find_devices(int code)
{
	const char *visible = wf_environment_get("CUDA_VISIBLE_DEVICES");

	if (!code)
		code = cuda.driver.cuDeviceGetCount(&cuda.device_count);
	if (code && code != WF_CU_NO_DEVICE)
		return say(WF_CUDA_FAILED, "%s does not count its devices: %s (%d)", cuda.file,
			   name_of(code), code);
	if (code || !cuda.device_count)
		return say(WF_CUDA_NO_DEVICE, "%s finds no device%s%.100s", cuda.file,
			   visible ? "; CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
	cuda.device_count = WF_MIN(cuda.device_count, WF_CUDA_DEVICES_MAX);
	return say(WF_CUDA_READY, "%s, CUDA %d.%d, %d device%s", cuda.file, cuda.version / 1000,
		   cuda.version % 1000 / 10, cuda.device_count,
		   cuda.device_count == 1 ? "" : "s");
}

/* Start the driver, whose library is there. */
static enum wf_cuda_driver_state start(void)
{
	const char *missing = find_all();
	int needed = version_needed(), code;

	/* A driver that is too old lacks functions, too: its age makes the better sentence. */
	if (cuda.driver.cuDriverGetVersion)
		(void)cuda.driver.cuDriverGetVersion(&cuda.version);
	if (cuda.version && cuda.version < needed)
		return say(WF_CUDA_TOO_OLD, "%s is of CUDA %d.%d, and weft needs %d.%d", cuda.file,
			   cuda.version / 1000, cuda.version % 1000 / 10, needed / 1000,
			   needed % 1000 / 10);
	if (missing)
		return say(WF_CUDA_INCOMPLETE, "%s has no %s", cuda.file, missing);
	code = cuda.driver.cuInit(0);
	if (code && code != WF_CU_NO_DEVICE)
		return say(WF_CUDA_FAILED, "%s does not start: %s (%d)%s", cuda.file,
			   name_of(code), code,
			   code == WF_CU_STUB_LIBRARY ? "; it is a toolkit's stub to link with" :
							"");
	return find_devices(code);
}

static bool is_file(const char *setting)
{
	return strchr(setting, '/');
}

static const char *file_of(const char *setting)
{
	return is_file(setting) ? setting : DRIVER_FILE;
}

static bool is_off(const char *setting)
{
	return !is_file(setting) && wf_options_lists(setting, "no");
}

bool wf_cuda_driver_is_here(const char *setting)
{
	void *library;

	if (is_off(setting))
		return false;
	library = dlopen(file_of(setting), RTLD_NOW | RTLD_NOLOAD);
	if (library)
		dlclose(library);
	return library;
}

static void load(const char *setting)
{
	/* Some of these variables name libraries that the driver loads. */
	static const char *const variables[] = { "CUDA_", "NVTX_", NULL };
	const char *file = file_of(setting);

	wf_fork_hold();
	if (!wf_environment_trusted())
		wf_environment_forget(variables);
	wf_fork_let();
	(void)snprintf(cuda.file, sizeof(cuda.file), "%s", file);
	cuda.library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	cuda.state = cuda.library ? start()
				  : say(WF_CUDA_NO_DRIVER, "no CUDA driver: %s", dlerror());
}

static int refuse_child(struct wf_error *e)
{
	return wf_error_set(e, -EOWNERDEAD,
			    "this process is a forked child: the CUDA driver is its parent's");
}

enum wf_cuda_driver_state wf_cuda_driver_load(const char *setting, struct wf_error *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (is_off(setting)) {
		wf_error_set(e, -ENODEV, "CUDA is not looked for: WEFT_CUDA=no");
		return WF_CUDA_OFF;
	}
	(void)pthread_once(&once, watch_forks);
	if (cuda.forked) {
		(void)refuse_child(e);
		return WF_CUDA_FORKED;
	}
	if (cuda.stage != TRIED) {
		pthread_mutex_lock(&cuda.lock);
		if (cuda.stage == UNTRIED) {
			cuda.stage = LOADING;
			load(setting);
			cuda.stage = TRIED;
		}
		pthread_mutex_unlock(&cuda.lock);
	}
	if (e)
		*e = cuda.said;
	return cuda.state;
}

const char *wf_cuda_driver_word(enum wf_cuda_driver_state state)
{
	return words[state];
}

const struct wf_cuda_driver *wf_cuda_driver(void)
{
	if (cuda.stage != TRIED || cuda.forked || cuda.state != WF_CUDA_READY)
		return NULL;
	return &cuda.driver;
}

int wf_cuda_driver_need(const struct wf_cuda_driver **driver, struct wf_error *e)
{
	if (cuda.forked)
		return refuse_child(e);
	if (cuda.stage != TRIED)
		return wf_error_set(e, -ENODEV, "the CUDA driver was not loaded");
	if (cuda.state != WF_CUDA_READY)
		return wf_error_set(e, -ENODEV, "%s", cuda.said.text);
	*driver = &cuda.driver;
	return 0;
}

int wf_cuda_driver_version(void)
{
	return cuda.stage == TRIED ? cuda.version : 0;
}

int wf_cuda_driver_device_count(void)
{
	return wf_cuda_driver() ? cuda.device_count : 0;
}

const char *wf_cuda_driver_file(void)
{
	return cuda.stage == TRIED ? cuda.file : "";
}

int wf_cuda_driver_error(struct wf_error *e, int code, const char *format, ...)
{
	char what[WF_ERROR_BYTES / 2];
	int err = -EIO;
	va_list args;

	for (size_t i = 0; i < WF_COUNT(errnos); i++)
		if (errnos[i].code == code)
			err = errnos[i].err;
	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return wf_error_set(e, err, "%s: %s (%d)", what, name_of(code), code);
}
