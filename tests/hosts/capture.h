/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture of all bytes that TCP carries over the loopback of a network of this process's own.
 *
 * Threads: the one that runs the tests; the capture has a thread besides.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_REASON_BYTES 200

/* One direction of a connection. */
struct capture_stream {
	uint16_t from, to;    /* ports */
	const uint8_t *bytes;
	size_t count;
};

/*
 * Move this process, which has one thread, into a network of its own, on a host of name @host, and
 * begin.  False: that can't be had here, and @reason says why.
 */
bool capture_begin(const char *host, char reason[CAPTURE_REASON_BYTES]);

/* Forget what was captured; connections that are open now are captured no more. */
void capture_forget(void);

/*
 * Wait until nothing was sent for a while.  Returns how many streams there are since
 * capture_forget(), and where they are until the next; ends the program if the capture has missed
 * bytes.
 */
size_t capture_streams(const struct capture_stream **streams);

#endif
