/* SPDX-License-Identifier: BSD-2-Clause */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool/cuda.h"

int model_device(const char *text, int *device, struct sentence *why)
{
	const char *digits = text + strlen("cuda:"), *cannot;
	unsigned long ordinal;
	char *end;

	*device = -1;
	if (strncmp(text, "cuda:", strlen("cuda:")) != 0 || *digits < '0' || *digits > '9')
		return sentence_set(why, -EINVAL, "--device: '%s' is not cuda:N", text);
	ordinal = strtoul(digits, &end, 10);
	if (*end || ordinal >= CUDA_DEVICES_MAX)
		return sentence_set(why, -EINVAL, "--device: '%s' is not cuda:0 to cuda:%d", text,
				    CUDA_DEVICES_MAX - 1);
	cannot = cuda_open((unsigned)ordinal);
	if (cannot)
		return sentence_set(why, -ENODEV, "--device=%s: %s", text, cannot);
	*device = (int)ordinal;
	return 0;
}

int model_open(struct model *m, int device, struct sentence *why)
{
	*m = (struct model){ .here = calloc(1, sizeof(*m->here)), .device = (unsigned)device };
	if (m->here && device >= 0)
		m->there = cuda_take(m->device, sizeof(*m->there));
	if (m->here && (m->there || device < 0))
		return 0;
	model_close(m);
	return sentence_set(why, -ENOMEM, "no memory for the model");
}

void model_close(struct model *m)
{
	if (m->there)
		cuda_give(m->device, m->there);
	free(m->here);
	*m = (struct model){ 0 };
}

int model_put(const struct model *m, struct sentence *why)
{
	if (!m->there || !cuda_put(m->device, m->there, m->here, sizeof(*m->here)))
		return 0;
	return sentence_set(why, -EIO, "cannot copy to cuda:%u", m->device);
}

int model_get(const struct model *m, struct sentence *why)
{
	if (!m->there || !cuda_get(m->device, m->here, m->there, sizeof(*m->here)))
		return 0;
	return sentence_set(why, -EIO, "cannot copy from cuda:%u", m->device);
}

struct weft_tensor model_tensor(const struct model *m, unsigned v)
{
	struct weft_tensor tensor = {
		.data = mlp_values(m->here, v),
		.device = { WEFT_CPU, 0 },
		.dtype = { WEFT_FLOAT, 32, 1 },
		.ndim = mlp_variables[v].ndim,
		/* DLPack has no const here; weft only reads and copies it. */
		.shape = (int64_t *)mlp_variables[v].shape,
	};

	if (m->there) {
		tensor.data = mlp_values(m->there, v);
		tensor.device = (struct weft_device){ WEFT_CUDA, (int32_t)m->device };
	}
	return tensor;
}
