/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo: a record that the peer sends back, over the fabric.
 *
 * Threads: owner.
 */
#ifndef WF_ECHO_H
#define WF_ECHO_H

#include "link/link.h"

struct wf_echoes {
	struct wf_table table;
};

struct wf_echo {
	/* set by the owner; called once, @e is NULL: the echo came back */
	void (*done)(struct wf_echo *echo, const struct wf_error *e);
	/* private to echo.c */
	struct wf_echoes *echoes;
	struct wf_link *link;
	struct wf_list node; /* in link->work */
	uint64_t id;
	struct wf_message message;
	uint8_t head[WF_RECORD_SMALL_BYTES];
	bool ended;
};

void wf_echo_init(struct wf_echoes *echoes);
void wf_echo_fini(struct wf_echoes *echoes);

/* Post an echo.  Borrows @echo until done.  -ENOMEM. */
int wf_echo_start(struct wf_echoes *echoes, struct wf_link *link, struct wf_echo *echo);

/* End the echo early; done runs inside.  Harmless after the end. */
void wf_echo_stop(struct wf_echo *echo, const struct wf_error *e);

/* Undo wf_echo_start() before the echo had a rail: it may be started again.  -EALREADY. */
int wf_echo_take_back(struct wf_echo *echo);

/* Say for people what the echo waits for. */
void wf_echo_describe(const struct wf_echo *echo, char *text, size_t bytes);

/* Take ECHO and ECHOED records.  Threads: setup. */
void wf_echo_route(struct wf_echoes *echoes, struct wf_routes *routes);

/* End all echoes of @link, whose peer is dead, with @e. */
void wf_echo_down(struct wf_link *link, const struct wf_error *e);

#endif
