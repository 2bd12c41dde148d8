/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/matrix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/text.h"

struct matrix_cell *matrix_at(const struct matrix *m, uint32_t from, uint32_t to)
{
	return &m->cells[(size_t)from * m->size + to];
}

bool matrix_measured(const struct matrix_cell *cell)
{
	return !*cell->failed;
}

double matrix_value(const struct matrix_cell *cell, enum matrix_value value)
{
	return value == MATRIX_LATENCY ? (double)cell->p50_ns / 1e3
				       : (double)cell->bytes_per_s / 1e6;
}

const char *matrix_title(const struct matrix *m, enum matrix_value value)
{
	static char title[96];

	if (value == MATRIX_LATENCY)
		return "latency: median round trip of 8 bytes, us";
	snprintf(title, sizeof(title), "bandwidth: bodies of %" PRIu64 " bytes one way, MB/s",
		 m->bytes);
	return title;
}

uint64_t matrix_failed(const struct matrix *m)
{
	uint64_t count = 0;

	for (uint32_t from = 0; from < m->size; from++)
		for (uint32_t to = 0; to < m->size; to++)
			count += from != to && !matrix_measured(matrix_at(m, from, to));
	return count;
}

/* Marks */

static bool same_path(const struct matrix_cell *a, const struct matrix_cell *b)
{
	return a->rails == b->rails && !strcmp(a->provider, b->provider) &&
	       !strcmp(a->device, b->device) && !strcmp(a->way, b->way);
}

char matrix_mark(const struct matrix_marks *marks, const struct matrix_cell *cell)
{
	for (uint32_t i = 0; i < marks->count; i++)
		if (same_path(marks->firsts[i], cell))
			return (char)('a' + i);
	return '?';
}

struct matrix_marks matrix_marks(const struct matrix *m)
{
	struct matrix_marks marks = { 0 };

	for (uint64_t i = 0; i < (uint64_t)m->size * m->size; i++) {
		const struct matrix_cell *cell = &m->cells[i];

		if (i / m->size == i % m->size || !matrix_measured(cell))
			continue;
		if (marks.count < MATRIX_MARKS_MAX && matrix_mark(&marks, cell) == '?')
			marks.firsts[marks.count++] = cell;
	}
	return marks;
}

void matrix_path(const struct matrix_cell *cell, char text[192])
{
	snprintf(text, 192, "%s, %s, %s, %" PRIu32 " rail%s", cell->provider, cell->device,
		 cell->way, cell->rails, cell->rails == 1 ? "" : "s");
}

/* Tables */

#define COLUMN 9 /* width of a value: six digits, a point and one more, after a blank */

static void print_cell(const struct matrix *m, enum matrix_value value,
		       const struct matrix_marks *marks, uint32_t from, uint32_t to, FILE *out)
{
	const struct matrix_cell *cell = matrix_at(m, from, to);

	if (from == to)
		fprintf(out, "%*s", COLUMN, "-");
	else if (!matrix_measured(cell))
		fprintf(out, "%*s", COLUMN, "failed");
	else
		fprintf(out, "%*.1f %c", COLUMN, matrix_value(cell, value),
			matrix_mark(marks, cell));
	if (to + 1 < m->size && (from == to || !matrix_measured(cell)))
		fputs("  ", out);
}

static void print_table(const struct matrix *m, enum matrix_value value,
			const struct matrix_marks *marks, FILE *out)
{
	fprintf(out, "\n%s\n%7s", matrix_title(m, value), "from\\to");
	for (uint32_t to = 0; to < m->size; to++)
		fprintf(out, "%*" PRIu32 "%s", COLUMN, to, to + 1 < m->size ? "  " : "");
	fputc('\n', out);
	for (uint32_t from = 0; from < m->size; from++) {
		fprintf(out, "%7" PRIu32, from);
		for (uint32_t to = 0; to < m->size; to++)
			print_cell(m, value, marks, from, to, out);
		fputc('\n', out);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Print the median of a value, and the pair that is worst. */
static void print_summary(const struct matrix *m, enum matrix_value value,
			  const struct matrix_marks *marks, FILE *out)
{
	double *all = calloc((size_t)m->size * m->size, sizeof(*all));
	uint32_t from = 0, to = 0;
	size_t count = 0;

	for (uint64_t i = 0; all && i < (uint64_t)m->size * m->size; i++) {
		const struct matrix_cell *cell = &m->cells[i];
		double v = matrix_value(cell, value),
		       worst = matrix_value(matrix_at(m, from, to), value);

		if (i / m->size == i % m->size || !matrix_measured(cell))
			continue;
		if (!count || (value == MATRIX_LATENCY ? v > worst : v < worst)) {
			from = (uint32_t)(i / m->size);
			to = (uint32_t)(i % m->size);
		}
		all[count++] = v;
	}
	if (count) {
		qsort(all, count, sizeof(*all), ascending);
		fprintf(out, "median %.1f, worst %.1f from %" PRIu32 " to %" PRIu32 " (%c)\n",
			all[count / 2], matrix_value(matrix_at(m, from, to), value), from, to,
			matrix_mark(marks, matrix_at(m, from, to)));
	}
	free(all);
}

static void print_marks(const struct matrix_marks *marks, FILE *out)
{
	char text[192];

	if (marks->count)
		fputc('\n', out);
	for (uint32_t i = 0; i < marks->count; i++) {
		matrix_path(marks->firsts[i], text);
		fprintf(out, "%c: ", (char)('a' + i));
		text_print(out, text);
		fputc('\n', out);
	}
}

static void print_failures(const struct matrix *m, FILE *out)
{
	for (uint32_t from = 0; from < m->size; from++)
		for (uint32_t to = 0; to < m->size; to++) {
			const struct matrix_cell *cell = matrix_at(m, from, to);

			if (from == to || matrix_measured(cell))
				continue;
			fprintf(out, "%" PRIu32 " to %" PRIu32 " failed: ", from, to);
			text_print(out, cell->failed);
			fputc('\n', out);
		}
}

void matrix_print(const struct matrix *m, FILE *out)
{
	struct matrix_marks marks = matrix_marks(m);

	for (int value = 0; value < MATRIX_VALUES; value++) {
		print_table(m, value, &marks, out);
		print_summary(m, value, &marks, out);
	}
	print_marks(&marks, out);
	print_failures(m, out);
}
