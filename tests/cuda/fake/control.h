/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a test governs the software driver from within: found by name in the library
 * that weft has loaded, too.
 */
#ifndef FAKE_CUDA_CONTROL_H
#define FAKE_CUDA_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_cuda_what {
	FAKE_TO_DEVICE,
	FAKE_TO_HOST,
	FAKE_ON_DEVICE,
	FAKE_SET,
	FAKE_CALL,
	FAKE_NOTE,
};

/* What happened, in order.  A copy is there twice: when it has begun, and when it has ended. */
struct fake_cuda_entry {
	enum fake_cuda_what what;
	bool ended;
	unsigned stream; /* numbered as they were made; a device's default streams are 0 */
	int device;	 /* of the stream */
	uintptr_t to, from;
	size_t bytes;
	uint64_t note; /* the test's own, if it is one */
};

#define FAKE_STOPS (-1) /* as a code: the process stops itself, and goes on with the call when it is let */

/* The first of @name's next calls that is the @nth, from 1, says @code; it does nothing else. */
void fake_cuda_fail(const char *name, unsigned nth, int code);

/* How many questions a copy takes from its begin to its end. */
void fake_cuda_delay(unsigned questions);

/* As long as this is so no question makes anything end, or begin. */
void fake_cuda_hold(bool hold);

/* From the log's first entry on; how many there are. */
size_t fake_cuda_log(struct fake_cuda_entry *entries, size_t most);
void fake_cuda_log_clear(void);

/* Put something of the test's own into the log. */
void fake_cuda_note(uint64_t note);

/* How often a function was called. */
unsigned fake_cuda_calls(const char *name);

/* What is not freed or closed: allocations, pinned ranges, streams and events. */
unsigned fake_cuda_left(void);

/* The contexts on the calling thread's stack. */
unsigned fake_cuda_depth(void);

#endif
