/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kinds of memory: where a body may lie, and how its bytes get into a chunk of the pool and out
 * of one.  Memory that the CPU and every rail reach needs no chunk.
 *
 * A copy is begun, polled until it is over, and ended; meanwhile its body and its chunk are in
 * use.  Copies of one worker, one direction and one device end in the order in which they were
 * begun; copies of two directions overlap.
 *
 * Threads: owner, except where a function says otherwise.
 */
#ifndef WF_KIND_H
#define WF_KIND_H

#include "memory/queue.h"
#include "memory/pool.h"

struct wf_kind_copy;

struct wf_kind {
	bool direct; /* the CPU and every rail reach it: no chunk, and the rest is NULL */

	/*
	 * Begin @copy, whose upper part the caller has filled in.  Never -EAGAIN: the device
	 * queues copies.
	 */
	int (*begin)(struct wf_kind_copy *copy, struct wf_error *e);

	/*
	 * Ask how @copy goes.  0: it has ended.  -EAGAIN: not yet.  Other codes: it failed, and
	 * touches nothing more.
	 */
	int (*poll)(struct wf_kind_copy *copy, struct wf_error *e);

	/* Forget @copy, once poll() has said that it is over. */
	void (*end)(struct wf_kind_copy *copy);
};

extern const struct wf_kind wf_kind_host, wf_kind_cuda;

/* Where a body lies. */
struct wf_kind_place {
	const struct wf_kind *kind;
	int device; /* number of the device; 0 where there are none */
	uintptr_t start, end; /* bounds of the allocation that holds a device's memory */
};

/*
 * Find where the @bytes at @at lie, which the caller says are DLPack's device @type and @id:
 * that is believed for host memory, and checked for a device's.  Loads the driver, as @setting
 * says (WEFT_CUDA), when the first body of a device comes.  Managed memory is the host's, for
 * which @place says so.  -ENOTSUP: no such kind.  -EINVAL: the memory is of another kind or
 * device, or shorter.  -ENODEV: CUDA is not to be had here.  Threads: any.
 */
int wf_kind_find(int type, int id, const void *at, uint64_t bytes, const char *setting,
		 struct wf_kind_place *place, struct wf_error *e);

/* A body that the CPU does not reach. */
struct wf_kind_body {
	struct wf_kind_place place;
	uint8_t *at;
	struct wf_queue_mark mark; /* mark of the program's stream; passed: the body is ready */
};

/*
 * Describe a body that wf_kind_find() finds; *@body is NULL where the CPU reaches it.  Marks
 * @stream, as wf_queue_mark, unless it is WEFT_NO_STREAM.  Codes as wf_kind_find(); -ENOMEM.
 * Threads: any; the program's own.
 */
int wf_kind_open(int type, int id, void *at, uint64_t bytes, const char *setting, void *stream,
		 struct wf_kind_body **body, struct wf_error *e);

/*
 * Describe a body of which nobody says where it lies; CUDA is asked if this process has loaded it,
 * so that a program without devices pays nothing.  *@body is NULL where the CPU reaches it.  There
 * is no stream to wait for.  Codes as wf_kind_open().  Threads: any.
 */
int wf_kind_discover(void *at, uint64_t bytes, const char *setting, struct wf_kind_body **body,
		     struct wf_error *e);

/* Free @body.  Accepts NULL.  Threads: any. */
void wf_kind_close(struct wf_kind_body *body);

/* Ways of a copy; in the last, @chunk is another process's body on a device, mapped here. */
enum wf_kind_way { WF_KIND_INTO_CHUNK, WF_KIND_OUT_OF_CHUNK, WF_KIND_FROM_DEVICE, WF_KIND_WAYS };

/* A worker's queues for its copies.  All zero: nothing was copied yet. */
struct wf_kinds {
	struct wf_queue *queues[WF_CUDA_DEVICES_MAX][WF_KIND_WAYS]; /* NULL: not opened yet */
};

/* Wait for copies that are under way. */
void wf_kinds_wait(struct wf_kinds *kinds);

/* Wait for copies that are under way and close the queues. */
void wf_kinds_fini(struct wf_kinds *kinds);

/* Get the queue for @way of device @ordinal, opened when it is first asked for. */
int wf_kinds_queue(struct wf_kinds *kinds, int ordinal, enum wf_kind_way way,
		  struct wf_queue **queue, struct wf_error *e);

struct wf_kind_copy {
	struct wf_kinds *kinds;
	const struct wf_kind_place *place; /* place of @body */
	enum wf_kind_way way;
	void *body, *chunk;
	size_t bytes;
	struct wf_pool *pool;		  /* pool of @chunk, which pins the slab; NULL: no pin */
	/* another copy follows whose end is this one's, too: only the last is polled and ended */
	bool followed;

	struct wf_queue_event *event; /* for the kind's own use */
};

#endif
