/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetches: the reads of a pull where bodies are sealed.
 *
 * In place of the body a fetch reads a parcel (parcels.h): the owner is asked for one, unless it came
 * with the offer, the rail reads it into a bounce buffer here, and it is decrypted from there to
 * where the read belongs.
 * The pull sees a read that takes longer, and nothing counts as come before its tag has verified.
 * Where others may look at the destination nothing is written there before, either.
 *
 * A fetch has a buffer, and its owner the parcel, only while it is under way: a pull that makes way
 * for others, or waits, keeps nothing that they need.  A buffer whose owner has not answered for
 * long is taken back where the body of a peer that has none finds no room.
 *
 * Threads: owner.
 */
#ifndef WF_FETCH_H
#define WF_FETCH_H

#include "memory/grant.h"
#include "secure/one_time.h"
#include "transfer/pull_state.h"
#include "wire/parcel.h"

/*
 * The longest fetch.  With 256, 512 and 1024 KiB 64 MiB came at 3.1, 3.5 and 2.9 GB/s, and 1 MiB at
 * 2.2, 2.6 and 2.0: loopback, one processor a side, AES-128-GCM at 6 GB/s.
 */
#define WF_FETCH_BYTES (512 * KIB)

struct wf_message_copy;

struct wf_fetch {
	struct wf_engine_read read; /* read of the parcel, over the rail */
	struct wf_pull_read *of;
	struct wf_list asked; /* in transfer->asked, while the fetch waits for its owner */
	uint64_t asked_ns;
	uint8_t *chunk; /* the bounce buffer; NULL: none */
	uint64_t room;  /* bytes of @chunk */
	struct wf_grant grant; /* grant of @chunk to our own reads */
	uint64_t parcel;       /* parcel that its owner keeps for us; 0: none */
	bool offered;          /* @parcel came with the offer, and is kept as long */
	struct wf_one_time_key key;
	uint32_t round;
	bool put_off; /* the owner had no room: to be asked again is no failure */
	enum { WF_FETCH_IDLE, WF_FETCH_ASKED, WF_FETCH_MOVING } state;
};

struct wf_fetches {
	struct wf_message_copy *opened; /* room for the record that gives all parcels back */
	unsigned failures; /* parcels in a row that did not come, or did not verify */
	unsigned put_offs; /* refusals in a row, for want of room */
	uint64_t failing_ns; /* when the first of the failures was */
	struct wf_fetch all[WF_PULL_DEPTH_MAX]; /* fetch n makes read n of the pull */
};

/* Have the reads of @pull, none of which is under way, made by fetches.  -ENOMEM. */
int wf_fetch_open(struct wf_pull *pull);

/* Give all back, here and at the owner's; nothing is moving.  Harmless without fetches. */
void wf_fetch_close(struct wf_pull *pull);

/* Make @r: ask for its parcel.  -EAGAIN: there is no memory for it just now. */
int wf_fetch_post(struct wf_pull *pull, struct wf_pull_read *r);

/* End, to be made again, the reads that wait for the owner's answer.  Harmless without fetches. */
void wf_fetch_end_asked(struct wf_pull *pull);

/* End fetches of which the rail says no word any more.  Harmless without fetches. */
void wf_fetch_quiet(struct wf_pull *pull);

/* Returns, and forgets, whether the last try of @r was put off by its owner. */
bool wf_fetch_was_put_off(struct wf_pull *pull, const struct wf_pull_read *r);

/*
 * Note that a fetch of @pull ended with @code, for wf_pull_put_back().  Returns the pause before it
 * is asked for again; 0: it has failed too often.
 */
uint64_t wf_fetch_pause_ns(struct wf_pull *pull, int code);

/*
 * Take the answer of the peer of @link, which is for @pull; NULL: that is over.  -ENOMEM: it comes
 * again.
 */
int wf_fetch_answered(struct wf_link *link, struct wf_pull *pull,
		      const struct wf_parcel_answer *answer);

#endif
