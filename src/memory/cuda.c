/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/cuda.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

/* The primary context of each device that was used. */
static _Atomic(wf_cu_context) contexts[WF_CUDA_DEVICES_MAX];

/* Calls of wf_cuda_relax() not yet ended in this thread, and its capture mode before. */
static _Thread_local unsigned relaxed;
static _Thread_local int capture_mode;

/* Get the driver's functions, and check that device @ordinal is there. */
static int need(int ordinal, const struct wf_cuda_driver **cu, struct wf_error *e)
{
	int count = wf_cuda_driver_device_count(), err = wf_cuda_driver_need(cu, e);

	if (err)
		return err;
	if (ordinal >= 0 && ordinal < count)
		return 0;
	return wf_error_set(e, -EINVAL, "there is no CUDA device %d: there are %d", ordinal, count);
}

int wf_cuda_device(int ordinal, struct wf_cuda_device *device, struct wf_error *e)
{
	struct wf_cuda_device d = { .numa_node = -1 };
	const struct wf_cuda_driver *cu;
	int handle, code, gives = 0, err;
	size_t bytes = 0;

	err = need(ordinal, &cu, e);
	if (err)
		return err;
	code = cu->cuDeviceGet(&handle, ordinal);
	if (!code)
		code = cu->cuDeviceGetName(d.name, sizeof(d.name), handle);
	if (!code)
		code = cu->cuDeviceTotalMem(&bytes, handle);
	if (code)
		return wf_cuda_driver_error(e, code, "asking for CUDA device %d", ordinal);
	d.bytes = bytes;
	/* A driver leaves a value that it does not know as it is. */
	(void)cu->cuDeviceGetPCIBusId(d.pci, sizeof(d.pci), handle);
	for (char *c = d.pci; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (cu->cuDeviceGetAttribute(&d.numa_node, WF_CU_DEVICE_NUMA_NODE, handle))
		d.numa_node = -1;
	if (!cu->cuDeviceGetAttribute(&gives, WF_CU_DEVICE_DMA_BUF, handle))
		d.gives_dma_buf = gives && cu->cuMemGetHandleForAddressRange;
	*device = d;
	return 0;
}

int wf_cuda_numa_node(int ordinal)
{
	static _Atomic int nodes[WF_CUDA_DEVICES_MAX]; /* node + 2; 0: not asked for yet */
	int node = atomic_load(&nodes[ordinal]) - 2;
	struct wf_cuda_device device;

	if (node == -2) {
		node = wf_cuda_device(ordinal, &device, NULL) ? -1 : WF_MAX(device.numa_node, -1);
		atomic_store(&nodes[ordinal], node + 2);
	}
	return node;
}

/* Get the primary context of @ordinal.  Two threads may retain it at once: it is never let go. */
static int find_context(const struct wf_cuda_driver *cu, int ordinal, wf_cu_context *context,
			struct wf_error *e)
{
	wf_cu_context found = atomic_load(&contexts[ordinal]);
	int handle, code;

	if (!found) {
		wf_cuda_relax();
		code = cu->cuDeviceGet(&handle, ordinal);
		if (!code)
			code = cu->cuDevicePrimaryCtxRetain(&found, handle);
		wf_cuda_unrelax();
		if (code)
			return wf_cuda_driver_error(e, code, "the context of CUDA device %d",
						    ordinal);
		atomic_store(&contexts[ordinal], found);
	}
	*context = found;
	return 0;
}

void wf_cuda_relax(void)
{
	if (relaxed++)
		return;
	capture_mode = WF_CU_CAPTURE_RELAXED;
	(void)wf_cuda_driver()->cuThreadExchangeStreamCaptureMode(&capture_mode);
}

void wf_cuda_unrelax(void)
{
	if (!--relaxed)
		(void)wf_cuda_driver()->cuThreadExchangeStreamCaptureMode(&capture_mode);
}

int wf_cuda_enter_context(wf_cu_context context, int ordinal, struct wf_error *e)
{
	int code = wf_cuda_driver()->cuCtxPushCurrent(context);

	if (code)
		return wf_cuda_driver_error(e, code, "entering CUDA device %d", ordinal);
	wf_cuda_relax();
	return 0;
}

int wf_cuda_enter(int ordinal, struct wf_error *e)
{
	const struct wf_cuda_driver *cu;
	wf_cu_context context = NULL;
	int err = need(ordinal, &cu, e);

	if (!err)
		err = find_context(cu, ordinal, &context, e);
	return err ? err : wf_cuda_enter_context(context, ordinal, e);
}

void wf_cuda_leave(void)
{
	wf_cu_context left;

	wf_cuda_unrelax();
	(void)wf_cuda_driver()->cuCtxPopCurrent(&left);
}

static enum wf_cuda_memory_kind kind_of(unsigned type, unsigned managed)
{
	/* Managed memory also has a type, by where it lies just now. */
	if (managed)
		return WF_CUDA_MANAGED;
	if (type == WF_CU_MEMORY_DEVICE)
		return WF_CUDA_DEVICE;
	return type == WF_CU_MEMORY_HOST ? WF_CUDA_PINNED : WF_CUDA_HOST;
}

int wf_cuda_find(const void *at, struct wf_cuda_memory *memory, struct wf_error *e)
{
	/* CUDA leaves the values of memory that it does not know, or sets them to 0. */
	struct wf_cuda_memory m = { 0 };
	unsigned type = 0, managed = 0;
	int attributes[] = { WF_CU_POINTER_MEMORY_TYPE, WF_CU_POINTER_IS_MANAGED,
			     WF_CU_POINTER_DEVICE,	WF_CU_POINTER_BUFFER_ID,
			     WF_CU_POINTER_RANGE_START, WF_CU_POINTER_RANGE_SIZE };
	void *values[] = { &type, &managed, &m.device, &m.buffer, &m.start, &m.bytes };
	const struct wf_cuda_driver *cu;
	int code, err;

	_Static_assert(WF_COUNT(attributes) == WF_COUNT(values), "a value for each");
	err = wf_cuda_driver_need(&cu, e);
	if (err)
		return err;
	wf_cuda_relax();
	code = cu->cuPointerGetAttributes(WF_COUNT(values), attributes, values, (uintptr_t)at);
	wf_cuda_unrelax();
	if (code)
		return wf_cuda_driver_error(e, code, "asking what lies at %p", at);
	m.kind = kind_of(type, managed);
	*memory = m.kind == WF_CUDA_HOST ? (struct wf_cuda_memory){ 0 } : m;
	return 0;
}

int wf_cuda_alloc(int ordinal, size_t bytes, void **at, struct wf_error *e)
{
	int code, err = wf_cuda_enter(ordinal, e);
	uintptr_t fresh = 0;

	if (err)
		return err;
	code = wf_cuda_driver()->cuMemAlloc(&fresh, bytes);
	wf_cuda_leave();
	if (code)
		return wf_cuda_driver_error(e, code, "%zu bytes of CUDA device %d", bytes, ordinal);
	*at = (void *)fresh;
	return 0;
}

void wf_cuda_free(int ordinal, void *at)
{
	if (wf_cuda_enter(ordinal, NULL))
		return;
	(void)wf_cuda_driver()->cuMemFree((uintptr_t)at);
	wf_cuda_leave();
}

int wf_cuda_pin(int ordinal, void *at, size_t bytes, struct wf_error *e)
{
	int code, err = wf_cuda_enter(ordinal, e);

	if (err)
		return err;
	/* Pin for every device, not just this one. */
	code = wf_cuda_driver()->cuMemHostRegister(at, bytes, WF_CU_HOST_PORTABLE);
	wf_cuda_leave();
	if (code)
		return wf_cuda_driver_error(e, code, "pinning %zu bytes of host memory", bytes);
	return 0;
}

void wf_cuda_unpin(int ordinal, void *at)
{
	if (wf_cuda_enter(ordinal, NULL))
		return;
	(void)wf_cuda_driver()->cuMemHostUnregister(at);
	wf_cuda_leave();
}

/* Find the device memory that @at is in; other memory is refused. */
static int find_device_memory(const void *at, struct wf_cuda_memory *m, struct wf_error *e)
{
	int err = wf_cuda_find(at, m, e);

	if (!err && m->kind != WF_CUDA_DEVICE)
		err = wf_error_set(e, -EINVAL, "%p is not memory of a CUDA device", at);
	return err;
}

int wf_cuda_export(const void *at, struct wf_cuda_export *export, struct wf_error *e)
{
	struct wf_cuda_export x = { 0 };
	struct wf_cuda_memory m;
	int code, err;

	err = find_device_memory(at, &m, e);
	if (!err)
		err = wf_cuda_enter(m.device, e);
	if (err)
		return err;
	code = wf_cuda_driver()->cuIpcGetMemHandle(&x.handle, m.start);
	wf_cuda_leave();
	if (code)
		return wf_cuda_driver_error(e, code, "a handle of memory of CUDA device %d",
					    m.device);
	x.number = m.buffer;
	x.offset = (uintptr_t)at - m.start;
	x.bytes = m.bytes;
	*export = x;
	return 0;
}

int wf_cuda_import(int ordinal, const struct wf_cuda_driver_ipc_handle *handle, void **start,
		   struct wf_error *e)
{
	int code, err = wf_cuda_enter(ordinal, e);
	uintptr_t at = 0;

	if (err)
		return err;
	code = wf_cuda_driver()->cuIpcOpenMemHandle(&at, *handle, WF_CU_IPC_LAZY_PEER_ACCESS);
	wf_cuda_leave();
	if (code)
		return wf_cuda_driver_error(e, code,
					    "opening another process's memory on CUDA device %d",
					    ordinal);
	*start = (void *)at;
	return 0;
}

void wf_cuda_drop_import(int ordinal, void *start)
{
	if (wf_cuda_enter(ordinal, NULL))
		return;
	(void)wf_cuda_driver()->cuIpcCloseMemHandle((uintptr_t)start);
	wf_cuda_leave();
}

int wf_cuda_dma_buf(const void *at, size_t bytes, int *fd, uint64_t *offset, struct wf_error *e)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from, to;
	struct wf_cuda_device device;
	struct wf_cuda_memory m;
	int code, err, fresh = -1;

	err = find_device_memory(at, &m, e);
	if (!err)
		err = wf_cuda_device(m.device, &device, e);
	if (!err && !device.gives_dma_buf)
		err = wf_error_set(e, -EOPNOTSUPP, "CUDA device %d gives no dma-buf of its memory",
				   m.device);
	if (!err)
		err = wf_cuda_enter(m.device, e);
	if (err)
		return err;
	from = (uintptr_t)at / page * page;
	to = ((uintptr_t)at + bytes + page - 1) / page * page;
	code = wf_cuda_driver()->cuMemGetHandleForAddressRange(&fresh, from, to - from,
							       WF_CU_HANDLE_DMA_BUF, 0);
	wf_cuda_leave();
	if (code)
		return wf_cuda_driver_error(e, code, "a dma-buf of %zu bytes of CUDA device %d",
					    bytes, m.device);
	*fd = fresh;
	*offset = (uintptr_t)at - from;
	return 0;
}

int wf_cuda_open_to_cards(int ordinal, const void *at, struct wf_error *e)
{
	const unsigned yes = 1;
	int code, err = wf_cuda_enter(ordinal, e);

	if (err)
		return err;
	code = wf_cuda_driver()->cuPointerSetAttribute(&yes, WF_CU_POINTER_SYNC_MEMOPS,
						       (uintptr_t)at);
	wf_cuda_leave();
	return code ? wf_cuda_driver_error(e, code, "opening %p to cards", at) : 0;
}

/* Flush what cards have written to @ordinal, in its context. */
static int flush(const struct wf_cuda_driver *cu, int ordinal)
{
	int device, ordered = 0, options = 0;
	int code = cu->cuDeviceGet(&device, ordinal);

	if (!code)
		code = cu->cuDeviceGetAttribute(&ordered, WF_CU_DEVICE_WRITES_ORDERING, device);
	if (code || ordered >= WF_CU_ORDERED_FOR_OWNER)
		return code;
	code = cu->cuDeviceGetAttribute(&options, WF_CU_DEVICE_FLUSH_OPTIONS, device);
	if (code)
		return code;
	if (!(options & WF_CU_FLUSH_BY_HOST) || !cu->cuFlushGPUDirectRDMAWrites)
		return WF_CU_NOT_SUPPORTED;
	return cu->cuFlushGPUDirectRDMAWrites(WF_CU_FLUSH_CURRENT_CONTEXT, WF_CU_ORDERED_FOR_OWNER);
}

int wf_cuda_flush(int ordinal, struct wf_error *e)
{
	int code, err = wf_cuda_enter(ordinal, e);

	if (err)
		return err;
	code = flush(wf_cuda_driver(), ordinal);
	wf_cuda_leave();
	return code ? wf_cuda_driver_error(e, code, "what cards have written to CUDA device %d",
					   ordinal)
		    : 0;
}
