/* SPDX-License-Identifier: BSD-2-Clause */
/* The software driver's memory: what the CPU must not touch, and what other processes may. */
#include "tests/cuda/fake/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x66616b6563756461u /* "fakecuda" */

struct handle {
	uint64_t magic, bytes, id;
	int pid, fd, device;
};

static struct fake_memory *all;
static uint64_t last_id;

struct fake_memory *fake_find(uintptr_t at, size_t bytes)
{
	for (struct fake_memory *m = all; m; m = m->next)
		if (at >= m->start && at - m->start < m->bytes &&
		    bytes <= m->bytes - (at - m->start))
			return m;
	return NULL;
}

char *fake_reach(uintptr_t at, size_t bytes)
{
	struct fake_memory *m = fake_find(at, bytes);

	return m ? m->bytes_at + (at - m->start) : (char *)at;
}

unsigned fake_memory_left(void)
{
	unsigned count = 0;

	for (struct fake_memory *m = all; m; m = m->next)
		count++;
	return count;
}

static struct fake_memory *add(const struct fake_memory *m)
{
	struct fake_memory *fresh = malloc(sizeof(*fresh));

	*fresh = *m;
	fresh->id = ++last_id;
	fresh->next = all;
	all = fresh;
	return fresh;
}

static void take_out(struct fake_memory *m)
{
	struct fake_memory **at = &all;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
}

/* Map @fd twice: for nobody, where a device's memory is, and for the driver. */
static int map(struct fake_memory *m)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *device, *own;

	m->mapped_bytes = (m->bytes + page - 1) / page * page;
	device = mmap(NULL, m->mapped_bytes, PROT_NONE, MAP_SHARED, m->fd, 0);
	own = mmap(NULL, m->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (device == MAP_FAILED || own == MAP_FAILED)
		return CU_OUT_OF_MEMORY;
	m->start = (uintptr_t)device;
	m->bytes_at = own;
	return CU_OK;
}

/* Of @device that is given out. */
static size_t used_bytes(int device)
{
	size_t bytes = 0;

	for (struct fake_memory *m = all; m; m = m->next)
		if (m->kind == FAKE_DEVICE && m->device == device)
			bytes += m->bytes;
	return bytes;
}

static int allocate(CUdeviceptr *at, size_t bytes, bool managed)
{
	struct fake_memory m = { .bytes = bytes, .kind = managed ? FAKE_MANAGED : FAKE_DEVICE };
	int code;

	if (!bytes)
		return CU_INVALID_VALUE;
	m.context = fake_current();
	if (!m.context)
		return CU_INVALID_CONTEXT;
	m.device = m.context->device;
	if (!managed && bytes > fake_device_bytes(m.device) - used_bytes(m.device))
		return CU_OUT_OF_MEMORY;
	m.fd = memfd_create("fake-cuda", MFD_CLOEXEC);
	if (m.fd < 0 || ftruncate(m.fd, (off_t)bytes))
		return CU_OUT_OF_MEMORY;
	code = map(&m);
	if (!code && managed)
		code = mprotect((void *)m.start, m.mapped_bytes, PROT_READ | PROT_WRITE)
			       ? CU_OUT_OF_MEMORY
			       : CU_OK;
	if (code)
		return code;
	*at = add(&m)->start;
	return CU_OK;
}

int cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
	int code = fake_begin("cuMemAlloc");

	return fake_end(code ? code : allocate(at, bytes, false));
}

int cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
	int code = fake_begin("cuMemAllocManaged");

	(void)flags;
	return fake_end(code ? code : allocate(at, bytes, true));
}

static void unmap(struct fake_memory *m)
{
	/* What is under way there ends first. */
	fake_drain(NULL);
	take_out(m);
	munmap((void *)m->start, m->mapped_bytes);
	munmap(m->bytes_at, m->mapped_bytes);
	close(m->fd);
	free(m);
}

int cuMemFree_v2(CUdeviceptr at)
{
	int code = fake_begin("cuMemFree");
	struct fake_memory *m = fake_find(at, 1);

	if (!code && (!m || m->start != at || m->kind > FAKE_MANAGED))
		code = CU_INVALID_VALUE;
	if (!code)
		unmap(m);
	return fake_end(code);
}

static int pin(void *at, size_t bytes, int kind)
{
	struct fake_memory m = { .start = (uintptr_t)at, .bytes = bytes, .bytes_at = at };

	m.kind = kind;
	m.context = fake_current();
	if (!m.context)
		return CU_INVALID_CONTEXT;
	if (!at || !bytes)
		return CU_INVALID_VALUE;
	for (struct fake_memory *other = all; other; other = other->next)
		if (m.start < other->start + other->bytes && other->start < m.start + bytes)
			return CU_ALREADY_REGISTERED;
	m.device = m.context->device;
	add(&m);
	return CU_OK;
}

static int unpin(void *at, int kind)
{
	struct fake_memory *m = fake_find((uintptr_t)at, 1);

	if (!m || m->kind != (unsigned)kind || m->start != (uintptr_t)at)
		return kind == FAKE_PINNED ? CU_NOT_REGISTERED : CU_INVALID_VALUE;
	fake_drain(NULL);
	take_out(m);
	free(m);
	return CU_OK;
}

int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
	int code = fake_begin("cuMemHostRegister");

	(void)flags;
	return fake_end(code ? code : pin(at, bytes, FAKE_PINNED));
}

int cuMemHostUnregister(void *at)
{
	int code = fake_begin("cuMemHostUnregister");

	return fake_end(code ? code : unpin(at, FAKE_PINNED));
}

int cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	int code = fake_begin("cuMemHostAlloc");
	void *fresh;

	(void)flags;
	if (!code && posix_memalign(&fresh, 4096, bytes))
		code = CU_OUT_OF_MEMORY;
	else if (!code)
		code = pin(fresh, bytes, FAKE_ALLOCATED_PINNED);
	if (!code)
		*at = fresh;
	return fake_end(code);
}

int cuMemFreeHost(void *at)
{
	int code = fake_begin("cuMemFreeHost");

	if (!code)
		code = unpin(at, FAKE_ALLOCATED_PINNED);
	if (!code)
		free(at);
	return fake_end(code);
}

int cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr at)
{
	int code = fake_begin("cuMemGetAddressRange");
	struct fake_memory *m = fake_find(at, 1);

	if (!code && !m)
		code = CU_NOT_FOUND;
	if (!code) {
		*start = m->start;
		*bytes = m->bytes;
	}
	return fake_end(code);
}

static bool is_host(const struct fake_memory *m)
{
	return m->kind == FAKE_PINNED || m->kind == FAKE_ALLOCATED_PINNED;
}

static int attribute(void *value, int which, const struct fake_memory *m)
{
	switch (which) {
	case 1: /* CONTEXT */
		*(CUcontext *)value = m->context;
		return CU_OK;
	case 2: /* MEMORY_TYPE: host 1, device 2 */
		*(unsigned *)value = is_host(m) ? 1 : 2;
		return CU_OK;
	case 6: /* SYNC_MEMOPS */
	case 10: /* IS_LEGACY_CUDA_IPC_CAPABLE */
		*(unsigned *)value = !fake_settings.no_ipc;
		return CU_OK;
	case 7: /* BUFFER_ID */
		*(uint64_t *)value = m->id;
		return CU_OK;
	case 8: /* IS_MANAGED */
		*(unsigned *)value = m->kind == FAKE_MANAGED;
		return CU_OK;
	case 9: /* DEVICE_ORDINAL */
		*(int *)value = m->device;
		return CU_OK;
	case 11: /* RANGE_START_ADDR */
		*(uintptr_t *)value = m->start;
		return CU_OK;
	case 12: /* RANGE_SIZE */
		*(size_t *)value = m->bytes;
		return CU_OK;
	default:
		return CU_INVALID_VALUE;
	}
}

int cuPointerGetAttribute(void *value, int which, CUdeviceptr at)
{
	int code = fake_begin("cuPointerGetAttribute");
	struct fake_memory *m = fake_find(at, 1);

	if (!code)
		code = m ? attribute(value, which, m) : CU_INVALID_VALUE;
	return fake_end(code);
}

int cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr at)
{
	static const struct fake_memory nothing;
	int code = fake_begin("cuPointerGetAttributes");
	struct fake_memory *m = fake_find(at, 1);

	for (unsigned i = 0; !code && i < count; i++) {
		code = attribute(values[i], attributes[i], m ? m : &nothing);
		if (!m && attributes[i] == 2)
			*(unsigned *)values[i] = 0;
		if (!m && attributes[i] == 9)
			*(int *)values[i] = -2; /* as the driver does: cudaInvalidDeviceId */
	}
	return fake_end(code);
}

int cuPointerSetAttribute(const void *value, int which, CUdeviceptr at)
{
	int code = fake_begin("cuPointerSetAttribute");

	(void)value;
	(void)which;
	return fake_end(code || fake_find(at, 1) ? code : CU_INVALID_VALUE);
}

/* Like a dma-buf it has the bytes from its beginning on; unlike one, only of a whole allocation. */
int cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at, size_t bytes, int type,
				  unsigned long long flags)
{
	int code = fake_begin("cuMemGetHandleForAddressRange");
	struct fake_memory *m = fake_find(at, 1);
	int fd;

	if (!code && !fake_settings.dma_buf)
		code = CU_NOT_SUPPORTED;
	if (!code && (!m || m->start != at || bytes > m->mapped_bytes || type != 1 || flags))
		code = CU_INVALID_VALUE;
	if (!code) {
		fd = dup(m->fd);
		memcpy(handle, &fd, sizeof(fd));
	}
	return fake_end(code);
}

/* Here they are where they should be at once. */
int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	int code = fake_begin("cuFlushGPUDirectRDMAWrites");

	if (!code && !fake_current())
		code = CU_INVALID_CONTEXT;
	if (!code && (target != 0 || scope != 100))
		code = CU_INVALID_VALUE;
	return fake_end(code);
}

int cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
	int code = fake_begin("cuIpcGetMemHandle");
	struct fake_memory *m = fake_find(at, 1);
	struct handle h = { .magic = MAGIC, .pid = getpid() };

	if (!code && !fake_current())
		code = CU_INVALID_CONTEXT;
	if (!code && (!m || m->kind != FAKE_DEVICE || fake_settings.no_ipc))
		code = CU_INVALID_VALUE;
	if (!code) {
		h.bytes = m->bytes;
		h.id = m->id;
		h.fd = m->fd;
		h.device = m->device;
		memset(handle, 0, sizeof(*handle));
		memcpy(handle, &h, sizeof(h));
	}
	return fake_end(code);
}

static int import(CUdeviceptr *at, const struct handle *h)
{
	struct fake_memory m = { .bytes = h->bytes, .kind = FAKE_IMPORTED, .device = h->device };
	char path[64];
	int code;

	if (h->magic != MAGIC)
		return CU_INVALID_VALUE;
	/* As the driver: its own memory a process has already. */
	m.context = fake_current();
	if ((h->pid == getpid() && !fake_settings.own_ipc) || !m.context)
		return CU_INVALID_CONTEXT;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->pid, h->fd);
	m.fd = open(path, O_RDWR | O_CLOEXEC);
	if (m.fd < 0)
		return CU_INVALID_HANDLE;
	code = map(&m);
	if (!code)
		*at = add(&m)->start;
	return code;
}

int cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
	int code = fake_begin("cuIpcOpenMemHandle");
	struct handle h;

	(void)flags;
	memcpy(&h, &handle, sizeof(h));
	return fake_end(code ? code : import(at, &h));
}

int cuIpcCloseMemHandle(CUdeviceptr at)
{
	int code = fake_begin("cuIpcCloseMemHandle");
	struct fake_memory *m = fake_find(at, 1);

	if (!code && (!m || m->start != at || m->kind != FAKE_IMPORTED))
		code = CU_INVALID_VALUE;
	/* Its owner may free it from now on, and no copy waits for that. */
	if (!code && fake_is_copied(m->start, m->bytes)) {
		fprintf(stderr, "fake cuda: what is copied from is unmapped\n");
		abort();
	}
	if (!code)
		unmap(m);
	return fake_end(code);
}
