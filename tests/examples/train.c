/* SPDX-License-Identifier: BSD-2-Clause */
#include "train.h"

#include <errno.h>
#include <string.h>

#include "digits.h"
#include "idx.h"
#include "rng.h"

#define LEARN_COUNT 8000 /* images to draw, in a tenth of a second */
#define TEST_COUNT 2000

/* Each use of the seed draws from a sequence of its own. */
#define SEED_TEST 0x7465737400000000
#define SEED_PICK 0x7069636b00000000

int train_images(const struct train *t, const char *directory,
		 struct images *learn, struct images *test,
		 struct sentence *why)
{
	struct images first = { 0 }, second = { 0 };
	int err;

	if (directory) {
		err = idx_read(directory, "train", &first, why);
		if (!err && test)
			err = idx_read(directory, "t10k", &second, why);
	} else {
		err = digits_draw(t->seed, LEARN_COUNT, &first);
		if (!err && test)
			err = digits_draw(t->seed ^ SEED_TEST, TEST_COUNT,
					  &second);
		if (err)
			sentence_set(why, err, "no memory for images");
	}
	if (err) {
		images_fini(&first);
		return err;
	}

	*learn = first;
	if (test)
		*test = second;
	return 0;
}

void train_pick(const struct train *t, unsigned worker, uint64_t step,
		uint32_t count, uint32_t *pick)
{
	/* Any worker's batch of any step can be told without those before. */
	struct rng start = { t->seed ^ SEED_PICK };
	struct rng r = { rng_next(&start) + step * t->workers + worker };

	r.state = rng_next(&r);
	for (uint32_t i = 0; i < t->batch; i++)
		pick[i] = (uint32_t)(rng_next(&r) % count);
}

float train_rate(const struct train *t, unsigned gradients_count)
{
	return t->rate / (float)(t->batch * gradients_count);
}

int train_alone(const struct train *t, const struct images *learn,
		struct mlp *m)
{
	struct mlp *gradients = calloc(t->workers, sizeof(*gradients));
	uint32_t *pick = calloc(t->batch, sizeof(*pick));
	float **parts = calloc(t->workers, sizeof(*parts));
	int err = -ENOMEM;

	if (!gradients || !pick || !parts)
		goto free_memory;

	mlp_begin(m, t->seed);
	for (uint64_t step = 0; step < t->steps; step++) {
		for (unsigned w = 0; w < t->workers; w++) {
			train_pick(t, w, step, learn->count, pick);
			mlp_gradient(m, learn, pick, t->batch, &gradients[w]);
		}
		for (unsigned v = 0; v < MLP_VARIABLES; v++) {
			for (unsigned w = 0; w < t->workers; w++)
				parts[w] = mlp_values(&gradients[w], v);
			mlp_descend(mlp_values(m, v), parts, t->workers,
				    mlp_variables[v].count,
				    train_rate(t, t->workers));
		}
	}
	err = 0;

free_memory:
	free(parts);
	free(pick);
	free(gradients);
	return err;
}

int train_compare(struct mlp *here, struct mlp *alone, struct sentence *why)
{
	for (unsigned v = 0; v < MLP_VARIABLES; v++) {
		const float *a = mlp_values(here, v);
		const float *b = mlp_values(alone, v);

		for (size_t i = 0; i < mlp_variables[v].count; i++) {
			/* Not !=: that would call 0 and -0 the same. */
			if (memcmp(&a[i], &b[i], sizeof(a[i])) == 0)
				continue;
			return sentence_set(why, -EDOM,
					    "verify: %s[%zu] is %a, and %a when "
					    "one process does it all",
					    mlp_variables[v].name, i,
					    (double)a[i], (double)b[i]);
		}
	}
	return 0;
}
