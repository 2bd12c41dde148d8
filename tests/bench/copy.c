/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy: what this host's memory does by itself, which bounds transfers in it.
 *
 *   -e memcpy  from one buffer to another of the same process
 *   -e readv   process_vm_readv from another process's buffer
 *
 * With -w 2 or more the reader then reads every byte of what it has copied.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define SAMPLES_MAX 1000000u
#define WARM_COUNT  4u

/* The other process: its buffer, and then nothing until it is told to end. */
static int serve(int to, const struct bench_options *o)
{
	char *memory = bench_memory(o->bytes), end;

	bench_tell(to, &memory, sizeof(memory));
	bench_hear(to, &end, 1);
	free(memory);
	return 0;
}

static void read_far(pid_t pid, char *near, char *far, size_t bytes)
{
	while (bytes) {
		struct iovec to = { near, bytes }, from = { far, bytes };
		ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);

		if (got <= 0)
			bench_die("process_vm_readv failed");
		near += got;
		far += got;
		bytes -= (size_t)got;
	}
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "", .endpoint = "memcpy", .bytes = 1u << 20, .seconds = 1, .window = 1
	};
	double *us, start = 0, last, now;
	volatile uint64_t kept = 0;
	char *from, *into, end = 0;
	size_t samples = 0;
	uint64_t count = 0;
	int to, far;
	pid_t pid;

	bench_options(&o, argc, argv, "copy [-e memcpy|readv] [-s BYTES] [-t SECONDS] [-w 2]");
	far = strcmp(o.endpoint, "memcpy");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	into = bench_memory(o.bytes);
	to = bench_pair(serve, &o, &pid);
	bench_hear(to, &from, sizeof(from));
	if (!far)
		from = bench_memory(o.bytes);
	for (unsigned i = 0;; i++) {
		last = bench_now();
		if (i == WARM_COUNT)
			start = last;
		if (i >= WARM_COUNT && (last - start >= o.seconds || samples == SAMPLES_MAX))
			break;
		if (far)
			read_far(pid, into, from, o.bytes);
		else
			memcpy(into, from, o.bytes);
		if (o.window > 1)
			kept += bench_sum(into, o.bytes);
		now = bench_now();
		if (i < WARM_COUNT)
			continue;
		us[samples++] = (now - last) * 1e6;
		count++;
	}
	bench_print("copy", &o, us, samples, count, last - start);
	bench_tell(to, &end, 1);
	bench_pair_end(pid);
	close(to);
	if (!far)
		free(from);
	free(into);
	free(us);
	return 0;
}
