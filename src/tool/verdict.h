/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdict on a value of a setting, from rounds in which it ran beside the present value.
 *
 * A measure is a time or a rate of one size of body.  A ratio is the speed with the value as a
 * multiple of the speed with the present one, in the same round; more than 1 is better.
 *
 * Pure: no clock, no I/O.  Threads: any.
 */
#ifndef TOOL_VERDICT_H
#define TOOL_VERDICT_H

#include <stddef.h>

/*
 * Rounds for a verdict.  By chance alone a value is better in all of four rounds, or in all but one
 * of seven, once in 16 times.
 */
#define VERDICT_ROUNDS_LEAST  4u
#define VERDICT_ROUNDS_EXCEPT 7u /* from here on one round may be worse */
#define VERDICT_ROUNDS_MAX    9u

#define VERDICT_MEASURES_MAX 16u

/* Limits of a value that is better; the man page states them. */
#define VERDICT_GAIN  1.05 /* least mean */
#define VERDICT_WORST 0.9  /* least median of any measure */

struct verdict_rounds {
	size_t rounds, measures;
	double ratios[VERDICT_ROUNDS_MAX][VERDICT_MEASURES_MAX];
};

struct verdict {
	double mean;      /* geometric mean, over the measures, of their medians over the rounds */
	double worst;     /* least of these medians */
	size_t better;    /* rounds whose own mean is more than 1 */
	double gain;      /* logarithm of @mean, times the measures: the gain of all sizes */
	const char *keep; /* why the present value stays, one phrase; NULL: the value is better */
};

/* Returns the median of @count numbers, which it sorts; 0: there are none. */
double verdict_median(double *numbers, size_t count);

/* Judge; without a round or a measure the present value stays. */
struct verdict verdict_of(const struct verdict_rounds *rounds);

#endif
