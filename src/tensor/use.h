/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps in use: an index of the operations and parts of each step, so that its end touches
 * nothing else.
 *
 * A step is in use as long as it has a member: a send or a receive that has not ended, or a
 * peer's part in it (part.h), with the tensors that came from there.
 *
 * No I/O, no clock.
 *
 * Threads: owner.
 */
#ifndef WF_USE_H
#define WF_USE_H

#include "util/freelist.h"
#include "util/list.h"
#include "util/map.h"

/* Steps in use of a worker. */
struct wf_uses {
	struct wf_map map;   /* struct wf_use, by step */
	struct wf_use *last; /* step found last, as a rule the next, too; or NULL */
	struct wf_freelist spare; /* freelist: each message may be of a step of its own */
};

struct wf_use {
	struct wf_map_node node;
	struct wf_uses *uses;
	uint64_t step;
	unsigned holds;          /* holds by functions that walk the lists */
	struct wf_list sends;    /* struct wf_sending */
	struct wf_list receives; /* struct wf_receiving */
	struct wf_list parts;    /* struct wf_part */
	struct wf_list any_key;  /* members of @receives that wait for any key */
	struct wf_list kept;     /* struct wf_unexpected: tensors that wait, in their order */
};

/* A member of a step; all zero: of no step. */
struct wf_use_member {
	struct wf_list node;
	struct wf_use *use;
};

void wf_uses_init(struct wf_uses *uses);
/* Tear @uses down, when no step is in use any more. */
void wf_uses_fini(struct wf_uses *uses);

/* Returns the members of @step.  NULL: there are none. */
struct wf_use *wf_use_find(const struct wf_uses *uses, uint64_t step);

/*
 * Returns the members of @step, made if there are none, and held until wf_use_put().  NULL: no
 * memory.
 */
struct wf_use *wf_use_get(struct wf_uses *uses, uint64_t step);

/* Keep @use while its lists are walked. */
void wf_use_hold(struct wf_use *use);

/* End a hold of @use, which is freed without members. */
void wf_use_put(struct wf_use *use);

/* Add @m to @list, one of the lists of @use. */
void wf_use_enter(struct wf_use *use, struct wf_list *list, struct wf_use_member *m);

/* Take @m out of its step.  Harmless when @m is of no step. */
void wf_use_leave(struct wf_use_member *m);

#endif
