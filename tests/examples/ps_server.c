/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: holds variables, hands them out step by step, and takes
 * gradients in.
 *
 * weft's thread runs the handlers; all they do is note down what is asked
 * (struct asks).  The main thread answers, sends, receives and computes.
 */
#include "ps.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bell.h"
#include "flight.h"
#include "ps.pb-c.h"

#define NS_PER_SECOND UINT64_C(1000000000)
/* For others to ask next, and be told of a failure: more than a step on a slow rail. */
#define TELL_NS (3 * NS_PER_SECOND)

/* What one worker wants.  Under the server's lock. */
struct asks {
	bool joined, ended, told;
	uint64_t process;
	uint64_t step;
	Ps__StepReply_Closure step_reply;
	void *step_call; /* NULL: no such call is open; likewise below */
	Ps__Done_Closure barrier_reply;
	void *barrier_call;
};

/* A worker.  The main thread's, but for asks. */
struct member {
	struct asks asks;
	char name[PS_NAME_BYTES];
	struct weft_peer *peer;
	struct weft_op *watch;
	struct flight flight; /* the tensors of its step */
	bool busy;            /* they are under way */
	bool ready;           /* its gradient is there, and not used yet */
	bool dead;
	uint64_t steps; /* gradients used */
	struct model gradient;
};

struct server {
	Ps__Trainer_Service service; /* first: handlers get a pointer to it */
	const struct ps *ps;
	struct sentence *why;
	struct weft_node *node;
	struct bell bell;
	pthread_mutex_t lock;
	bool failed;             /* with the lock: from now on calls fail */
	struct sentence failure; /* with the lock: of a worker that gave up */
	unsigned count;
	struct member *members;
	struct model values; /* parameters */
	struct traffic traffic;
	uint64_t started_ns, updated_ns, updates;
};

/*
 * Begin a handler: returns who calls, with the lock held; or NULL, and the
 * call has been answered.
 */
static struct member *enter(struct server *s, uint32_t worker, void *call)
{
	struct member *m = worker < s->count ? &s->members[worker] : NULL;

	if (!m) {
		weft_served_fail(weft_served(call), WEFT_INVALID_ARGUMENT, "no such worker");
		return NULL;
	}
	pthread_mutex_lock(&s->lock);
	if (!s->failed)
		return m;
	m->asks.told = true;
	pthread_mutex_unlock(&s->lock);

	weft_served_fail(weft_served(call), WEFT_ABORTED, s->why->text);
	bell_ring(&s->bell);
	return NULL;
}

static void leave(struct server *s)
{
	pthread_mutex_unlock(&s->lock);
	bell_ring(&s->bell);
}

static void handle_join(Ps__Trainer_Service *service,
			const Ps__JoinRequest *request, Ps__Done_Closure reply,
			void *call)
{
	struct server *s = (struct server *)service;
	struct member *m = enter(s, request->worker, call);
	Ps__Done done = PS__DONE__INIT;
	struct sentence refusal = { 0 };

	if (!m)
		return;
	if (strcmp(request->settings, s->ps->settings) != 0) {
		sentence_set(&refusal, 0, "worker %u runs with %.160s, and ps %u "
			     "with %s", request->worker, request->settings,
			     s->ps->cluster.task, s->ps->settings);
	} else if (m->asks.joined && m->asks.process != request->process) {
		sentence_set(&refusal, 0, "another process is worker %u already",
			     request->worker);
	} else {
		m->asks.joined = true;
		m->asks.process = request->process;
	}
	leave(s);

	if (refusal.text[0])
		weft_served_fail(weft_served(call), WEFT_FAILED_PRECONDITION, refusal.text);
	else
		reply(&done, call);
}

static void handle_barrier(Ps__Trainer_Service *service,
			   const Ps__BarrierRequest *request,
			   Ps__Done_Closure reply, void *call)
{
	struct server *s = (struct server *)service;
	struct member *m = enter(s, request->worker, call);
	bool fits;

	if (!m)
		return;
	fits = m->asks.joined && !m->asks.barrier_call;
	if (fits) {
		m->asks.barrier_reply = reply;
		m->asks.barrier_call = call;
	}
	leave(s);
	if (!fits)
		weft_served_fail(weft_served(call), WEFT_FAILED_PRECONDITION, "out of turn");
}

static void handle_step(Ps__Trainer_Service *service,
			const Ps__StepRequest *request,
			Ps__StepReply_Closure reply, void *call)
{
	struct server *s = (struct server *)service;
	struct member *m = enter(s, request->worker, call);
	bool fits;

	if (!m)
		return;
	fits = m->asks.joined && !m->asks.step_call;
	if (fits) {
		m->asks.step = request->step;
		m->asks.step_reply = reply;
		m->asks.step_call = call;
	}
	leave(s);
	if (!fits)
		weft_served_fail(weft_served(call), WEFT_FAILED_PRECONDITION, "out of turn");
}

static void handle_end(Ps__Trainer_Service *service,
		       const Ps__EndRequest *request, Ps__Done_Closure reply,
		       void *call)
{
	struct server *s = (struct server *)service;
	struct member *m = enter(s, request->worker, call);
	Ps__Done done = PS__DONE__INIT;

	if (!m)
		return;
	m->asks.ended = true;
	if (request->error[0])
		sentence_set(&s->failure, 0, "%s gave up: %s", m->name,
			     request->error);
	leave(s);
	reply(&done, call);
}

static struct asks look(struct server *s, const struct member *m)
{
	struct asks asks;

	pthread_mutex_lock(&s->lock);
	asks = m->asks;
	pthread_mutex_unlock(&s->lock);
	return asks;
}

/* Start watching a worker that has joined. */
static int meet(struct server *s, struct member *m)
{
	unsigned task = (unsigned)(m - s->members);
	const struct cluster_hosts *hosts = &s->ps->cluster.hosts[CLUSTER_WORKER];
	int err = weft_peer_open(s->node, hosts->address[task], &m->peer);

	if (!err)
		err = ps_watch(s->node, m->peer, bell_options(&s->bell),
			       &m->watch);
	if (err)
		sentence_set(s->why, err, "%s: %s", m->name, weft_error());
	return err;
}

/* Send a worker our variables and, if @more, expect its gradient of them. */
static int exchange(struct server *s, struct member *m, uint64_t step, bool more)
{
	struct weft_send_options send = WEFT_SEND_OPTIONS_INIT;
	struct weft_recv_options recv = WEFT_RECV_OPTIONS_INIT;
	unsigned task = (unsigned)(m - s->members);
	char key[PS_KEY_BYTES];
	int err = 0;

	send.op = recv.op = bell_options(&s->bell);
	/* Without steps in common, others' gradients change what we send. */
	if (!s->ps->train.sync)
		send.flags = WEFT_SNAPSHOT;

	for (unsigned v = 0; v < MLP_VARIABLES && !err; v++) {
		const char *name = mlp_variables[v].name;
		struct weft_tensor value = model_tensor(&s->values, v);
		struct weft_tensor gradient = model_tensor(&m->gradient, v);
		struct weft_op *op = NULL;
		size_t key_bytes = ps_gradient_key(v, task, key);

		if (ps_holder(s->ps, v) != s->ps->cluster.task)
			continue;
		if (more) {
			err = weft_recv(s->node, m->peer, step, key, key_bytes,
					&gradient, &recv, &op);
			err = flight_add(&m->flight, err, op, m->name, s->why);
		}
		if (err)
			break;
		err = weft_send(m->peer, step, name, strlen(name), &value, &send,
				&op);
		err = flight_add(&m->flight, err, op, m->name, s->why);
	}
	return err;
}

/* Step down by the gradients of @count members from @first on. */
static int update(struct server *s, struct member *first, unsigned count)
{
	float *parts[CLUSTER_HOSTS_MAX];
	float rate = train_rate(&s->ps->train, count);

	for (unsigned v = 0; v < MLP_VARIABLES; v++) {
		if (ps_holder(s->ps, v) != s->ps->cluster.task)
			continue;
		for (unsigned i = 0; i < count; i++)
			parts[i] = mlp_values(first[i].gradient.here, v);
		mlp_descend(mlp_values(s->values.here, v), parts, count,
			    mlp_variables[v].count, rate);
	}
	for (unsigned i = 0; i < count; i++) {
		first[i].ready = false;
		first[i].steps++;
	}
	s->updates++;
	s->updated_ns = bell_now();
	return model_put(&s->values, s->why);
}

/* May this step begin?  No: some worker has to be waited for. */
static bool may_begin(struct server *s, uint64_t step)
{
	/* A step of all, or the last parameters: all must have come as far. */
	if (!s->ps->train.sync && step < s->ps->train.steps)
		return true;
	for (unsigned i = 0; i < s->count; i++) {
		if (s->members[i].steps < step)
			return false;
	}
	return true;
}

static int begin_step(struct server *s, struct member *m,
		      const struct asks *asks)
{
	Ps__StepReply reply = PS__STEP_REPLY__INIT;
	int err;

	if (asks->step != m->steps)
		return sentence_set(s->why, -EPROTO,
				    "%s asks for step %" PRIu64 " after %" PRIu64,
				    m->name, asks->step, m->steps);
	reply.more = asks->step < s->ps->train.steps;
	if (s->started_ns == 0)
		s->started_ns = bell_now();

	pthread_mutex_lock(&s->lock);
	m->asks.step_call = NULL;
	pthread_mutex_unlock(&s->lock);

	err = exchange(s, m, asks->step, reply.more);
	if (err)
		return err;
	m->busy = true;
	asks->step_reply(&reply, asks->step_call);
	return 0;
}

/*
 * Do what can be done for one worker now.  A negative code: the training has
 * failed.
 */
static int advance(struct server *s, struct member *m)
{
	struct sentence reason = { 0 };
	int err = flight_check(&m->flight, &reason);
	struct asks asks;

	if (m->watch && weft_op_ended(m->watch)) {
		flight_explain(m->watch, m->name, &reason);
		err = -EIO;
	}
	/* Only now: a worker that leaves in order says so before it is gone. */
	asks = look(s, m);
	if (asks.ended) {
		if (flight_landed(&m->flight))
			flight_clear(&m->flight, &s->traffic);
		return 0;
	}
	if (err) {
		m->dead = true;
		return sentence_set(s->why, err, "%s", reason.text);
	}

	if (asks.joined && !m->peer) {
		err = meet(s, m);
		if (err)
			return err;
	}
	if (m->busy && flight_landed(&m->flight)) {
		flight_clear(&m->flight, &s->traffic);
		m->busy = false;
		m->ready = m->steps < s->ps->train.steps;
		err = model_get(&m->gradient, s->why);
	}
	if (!err && m->ready && !s->ps->train.sync)
		err = update(s, m, 1);
	if (err)
		return err;
	if (asks.step_call && !m->busy && !m->ready && may_begin(s, asks.step))
		return begin_step(s, m, &asks);
	return 0;
}

/* Let everybody go on once everybody has come. */
static void open_barrier(struct server *s)
{
	Ps__Done done = PS__DONE__INIT;
	struct asks asks[CLUSTER_HOSTS_MAX];

	for (unsigned i = 0; i < s->count; i++) {
		asks[i] = look(s, &s->members[i]);
		if (!asks[i].barrier_call)
			return;
	}
	for (unsigned i = 0; i < s->count; i++) {
		pthread_mutex_lock(&s->lock);
		s->members[i].asks.barrier_call = NULL;
		pthread_mutex_unlock(&s->lock);
		asks[i].barrier_reply(&done, asks[i].barrier_call);
	}
}

/* Do all that can be done now. */
static int advance_all(struct server *s)
{
	uint64_t updates;
	unsigned ready;
	int err;

	/* An update may be what others wait for, so look at all again. */
	do {
		updates = s->updates;
		ready = 0;
		for (unsigned i = 0; i < s->count; i++) {
			err = advance(s, &s->members[i]);
			if (err)
				return err;
			ready += s->members[i].ready;
		}
		err = ready == s->count ? update(s, s->members, s->count) : 0;
		if (err)
			return err;
	} while (s->updates != updates);
	open_barrier(s);
	return 0;
}

/*
 * Is there a worker that failed, or that has not joined although it is
 * @late?  Else: have all ended?
 */
static int look_round(struct server *s, bool late, bool *over)
{
	unsigned ended = 0;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	if (s->failure.text[0])
		err = sentence_set(s->why, -EIO, "%s", s->failure.text);
	for (unsigned i = 0; i < s->count && !err; i++) {
		const struct member *m = &s->members[i];

		ended += m->asks.ended;
		if (late && !m->asks.joined)
			err = sentence_set(s->why, -ETIMEDOUT,
					   "%s did not join within %" PRIu64
					   " seconds", m->name,
					   s->ps->timeout_ns / NS_PER_SECOND);
	}
	pthread_mutex_unlock(&s->lock);
	*over = ended == s->count;
	return err;
}

static int serve(struct server *s)
{
	uint64_t late_ns = bell_now() + s->ps->timeout_ns;
	bool over = false;
	int err = 0;

	while (!err && !over) {
		uint64_t rings = bell_rings(&s->bell);

		err = advance_all(s);
		if (!err)
			err = look_round(s, bell_now() >= late_ns, &over);
		if (!err && !over)
			bell_wait(&s->bell, rings,
				  bell_now() < late_ns ? late_ns : UINT64_MAX);
	}
	return err;
}

/* Fail every open call with the sentence; later ones fail by themselves. */
static void fail_calls(struct server *s)
{
	void *calls[2 * CLUSTER_HOSTS_MAX];
	unsigned count = 0;

	pthread_mutex_lock(&s->lock);
	s->failed = true;
	for (unsigned i = 0; i < s->count; i++) {
		struct asks *asks = &s->members[i].asks;

		if (asks->step_call)
			calls[count++] = asks->step_call;
		if (asks->barrier_call)
			calls[count++] = asks->barrier_call;
		if (asks->step_call || asks->barrier_call)
			asks->told = true;
		asks->step_call = asks->barrier_call = NULL;
	}
	pthread_mutex_unlock(&s->lock);

	for (unsigned i = 0; i < count; i++)
		weft_served_fail(weft_served(calls[i]), WEFT_ABORTED, s->why->text);
}

/* Stay until every worker that lives has heard why, but not for long. */
static void tell(struct server *s)
{
	uint64_t until_ns = bell_now() + TELL_NS;
	unsigned waiting;

	fail_calls(s);
	do {
		uint64_t rings = bell_rings(&s->bell);

		waiting = 0;
		for (unsigned i = 0; i < s->count; i++) {
			const struct member *m = &s->members[i];
			struct asks asks = look(s, m);

			waiting += asks.joined && !asks.ended && !asks.told &&
				   !m->dead;
		}
		if (waiting)
			bell_wait(&s->bell, rings, until_ns);
	} while (waiting && bell_now() < until_ns);
}

static void report(const struct server *s)
{
	double seconds = (double)(s->updated_ns - s->started_ns) / 1e9;
	char carried[TRAFFIC_TEXT_BYTES];

	traffic_text(&s->traffic, carried);
	printf("ps %u: updates=%" PRIu64 " MB_per_s=%.1f carried_by=%s\n",
	       s->ps->cluster.task, s->updates,
	       (double)traffic_bytes(&s->traffic) / 1e6 / seconds, carried);
}

static void close_models(struct server *s)
{
	for (unsigned i = 0; s->members && i < s->count; i++)
		model_close(&s->members[i].gradient);
	model_close(&s->values);
	free(s->members);
}

static int open_models(struct server *s)
{
	int err;

	s->members = calloc(s->count, sizeof(*s->members));
	err = s->members ? model_open(&s->values, s->ps->device, s->why) : -ENOMEM;
	for (unsigned i = 0; i < s->count && !err; i++)
		err = model_open(&s->members[i].gradient, s->ps->device, s->why);
	if (err)
		return err;
	mlp_begin(s->values.here, s->ps->train.seed);
	return model_put(&s->values, s->why);
}

static int server_init(struct server *s, const struct ps *ps,
		       struct sentence *why)
{
	int err;

	*s = (struct server){ .service = PS__TRAINER__INIT(handle_),
			      .ps = ps,
			      .why = why,
			      .count = ps->cluster.hosts[CLUSTER_WORKER].count };
	err = open_models(s);
	if (!err)
		err = bell_init(&s->bell);
	if (err)
		goto close_models;
	err = -pthread_mutex_init(&s->lock, NULL);
	if (err)
		goto fini_bell;
	for (unsigned i = 0; i < s->count; i++)
		ps_name(ps, CLUSTER_WORKER, i, s->members[i].name);
	return 0;

fini_bell:
	bell_fini(&s->bell);
close_models:
	close_models(s);
	return sentence_set(why, err, "no memory for the model");
}

/* After the node has been closed: nothing runs any more. */
static void server_fini(struct server *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		flight_clear(&s->members[i].flight, NULL);
		weft_op_free(s->members[i].watch);
	}
	pthread_mutex_destroy(&s->lock);
	bell_fini(&s->bell);
	close_models(s);
}

int server_run(const struct ps *ps, struct sentence *why)
{
	struct server s;
	int err = server_init(&s, ps, why);

	if (err)
		return err;
	err = ps_open_node(ps, &s.node, why);
	if (err)
		goto fini_server;
	err = weft_serve(s.node, &s.service.base);
	if (err) {
		sentence_set(why, err, "cannot serve: %s", weft_error());
		goto close_node;
	}

	err = serve(&s);
	if (err)
		tell(&s);
	else
		report(&s);

close_node:
	for (unsigned i = 0; i < s.count; i++)
		weft_peer_close(s.members[i].peer);
	weft_node_close(s.node);
fini_server:
	server_fini(&s);
	return err;
}
