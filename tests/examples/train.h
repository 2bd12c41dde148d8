/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A training, in whatever processes it is done: the settings, the images of each
 * worker and step, and the whole training in one process.
 */
#ifndef TRAIN_H
#define TRAIN_H

#include <stdbool.h>

#include "mlp.h"
#include "sentence.h"

#define TRAIN_BATCH_MAX 4096
#define TRAIN_STEPS_MAX 1000000000

struct train {
	unsigned workers;
	bool sync;
	uint64_t steps; /* steps of each worker */
	uint32_t batch; /* images that a worker takes in a step */
	uint64_t seed;  /* seed of images, first parameters and batches */
	float rate;     /* how far a step goes down the mean gradient */
};

/*
 * The images to learn from and to test with: MNIST's in @directory, or drawn
 * where that is NULL.  @test may be NULL.  A negative errno: @why.
 */
int train_images(const struct train *t, const char *directory,
		 struct images *learn, struct images *test,
		 struct sentence *why);

/* The numbers of the t->batch images, of @count, for this worker and step. */
void train_pick(const struct train *t, unsigned worker, uint64_t step,
		uint32_t count, uint32_t *pick);

/* The factor for the sum of @gradients_count workers' gradients. */
float train_rate(const struct train *t, unsigned gradients_count);

/*
 * Train synchronously in this process alone, with the same sums in the same order
 * as in many.  -ENOMEM.
 */
int train_alone(const struct train *t, const struct images *learn,
		struct mlp *m);

/*
 * Compare, bit for bit.  -EDOM: @why names the first float that differs.
 */
int train_compare(struct mlp *here, struct mlp *alone, struct sentence *why);

#endif
