/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/link.h"
#include "link/internal.h"
#include "link/ledger.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/lease.h"
#include "util/clock.h"
#include "util/random.h"

/* Add to @text; the rest of a long text is left out. */
WF_PRINTF(2, 3)
static void add(char text[WF_LINK_STATE_BYTES], const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text + used, WF_LINK_STATE_BYTES - used, format, args);
	va_end(args);
}

static double seconds_since(const struct wf_link *link, uint64_t ns)
{
	uint64_t now = link->engine->loop.now_ns;

	return now > ns ? (double)(now - ns) / WF_NS_PER_S : 0;
}

/* Say what frames of a link that is up wait for. */
static void describe_flow(const struct wf_link *link, char text[WF_LINK_STATE_BYTES])
{
	const struct wf_list *oldest = wf_list_first(&link->out.frames);
	size_t records = 0;

	for (unsigned i = 0; i < WF_PRIORITIES; i++)
		WF_LIST_EACH(node, &link->out.queues[i])
			records++;
	if (records && link->tx.starved_ns && !wf_credit_left(&link->tx.credit))
		add(text, ", %zu records wait and it has granted no credit for %.1f s", records,
		    seconds_since(link, link->tx.starved_ns));
	else if (records)
		add(text, ", %zu records wait", records);
	if (link->tx.rail.full_ns)
		add(text, ", the provider has taken no frame for %.1f s",
		    seconds_since(link, link->tx.rail.full_ns));
	if (oldest)
		add(text, ", it has not confirmed %u frames, the first for %.1f s",
		    link->tx.sequence.sent - link->tx.sequence.acked,
		    seconds_since(link, WF_CONTAINER(oldest, struct wf_outframe, node)->posted_ns));
}

void wf_link_describe(const struct wf_link *link, char text[WF_LINK_STATE_BYTES])
{
	const struct wf_rail_caps *caps = wf_link_caps(link);

	text[0] = '\0';
	switch (link->state) {
	case WF_LINK_IDLE:
		add(text, "not connected");
		return;
	case WF_LINK_GONE:
		add(text, "gone, and its address is not known");
		return;
	case WF_LINK_DIALLING:
		add(text, "%s%s%s", link->conn ? "being dialled" : "to be dialled again",
		    link->probe.tried[0] ? ": " : "", link->probe.tried);
		return;
	case WF_LINK_TRYING:
		add(text, "greeted, and %s rail is tried%s%s",
		    wf_link_was_up(link) ? "another" : "a",
		    link->probe.tried[0] ? ": " : "", link->probe.tried);
		break;
	case WF_LINK_UP:
		add(text, "up on %s", caps->provider);
		if (wf_lane_count(link))
			add(text, " and %u lanes", wf_lane_count(link));
		break;
	}
	add(text, ", heard %.1f s ago", seconds_since(link, link->keepalive.heard_ns));
	if (!link->conn)
		add(text, ", its door has closed");
	describe_flow(link, text);
}

static struct wf_link *new_link(struct wf_engine *engine)
{
	static const struct wf_greet_hello unsaid;
	struct wf_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->peer = wf_greet_keep_hello(&unsaid);
	if (!link->peer || wf_table_add(&engine->links, link, &link->id)) {
		free(link->peer);
		free(link);
		return NULL;
	}
	link->engine = engine;
	link->refs = 1;
	link->number = ++engine->link_number;
	link->token = wf_random_u64();
	wf_list_init(&link->dirty_node);
	wf_tx_init(&link->out);
	wf_rx_credit_init(&link->controls);
	wf_list_init(&link->lanes);
	wf_list_init(&link->account.kept);
	for (unsigned i = 0; i < WF_ABOVE_WORKS; i++)
		wf_list_init(&link->work[i]);
	wf_map_init(&link->offers.map);
	wf_list_init(&link->offers.all);
	wf_list_init(&link->parts.all);
	wf_list_init(&link->parts.heard);
	for (unsigned i = 0; i < WF_PRIORITIES; i++)
		wf_list_init(&link->yields.held[i]);
	wf_list_append(&engine->link_list, &link->node);
	wf_directory_enter(engine->directory, &link->home, engine, link->address);
	return link;
}

int wf_link_open(struct wf_engine *engine, const char *address, struct wf_link **link,
		 struct wf_error *e)
{
	char host[WF_SOCKET_ADDRESS_BYTES];
	struct wf_link *fresh;
	uint16_t port;
	int err;

	err = wf_socket_split(address, host, sizeof(host), &port, e);
	if (err)
		return err;
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *known = WF_CONTAINER(node, struct wf_link, node);

		if (known->state != WF_LINK_GONE && !strcmp(known->address, address)) {
			wf_link_get(known);
			*link = known;
			return 0;
		}
	}
	fresh = new_link(engine);
	if (!fresh)
		return wf_error_set(e, -ENOMEM, "no memory for a link to %s", address);
	wf_directory_address(engine->directory, fresh->address, address);
	fresh->dialler = true;
	wf_ledger_begin(fresh, false);
	*link = fresh;
	return 0;
}

int wf_link_create(struct wf_engine *engine, struct wf_link **link)
{
	struct wf_link *fresh = new_link(engine);

	if (!fresh)
		return -ENOMEM;
	wf_ledger_begin(fresh, true);
	*link = fresh;
	return 0;
}

int wf_link_keep_hello(struct wf_link *link, const struct wf_greet_hello *hello, struct wf_error *e)
{
	struct wf_greet_hello *kept;

	if (hello == link->peer)
		return 0;
	kept = wf_greet_keep_hello(hello);
	if (!kept)
		return wf_error_set(e, -ENOMEM, "no memory for the hello of %s",
				    wf_link_label(link));
	free(link->peer);
	link->peer = kept;
	return 0;
}

struct wf_link *wf_link_find(struct wf_engine *engine, const uint8_t *incarnation,
			     const struct wf_link *except)
{
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link != except && wf_link_greeted(link) && !link->same &&
		    !memcmp(link->peer->incarnation, incarnation, WF_INCARNATION_BYTES))
			return link;
	}
	return NULL;
}

void wf_link_get(struct wf_link *link)
{
	link->refs++;
}

void wf_link_put(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	if (--link->refs)
		return;
	/* Conns, and users of the link, hold references; so nothing is under way here. */
	wf_link_forget_peer(link);
	wf_timer_stop(&engine->loop.timers, &link->dial.timer);
	link->state = WF_LINK_GONE;
	wf_ledger_end(link);
	wf_table_remove(&engine->links, link->id);
	wf_directory_leave(engine->directory, &link->home);
	link->address[0] = '\0';
	/* The link stays in the worker's list, through which a caller may be going. */
	wf_list_remove(&link->dirty_node);
	wf_list_append(&engine->unused_links, &link->dirty_node);
}

void wf_link_free_unused(struct wf_engine *engine)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&engine->unused_links))) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, dirty_node);

		if (link->same)
			wf_link_put(link->same); /* @link->same may be the next of this list */
		engine->sink->unused(engine->sink_ctx, link);
		wf_list_remove(&link->node);
		wf_map_fini(&link->offers.map);
		wf_seals_forget(&link->seals);
		free(link->peer);
		free(link);
	}
}

/* Close the door of @link; its reference goes too, so @link may be unused after this. */
void wf_link_close_conn(struct wf_link *link)
{
	struct wf_conn *conn = link->conn;

	if (!conn)
		return;
	link->conn = NULL;
	wf_conn_close(conn);
	wf_link_put(link);
}

/* Drop the record that is put together: it will have no end. */
static void forget_rx(struct wf_link *link)
{
	wf_assembly_fini(&link->rx.assembly);
	wf_ledger_discharge(link, WF_LEDGER_OWED, link->rx.assembly_bytes);
	link->rx = (struct wf_rx){ 0 };
}

/* Forget everything that belongs to the peer's present life. */
void wf_link_forget_peer(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	wf_probe_forget(link);
	wf_seals_forget(&link->seals);
	wf_same_forget(link);
	wf_keepalive_forget(link);
	wf_shm_import_part(link->side.shm_import);
	wf_sidedoor_forget(link);
	forget_rx(link);
	wf_tx_forget(link);
	wf_rx_credit_forget(link);
	wf_directory_disclaim(engine->directory, &link->home);
	link->stage = WF_LINK_STAGE_UNMET;
	link->eager_credit = (struct wf_eager_credit){ .held = link->eager_credit.held };
	free(link->above.early);
	link->above = (struct wf_above_notes){ 0 };
}

/* Give @link a new id and token for a new life: frames of the old life find no link. */
void wf_link_renew(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	wf_table_remove(&engine->links, link->id);
	link->token = wf_random_u64();
	/* The table has a free place, which this link had until now. */
	(void)wf_table_add(&engine->links, link, &link->id);
}

/*
 * Make the links that were other names of @link stand for their addresses by their own next dial.
 */
static void forget_names(const struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *name = WF_CONTAINER(node, struct wf_link, node);

		/* Users of that name keep it; a user that opens the address finds another link. */
		if (name->same && wf_link_real(name) == link)
			wf_directory_address(engine->directory, name->address, "");
	}
}

void wf_link_die(struct wf_link *link, const struct wf_error *e)
{
	struct wf_engine *engine = link->engine;
	struct wf_error why = *e; /* @e may lie in memory that is freed here */
	bool was_known = wf_link_was_up(link);

	wf_link_get(link);
	wf_log(&engine->log, WF_LOG_INFO, "%s: %s", wf_link_label(link), why.text);
	wf_link_record(link, WF_RECORDER_DEAD, 0, (uint64_t)why.code);
	engine->sink->dying(engine->sink_ctx, link, &why);
	if (was_known)
		wf_counters_add(&engine->counters.peers_lost, 1);
	wf_timer_stop(&engine->loop.timers, &link->dial.timer);
	wf_probe_drop(link);
	/* @link has no rail; upcalls below must not dial it, nor tell its peer anything. */
	link->state = WF_LINK_TRYING;
	link->stage = WF_LINK_STAGE_UNMET;
	link->dial.met = link->dial.met || was_known;
	wf_tx_fail(link, &why);
	wf_link_forget_peer(link);
	link->state = link->address[0] ? WF_LINK_IDLE : WF_LINK_GONE;
	link->dialler = true;
	wf_link_renew(link);
	wf_link_close_conn(link);
	forget_names(link);
	engine->sink->down(engine->sink_ctx, link, &why);
	if (engine->shm_export)
		wf_shm_export_look(engine->shm_export);
	wf_link_put(link);
}

void wf_link_rail_failed(struct wf_link *link, const char *why)
{
	if (link->state == WF_LINK_UP)
		wf_probe_failed(link, why);
}

void wf_link_violate(struct wf_link *link, const char *what)
{
	struct wf_error e;

	wf_counters_add(&link->engine->counters.frames_refused, 1);
	wf_error_set(&e, -EPROTO, "%s broke the protocol: %s", wf_link_label(link), what);
	wf_link_die(link, &e);
}

/* Move everything that waits from @link to @into: @link turned out to have its peer. */
void wf_link_merge(struct wf_link *link, struct wf_link *into)
{
	struct wf_engine *engine = link->engine;

	wf_link_get(into);
	wf_link_get(link);
	link->same = into;
	wf_timer_stop(&engine->loop.timers, &link->dial.timer);
	wf_link_forget_peer(link);
	wf_link_close_conn(link);
	link->state = WF_LINK_IDLE;
	for (unsigned i = 0; i < WF_ABOVE_WORKS; i++)
		wf_list_splice(&into->work[i], &link->work[i]);
	wf_list_splice(&into->account.kept, &link->account.kept);
	engine->sink->merged(engine->sink_ctx, link, into);
	wf_tx_move(&into->out, &link->out);
	wf_list_splice(&into->out.controls, &link->out.controls);
	into->keepalive.watch_count += link->keepalive.watch_count;
	link->keepalive.watch_count = 0;
	wf_ledger_merge(link, into);
	into->eager_credit.held += link->eager_credit.held;
	link->eager_credit.held = 0;
	if (!into->address[0])
		wf_directory_address(engine->directory, into->address, link->address);
	wf_link_mark(into);
	wf_keepalive_start(into); /* a receive that waits posts nothing that would start it */
	wf_link_put(link);
}

/* Wake @link, over which something is to reach the peer. */
static void use(struct wf_link *link)
{
	if (link->state == WF_LINK_IDLE)
		wf_dial_start(link);
	else if (link->state == WF_LINK_UP || link->state == WF_LINK_GONE)
		wf_link_mark(link);
}

void wf_link_post(struct wf_link *link, struct wf_message *m)
{
	link = wf_link_real(link);
	m->done_bytes = 0;
	wf_tx_queue(&link->out, m);
	use(link);
}

int wf_link_unpost(struct wf_link *link, struct wf_message *m)
{
	link = wf_link_real(link);
	if (wf_list_empty(&m->node) || m->done_bytes)
		return -EALREADY;
	wf_tx_unqueue(&link->out, m);
	return 0;
}

void wf_link_control(struct wf_link *link, struct wf_message_control *c)
{
	link = wf_link_real(link);
	wf_list_append(&link->out.controls, &c->node);
	use(link);
}

void wf_link_watch(struct wf_link *link, bool dial)
{
	link = wf_link_real(link);
	link->keepalive.watch_count++;
	if (dial && link->state == WF_LINK_IDLE && link->address[0])
		wf_dial_start(link);
	wf_keepalive_start(link);
}

void wf_link_unwatch(struct wf_link *link)
{
	wf_link_real(link)->keepalive.watch_count--;
}

uint32_t wf_link_record_bytes_max(const struct wf_link *link)
{
	return wf_link_greeted(link) ? link->peer->record_bytes_max : 0;
}
