/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive credit: slots promised to the peer of a link, and credits returned to it.
 *
 * Threads: owner.
 */
#ifndef WF_RX_CREDIT_H
#define WF_RX_CREDIT_H

#include "link/message.h"
#include "loop/timer.h"

struct wf_link;

/* Promises to the peer.  Valid until the peer dies. */
struct wf_rx_credit {
	uint32_t window;         /* data frames that the peer may have under way, if slots allow */
	uint64_t data_ns;        /* when a data frame last came */
	uint32_t promised_total; /* data frames that slots were ever promised for */
	uint32_t promised_told;  /* promised_total as last put into a frame */
	uint32_t returned_seen;  /* promises that the peer has given back unused */
	uint32_t returned_total; /* credits that this side has given back */
	bool return_asked;       /* the peer has been asked to give credits back */
	bool kept_short;         /* credit is held back until less is kept for the peer */
	bool kept_less;          /* less is kept for the peer since credit was held back */
	uint32_t debt_end;       /* promises used or given back when the peer has met our request */
	uint64_t debt_ns;        /* when the peer was asked; it has not given back since */
	unsigned debt_looks;
	struct wf_timer debt_timer;
};

/* Controls of the budget: at most one each of RETURN and RETURNED is under way. */
struct wf_rx_credit_controls {
	struct wf_message_control ask, give;
};

void wf_rx_credit_init(struct wf_rx_credit_controls *controls);
int wf_rx_credit_admit(struct wf_link *link);
void wf_rx_credit_leave(struct wf_link *link);
void wf_rx_credit_refill(struct wf_link *link);

/* Promise slots that were held back, now that less is kept on the peer's behalf. */
void wf_rx_credit_room(struct wf_link *link);
void wf_rx_credit_asked(struct wf_link *link, uint32_t count);
void wf_rx_credit_returned(struct wf_link *link, uint32_t total);

/* Reset the promises of @link, whose peer is dead. */
void wf_rx_credit_forget(struct wf_link *link);

#endif
