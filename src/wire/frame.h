/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a frame: one message on a rail.
 *
 *   0  u8  version        8  u64 link      24 u32 epoch    40 u64 eager credit
 *   1  u8  kind          16  u64 token     28 u32 seq      48 u16 record_count
 *   2  u16 flags                           32 u32 ack      50 u16 number, high
 *   4  u32 body_bytes                      36 u32 credit   52 u32 number, low
 *
 * Little-endian.  The body, record after record, follows at once.  Of a sealed frame (flag 1) the
 * body is encrypted, and a seal of 16 bytes over header and body comes after it; it has a number
 * and no token.  Others have a token and no number.
 *
 * Pure: no I/O, no allocation, no clock.
 */
#ifndef WF_FRAME_H
#define WF_FRAME_H

#include "util/bytes.h"

#define WF_WIRE_VERSION 8
#define WF_FRAME_HEADER_BYTES 56
#define WF_FRAME_SEAL_BYTES 16 /* after the body of a sealed frame */

enum wf_frame_kind {
	WF_FRAME_DATA = 1,    /* numbered, spends a credit */
	WF_FRAME_CONTROL = 2, /* numbered on its own, one under way per direction */
	WF_FRAME_ANSWER = 3,  /* answers the control frame of number seq; no records */
	WF_FRAME_PING = 4,    /* tries a rail; from the side that dialled */
	WF_FRAME_PONG = 5,    /* answers a ping, and pings the other way */
	WF_FRAME_READY = 6    /* answers a pong: the rail works both ways */
};

struct wf_frame {
	uint8_t kind;
	bool sealed;
	uint64_t link;   /* the receiver's id of the link */
	uint64_t token;  /* the receiver's token of the link; 0 if sealed */
	uint32_t epoch;  /* number of the rail, in order of trying; frames of others are late */
	uint32_t seq;    /* data and control count apart; wraps */
	uint32_t ack;    /* data frames received in order, a running total */
	uint32_t credit; /* data frames the other side may ever send, a running total */
	uint64_t eager_credit; /* bytes of unmatched eager tensors that it may ever send */
	uint16_t record_count;
	uint64_t number; /* number of a sealed frame in its direction and epoch; 48 bits */
	uint32_t body_bytes; /* without the seal */
};

/* Write the header to @at, which has room for WF_FRAME_HEADER_BYTES. */
void wf_frame_put(uint8_t *at, const struct wf_frame *frame);

/*
 * Parse the header of the @count bytes of a message.  -EBADMSG: too short, an
 * unknown version or kind, something set that must be 0, or a body length
 * that is not what follows.  A seal is not looked at here.
 */
int wf_frame_get(const uint8_t *at, size_t count, struct wf_frame *frame);

#endif
