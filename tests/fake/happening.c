/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

struct fake_net fake_net;

/* Chance and time. */

uint64_t fake_draw(void)
{
	uint64_t z = fake_net.random += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

bool fake_chance(unsigned of_1000)
{
	return of_1000 && fake_draw() % 1000 < of_1000;
}

void fake_tell(enum wf_fake_fault fault, unsigned node, unsigned other)
{
	if (fake_net.knobs.fault)
		fake_net.knobs.fault(fault, node, other);
}

bool fake_has_way(const struct fake_ways *ways, unsigned from, unsigned to)
{
	for (size_t i = 0; i < ways->count; i++)
		if (ways->all[i].from == from && ways->all[i].to == to)
			return true;
	return false;
}

uint64_t fake_later_ns(void)
{
	uint64_t span = fake_net.knobs.delay_max_ns - fake_net.knobs.delay_min_ns;

	return wf_clock_now() + fake_net.knobs.delay_min_ns + (span ? fake_draw() % (span + 1) : 0);
}

void *fake_make(size_t bytes)
{
	void *object = calloc(1, bytes);

	MUST(object);
	return object;
}

void fake_plan(struct thing *t)
{
	struct wf_list *at = fake_net.things.prev;

	/* Equal times keep the order in which they were planned. */
	while (at != &fake_net.things && WF_CONTAINER(at, struct thing, node)->due_ns > t->due_ns)
		at = at->prev;
	wf_list_insert_before(at->next, &t->node);
}

void fake_forget(struct thing *t)
{
	wf_list_remove(&t->node);
	free(t->copy);
	free(t);
}

struct fake_ep *fake_ep_by(uint64_t id)
{
	return id && id <= fake_net.ep_ids ? fake_net.ep_by_id[id - 1] : NULL;
}

unsigned fake_node_of(const struct fake_ep *ep)
{
	return ep->domain->fabric->node;
}

struct thing *fake_thing(enum thing_kind kind, struct fake_ep *from)
{
	struct thing *t = fake_make(sizeof(*t));

	t->kind = kind;
	t->due_ns = fake_later_ns();
	t->from = from->id;
	t->from_node = fake_node_of(from);
	t->domain = from->domain->number;
	t->to = from->peer;
	t->to_node = t->from_node;
	return t;
}

static void happen(struct thing *t)
{
	struct fake_ep *to = fake_ep_by(t->to);

	wf_list_remove(&t->node);
	switch (t->kind) {
	case SEND:
		fake_happen_send(t);
		return;
	case ARRIVE:
		fake_happen_arrive(t);
		return;
	case READ:
		fake_happen_read(t);
		return;
	case TELL:
		fake_cq_push(fake_ep_by(t->from)->cq, t->told);
		break;
	case REQUEST:
		fake_happen_request(t);
		return;
	case ACCEPTED:
		fake_happen_accepted(t);
		return;
	case REFUSED:
		if (to)
			fake_hang_up(to, FI_ECONNREFUSED);
		break;
	case HANGUP:
		if (to)
			fake_hang_up(to, 0);
		break;
	}
	fake_forget(t);
}

/* Must @t wait until a node thaws or a cut heals? */
static bool is_stalled(const struct thing *t)
{
	const struct fake_ep *to, *from;
	const struct fake_pep *pep;
	unsigned node = t->to_node;

	if (t->kind == READ || t->kind == SEND) {
		from = fake_ep_by(t->from);
		to = fake_ep_by(t->to_shared ? t->to_shared : from ? from->peer : 0);
		node = to ? fake_node_of(to) : t->from_node;
	} else if (t->kind == REQUEST) {
		pep = fake_pep_at(&t->at);
		node = pep ? pep->fabric->node : t->from_node;
	}
	if (t->kind == READ && fake_net.frozen[node] && !fake_net.knobs.reads_alone)
		return true;
	if (t->kind == SEND || t->kind == TELL)
		return false;
	if (t->domain && t->domain == fake_net.cut_domain)
		return true;
	if (!fake_net.held.count)
		return false;
	/* A read goes there and back. */
	return fake_has_way(&fake_net.held, t->from_node, node) ||
	       (t->kind == READ && fake_has_way(&fake_net.held, node, t->from_node));
}

void fake_progress(void)
{
	uint64_t now = wf_clock_now();

	while (!wf_list_empty(&fake_net.things)) {
		struct thing *t = WF_CONTAINER(fake_net.things.next, struct thing, node);

		if (t->due_ns > now)
			return;
		if (is_stalled(t)) {
			wf_list_remove(&t->node);
			wf_list_append(&fake_net.stalled, &t->node);
		} else {
			happen(t);
		}
	}
}

void fake_unstall(void)
{
	struct wf_list was;

	wf_list_init(&was);
	wf_list_splice(&was, &fake_net.stalled);
	WF_LIST_EACH(node, &was) {
		struct thing *t = WF_CONTAINER(node, struct thing, node);

		wf_list_remove(node);
		if (t->kind == READ && t->due_ns == UINT64_MAX) { /* stuck for good */
			wf_list_append(&fake_net.stalled, node);
			continue;
		}
		t->due_ns = wf_clock_now();
		fake_plan(t);
	}
}
