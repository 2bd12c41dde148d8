/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows: memory that peers get from and put into.
 *
 * The owner opens a window over a range of its memory, and gives the window's descriptor, some
 * bytes, to its peers by any way it likes.  A peer that imports the descriptor gets from the window
 * and puts into it, in blocks of any places, without an operation of the owner's.  A put or get may
 * carry a note, which the owner takes when it likes.
 *
 * Only reads move bytes.  A get is a read of the getting side, to which the owner's worker lends
 * the memory first; a put is a read of the owner's own, made by its worker.  So neither is
 * one-sided as RDMA's are: the owner's worker must run, and the owner of a manual node drives it.
 * And nothing of a peer that timed out, died or started anew can write into the owner's memory
 * later: when an operation or window has ended, the memory is quiet.
 *
 * The memory at either end may be that of a CUDA device, which a card reaches by itself or which
 * goes through the pool, as with tensors.
 *
 * Puts and gets of one peer are not ordered with each other, and one that overlaps another may see
 * some of its bytes; with a checksum it may end with DATA_LOSS then.
 */
#ifndef WEFT_WINDOW_H
#define WEFT_WINDOW_H

#include <weft/node.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_window; /* a window of this node's */
struct weft_remote; /* a window of a peer's */

enum weft_window_right {
	WEFT_WINDOW_READ = 1, /* peers may get */
	WEFT_WINDOW_WRITE = 2, /* peers may put */
	WEFT_WINDOW_LAND = 4   /* peers may push; right of a weft_remote alone: landing.h */
};

#define WEFT_DESCRIPTOR_BYTES_MAX 256

/*
 * Open a window over the @bytes at @memory, with @rights (enum weft_window_right) for every peer
 * that knows its descriptor.  Borrows the memory until weft_window_close() has returned 0, or the
 * node has closed.  Memory of a CUDA device is known as such where this process has the driver
 * loaded (WEFT_CUDA); the window's bytes lie in one allocation, which no stream is waited for.
 * Returns @window owned.  -EINVAL: no bytes, no such right, or bytes beyond their allocation on a
 * device.  -ENOMEM.  -ENOSPC: the node has a million windows.  Threads: any, callback.
 */
WEFT_API int weft_window_open(struct weft_node *node, void *memory, size_t bytes, unsigned rights,
			      struct weft_window **window);

/*
 * Write the window's descriptor to @descriptor, which has room for *@bytes, at most
 * WEFT_DESCRIPTOR_BYTES_MAX; *@bytes becomes its length.  Whoever has it may use the window: it is
 * as secret as the memory.  -ENOSPC: there is not room enough.  Threads: any, callback.
 */
WEFT_API int weft_window_describe(const struct weft_window *window, void *descriptor,
				  size_t *bytes);

/*
 * Publish @window by @key, at most WEFT_KEY_BYTES_MAX bytes, which is copied, until it closes: a
 * peer that asks for the key gets its descriptor, as a reply of the service weft.windows.Windows,
 * which interceptors may refuse.  A window may have several keys.  -EEXIST: a window of this node
 * has that one.  -EINVAL: the key is too long.  -ENOMEM.  -EDEADLK inside a callback.  Threads:
 * any.
 */
WEFT_API int weft_window_publish(struct weft_window *window, const void *key, size_t key_bytes);

/*
 * Close @window and wait until no byte of it moves any more, at most 0.5 s on a rail (node.h) with
 * an endpoint for each peer and 2 s on one whose endpoint serves all, and as long as a device takes
 * for copies that are under way.  Puts and gets that are under way end with NOT_FOUND, as all later
 * ones do; operations that wait for its notes have ended with CANCELLED then, and notes that nobody
 * took are dropped.  Accepts NULL.  To be called before the node closes, which ends the window too.
 * -EDEADLK inside a callback: nothing was done.  Threads: any, while no other is in a function on
 * @window; one may wait for an operation that takes its notes.  The owner of a manual node drives
 * it meanwhile.
 */
WEFT_API int weft_window_close(struct weft_window *window);

/*
 * Returns how many puts have ended in @window; the calling thread sees their bytes.
 * Threads: any, callback.
 */
WEFT_API uint64_t weft_window_puts(const struct weft_window *window);

/*
 * Wait until @count puts have ended in @window since it was opened, for at most @timeout_ns.
 * -ETIMEDOUT: there were fewer.  -EDEADLK inside a callback.  Threads: any; the owner of a manual
 * node drives it meanwhile.
 */
WEFT_API int weft_window_wait(struct weft_window *window, uint64_t count, uint64_t timeout_ns);

/* Notes that nobody took, of one window; a put or get with another ends with RESOURCE_EXHAUSTED. */
#define WEFT_NOTES_MAX 4096
#define WEFT_NOTE_BYTES_MAX 4096

/* A note that came with a put or get, whose bytes have moved before. */
struct weft_note {
	uint32_t number;  /* the sender's, as the immediate data of an RDMA write */
	int of_get;       /* 0: the note of a put */
	const void *data;
	size_t bytes;
};

/*
 * Take the next note of @window; each comes once, and those of one peer in the order in which its
 * operations ended.  weft_op_note() has it, and weft_op_peer() the peer.  Threads: any, callback.
 */
WEFT_API int weft_window_next(struct weft_window *window, const struct weft_op_options *options,
			      struct weft_op **op);

/*
 * Returns the note that @op took, valid until weft_op_free(); NULL unless the outcome is WEFT_OK.
 * Threads: any, callback.
 */
WEFT_API const struct weft_note *weft_op_note(const struct weft_op *op);

/*
 * Import the window of @peer that @descriptor, of @bytes, describes; nothing is sent.  Returns
 * @remote owned: free it with weft_remote_close().  -EINVAL: it is no descriptor of a window.
 * -EPROTONOSUPPORT: it is of a later version of weft.  -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_window_import(struct weft_peer *peer, const void *descriptor, size_t bytes,
				struct weft_remote **remote);

/*
 * Find the window that @peer publishes, or will publish before the operation's deadline, by @key,
 * which is copied.  @op has found it when it ends with WEFT_OK: see weft_op_remote().  @op may not
 * be NULL.  NOT_FOUND: none was published by then; UNIMPLEMENTED: nor any by another key.
 * UNAVAILABLE: @peer can't be reached within WEFT_CONNECT_TIMEOUT, dies or drains.  -EINVAL: @op is
 * NULL, or the key is too long.  Threads: any, callback.
 */
WEFT_API int weft_window_find(struct weft_peer *peer, const void *key, size_t key_bytes,
			      const struct weft_op_options *options, struct weft_op **op);

/*
 * Import the window that @op has found, as weft_window_import() does.  -EINVAL: @op has found none.
 * -EPROTONOSUPPORT: it is of a later version of weft.  -ECANCELED: its node has closed.
 * Threads: any, callback.
 */
WEFT_API int weft_op_remote(const struct weft_op *op, struct weft_remote **remote);

/*
 * Give up a remote window, before its node closes; accepts NULL.  Operations that use it go on.
 * Threads: any, callback.
 */
WEFT_API void weft_remote_close(struct weft_remote *remote);

/* Returns the length of the window.  Threads: any, callback. */
WEFT_API uint64_t weft_remote_bytes(const struct weft_remote *remote);

/* Returns the window's rights, enum weft_window_right.  Threads: any, callback. */
WEFT_API unsigned weft_remote_rights(const struct weft_remote *remote);

/* Bytes that move between memory here and a remote window. */
struct weft_block {
	void *local;     /* a put only reads it */
	uint64_t remote; /* place in the window */
	uint64_t bytes;
};

#define WEFT_BLOCKS_MAX 65536

/* Blocks of one length at even distances: rows of a matrix, one layer of each page of a cache. */
struct weft_strided {
	struct weft_block first;
	int64_t local_stride;  /* bytes from the beginning of a block to that of the next */
	int64_t remote_stride;
	size_t count;
};

/*
 * Write the blocks of @strided to @blocks, which has room for its count.
 * Threads: any, callback.
 */
static inline void weft_strided_blocks(const struct weft_strided *strided,
				       struct weft_block *blocks)
{
	for (size_t i = 0; i < strided->count; i++) {
		blocks[i].local = (char *)strided->first.local + (int64_t)i * strided->local_stride;
		blocks[i].remote = strided->first.remote +
				   (uint64_t)((int64_t)i * strided->remote_stride);
		blocks[i].bytes = strided->first.bytes;
	}
}

enum weft_access_flag {
	WEFT_NOTE = 1 /* the owner gets a note, maybe of no bytes */
};

struct weft_access_options {
	size_t size;
	struct weft_op_options op;
	unsigned flags;    /* WEFT_NOTE */
	uint32_t number;   /* with WEFT_NOTE: for the owner, weft_note.number there */
	const void *note;  /* with WEFT_NOTE: copied */
	size_t note_bytes; /* at most WEFT_NOTE_BYTES_MAX */
	struct weft_device device; /* where all blocks here lie; zeros or WEFT_CPU: the host */
	void *stream; /* CUDA stream of a device's memory here, as in struct weft_send_options */
};
#define WEFT_ACCESS_OPTIONS_INIT WEFT_SIZED_OP_INIT(struct weft_access_options)

/*
 * Read @count blocks of a window, up to WEFT_BLOCKS_MAX, as one operation.  Copies @blocks; borrows
 * the memory here until the operation ends.  Neighbours that follow each other at both ends are
 * joined.  On a rail where memory must be registered, the range from the lowest to the highest of
 * the blocks here is, as a whole.
 *
 * NOT_FOUND: the window is closed, or its node has started anew.  -EACCES: the window may not be
 * read.  -EINVAL: no blocks, one beyond the window, or one that is not on options->device.
 * -ENODEV: there is no CUDA here.  -ENOTSUP: memory of another kind.  Threads: any, callback.
 */
WEFT_API int weft_get(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
		      const struct weft_access_options *options, struct weft_op **op);

/*
 * Write @count blocks into a window, up to WEFT_BLOCKS_MAX, as one operation: when it has ended
 * well all bytes are in the window.  No blocks: the put counts, and its note is taken, without
 * bytes; that needs the right to write, too.  Otherwise as weft_get(), but that memory need not
 * be registered as a whole.  A put that fails may have written some blocks.  Threads: any,
 * callback.
 */
WEFT_API int weft_put(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
		      const struct weft_access_options *options, struct weft_op **op);

#ifdef __cplusplus
}
#endif
#endif
