/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters, or a gradient, as they travel: from where they are computed, or with --device
 * from a CUDA device and to it.  The perceptron itself is the CPU's (mlp.h), so that it
 * gives the same bits everywhere: what has come is fetched, and what is to go is put there.
 *
 * A program of your own has them there anyway, and the CUDA runtime's cudaMemcpy for the
 * rest; to weft it is the address in the tensor alone that says where they are.
 */
#ifndef MODEL_H
#define MODEL_H

#include <weft/weft.h>

#include "mlp.h"
#include "sentence.h"

struct model {
	struct mlp *here;
	struct mlp *there; /* NULL: it travels from here */
	unsigned device;
};

/* The device that --device=@text names, made ready.  "": none.  -EINVAL, -ENODEV. */
int model_device(const char *text, int *device, struct sentence *why);

/* On @device, or with -1 on the host alone.  -ENOMEM: @why. */
int model_open(struct model *m, int device, struct sentence *why);

/* Accepts one that is all zero. */
void model_close(struct model *m);

/* Before what is here is sent, and after it has come.  -EIO: @why. */
int model_put(const struct model *m, struct sentence *why);
int model_get(const struct model *m, struct sentence *why);

/* Variable @v of it; the tensor borrows its memory. */
struct weft_tensor model_tensor(const struct model *m, unsigned v);

#endif
