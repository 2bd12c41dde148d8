/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A matrix as one JSON object, on one line; weft(1) has its shape.
 *
 * Threads: owner.
 */
#ifndef TOOL_MATRIX_JSON_H
#define TOOL_MATRIX_JSON_H

#include "tool/matrix.h"

void matrix_json(const struct matrix *m, FILE *out);

#endif
