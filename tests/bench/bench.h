/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers of the programs of this folder, shared with nothing else: a
 * comparison that runs the code it is compared with proves little.
 *
 * Any failure ends the program: a benchmark has nothing to save.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_FIRST_PEERS 8u /* first peers, which also pay for what all share */

struct bench_options {
	const char *provider; /* "": none */
	const char *endpoint; /* msg or rdm, "" where there is none */
	size_t bytes;
	double seconds;
	unsigned window;
	unsigned servers; /* 0: a single one */
};

/* Read -n -p -e -s -t -w over what @o holds; @usage is printed when that fails. */
void bench_options(struct bench_options *o, int argc, char **argv, const char *usage);

/* End with one line on stderr, and the second process with it. */
__attribute__((noreturn, format(printf, 1, 2)))
void bench_die(const char *format, ...);

double bench_now(void); /* seconds */

/*
 * Call each time that a spinning loop finds nothing.  Now and then others are
 * let run: where both processes share a processor with anyone, a loop that never
 * yields would measure the scheduler's patience.
 */
void bench_spin(void);

/* Allocate @bytes, whose pages have been touched. */
void *bench_memory(size_t bytes);

/* Bytes of this process that are private, and written to. */
double bench_private_bytes(void);

/* Descriptors that this process has open. */
double bench_descriptors(void);

/* Read every byte, and return the sum. */
uint64_t bench_sum(const void *memory, size_t bytes);

/*
 * Fork a process that dies with this one.  Returns 0 in it; in either, *@end is its end of a socket
 * between both.
 */
pid_t bench_fork(int *end);

/*
 * Run @server in a second process that dies with this one, and return a
 * socket to it for setting up; @server gets the other end.  Each process stays on a
 * processor of its own, where there are two and BENCH_FREE is not set.
 */
int bench_pair(int (*server)(int to, const struct bench_options *o),
	       const struct bench_options *o, pid_t *pid);
void bench_pair_end(pid_t pid);

/* Send or receive exactly @bytes over such a socket. */
void bench_tell(int to, const void *data, size_t bytes);
void bench_hear(int from, void *data, size_t bytes);

/* Print the result as one JSON object; sorts @us, the @count round trips in microseconds. */
void bench_print(const char *test, const struct bench_options *o, double *us, size_t us_count,
		 uint64_t count, double seconds);

#endif
