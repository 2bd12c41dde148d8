/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/tally.h"

#include <stdio.h>

const char *const wf_tally_faults[WF_FAULTS] = {
	[WF_FAULT_DELAY] = "delay",
	[WF_FAULT_ORDER] = "order",
	[WF_FAULT_AGAIN] = "again",
	[WF_FAULT_ERROR] = "error",
	[WF_FAULT_LOSS] = "loss",
	[WF_FAULT_DUPLICATE] = "duplicate",
	[WF_FAULT_TWICE] = "twice",
	[WF_FAULT_STRAY] = "stray",
	[WF_FAULT_CREDIT] = "credit",
	[WF_FAULT_REGISTER] = "register",
	[WF_FAULT_POOL] = "pool",
	[WF_FAULT_FLIP] = "flip",
	[WF_FAULT_STUCK] = "stuck",
	[WF_FAULT_RAIL] = "rail",
	[WF_FAULT_DOOR] = "door",
	[WF_FAULT_PART] = "part",
	[WF_FAULT_KILL] = "kill",
	[WF_FAULT_RESTART] = "restart",
	[WF_FAULT_FREEZE] = "freeze",
	[WF_FAULT_STALL] = "stall",
	[WF_FAULT_LEAVE] = "leave",
	[WF_FAULT_MEMORY] = "memory",
	[WF_FAULT_DRAIN] = "drain",
	[WF_FAULT_LANE] = "lane",
	[WF_FAULT_REKEY] = "rekey",
	[WF_FAULT_TAMPER] = "tamper",
	[WF_FAULT_ABORT] = "abort",
	[WF_FAULT_END] = "end",
	[WF_FAULT_CANCEL] = "cancel",
	[WF_FAULT_DEADLINE] = "deadline",
};

const char *const wf_tally_states[WF_STATES] = {
	[WF_STATE_SEND_WAITING] = "send: waits for the peer",
	[WF_STATE_SEND_QUEUED] = "send: queued",
	[WF_STATE_SEND_OFFERED] = "send: offered",
	[WF_STATE_SEND_PULLED] = "send: pulled, unacknowledged",
	[WF_STATE_SEND_WITHDRAWING] = "send: withdrawing",
	[WF_STATE_RECEIVE_WAITING] = "receive: waits for a tensor",
	[WF_STATE_RECEIVE_MEMORY] = "receive: waits for memory",
	[WF_STATE_RECEIVE_PULLING] = "receive: pulling",
	[WF_STATE_RECEIVE_STOPPING] = "receive: stops pulling",
	[WF_STATE_RECEIVE_RELAYING] = "receive: reads another",
	[WF_STATE_RECEIVE_SERVING] = "receive: serves another",
	[WF_STATE_STAYING_WAITING] = "staying: waits for a tensor",
	[WF_STATE_STAYING_FULL] = "staying: has too many out",
	[WF_STATE_CALL_WAITING] = "call: waits for the peer",
	[WF_STATE_CALL_QUEUED] = "call: request queued",
	[WF_STATE_CALL_OFFERED] = "call: request offered",
	[WF_STATE_CALL_DELIVERED] = "call: request delivered",
	[WF_STATE_CALL_REPLY] = "call: reply coming",
	[WF_STATE_CALL_BUFFERS] = "call: waits for its buffers",
	[WF_STATE_SERVED_REQUEST] = "served: request coming",
	[WF_STATE_SERVED_HANDLING] = "served: in its handler",
	[WF_STATE_SERVED_REPLYING] = "served: reply leaving",
	[WF_STATE_STREAM_WAITING] = "stream: waits for the peer",
	[WF_STATE_STREAM_QUEUED] = "stream: message queued",
	[WF_STATE_STREAM_OFFERED] = "stream: message offered",
	[WF_STATE_STREAM_FULL] = "stream: waits for a reader",
	[WF_STATE_STREAM_READING] = "stream: waits for a message",
	[WF_STATE_STREAM_UNREAD] = "stream: message not read",
	[WF_STATE_STREAM_PULLING] = "stream: message coming",
	[WF_STATE_ATTACHMENT_WAITING] = "attachment: waits for peer",
	[WF_STATE_ATTACHMENT_MEMORY] = "attachment: gathered",
	[WF_STATE_ATTACHMENT_QUEUED] = "attachment: queued",
	[WF_STATE_ATTACHMENT_OFFERED] = "attachment: offered",
	[WF_STATE_ATTACHMENT_WITHDRAWING] = "attachment: withdrawing",
	[WF_STATE_ATTACHMENTS_COMING] = "attachments: not whole",
	[WF_STATE_ATTACHMENTS_KEPT] = "attachments: not received",
	[WF_STATE_ATTACHMENTS_MEMORY] = "attachments: waits for memory",
	[WF_STATE_ATTACHMENTS_PULLING] = "attachments: pulling",
	[WF_STATE_ATTACHMENTS_STOPPING] = "attachments: stops pulling",
	[WF_STATE_GET_WAITING] = "get: waits for the peer",
	[WF_STATE_GET_ASKING] = "get: asks for a loan",
	[WF_STATE_GET_READING] = "get: reading",
	[WF_STATE_GET_STOPPING] = "get: stops reading",
	[WF_STATE_GET_TELLING] = "get: note queued",
	[WF_STATE_PUT_WAITING] = "put: waits for the peer",
	[WF_STATE_PUT_QUEUED] = "put: queued",
	[WF_STATE_PUT_OFFERED] = "put: offered",
	[WF_STATE_PUT_WITHDRAWING] = "put: withdrawing",
	[WF_STATE_PING] = "ping: under way",
	[WF_STATE_LINK_IDLE] = "link: idle",
	[WF_STATE_LINK_DIALLING] = "link: dialling",
	[WF_STATE_LINK_TRYING] = "link: trying a rail",
	[WF_STATE_LINK_UP] = "link: up",
	[WF_STATE_LINK_REDIALLING] = "link: redialling",
};

/* What can't be hit, and why. */
static const struct {
	enum wf_state first, last;
	enum wf_fault fault;
	const char *why;
} impossible[] = {
	{ WF_STATE_CALL_WAITING, WF_STATE_PING, WF_FAULT_ABORT,
	  "calls, streams, attachments, windows and pings belong to no step" },
	{ WF_STATE_CALL_WAITING, WF_STATE_PING, WF_FAULT_END,
	  "calls, streams, attachments, windows and pings belong to no step" },
	{ WF_STATE_LINK_IDLE, WF_STATE_LINK_IDLE, WF_FAULT_ABORT,
	  "an operation that names a peer dials it" },
	{ WF_STATE_LINK_IDLE, WF_STATE_LINK_IDLE, WF_FAULT_END,
	  "an operation that names a peer dials it" },
	{ WF_STATE_LINK_IDLE, WF_STATE_LINK_IDLE, WF_FAULT_CANCEL,
	  "an operation that names a peer dials it" },
	{ WF_STATE_LINK_IDLE, WF_STATE_LINK_IDLE, WF_FAULT_DEADLINE,
	  "an operation that names a peer dials it" },
};

const char *wf_tally_why_not(enum wf_state state, enum wf_fault fault)
{
	for (size_t i = 0; i < WF_COUNT(impossible); i++)
		if (impossible[i].first <= state && state <= impossible[i].last &&
		    impossible[i].fault == fault)
			return impossible[i].why;
	return NULL;
}

/* All members are counts, so a tally is a row of them. */
void wf_tally_add(struct wf_tally *sum, const struct wf_tally *run)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)run;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		if (from[i])
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
}

static void print_faults(const struct wf_tally *t)
{
	printf("%-10s %12s %12s  %s\n", "fault", "injected", "seeds", "share");
	for (unsigned i = 0; i < WF_FAULTS; i++)
		printf("%-10s %12llu %12llu  %4.1f %%\n", wf_tally_faults[i],
		       (unsigned long long)t->injected[i], (unsigned long long)t->seeds[i],
		       t->runs ? 100.0 * (double)t->seeds[i] / (double)t->runs : 0);
}

static void print_head(const char *what)
{
	printf("\n%-28s", what);
	for (unsigned i = 0; i < WF_FAULTS; i++)
		printf(" %9s", wf_tally_faults[i]);
	printf("\n");
}

static void print_pairs(const struct wf_tally *t)
{
	uint64_t least = UINT64_MAX;

	print_head("seeds with both");
	for (unsigned i = 0; i < WF_FAULTS; i++) {
		printf("%-28s", wf_tally_faults[i]);
		for (unsigned j = 0; j < WF_FAULTS; j++) {
			printf(" %9llu", (unsigned long long)t->pairs[i][j]);
			least = WF_MIN(least, t->pairs[i][j]);
		}
		printf("\n");
	}
	printf("the rarest pair: %llu seeds\n", (unsigned long long)least);
}

static void print_states(const struct wf_tally *t)
{
	unsigned missing = 0;

	print_head("hits of each state");
	for (unsigned i = 0; i < WF_STATES; i++) {
		printf("%-28s", wf_tally_states[i]);
		for (unsigned j = 0; j < WF_FAULTS; j++) {
			bool can = !wf_tally_why_not(i, j);

			if (can || t->hits[i][j])
				printf(" %9llu", (unsigned long long)t->hits[i][j]);
			else
				printf(" %9s", "-");
			missing += can && !t->hits[i][j];
		}
		printf("\n");
	}
	printf("never hit, though it could be: %u\n", missing);
	for (size_t i = 0; i < WF_COUNT(impossible); i++)
		printf("-: %s, from \"%s\" to \"%s\": %s\n",
		       wf_tally_faults[impossible[i].fault], wf_tally_states[impossible[i].first],
		       wf_tally_states[impossible[i].last], impossible[i].why);
}

void wf_tally_print(const struct wf_tally *t, bool tables)
{
	print_faults(t);
	if (tables) {
		print_pairs(t);
		print_states(t);
	}
	printf("\n%llu runs, %llu operations (%llu of them ended well), %llu attachments (%llu of them received), %llu calls of handlers (%llu of them ended by their parents), %llu gets, %llu puts, %llu notes, %llu receives that stay (%llu tensors told, %llu found waiting), %llu broadcasts (%llu of them ended well), %llu sets of %llu receives (%llu of them ended well), %llu pushes (%llu of them landed), %llu views, %llu frames replayed, %llu failures\n",
	       (unsigned long long)t->runs, (unsigned long long)t->operations,
	       (unsigned long long)t->ended_well, (unsigned long long)t->attached,
	       (unsigned long long)t->received, (unsigned long long)t->children,
	       (unsigned long long)t->orphans, (unsigned long long)t->gets,
	       (unsigned long long)t->puts, (unsigned long long)t->notes,
	       (unsigned long long)t->staying, (unsigned long long)t->told, (unsigned long long)t->probed,
	       (unsigned long long)t->broadcasts, (unsigned long long)t->broadcasts_well,
	       (unsigned long long)t->sets, (unsigned long long)t->fused,
	       (unsigned long long)t->fused_well,
	       (unsigned long long)t->pushes, (unsigned long long)t->landed,
	       (unsigned long long)t->views,
	       (unsigned long long)t->replayed, (unsigned long long)t->failures);
}
