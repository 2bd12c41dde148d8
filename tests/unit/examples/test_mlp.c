/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/examples/digits.h"
#include "tests/examples/train.h"

/*
 * Moving one parameter a little changes the loss as its gradient says.  In
 * float, and with ReLU's corners, one per cent is what can be asked.
 */
static void the_gradient_is_the_slope_of_the_loss(void **state)
{
	const uint32_t pick[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const float nudge = 1.0f / 128;
	struct mlp *m = malloc(sizeof(*m)), *g = malloc(sizeof(*g));
	struct mlp *unused = malloc(sizeof(*unused));
	struct images set;

	(void)state;
	assert_non_null(m);
	assert_non_null(g);
	assert_non_null(unused);
	assert_int_equal(digits_draw(3, 8, &set), 0);
	mlp_begin(m, 3);
	mlp_gradient(m, &set, pick, 8, g);

	for (unsigned v = 0; v < MLP_VARIABLES; v++) {
		float *values = mlp_values(m, v), *slopes = mlp_values(g, v);
		size_t steepest = 0;
		float up, down, kept;

		for (size_t i = 1; i < mlp_variables[v].count; i++) {
			if (fabsf(slopes[i]) > fabsf(slopes[steepest]))
				steepest = i;
		}
		kept = values[steepest];
		values[steepest] = kept + nudge;
		up = mlp_gradient(m, &set, pick, 8, unused);
		values[steepest] = kept - nudge;
		down = mlp_gradient(m, &set, pick, 8, unused);
		values[steepest] = kept;

		assert_float_equal((up - down) / (2 * nudge) / slopes[steepest],
				   1, 0.01);
	}
	images_fini(&set);
	free(unused);
	free(g);
	free(m);
}

static void gradients_are_added_in_their_order(void **state)
{
	/* (1e8 + -1e8) + 1 is 1; any other order loses the one. */
	float a = 1e8f, b = -1e8f, c = 1, value = 0;
	float *in_order[] = { &a, &b, &c }, *another[] = { &a, &c, &b };

	(void)state;
	mlp_descend(&value, in_order, 3, 1, .5f);
	assert_true(value == -.5f);

	value = 0;
	mlp_descend(&value, another, 3, 1, .5f);
	assert_true(value == 0);
}

static void two_hundred_steps_learn_to_read(void **state)
{
	const struct train t = { .workers = 2, .sync = true, .steps = 200,
				 .batch = 32, .seed = 5, .rate = .2f };
	struct images learn, test;
	struct sentence why = { 0 };
	struct mlp *m = malloc(sizeof(*m));

	(void)state;
	assert_non_null(m);
	assert_int_equal(train_images(&t, NULL, &learn, &test, &why), 0);
	assert_int_equal(train_alone(&t, &learn, m), 0);

	/* On images that it has not seen; guessing gives 0.1. */
	assert_true(mlp_accuracy(m, &test) > .9);

	images_fini(&learn);
	images_fini(&test);
	free(m);
}

static void a_difference_of_one_bit_is_found_and_named(void **state)
{
	struct mlp *a = malloc(sizeof(*a)), *b = malloc(sizeof(*b));
	struct sentence why = { 0 };

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	mlp_begin(a, 1);
	mlp_begin(b, 1);
	assert_int_equal(train_compare(a, b, &why), 0);

	a->b2[3] = -0.0f; /* equal to 0, but another pattern of bits */
	assert_int_not_equal(train_compare(a, b, &why), 0);
	assert_non_null(strstr(why.text, "b2[3]"));

	free(b);
	free(a);
}

static void workers_and_steps_take_different_images(void **state)
{
	const struct train t = { .workers = 2, .batch = 64, .seed = 1 };
	uint32_t first[64], again[64], other[64], later[64];

	(void)state;
	train_pick(&t, 0, 9, 8000, first);
	train_pick(&t, 0, 9, 8000, again);
	train_pick(&t, 1, 9, 8000, other);
	train_pick(&t, 0, 10, 8000, later);

	assert_memory_equal(first, again, sizeof(first));
	assert_memory_not_equal(first, other, sizeof(first));
	assert_memory_not_equal(first, later, sizeof(first));
	assert_memory_not_equal(other, later, sizeof(first));
	for (int i = 0; i < 64; i++)
		assert_true(first[i] < 8000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gradient_is_the_slope_of_the_loss),
		cmocka_unit_test(gradients_are_added_in_their_order),
		cmocka_unit_test(two_hundred_steps_learn_to_read),
		cmocka_unit_test(a_difference_of_one_bit_is_found_and_named),
		cmocka_unit_test(workers_and_steps_take_different_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
