/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images of digits with their labels, as MNIST has them: one byte a pixel,
 * 0 is background.  The filler of a set owns it until images_fini.
 */
#ifndef IMAGES_H
#define IMAGES_H

#include <stdint.h>
#include <stdlib.h>

#define IMAGE_SIDE 28
#define IMAGE_PIXELS (IMAGE_SIDE * IMAGE_SIDE)
#define IMAGE_LABELS 10

struct images {
	uint32_t count;
	uint8_t *pixels; /* count * IMAGE_PIXELS, row by row */
	uint8_t *labels; /* count, each below IMAGE_LABELS */
};

static inline void images_fini(struct images *set)
{
	free(set->pixels);
	free(set->labels);
	*set = (struct images){ 0 };
}

#endif
