/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A matrix as a picture: a self-contained SVG file with a heat map for each value.  The scale is
 * logarithmic from the best pair, light, to the worst, dark; pairs that failed are red and crossed.
 * Each cell says all of its pair where the pointer rests on it.
 *
 * Threads: owner.
 */
#ifndef TOOL_MATRIX_SVG_H
#define TOOL_MATRIX_SVG_H

#include "tool/matrix.h"

void matrix_svg(const struct matrix *m, FILE *out);

#endif
