/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_message: small messages by libfabric alone, for `weft perf` to be held
 * against: injected where they fit, into receives that are always posted.
 *
 * Latency: one message there and one of the same size back, at a time.
 * Rate: one message after the other in one direction, each sent by itself, and
 * one word back for every -w of them, so that no receiver is overrun.  Half of
 * -t each.
 */
#include "tests/bench/fabric.h"

#include <stdlib.h>
#include <unistd.h>

#define SAMPLES_MAX 1000000u
#define WARM_COUNT  64u

enum note { NOTE_BACK = 1, NOTE_ON = 2, NOTE_WORD = 3, NOTE_END = 4 };

/* The receiver: answers what wants an answer, until it is told to end. */
static int serve(int to, const struct bench_options *o)
{
	char note, end;

	fabric_open(to, 1, o, o->bytes, 0);
	while ((note = fabric_hear_note()) != NOTE_END)
		if (note != NOTE_ON)
			fabric_send_note(note);
	/* Nobody closes while the other may still wait for a completion. */
	bench_hear(to, &end, 1);
	fabric_close();
	return 0;
}

static void there_and_back(void)
{
	fabric_send_note(NOTE_BACK);
	fabric_hear_note();
}

/* A window of messages; the answer to the one before it lets it begin. */
static void window(unsigned count, int first)
{
	for (unsigned i = 1; i < count; i++)
		fabric_send_note(NOTE_ON);
	fabric_send_note(NOTE_WORD);
	if (!first)
		fabric_hear_note();
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "msg", .bytes = 8, .seconds = 1, .window = 16
	};
	double *us, start, last, now;
	size_t samples = 0;
	uint64_t count = 0;
	char end = 0;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv,
		      "raw_message [-p PROVIDER] [-e msg|rdm] [-s BYTES] [-t SECONDS] [-w WINDOW]");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	to = bench_pair(serve, &o, &pid);
	fabric_open(to, 0, &o, o.bytes, 0);

	for (unsigned i = 0; i < WARM_COUNT; i++)
		there_and_back();
	start = last = bench_now();
	do {
		there_and_back();
		now = bench_now();
		us[samples++] = (now - last) * 1e6;
		last = now;
	} while (samples < SAMPLES_MAX && now - start < o.seconds / 2);

	start = bench_now();
	do {
		window(o.window, count == 0);
		count += o.window;
		now = bench_now();
	} while (now - start < o.seconds / 2);
	fabric_hear_note();
	bench_print("raw_message", &o, us, samples, count, bench_now() - start);

	fabric_send_note(NOTE_END);
	bench_tell(to, &end, 1);
	bench_pair_end(pid);
	fabric_close();
	close(to);
	free(us);
	return 0;
}
