/* SPDX-License-Identifier: BSD-2-Clause */
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "calls.h"
#include "content.h"
#include "job.h"
#include "landings.h"
#include "pushes.h"
#include "staying.h"
#include "windows.h"

#define SHARED_ONE_IN 3              /* of sends */
#define RETRY_NS (30 * MS)           /* of a lane whose peer is not there */
#define WATCH_NS (300 * MS)          /* how long a buffer is watched after the end */
#define WATCH_BYTES_MAX (64 * MIB)   /* of all watched buffers; beyond it the oldest go */

/* Receivers have more under way than senders, so that those needn't wait. */
static const struct lane_kind kinds[] = {
	{ REPORT_SEND, true, 4 * KIB, 8 },   { REPORT_RECV, true, 4 * KIB, 12 },
	{ REPORT_SEND, true, 128 * KIB, 3 }, { REPORT_RECV, true, 128 * KIB, 5 },
	{ REPORT_SEND, true, 4 * MIB, 1 },   { REPORT_RECV, true, 4 * MIB, 2 },
	{ REPORT_SEND, false, 4 * KIB, 6 },  { REPORT_RECV, false, 4 * KIB, 8 },
	/* From 4 MiB on a second thread helps to read within one host. */
	{ REPORT_SEND, false, 8 * MIB, 2 },  { REPORT_RECV, false, 8 * MIB, 3 },
	{ REPORT_CALL, true, 64 * KIB, 4 },  { REPORT_CALL, false, 1 * MIB, 2 },
	{ REPORT_PING, true, 0, 1 },
	{ REPORT_SEND, true, 64 * KIB, 4 },  { REPORT_STAY, true, 64 * KIB, 1 },
	{ REPORT_SEND, false, 1 * MIB, 3 },  { REPORT_STAY, false, 1 * MIB, 1 },
	{ REPORT_FIND, true, 0, 1 },	     { REPORT_FIND, false, 0, 1 },
	{ REPORT_GET, true, WINDOWS_CALM_BYTES, 3 },
	{ REPORT_PUT, true, WINDOWS_CALM_BYTES, 3 },
	{ REPORT_GET, false, WINDOWS_WILD_BYTES, 2 },
	{ REPORT_PUT, false, WINDOWS_WILD_BYTES, 2 },
	{ REPORT_SEEK, true, 0, 1 },	     { REPORT_SEEK, false, 0, 1 },
	{ REPORT_PUSH, true, LANDINGS_CALM_BYTES, 3 },
	{ REPORT_PUSH, false, LANDINGS_WILD_BYTES, 2 },
};

#define LANES (sizeof(kinds) / sizeof(kinds[0]))
_Static_assert(LANES <= JOB_LANES_MAX, "room for all lanes");

/* A callback of the worker. */
static void *asked(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct job *j = arg;

	(void)want;
	j->bytes = guarded_take(bytes);
	j->count = bytes;
	if (j->bytes)
		guarded_mark(j->bytes, bytes);
	return j->bytes;
}

/* Begin. */

static int begin_send(struct traffic *t, struct job *j)
{
	struct weft_send_options options = { .size = sizeof(options), .op = job_options(t, j) };
	struct weft_tensor tensor;
	void *shared = NULL;
	int64_t count;
	char key[JOB_KEY_BYTES];
	size_t length = job_key(key, t->config.self, j->lane->peer);
	int err;

	if (!job_fill(t, j))
		return -1;
	count = (int64_t)j->count;
	tensor = job_tensor(j->bytes, &count);
	if (!job_draw(t, SHARED_ONE_IN) && j->count && !weft_alloc(t->node, j->count, &shared)) {
		memcpy(shared, j->bytes, j->count);
		tensor.data = shared;
		options.flags = WEFT_SHARE;
	}
	err = weft_send(t->peers[j->lane->peer], j->lane->step, key, length, &tensor,
			&options, &j->op);
	weft_free(t->node, shared);
	return err;
}

static int begin_recv(struct traffic *t, struct job *j)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = job_options(t, j) };
	struct weft_tensor into;
	int64_t count;
	char key[JOB_KEY_BYTES];
	size_t length = job_key(key, j->lane->peer, t->config.self);

	j->place = (enum place)job_draw(t, PLACES);
	if (j->place == PLACE_OWN) {
		j->count = j->lane->is->bytes_most;
		j->bytes = guarded_take(j->count);
		if (!j->bytes)
			return -1;
		guarded_mark(j->bytes, j->count);
		options.flags = WEFT_ANY_SHAPE;
	} else if (j->place == PLACE_ASKED) {
		options.alloc = asked;
		options.alloc_arg = j;
	}
	count = (int64_t)j->count;
	into = job_tensor(j->bytes, &count);
	return weft_recv(t->node, t->peers[j->lane->peer], j->lane->step, key,
			 length, j->place == PLACE_OWN ? &into : NULL, &options, &j->op);
}

static int begin(struct traffic *t, struct job *j)
{
	struct weft_op_options options;

	switch (j->lane->is->kind) {
	case REPORT_SEND:
		return begin_send(t, j);
	case REPORT_RECV:
		return begin_recv(t, j);
	case REPORT_STAY:
		return staying_begin(t, j);
	case REPORT_FIND:
	case REPORT_GET:
	case REPORT_PUT:
		return access_begin(t, j);
	case REPORT_SEEK:
	case REPORT_PUSH:
		return pushes_begin(t, j);
	case REPORT_CALL:
		return calls_begin(t, j);
	default:
		options = job_options(t, j);
		return weft_ping(t->peers[j->lane->peer], &options, &j->op);
	}
}

static void begin_in(struct traffic *t, struct lane *lane)
{
	struct job *j = calloc(1, sizeof(*j));
	uint64_t now = now_ns();

	lane->not_before_ns = now + job_draw(t, 2000 * t->config.gap_us + 1);
	if (!j)
		return;
	j->traffic = t;
	j->lane = lane;
	j->begun_ns = now;
	if (begin(t, j)) {
		job_tell_of(j, REPORT_FAILED, weft_error());
		lane->not_before_ns = now + RETRY_NS;
		job_free(j);
		return;
	}
	lane->next_sequence++;
	lane->under_way++;
	j->next = t->running;
	t->running = j;
}

/* End. */

static bool is_receive(const struct lane *lane)
{
	return lane->is->kind == REPORT_RECV || lane->is->kind == REPORT_STAY;
}

static bool is_access(const struct lane *lane)
{
	return lane->is->kind == REPORT_FIND || lane->is->kind == REPORT_GET ||
	       lane->is->kind == REPORT_PUT;
}

static bool is_push(const struct lane *lane)
{
	return lane->is->kind == REPORT_SEEK || lane->is->kind == REPORT_PUSH;
}

static void check_tensor(struct traffic *t, struct job *j)
{
	const struct weft_tensor *got = weft_op_tensor(j->op, NULL);
	size_t count = got && got->ndim == 1 ? (size_t)got->shape[0] : SIZE_MAX;
	const unsigned char *bytes = count && got ? (unsigned char *)got->data + got->byte_offset :
						    NULL;
	char text[JOB_TEXT_BYTES];

	if (count > j->lane->is->bytes_most || (count && !bytes) ||
	    (count && !content_get(bytes, count, &j->what)) ||
	    (count && (j->what.from != j->lane->peer || j->what.to != t->config.self ||
		       j->what.lane != j->lane->step))) {
		snprintf(text, sizeof(text), "a tensor of %zu bytes came wrong", count);
		job_tell_of(j, REPORT_WRONG, text);
	} else if (count && !content_is_new(&j->lane->seen, &j->what)) {
		job_tell_of(j, REPORT_TWICE, "a tensor came again");
	}
	if (j->place == PLACE_OWN && count <= j->count &&
	    !guarded_is_quiet(j->bytes, count, j->count))
		job_tell_of(j, REPORT_TOUCHED, "bytes behind the tensor have changed");
	t->totals.bytes += count;
}

static void check_outcome(struct traffic *t, struct job *j)
{
	enum weft_status status = weft_op_status(j->op);

	t->totals.ended++;
	if (status == WEFT_OK && is_receive(j->lane)) {
		check_tensor(t, j);
	} else if (is_access(j->lane)) {
		access_check(t, j);
	} else if (is_push(j->lane)) {
		pushes_check(t, j);
	} else if (j->lane->is->kind == REPORT_CALL) {
		calls_check(j);
	}
	if (status == WEFT_OK) {
		j->lane->is_met = true;
		return;
	}
	t->totals.failed++;
	t->totals.cancelled += j->cancelled_ns != 0;
	job_tell_of(j, REPORT_FAILED, weft_op_message(j->op));
	if (status == WEFT_UNAVAILABLE)
		j->lane->not_before_ns = now_ns() + RETRY_NS;
}

static void check_time(struct traffic *t, struct job *j, uint64_t now)
{
	uint64_t due = j->due_ns;

	if (j->cancelled_ns && j->cancelled_ns < due)
		due = j->cancelled_ns;
	/* A receive that stays ends after tensors on their way, whose sends end by deadlines of their own. */
	if (j->lane->is->kind == REPORT_STAY)
		due += JOB_CALM_NS;
	if (j->is_told_late || now <= due + t->config.bound_ns + SLACK_NS)
		return;
	j->is_told_late = true;
	job_tell_of(j, REPORT_LATE, atomic_load(&j->ends) ? "" : "it has not ended");
}

/* It stays as it is, also when the sender ends his life. */
static void begin_view(const struct traffic *t, struct job *j)
{
	const struct weft_tensor *got;
	unsigned flags = 0;

	got = weft_op_tensor(j->op, &flags);
	if (!got || !(flags & WEFT_READONLY) || t->hushed)
		return;
	j->view_count = (size_t)got->shape[0];
	j->view = weft_op_take(j->op);
}

static void end_view(struct traffic *t, struct job *j)
{
	struct content what;

	if (!j->view)
		return;
	if (!content_get(j->view, j->view_count, &what) || what.life != j->what.life ||
	    what.sequence != j->what.sequence)
		job_tell_of(j, REPORT_TOUCHED, "what it looks at has changed");
	weft_free(t->node, j->view);
}

/* From here on the buffer of @j is ours alone, and whoever writes there is seen. */
static void watch(struct traffic *t, struct job *j)
{
	if (j->bytes)
		guarded_mark(j->bytes, j->count);
	j->watched_until_ns = now_ns() + WATCH_NS;
	j->next = NULL;
	*t->last_watched = j;
	t->last_watched = &j->next;
	t->watched_bytes += j->count;
}

/* Account for @j, which has ended. */
static void end(struct traffic *t, struct job *j)
{
	struct job *rest;

	check_time(t, j, atomic_load(&j->ended_ns));
	check_outcome(t, j);
	begin_view(t, j);
	j->lane->under_way--;
	weft_op_free(j->op);
	j->op = NULL;
	watch(t, j);
	while ((rest = staying_rest(j)))
		watch(t, rest);
}

static void look_at_running(struct traffic *t)
{
	uint64_t now = now_ns();
	struct job **at = &t->running, *j;

	while ((j = *at)) {
		if (atomic_load(&j->ends)) {
			*at = j->next;
			end(t, j);
			continue;
		}
		check_time(t, j, now);
		if (j->cancel_ns && now >= j->cancel_ns && !j->cancelled_ns) {
			j->cancelled_ns = now_ns();
			weft_cancel(j->op);
		}
		at = &j->next;
	}
}

static void look_at_watched(struct traffic *t, bool all)
{
	uint64_t now = now_ns();
	struct job *j;

	while ((j = t->watched) && (all || j->watched_until_ns <= now ||
				    t->watched_bytes > WATCH_BYTES_MAX)) {
		t->watched = j->next;
		if (!t->watched)
			t->last_watched = &t->watched;
		t->watched_bytes -= j->count;
		if (atomic_load(&j->ends) != 1)
			job_tell_of(j, REPORT_TWICE, "it ended more than once");
		if (j->bytes && !guarded_is_quiet(j->bytes, 0, j->count))
			job_tell_of(j, REPORT_TOUCHED, "its buffer was written after its end");
		end_view(t, j);
		job_free(j);
	}
}

static bool may_begin(const struct traffic *t, const struct lane *lane)
{
	if (!t->goes || t->hushed || lane->under_way >= lane->is->limit ||
	    now_ns() < lane->not_before_ns)
		return false;
	if (is_push(lane))
		return pushes_may_begin(t, lane);
	return is_access(lane) ? access_may_begin(t, lane) : !t->drains || is_receive(lane);
}

void traffic_turn(struct traffic *t)
{
	struct job *j;

	while ((j = staying_next(t)))
		end(t, j);
	look_at_running(t);
	look_at_watched(t, false);
	calls_answer(t, t->hushed);
	windows_turn(t);
	landings_turn(t);
	for (unsigned peer = 0; peer < t->config.count; peer++)
		for (size_t i = 0; i < LANES && peer != t->config.self; i++)
			while (may_begin(t, &t->lanes[peer][i]))
				begin_in(t, &t->lanes[peer][i]);
}

/* Life. */

bool traffic_has_met_all(struct traffic *t)
{
	bool met = true;

	for (unsigned peer = 0; peer < t->config.count; peer++) {
		bool any = peer == t->config.self;

		for (size_t i = 0; i < LANES; i++)
			any |= t->lanes[peer][i].is_met;
		met &= any;
	}
	return met;
}

/* Receives of both kinds are counted together, as the sends that they get. */
static enum report_kind counted_as(enum report_kind kind)
{
	return kind == REPORT_STAY ? REPORT_RECV : kind;
}

static void set_up(struct traffic *t, uint32_t peer)
{
	uint64_t counts[REPORT_KINDS] = { 0 };

	for (size_t i = 0; i < LANES; i++)
		t->lanes[peer][i] = (struct lane){ .is = &kinds[i],
						   .peer = peer,
						   .step = counts[counted_as(kinds[i].kind)]++ };
}

struct traffic *traffic_open(const struct traffic_config *config)
{
	struct traffic *t = calloc(1, sizeof(*t));
	struct weft_node_options options = *config->options;
	ProtobufCService *services[2] = { 0 };

	if (!t)
		return NULL;
	t->config = *config;
	t->random = config->seed * 2 + 1;
	t->life = now_ns();
	t->last_watched = &t->watched;
	calls_init(&t->calls);
	services[0] = (ProtobufCService *)&t->calls.service;
	options.services = services;
	if (weft_node_open(&options, &t->node))
		goto free_traffic;
	if (staying_open(t))
		goto close_node;
	for (uint32_t i = 0; i < config->count; i++) {
		set_up(t, i);
		if (i != config->self &&
		    (weft_peer_open(t->node, config->addresses[i], &t->peers[i]) ||
		     weft_stub_open(t->peers[i], &chaos__echo__descriptor, &t->calls.stubs[i])))
			goto close_staying;
	}
	if (windows_open(t) || landings_open(t))
		goto close_staying;
	return t;
close_staying:
	staying_close(t);
close_node:
	weft_node_close(t->node);
free_traffic:
	free(t);
	return NULL;
}

struct weft_node *traffic_node(const struct traffic *t)
{
	return t->node;
}

void traffic_go(struct traffic *t)
{
	t->goes = true;
}

void traffic_drain(struct traffic *t)
{
	t->drains = true;
	access_drain(t);
}

void traffic_hush(struct traffic *t)
{
	t->hushed = true;
	look_at_watched(t, true);
	for (struct job *j = t->running; j; j = j->next) {
		if (!j->cancelled_ns)
			j->cancelled_ns = now_ns();
		weft_cancel(j->op);
	}
}

bool traffic_is_idle(struct traffic *t)
{
	if (t->hushed)
		return !t->running;
	for (const struct job *j = t->running; j; j = j->next)
		if (!is_receive(j->lane))
			return false;
	return access_is_settled(t);
}

void traffic_totals(const struct traffic *t, struct traffic_totals *totals)
{
	*totals = t->totals;
}

void traffic_stop(struct traffic *t)
{
	calls_answer(t, true);
	look_at_watched(t, true);
	staying_close(t);
	access_close(t);
	pushes_close(t);
	windows_close(t);
	landings_close(t);
	for (uint32_t i = 0; i < t->config.count; i++) {
		weft_stub_close(t->calls.stubs[i]);
		weft_peer_close(t->peers[i]);
	}
}

void traffic_close(struct traffic *t)
{
	if (!t)
		return;
	windows_fini(t);
	landings_fini(t);
	calls_fini(&t->calls);
	free(t);
}
