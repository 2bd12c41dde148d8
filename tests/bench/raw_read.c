/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_read: what libfabric does by itself, for gets and puts of a window to be held against.
 *
 * Two processes, one buffer each, one body at a time: fi_read of the whole body, which ends the
 * iteration when it is complete.  The owner of the body only lets its provider make progress.  The
 * first body is compared byte by byte; nothing after it is.
 */
#include "tests/bench/fabric.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define NOTE_BYTES  8u
#define SAMPLES_MAX 1000000u
#define WARM_COUNT  8u
#define LOOK_EVERY  1000u /* turns of the owner between two looks for the end */

static char pattern(size_t i)
{
	return (char)(i * 31 + (i >> 8) + 7);
}

/* The owner of the body, until it is told to end. */
static int serve(int to, const struct bench_options *o)
{
	struct pollfd told = { .fd = to, .events = POLLIN };
	unsigned turns = 0;
	char end = 0;

	fabric_open(to, 1, o, NOTE_BYTES, 1);
	for (size_t i = 0; i < o->bytes; i++)
		fabric_body()[i] = pattern(i);
	bench_tell(to, &end, 1);
	while (++turns % LOOK_EVERY || !poll(&told, 1, 0))
		fabric_progress();
	bench_hear(to, &end, 1);
	fabric_close();
	return 0;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "msg", .bytes = 16u << 20, .seconds = 1, .window = 1
	};
	double *us, start, last, now;
	size_t samples = 0, wrong = 0;
	uint64_t count = 0;
	char end = 0;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv,
		      "raw_read [-p PROVIDER] [-e msg|rdm] [-s BYTES] [-t SECONDS]");
	if (o.window != 1)
		bench_die("raw_read has one body on the way, no more");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	to = bench_pair(serve, &o, &pid);
	fabric_open(to, 0, &o, NOTE_BYTES, 1);
	bench_hear(to, &end, 1);

	fabric_read_body();
	for (size_t i = 0; i < o.bytes; i++)
		wrong += fabric_body()[i] != pattern(i);
	if (wrong)
		bench_die("%zu bytes arrived wrong", wrong);
	for (unsigned i = 0; i < WARM_COUNT; i++)
		fabric_read_body();
	start = last = bench_now();
	do {
		fabric_read_body();
		now = bench_now();
		if (samples < SAMPLES_MAX)
			us[samples++] = (now - last) * 1e6;
		last = now;
		count++;
	} while (now - start < o.seconds);
	bench_print("raw_read", &o, us, samples, count, now - start);

	bench_tell(to, &end, 1);
	bench_pair_end(pid);
	fabric_close();
	close(to);
	free(us);
	return 0;
}
