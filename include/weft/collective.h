/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives: operations that all processes of a group begin together.
 *
 * Each process begins the same collectives of a group in the same order, with tensors of one dtype
 * and one size; no two of a group begin at once in two threads.  Like every operation a collective
 * has a deadline and ends once.  One that fails, is cancelled or out of time in one process fails in
 * all where it has not ended yet, and so do all later ones of that group: what is in the tensors
 * then says nothing.
 *
 * Tensors lie in host memory (WEFT_CPU, WEFT_CUDA_HOST), contiguous, and are borrowed until the
 * operation ends.
 */
#ifndef WEFT_COLLECTIVE_H
#define WEFT_COLLECTIVE_H

#include <weft/group.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ways to combine numbers. */
enum weft_reduction {
	WEFT_SUM = 0,
	WEFT_AVERAGE = 1, /* floating point alone has averages */
	WEFT_PRODUCT = 2,
	WEFT_MIN = 3,
	WEFT_MAX = 4,
	WEFT_BIT_AND = 5, /* integers and booleans alone have bits */
	WEFT_BIT_OR = 6,
	WEFT_BIT_XOR = 7
};

/*
 * Combine the tensors @in of all processes element by element into @out, which may be @in.  Every
 * process gets the same bits.  Integers, booleans and numbers of floating point: float16, bfloat16,
 * float32, float64, and complex ones of two of the last two, which have sums and averages.
 * -EINVAL: @in and @out differ in dtype or size; this dtype is not combined so.  Threads: any,
 * callback.
 */
WEFT_API int weft_all_reduce(struct weft_group *group, const struct weft_tensor *in,
			     const struct weft_tensor *out, enum weft_reduction reduction,
			     const struct weft_op_options *options, struct weft_op **op);

/* Combine as weft_all_reduce() does, into @out of rank @root alone; others may give NULL. */
WEFT_API int weft_reduce(struct weft_group *group, uint32_t root, const struct weft_tensor *in,
			 const struct weft_tensor *out, enum weft_reduction reduction,
			 const struct weft_op_options *options, struct weft_op **op);

/*
 * Combine as weft_all_reduce() does: of @in, which has as many equal parts as there are processes,
 * each gets the part of its rank in @out, which may be that part.
 */
WEFT_API int weft_reduce_scatter(struct weft_group *group, const struct weft_tensor *in,
				 const struct weft_tensor *out, enum weft_reduction reduction,
				 const struct weft_op_options *options, struct weft_op **op);

/*
 * Collect the tensors @in of all processes, by rank, one after the other in @out of each; @in may be
 * its place there.
 */
WEFT_API int weft_all_gather(struct weft_group *group, const struct weft_tensor *in,
			     const struct weft_tensor *out, const struct weft_op_options *options,
			     struct weft_op **op);

/* Collect as weft_all_gather() does, in @out of rank @root alone; others may give NULL. */
WEFT_API int weft_gather(struct weft_group *group, uint32_t root, const struct weft_tensor *in,
			 const struct weft_tensor *out, const struct weft_op_options *options,
			 struct weft_op **op);

/* Give each process the part of its rank of @in of rank @root, for which others may give NULL. */
WEFT_API int weft_scatter(struct weft_group *group, uint32_t root, const struct weft_tensor *in,
			  const struct weft_tensor *out, const struct weft_op_options *options,
			  struct weft_op **op);

/* Give each process part number @rank of @in of every process, by rank, in @out; not in place. */
WEFT_API int weft_all_to_all(struct weft_group *group, const struct weft_tensor *in,
			     const struct weft_tensor *out, const struct weft_op_options *options,
			     struct weft_op **op);

/* Give every process the tensor of rank @root, in @tensor of each. */
WEFT_API int weft_group_broadcast(struct weft_group *group, uint32_t root,
				  const struct weft_tensor *tensor,
				  const struct weft_op_options *options, struct weft_op **op);

/* End when every process of the group has begun this barrier. */
WEFT_API int weft_barrier(struct weft_group *group, const struct weft_op_options *options,
			  struct weft_op **op);

#ifdef __cplusplus
}
#endif
#endif
