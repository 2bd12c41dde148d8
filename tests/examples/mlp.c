/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlp.h"

#include <math.h>
#include <string.h>

#include "rng.h"

#define VARIABLE(label, member, rows, columns, dims)                           \
	{ .name = label, .offset = offsetof(struct mlp, member),              \
	  .count = (size_t)(rows) * (columns), .ndim = dims,                   \
	  .shape = { rows, columns } }

const struct mlp_variable mlp_variables[MLP_VARIABLES] = {
	VARIABLE("W1", w1, IMAGE_PIXELS, MLP_HIDDEN, 2),
	VARIABLE("b1", b1, MLP_HIDDEN, 1, 1),
	VARIABLE("W2", w2, MLP_HIDDEN, IMAGE_LABELS, 2),
	VARIABLE("b2", b2, IMAGE_LABELS, 1, 1),
};

/* What one image does to the model. */
struct pass {
	float input[IMAGE_PIXELS]; /* 0 to 1 */
	float hidden[MLP_HIDDEN];
	float output[IMAGE_LABELS]; /* before softmax */
};

void mlp_begin(struct mlp *m, uint64_t seed)
{
	struct rng r = { seed };
	/* He's rule, sqrt(6 / inputs), with the 180 or so pixels that are lit. */
	const float reach1 = .18f, reach2 = .24f;

	memset(m, 0, sizeof(*m));
	for (int i = 0; i < IMAGE_PIXELS; i++) {
		for (int j = 0; j < MLP_HIDDEN; j++)
			m->w1[i][j] = rng_between(&r, -reach1, reach1);
	}
	for (int j = 0; j < MLP_HIDDEN; j++) {
		for (int k = 0; k < IMAGE_LABELS; k++)
			m->w2[j][k] = rng_between(&r, -reach2, reach2);
	}
}

static void forward(const struct mlp *m, const uint8_t *pixels, struct pass *p)
{
	memcpy(p->hidden, m->b1, sizeof(p->hidden));
	for (int i = 0; i < IMAGE_PIXELS; i++) {
		float x = pixels[i] / 255.0f;

		p->input[i] = x;
		if (x == 0) /* most of the paper is blank */
			continue;
		for (int j = 0; j < MLP_HIDDEN; j++)
			p->hidden[j] += x * m->w1[i][j];
	}
	for (int j = 0; j < MLP_HIDDEN; j++)
		p->hidden[j] = p->hidden[j] > 0 ? p->hidden[j] : 0;

	memcpy(p->output, m->b2, sizeof(p->output));
	for (int j = 0; j < MLP_HIDDEN; j++) {
		for (int k = 0; k < IMAGE_LABELS; k++)
			p->output[k] += p->hidden[j] * m->w2[j][k];
	}
}

static int largest(const float *values, int count)
{
	int best = 0;

	for (int i = 1; i < count; i++) {
		if (values[i] > values[best])
			best = i;
	}
	return best;
}

/*
 * Turn the outputs into what they should change by: probability, less one for
 * the right label.  Returns the loss.
 */
static float softmax_error(float *output, uint8_t label)
{
	/* Less the largest: no exponential can then overflow. */
	float top = output[largest(output, IMAGE_LABELS)], sum = 0, loss;

	loss = top - output[label];
	for (int k = 0; k < IMAGE_LABELS; k++) {
		output[k] = expf(output[k] - top);
		sum += output[k];
	}
	for (int k = 0; k < IMAGE_LABELS; k++)
		output[k] /= sum;
	output[label] -= 1;
	return loss + logf(sum);
}

static void backward(const struct mlp *m, struct pass *p, struct mlp *gradient)
{
	for (int k = 0; k < IMAGE_LABELS; k++)
		gradient->b2[k] += p->output[k];

	for (int j = 0; j < MLP_HIDDEN; j++) {
		float slope = 0;

		if (p->hidden[j] > 0) {
			for (int k = 0; k < IMAGE_LABELS; k++) {
				gradient->w2[j][k] +=
					p->hidden[j] * p->output[k];
				slope += m->w2[j][k] * p->output[k];
			}
		}
		p->hidden[j] = slope; /* its value is not needed any more */
		gradient->b1[j] += slope;
	}

	for (int i = 0; i < IMAGE_PIXELS; i++) {
		if (p->input[i] == 0)
			continue;
		for (int j = 0; j < MLP_HIDDEN; j++)
			gradient->w1[i][j] += p->input[i] * p->hidden[j];
	}
}

float mlp_gradient(const struct mlp *m, const struct images *set,
		   const uint32_t *pick, uint32_t count, struct mlp *gradient)
{
	struct pass p;
	float loss = 0;

	memset(gradient, 0, sizeof(*gradient));
	for (uint32_t i = 0; i < count; i++) {
		forward(m, set->pixels + (size_t)pick[i] * IMAGE_PIXELS, &p);
		loss += softmax_error(p.output, set->labels[pick[i]]);
		backward(m, &p, gradient);
	}
	return loss;
}

void mlp_descend(float *values, float *const *gradients,
		 unsigned gradients_count, size_t count, float rate)
{
	for (size_t i = 0; i < count; i++) {
		float sum = gradients[0][i];

		for (unsigned g = 1; g < gradients_count; g++)
			sum += gradients[g][i];
		values[i] -= rate * sum;
	}
}

double mlp_accuracy(const struct mlp *m, const struct images *set)
{
	struct pass p;
	uint32_t right = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		forward(m, set->pixels + (size_t)i * IMAGE_PIXELS, &p);
		right += largest(p.output, IMAGE_LABELS) == set->labels[i];
	}
	return set->count ? (double)right / set->count : 0;
}
