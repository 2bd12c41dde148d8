/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps that are over, aborted or ended: a memory of the last of them.
 *
 * The memory has a limit, beyond which the oldest step is forgotten; so neither a job of many
 * steps nor a peer that makes them up takes more than a few MiB.
 *
 * No I/O, no clock.
 *
 * Threads: owner.
 */
#ifndef WF_STEP_H
#define WF_STEP_H

#include <weft/base.h>
#include "util/error.h"
#include "util/list.h"
#include "util/map.h"

#define WF_STEPS_MAX 4096
#define WF_STEP_TEXT_BYTES 400 /* longest reason: a sentence fits, more is cut */

/* How long records of a step may still be on their way between peers. */
#define WF_STEP_YOUNG_NS (60 * WF_NS_PER_S)

struct wf_step {
	struct wf_map_node map_node;
	struct wf_list node; /* in wf_steps.by_age */
	uint64_t number;
	uint64_t since_ns;
	enum weft_status status; /* outcome of operations that come later */
	bool aborted;            /* false: the step has ended */
	char text[];             /* why the step was aborted; "": no reason was given */
};

struct wf_steps {
	struct wf_map map;
	struct wf_list by_age; /* steps, the oldest first */
	size_t count;
};

/*
 * Make a step that is aborted with @status because of @why, which is @bytes long and no C
 * string.  Returns owned; NULL: no memory.
 */
struct wf_step *wf_step_new_aborted(uint64_t number, enum weft_status status, const char *why,
				    size_t bytes);

/* Make a step that has ended.  Returns owned; NULL: no memory. */
struct wf_step *wf_step_new_ended(uint64_t number);
void wf_step_free(struct wf_step *s);

/* Write the outcome of an operation of step @s into @e.  Returns its code. */
int wf_step_error(const struct wf_step *s, struct wf_error *e);

/*
 * Returns what the sender of a tensor that comes for @s hears: why the step was aborted, or that
 * all is well, as the end of a step concerns its own node alone.
 */
enum weft_status wf_step_told(const struct wf_step *s);

void wf_steps_init(struct wf_steps *steps);
void wf_steps_fini(struct wf_steps *steps);

/* Returns the step of that number, or NULL: unknown, or forgotten. */
struct wf_step *wf_steps_find(const struct wf_steps *steps, uint64_t number);

/*
 * Remember @fresh, which is not known yet, and forget the oldest if there are too many.  Takes
 * @fresh.
 */
void wf_steps_add(struct wf_steps *steps, struct wf_step *fresh, uint64_t now_ns);

/* Returns whether another step would push out one that is still young. */
bool wf_steps_crowded(const struct wf_steps *steps, uint64_t now_ns);

#endif
