/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of a side door, between two processes of one host and user, over a unix
 * socket beside the door of their link.  Descriptors go with packets, in the order
 * of the fields that name descriptors.
 *
 * Pure.
 */
#ifndef WF_SIDE_H
#define WF_SIDE_H

#include "util/error.h"

#define WF_SIDE_MAGIC "WEFS"
#define WF_SIDE_RAILS_MAX 16     /* as WF_GREET_RAILS_MAX */
#define WF_SIDE_ADDRESS_BYTES 128 /* as WF_GREET_ADDRESS_BYTES */
#define WF_SIDE_NONCE_BYTES 16
#define WF_SIDE_FDS_MAX (3 + WF_SIDE_RAILS_MAX)
#define WF_SIDE_BYTES_MAX 4096 /* a packet's bytes; the longest has 2384 */

enum wf_side_kind {
	WF_SIDE_MEET = 1, /* the first packet each way */
	WF_SIDE_RAILS,    /* rails have been opened anew */
	WF_SIDE_SLAB,     /* memory that bodies are lent in */
	WF_SIDE_DROPPED   /* the reader has the memory of a slab no more */
};

/* A same-host rail of the hello's list. */
struct wf_side_rail {
	uint32_t index, edition; /* index and edition in the hello */
	bool gate;               /* a descriptor: the gate of its endpoint */
	uint32_t address_bytes;
	uint8_t address[WF_SIDE_ADDRESS_BYTES];
};

struct wf_side_packet {
	enum wf_side_kind kind;
	/* meet: */
	uint64_t link, token;           /* as in the sender's hello */
	uint64_t peer_link, peer_token; /* as in the receiver's hello */
	uint8_t nonce[WF_SIDE_NONCE_BYTES];
	uint64_t nonce_address;         /* address of @nonce in the sender's memory */
	uint64_t side;                  /* the number of the sender's own side door */
	bool bell;                      /* two descriptors: an eventfd and its page */
	bool lends;                     /* a descriptor: the page of its leases */
	/* meet and rails: */
	uint32_t rail_count;
	struct wf_side_rail rails[WF_SIDE_RAILS_MAX];
	/* slab, with its descriptor, and dropped: */
	uint64_t file;                  /* the number of the slab's file */
};

/* Descriptors that go with @packet. */
unsigned wf_side_fds(const struct wf_side_packet *packet);

/* Write @packet to @bytes, with room for WF_SIDE_BYTES_MAX.  Returns the bytes written. */
size_t wf_side_put(const struct wf_side_packet *packet, uint8_t *bytes);

/* Read @packet.  -EBADMSG with a sentence: @bytes are no packet of a side door. */
int wf_side_get(const uint8_t *bytes, size_t count, struct wf_side_packet *packet,
		struct wf_error *e);

#endif
