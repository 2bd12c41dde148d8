/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the software driver share.  One lock for everything: it is held
 * from fake_begin to fake_end, and everything else here expects it.
 */
#ifndef FAKE_CUDA_INTERNAL_H
#define FAKE_CUDA_INTERNAL_H

#include <pthread.h>
#include "tests/cuda/fake/control.h"
#include "tests/cuda/fake/driver.h"

#define FAKE_DEVICES_MAX 8

struct fake_context {
	int device;
	bool primary;
	CUstream stream; /* its default one */
};

/* A range of memory that the driver knows. */
struct fake_memory {
	struct fake_memory *next;
	uintptr_t start;
	size_t bytes, mapped_bytes;
	char *bytes_at; /* where the driver itself reads and writes it */
	enum { FAKE_DEVICE, FAKE_MANAGED, FAKE_PINNED, FAKE_ALLOCATED_PINNED, FAKE_IMPORTED } kind;
	int device;
	CUcontext context;
	uint64_t id;
	int fd;
};

/* Take the lock.  What the call is to say at once, or CU_OK. */
int fake_begin(const char *name);

/* Give it back, and @code. */
int fake_end(int code);

struct fake_settings {
	int devices, version, init_code;
	unsigned delay;
	bool hold, no_ipc, own_ipc, dma_buf;
	char without[64];
};
extern struct fake_settings fake_settings;
extern pthread_mutex_t fake_lock;

/* Is cuInit done, in this process? */
extern bool fake_started;
void fake_start(void);

/* What a device has, used or not: more is not given. */
size_t fake_device_bytes(int device);

/* The context that is current in this thread, or NULL. */
CUcontext fake_current(void);

void fake_write_log(const struct fake_cuda_entry *entry);

/* The memory that holds @bytes at @at, or NULL. */
struct fake_memory *fake_find(uintptr_t at, size_t bytes);

/* Where the driver itself reads and writes @at: it is host memory, or all of it is known. */
char *fake_reach(uintptr_t at, size_t bytes);
unsigned fake_memory_left(void);

/* Ask all streams, once; make all of them, or one, run dry. */
void fake_question(void);
void fake_drain(CUstream stream);
unsigned fake_queues_left(void);

/* Is a copy under way from or to the @bytes at @at? */
bool fake_is_copied(uintptr_t at, size_t bytes);

/* Does a capture forbid this thread a call that is not safe?  Then it is spoilt. */
bool fake_is_captured(void);

/* The stream that a program means: its own, or a default one.  NULL: there is no context. */
CUstream fake_stream_of(CUstream stream);
CUstream fake_new_stream(CUcontext context);
/* Does neither @stream wait for the default stream, nor that for @stream? */
bool fake_is_beside(const struct fake_stream *stream);
int fake_push_copy(enum fake_cuda_what what, uintptr_t to, uintptr_t from, size_t bytes,
		   CUstream stream);

#endif
