/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the door as plain bounded structs.
 *
 * protobuf-c does the encoding (wire/door.proto); here every length is checked
 * against a fixed limit, so that the floors above hold no protobuf memory.
 *
 * Pure but for the allocations of protobuf-c.
 */
#ifndef WF_GREET_H
#define WF_GREET_H

#include <stddef.h>

#include "util/error.h"

#define WF_GREET_MAGIC "WEFT"
#define WF_GREET_PREFIX_BYTES 8      /* magic, u32 length */
#define WF_GREET_BYTES_MAX 16384     /* a hello of 16 rails takes some 3 KiB */
#define WF_GREET_RAILS_MAX 16
#define WF_GREET_NAME_BYTES 64
#define WF_GREET_TEXT_BYTES 480
#define WF_GREET_ADDRESS_BYTES 128   /* as WF_ADDRESS_BYTES of fabric/ */
#define WF_INCARNATION_BYTES 16
#define WF_GREET_PROOF_BYTES 16
#define WF_GREET_PROOFS_MAX 4        /* proofs that follow a hello */

enum wf_greet_kind {
	WF_GREET_HELLO = 1,
	WF_GREET_REFUSE,
	WF_GREET_TRY,
	WF_GREET_CANNOT,
	WF_GREET_BEAT,
	WF_GREET_RESYNC,
	WF_GREET_GOODBYE,
	WF_GREET_SAME
};

struct wf_greet_rail {
	char provider[64];
	uint32_t libfabric, protocol, protocol_version, frame_bytes;
	bool connected, same_host;
	uint32_t edition;   /* on a same-host rail, a new number with each opening */
	uint8_t address[WF_GREET_ADDRESS_BYTES];
	uint32_t address_bytes;
};

struct wf_greet_hello {
	uint32_t wire_min, wire_max;
	uint8_t incarnation[WF_INCARNATION_BYTES];
	char name[WF_GREET_NAME_BYTES];
	char address[256];
	bool manual;
	uint64_t link, token;
	uint64_t resume_link, resume_token;
	uint64_t lost_ns;
	uint32_t record_bytes_max;
	char security[16];
	uint32_t checksums; /* bits of enum wf_body_sum */
	bool checksum;      /* the sender wants one with every body */
	uint32_t compressions; /* bits of WF_COMPRESSION_*, for messages */
	uint32_t lanes;     /* lanes that the sender takes part in, beside a rail */
	uint64_t side;      /* names the sender's side door; 0: none */
	uint32_t proofs;    /* messages of kind SAME that follow at once */
	bool dials;         /* the sender has dials without an answer yet */
	uint32_t cipher;    /* enum wf_seal_cipher of frames, where they are sealed */
	uint32_t rail_count;
	struct wf_greet_rail rails[WF_GREET_RAILS_MAX]; /* last, for wf_greet_hello_bytes() */
};

struct wf_greet {
	enum wf_greet_kind kind;
	union {
		struct wf_greet_hello hello;
		struct {
			uint32_t status;
			char text[WF_GREET_TEXT_BYTES];
		} refuse; /* goodbye, too: text only */
		struct {
			uint32_t epoch, mine, yours;
			char text[WF_GREET_TEXT_BYTES];
		} try; /* cannot, too: epoch and text */
		struct {
			uint64_t number;
			bool answer;
		} beat;
		struct {
			uint32_t epoch, received;
			bool answer;
		} resync;
		struct {
			uint64_t link;
			bool answer;
			bool proves; /* @proof is given */
			uint8_t proof[WF_GREET_PROOF_BYTES];
		} same;
	};
};

/* Encode with prefix into @bytes of WF_GREET_BYTES_MAX.  Returns the length; -EMSGSIZE. */
int wf_greet_put(const struct wf_greet *greet, uint8_t *bytes);

/*
 * The length, prefix included, of the message whose first @count bytes are @bytes.  0: too few
 * bytes to say.  -EBADMSG: no message of weft's (checked from the first byte on).  -EMSGSIZE.
 */
int wf_greet_length(const uint8_t *bytes, size_t count);

/* Decode one whole message, prefix included.  -EBADMSG with a sentence; -EMSGSIZE; -ENOMEM. */
int wf_greet_get(const uint8_t *bytes, size_t count, struct wf_greet *greet, struct wf_error *e);

/* Bytes of @hello without the room for rails that it does not have. */
static inline size_t wf_greet_hello_bytes(const struct wf_greet_hello *hello)
{
	return offsetof(struct wf_greet_hello, rails) + hello->rail_count * sizeof(hello->rails[0]);
}

/*
 * Copy the wf_greet_hello_bytes() of @hello alone.  Returns owned, to be freed, and never to be
 * copied as a struct.  NULL: out of memory.
 */
struct wf_greet_hello *wf_greet_keep_hello(const struct wf_greet_hello *hello);

#endif
