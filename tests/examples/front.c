/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The front of a model: it streams tokens to whoever asks, as they are made, and makes none
 * for a client that has enough, has no time left, or is gone.
 *
 *   front                                    prints its address and serves until SIGTERM
 *   front ADDRESS PROMPT [TOKENS [SECONDS]]  prints so many tokens, if they come in time
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

#include "front.pb-c.h"

#define SECOND_NS 1000000000ull     /* times of weft are in nanoseconds */
#define PATIENCE_NS (5 * SECOND_NS) /* with a client that does not ask, or does not read */
#define TOKEN_NS 5000000            /* that the model takes for one */
#define TOKENS_MAX 2000             /* of an answer */
#define WORD_BYTES 64               /* of a token */
#define ANSWERS_MAX 64              /* at once, for each has a thread; more are refused */

WEFT_STREAM_TYPES(generate, Front__Prompt, Front__Token);

static atomic_bool stop;
static atomic_uint begun; /* threads, ever */
static sem_t ended;       /* raised by each as the last thing that it does */

static void check(int err)
{
	if (err) {
		fprintf(stderr, "front: %s\n", weft_error());
		exit(1);
	}
}

/* The model: it knows the words of the prompt, and says them again and again. */
static const char *think(const char *prompt, const char *at, char word[WORD_BYTES])
{
	int bytes;

	nanosleep(&(struct timespec){ .tv_nsec = TOKEN_NS }, NULL);
	at += strspn(at, " ");
	if (!*at)
		at = prompt + strspn(prompt, " ");
	bytes = (int)strcspn(at, " ");
	snprintf(word, WORD_BYTES, "%.*s", bytes, at);
	return at + bytes;
}

/* Returns when the token has left: for a client that does not read none is made. */
static enum weft_status say(struct weft_stream *stream, char *word)
{
	struct weft_op_options patience = WEFT_OP_OPTIONS_INIT;
	Front__Token token = FRONT__TOKEN__INIT;
	enum weft_status status;
	struct weft_op *op;

	token.text = word;
	patience.timeout_ns = PATIENCE_NS;
	if (generate_answer(stream, &token, &patience, &op))
		return WEFT_INTERNAL;
	weft_wait(op, WEFT_FOREVER);
	status = weft_op_status(op);
	weft_op_free(op);
	return status;
}

static enum weft_status generate(struct weft_stream *stream, const char *prompt)
{
	enum weft_status status = WEFT_OK;
	const char *at = prompt;
	char word[WORD_BYTES];
	unsigned made = 0;

	while (status == WEFT_OK && made < TOKENS_MAX) {
		at = think(prompt, at, word);
		made++;
		/* Fails once the client has cancelled, is gone, or its deadline has passed. */
		status = atomic_load(&stop) ? WEFT_UNAVAILABLE : say(stream, word);
	}
	printf("%u tokens for \"%.40s\", %.3f s before the deadline: %s\n", made, prompt,
	       (double)weft_served_left_ns(weft_stream_served(stream)) / (double)SECOND_NS,
	       weft_status_name(status));
	fflush(stdout);
	return status;
}

/* A thread for each call, that may take its time. */
static void *answer(void *arg)
{
	struct weft_op_options patience = WEFT_OP_OPTIONS_INIT;
	enum weft_status status = WEFT_INTERNAL;
	struct weft_stream *stream = arg;
	struct weft_op *read;

	patience.timeout_ns = PATIENCE_NS;
	if (weft_stream_read(stream, &patience, &read) == 0) {
		weft_wait(read, WEFT_FOREVER);
		status = weft_op_status(read);
		if (generate_asked(read))
			status = generate(stream, generate_asked(read)->text);
		weft_op_free(read);
	}
	weft_stream_finish(stream, status, atomic_load(&stop) ? "the server ends" :
								"nothing was asked, or read");
	sem_post(&ended);
	return NULL;
}

/* A call has come.  This is on weft's thread, and must not block. */
static void begin(struct weft_stream *stream, void *unused)
{
	pthread_t thread;

	(void)unused;
	atomic_fetch_add(&begun, 1);
	if (pthread_create(&thread, NULL, answer, stream) == 0) {
		pthread_detach(thread);
		return;
	}
	weft_stream_finish(stream, WEFT_RESOURCE_EXHAUSTED, "no thread for an answer");
	sem_post(&ended);
}

static void serve(struct weft_node *node)
{
	static Front__Model_Service service = { .base = FRONT__MODEL__BASE_INIT };
	static const struct weft_stream_method method = { "Generate", begin, NULL };
	struct weft_serve_options limits = WEFT_SERVE_OPTIONS_INIT;
	int which;
	sigset_t end;

	/* Before there are threads of our own: they inherit it. */
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);

	sem_init(&ended, 0, 0);
	limits.methods = &method;
	limits.method_count = 1;
	limits.calls_max = ANSWERS_MAX;
	check(weft_serve_with(node, &service.base, &limits));
	printf("%s\n", weft_node_address(node));
	fflush(stdout);

	sigwait(&end, &which);
	atomic_store(&stop, true);
	weft_node_drain(node, PATIENCE_NS); /* no more begin */
	for (unsigned n = atomic_load(&begun); n > 0; n--)
		sem_wait(&ended);
}

/* Print tokens as they come, until these are enough or there are no more. */
static unsigned print(struct weft_stream *stream, unsigned tokens_max)
{
	const Front__Token *token;
	struct weft_op *read;
	unsigned got;

	for (got = 0; got < tokens_max; got++) {
		check(weft_stream_read(stream, NULL, &read));
		check(weft_wait(read, WEFT_FOREVER)); /* until the deadline of the call */
		token = generate_answered(read);
		if (token)
			printf("%s ", token->text);
		fflush(stdout);
		weft_op_free(read);
		if (!token)
			break;
	}
	return got;
}

static int ask(struct weft_node *node, const char *address, char *text, unsigned tokens_max,
	       double seconds)
{
	struct weft_call_options options = WEFT_CALL_OPTIONS_INIT;
	Front__Prompt prompt = FRONT__PROMPT__INIT;
	enum weft_status status;
	struct weft_stream *stream;
	struct weft_peer *peer;
	struct weft_stub *stub;
	struct weft_op *call;
	unsigned got;

	options.op.timeout_ns = (uint64_t)(seconds * (double)SECOND_NS);
	check(weft_peer_open(node, address, &peer));
	check(weft_stub_open(peer, &front__model__descriptor, &stub));
	check(weft_stream_open(stub, "Generate", &options, &stream, &call));
	prompt.text = text;
	check(generate_ask(stream, &prompt, NULL, NULL));
	check(weft_stream_half_close(stream));

	got = print(stream, tokens_max);
	if (got == tokens_max)
		weft_cancel(call); /* enough: the server hears of it */
	check(weft_wait(call, WEFT_FOREVER));
	status = weft_op_status(call);
	printf("\n%u tokens: %s\n", got, weft_status_name(status));
	if (status != WEFT_OK && got < tokens_max)
		fprintf(stderr, "front: %s\n", weft_op_message(call));

	weft_stream_close(stream);
	weft_op_free(call);
	weft_stub_close(stub);
	weft_peer_close(peer);
	return status != WEFT_OK && got < tokens_max;
}

int main(int argc, char **argv)
{
	struct weft_node *node;
	int failed = 0;

	check(weft_node_open(NULL, &node));
	if (argc > 2)
		failed = ask(node, argv[1], argv[2],
			     argc > 3 ? (unsigned)atoi(argv[3]) : TOKENS_MAX,
			     argc > 4 ? atof(argv[4]) : 60);
	else
		serve(node);
	check(weft_node_close(node));
	return failed;
}
