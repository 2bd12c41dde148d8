/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/checker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/worker.h"
#include "link/lease.h"
#include "tests/sim/casting.h"
#include "tests/sim/faults.h"
#include "tests/sim/fusing.h"
#include "tests/sim/onesided.h"
#include "tests/sim/pushing.h"
#include "tests/sim/staying.h"
#include "util/clock.h"

#define SLACK_NS (8 * WF_NS_PER_MS) /* from a deadline to the next look of the node and the test */

/* Until a death is known: no redial for 500 ms, or silence for 300, and all that may delay it. */
#define LOSS_NS WF_NS_PER_S

#define VIEW_NS (700 * WF_NS_PER_MS) /* the longest that something is looked at */

static struct wf_checker_config config;

void wf_checker_start(const struct wf_checker_config *given)
{
	config = *given;
}

static const char *name_of(const struct wf_leg *leg)
{
	static const char *const names[] = { "send", "receive", "call", "ping", "stream" };

	return names[leg->kind];
}

/* The sentence of an operation whose handle is still there. */
static const char *sentence(const struct wf_leg *leg)
{
	return leg->flight.op ? weft_op_message(leg->flight.op) : "(detached)";
}

static double seconds(uint64_t ns)
{
	return (double)ns / WF_NS_PER_S;
}

/* What belongs together, to see what went before. */
static void show_group(const struct wf_group *g)
{
	for (unsigned i = 0; i < g->count; i++) {
		const struct wf_leg *leg = &g->legs[i];

		print_error("  %-8s n%u n%u %7zu bytes, began %.6f of %.6f, limit %.6f", name_of(leg),
			    leg->node, leg->peer, leg->bytes, seconds(leg->flight.started_ns),
			    seconds(leg->begin_ns), seconds(leg->limit_ns));
		if (leg->flight.outcomes)
			print_error(", ended %.6f %s", seconds(leg->flight.ended_ns),
				    weft_status_name(leg->flight.status));
		print_error("\n");
	}
}

static void wrong(const struct wf_leg *leg, const char *what)
{
	show_group(leg->group);
	for (unsigned i = 0; getenv("WORLD_LOG") && i < 2; i++)
		if (wf_world_node(i ? leg->peer : leg->node))
			(void)weft_dump(wf_world_node(i ? leg->peer : leg->node), stderr);
	fail_msg("%s of group %llu at node %u %s: %s", name_of(leg),
		 (unsigned long long)leg->group->step, leg->node, what, sentence(leg));
}

/*
 * A peer that died is missed by then, or soon after its node has gone on.  What had come whole
 * before may wait for memory as long as it has time.
 */
static uint64_t missed_ns(const struct wf_leg *leg)
{
	enum weft_status status = leg->flight.status;

	if (!leg->bereft_ns || (leg->kind != WF_LEG_SEND && (status == WEFT_OK ||
							     status == WEFT_RESOURCE_EXHAUSTED)))
		return UINT64_MAX;
	return WF_MAX(leg->bereft_ns, wf_faults_thawed_ns(leg->node)) + LOSS_NS;
}

/*
 * A receive that is cancelled, or out of time, gives back what it was to get; but not without
 * memory, nor when its node closes or the step is over, nor what has sums that its sender counts.
 */
static void check_given_back(const struct wf_leg *leg)
{
	bool refused = strstr(sentence(leg), "did not take it: CANCELLED") ||
		       strstr(sentence(leg), "did not take it: DEADLINE_EXCEEDED");

	if (leg->kind != WF_LEG_SEND || !refused || leg->group->stopped || config.tally->injected[WF_FAULT_MEMORY] ||
	    wf_faults_is_away(leg->peer) || leg->bereft_ns ||
	    (leg->bytes > MIB && getenv("WEFT_CHECKSUM")))
		return;
	wrong(leg, "was lost to a receive that was given up");
}

/* One outcome, in time.  A node that stood still could not end it before it went on. */
static void check_end(const struct wf_leg *leg)
{
	const struct wf_flight *f = &leg->flight;
	uint64_t deadline_ns = f->started_ns + leg->limit_ns;
	uint64_t due_ns = WF_MIN(deadline_ns, missed_ns(leg));

	if (leg->stopped_ns && leg->stopped_life == leg->life)
		due_ns = WF_MIN(due_ns, WF_MAX(leg->stopped_ns, f->started_ns));
	due_ns = WF_MAX(due_ns, wf_faults_thawed_ns(leg->node));
	if (f->outcomes != 1)
		wrong(leg, "ended more than once");
	if (f->ended_ns > due_ns + config.quiet_ns + SLACK_NS)
		wrong(leg, "ended too late");
	/* A sender hears so when its receiver's time is over. */
	if (f->status == WEFT_DEADLINE_EXCEEDED && f->ended_ns < deadline_ns &&
	    leg->kind != WF_LEG_SEND)
		wrong(leg, "missed its deadline before it came");
	check_given_back(leg);
	if (strstr(sentence(leg), WF_TRAFFIC_MEDDLED))
		wrong(leg, "was ended by a node that takes no part in its step");
	if (f->status == WEFT_DATA_LOSS &&
	    (config.sealed || !config.tally->injected[WF_FAULT_FLIP]))
		wrong(leg, "missed bytes that nobody touched");
	if (config.harmless && !leg->group->lonely && f->status != WEFT_OK)
		wrong(leg, "should have gone well");
}

static void show_bytes(const uint8_t *bytes, uint64_t count)
{
	print_error("  %llu bytes:", (unsigned long long)count);
	for (uint64_t i = 0; i < WF_MIN(count, (uint64_t)16); i++)
		print_error(" %02x", bytes[i]);
	print_error("\n");
}

/* The receive got the tensor of one send of its channel, which nobody else got. */
static void check_content(struct wf_leg *leg)
{
	const struct weft_tensor *t = leg->flight.op ? weft_op_tensor(leg->flight.op, NULL) : NULL;
	struct wf_group *g = leg->group;
	uint64_t bytes;

	/* Given up, or in a pool that is no more. */
	if (!t || (leg->memory == WF_LEG_POOL && wf_faults_is_gone(leg->node)))
		return;
	assert_int_equal(weft_tensor_bytes(t, &bytes), 0);
	if (!t->data)
		bytes = 0;
	for (unsigned i = 0; i < g->count; i++) {
		struct wf_leg *send = &g->legs[i];

		if (send->kind != WF_LEG_SEND || !send->begun || send->delivered ||
		    !wf_leg_sent(send, t->data, bytes))
			continue;
		send->delivered++;
		leg->got = send;
		return;
	}
	show_bytes(t->data, bytes);
	wrong(leg, "got what nobody sent, or what somebody else got");
}

static void check_call(const struct wf_leg *leg)
{
	const struct wf_flight *f = &leg->flight;

	if (f->closures != 1)
		wrong(leg, "called back more or less than once");
	if (f->reply_right != (f->status == WEFT_OK))
		wrong(leg, "got a reply that is not the right one");
	if (f->status == WEFT_OK && leg->handled != 1)
		wrong(leg, "was answered and not handled");
}

/* What goes beside the request is the caller's own again. */
static void check_request(const struct wf_leg *leg)
{
	const struct wf_load *up = leg->cargo.up;

	if (!wf_cargo_is_sent(up))
		wrong(leg, "ended and did not wait for what goes beside its request");
	for (unsigned i = 0; up && i < up->count; i++)
		if (up->items[i].sent.begun && !up->items[i].unwatched &&
		    up->items[i].sent.flight.ended_ns > leg->flight.ended_ns)
			wrong(leg, "ended before what goes beside its request");
}

/* Its writes end with the call, and its reads say of the end what the call does. */
static void check_talk(const struct wf_leg *leg)
{
	const struct wf_talk *t = &leg->talk;
	uint64_t ended_ns = WF_MAX(leg->flight.ended_ns, wf_faults_thawed_ns(leg->node));
	bool well = leg->flight.status == WEFT_OK;

	for (unsigned i = 0; i < t->written; i++) {
		if (t->writes[i].outcomes != 1)
			wrong(leg, "has a write that ended more than once");
		if (t->writes[i].ended_ns > ended_ns + config.quiet_ns + SLACK_NS)
			wrong(leg, "has a write that ended too late");
		if (config.harmless && !leg->group->lonely && t->writes[i].status != WEFT_OK)
			wrong(leg, "has a write that should have gone well");
	}
	if (t->heard_end && !well)
		wrong(leg, "has an end that is not the call's");
	if (t->heard_end && t->heard != t->down)
		wrong(leg, "ended well before all was said");
	if (well && (t->fails || leg->handled != 1 || (t->asks > t->up && !t->asked_end)))
		wrong(leg, "ended well, and its server does not say so");
	if (config.harmless && !leg->group->lonely && !t->heard_end)
		wrong(leg, "was not heard to its end");
}

/* Nobody has a key to the buffer of a send any more, nor reads of it.  NULL, or what is wrong. */
static const char *trouble_of(const uint8_t *buffer, size_t bytes, unsigned flags)
{
	if (flags & WEFT_SNAPSHOT || !bytes)
		return NULL;
	if (wf_fake_is_open(buffer, bytes))
		return "left its buffer open to others";
	/* The stated exception: a shared rail whose peer stands still. */
	if ((config.harmless || config.connected) && wf_fake_is_read(buffer, bytes))
		return "ended while somebody read its buffer";
	return NULL;
}

/* Can anybody read that buffer in clear, though bodies are sealed? */
static bool is_exposed(const uint8_t *buffer, size_t bytes)
{
	return config.sealed && buffer && bytes && wf_fake_is_open(buffer, bytes);
}

static void check_quiet(const struct wf_leg *leg)
{
	const char *what = trouble_of(leg->buffer, leg->buffer_bytes, leg->flags);

	if (what)
		wrong(leg, what);
}

/* From here on nobody may touch the buffer. */
static void give_up_buffer(struct wf_leg *leg)
{
	if (leg->kind == WF_LEG_SEND || leg->kind == WF_LEG_RECEIVE)
		memset(leg->buffer, WF_TRAFFIC_CANARY, leg->buffer_bytes);
}

/* Memory of the pool may be kept beyond the operation. */
static void take_over(const struct wf_leg *leg)
{
	void *memory = weft_op_take(leg->flight.op);

	weft_free(wf_world_node(leg->node), memory);
}

/* It may be looked at for longer than the send and its node last. */
static void begin_view(struct wf_leg *leg)
{
	unsigned flags;

	if (!leg->flight.op || !leg->got || !weft_op_tensor(leg->flight.op, &flags) ||
	    !(flags & WEFT_READONLY))
		return;
	leg->view = weft_op_take(leg->flight.op);
	leg->view_ns = wf_clock_now() + leg->seed % VIEW_NS;
	config.tally->views++;
}

/* Its node has died, or closed: nobody looks any more. */
static bool is_of_the_past(const struct wf_leg *leg)
{
	return wf_faults_is_gone(leg->node) || leg->life != wf_faults_life(leg->node);
}

static void end_view(struct wf_leg *leg)
{
	if (!is_of_the_past(leg)) {
		if (!wf_leg_sent(leg->got, leg->view, leg->got->bytes))
			wrong(leg, "saw something else after a while");
		weft_free(wf_world_node(leg->node), leg->view);
	}
	leg->view = NULL;
}

/* The sender does not need it any more. */
static void give_up_shared(struct wf_leg *leg)
{
	if (!is_of_the_past(leg))
		weft_free(wf_world_node(leg->node), leg->shared);
	leg->shared = NULL;
}

static void look_at(struct wf_leg *leg)
{
	leg->seen = true;
	leg->executed = leg->flight.op ? weft_op_executed(leg->flight.op) : WEFT_EXECUTED_MAYBE;
	check_end(leg);
	if (leg->kind == WF_LEG_CALL) {
		check_call(leg);
		check_request(leg);
	}
	if (leg->kind == WF_LEG_STREAM)
		check_talk(leg);
	if (leg->kind == WF_LEG_RECEIVE && leg->flight.status == WEFT_OK)
		check_content(leg);
	if (leg->kind == WF_LEG_SEND && leg->buffer)
		check_quiet(leg);
	if (leg->memory == WF_LEG_POOL)
		begin_view(leg);
	if (leg->shared)
		give_up_shared(leg);
	if (leg->memory == WF_LEG_POOL && !leg->view && leg->got && leg->seed % 4 == 0)
		take_over(leg);
	if (leg->buffer)
		give_up_buffer(leg);
	/* Results in the pool would keep it from others. */
	weft_op_free(leg->flight.op);
	leg->flight.op = NULL;
	wf_talk_release(leg);
}

/* Attachments. */

static void wrong_item(const struct wf_item *item, const struct wf_cargo_end *end,
		       const char *what)
{
	const struct wf_leg *leg = item->load->leg;
	const struct wf_flight *f = &end->flight;

	show_group(leg->group);
	print_error("  attachment %u beside message %ld to the %s, %zu bytes, flags %#x%s\n", item->index,
		    (long)(item->load - (item->load->back ? leg->cargo.down : leg->cargo.up)),
		    item->load->back ? "caller" : "server", item->bytes, item->flags,
		    item->unwatched ? ", unwatched" : "");
	print_error("  began %.6f, due %.6f, ended %.6f %s\n", seconds(f->started_ns),
		    seconds(end->due_ns), seconds(f->ended_ns), weft_status_name(f->status));
	fail_msg("%s of an attachment of group %llu at node %u %s: %s",
		 end == &item->sent ? "send" : "receive", (unsigned long long)leg->group->step,
		 end->node, what, f->op ? weft_op_message(f->op) : "(detached)");
}

/*
 * As check_end.  A sender hears so when its receiver's time is over.  What had come whole before
 * its sender died may wait for memory as long as it has time.
 */
static void check_item_end(const struct wf_item *item, const struct wf_cargo_end *end)
{
	const struct wf_flight *f = &end->flight;
	uint64_t due_ns = end->due_ns;

	if (end->bereft_ns && f->status != WEFT_OK)
		due_ns = WF_MIN(due_ns,
				WF_MAX(end->bereft_ns, wf_faults_thawed_ns(end->node)) + LOSS_NS);
	due_ns = WF_MAX(due_ns, wf_faults_thawed_ns(end->node));
	if (f->outcomes != 1)
		wrong_item(item, end, "ended more than once");
	if (f->ended_ns > due_ns + config.quiet_ns + SLACK_NS)
		wrong_item(item, end, "ended too late");
	if (f->status == WEFT_DEADLINE_EXCEEDED && f->ended_ns < end->due_ns && end == &item->got)
		wrong_item(item, end, "missed its deadline before it came");
	if (f->status == WEFT_DATA_LOSS &&
	    (config.sealed || !config.tally->injected[WF_FAULT_FLIP]))
		wrong_item(item, end, "missed bytes that nobody touched");
	if (config.harmless && !item->load->leg->group->lonely && f->status != WEFT_OK &&
	    (item->got.begun || f->status != WEFT_CANCELLED))
		wrong_item(item, end, "should have gone well");
}

/* What was received is what was sent; of one whose handle is gone the buffer shows it. */
static void check_item_content(struct wf_item *item)
{
	struct wf_cargo_end *end = &item->got;
	unsigned flags = item->flags & (WEFT_DEAD | WEFT_OPAQUE), got = flags;
	const struct weft_tensor *t = end->flight.op ? weft_op_tensor(end->flight.op, &got) : NULL;
	const uint8_t *data = t ? t->data : end->buffer;
	uint64_t bytes = item->bytes;

	if (item->memory == WF_CARGO_POOL && (!t || wf_cargo_is_of_the_past(end)))
		return;
	if (t)
		assert_int_equal(weft_tensor_bytes(t, &bytes), 0);
	if ((got & ~(unsigned)WEFT_READONLY) != flags)
		wrong_item(item, end, "has other flags than what was sent");
	if (item->bytes && (!data || bytes != item->bytes ||
			    !wf_world_is_filled(data, item->bytes, item->seed))) {
		if (data)
			show_bytes(data, bytes);
		wrong_item(item, end, "got what nobody sent");
	}
	if (got & WEFT_READONLY) {
		item->view = weft_op_take(end->flight.op);
		item->view_ns = wf_clock_now() + item->seed % VIEW_NS;
		config.tally->views++;
	} else if (item->memory == WF_CARGO_POOL && item->seed % 4 == 0) {
		weft_free(wf_world_node(end->node), weft_op_take(end->flight.op));
	}
}

static void end_item_view(struct wf_item *item)
{
	const struct wf_cargo_end *end = &item->got;

	if (!wf_cargo_is_of_the_past(end)) {
		if (!wf_world_is_filled(item->view, item->bytes, item->seed))
			wrong_item(item, end, "saw something else after a while");
		weft_free(wf_world_node(end->node), item->view);
	}
	item->view = NULL;
}

/* From here on nobody may touch its buffer, nor is there anything to hold. */
static void forget_end(struct wf_cargo_end *end)
{
	end->seen = true;
	end->executed = end->flight.op ? weft_op_executed(end->flight.op) : WEFT_EXECUTED_MAYBE;
	if (end->buffer)
		memset(end->buffer, WF_TRAFFIC_CANARY, end->buffer_bytes);
	weft_op_free(end->flight.op);
	end->flight.op = NULL;
}

/* One that nobody waits for ends with its call, if it goes beside a request. */
static bool is_sent(const struct wf_item *item)
{
	const struct wf_leg *leg = item->load->leg;

	if (!item->sent.begun || item->sent.seen)
		return false;
	if (!item->unwatched)
		return item->sent.flight.outcomes;
	return leg->kind == WF_LEG_CALL && !item->load->back && leg->flight.outcomes;
}

static void look_at_send(struct wf_item *item)
{
	struct wf_cargo_end *end = &item->sent;
	const char *what = NULL;

	if (!item->unwatched)
		check_item_end(item, end);
	if (end->buffer)
		what = trouble_of(end->buffer, end->buffer_bytes, item->flags);
	if (what)
		wrong_item(item, end, what);
	if (item->shared && !wf_cargo_is_of_the_past(end))
		weft_free(wf_world_node(end->node), item->shared);
	item->shared = NULL;
	forget_end(end);
}

static void look_at_receive(struct wf_item *item)
{
	check_item_end(item, &item->got);
	if (item->got.flight.status == WEFT_OK)
		check_item_content(item);
	forget_end(&item->got);
}

static void look_at_items(uint64_t views_until_ns)
{
	unsigned count;
	struct wf_item *items = wf_cargo_items(&count);

	for (struct wf_item *item = items; item < items + count; item++) {
		if (item->sent.begun && !item->sent.seen &&
		    is_exposed(item->sent.buffer, item->sent.buffer_bytes))
			wrong_item(item, &item->sent, "is read in clear");
		if (is_sent(item))
			look_at_send(item);
		if (item->got.flight.outcomes && !item->got.seen)
			look_at_receive(item);
		if (item->view && item->view_ns <= views_until_ns &&
		    (!wf_faults_is_away(item->got.node) || wf_cargo_is_of_the_past(&item->got)))
			end_item_view(item);
	}
}

static void look(uint64_t views_until_ns)
{
	unsigned group_count;
	struct wf_group *groups = wf_traffic_groups(&group_count);

	for (unsigned i = 0; i < group_count; i++) {
		for (unsigned j = 0; j < groups[i].count; j++) {
			struct wf_leg *leg = &groups[i].legs[j];

			if (leg->kind == WF_LEG_SEND && leg->begun && !leg->seen &&
			    is_exposed(leg->buffer, leg->buffer_bytes))
				wrong(leg, "is read in clear");
			if (wf_leg_has_ended(leg) && !leg->seen)
				look_at(leg);
			if (leg->view && leg->view_ns <= views_until_ns &&
			    (!wf_faults_is_away(leg->node) || is_of_the_past(leg)))
				end_view(leg);
		}
	}
	look_at_items(views_until_ns);
	wf_onesided_look();
	wf_staying_look();
	wf_casting_look();
	wf_pushing_look();
}

void wf_checker_look(void)
{
	look(wf_clock_now());
}

void wf_checker_let_go(void)
{
	look(UINT64_MAX);
}

/* At the end. */

/* Bodies that are too short may look alike. */
static bool is_distinct(const struct wf_leg *send)
{
	return send->bytes >= sizeof(uint64_t);
}

/* What a handler has begun ends before its own call, or soon after that was given up. */
static void check_child(const struct wf_leg *leg)
{
	const struct wf_flight *own = &leg->flight, *parent = &leg->parent->flight;
	uint64_t due_ns = WF_MAX(parent->ended_ns, config.healed_ns);

	if (!leg->seen || !leg->parent->seen)
		return;
	if (parent->status == WEFT_OK && (own->status != WEFT_OK || own->ended_ns > parent->ended_ns))
		wrong(leg, "did not end well, and its parent did");
	due_ns = WF_MAX(due_ns, wf_faults_thawed_ns(leg->node)) + LOSS_NS;
	if (own->ended_ns > due_ns + config.quiet_ns + SLACK_NS)
		wrong(leg, "outlived its parent");
}

/* Only now is it known what did not happen, and happened late. */
static void check_leg(const struct wf_leg *leg)
{
	bool tensor = leg->kind == WF_LEG_SEND || leg->kind == WF_LEG_RECEIVE;

	if (leg->handled > 1)
		wrong(leg, "was handled more than once");
	if (leg->begun && leg->parent)
		check_child(leg);
	if (!leg->seen)
		return;
	if (leg->flight.outcomes != 1)
		wrong(leg, "ended again");
	if (leg->executed == WEFT_EXECUTED_NO &&
	    (leg->handled || (leg->delivered && is_distinct(leg))))
		wrong(leg, "says that it was not executed, and was");
	if (tensor && leg->buffer &&
	    !wf_world_all_are(leg->buffer, leg->buffer_bytes, WF_TRAFFIC_CANARY))
		wrong(leg, "had its buffer written after its end");
}

static void check_item_at_last(const struct wf_item *item, const struct wf_cargo_end *end)
{
	if (!end->seen)
		return;
	if (end->flight.outcomes > 1)
		wrong_item(item, end, "ended again");
	if (end->buffer && !wf_world_all_are(end->buffer, end->buffer_bytes, WF_TRAFFIC_CANARY))
		wrong_item(item, end, "had its buffer written after its end");
}

/* What goes beside the messages of a caller ends with the call, and is his own again. */
static void check_item(const struct wf_item *item)
{
	const struct wf_cargo_end *sent = &item->sent;
	const struct wf_leg *leg = item->load->leg;
	uint64_t over_ns = WF_MAX(leg->flight.ended_ns, wf_faults_thawed_ns(sent->node));

	check_item_at_last(item, sent);
	check_item_at_last(item, &item->got);
	if (sent->seen && sent->executed == WEFT_EXECUTED_NO && item->bytes >= sizeof(uint64_t) &&
	    item->got.seen && item->got.flight.status == WEFT_OK)
		wrong_item(item, sent, "says that it was not executed, and was");
	if (sent->seen && leg->seen && !item->load->back && !item->unwatched &&
	    sent->flight.ended_ns > over_ns + config.quiet_ns + SLACK_NS)
		wrong_item(item, sent, "ended long after its call");
}

/* Has a receive of @g ended that may have given back what a later one got? */
static bool may_have_given_back(const struct wf_group *g)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->legs[i].kind == WF_LEG_RECEIVE && g->legs[i].begun &&
		    g->legs[i].flight.outcomes && g->legs[i].flight.status != WEFT_OK)
			return true;
	return false;
}

/*
 * Receives that name the sender got the tensors in the order in which those were sent; but for
 * what one got that another was to get, and gave back.
 */
static void check_order(const struct wf_group *g)
{
	const struct wf_leg *last = NULL;

	if (may_have_given_back(g))
		return;
	for (unsigned i = 0; i < g->count; i++) {
		const struct wf_leg *leg = &g->legs[i];

		if (leg->kind != WF_LEG_RECEIVE || !leg->got || !is_distinct(leg->got))
			continue;
		if (last && leg->got <= last && leg->peer != leg->node)
			wrong(leg, "overtook the one before it");
		last = leg->got;
	}
}

static unsigned count_table(const struct wf_table *table)
{
	unsigned count = 0;
	uint32_t at = 0;

	while (wf_table_next(table, &at))
		count++;
	return count;
}

/* For people who look for a fault. */
static bool show_nodes(unsigned number)
{
	if (getenv("WORLD_LOG"))
		(void)weft_dump(wf_world_node(number), stderr);
	return true;
}

/* Who takes part in a step is remembered, but nothing is under way. */
static void check_steps(unsigned number, const struct wf_channels *c)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_next(&c->parts.map, node)))
		if (WF_CONTAINER(node, struct wf_part, node)->refs)
			fail_msg("node %u counts something under way in a step that is over", number);
	while ((node = wf_map_next(&c->uses.map, node))) {
		const struct wf_use *use = WF_CONTAINER(node, struct wf_use, node);

		if (!wf_list_empty(&use->sends) || !wf_list_empty(&use->receives))
			fail_msg("node %u has an operation of a step that is over", number);
	}
	if (c->parts.idle_count > WF_PARTS_IDLE_MAX)
		fail_msg("node %u remembers %u parts in steps", number, c->parts.idle_count);
}

/* All operations have ended, so nobody has a claim on anything. */
static void check_worker(unsigned number, struct wf_worker *worker)
{
	const struct wf_pull *pull;
	uint32_t at_pull = 0;

	if (count_table(&worker->transfer.outgoing) || worker->transfer.waiting_count)
		fail_msg("node %u still keeps a body for somebody", number);
	if ((pull = wf_table_next(&worker->transfer.pulls, &at_pull)))
		fail_msg("node %u still pulls from %s: %llu of %llu bytes, %u reads, state %d", number,
			 wf_link_label(pull->link), (unsigned long long)pull->at.got_bytes,
			 (unsigned long long)pull->body.bytes, pull->busy, (int)pull->state);
	if (wf_pace_bytes(&worker->transfer.pace, 0) || !wf_list_empty(&worker->transfer.pace.busy))
		fail_msg("node %u counts %llu bytes of reads that nobody makes", number,
			 (unsigned long long)wf_pace_bytes(&worker->transfer.pace, 0));
	if (wf_map_next(&worker->attachment_sets.map, NULL))
		fail_msg("node %u still keeps what came beside a message", number);
	if (!wf_list_empty(&worker->attachments.all) || !wf_list_empty(&worker->attachments.line))
		fail_msg("node %u still sends an attachment", number);
	if (count_table(&worker->calls.table) || wf_map_next(&worker->serving.map, NULL))
		fail_msg("node %u still has a call", number);
	if (!wf_list_empty(&worker->streams.all) || !wf_list_empty(&worker->node->streams))
		fail_msg("node %u still has a stream", number);
	if (count_table(&worker->remotes.asks))
		fail_msg("node %u still asks for a window", number);
	if (!wf_list_empty(&worker->node->windows) || !wf_list_empty(&worker->node->remotes))
		fail_msg("node %u still has a window", number);
	if (worker->engine.shm_export && wf_shm_export_held(worker->engine.shm_export))
		fail_msg("node %u still lends what nobody looks at", number);
	check_steps(number, &worker->channels);
	if (wf_map_next(&worker->channels.map, NULL) || worker->unexpected_queue.count)
		fail_msg("node %u keeps tensors of steps that are over", number);
	WF_LIST_EACH(at, &worker->engine.link_list) {
		const struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

		if (link->offers.map.count)
			fail_msg("node %u still knows of an offer of %s", number,
				 wf_link_label(link));
		if (link->offers.ours_count || link->keepalive.watch_count)
			fail_msg("node %u: somebody still waits for %s", number,
				 wf_link_label(link));
		if (!wf_world_account_is_empty(link))
			fail_msg("node %u still keeps %llu bytes received from %s, and %llu owed to it", number,
				 (unsigned long long)link->account.bytes[WF_LEDGER_RECEIVED],
				 wf_link_label(link),
				 (unsigned long long)link->account.bytes[WF_LEDGER_OWED]);
		if (wf_link_greeted(link) && wf_map_next(&worker->channels.map, NULL) == NULL &&
		    link->eager_credit.total - link->eager_credit.used !=
			    worker->engine.options.unexpected_bytes)
			fail_msg("node %u has eager credit of %llu bytes for %s", number,
				 (unsigned long long)(link->eager_credit.total -
						      link->eager_credit.used),
				 wf_link_label(link));
	}
}

static void check_node(unsigned number)
{
	struct weft_node *node = wf_world_node(number);

	for (unsigned i = 0; i < node->worker_count; i++)
		check_worker(number, &node->workers[i]);
	if (wf_faults_is_draining(number) && weft_node_drain(node, 0))
		fail_msg("node %u drains, and counts calls that nobody waits for: %s", number,
			 weft_error());
	if (config.harmless && wf_world_count(number).peers_lost && show_nodes(number))
		fail_msg("node %u has lost a peer that nothing happened to", number);
}

static void finish_items(void)
{
	struct wf_tally *tally = config.tally;
	unsigned count;
	struct wf_item *items = wf_cargo_items(&count);

	for (struct wf_item *item = items; item < items + count; item++) {
		check_item(item);
		tally->operations += item->sent.begun + item->got.begun;
		tally->ended_well += item->sent.seen && !item->unwatched &&
				     item->sent.flight.status == WEFT_OK;
		tally->ended_well += item->got.seen && item->got.flight.status == WEFT_OK;
		tally->attached += item->sent.begun;
		tally->received += item->got.seen && item->got.flight.status == WEFT_OK;
	}
}

void wf_checker_finish(unsigned nodes)
{
	struct wf_tally *tally = config.tally;
	unsigned group_count;
	struct wf_group *groups = wf_traffic_groups(&group_count);

	finish_items();
	wf_onesided_finish();
	wf_staying_finish();
	wf_casting_finish();
	wf_fusing_finish();
	wf_pushing_finish();
	for (unsigned i = 0; i < group_count; i++) {
		for (unsigned j = 0; j < groups[i].count; j++) {
			const struct wf_leg *leg = &groups[i].legs[j];

			check_leg(leg);
			tally->operations += leg->begun && !leg->refused;
			tally->ended_well += leg->seen && leg->flight.status == WEFT_OK;
			tally->children += leg->begun && leg->parent;
			tally->orphans += leg->seen && leg->parent && leg->stopped_ns &&
					  leg->flight.status == WEFT_CANCELLED;
		}
		check_order(&groups[i]);
	}
	for (unsigned i = 0; i < nodes; i++) {
		if (wf_faults_is_gone(i))
			continue;
		check_node(i);
		tally->replayed += wf_world_count(i).frames_replayed;
	}
}
