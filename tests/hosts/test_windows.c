/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows between two hosts: found by key, used over a slow network, and over one that is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crossing.h"

#define MIB ((size_t)1024 * 1024)
#define BYTES (8 * MIB)
#define KEY "window"

/* Shorter than the defaults of 1 s and 3 s. */
#define HEARTBEAT "250ms"
#define LOST "1s"
/* The limit and one heartbeat more; 2 s until memory of a shared rail is quiet; a busy machine. */
#define CUT_NS ((1000 + 250 + 2000 + 2000) * PAIR_MS)

/* In the other process: a window that is never closed, for the process ends. */
static unsigned char *memory;
static struct weft_window *window;

static void other_open(struct pair *side, char *arguments)
{
	(void)arguments;
	memory = malloc(BYTES);
	need(memory != NULL);
	pair_fill(memory, BYTES, 1);
	need(!weft_window_open(side->node, memory, BYTES, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE,
			       &window));
	need(!weft_window_publish(window, KEY, strlen(KEY)));
}

/* Take a note, and check that the window has the bytes of pattern 2 by then. */
static void other_note(struct pair *side, char *arguments)
{
	const struct weft_note *note;
	struct weft_op *op;

	(void)arguments;
	need(!weft_window_next(window, NULL, &op));
	need(!weft_wait(op, PAIR_LIMIT_NS));
	note = weft_op_note(op);
	need(note != NULL);
	need(pair_matches(memory, BYTES, 2));
	snprintf(side->reply, sizeof(side->reply), "%.*s", (int)note->bytes,
		 (const char *)note->data);
	weft_op_free(op);
}

static const struct pair_command commands[] = {
	{ "window", other_open }, { "note", other_note }, { NULL, NULL },
};

/* Open a pair whose other process has a window, and find that. */
static struct weft_remote *begin(struct pair *pair, const char *provider)
{
	struct weft_remote *remote;
	struct weft_op *op;

	crossing_open(pair, provider, 1);
	pair_do(&pair->other, "window");
	need(!weft_window_find(pair->peer, KEY, strlen(KEY), NULL, &op));
	pair_ended(op, WEFT_OK);
	need(!weft_op_remote(op, &remote));
	weft_op_free(op);
	return remote;
}

/* Get the whole window. */
static struct weft_op *get(struct weft_remote *remote, unsigned char *to)
{
	const struct weft_block block = { to, 0, BYTES };
	struct weft_op *op;

	need(!weft_get(remote, &block, 1, NULL, &op));
	return op;
}

static struct weft_op *put(struct weft_remote *remote, unsigned char *from)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	const struct weft_block block = { from, 0, BYTES };
	struct weft_op *op;

	options.flags = WEFT_NOTE;
	options.note = "all is there";
	options.note_bytes = strlen(options.note);
	need(!weft_put(remote, &block, 1, &options, &op));
	return op;
}

static void ended(struct weft_op *op, enum weft_status status)
{
	pair_ended(op, status);
	weft_op_free(op);
}

static void windows_are_found_and_used_between_hosts(void **state)
{
	unsigned char *here = malloc(BYTES);
	struct weft_remote *remote;
	const char *provider;
	struct pair pair;

	(void)state;
	for (provider = pair_first(); provider; provider = pair_next()) {
		remote = begin(&pair, provider);
		ended(get(remote, here), WEFT_OK);
		need(pair_matches(here, BYTES, 1));
		pair_fill(here, BYTES, 2);
		ended(put(remote, here), WEFT_OK);
		need(!strcmp(pair_do(&pair.other, "note"), "all is there"));
		weft_remote_close(remote);
		crossing_close(&pair);
	}
	free(here);
}

/* Cut the cable three times, for less than the limit each. */
static void cut_and_mend(void)
{
	for (unsigned i = 0; i < 3; i++) {
		pair_sleep_ms(200);
		hosts_cut(1, 0);
		pair_sleep_ms(100 + 100 * i);
		hosts_mend(1, 0);
	}
}

static void a_cut_shorter_than_the_limit_fails_no_get_and_no_put(void **state)
{
	unsigned char *here = malloc(BYTES);
	struct weft_remote *remote;
	const char *provider;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (provider = pair_first(); provider; provider = pair_next()) {
		remote = begin(&pair, provider);
		hosts_limit(1, 0, 100); /* the window takes 0.7 s */
		op = get(remote, here);
		cut_and_mend();
		ended(op, WEFT_OK);
		need(pair_matches(here, BYTES, 1));
		pair_fill(here, BYTES, 2);
		op = put(remote, here);
		cut_and_mend();
		ended(op, WEFT_OK);
		need(!strcmp(pair_do(&pair.other, "note"), "all is there"));
		hosts_restore();
		weft_remote_close(remote);
		crossing_close(&pair);
	}
	free(here);
}

static void gets_and_puts_end_in_time_when_the_cable_is_cut(void **state)
{
	unsigned char *into = malloc(BYTES), *from = malloc(BYTES);
	struct weft_op *ops[2];
	struct weft_remote *remote;
	const char *provider;
	struct pair pair;
	uint64_t cut_ns;

	(void)state;
	crossing_set("WEFT_HEARTBEAT", HEARTBEAT);
	crossing_set("WEFT_LOST", LOST);
	for (provider = pair_first(); provider; provider = pair_next()) {
		remote = begin(&pair, provider);
		hosts_limit(1, 0, 3); /* so that both take 20 s, however late the cut is */
		memset(into, 0x55, BYTES);
		pair_fill(from, BYTES, 2);
		ops[0] = get(remote, into);
		ops[1] = put(remote, from);
		for (uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
		     pair_peek(into) == 0x55 && pair_now_ns() < until;)
			pair_sleep_ms(1);
		cut_ns = pair_now_ns();
		hosts_cut(1, 0);
		ended(ops[0], WEFT_UNAVAILABLE);
		ended(ops[1], WEFT_UNAVAILABLE);
		need(pair_now_ns() - cut_ns < CUT_NS);
		hosts_mend(1, 0);
		hosts_restore();
		weft_remote_close(remote);
		weft_peer_close(pair.peer);
		pair.other.peer = NULL;
		need(!weft_node_close(pair.node));
		pair_kill(&pair.other, SIGKILL);
	}
	free(into);
	free(from);
}

int main(int argc, char **argv)
{
	static const struct hosts_plan plan = { .count = 2, .networks = 1 };
	const struct CMUnitTest tests[] = {
		crossing_test(windows_are_found_and_used_between_hosts),
		crossing_test(a_cut_shorter_than_the_limit_fails_no_get_and_no_put),
		crossing_test(gets_and_puts_end_in_time_when_the_cable_is_cut),
	};
	int status;

	if (!crossing_begin(argc, argv, &plan, commands, &status))
		return status;
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
