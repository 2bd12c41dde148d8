/* SPDX-License-Identifier: BSD-2-Clause */
/* mpi_all_reduce: what all_reduce does by weft, done by MPI, for mpirun. */
#include "tests/bench/bench.h"

#include <mpi.h>
#include <stdlib.h>

#define WARM_COUNT  10u
#define SAMPLES_MAX 1000000u

static double sum_up(float *numbers, int count)
{
	double start = bench_now();

	MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	return bench_now() - start;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "", .endpoint = "", .bytes = 4096, .seconds = 1, .window = 1
	};
	double warm = 0, start, *us;
	uint64_t rounds;
	float *numbers;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	bench_options(&o, argc, argv, "mpirun -n RANKS mpi_all_reduce [-s BYTES] [-t SECONDS]");
	numbers = bench_memory(o.bytes);
	for (unsigned i = 0; i < WARM_COUNT; i++)
		warm = sum_up(numbers, (int)(o.bytes / sizeof(float)));
	rounds = (uint64_t)(o.seconds / warm) + 5;
	rounds = rounds < SAMPLES_MAX ? rounds : SAMPLES_MAX;
	MPI_Bcast(&rounds, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	us = bench_memory(rounds * sizeof(*us));
	start = bench_now();
	for (uint64_t i = 0; i < rounds; i++)
		us[i] = sum_up(numbers, (int)(o.bytes / sizeof(float))) * 1e6;
	if (!rank)
		bench_print("mpi_all_reduce", &o, us, rounds, rounds, bench_now() - start);
	MPI_Finalize();
	free(numbers);
	free(us);
	return 0;
}
