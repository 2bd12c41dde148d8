/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/examples/digits.h"

static void the_same_seed_draws_the_same_images(void **state)
{
	struct images a, b, c;

	(void)state;
	assert_int_equal(digits_draw(7, 50, &a), 0);
	assert_int_equal(digits_draw(7, 50, &b), 0);
	assert_int_equal(digits_draw(8, 50, &c), 0);

	assert_memory_equal(a.pixels, b.pixels, 50 * IMAGE_PIXELS);
	assert_memory_equal(a.labels, b.labels, 50);
	assert_memory_not_equal(a.pixels, c.pixels, 50 * IMAGE_PIXELS);

	images_fini(&a);
	images_fini(&b);
	images_fini(&c);
}

/*
 * The mean image of a digit is nearer to every other mean image of the same
 * digit than to that of any other digit: the strokes do tell digits apart.
 */
static void digits_look_like_themselves(void **state)
{
	static double mean[2][IMAGE_LABELS][IMAGE_PIXELS];
	unsigned seen[2][IMAGE_LABELS] = { 0 };

	(void)state;
	for (int half = 0; half < 2; half++) {
		struct images set;

		assert_int_equal(digits_draw(half, 1000, &set), 0);
		for (uint32_t i = 0; i < set.count; i++) {
			seen[half][set.labels[i]]++;
			for (int p = 0; p < IMAGE_PIXELS; p++)
				mean[half][set.labels[i]][p] +=
					set.pixels[i * IMAGE_PIXELS + p];
		}
		images_fini(&set);
	}

	for (int a = 0; a < IMAGE_LABELS; a++) {
		double distance[IMAGE_LABELS] = { 0 };

		for (int b = 0; b < IMAGE_LABELS; b++) {
			assert_true(seen[0][a] > 50 && seen[1][b] > 50);
			for (int p = 0; p < IMAGE_PIXELS; p++) {
				double d = mean[0][a][p] / seen[0][a] -
					   mean[1][b][p] / seen[1][b];

				distance[b] += d * d;
			}
		}
		for (int b = 0; b < IMAGE_LABELS; b++)
			assert_true(b == a || distance[a] < distance[b]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_seed_draws_the_same_images),
		cmocka_unit_test(digits_look_like_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
