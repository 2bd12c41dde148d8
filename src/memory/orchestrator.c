/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/orchestrator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Huge pages were set aside for some program: a rule must say if that is weft.  Pinned memory,
 * and memory of a device given away, need a rule, too.
 */
const char wf_orchestrator_preset[] = "deny huge\n"
				      "deny pinned\n"
				      "deny cuda\n"
				      "deny p2pmem,software where class>pxb\n";

static int find_publishers(struct wf_orchestrator *o, struct wf_error *e)
{
	int err = 0;

	for (size_t i = 0; !err && wf_publishers[i]; i++)
		err = wf_publishers[i]->find(&o->publishers, &o->topology, &o->rules, e);
	return err;
}

int wf_orchestrator_open(struct wf_orchestrator *o, const char *sysfs, const char *rules,
			 const char *cuda, struct wf_error *e)
{
	int err;

	memset(o, 0, sizeof(*o));
	o->publishers.cuda = cuda;
	err = -pthread_mutex_init(&o->lock, NULL);
	if (err)
		return wf_error_set(e, err, "no lock for an orchestrator");
	err = wf_rules_open(&o->rules, rules, e);
	if (!err)
		err = wf_rules_open(&o->preset, wf_orchestrator_preset, e);
	if (err)
		goto close;
	err = wf_topology_open(&o->topology, sysfs);
	if (err) {
		wf_error_set(e, err, "what this machine has can't be read: %s", wf_error_name(err));
		goto close;
	}
	err = find_publishers(o, e);
	if (err)
		goto close;
	return 0;

close:
	wf_orchestrator_close(o);
	return err;
}

void wf_orchestrator_close(struct wf_orchestrator *o)
{
	free(o->publishers.all);
	wf_topology_close(&o->topology);
	wf_rules_close(&o->preset);
	wf_rules_close(&o->rules);
	pthread_mutex_destroy(&o->lock);
}

static bool names(const struct wf_rule *rule, enum wf_rule_verb verb, const struct wf_publisher *p)
{
	return rule->verb == verb && wf_rules_place(&rule->who, p->how->kind, p->name) >= 0;
}

/* Bytes in use that the limit @rule counts. */
static uint64_t used_under(const struct wf_orchestrator *o, const struct wf_rule *rule)
{
	uint64_t used = 0;

	for (size_t i = 0; i < o->publishers.count; i++)
		if (names(rule, WF_RULE_LIMIT, &o->publishers.all[i]))
			used += o->publishers.all[i].used_bytes;
	return used;
}

/* Bytes of @p that the reserve @rule keeps free. */
static uint64_t reserve_of(const struct wf_rule *rule, const struct wf_publisher *p)
{
	return rule->percent ? p->bytes / 100 * rule->percent : rule->bytes;
}

/* Round @bytes up to pages of @p; UINT64_MAX, more than any publisher has, if that can't be. */
static uint64_t whole_pages(const struct wf_publisher *p, uint64_t bytes)
{
	uint64_t pages = bytes / p->page_bytes + (bytes % p->page_bytes != 0);

	return pages > SIZE_MAX / p->page_bytes ? UINT64_MAX : WF_MAX(pages, (uint64_t)1) * p->page_bytes;
}

/* Look for room for @bytes of @p.  -ENOBUFS, -ENODEV: the sentence says what is in the way. */
static int look_for_room(struct wf_orchestrator *o, struct wf_publisher *p, uint64_t bytes,
			 struct wf_error *e)
{
	uint64_t whole = whole_pages(p, bytes);

	wf_publisher_look(p);
	if (!p->published)
		return wf_error_set(e, -ENODEV, "it is not published%s%.300s", *p->why_not ? ": " : "",
				    p->why_not);
	if (whole > p->available_bytes)
		return wf_error_set(e, -ENOBUFS, "%" PRIu64 " bytes are available", p->available_bytes);
	for (size_t i = 0; i < o->rules.count; i++) {
		const struct wf_rule *r = &o->rules.all[i];

		if (names(r, WF_RULE_LIMIT, p) &&
		    (whole > r->bytes || used_under(o, r) > r->bytes - whole))
			return wf_error_set(e, -ENOBUFS, "'%s', and %" PRIu64 " bytes are in use",
					    r->text, used_under(o, r));
		if (names(r, WF_RULE_RESERVE, p) && p->available_bytes - whole < reserve_of(r, p))
			return wf_error_set(e, -ENOBUFS, "'%s', and %" PRIu64 " bytes are available",
					    r->text, p->available_bytes);
	}
	return 0;
}

/* The name of a client. */
static const char *name_of(const struct wf_topology_place *place, char text[16])
{
	if (place->device)
		return place->device->name;
	snprintf(text, 16, "node%d", place->node);
	return text;
}

/* Sum up the distances to all clients.  -EACCES: a rule keeps the publisher from one. */
static int measure(const struct wf_orchestrator *o, const struct wf_orchestrator_request *request,
		   struct wf_orchestrator_choice *c)
{
	const struct wf_publisher *p = c->publisher;
	int err = 0;

	for (unsigned i = 0; i < request->client_count; i++) {
		const struct wf_topology_place *client = &request->clients[i];
		const struct wf_rule *rule;
		enum wf_topology_near near;
		char name[16];

		c->distance += wf_topology_distance(&o->topology, &p->place, client, &near);
		c->near = WF_MAX(c->near, near);
		rule = wf_rules_access(&o->rules, p->how->kind, p->name, client, near);
		c->unasked |= p->how == &wf_publish_p2pmem && !rule;
		if (!rule)
			rule = wf_rules_access(&o->preset, p->how->kind, p->name, client, near);
		if (err || !rule || rule->verb == WF_RULE_ALLOW)
			continue;
		err = -EACCES;
		snprintf(c->why, sizeof(c->why), "'%s': it is %s to %.64s", rule->text,
			 wf_topology_classes[near], name_of(client, name));
	}
	return err;
}

/* The first rule that sets an order for one of the clients. */
static const struct wf_rule *order_of(const struct wf_orchestrator *o,
				      const struct wf_orchestrator_request *request)
{
	const struct wf_rule *first = NULL;

	for (unsigned i = 0; i < request->client_count; i++) {
		const struct wf_rule *rule = wf_rules_order(&o->rules, &request->clients[i]);

		if (rule && (!first || rule < first))
			first = rule;
	}
	return first;
}

/*
 * Find the publisher's place in the order that the request, or else a rule, gives.  -EACCES:
 * the request wants others.
 */
static int place_in_order(const struct wf_orchestrator *o,
			  const struct wf_orchestrator_request *request,
			  struct wf_orchestrator_choice *c)
{
	const struct wf_publisher *p = c->publisher;
	const struct wf_rule *rule = request->from.count ? NULL : order_of(o, request);
	const struct wf_rule_who *who = rule ? &rule->who : &request->from;
	int place = wf_rules_place(who, p->how->kind, p->name);

	/* Memory of a device stands behind the host's, unless a rule or the request names it. */
	c->order = place >= 0 ? (unsigned)place : who->count + c->unasked;
	if (rule && place >= 0)
		snprintf(c->why, sizeof(c->why), "'%s'; ", rule->text);
	/* Memory of the host stands in for publishers that a request names. */
	if (!who->count || rule || place >= 0 || (!request->strict && p->how == &wf_publish_host))
		return 0;
	snprintf(c->why, sizeof(c->why), "the request names others");
	return -EACCES;
}

static void say_distance(const struct wf_orchestrator_request *request,
			 struct wf_orchestrator_choice *c)
{
	size_t used = strlen(c->why);
	char name[16];

	if (request->client_count == 1)
		snprintf(c->why + used, sizeof(c->why) - used, "%s to %.64s",
			 wf_topology_classes[c->near], name_of(&request->clients[0], name));
	else
		snprintf(c->why + used, sizeof(c->why) - used, "%u to %u clients, %s at most",
			 c->distance, request->client_count, wf_topology_classes[c->near]);
}

static void judge(struct wf_orchestrator *o, const struct wf_orchestrator_request *request,
		  struct wf_orchestrator_choice *c)
{
	struct wf_error e;

	c->err = measure(o, request, c);
	if (!c->err)
		c->err = place_in_order(o, request, c);
	if (!c->err && !request->device && !(c->publisher->how->rights & WF_PUBLISHER_CPU)) {
		c->err = -EACCES;
		snprintf(c->why, sizeof(c->why),
			 "the processor does not reach it, and the request is without WEFT_NEAR_DEVICE");
	}
	if (c->err)
		return;
	c->err = look_for_room(o, c->publisher, request->bytes, &e);
	if (c->err)
		snprintf(c->why, sizeof(c->why), "%.200s", e.text);
	else
		say_distance(request, c);
}

/* A publisher without room stands where it would serve, so that a strict request sees it. */
static bool may_serve(const struct wf_orchestrator_choice *c)
{
	return !c->err || c->err == -ENOBUFS;
}

static int compare(const void *left, const void *right)
{
	const struct wf_orchestrator_choice *a = left, *b = right;

	if (may_serve(a) != may_serve(b))
		return may_serve(a) ? -1 : 1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	if (a->publisher->used_bytes != b->publisher->used_bytes)
		return a->publisher->used_bytes < b->publisher->used_bytes ? -1 : 1;
	return a->publisher < b->publisher ? -1 : 1;
}

void wf_orchestrator_judge(struct wf_orchestrator *o, const struct wf_orchestrator_request *request,
			   struct wf_orchestrator_choice *choices)
{
	pthread_mutex_lock(&o->lock);
	for (size_t i = 0; i < o->publishers.count; i++) {
		choices[i] = (struct wf_orchestrator_choice){ .publisher = &o->publishers.all[i] };
		judge(o, request, &choices[i]);
	}
	if (o->publishers.count)
		qsort(choices, o->publishers.count, sizeof(*choices), compare);
	pthread_mutex_unlock(&o->lock);
}

/* Count @bytes of @p as given back. */
static void let_used(struct wf_orchestrator *o, struct wf_publisher *p, uint64_t bytes)
{
	pthread_mutex_lock(&o->lock);
	p->used_bytes -= bytes;
	pthread_mutex_unlock(&o->lock);
}

int wf_orchestrator_take(struct wf_orchestrator *o, struct wf_publisher *p, uint64_t bytes,
			 struct wf_publisher_piece *piece, struct wf_error *e)
{
	uint64_t whole = whole_pages(p, bytes);
	struct wf_error why;
	int err;

	pthread_mutex_lock(&o->lock);
	err = look_for_room(o, p, bytes, &why);
	if (!err)
		p->used_bytes += whole;
	pthread_mutex_unlock(&o->lock);
	if (err)
		return wf_error_set(e, -ENOBUFS, "%s: %.300s", p->name, why.text);
	/* Take without the lock: pinning takes its time, and so may a device. */
	err = p->how->take(p, (size_t)whole, piece, e);
	if (err)
		let_used(o, p, whole);
	return err == -ENODEV ? -ENOBUFS : err;
}

void wf_orchestrator_give(struct wf_orchestrator *o, struct wf_publisher *p,
			  struct wf_publisher_piece *piece)
{
	uint64_t bytes = piece->bytes;

	p->how->give(piece);
	let_used(o, p, bytes);
}
