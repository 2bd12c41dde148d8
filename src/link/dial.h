/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dial: the door side of a link: dialling with patience, and the greeting.
 *
 * Threads: owner.
 */
#ifndef WF_DIAL_H
#define WF_DIAL_H

#include "link/door.h"
#include "link/sidedoor.h"

/* The patience of a link that dials; the first dial of a row sets it. */
struct wf_dial {
	uint64_t until_ns;         /* when dialling is given up */
	uint64_t pause_ns;         /* pause before the next dial, which grows with every refusal */
	uint64_t refused_ns;       /* when our key was first refused; 0: it was not */
	struct wf_timer timer;
	bool met;                  /* the peer was up before: a refusal means it is gone */
	char gate_text[160];       /* why no same-host rail reaches the peer; outlives the peer */
};

void wf_dial_start(struct wf_link *link);
void wf_dial_again(struct wf_link *link);
void wf_dial_tell(struct wf_link *link);

/* Dial again, as long as there is time: @e, which may pass, has ended the dial under way. */
void wf_dial_anew(struct wf_link *link, const struct wf_error *e);
void wf_dial_gone(struct wf_link *link, const struct wf_error *e);
extern const struct wf_door_events wf_dial_events;
extern const struct wf_sidedoor_events wf_dial_beside;

#endif
