/* SPDX-License-Identifier: BSD-2-Clause */
#include "traffic.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "content.h"
#include "tests/chaos/chaos.pb-c.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

#define CALM_NS (20 * SECOND)        /* deadline of what should not need one */
#define WILD_LEAST_NS (50 * MS)
#define WILD_MOST_NS (8 * SECOND)
#define CANCEL_ONE_IN 24             /* of wild operations */
#define CANCEL_MOST_NS (200 * MS)    /* after its begin */
#define REPLY_PAUSE_MOST_MS 100
#define SHARED_ONE_IN 3              /* of sends */
#define RETRY_NS (30 * MS)           /* of a lane whose peer is not there */
#define WATCH_NS (300 * MS)          /* how long a buffer is watched after the end */
#define WATCH_BYTES_MAX (64 * MIB)   /* of all watched buffers; beyond it the oldest go */
#define CALL_LANES 2
#define TEXT_BYTES sizeof(((struct report *)0)->text)

/* What a lane does.  Receivers have more under way than senders, so that those needn't wait. */
static const struct lane_kind {
	enum report_kind kind;
	bool calm;
	size_t bytes_most;
	unsigned limit;
} kinds[] = {
	{ REPORT_SEND, true, 4 * KIB, 8 },   { REPORT_RECV, true, 4 * KIB, 12 },
	{ REPORT_SEND, true, 128 * KIB, 3 }, { REPORT_RECV, true, 128 * KIB, 5 },
	{ REPORT_SEND, true, 4 * MIB, 1 },   { REPORT_RECV, true, 4 * MIB, 2 },
	{ REPORT_SEND, false, 4 * KIB, 6 },  { REPORT_RECV, false, 4 * KIB, 8 },
	/* From 4 MiB on a second thread helps to read within one host. */
	{ REPORT_SEND, false, 8 * MIB, 2 },  { REPORT_RECV, false, 8 * MIB, 3 },
	{ REPORT_CALL, true, 64 * KIB, 4 },  { REPORT_CALL, false, 1 * MIB, 2 },
	{ REPORT_PING, true, 0, 1 },
};

#define LANES (sizeof(kinds) / sizeof(kinds[0]))

struct lane {
	const struct lane_kind *is;
	uint32_t peer;
	uint64_t step; /* counts lanes of a kind; of tensors the step, the same on both ends */
	uint64_t next_sequence;
	unsigned under_way;
	uint64_t not_before_ns;
	struct content_seen seen;
};

/* Where a received tensor lies. */
enum place { PLACE_OWN, PLACE_POOL, PLACE_ASKED, PLACES };

/* One operation, and its buffer until that was watched for a while. */
struct job {
	struct job *next;
	struct traffic *traffic;
	struct lane *lane;
	struct weft_op *op;
	enum place place;
	unsigned char *bytes; /* guarded */
	size_t count;
	void *view; /* what came and is looked at where it is, for as long as the buffer is watched */
	size_t view_count;
	struct content what;
	uint64_t begun_ns, due_ns, cancel_ns, cancelled_ns, watched_until_ns;
	bool is_told_late;
	/* Written by the worker. */
	_Atomic uint64_t ended_ns;
	atomic_uint ends, replies;
	atomic_bool reply_is_wrong;
};

/* A call that is answered later. */
struct owed {
	struct owed *next;
	const Chaos__Request *request;
	Chaos__Reply_Closure closure;
	void *closure_data;
	uint64_t due_ns;
};

struct traffic {
	struct traffic_config config;
	struct weft_node *node;
	struct weft_peer *peers[TRAFFIC_PEERS_MAX];
	struct weft_stub *stubs[TRAFFIC_PEERS_MAX];
	struct lane lanes[TRAFFIC_PEERS_MAX][LANES];
	struct job *running;
	struct job *watched, **last_watched; /* in the order of their ends */
	size_t watched_bytes;
	uint64_t life, random;
	bool goes, drains, hushed;
	struct traffic_totals totals;
	Chaos__Echo_Service service;
	struct content_seen called[TRAFFIC_PEERS_MAX][CALL_LANES]; /* the worker's */
	pthread_mutex_t owed_lock;
	struct owed *owed;
};

/* One of @count, from 0. */
static uint64_t draw(struct traffic *t, uint64_t count)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (t->random >> 11) % count;
}

/* Each doubling as likely as the next. */
static uint64_t draw_scaled(struct traffic *t, uint64_t least, uint64_t most)
{
	unsigned doublings = 0;
	uint64_t top;

	while (least << (doublings + 1) < most)
		doublings++;
	top = least << draw(t, doublings + 1);
	return top + draw(t, (2 * top < most ? 2 * top : most) - top + 1);
}

/* Reports. */

static void tell(struct traffic *t, const struct report *report)
{
	if (write(t->config.reports_fd, report, sizeof(*report)) != (ssize_t)sizeof(*report))
		abort(); /* a promise that nobody would know to be broken */
}

static void tell_of(struct job *j, enum report_fault fault, const char *text)
{
	struct report report = {
		.member = j->traffic->config.self,
		.peer = j->lane->peer,
		.kind = j->lane->is->kind,
		.fault = fault,
		.status = j->op ? weft_op_status(j->op) : WEFT_UNKNOWN,
		.is_calm = j->lane->is->calm,
		.begun_ns = j->begun_ns,
		.due_ns = j->due_ns,
		.cancelled_ns = j->cancelled_ns,
		.ended_ns = atomic_load(&j->ended_ns),
	};

	if (j->cancelled_ns && j->cancelled_ns < j->due_ns)
		report.due_ns = j->cancelled_ns;
	if (!report.ended_ns)
		report.ended_ns = now_ns();
	snprintf(report.text, sizeof(report.text), "%s", text);
	tell(j->traffic, &report);
}

/* Callbacks: on the worker. */

static void ended(struct weft_op *op, void *arg)
{
	struct job *j = arg;

	(void)op;
	atomic_store(&j->ended_ns, now_ns());
	atomic_fetch_add(&j->ends, 1);
}

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

static void replied(const Chaos__Reply *reply, void *arg)
{
	struct job *j = arg;
	struct content what;

	atomic_fetch_add(&j->replies, 1);
	if (reply && (reply->sequence != j->what.sequence ||
		      (reply->payload.len &&
		       (!content_get(reply->payload.data, reply->payload.len, &what) ||
			what.sequence != j->what.sequence || what.from != j->lane->peer))))
		atomic_store(&j->reply_is_wrong, true);
}

/* The service. */

static void answer(struct traffic *t, const Chaos__Request *request,
		   Chaos__Reply_Closure closure, void *closure_data)
{
	Chaos__Reply reply = CHAOS__REPLY__INIT;
	struct content what = { .from = t->config.self,
				.to = request->from,
				.life = t->life,
				.sequence = request->sequence };

	reply.sequence = request->sequence;
	reply.payload.len = request->reply_bytes;
	reply.payload.data = malloc(reply.payload.len + 1);
	if (!reply.payload.data) {
		weft_served_fail(closure_data, WEFT_RESOURCE_EXHAUSTED, "no memory for a reply");
		return;
	}
	content_put(reply.payload.data, reply.payload.len, &what);
	closure(&reply, closure_data);
	free(reply.payload.data);
}

static void echo(Chaos__Echo_Service *service, const Chaos__Request *request,
		 Chaos__Reply_Closure closure, void *closure_data)
{
	struct traffic *t = (struct traffic *)((char *)service - offsetof(struct traffic, service));
	struct report report = { .member = t->config.self,
				 .peer = request->from % TRAFFIC_PEERS_MAX,
				 .kind = REPORT_CALL,
				 .ended_ns = now_ns() };
	struct content what = { .life = request->life, .sequence = request->sequence };
	struct owed *owed;

	if (!content_is_new(&t->called[report.peer][request->lane % CALL_LANES], &what)) {
		report.fault = REPORT_TWICE;
		snprintf(report.text, TEXT_BYTES, "call %llu of member %u came again",
			 (unsigned long long)what.sequence, report.peer);
		tell(t, &report);
	}
	if (request->payload.len &&
	    (!content_get(request->payload.data, request->payload.len, &what) ||
	     what.from != request->from || what.lane != request->lane ||
	     what.sequence != request->sequence)) {
		report.fault = REPORT_WRONG;
		snprintf(report.text, TEXT_BYTES, "a request of %zu bytes came wrong",
			 request->payload.len);
		tell(t, &report);
	}
	owed = request->pause_ms ? malloc(sizeof(*owed)) : NULL;
	if (!owed) {
		answer(t, request, closure, closure_data);
		return;
	}
	weft_served_defer(closure_data);
	pthread_mutex_lock(&t->owed_lock);
	*owed = (struct owed){ t->owed, request, closure, closure_data,
			       now_ns() + request->pause_ms * MS };
	t->owed = owed;
	pthread_mutex_unlock(&t->owed_lock);
}

/* Answer one call that is due, or any. */
static bool answer_one(struct traffic *t, bool any)
{
	uint64_t now = now_ns();
	struct owed **at, *owed;

	pthread_mutex_lock(&t->owed_lock);
	for (at = &t->owed; *at && !any && (*at)->due_ns > now;)
		at = &(*at)->next;
	owed = *at;
	if (owed)
		*at = owed->next;
	pthread_mutex_unlock(&t->owed_lock);
	if (!owed)
		return false;
	answer(t, owed->request, owed->closure, owed->closure_data);
	free(owed);
	return true;
}

/* Begin. */

static struct weft_op_options options_of(struct traffic *t, struct job *j)
{
	uint64_t timeout_ns = j->lane->is->calm ? CALM_NS :
						  draw_scaled(t, WILD_LEAST_NS, WILD_MOST_NS);

	if (!j->lane->is->calm && !draw(t, CANCEL_ONE_IN))
		j->cancel_ns = j->begun_ns + draw(t, CANCEL_MOST_NS);
	j->due_ns = j->begun_ns + timeout_ns;
	return (struct weft_op_options){ .size = sizeof(struct weft_op_options),
					 .timeout_ns = timeout_ns,
					 .done = ended,
					 .arg = j };
}

/* 0, or enough to say whose they are. */
static size_t draw_bytes(struct traffic *t, size_t most)
{
	return draw(t, 16) ? draw_scaled(t, CONTENT_BYTES_MIN, most) : 0;
}

/* A new buffer with what comes next in its lane. */
static bool fill(struct traffic *t, struct job *j)
{
	j->what = (struct content){ .from = t->config.self,
				    .to = j->lane->peer,
				    .lane = j->lane->step,
				    .life = t->life,
				    .sequence = j->lane->next_sequence };
	j->count = draw_bytes(t, j->lane->is->bytes_most);
	j->bytes = guarded_take(j->count);
	if (!j->bytes)
		return false;
	content_put(j->bytes, j->count, &j->what);
	return true;
}

static struct weft_tensor tensor_of(void *bytes, int64_t *count)
{
	return (struct weft_tensor){ .data = bytes,
				     .device = { WEFT_CPU, 0 },
				     .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 },
				     .shape = count };
}

static int key_of(char key[32], uint32_t from, uint32_t to)
{
	return snprintf(key, 32, "from %u to %u", from, to);
}

static int begin_send(struct traffic *t, struct job *j)
{
	struct weft_send_options options = { .size = sizeof(options), .op = options_of(t, j) };
	struct weft_tensor tensor;
	void *shared = NULL;
	int64_t count;
	char key[32];
	int length = key_of(key, t->config.self, j->lane->peer), err;

	if (!fill(t, j))
		return -1;
	count = (int64_t)j->count;
	tensor = tensor_of(j->bytes, &count);
	if (!draw(t, SHARED_ONE_IN) && j->count && !weft_alloc(t->node, j->count, &shared)) {
		memcpy(shared, j->bytes, j->count);
		tensor.data = shared;
		options.flags = WEFT_SHARE;
	}
	err = weft_send(t->peers[j->lane->peer], j->lane->step, key, (size_t)length, &tensor,
			&options, &j->op);
	weft_free(t->node, shared);
	return err;
}

static int begin_recv(struct traffic *t, struct job *j)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = options_of(t, j) };
	struct weft_tensor into;
	int64_t count;
	char key[32];
	int length = key_of(key, j->lane->peer, t->config.self);

	j->place = (enum place)draw(t, PLACES);
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
	into = tensor_of(j->bytes, &count);
	return weft_recv(t->node, t->peers[j->lane->peer], j->lane->step, key,
			 (size_t)length, j->place == PLACE_OWN ? &into : NULL, &options, &j->op);
}

static int begin_call(struct traffic *t, struct job *j)
{
	struct weft_call_options options = { .size = sizeof(options), .op = options_of(t, j) };
	Chaos__Request request = CHAOS__REQUEST__INIT;
	ProtobufCService *service;
	int err;

	if (!fill(t, j))
		return -1;
	err = weft_call_open(t->stubs[j->lane->peer], &options, &service, &j->op);
	if (err)
		return err;
	request.from = t->config.self;
	request.life = t->life;
	request.lane = j->what.lane;
	request.sequence = j->what.sequence;
	request.payload.data = j->bytes;
	request.payload.len = j->count;
	request.reply_bytes = (uint32_t)draw_bytes(t, j->lane->is->bytes_most);
	request.pause_ms = draw(t, 4) ? 0 : (uint32_t)draw(t, REPLY_PAUSE_MOST_MS);
	chaos__echo__echo(service, &request, replied, j);
	return 0;
}

static int begin(struct traffic *t, struct job *j)
{
	struct weft_op_options options;

	switch (j->lane->is->kind) {
	case REPORT_SEND:
		return begin_send(t, j);
	case REPORT_RECV:
		return begin_recv(t, j);
	case REPORT_CALL:
		return begin_call(t, j);
	default:
		options = options_of(t, j);
		return weft_ping(t->peers[j->lane->peer], &options, &j->op);
	}
}

static void free_job(struct job *j)
{
	guarded_give(j->bytes);
	free(j);
}

static void begin_in(struct traffic *t, struct lane *lane)
{
	struct job *j = calloc(1, sizeof(*j));
	uint64_t now = now_ns();

	lane->not_before_ns = now + draw(t, 2000 * t->config.gap_us + 1);
	if (!j)
		return;
	j->traffic = t;
	j->lane = lane;
	j->begun_ns = now;
	if (begin(t, j)) {
		tell_of(j, REPORT_FAILED, weft_error());
		lane->not_before_ns = now + RETRY_NS;
		free_job(j);
		return;
	}
	lane->next_sequence++;
	lane->under_way++;
	j->next = t->running;
	t->running = j;
}

/* End. */

static void check_tensor(struct traffic *t, struct job *j)
{
	const struct weft_tensor *got = weft_op_tensor(j->op, NULL);
	size_t count = got && got->ndim == 1 ? (size_t)got->shape[0] : SIZE_MAX;
	const unsigned char *bytes = count && got ? (unsigned char *)got->data + got->byte_offset :
						    NULL;
	char text[TEXT_BYTES];

	if (count > j->lane->is->bytes_most || (count && !bytes) ||
	    (count && !content_get(bytes, count, &j->what)) ||
	    (count && (j->what.from != j->lane->peer || j->what.to != t->config.self ||
		       j->what.lane != j->lane->step))) {
		snprintf(text, sizeof(text), "a tensor of %zu bytes came wrong", count);
		tell_of(j, REPORT_WRONG, text);
	} else if (count && !content_is_new(&j->lane->seen, &j->what)) {
		tell_of(j, REPORT_TWICE, "a tensor came again");
	}
	if (j->place == PLACE_OWN && count <= j->count &&
	    !guarded_is_quiet(j->bytes, count, j->count))
		tell_of(j, REPORT_TOUCHED, "bytes behind the tensor have changed");
	t->totals.bytes += count;
}

static void check_reply(struct job *j)
{
	if (atomic_load(&j->reply_is_wrong))
		tell_of(j, REPORT_WRONG, "a reply came wrong");
	if (atomic_load(&j->replies) != 1)
		tell_of(j, REPORT_TWICE, "not one reply");
}

static void check_outcome(struct traffic *t, struct job *j)
{
	enum weft_status status = weft_op_status(j->op);

	t->totals.ended++;
	if (status == WEFT_OK && j->lane->is->kind == REPORT_RECV) {
		check_tensor(t, j);
	} else if (j->lane->is->kind == REPORT_CALL) {
		check_reply(j);
	}
	if (status == WEFT_OK)
		return;
	t->totals.failed++;
	t->totals.cancelled += j->cancelled_ns != 0;
	tell_of(j, REPORT_FAILED, weft_op_message(j->op));
	if (status == WEFT_UNAVAILABLE)
		j->lane->not_before_ns = now_ns() + RETRY_NS;
}

static void check_time(struct traffic *t, struct job *j, uint64_t now)
{
	uint64_t due = j->due_ns;

	if (j->cancelled_ns && j->cancelled_ns < due)
		due = j->cancelled_ns;
	if (j->is_told_late || now <= due + t->config.bound_ns + SLACK_NS)
		return;
	j->is_told_late = true;
	tell_of(j, REPORT_LATE, atomic_load(&j->ends) ? "" : "it has not ended");
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
		tell_of(j, REPORT_TOUCHED, "what it looks at has changed");
	weft_free(t->node, j->view);
}

/* It has ended: from here on its buffer is ours alone, and whoever writes there is seen. */
static void end(struct traffic *t, struct job *j)
{
	check_time(t, j, atomic_load(&j->ended_ns));
	check_outcome(t, j);
	begin_view(t, j);
	j->lane->under_way--;
	weft_op_free(j->op);
	j->op = NULL;
	if (j->bytes)
		guarded_mark(j->bytes, j->count);
	j->watched_until_ns = now_ns() + WATCH_NS;
	j->next = NULL;
	*t->last_watched = j;
	t->last_watched = &j->next;
	t->watched_bytes += j->count;
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
			tell_of(j, REPORT_TWICE, "it ended more than once");
		if (j->bytes && !guarded_is_quiet(j->bytes, 0, j->count))
			tell_of(j, REPORT_TOUCHED, "its buffer was written after its end");
		end_view(t, j);
		free_job(j);
	}
}

static bool may_begin(const struct traffic *t, const struct lane *lane)
{
	return t->goes && lane->under_way < lane->is->limit && !t->hushed &&
	       (!t->drains || lane->is->kind == REPORT_RECV) && now_ns() >= lane->not_before_ns;
}

void traffic_turn(struct traffic *t)
{
	look_at_running(t);
	look_at_watched(t, false);
	while (answer_one(t, t->hushed))
		;
	for (unsigned peer = 0; peer < t->config.count; peer++)
		for (size_t i = 0; i < LANES && peer != t->config.self; i++)
			while (may_begin(t, &t->lanes[peer][i]))
				begin_in(t, &t->lanes[peer][i]);
}

/* Life. */

static void set_up(struct traffic *t, uint32_t peer)
{
	uint64_t counts[REPORT_KINDS] = { 0 };

	for (size_t i = 0; i < LANES; i++)
		t->lanes[peer][i] = (struct lane){ .is = &kinds[i],
						   .peer = peer,
						   .step = counts[kinds[i].kind]++ };
}

struct traffic *traffic_open(const struct traffic_config *config)
{
	const Chaos__Echo_Service service = CHAOS__ECHO__INIT();
	struct traffic *t = calloc(1, sizeof(*t));
	struct weft_node_options options = *config->options;
	ProtobufCService *services[2] = { 0 };

	if (!t)
		return NULL;
	t->config = *config;
	t->random = config->seed * 2 + 1;
	t->life = now_ns();
	t->service = service;
	t->service.echo = echo;
	t->last_watched = &t->watched;
	pthread_mutex_init(&t->owed_lock, NULL);
	services[0] = (ProtobufCService *)&t->service;
	options.services = services;
	if (weft_node_open(&options, &t->node))
		goto free_traffic;
	for (uint32_t i = 0; i < config->count; i++) {
		set_up(t, i);
		if (i != config->self &&
		    (weft_peer_open(t->node, config->addresses[i], &t->peers[i]) ||
		     weft_stub_open(t->peers[i], &chaos__echo__descriptor, &t->stubs[i])))
			goto close_node;
	}
	return t;
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

bool traffic_is_idle(const struct traffic *t)
{
	if (t->hushed)
		return !t->running;
	for (const struct job *j = t->running; j; j = j->next)
		if (j->lane->is->kind != REPORT_RECV)
			return false;
	return true;
}

void traffic_totals(const struct traffic *t, struct traffic_totals *totals)
{
	*totals = t->totals;
}

void traffic_stop(struct traffic *t)
{
	while (answer_one(t, true))
		;
	look_at_watched(t, true);
	for (uint32_t i = 0; i < t->config.count; i++) {
		weft_stub_close(t->stubs[i]);
		weft_peer_close(t->peers[i]);
	}
}

void traffic_close(struct traffic *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->owed_lock);
	free(t);
}
