/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmission: the frames of a link on their way out.
 *
 * Messages and controls wait for the next life of the peer, too; numbers and credit belong to the
 * present life, and are kept apart from them.
 *
 * Threads: owner.
 */
#ifndef WF_TX_H
#define WF_TX_H

#include "loop/timer.h"
#include "util/error.h"
#include "util/list.h"
#include "util/priority.h"
#include "wire/credit.h"
#include "wire/frame.h"
#include "wire/sequence.h"

struct wf_link;
struct wf_greet;
struct wf_message;
struct wf_outframe;

/* Messages, controls and frames of a link.  When the peer has died no frame is left. */
struct wf_tx_out {
	/*
	 * Messages (struct wf_message) by priority, each list in order.  The parts of one record must
	 * follow each other, so that one that has begun is finished whatever waits.
	 */
	struct wf_list queues[WF_PRIORITIES];
	uint8_t waiting;             /* the queues that have messages, one bit each */
	struct wf_priority turns;
	uint64_t queued_bytes;
	struct wf_list frames;       /* struct wf_outframe, by number: frames not confirmed yet */
	bool frames_wait;            /* some of them may wait for the rail */
	struct wf_list held;         /* frames that only the rail still needs */
	struct wf_list controls;     /* struct wf_message_control: controls not sent yet */
	struct wf_list controls_out; /* controls in the frame under way */
	struct wf_outframe *control_frame; /* NULL: none is under way */
};

/* Frames of the link that the rail in use has.  Valid until that rail is left. */
struct wf_tx_rail {
	uint32_t posted_count;     /* data frames that the rail has */
	uint64_t full_ns;          /* when the rail began to take nothing; 0: it takes frames */
};

/*
 * Sending to the peer.  Valid until the peer dies, but for rtt_ns: the next life of the peer is as
 * far away as the last one, for it is dialled at the same address.
 *
 * ack_now (a frame that came waits for its confirmation), resync_ns (the peer was asked a moment
 * ago for missing frames) and replay_ns end with the peer: the next one has sent nothing that could
 * be confirmed, and has been asked for nothing.
 */
struct wf_tx {
	struct wf_sequence sequence;
	struct wf_credit credit;
	struct wf_tx_rail rail;
	uint64_t starved_ns;       /* when records began to wait for credit; 0: they don't wait */
	uint64_t rtt_ns;           /* smoothed round-trip time */
	uint64_t progress_ns;      /* when the rail last brought anything */
	uint32_t control_seq;      /* number of the last control frame */
	uint32_t ack_told;
	bool ack_now;              /* the acknowledgement does not wait for a frame to ride on */
	bool answer_owed;          /* an answer is owed for a control frame of the peer */
	unsigned overdue_count;
	bool stalled;              /* the rail brought nothing when a frame was last overdue */
	unsigned stalls;           /* rails left for that since a frame was confirmed without a copy */
	uint64_t resync_ns;        /* when the last resync was sent */
	uint64_t replay_ns;        /* when frames were last sent again */
	struct wf_timer overdue_timer, ack_timer;
};

/*
 * Note that the rail is alive: a frame has come, or a read of the peer's memory has ended well.
 */
static inline void wf_tx_progress(struct wf_tx *tx, uint64_t now_ns)
{
	tx->progress_ns = now_ns;
}

void wf_tx_init(struct wf_tx_out *out);

/* Put @m into the queue of its priority, or of a message that it follows. */
void wf_tx_queue(struct wf_tx_out *out, struct wf_message *m);

/* Take @m out of its queue, and with it those of its bytes that are in no frame. */
void wf_tx_unqueue(struct wf_tx_out *out, struct wf_message *m);

/* Queue all messages of @from, none of which has begun, in @to. */
void wf_tx_move(struct wf_tx_out *to, struct wf_tx_out *from);

void wf_tx_up(struct wf_link *link);
void wf_tx_run(struct wf_link *link);
void wf_tx_sent(struct wf_outframe *frame, int status);
void wf_tx_rail_gone(struct wf_link *link);
void wf_tx_fail(struct wf_link *link, const struct wf_error *e);
void wf_tx_confirm(struct wf_link *link, uint32_t ack);
void wf_tx_confirm_later(struct wf_link *link);
void wf_tx_answered(struct wf_link *link, uint32_t seq);
void wf_tx_resync(struct wf_link *link, const struct wf_greet *greet);
int wf_tx_special(struct wf_link *link, enum wf_frame_kind kind);

/*
 * Say which frames we have, so that the peer says the same: frames are missing, or
 * acknowledgements.
 */
void wf_tx_ask(struct wf_link *link);

/* Reset sending on @link: the peer is dead, and what was under way to it has failed. */
void wf_tx_forget(struct wf_link *link);

#endif
