/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws images of digits, so that a training example needs no download: the
 * strokes of the ten digits, shifted, scaled, turned, of varying width and
 * darkness, with noise.  The same seed draws the same images.
 */
#ifndef DIGITS_H
#define DIGITS_H

#include "images.h"

/* Draw @count images.  Returns @set owned, for images_fini.  -ENOMEM. */
int digits_draw(uint64_t seed, uint32_t count, struct images *set);

#endif
