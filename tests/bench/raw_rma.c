/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_rma: what libfabric does by itself, for `weft perf` to be held against.
 *
 * Two processes, one buffer each, one body at a time: fi_write of the whole
 * body, a notice of 8 bytes when that is complete, and the receiver's
 * acknowledgement, which ends the iteration.  The first body is compared byte by byte; nothing after it is.
 */
#include "tests/bench/fabric.h"

#include <stdlib.h>
#include <unistd.h>

#define NOTE_BYTES  8u
#define SAMPLES_MAX 1000000u
#define WARM_COUNT  8u

enum note { NOTE_BODY = 1, NOTE_END = 2 };

static char pattern(size_t i)
{
	return (char)(i * 31 + (i >> 8) + 7);
}

/* The receiver: acknowledges until it is told to end. */
static int serve(int to, const struct bench_options *o)
{
	size_t wrong = 0;
	char end = 0;

	fabric_open(to, 1, o, NOTE_BYTES, 1);
	if (fabric_hear_note() != NOTE_BODY)
		bench_die("no body came");
	for (size_t i = 0; i < o->bytes; i++)
		wrong += fabric_body()[i] != pattern(i);
	if (wrong)
		bench_die("%zu bytes arrived wrong", wrong);
	do
		fabric_send_note(NOTE_BODY);
	while (fabric_hear_note() == NOTE_BODY);
	/* Nobody closes while the other may still wait for a completion. */
	bench_hear(to, &end, 1);
	fabric_close();
	return 0;
}

static void once(void)
{
	fabric_write_body();
	fabric_send_note(NOTE_BODY);
	fabric_hear_note();
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "msg", .bytes = 16u << 20, .seconds = 1, .window = 1
	};
	double *us, start, last, now;
	size_t samples = 0;
	uint64_t count = 0;
	char end = 0;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv,
		      "raw_rma [-p PROVIDER] [-e msg|rdm] [-s BYTES] [-t SECONDS]");
	if (o.window != 1)
		bench_die("raw_rma has one body on the way, no more");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	to = bench_pair(serve, &o, &pid);
	fabric_open(to, 0, &o, NOTE_BYTES, 1);

	for (size_t i = 0; i < o.bytes; i++)
		fabric_body()[i] = pattern(i);
	for (unsigned i = 0; i < WARM_COUNT; i++)
		once();
	start = last = bench_now();
	do {
		once();
		now = bench_now();
		if (samples < SAMPLES_MAX)
			us[samples++] = (now - last) * 1e6;
		last = now;
		count++;
	} while (now - start < o.seconds);
	bench_print("raw_rma", &o, us, samples, count, now - start);

	fabric_send_note(NOTE_END);
	bench_tell(to, &end, 1);
	bench_pair_end(pid);
	fabric_close();
	close(to);
	free(us);
	return 0;
}
