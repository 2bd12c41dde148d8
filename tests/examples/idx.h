/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads MNIST's IDX files.  Trusts nothing in them: magic number, sizes,
 * labels and the length of the file are checked.
 */
#ifndef IDX_H
#define IDX_H

#include "images.h"
#include "sentence.h"

/*
 * Read @directory/@stem-images-idx3-ubyte and @stem-labels-idx1-ubyte; MNIST's
 * stems are "train" and "t10k".  Returns @set owned, for images_fini.
 * A negative errno: @why names the file and what is wrong with it.
 */
int idx_read(const char *directory, const char *stem, struct images *set,
	     struct sentence *why);

#endif
