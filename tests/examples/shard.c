/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parameter server: it keeps the weights of a model in several tensors.  Workers pull them
 * and push gradients, over two streams each; the tensors go beside the messages.
 *
 *   shard              prints its address, then the error as it falls, and ends when that is small
 *   shard ADDRESS      a worker, one of as many as there are; it ends when the server has enough
 *
 * The problem is a toy with a known answer: least squares, by equations that workers draw.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "shard.pb-c.h"

#define TENSORS 3
#define WEIGHTS (64 * 40 + 25 * 40 + 1 * 12)
#define EQUATIONS 200 /* in a gradient */
#define RATE .04f     /* of descent; near .11, twice EQUATIONS / WEIGHTS, the error grows */
#define ERROR_MAX 1e-3f
#define REPORT_STEPS 50
#define PATIENCE_NS 20000000000ull /* of either side with the other */

WEFT_STREAM_TYPES(push, Shard__Gradients, Shard__Applied);
WEFT_STREAM_TYPES(pull, Shard__Wish, Shard__Weights);

static int64_t shapes[TENSORS][2] = { { 64, 40 }, { 25, 40 }, { 1, 12 } };
static const struct weft_op_options patience = { .size = sizeof(patience),
						 .timeout_ns = PATIENCE_NS };

/* The first thing that went wrong. */
struct failure {
	enum weft_status status;
	char why[300];
};

static void blame(struct failure *f, enum weft_status status, const char *why)
{
	if (f->status != WEFT_OK)
		return;
	f->status = status;
	snprintf(f->why, sizeof(f->why), "%s", why);
}

/* Wait for the outcome of @op, unless it could not even be begun, and free it. */
static void finish(int err, struct weft_op *op, struct failure *f)
{
	if (err) {
		blame(f, WEFT_INTERNAL, weft_error());
		return;
	}
	weft_wait(op, WEFT_FOREVER); /* it ends in time, or with the other side */
	blame(f, weft_op_status(op), weft_op_message(op));
	weft_op_free(op);
}

/* Tensor @t of a model whose numbers are @values. */
static struct weft_tensor part(float *values, unsigned t)
{
	for (unsigned i = 0; i < t; i++)
		values += shapes[i][0] * shapes[i][1];
	return (struct weft_tensor){ .data = values, .device = { WEFT_CPU, 0 },
				     .ndim = 2, .dtype = { WEFT_FLOAT, 32, 1 },
				     .shape = shapes[t] };
}

/* A read of the next message; NULL if there is none, or something is wrong. */
static struct weft_op *next(struct weft_stream *stream, struct failure *f)
{
	struct weft_op *read = NULL;
	int err = weft_stream_read(stream, &patience, &read);

	if (!err) {
		weft_wait(read, WEFT_FOREVER);
		if (weft_stream_message(read))
			return read;
	}
	finish(err, read, f);
	return NULL;
}

/* Receive what came beside the message of @read, all parts at once. */
static void receive(struct weft_op *read, float *values, struct failure *f)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_op *ops[TENSORS];
	unsigned begun;

	options.op = patience;
	for (begun = 0; begun < TENSORS; begun++) {
		struct weft_tensor into = part(values, begun);

		if (weft_op_receive(read, begun, &into, &options, &ops[begun])) {
			blame(f, WEFT_INVALID_ARGUMENT, weft_error());
			break;
		}
	}
	for (unsigned t = 0; t < begun; t++)
		finish(0, ops[t], f);
}

/* The server. */

static struct {
	pthread_mutex_t lock;
	float weights[WEIGHTS];
	uint32_t step; /* gradients in them */
	bool enough;
} model = { .lock = PTHREAD_MUTEX_INITIALIZER };

static sem_t solved;
static atomic_uint threads_begun;
static sem_t threads_ended;

/* What the weights should become.  Workers see it through their equations only. */
static float answer(unsigned i)
{
	return (float)((int)(i % 7) - 3) / 3;
}

static float largest_error(void)
{
	float largest = 0;

	for (unsigned i = 0; i < WEIGHTS; i++) {
		float error = model.weights[i] - answer(i);

		if (error < 0)
			error = -error;
		if (error > largest)
			largest = error;
	}
	return largest;
}

/* A gradient of the weights as they were at @step.  Returns whether it is enough. */
static bool apply(const float *gradient, uint32_t step)
{
	float error;
	bool enough;

	pthread_mutex_lock(&model.lock);
	for (unsigned i = 0; i < WEIGHTS; i++)
		model.weights[i] -= RATE * gradient[i];
	error = largest_error();
	if (model.step++ % REPORT_STEPS == 0)
		printf("step %u: error %.5f, by a gradient that is %u steps old\n", model.step,
		       (double)error, model.step - 1 - step);
	if (error < ERROR_MAX && !model.enough) {
		printf("solved in %u steps: error %.5f\n", model.step, (double)error);
		model.enough = true;
		sem_post(&solved);
	}
	fflush(stdout);
	enough = model.enough;
	pthread_mutex_unlock(&model.lock);
	return enough;
}

/* A thread for each stream: it may wait, and only the worker at its other end waits for it. */
static void *serve_push(void *arg)
{
	Shard__Applied applied = SHARD__APPLIED__INIT;
	struct failure f = { WEFT_OK, "" };
	struct weft_stream *stream = arg;
	float gradient[WEIGHTS];
	struct weft_op *op;
	uint32_t step;
	int err;

	while (f.status == WEFT_OK && (op = next(stream, &f))) {
		step = push_asked(op)->step;
		receive(op, gradient, &f);
		weft_op_free(op);
		if (f.status != WEFT_OK)
			break;
		applied.enough = apply(gradient, step);
		err = push_answer(stream, &applied, &patience, &op);
		finish(err, op, &f);
	}
	if (f.status != WEFT_OK)
		fprintf(stderr, "shard: a worker is lost: %s\n", f.why);
	weft_stream_finish(stream, f.status, f.why);
	sem_post(&threads_ended);
	return NULL;
}

/* Attach the weights to the next message, as they are now: others go on changing them. */
static uint32_t attach_weights(struct weft_stream *stream, struct failure *f)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	uint32_t step;

	options.flags = WEFT_SNAPSHOT;
	pthread_mutex_lock(&model.lock);
	step = model.step;
	for (unsigned t = 0; t < TENSORS; t++) {
		struct weft_tensor weights = part(model.weights, t);

		if (weft_stream_attach(stream, &weights, &options, NULL))
			blame(f, WEFT_RESOURCE_EXHAUSTED, weft_error());
	}
	pthread_mutex_unlock(&model.lock);
	return step;
}

static void *serve_pull(void *arg)
{
	Shard__Weights weights = SHARD__WEIGHTS__INIT;
	struct failure f = { WEFT_OK, "" };
	struct weft_stream *stream = arg;
	struct weft_op *op;
	int err;

	while (f.status == WEFT_OK && (op = next(stream, &f))) {
		weft_op_free(op);
		weights.step = attach_weights(stream, &f);
		if (f.status != WEFT_OK)
			break;
		err = pull_answer(stream, &weights, &patience, &op);
		finish(err, op, &f);
	}
	weft_stream_finish(stream, f.status, f.why);
	sem_post(&threads_ended);
	return NULL;
}

static void begin(struct weft_stream *stream, void *(*run)(void *stream))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, stream)) {
		weft_stream_finish(stream, WEFT_RESOURCE_EXHAUSTED, "no thread for a stream");
		return;
	}
	pthread_detach(thread);
	atomic_fetch_add(&threads_begun, 1);
}

/* A worker calls.  These two are on weft's thread, and must not block. */
static void begin_push(struct weft_stream *stream, void *unused)
{
	(void)unused;
	begin(stream, serve_push);
}

static void begin_pull(struct weft_stream *stream, void *unused)
{
	(void)unused;
	begin(stream, serve_pull);
}

static void check(int err)
{
	if (err) {
		fprintf(stderr, "shard: %s\n", weft_error());
		exit(1);
	}
}

static void serve(struct weft_node *node)
{
	static Shard__Shard_Service service = { .base = SHARD__SHARD__BASE_INIT };
	static const struct weft_stream_method methods[] = { { "Push", begin_push, NULL },
							     { "Pull", begin_pull, NULL } };

	sem_init(&solved, 0, 0);
	sem_init(&threads_ended, 0, 0);
	check(weft_serve_streams(node, &service.base, methods, 2));
	printf("%s\n", weft_node_address(node));
	fflush(stdout);
	sem_wait(&solved);

	/* The workers hear of it when they push next, and end their streams. */
	weft_node_drain(node, PATIENCE_NS);
	for (unsigned n = atomic_load(&threads_begun); n > 0; n--)
		sem_wait(&threads_ended);
}

/* The worker. */

/* Equations with unknown weights, each a sum of all of them with random signs: their slope. */
static void make_gradient(const float *weights, float *gradient)
{
	static uint64_t random;
	static float signs[WEIGHTS];

	if (!random)
		random = (uint64_t)getpid();
	memset(gradient, 0, WEIGHTS * sizeof(*gradient));
	for (unsigned e = 0; e < EQUATIONS; e++) {
		float wrong = 0; /* by how much the weights miss its right side */

		for (unsigned i = 0; i < WEIGHTS; i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			signs[i] = random >> 63 ? 1 : -1;
			wrong += signs[i] * (weights[i] - answer(i));
		}
		for (unsigned i = 0; i < WEIGHTS; i++)
			gradient[i] += wrong * signs[i] / EQUATIONS;
	}
}

/* Returns whether another step is due. */
static bool take_step(struct weft_stream *push, struct weft_stream *pull, struct failure *f)
{
	static float weights[WEIGHTS], gradient[WEIGHTS];
	Shard__Gradients gradients = SHARD__GRADIENTS__INIT;
	Shard__Wish wish = SHARD__WISH__INIT;
	struct weft_op *read, *sent[TENSORS];
	bool enough;

	check(pull_ask(pull, &wish, NULL, NULL)); /* what goes wrong later, the read tells */
	read = next(pull, f);
	if (!read)
		return false;
	gradients.step = pull_answered(read)->step;
	receive(read, weights, f);
	weft_op_free(read);
	if (f->status != WEFT_OK)
		return false;

	make_gradient(weights, gradient);
	for (unsigned t = 0; t < TENSORS; t++) {
		struct weft_tensor slope = part(gradient, t);

		check(weft_stream_attach(push, &slope, NULL, &sent[t]));
	}
	check(push_ask(push, &gradients, NULL, NULL));
	read = next(push, f);
	if (!read)
		return false;
	enough = push_answered(read)->enough;
	weft_op_free(read);
	for (unsigned t = 0; t < TENSORS; t++)
		finish(0, sent[t], f); /* the gradient may be changed again */
	return !enough && f->status == WEFT_OK;
}

static void work(struct weft_node *node, const char *address)
{
	struct weft_call_options options = WEFT_CALL_OPTIONS_INIT;
	struct weft_op *calls[2];
	struct weft_stream *push, *pull;
	struct failure f = { WEFT_OK, "" };
	struct weft_peer *peer;
	struct weft_stub *stub;
	unsigned steps = 1;

	options.op.timeout_ns = WEFT_FOREVER; /* of the streams: they last as long as it takes */
	check(weft_peer_open(node, address, &peer));
	check(weft_stub_open(peer, &shard__shard__descriptor, &stub));
	check(weft_stream_open(stub, "Push", &options, &push, &calls[0]));
	check(weft_stream_open(stub, "Pull", &options, &pull, &calls[1]));

	while (take_step(push, pull, &f))
		steps++;
	if (f.status == WEFT_OK) {
		check(weft_stream_half_close(push));
		check(weft_stream_half_close(pull));
		finish(0, calls[0], &f);
		finish(0, calls[1], &f);
	}
	if (f.status != WEFT_OK) {
		fprintf(stderr, "shard: %s\n", f.why);
		exit(1);
	}
	printf("%u gradients\n", steps);

	weft_stream_close(push);
	weft_stream_close(pull);
	weft_stub_close(stub);
	weft_peer_close(peer);
}

int main(int argc, char **argv)
{
	struct weft_node *node;

	check(weft_node_open(NULL, &node));
	if (argc > 1)
		work(node, argv[1]);
	else
		serve(node);
	check(weft_node_close(node));
	return 0;
}
