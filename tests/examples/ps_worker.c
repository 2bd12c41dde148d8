/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: takes parameters, computes a gradient on its share of the images,
 * sends it back.  The first worker also tests what has been learnt.
 */
#include "ps.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "bell.h"
#include "flight.h"
#include "ps.pb-c.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define RETRY_NS 50000000 /* between attempts to join: a server starts in less than a second */
#define FAREWELL_NS (NS_PER_SECOND / 4) /* for telling other servers of a failure */

/* A server, as this worker sees it. */
struct holder {
	char name[PS_NAME_BYTES];
	struct weft_peer *peer;
	struct weft_stub *stub;
	bool more; /* its last word: is a gradient wanted? */
};

struct worker {
	const struct ps *ps;
	struct sentence *why;
	struct weft_node *node;
	struct bell bell;
	unsigned count;
	struct holder holders[MLP_VARIABLES];
	struct flight watches; /* of those that know us, in order */
	struct flight flight; /* what is under way now */
	struct images learn, test;
	uint32_t *pick;
	struct model values, gradient;
	struct traffic traffic;
	float loss;
	double seconds; /* that the training took */
};

static bool is_chief(const struct worker *w)
{
	return w->ps->cluster.task == 0;
}

/* Sleep until all that is under way has ended, or something has failed. */
static int wait_all(struct worker *w)
{
	for (;;) {
		uint64_t rings = bell_rings(&w->bell);
		int err = flight_check(&w->flight, w->why);

		if (!err)
			err = flight_check(&w->watches, w->why);
		if (err)
			return err;
		if (flight_landed(&w->flight)) {
			flight_clear(&w->flight, &w->traffic);
			return 0;
		}
		/* Each operation has a deadline, so this ends. */
		bell_wait(&w->bell, rings, UINT64_MAX);
	}
}

static void heard_done(const Ps__Done *done, void *unused)
{
	(void)done;
	(void)unused;
}

static void heard_step(const Ps__StepReply *reply, void *holder)
{
	struct holder *h = holder;

	if (reply) /* else the operation says why not */
		h->more = reply->more;
}

/*
 * Begin a call to @h: *@service is for one generated function.  Its outcome is
 * that of the flight's newest operation.
 */
static int call(struct worker *w, struct holder *h, uint64_t timeout_ns,
		ProtobufCService **service)
{
	struct weft_call_options options = WEFT_CALL_OPTIONS_INIT;
	struct weft_op *op = NULL;
	int err;

	options.op = bell_options(&w->bell);
	options.op.timeout_ns = timeout_ns;
	err = weft_call_open(h->stub, &options, service, &op);
	return flight_add(&w->flight, err, op, h->name, w->why);
}

/* Wait for the calls of a join, however they end. */
static void wait_landed(struct worker *w)
{
	for (;;) {
		uint64_t rings = bell_rings(&w->bell);

		if (flight_landed(&w->flight))
			return;
		bell_wait(&w->bell, rings, UINT64_MAX);
	}
}

/* Did a call fail because the server is not there yet, or does not serve yet? */
static bool not_yet(const struct weft_op *op)
{
	return weft_op_status(op) == WEFT_UNAVAILABLE ||
	       weft_op_status(op) == WEFT_UNIMPLEMENTED ||
	       weft_op_status(op) == WEFT_DEADLINE_EXCEEDED;
}

/* Make ourselves known to a server, which may start later than we do. */
static int join(struct worker *w, struct holder *h, uint64_t process)
{
	uint64_t timeout_ns = w->ps->timeout_ns;
	uint64_t until_ns = bell_now() + timeout_ns;
	Ps__JoinRequest request = PS__JOIN_REQUEST__INIT;
	struct weft_op *op = NULL;
	ProtobufCService *service;
	int err;

	request.worker = w->ps->cluster.task;
	request.process = process;
	request.settings = (char *)w->ps->settings;
	for (;;) {
		err = call(w, h, timeout_ns, &service);
		if (err)
			return err;
		ps__trainer__join(service, &request, heard_done, NULL);
		wait_landed(w);

		op = w->flight.ops[0].op;
		if (!not_yet(op))
			break;
		if (bell_now() + RETRY_NS >= until_ns)
			return sentence_set(w->why, -ETIMEDOUT,
					    "%s did not answer within %" PRIu64
					    " seconds: %s", h->name,
					    timeout_ns / NS_PER_SECOND,
					    weft_op_message(op));
		flight_clear(&w->flight, NULL);
		nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
	}
	err = wait_all(w);
	if (err)
		return err;

	op = NULL;
	err = ps_watch(w->node, h->peer, bell_options(&w->bell), &op);
	return flight_add(&w->watches, err, op, h->name, w->why);
}

/* Wait until every worker is here. */
static int barrier(struct worker *w)
{
	Ps__BarrierRequest request = PS__BARRIER_REQUEST__INIT;
	ProtobufCService *service;
	int err = call(w, &w->holders[0], 0, &service);

	if (err)
		return err;
	request.worker = w->ps->cluster.task;
	ps__trainer__barrier(service, &request, heard_done, NULL);
	return wait_all(w);
}

/* Leave, now that all is done. */
static int end(struct worker *w)
{
	Ps__EndRequest request = PS__END_REQUEST__INIT;
	ProtobufCService *service;
	int err;

	/* Servers may go from now on. */
	for (unsigned i = 0; i < w->watches.count; i++)
		weft_cancel(w->watches.ops[i].op);
	flight_clear(&w->watches, NULL);

	request.worker = w->ps->cluster.task;
	for (unsigned i = 0; i < w->count; i++) {
		err = call(w, &w->holders[i], 0, &service);
		if (err)
			return err;
		ps__trainer__end(service, &request, heard_done, NULL);
	}
	return wait_all(w);
}

/* Tell the servers that live why we stop; they tell the other workers. */
static void give_up(struct worker *w)
{
	struct weft_call_options options = WEFT_CALL_OPTIONS_INIT;
	Ps__EndRequest request = PS__END_REQUEST__INIT;
	ProtobufCService *service;
	struct weft_op *op;

	options.op.timeout_ns = FAREWELL_NS;
	request.worker = w->ps->cluster.task;
	request.error = w->why->text;
	for (unsigned i = 0; i < w->watches.count; i++) {
		if (weft_op_ended(w->watches.ops[i].op))
			continue;
		if (weft_call_open(w->holders[i].stub, &options, &service, &op))
			continue;
		ps__trainer__end(service, &request, heard_done, NULL);
		weft_wait(op, FAREWELL_NS);
		weft_op_free(op);
	}
}

/* Ask every server for this step, and receive what each holds. */
static int take_values(struct worker *w, uint64_t step)
{
	struct weft_recv_options recv = WEFT_RECV_OPTIONS_INIT;
	Ps__StepRequest request = PS__STEP_REQUEST__INIT;
	ProtobufCService *service;
	int err;

	recv.op = bell_options(&w->bell);
	request.worker = w->ps->cluster.task;
	request.step = step;
	for (unsigned i = 0; i < w->count; i++) {
		err = call(w, &w->holders[i], 0, &service);
		if (err)
			return err;
		ps__trainer__step(service, &request, heard_step, &w->holders[i]);
	}
	for (unsigned v = 0; v < MLP_VARIABLES; v++) {
		const char *name = mlp_variables[v].name;
		struct holder *h = &w->holders[ps_holder(w->ps, v)];
		struct weft_tensor value = model_tensor(&w->values, v);
		struct weft_op *op = NULL;

		err = weft_recv(w->node, h->peer, step, name, strlen(name),
				&value, &recv, &op);
		err = flight_add(&w->flight, err, op, h->name, w->why);
		if (err)
			return err;
	}
	/* The gradient of the step before may still be leaving: wait for it too. */
	err = wait_all(w);
	return err ? err : model_get(&w->values, w->why);
}

static int send_gradient(struct worker *w, uint64_t step)
{
	struct weft_send_options send = WEFT_SEND_OPTIONS_INIT;
	char key[PS_KEY_BYTES];
	int err = model_put(&w->gradient, w->why);

	send.op = bell_options(&w->bell);
	for (unsigned v = 0; v < MLP_VARIABLES && !err; v++) {
		struct holder *h = &w->holders[ps_holder(w->ps, v)];
		struct weft_tensor gradient = model_tensor(&w->gradient, v);
		size_t key_bytes = ps_gradient_key(v, w->ps->cluster.task, key);
		struct weft_op *op = NULL;

		err = weft_send(h->peer, step, key, key_bytes, &gradient, &send, &op);
		err = flight_add(&w->flight, err, op, h->name, w->why);
	}
	return err;
}

static void show_progress(const struct worker *w, uint64_t step)
{
	if ((step + 1) % w->ps->progress == 0)
		printf("worker %u: step %" PRIu64 " of %" PRIu64 ", loss %.3f\n",
		       w->ps->cluster.task, step + 1, w->ps->train.steps,
		       (double)w->loss / w->ps->train.batch);
}

static int train(struct worker *w)
{
	const struct train *t = &w->ps->train;
	uint64_t started_ns = bell_now();

	for (uint64_t step = 0;; step++) {
		int err = take_values(w, step);

		if (err)
			return err;
		if (!w->holders[0].more)
			break;
		train_pick(t, w->ps->cluster.task, step, w->learn.count, w->pick);
		w->loss = mlp_gradient(w->values.here, &w->learn, w->pick, t->batch,
				       w->gradient.here);
		err = send_gradient(w, step);
		if (err)
			return err;
		show_progress(w, step);
	}
	w->seconds = (double)(bell_now() - started_ns) / 1e9;
	return 0;
}

/* Train once more, in this process alone, and compare. */
static int verify(struct worker *w)
{
	struct mlp *alone = malloc(sizeof(*alone));
	int err = alone ? train_alone(&w->ps->train, &w->learn, alone) : -ENOMEM;

	if (err)
		sentence_set(w->why, err, "verify: no memory");
	else
		err = train_compare(w->values.here, alone, w->why);
	free(alone);
	return err;
}

static void report(const struct worker *w)
{
	char carried[TRAFFIC_TEXT_BYTES];

	traffic_text(&w->traffic, carried);
	printf("worker %u: steps_per_s=%.1f MB_per_s=%.1f", w->ps->cluster.task,
	       (double)w->ps->train.steps / w->seconds,
	       (double)traffic_bytes(&w->traffic) / 1e6 / w->seconds);
	if (is_chief(w))
		printf(" accuracy=%.4f", mlp_accuracy(w->values.here, &w->test));
	if (is_chief(w) && w->ps->verify)
		printf(" verify=identical");
	printf(" carried_by=%s\n", carried);
}

static int work(struct worker *w)
{
	uint64_t process;
	int err = 0;

	if (getrandom(&process, sizeof(process), 0) != sizeof(process))
		return sentence_set(w->why, -errno, "getrandom: %s",
				    strerror(errno));
	for (unsigned i = 0; i < w->count && !err; i++)
		err = join(w, &w->holders[i], process);
	if (!err)
		err = barrier(w);
	if (!err)
		err = train(w);
	if (!err && is_chief(w) && w->ps->verify)
		err = verify(w);
	if (!err)
		err = end(w);
	if (!err)
		report(w);
	return err;
}

static int worker_init(struct worker *w, const struct ps *ps,
		       struct sentence *why)
{
	bool chief = ps->cluster.task == 0;
	int err;

	*w = (struct worker){ .ps = ps,
			      .why = why,
			      .count = ps->cluster.hosts[CLUSTER_PS].count };
	err = train_images(&ps->train, ps->data, &w->learn,
			   chief ? &w->test : NULL, why);
	if (err)
		return err;

	w->pick = calloc(ps->train.batch, sizeof(*w->pick));
	err = w->pick ? model_open(&w->values, ps->device, why) : -ENOMEM;
	if (!err)
		err = model_open(&w->gradient, ps->device, why);
	if (!err)
		err = bell_init(&w->bell);
	if (err)
		goto free_memory;
	return 0;

free_memory:
	model_close(&w->gradient);
	model_close(&w->values);
	free(w->pick);
	images_fini(&w->learn);
	images_fini(&w->test);
	return sentence_set(why, err, "no memory for the model");
}

/* After the node has been closed: nothing runs any more. */
static void worker_fini(struct worker *w)
{
	flight_clear(&w->flight, NULL);
	flight_clear(&w->watches, NULL);
	bell_fini(&w->bell);
	model_close(&w->gradient);
	model_close(&w->values);
	free(w->pick);
	images_fini(&w->learn);
	images_fini(&w->test);
}

/* Say where the servers are; nothing is sent yet. */
static int name_servers(struct worker *w)
{
	const struct cluster_hosts *hosts = &w->ps->cluster.hosts[CLUSTER_PS];
	int err = 0;

	for (unsigned i = 0; i < w->count && !err; i++) {
		struct holder *h = &w->holders[i];

		ps_name(w->ps, CLUSTER_PS, i, h->name);
		err = weft_peer_open(w->node, hosts->address[i], &h->peer);
		if (!err)
			err = weft_stub_open(h->peer, &ps__trainer__descriptor,
					     &h->stub);
		if (err)
			sentence_set(w->why, err, "%s: %s", h->name,
				     weft_error());
	}
	return err;
}

int worker_run(const struct ps *ps, struct sentence *why)
{
	struct worker w;
	int err = worker_init(&w, ps, why);

	if (err)
		return err;
	err = ps_open_node(ps, &w.node, why);
	if (err)
		goto fini_worker;
	err = name_servers(&w);
	if (!err)
		err = work(&w);
	if (err)
		give_up(&w);

	for (unsigned i = 0; i < w.count; i++) {
		weft_stub_close(w.holders[i].stub);
		weft_peer_close(w.holders[i].peer);
	}
	weft_node_close(w.node);
fini_worker:
	worker_fini(&w);
	return err;
}
