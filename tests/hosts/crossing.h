/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs of processes (tests/fabric/pair.h), with the other process on another host
 * (hosts.h).  The test itself is on host 0.
 *
 * Threads: the one that runs the tests.
 */
#ifndef CROSSING_H
#define CROSSING_H

#include "hosts.h"
#include "tests/fabric/pair.h"

/*
 * Make the hosts, as the first thing in main, and let nodes listen on network 0.  @commands are
 * the other process's own; NULL: none.  False: the program is over with @status: it was the other
 * process of a pair, or there are no hosts, and the reason was printed.
 */
bool crossing_begin(int argc, char **argv, const struct hosts_plan *plan,
		    const struct pair_command *commands, int *status);

/*
 * Like pair_open() and pair_close(), pair_start() and pair_end(), with the other process on
 * @host.  Without @listen that process listens on network 0.
 */
void crossing_open(struct pair *pair, const char *provider, unsigned host);
void crossing_close(struct pair *pair);
void crossing_start(struct pair_other *other, const char *provider, unsigned host,
		    const char *listen, struct weft_node *node);
void crossing_end(struct pair_other *other);

/* Set a variable of weft's for nodes that are opened from now on in this test. */
void crossing_set(const char *name, const char *value);

/* Set a test up, for cmocka: variables and hosts are as they were made. */
int crossing_setup(void **state);
#define crossing_test(f) cmocka_unit_test_setup_teardown(f, crossing_setup, pair_teardown)

/* Bytes that have come to the test's host by @network. */
uint64_t crossing_bytes(unsigned network);

/* Skip the test that runs, unless @done. */
void crossing_skip_unless(bool done, const char *reason);

/* The text of weft_dump() about @node. */
const char *crossing_dump(struct weft_node *node);

#endif
