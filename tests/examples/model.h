/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters, or a gradient, as they travel: from where they are computed, or with --device
 * from a CUDA device and to it.  The perceptron itself is the CPU's (mlp.h), so that it
 * gives the same bits everywhere: received values are fetched from the device, and values to
 * send are put there.
 *
 * A program of your own has its values on the device anyway, and the CUDA runtime's cudaMemcpy
 * for the rest; to weft the address in the tensor alone says where they are.
 */
#ifndef MODEL_H
#define MODEL_H

#include <weft/weft.h>

#include "mlp.h"
#include "sentence.h"

struct model {
	struct mlp *here;
	struct mlp *there; /* NULL: the model travels from @here */
	unsigned device;
};

/* Make ready the device that --device=@text names.  "": none.  -EINVAL, -ENODEV. */
int model_device(const char *text, int *device, struct sentence *why);

/* Open a model on @device, or with -1 on the host alone.  -ENOMEM: @why. */
int model_open(struct model *m, int device, struct sentence *why);

/* Free the memory of @m; accepts one that is all zero. */
void model_close(struct model *m);

/* Copy to the device, before a send.  -EIO: @why. */
int model_put(const struct model *m, struct sentence *why);
/* Copy from the device, after a receive.  -EIO: @why. */
int model_get(const struct model *m, struct sentence *why);

/* Variable @v of @m; the tensor borrows the memory. */
struct weft_tensor model_tensor(const struct model *m, unsigned v);

#endif
