/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A perceptron with one hidden layer, 784-100-10: ReLU, softmax, cross
 * entropy, and plain gradient descent.
 *
 * Every sum of floats has one fixed order, so that the same steps give the
 * same bits, whether one process does them or many.  Holds for one binary on
 * processors of one kind; do not compile with -ffast-math.
 */
#ifndef MLP_H
#define MLP_H

#include <stddef.h>

#include "images.h"

#define MLP_HIDDEN 100 /* a multiple of 4, so that compilers use vectors */
#define MLP_VARIABLES 4

/* Parameters, or a gradient, which has the same form. */
struct mlp {
	float w1[IMAGE_PIXELS][MLP_HIDDEN];
	float b1[MLP_HIDDEN];
	float w2[MLP_HIDDEN][IMAGE_LABELS];
	float b2[IMAGE_LABELS];
};

/* A variable of the model: the unit that servers hold and that travels. */
struct mlp_variable {
	const char *name;
	size_t offset; /* in struct mlp */
	size_t count;  /* count of floats */
	int32_t ndim;
	int64_t shape[2];
};

extern const struct mlp_variable mlp_variables[MLP_VARIABLES];

/* Variable @v of @m. */
static inline float *mlp_values(struct mlp *m, unsigned v)
{
	return (float *)((char *)m + mlp_variables[v].offset);
}

/* Draw parameters to begin with. */
void mlp_begin(struct mlp *m, uint64_t seed);

/*
 * Add up the gradients of @count images of @set, those that @pick numbers, into
 * @gradient, which is overwritten.  Returns the sum of their losses.
 */
float mlp_gradient(const struct mlp *m, const struct images *set,
		   const uint32_t *pick, uint32_t count, struct mlp *gradient);

/*
 * Step down: @values -= @rate * (gradients[0] + gradients[1] + ...), in that
 * order.  All have @count floats.
 */
void mlp_descend(float *values, float *const *gradients,
		 unsigned gradients_count, size_t count, float rate);

/* The share of @set that @m names right, 0 to 1. */
double mlp_accuracy(const struct mlp *m, const struct images *set);

#endif
