/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/echo.h"

#include <errno.h>
#include <stdio.h>

#define ECHOES_MAX 65536

void wf_echo_init(struct wf_echoes *echoes)
{
	wf_table_init(&echoes->table, ECHOES_MAX);
}

void wf_echo_fini(struct wf_echoes *echoes)
{
	wf_table_fini(&echoes->table);
}

static void end(struct wf_echo *echo, const struct wf_error *e)
{
	struct wf_link *link = echo->link;

	echo->ended = true;
	wf_table_remove(&echo->echoes->table, echo->id);
	wf_list_remove(&echo->node);
	wf_link_unwatch(link);
	echo->done(echo, e);
	wf_link_put(link);
}

static void sent(struct wf_message *m, const struct wf_error *e)
{
	struct wf_echo *echo = WF_CONTAINER(m, struct wf_echo, message);

	if (e)
		end(echo, e);
}

int wf_echo_start(struct wf_echoes *echoes, struct wf_link *link, struct wf_echo *echo)
{
	struct wf_bytes_writer w = wf_bytes_writer(echo->head, sizeof(echo->head));
	int err = wf_table_add(&echoes->table, echo, &echo->id);

	if (err)
		return err;
	echo->echoes = echoes;
	echo->link = link;
	echo->ended = false;
	wf_record_small_put(&w, &(struct wf_record_small){ .id = echo->id });
	echo->message = (struct wf_message){
		.type = WF_RECORD_ECHO,
		.head = echo->head,
		.head_bytes = sizeof(echo->head),
		.sent = sent,
	};
	wf_list_append(&wf_link_real(link)->work[WF_ABOVE_ECHOES], &echo->node);
	wf_link_get(link);
	wf_link_watch(link, true);
	wf_link_post(link, &echo->message);
	return 0;
}

void wf_echo_stop(struct wf_echo *echo, const struct wf_error *e)
{
	if (echo->ended)
		return;
	/* A record so short is in a frame as a whole, or not at all. */
	wf_link_unpost(echo->link, &echo->message);
	end(echo, e);
}

int wf_echo_take_back(struct wf_echo *echo)
{
	struct wf_link *link = echo->link;

	if (echo->ended || wf_link_unpost(link, &echo->message))
		return -EALREADY;
	echo->ended = true;
	wf_table_remove(&echo->echoes->table, echo->id);
	wf_list_remove(&echo->node);
	wf_link_unwatch(link);
	wf_link_put(link);
	return 0;
}

static int take_echo(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_echoes *echoes = ctx;
	struct wf_record_small small;
	struct wf_echo *echo;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	if (record->type == WF_RECORD_ECHO)
		return wf_message_post_small(link, 0, WF_RECORD_ECHOED, small.id, 0, 0);
	echo = wf_table_get(&echoes->table, small.id);
	if (echo && wf_link_real(echo->link) == link)
		end(echo, NULL);
	return 0;
}

void wf_echo_route(struct wf_echoes *echoes, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_ECHO, take_echo, echoes);
	wf_route_set(routes, WF_RECORD_ECHOED, take_echo, echoes);
}

void wf_echo_down(struct wf_link *link, const struct wf_error *e)
{
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_ECHOES])
		wf_echo_stop(WF_CONTAINER(node, struct wf_echo, node), e);
}

void wf_echo_describe(const struct wf_echo *echo, char *text, size_t bytes)
{
	const struct wf_link *link = wf_link_real(echo->link);

	if (link->state != WF_LINK_UP)
		(void)snprintf(text, bytes, "no rail to %s yet", wf_link_label(link));
	else if (!wf_list_empty(&echo->message.node))
		(void)snprintf(text, bytes, "the echo has not left yet");
	else
		(void)snprintf(text, bytes, "sent, and %s owes the answer", wf_link_label(link));
}
