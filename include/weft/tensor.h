/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors: send and receive by step and key.
 *
 * A send and a receive meet where step and key are equal.  Either may come first.  Several tensors
 * may pass under one step and key: they arrive in the order in which they were sent.  Dtype, shape
 * and the dead flag travel with the data, so a receiver may know nothing in advance.
 */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack's type codes. */
enum weft_dtype_code {
	WEFT_INT = 0,
	WEFT_UINT = 1,
	WEFT_FLOAT = 2,
	WEFT_HANDLE = 3,
	WEFT_BFLOAT = 4,
	WEFT_COMPLEX = 5,
	WEFT_BOOL = 6
};

struct weft_dtype {
	uint8_t code;   /* enum weft_dtype_code, or another code of DLPack */
	uint8_t bits;   /* bits of a lane */
	uint16_t lanes; /* lanes of an element: 1 but for vectors */
};

/* DLPack's device types, as far as they are supported. */
enum weft_device_type {
	WEFT_CPU = 1,
	WEFT_CUDA = 2,
	WEFT_CUDA_HOST = 3,
	WEFT_CUDA_MANAGED = 13
};

struct weft_device {
	int32_t type;
	int32_t id;
};

/*
 * A tensor in memory.  Layout and codes are those of DLPack's DLTensor, so a
 * pointer to one may be cast to the other.
 */
struct weft_tensor {
	void *data;
	struct weft_device device;
	int32_t ndim;
	struct weft_dtype dtype;
	int64_t *shape;   /* ndim lengths; may be NULL when ndim is 0 */
	int64_t *strides; /* in elements; NULL: contiguous, last index fastest */
	uint64_t byte_offset;
};

#define WEFT_KEY_BYTES_MAX 65535 /* a key's length fits 16 bits */
#define WEFT_RANK_MAX 64         /* the highest rank that travels; NumPy's own limit is 64 */

enum weft_tensor_flag {
	WEFT_DEAD = 1,      /* no content: the tensor is matched and delivered all the same */
	WEFT_OPAQUE = 2,    /* bytes that only the two ends understand; 1-D, UINT 8 */
	WEFT_SNAPSHOT = 4,  /* send: copy at once; the buffer may change directly */
	WEFT_ANY_SHAPE = 8, /* recv: @into gives memory and dtype; shape may differ if it fits */
	WEFT_SHARE = 16,    /* send: the data is in the pool, and nobody writes to it any more */
	WEFT_READONLY = 32, /* received data is a view: it must not be written to */
	/* recv: a receive that is cancelled or out of time drops the tensor that it was to get */
	WEFT_DROP = 64,
	WEFT_RECV_MANY = 128, /* recv: stay, and get every tensor of the step and key */
	WEFT_ANY_KEY = 256,  /* recv: a tensor of any key that no other receive of the step gets */
	/* recv: take the body of a broadcast from others, and pass it on: broadcast.h */
	WEFT_RELAY = 512
};

/* No stream to wait for: device memory is ready now.  DLPack's number for that. */
#define WEFT_NO_STREAM ((void *)-1)

struct weft_send_options {
	size_t size;
	struct weft_op_options op;
	unsigned flags; /* WEFT_DEAD, WEFT_OPAQUE, WEFT_SNAPSHOT, WEFT_SHARE */
	/*
	 * CUDA stream (CUstream, cudaStream_t) of device memory: work that was put on it before
	 * the call comes first.  NULL: the default stream.  Or WEFT_NO_STREAM.
	 */
	void *stream;
};
#define WEFT_SEND_OPTIONS_INIT WEFT_SIZED_OP_INIT(struct weft_send_options)

/*
 * Send @tensor to @peer.  Never blocks.  Copies @key and the shape; borrows the data until the
 * operation ends, which is when the buffer may be reused.  A strided tensor is gathered into the
 * pool by the worker, and waits if the pool is full.
 *
 * With WEFT_SHARE the data lies in memory of weft_alloc(), whole or a part of it, and stays as it
 * is until that memory is in the pool again: the caller may read it, send it again, and
 * weft_free() it at any time.  The memory is in the pool again when nobody needs it any more: no
 * operation, and no peer of this host that received it without a copy.
 *
 * WEFT_OK says, of a tensor of any length, that the data may be reused and that the tensor was
 * handed over to the peer's node; never that a receive has it, or could take it: the receive alone
 * tells that.
 *
 * Memory of a CUDA device goes directly where the rail (node.h) reaches it, else through the pool,
 * piece by piece.  Streams of the program are not touched but by a mark that is put on one, in the
 * calling thread.
 *
 * -EINVAL: bad dtype, rank, key or flags, as WEFT_SNAPSHOT with WEFT_SHARE; a shared tensor that is
 * not contiguous memory of the pool; memory that is not of the device that it is said to be of; a
 * stream that is being captured into a graph.  -ENOTSUP: another device; a snapshot, a strided or a
 * shared tensor in device memory.  -ENODEV: no CUDA here.  -ENOBUFS: the pool has no room now for a
 * snapshot, or will never have it for a strided tensor.  -EBADFD: WEFT_STRICT_NO_STAGING, and the
 * body would be copied first.  Threads: any, callback.
 */
WEFT_API int weft_send(struct weft_peer *peer, uint64_t step, const void *key,
		       size_t key_bytes, const struct weft_tensor *tensor,
		       const struct weft_send_options *options,
		       struct weft_op **op);

struct weft_recv_options {
	size_t size;
	struct weft_op_options op;
	unsigned flags; /* WEFT_ANY_SHAPE, WEFT_DROP, WEFT_RECV_MANY, WEFT_ANY_KEY, WEFT_RELAY */
	/*
	 * Returns memory for a tensor that has just been announced: @want has dtype and shape, and
	 * no data.  The callback runs on the worker, and inside weft_recv() in a manual node and in
	 * one of a single worker, must not block, and may call nothing of weft but weft_alloc().
	 * The memory stays the caller's, whatever the outcome.  NULL refuses: the operation ends
	 * with RESOURCE_EXHAUSTED.
	 */
	void *(*alloc)(void *arg, const struct weft_tensor *want, uint64_t bytes);
	void *alloc_arg;
	/* CUDA stream of device memory, as weft_send_options has it: @into is written after it. */
	void *stream;
	/*
	 * Called when the beginning of the tensor's body that is there has grown, to @bytes, so
	 * that a long one can be used while the rest is on its way.  @tensor has memory, dtype and
	 * shape.  What was told may still fail: a checksum is known at the end.  A body that comes
	 * at once is told by the end alone, and so may be the last bytes of any.  The callback runs
	 * on the worker, must not block, and may call nothing of weft.
	 */
	void (*came)(void *arg, const struct weft_tensor *tensor, uint64_t bytes);
	void *came_arg;
	unsigned many_max; /* WEFT_RECV_MANY: tensors that may be out; 0: 1024 */
};
#define WEFT_RECV_OPTIONS_INIT WEFT_SIZED_OP_INIT(struct weft_recv_options)

/*
 * Receive one tensor of @step and @key from @peer, or from any peer when @peer is NULL.  @into
 * brings the buffer, and its dtype and shape must be those of the tensor that arrives; NULL @into
 * takes memory of options->alloc, or else of the pool.  Copies @key and the shape; borrows the
 * buffer until the operation ends.
 *
 * Without @into and alloc, a tensor that a peer of this host has shared is not copied
 * (WEFT_READONLY).  The data is read where it is, until it is freed as memory of the pool is: by
 * weft_op_free(), or after weft_op_take() by weft_free().
 *
 * @into may be memory of a CUDA device: when the operation ends the tensor is there, and no copy
 * is under way.
 *
 * A receive that is cancelled, or out of time, leaves the tensor that it was to get to the next
 * receive of the channel, in its place, unless WEFT_DROP was asked for.
 *
 * A tensor that does not fit ends the operation with FAILED_PRECONDITION and is dropped; the
 * sentence gives both sides, the channel stays usable, and its send ends with WEFT_OK.
 *
 * With WEFT_ANY_KEY @key is NULL and @key_bytes 0, and the receive gets the first tensor of @step,
 * whatever its key, that no receive of that key waits for; weft_op_key() tells the key.
 *
 * With WEFT_RECV_MANY the receive stays.  Each tensor is told by the callback or queue of
 * options->op, one of which there must be, with an operation of its own, to be read and freed
 * like any.  While options->many_max of them are under way or not freed, more tensors wait in
 * their channel, as those that no receive is there for.  @into is NULL.  @op itself has no
 * deadline unless one is named.  It ends when it is cancelled, with its step, when the named peer
 * is lost, or without memory for the next tensor, never with WEFT_OK; and is told after its last,
 * to a callback as @op, which may not be NULL there and is not the callback's to free.
 *
 * -EINVAL: bad flags or key; @into is not contiguous or no tensor; a receive that stays has one,
 * has WEFT_ANY_SHAPE, WEFT_DROP or WEFT_RELAY, neither callback nor queue, or a callback and no
 * @op; WEFT_RELAY without a peer; a peer of another node.  Device memory: as weft_send().
 * -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_recv(struct weft_node *node, struct weft_peer *peer,
		       uint64_t step, const void *key, size_t key_bytes,
		       const struct weft_tensor *into,
		       const struct weft_recv_options *options,
		       struct weft_op **op);

/*
 * Returns the tensor that a receive got, valid until weft_op_free(op), or until the node closes
 * where the memory is of its pool; NULL unless the outcome is WEFT_OK, and after that close.
 * @flags, if not NULL, gets WEFT_DEAD, WEFT_OPAQUE and WEFT_READONLY; a dead or zero-element tensor
 * has data NULL.  Threads: any, callback.
 */
WEFT_API const struct weft_tensor *weft_op_tensor(const struct weft_op *op, unsigned *flags);

/*
 * Returns the peer that @op received from, or was begun with; open until the node closes, not to
 * be closed.  NULL: a receive that has no tensor, also one of a named peer, an operation with
 * several peers, or of a node that has closed.  Threads: any, callback.
 */
WEFT_API struct weft_peer *weft_op_peer(const struct weft_op *op);

/*
 * Keep the pool memory of a received tensor beyond weft_op_free(): returns it owned, to be freed
 * by weft_free().  NULL: the memory is not of the pool, or was taken before.
 * Threads: any, callback.
 */
WEFT_API void *weft_op_take(struct weft_op *op);

/*
 * Compute the bytes of one element times @tensor's shape.  -EINVAL, -EOVERFLOW.
 * Threads: any, callback.
 */
WEFT_API int weft_tensor_bytes(const struct weft_tensor *tensor, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
