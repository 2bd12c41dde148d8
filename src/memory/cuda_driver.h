/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CUDA driver, loaded when it is first needed: its entry points, and the outcome of loading
 * it.
 *
 * weft is built without CUDA's headers and libraries: the prototypes here are weft's own, of
 * the versions in the table of cuda_driver.c, and a test compares their numbers with cuda.h
 * where that is installed.  A program whose memory is all the host's loads nothing.  The driver
 * stays loaded: threads of its own run in it.
 *
 * The driver does not survive fork(): a child of a process that had begun to load it never
 * calls it.
 *
 * Threads: any.
 */
#ifndef WF_CUDA_DRIVER_H
#define WF_CUDA_DRIVER_H

#include "util/error.h"

#define WF_CUDA_DEVICES_MAX 64 /* four times what the largest servers have */

enum wf_cuda_driver_state {
	WF_CUDA_READY,
	WF_CUDA_OFF,	    /* WEFT_CUDA is no */
	WF_CUDA_NO_DRIVER,  /* the driver's library is missing */
	WF_CUDA_TOO_OLD,    /* the driver is too old */
	WF_CUDA_INCOMPLETE, /* a function is missing */
	WF_CUDA_FAILED,	    /* the driver does not start */
	WF_CUDA_NO_DEVICE,  /* the driver starts and finds no device */
	WF_CUDA_FORKED,	    /* the process is a child of the one that has the driver */
};

/* Codes of the driver that weft tells apart. */
enum {
	WF_CU_OK = 0,
	WF_CU_INVALID_VALUE = 1,
	WF_CU_OUT_OF_MEMORY = 2,
	WF_CU_STUB_LIBRARY = 34,
	WF_CU_NO_DEVICE = 100,
	WF_CU_NOT_READY = 600,
	WF_CU_ALREADY_REGISTERED = 712,
	WF_CU_NOT_SUPPORTED = 801,
};

/* Flags and selectors of the driver's functions. */
enum {
	WF_CU_STREAM_NON_BLOCKING = 1,
	WF_CU_EVENT_DISABLE_TIMING = 2,
	WF_CU_HOST_PORTABLE = 1,
	WF_CU_CAPTURE_NONE = 0,
	WF_CU_CAPTURE_RELAXED = 2,
	WF_CU_IPC_LAZY_PEER_ACCESS = 1,
	WF_CU_HANDLE_DMA_BUF = 1,
	WF_CU_MEMORY_HOST = 1,
	WF_CU_MEMORY_DEVICE = 2,
	WF_CU_POINTER_MEMORY_TYPE = 2,
	WF_CU_POINTER_SYNC_MEMOPS = 6,
	WF_CU_POINTER_BUFFER_ID = 7,
	WF_CU_POINTER_IS_MANAGED = 8,
	WF_CU_POINTER_DEVICE = 9,
	WF_CU_POINTER_RANGE_START = 11,
	WF_CU_POINTER_RANGE_SIZE = 12,
	WF_CU_DEVICE_FLUSH_OPTIONS = 117,
	WF_CU_DEVICE_WRITES_ORDERING = 118,
	WF_CU_DEVICE_DMA_BUF = 124,
	WF_CU_DEVICE_NUMA_NODE = 134,
	WF_CU_FLUSH_BY_HOST = 1,
	WF_CU_FLUSH_CURRENT_CONTEXT = 0,
	WF_CU_ORDERED_FOR_OWNER = 100,
};

/* The driver's own handles. */
typedef struct wf_cu_context *wf_cu_context;
typedef struct wf_cu_stream *wf_cu_stream;
typedef struct wf_cu_event *wf_cu_event;

struct wf_cuda_driver_ipc_handle {
	char bytes[64];
};

/* The driver's functions, under its own names. */
struct wf_cuda_driver {
	int (*cuInit)(unsigned flags);
	int (*cuDriverGetVersion)(int *version);
	int (*cuGetErrorName)(int code, const char **name);
	int (*cuDeviceGetCount)(int *count);
	int (*cuDeviceGet)(int *device, int ordinal);
	int (*cuDeviceGetName)(char *name, int bytes, int device);
	int (*cuDeviceTotalMem)(size_t *bytes, int device);
	int (*cuDeviceGetPCIBusId)(char *text, int bytes, int device);
	int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
	int (*cuDevicePrimaryCtxRetain)(wf_cu_context *context, int device);
	int (*cuCtxPushCurrent)(wf_cu_context context);
	int (*cuCtxPopCurrent)(wf_cu_context *context);
	int (*cuCtxGetCurrent)(wf_cu_context *context);
	int (*cuPointerGetAttributes)(unsigned count, int *attributes, void **values,
				      uintptr_t at);
	int (*cuPointerSetAttribute)(const void *value, int attribute, uintptr_t at);
	int (*cuStreamCreate)(wf_cu_stream *stream, unsigned flags);
	int (*cuStreamDestroy)(wf_cu_stream stream);
	int (*cuStreamSynchronize)(wf_cu_stream stream);
	int (*cuStreamGetCtx)(wf_cu_stream stream, wf_cu_context *context);
	int (*cuStreamIsCapturing)(wf_cu_stream stream, int *status);
	int (*cuThreadExchangeStreamCaptureMode)(int *mode);
	int (*cuEventCreate)(wf_cu_event *event, unsigned flags);
	int (*cuEventDestroy)(wf_cu_event event);
	int (*cuEventRecord)(wf_cu_event event, wf_cu_stream stream);
	int (*cuEventQuery)(wf_cu_event event);
	int (*cuMemAlloc)(uintptr_t *at, size_t bytes);
	int (*cuMemFree)(uintptr_t at);
	int (*cuMemcpyHtoDAsync)(uintptr_t to, const void *from, size_t bytes,
				 wf_cu_stream stream);
	int (*cuMemcpyDtoHAsync)(void *to, uintptr_t from, size_t bytes, wf_cu_stream stream);
	int (*cuMemcpyDtoDAsync)(uintptr_t to, uintptr_t from, size_t bytes,
				 wf_cu_stream stream);
	int (*cuMemHostRegister)(void *at, size_t bytes, unsigned flags);
	int (*cuMemHostUnregister)(void *at);
	int (*cuIpcGetMemHandle)(struct wf_cuda_driver_ipc_handle *handle, uintptr_t at);
	int (*cuIpcOpenMemHandle)(uintptr_t *at, struct wf_cuda_driver_ipc_handle handle,
				  unsigned flags);
	int (*cuIpcCloseMemHandle)(uintptr_t at);
	/*
	 * Functions that are NULL where the driver has none: they came later than weft's oldest
	 * driver.
	 */
	int (*cuMemGetHandleForAddressRange)(void *handle, uintptr_t at, size_t bytes, int type,
					     unsigned long long flags);
	int (*cuFlushGPUDirectRDMAWrites)(int target, int scope);
};

/*
 * Load the driver if that was not tried yet.  @setting is WEFT_CUDA's: "no", "" or "yes", or
 * the driver's file; the first file that is tried is the process's.  @e gets one sentence, of a
 * driver that is ready, too.  Blocks, for a second or so the first time.
 */
enum wf_cuda_driver_state wf_cuda_driver_load(const char *setting, struct wf_error *e);

/*
 * Returns whether somebody in this process, the program say, has loaded the library that @setting
 * names, so that there may be memory of devices.  Loads nothing.
 */
bool wf_cuda_driver_is_here(const char *setting);

/* Return @state as a word: "ready", "off", ... */
const char *wf_cuda_driver_word(enum wf_cuda_driver_state state);

/* Return the driver's functions; NULL: the driver is not ready, or not in this process. */
const struct wf_cuda_driver *wf_cuda_driver(void);

/*
 * Get the driver's functions, or a sentence.  -ENODEV: the driver was not loaded, or is not
 * ready.  -EOWNERDEAD: the driver is the parent's.
 */
int wf_cuda_driver_need(const struct wf_cuda_driver **driver, struct wf_error *e);

/* Return the driver's version of CUDA, as 13000; 0: the driver was not loaded. */
int wf_cuda_driver_version(void);

/* Return the number of devices; 0: the driver is not ready. */
int wf_cuda_driver_device_count(void);

/* Return the driver's file; "": the driver was not loaded. */
const char *wf_cuda_driver_file(void);

/*
 * Record a sentence about the driver's @code, which is not WF_CU_OK, and return a negative code
 * for it.  The sentence says what was done, and the driver's name for @code.
 */
int wf_cuda_driver_error(struct wf_error *e, int code, const char *format, ...) WF_PRINTF(3, 4);

#endif
