/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of `weft perf --tune`: a table for each setting when it is done, the environment at the
 * end; or all of it as one object of JSON.
 *
 * Threads: owner.
 */
#ifndef TOOL_TUNE_PRINT_H
#define TOOL_TUNE_PRINT_H

#include "tool/tune.h"

/* Print the head of the table. */
void tune_print_head(const struct tune *tune);

/* Print the rows of a setting that is done, and what it should be. */
void tune_print_setting(enum trial_setting setting, const struct tune_setting *done);

/* Print the environment to set, as lines that a shell or a file of variables takes. */
void tune_print_end(const struct tune *tune);

/* Print all as JSON. */
void tune_print_json(const struct tune *tune);

#endif
