/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matrix of what was measured between each two ranks of a job: rows are senders, columns receivers.
 * Printed as text here, as JSON and as a picture by the files beside.
 *
 * Sentences and names in it may be a peer's: whoever prints them escapes them.
 *
 * Threads: owner.
 */
#ifndef TOOL_MATRIX_H
#define TOOL_MATRIX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One ordered pair. */
struct matrix_cell {
	uint64_t p50_ns, p99_ns; /* round trips of 8 bytes, from sending to the receiver's word */
	uint64_t bytes_per_s;    /* one way */
	uint32_t rails;          /* rails that carried the body */
	char provider[64], device[64], way[16]; /* as weft_op_path() has them */
	char failed[256]; /* a sentence: why there is nothing else; "": measured */
};

struct matrix {
	uint32_t size;                /* processes of the job */
	const char *launcher;         /* word for what told the ranks */
	const char *const *addresses; /* addresses of their nodes, by rank */
	uint64_t bytes, time_ns;      /* body of the bandwidth, and time for each ordered pair */
	struct matrix_cell *cells;    /* by sender, then by receiver */
};

/* Values of a cell, with a table and a map for each. */
enum matrix_value { MATRIX_LATENCY, MATRIX_BANDWIDTH, MATRIX_VALUES };

/* Returns the cell of an ordered pair. */
struct matrix_cell *matrix_at(const struct matrix *m, uint32_t from, uint32_t to);

/* Returns whether @cell was measured. */
bool matrix_measured(const struct matrix_cell *cell);

/* Returns a value in its unit: microseconds, or 10^6 bytes a second. */
double matrix_value(const struct matrix_cell *cell, enum matrix_value value);

/* Returns the words that head the table of @value, for bodies of @bytes; valid until the next call. */
const char *matrix_title(const struct matrix *m, enum matrix_value value);

/* Returns the number of pairs that were not measured. */
uint64_t matrix_failed(const struct matrix *m);

/*
 * Marks: pairs whose bytes went the same way have the same letter, in the order of their first
 * cells, and what comes after z has the mark ?.
 */
#define MATRIX_MARKS_MAX 26

struct matrix_marks {
	uint32_t count;
	const struct matrix_cell *firsts[MATRIX_MARKS_MAX]; /* borrowed of the matrix */
};

struct matrix_marks matrix_marks(const struct matrix *m);

/* Returns the letter of a cell that was measured. */
char matrix_mark(const struct matrix_marks *marks, const struct matrix_cell *cell);

/* Write in @text what a mark stands for: provider, device, way and rails; not escaped. */
void matrix_path(const struct matrix_cell *cell, char text[192]);

/* Print the tables, what the marks stand for, and a line for each pair that failed. */
void matrix_print(const struct matrix *m, FILE *out);

#endif
