/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/verdict.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double verdict_median(double *numbers, size_t count)
{
	if (!count)
		return 0;
	qsort(numbers, count, sizeof(*numbers), by_size);
	return count % 2 ? numbers[count / 2]
			 : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

/* Returns the logarithm of the geometric mean of a round's ratios. */
static double mean_of(const struct verdict_rounds *r, size_t round)
{
	double sum = 0;

	for (size_t i = 0; i < r->measures; i++)
		sum += log(r->ratios[round][i]);
	return sum / (double)r->measures;
}

static double median_of(const struct verdict_rounds *r, size_t measure)
{
	double ratios[VERDICT_ROUNDS_MAX];

	for (size_t i = 0; i < r->rounds; i++)
		ratios[i] = r->ratios[i][measure];
	return verdict_median(ratios, r->rounds);
}

static const char *why_keep(const struct verdict *v, size_t rounds)
{
	if (rounds < VERDICT_ROUNDS_LEAST)
		return "too few rounds";
	if (v->mean < 1)
		return "no better";
	if (v->mean <= VERDICT_GAIN)
		return "better by 5 % or less";
	if (v->worst < VERDICT_WORST)
		return "worse by more than 10 % at one size";
	if (v->better + (rounds >= VERDICT_ROUNDS_EXCEPT) < rounds)
		return "better in too few rounds";
	return NULL;
}

struct verdict verdict_of(const struct verdict_rounds *r)
{
	struct verdict v = { .mean = 1, .worst = 1, .keep = "not measured" };

	if (!r->rounds || !r->measures)
		return v;
	for (size_t i = 0; i < r->measures; i++) {
		double median = median_of(r, i);

		v.gain += log(median);
		v.worst = i && v.worst < median ? v.worst : median;
	}
	v.mean = exp(v.gain / (double)r->measures);
	for (size_t i = 0; i < r->rounds; i++)
		v.better += mean_of(r, i) > 0;
	v.keep = why_keep(&v, r->rounds);
	return v;
}
