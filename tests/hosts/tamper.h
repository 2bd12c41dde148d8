/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tampering with the bytes that TCP carries on their way: a bit is another, or the bytes are those
 * of an earlier segment, of any connection and either direction.  TCP itself sees nothing of it:
 * sequence numbers stay, and checksums are right again.
 *
 * A struct tamper lies in memory that the relays of all cables share, zeroed at first.
 *
 * Threads: any, of any process.
 */
#ifndef TAMPER_H
#define TAMPER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TAMPER_PAST 256           /* earlier segments that can come again */
#define TAMPER_PAYLOAD_BYTES 1500 /* payload of the largest */

struct tamper {
	_Atomic unsigned one_in;   /* segments of which one is changed, by chance; 0: none is */
	_Atomic unsigned flipped;  /* segments so far that had a bit changed */
	_Atomic unsigned replaced; /* segments so far with the bytes of an earlier one */
	atomic_flag busy;
	unsigned short chance[3]; /* state of nrand48() */
	unsigned next; /* place in the past that is used next */
	struct {
		size_t bytes;
		uint8_t data[TAMPER_PAYLOAD_BYTES];
	} past[TAMPER_PAST];
};

/* Let a frame of Ethernet pass, changed or not. */
void tamper_pass(struct tamper *tamper, uint8_t *frame, size_t bytes);

#endif
