/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parcels: the records by which a body is read where bodies are sealed.
 *
 *   SEAL    reader to owner: encrypt these bytes of an offered body for a read
 *   SEALED  owner to reader: where the encrypted bytes can be read, and by which key they open
 *   OPENED  reader to owner: a parcel, or all of a pull's, is read (record.h)
 *
 * The first may come with the offer (body.h), and nobody asks for it.
 *
 * Pure: no I/O, no allocation, no clock.
 */
#ifndef WF_WIRE_PARCEL_H
#define WF_WIRE_PARCEL_H

#include "wire/body.h"

#define WF_PARCEL_RANGES_MAX 4

/* Bytes of an offered body, from @at on; of a staged body, of its bounce buffer. */
struct wf_parcel_range {
	uint64_t at, bytes;
};

struct wf_parcel_ask {
	uint64_t offer; /* offer of the owner's */
	uint64_t pull;  /* reader's */
	uint32_t read;  /* number of the read in the pull */
	uint32_t round; /* how often that read was asked for: the answer repeats it */
	uint64_t opened; /* parcel of that pull that the reader has done with; 0: none */
	uint8_t priority; /* 0 to WEFT_PRIORITY_MAX: that of the answer */
	uint8_t count;
	struct wf_parcel_range ranges[WF_PARCEL_RANGES_MAX];
};

#define WF_PARCEL_ASK_BYTES_MAX (34 + WF_PARCEL_RANGES_MAX * 16)

void wf_parcel_ask_put(struct wf_bytes_writer *w, const struct wf_parcel_ask *a);
/*
 * -EBADMSG: lengths; no such priority; no range, or one that is empty or wraps; more bytes than a
 * parcel has.
 */
int wf_parcel_ask_get(const uint8_t *bytes, size_t count, struct wf_parcel_ask *a);
/* Bytes of all ranges. */
uint64_t wf_parcel_ask_bytes(const struct wf_parcel_ask *a);

struct wf_parcel_answer {
	uint64_t pull;
	uint32_t read, round; /* as they were asked */
	uint8_t status;  /* enum weft_status: WEFT_OK, or why there is no parcel */
	/* zeros without a parcel */
	uint64_t parcel; /* owner's id */
	uint32_t epoch;  /* the rail for which address and key hold */
	uint64_t address, key;
	uint8_t secret[WF_PARCEL_SECRET_BYTES], tag[WF_PARCEL_TAG_BYTES];
};

#define WF_PARCEL_ANSWER_BYTES 93

void wf_parcel_answer_put(struct wf_bytes_writer *w, const struct wf_parcel_answer *a);
/* -EBADMSG: lengths; no such status; a parcel 0 that is well, or more than zeros without one. */
int wf_parcel_answer_get(const uint8_t *bytes, size_t count, struct wf_parcel_answer *a);

#endif
