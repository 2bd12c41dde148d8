/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/step_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/rights.h"
#include "util/status.h"

#define BRIEF_NS (5 * WF_NS_PER_MS) /* pause before peers are told again, after -ENOMEM */

struct abort_message {
	struct wf_message message;
	uint8_t bytes[];
};

static void abort_sent(struct wf_message *m, const struct wf_error *e)
{
	(void)e;
	free(WF_CONTAINER(m, struct abort_message, message));
}

static void brief_again(struct wf_timer *timer)
{
	struct wf_channels *c = WF_CONTAINER(timer, struct wf_channels, brief_timer);

	WF_LIST_EACH(node, &c->engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->state == WF_LINK_UP)
			wf_step_end_up(c, link);
	}
}

/*
 * Tell a peer of an abort; without memory it is told later, as a new one is: of all that is
 * remembered.
 */
static void tell(struct wf_channels *c, struct wf_link *link, const struct wf_step *s)
{
	struct wf_record_abort record = {
		.step = s->number,
		.status = (uint8_t)s->status,
		.text_bytes = (uint16_t)strlen(s->text),
		.text = (const uint8_t *)s->text,
	};
	size_t count = wf_record_abort_bytes(&record);
	struct abort_message *m = malloc(sizeof(*m) + count);
	struct wf_bytes_writer w;

	if (!m) {
		link->above.briefed = false;
		wf_loop_timer(&c->engine->loop, &c->brief_timer, c->engine->loop.now_ns + BRIEF_NS,
				brief_again);
		return;
	}
	w = wf_bytes_writer(m->bytes, count);
	wf_record_abort_put(&w, &record);
	m->message = (struct wf_message){
		.type = WF_RECORD_ABORT,
		.priority = WEFT_PRIORITY_MAX,
		.head = m->bytes,
		.head_bytes = count,
		.sent = abort_sent,
	};
	wf_link_post(link, &m->message);
}

/* Is the peer of @link told of an abort that came @from a peer, or NULL: that began here? */
static bool is_told(const struct wf_link *link, const struct wf_link *from)
{
	return link->above.briefed && link != from;
}

/*
 * Tell all peers, before anything is stopped: the stop makes us say things to peers, and the
 * abort must be the first that they hear.
 */
static void tell_all(struct wf_channels *c, const struct wf_step *s, const struct wf_link *from)
{
	WF_LIST_EACH(node, &c->engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (is_told(link, from))
			tell(c, link, s);
	}
}

/*
 * End the pending operations of @s with @e.  @passed_on: peers were told of an abort that came
 * @from a peer, and need not hear of each offer that is over by that.
 */
static void stop_step(struct wf_channels *c, const struct wf_step *s, const struct wf_error *e,
		      bool passed_on, const struct wf_link *from)
{
	struct wf_use *use = wf_use_find(&c->uses, s->number);

	if (!use)
		return;
	wf_use_hold(use);
	WF_LIST_EACH(node, &use->sends) {
		struct wf_sending *send = WF_CONTAINER(node, struct wf_sending, use.node);

		send->outgoing.told = passed_on && is_told(wf_link_real(send->link), from);
		wf_sending_stop(send, e);
	}
	/* The end of one may match and end another, and give up a part that was idle. */
	WF_LIST_EACH_OF_NOW(node, &use->receives) {
		struct wf_receiving *r = WF_CONTAINER(node, struct wf_receiving, use.node);

		if (s->aborted)
			wf_channels_stop_receive(r, e);
		else
			wf_channels_cancel_receive(r, e);
	}
	WF_LIST_EACH_OF_NOW(node, &use->parts)
		wf_channels_drop(WF_CONTAINER(node, struct wf_part, use.node), wf_step_told(s));
	wf_use_put(use);
}

/*
 * Abort a step of which no abort is known, as the peer of @from says, or of another worker: @heard.
 * Takes @fresh.
 */
static void abort_step(struct wf_channels *c, struct wf_step *fresh, const struct wf_link *from,
		       bool heard)
{
	uint64_t now_ns = c->engine->loop.now_ns;
	bool kept = !(heard && wf_steps_crowded(&c->aborted, now_ns));
	struct wf_error e;

	if (kept)
		wf_steps_add(&c->aborted, fresh, now_ns);
	wf_step_error(fresh, &e);
	wf_log(&c->engine->log, WF_LOG_INFO, "%s", e.text);
	wf_recorder_add(&c->engine->loop.recorder, WF_RECORDER_STEP_ABORT, from ? from->number : 0,
			fresh->number, (uint64_t)e.code);
	if (kept)
		tell_all(c, fresh, from);
	stop_step(c, fresh, &e, kept, from);
	if (!kept)
		wf_step_free(fresh);
}

void wf_step_end_abort(struct wf_channels *c, struct wf_step *fresh, bool heard)
{
	if (wf_steps_find(&c->aborted, fresh->number))
		wf_step_free(fresh);
	else
		abort_step(c, fresh, NULL, heard);
}

void wf_step_end_here(struct wf_channels *c, struct wf_step *fresh)
{
	struct wf_error e;

	if (wf_steps_find(&c->ended, fresh->number)) {
		wf_step_free(fresh);
		return;
	}
	wf_steps_add(&c->ended, fresh, c->engine->loop.now_ns);
	wf_step_error(fresh, &e);
	e.code = -ECANCELED; /* outcome of operations that began before */
	wf_recorder_add(&c->engine->loop.recorder, WF_RECORDER_STEP_END, 0, fresh->number, 0);
	stop_step(c, fresh, &e, false, NULL);
}

/*
 * Abort a step as the peer of @link, which takes part in it, says.  Takes @fresh.  -ENOMEM:
 * nothing was done.
 */
static int obey(struct wf_channels *c, struct wf_link *link, struct wf_step *fresh)
{
	/* The step may have been aborted since @fresh was made. */
	if (wf_steps_find(&c->aborted, fresh->number)) {
		wf_step_free(fresh);
		return 0;
	}
	if (c->aborted_by_peer(c->ctx, fresh))
		return -ENOMEM;
	abort_step(c, fresh, link, true);
	return 0;
}

/*
 * Keep an abort by the peer of @link, which takes no part in the step: tensors that it has sent
 * itself end, and the rest when this node deals with it.  Takes @fresh.  -ENOMEM: nothing was
 * done.
 */
static int ignore(struct wf_channels *c, struct wf_link *link, struct wf_step *fresh)
{
	struct wf_part *part = wf_part_get(&c->parts, link, fresh->number);

	if (!part)
		return -ENOMEM;
	wf_counters_add(&c->engine->counters.aborts_ignored, 1);
	/* A peer that goes on and on must not fill the log. */
	if (link->parts.heard_count < WF_PARTS_HEARD_MAX)
		wf_log(&c->engine->log, WF_LOG_INFO,
		       "%s aborts step %llu, in which it takes no part: ignored",
		       wf_link_label(link), (unsigned long long)fresh->number);
	wf_channels_drop(part, fresh->status);
	wf_part_hear(part, fresh);
	wf_part_put(part);
	return 0;
}

static int take_abort(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_channels *c = ctx;
	struct wf_record_abort got;
	struct wf_step *fresh;
	struct wf_error e;
	int err;

	if (wf_record_abort_get(record->bytes, record->count, &got))
		return -EBADMSG;
	if (wf_steps_find(&c->aborted, got.step) || wf_rights_check(link, WF_ACL_ABORT, "", 0, &e))
		return 0;
	fresh = wf_step_new_aborted(got.step, got.status, (const char *)got.text, got.text_bytes);
	if (!fresh)
		return -ENOMEM;
	if (c->engine->options.abort_any || wf_part_takes(&c->parts, link, got.step))
		err = obey(c, link, fresh);
	else
		err = ignore(c, link, fresh);
	if (err)
		wf_step_free(fresh);
	return err;
}

void wf_step_end_route(struct wf_channels *c, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_ABORT, take_abort, c);
}

int wf_step_end_heard(struct wf_channels *c, struct wf_part *part)
{
	struct wf_step *fresh = wf_part_unhear(part);
	int err = obey(c, part->link, fresh);

	if (err)
		wf_part_hear(part, fresh);
	return err;
}

void wf_step_end_up(struct wf_channels *c, struct wf_link *link)
{
	if (link->above.briefed)
		return;
	link->above.briefed = true;
	WF_LIST_EACH(node, &c->aborted.by_age)
		tell(c, link, WF_CONTAINER(node, struct wf_step, node));
}
