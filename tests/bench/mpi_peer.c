/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpi_peer: bodies from one rank to another by MPI, for mpirun -np 2.
 *
 * Latency: a body there, an empty message back.  Bandwidth: -w at once, each
 * into the same buffer, and an empty message back for them all.  Half of -t each.
 */
#include "tests/bench/bench.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX 1000000u
#define WARM_COUNT  8u
#define WINDOW_MAX  64u

enum tag { TAG_BODY = 1, TAG_WORD = 2, TAG_ORDER = 3 };

/* How many bodies come next; 0: no more. */
static unsigned order(unsigned count, int rank)
{
	if (rank == 0)
		MPI_Send(&count, 1, MPI_UNSIGNED, 1, TAG_ORDER, MPI_COMM_WORLD);
	else
		MPI_Recv(&count, 1, MPI_UNSIGNED, 0, TAG_ORDER, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	return count;
}

static void one(char *body, int bytes, int rank)
{
	if (rank == 0) {
		MPI_Send(body, bytes, MPI_BYTE, 1, TAG_BODY, MPI_COMM_WORLD);
		MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(body, bytes, MPI_BYTE, 0, TAG_BODY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_WORD, MPI_COMM_WORLD);
	}
}

static void several(char *body, int bytes, unsigned count, int rank)
{
	MPI_Request requests[WINDOW_MAX];

	for (unsigned i = 0; i < count; i++)
		if (rank == 0)
			MPI_Isend(body, bytes, MPI_BYTE, 1, TAG_BODY, MPI_COMM_WORLD,
				  &requests[i]);
		else
			MPI_Irecv(body, bytes, MPI_BYTE, 0, TAG_BODY, MPI_COMM_WORLD,
				  &requests[i]);
	MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_WORD, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "", .endpoint = "", .bytes = 8, .seconds = 1, .window = 16
	};
	double *us, start, last, now;
	size_t samples = 0;
	uint64_t count = 0;
	unsigned ordered;
	char *body;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	bench_options(&o, argc, argv, "mpirun -np 2 mpi_peer [-s BYTES] [-t SECONDS] [-w WINDOW]");
	if (o.window > WINDOW_MAX)
		bench_die("at most %u at once", WINDOW_MAX);
	body = bench_memory(o.bytes);
	us = bench_memory(SAMPLES_MAX * sizeof(*us));

	if (rank != 0) {
		while ((ordered = order(0, rank)))
			if (ordered == 1)
				one(body, (int)o.bytes, rank);
			else
				several(body, (int)o.bytes, ordered, rank);
		MPI_Finalize();
		return 0;
	}
	for (unsigned i = 0; i < WARM_COUNT; i++) {
		order(1, rank);
		one(body, (int)o.bytes, rank);
	}
	start = bench_now();
	do {
		order(1, rank);
		last = bench_now();
		one(body, (int)o.bytes, rank);
		now = bench_now();
		us[samples++] = (now - last) * 1e6;
	} while (samples < SAMPLES_MAX && now - start < o.seconds / 2);

	start = bench_now();
	do {
		order(o.window, rank);
		several(body, (int)o.bytes, o.window, rank);
		count += o.window;
		now = bench_now();
	} while (now - start < o.seconds / 2);
	bench_print("mpi_peer", &o, us, samples, count, now - start);
	order(0, rank);
	MPI_Finalize();
	free(us);
	free(body);
	return 0;
}
