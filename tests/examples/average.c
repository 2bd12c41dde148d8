/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * average: each process of a job has numbers of its own, and all get the average of everybody's.
 *
 * Start it by `weft run -n 4 average`, or by mpirun, srun or torchrun.
 */
#include <err.h>
#include <stdio.h>
#include <weft/weft.h>

int main(void)
{
	struct weft_group *group;
	struct weft_node *node;
	enum weft_status status;
	struct weft_op *op;
	int64_t count = 1000;
	float numbers[1000];
	const struct weft_tensor gradients = { .data = numbers, .device = { WEFT_CPU, 0 }, .ndim = 1,
					       .dtype = { WEFT_FLOAT, 32, 1 }, .shape = &count };

	if (weft_node_open(NULL, &node) || weft_join(node, NULL, &group))
		errx(1, "%s", weft_error());
	for (int64_t i = 0; i < count; i++)
		numbers[i] = (float)(weft_group_rank(group) + 1);

	if (weft_all_reduce(group, &gradients, &gradients, WEFT_AVERAGE, NULL, &op) ||
	    weft_finish(op, &status) || status != WEFT_OK)
		errx(1, "%s", weft_error()); /* which rank is late, or has died */
	printf("rank %u of %u: %g\n", weft_group_rank(group), weft_group_size(group),
	       (double)numbers[999]);

	if (weft_group_close(group) || weft_node_close(node))
		errx(1, "%s", weft_error());
	return 0;
}
