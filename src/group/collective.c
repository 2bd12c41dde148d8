/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives, as lists of sends and receives between all pairs of processes.
 *
 * A body of an all_reduce is cut into a slice for each process, which combines the others' parts of
 * it, and sends the result to all: each byte leaves and enters a process about twice, in two rounds,
 * however many processes there are.  A short one is sent whole to everybody, in one round.
 */
#include <errno.h>
#include <string.h>

#include "core/check.h"
#include "core/tensor.h"
#include "group/exchange.h"
#include "group/internal.h"
#include "tensor/shape.h"

/* Bytes that all processes get of an all_reduce in one round: below, rounds are dear; not tuned. */
#define WHOLE_BYTES_MAX (64 * 1024)

/*
 * Bytes that are sent by themselves, and combined at once.  64 MiB over four processes on two cores
 * took 103, 66, 61, 55 and 58 ms over shm with pieces of 64 KiB, 256 KiB, 1 MiB, 4 MiB and all of a
 * slice, and 265, 146, 118, 99 and 98 over tcp: what each piece costs by itself outweighs that it
 * stays in the cache.  In a large group pieces are smaller, as all of two come to one process at
 * once.
 */
#define PIECE_BYTES_MAX (4 * 1024 * 1024)
#define PIECE_BYTES_MIN (64 * 1024)
#define PIECES_BYTES (16 * 1024 * 1024)

/* Arguments, checked. */
struct body {
	const unsigned char *in;
	unsigned char *out;
	size_t in_bytes, out_bytes;
	size_t count;        /* elements of @in */
	uint32_t size;       /* processes */
	struct wf_reduce reduce;
};

static int check_tensor(const struct weft_tensor *t, const char *which, unsigned char **data,
			size_t *bytes)
{
	uint64_t length;
	int err = wf_tensor_check(t, &length);

	if (err)
		return err;
	if (!wf_shape_contiguous(t))
		return wf_last_set(-EINVAL, "%s of a collective is not contiguous", which);
	if (t->device.type != WEFT_CPU && t->device.type != WEFT_CUDA_HOST)
		return wf_last_set(-ENOTSUP, "%s of a collective is in the memory of a device", which);
	*data = (unsigned char *)t->data + t->byte_offset;
	*bytes = length;
	return 0;
}

/* Check what a process gives and gets; NULL for what it has no part in. */
static int check_body(struct weft_group *group, const struct weft_tensor *in,
		      const struct weft_tensor *out, struct body *body)
{
	unsigned char *data = NULL;
	int err = WF_NEED(group) ? -EINVAL : wf_check_node(group->node);

	*body = (struct body){ .size = err ? 0 : group->job.size };
	if (!err && in)
		err = check_tensor(in, "the tensor", &data, &body->in_bytes);
	body->in = data;
	if (!err && out)
		err = check_tensor(out, "the result", &body->out, &body->out_bytes);
	if (!err && in && out && memcmp(&in->dtype, &out->dtype, sizeof(in->dtype)))
		err = wf_last_set(-EINVAL, "a collective of two dtypes");
	return err;
}

static int check_reduction(const struct weft_tensor *in, enum weft_reduction reduction,
			   struct body *body)
{
	struct wf_error e;

	if (wf_reduce_find(in->dtype, reduction, &body->reduce, &e))
		return wf_last_copy(&e);
	body->count = body->in_bytes / body->reduce.element_bytes;
	return 0;
}

/* Check that @whole has the bytes of a @part of each process. */
static int check_parts(const struct weft_group *group, size_t whole, size_t part)
{
	if (whole == part * group->job.size)
		return 0;
	return wf_last_set(-EINVAL, "%zu bytes are no %u parts of %zu", whole, group->job.size, part);
}

static int check_root(const struct weft_group *group, uint32_t root)
{
	if (WF_NEED(group))
		return -EINVAL;
	if (root < group->job.size)
		return 0;
	return wf_last_set(-EINVAL, "rank %u of a group of %u", root, group->job.size);
}

/* Slices */

/* Elements of a slice from @first on. */
struct slice {
	size_t first, count, pieces;
};

/* Elements of each slice but the last.  No two slices share a line of the cache. */
static size_t equal_part(size_t count, uint32_t size)
{
	return ((count + size - 1) / size + 63) / 64 * 64;
}

/* Elements of a piece of @body, a power of two of them. */
static size_t piece_length(const struct body *body)
{
	size_t bytes = PIECE_BYTES_MAX;

	while (bytes > PIECE_BYTES_MIN && bytes * (body->size - 1) > PIECES_BYTES)
		bytes /= 2;
	return bytes / body->reduce.element_bytes;
}

/* The slice of @rank, of @each elements as long as there are so many. */
static struct slice slice_of(const struct body *body, size_t each, uint32_t rank)
{
	size_t piece = piece_length(body);
	size_t first = WF_MIN(rank * each, body->count), count = WF_MIN(body->count - first, each);

	return (struct slice){ .first = first, .count = count, .pieces = (count + piece - 1) / piece };
}

/* Elements of piece number @index of @slice. */
static struct slice piece_of(const struct body *body, const struct slice *slice, size_t index)
{
	size_t piece = piece_length(body);
	struct slice p = { .first = slice->first + index * piece };

	p.count = WF_MIN(slice->count - index * piece, piece);
	return p;
}

/* Add to @x what goes to all others, or comes from all, of this process's and their slices. */
struct slices {
	struct wf_exchange *x;
	const struct body *body;
	uint32_t self, size;
	bool share; /* each sends its result to all */
};

/* Numbers of transfers: parts of piece number i have 2 i, and its result 2 i + 1. */
static void add_own(const struct slices *s, const struct slice *own, unsigned char *out)
{
	const struct wf_reduce *reduce = &s->body->reduce;

	for (size_t i = 0; i < own->pieces; i++) {
		struct slice piece = piece_of(s->body, own, i);
		size_t bytes = piece.count * reduce->element_bytes;
		unsigned char *to = out + (piece.first - own->first) * reduce->element_bytes;
		uint32_t cell = wf_exchange_cell(s->x, reduce,
						 s->body->in + piece.first * reduce->element_bytes,
						 to, piece.count);

		for (uint32_t rank = 0; rank < s->size; rank++)
			if (rank != s->self)
				wf_exchange_recv_for_cell(s->x, rank, (uint32_t)(2 * i), bytes);
		for (uint32_t rank = 0; rank < s->size && s->share; rank++)
			if (rank != s->self)
				wf_exchange_send(s->x, rank, (uint32_t)(2 * i + 1), to, bytes, cell);
	}
}

static void add_other(const struct slices *s, uint32_t rank, const struct slice *slice)
{
	const struct wf_reduce *reduce = &s->body->reduce;

	for (size_t i = 0; i < slice->pieces; i++) {
		struct slice piece = piece_of(s->body, slice, i);
		size_t at = piece.first * reduce->element_bytes;
		size_t bytes = piece.count * reduce->element_bytes;

		wf_exchange_send(s->x, rank, (uint32_t)(2 * i), s->body->in + at, bytes,
				 WF_EXCHANGE_AT_ONCE);
		if (s->share)
			wf_exchange_recv(s->x, rank, (uint32_t)(2 * i + 1), s->body->out + at, bytes);
	}
}

/* Cut @body into a slice of @each elements for every process, as the exchange @kind. */
static int cut(struct weft_group *group, enum wf_exchange_kind kind, const struct body *body,
	       size_t each, bool share, struct wf_exchange **x)
{
	uint32_t size = group->job.size, self = group->job.rank;
	struct slice own = slice_of(body, each, self);
	struct slices s = { .body = body, .self = self, .size = size, .share = share };
	size_t others = 0;
	int err;

	for (uint32_t rank = 0; rank < size; rank++)
		if (rank != self)
			others += slice_of(body, each, rank).pieces;
	err = wf_exchange_new(group, kind, 2 * (others + own.pieces * (size - 1)), own.pieces, x);
	if (err)
		return err;
	s.x = *x;
	add_own(&s, &own, share ? body->out + own.first * body->reduce.element_bytes : body->out);
	/* Each begins with the one after it, so that not all send to the same. */
	for (uint32_t i = 1; i < size; i++) {
		uint32_t rank = (self + i) % size;
		struct slice slice = slice_of(body, each, rank);

		add_other(&s, rank, &slice);
	}
	return 0;
}

/* Send all of @body to all, to be combined by each. */
static int send_whole(struct weft_group *group, const struct body *body, struct wf_exchange **x)
{
	uint32_t size = group->job.size, self = group->job.rank, cell;
	int err = wf_exchange_new(group, WF_EXCHANGE_ALL_REDUCE, 2 * size, 1, x);

	if (err)
		return err;
	cell = wf_exchange_cell(*x, &body->reduce, body->in, body->out, body->count);
	for (uint32_t rank = 0; rank < size; rank++)
		if (rank != self)
			wf_exchange_recv_for_cell(*x, rank, 0, body->in_bytes);
	for (uint32_t i = 1; i < size; i++) {
		wf_exchange_send(*x, (self + i) % size, 0, body->in, body->in_bytes,
				 WF_EXCHANGE_AT_ONCE);
		if (body->in == body->out)
			wf_exchange_hold(*x, cell);
	}
	return 0;
}

/* Copy this process's own part, which goes over no fabric. */
static void copy_own(unsigned char *to, const unsigned char *from, size_t bytes)
{
	if (to != from && bytes)
		memmove(to, from, bytes);
}

/* Begin @x, which combines @body.  The only process of a group has all there is. */
static int launch_reduction(struct weft_group *group, const struct body *body,
			    struct wf_exchange *x, const struct weft_op_options *options,
			    struct weft_op **op)
{
	if (group->job.size == 1)
		copy_own(body->out, body->in, body->in_bytes);
	return wf_exchange_launch(x, options, op);
}

int weft_all_reduce(struct weft_group *group, const struct weft_tensor *in,
		    const struct weft_tensor *out, enum weft_reduction reduction,
		    const struct weft_op_options *options, struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	int err;

	if (WF_NEED(in) || WF_NEED(out))
		return -EINVAL;
	err = check_body(group, in, out, &body);
	if (!err)
		err = check_reduction(in, reduction, &body);
	if (!err && body.in_bytes != body.out_bytes)
		err = wf_last_set(-EINVAL, "%zu bytes do not become %zu", body.in_bytes, body.out_bytes);
	if (!err && body.in_bytes * (group->job.size - 1) <= WHOLE_BYTES_MAX)
		err = send_whole(group, &body, &x);
	else if (!err)
		err = cut(group, WF_EXCHANGE_ALL_REDUCE, &body, equal_part(body.count, group->job.size),
			  true, &x);
	return err ? err : launch_reduction(group, &body, x, options, op);
}

int weft_reduce_scatter(struct weft_group *group, const struct weft_tensor *in,
			const struct weft_tensor *out, enum weft_reduction reduction,
			const struct weft_op_options *options, struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	int err;

	if (WF_NEED(in) || WF_NEED(out))
		return -EINVAL;
	err = check_body(group, in, out, &body);
	if (!err)
		err = check_parts(group, body.in_bytes, body.out_bytes);
	if (!err)
		err = check_reduction(in, reduction, &body);
	if (!err)
		err = cut(group, WF_EXCHANGE_REDUCE_SCATTER, &body, body.count / group->job.size, false,
			  &x);
	return err ? err : launch_reduction(group, &body, x, options, op);
}

/* Combine all of @body at @root: there, or from here. */
static int send_to_root(struct weft_group *group, uint32_t root, const struct body *body,
			struct wf_exchange **x)
{
	uint32_t size = group->job.size, self = group->job.rank;
	struct slice all = slice_of(body, body->count, 0);
	int err = wf_exchange_new(group, WF_EXCHANGE_REDUCE, all.pieces * size, all.pieces, x);

	if (!err && self == root) {
		struct slices s = { .x = *x, .body = body, .self = self, .size = size };

		add_own(&s, &all, body->out);
	} else if (!err) {
		struct slices s = { .x = *x, .body = body };

		add_other(&s, root, &all);
	}
	return err;
}

int weft_reduce(struct weft_group *group, uint32_t root, const struct weft_tensor *in,
		const struct weft_tensor *out, enum weft_reduction reduction,
		const struct weft_op_options *options, struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	int err;

	if (check_root(group, root) || WF_NEED(in) ||
	    (root == group->job.rank && WF_NEED(out)))
		return -EINVAL;
	err = check_body(group, in, root == group->job.rank ? out : NULL, &body);
	if (!err)
		err = check_reduction(in, reduction, &body);
	if (!err && body.out && body.in_bytes != body.out_bytes)
		err = wf_last_set(-EINVAL, "%zu bytes do not become %zu", body.in_bytes, body.out_bytes);
	if (!err)
		err = send_to_root(group, root, &body, &x);
	return err ? err : launch_reduction(group, &body, x, options, op);
}

/* Collectives that combine nothing */

/*
 * Exchange parts of @part bytes with all others, as @kind: each part of @out comes from its rank, and
 * each rank gets the part of @in that is its rank times @apart behind the beginning.
 */
static int exchange_parts(struct weft_group *group, enum wf_exchange_kind kind,
			  const struct body *body, size_t part, size_t apart, struct wf_exchange **x)
{
	uint32_t size = group->job.size, self = group->job.rank;
	int err = wf_exchange_new(group, kind, 2 * size, 0, x);

	for (uint32_t i = 1; i < size && !err; i++) {
		uint32_t rank = (self + i) % size;

		wf_exchange_recv(*x, rank, 0, body->out + rank * part, part);
		wf_exchange_send(*x, rank, 0, body->in + rank * apart, part, WF_EXCHANGE_AT_ONCE);
	}
	if (!err)
		copy_own(body->out + self * part, body->in + self * apart, part);
	return err;
}

int weft_all_gather(struct weft_group *group, const struct weft_tensor *in,
		    const struct weft_tensor *out, const struct weft_op_options *options,
		    struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	int err;

	if (WF_NEED(in) || WF_NEED(out))
		return -EINVAL;
	err = check_body(group, in, out, &body);
	if (!err)
		err = check_parts(group, body.out_bytes, body.in_bytes);
	if (!err)
		err = exchange_parts(group, WF_EXCHANGE_ALL_GATHER, &body, body.in_bytes, 0, &x);
	return err ? err : wf_exchange_launch(x, options, op);
}

static int gather_at(struct weft_group *group, uint32_t root, const struct body *body,
		     struct wf_exchange **x)
{
	uint32_t size = group->job.size, self = group->job.rank;
	int err = wf_exchange_new(group, WF_EXCHANGE_GATHER, size, 0, x);

	if (err)
		return err;
	if (self != root) {
		wf_exchange_send(*x, root, 0, body->in, body->in_bytes, WF_EXCHANGE_AT_ONCE);
		return 0;
	}
	for (uint32_t rank = 0; rank < size; rank++)
		if (rank != self)
			wf_exchange_recv(*x, rank, 0, body->out + rank * body->in_bytes,
					 body->in_bytes);
	copy_own(body->out + self * body->in_bytes, body->in, body->in_bytes);
	return 0;
}

int weft_gather(struct weft_group *group, uint32_t root, const struct weft_tensor *in,
		const struct weft_tensor *out, const struct weft_op_options *options,
		struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	bool here;
	int err;

	if (check_root(group, root) || WF_NEED(in))
		return -EINVAL;
	here = root == group->job.rank;
	if (here && WF_NEED(out))
		return -EINVAL;
	err = check_body(group, in, here ? out : NULL, &body);
	if (!err && here)
		err = check_parts(group, body.out_bytes, body.in_bytes);
	if (!err)
		err = gather_at(group, root, &body, &x);
	return err ? err : wf_exchange_launch(x, options, op);
}

static int scatter_from(struct weft_group *group, uint32_t root, const struct body *body,
			struct wf_exchange **x)
{
	uint32_t size = group->job.size, self = group->job.rank;
	int err = wf_exchange_new(group, WF_EXCHANGE_SCATTER, size, 0, x);

	if (err)
		return err;
	if (self != root) {
		wf_exchange_recv(*x, root, 0, body->out, body->out_bytes);
		return 0;
	}
	for (uint32_t i = 1; i < size; i++) {
		uint32_t rank = (self + i) % size;

		wf_exchange_send(*x, rank, 0, body->in + rank * body->out_bytes, body->out_bytes,
				 WF_EXCHANGE_AT_ONCE);
	}
	copy_own(body->out, body->in + self * body->out_bytes, body->out_bytes);
	return 0;
}

int weft_scatter(struct weft_group *group, uint32_t root, const struct weft_tensor *in,
		 const struct weft_tensor *out, const struct weft_op_options *options,
		 struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	bool here;
	int err;

	if (check_root(group, root) || WF_NEED(out))
		return -EINVAL;
	here = root == group->job.rank;
	if (here && WF_NEED(in))
		return -EINVAL;
	err = check_body(group, here ? in : NULL, out, &body);
	if (!err && here)
		err = check_parts(group, body.in_bytes, body.out_bytes);
	if (!err)
		err = scatter_from(group, root, &body, &x);
	return err ? err : wf_exchange_launch(x, options, op);
}

static size_t scalar_bytes(const struct weft_tensor *t)
{
	uint64_t bytes = 1;

	(void)wf_shape_bytes(t->dtype, 0, NULL, &bytes);
	return (size_t)bytes;
}

int weft_all_to_all(struct weft_group *group, const struct weft_tensor *in,
		    const struct weft_tensor *out, const struct weft_op_options *options,
		    struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	size_t part;
	int err;

	if (WF_NEED(in) || WF_NEED(out))
		return -EINVAL;
	err = check_body(group, in, out, &body);
	if (!err && (body.in_bytes != body.out_bytes ||
		     body.in_bytes % (scalar_bytes(in) * group->job.size)))
		err = wf_last_set(-EINVAL, "%zu bytes do not go to %u processes and come as %zu",
				  body.in_bytes, group->job.size, body.out_bytes);
	if (!err && body.in == body.out && group->job.size > 1 && body.in_bytes)
		err = wf_last_set(-EINVAL, "an all_to_all in place");
	if (err)
		return err;
	part = body.in_bytes / group->job.size;
	err = exchange_parts(group, WF_EXCHANGE_ALL_TO_ALL, &body, part, part, &x);
	return err ? err : wf_exchange_launch(x, options, op);
}

static int broadcast_from(struct weft_group *group, uint32_t root, const struct body *body,
			  struct wf_exchange **x)
{
	uint32_t size = group->job.size, self = group->job.rank;
	int err = wf_exchange_new(group, WF_EXCHANGE_BROADCAST, size, 0, x);

	if (!err && self != root)
		wf_exchange_recv(*x, root, 0, body->out, body->out_bytes);
	for (uint32_t i = 1; i < size && !err && self == root; i++)
		wf_exchange_send(*x, (self + i) % size, 0, body->out, body->out_bytes,
				 WF_EXCHANGE_AT_ONCE);
	return err;
}

int weft_group_broadcast(struct weft_group *group, uint32_t root, const struct weft_tensor *tensor,
			 const struct weft_op_options *options, struct weft_op **op)
{
	struct wf_exchange *x;
	struct body body;
	int err;

	if (check_root(group, root) || WF_NEED(tensor))
		return -EINVAL;
	err = check_body(group, NULL, tensor, &body);
	if (!err)
		err = broadcast_from(group, root, &body, &x);
	return err ? err : wf_exchange_launch(x, options, op);
}

int weft_barrier(struct weft_group *group, const struct weft_op_options *options,
		 struct weft_op **op)
{
	const struct body nothing = { 0 };
	struct wf_exchange *x;
	int err = WF_NEED(group) ? -EINVAL : wf_check_node(group->node);

	if (!err)
		err = exchange_parts(group, WF_EXCHANGE_BARRIER, &nothing, 0, 0, &x);
	return err ? err : wf_exchange_launch(x, options, op);
}
