/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/attachment_set.h"

#include <errno.h>
#include <stdlib.h>

#include "link/ledger.h"
#include "wire/record_call.h"

#define TYPICAL_RANK 4 /* further dimensions are not charged: a record's are longer */

void wf_attachment_sets_init(struct wf_attachment_sets *sets,
			     struct wf_unexpected_queue *unexpected_queue)
{
	sets->unexpected_queue = unexpected_queue;
	wf_map_init(&sets->map);
}

static uint64_t hash_of(const struct wf_attachment_sets *sets,
			const struct wf_attachment_set_name *name)
{
	const uint64_t rest[] = { name->life, name->message, name->reply };

	return wf_map_hash(&sets->map, name->call, rest, sizeof(rest));
}

static struct wf_attachment_set *find(const struct wf_attachment_sets *sets,
				      const struct wf_attachment_set_name *name, uint64_t hash)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&sets->map, hash, node))) {
		struct wf_attachment_set *set = WF_CONTAINER(node, struct wf_attachment_set, node);

		if (set->name.life == name->life && set->name.call == name->call &&
		    set->name.reply == name->reply && set->name.message == name->message)
			return set;
	}
	return NULL;
}

/*
 * Most bytes that a set of @count tensors keeps, but for eager bodies, which have credit of
 * their own.
 */
static uint64_t kept_bytes(uint32_t count)
{
	return sizeof(struct wf_attachment_set) +
	       count * (sizeof(struct wf_attachment_set_tensor *) +
			sizeof(struct wf_attachment_set_tensor) + sizeof(struct wf_unexpected) +
			2 * TYPICAL_RANK * sizeof(int64_t));
}

int wf_attachment_set_open(struct wf_attachment_sets *sets,
			   const struct wf_attachment_set_name *name, uint32_t count,
			   struct wf_attachment_set **attachment_set)
{
	const struct wf_link *link = wf_link_real(name->link);
	uint64_t hash = hash_of(sets, name);
	struct wf_attachment_set *set;

	if (find(sets, name, hash))
		return -EBADMSG;
	/* A reply's attachments are never refused: this node has asked for them. */
	if (!name->reply && !wf_ledger_takes_call(link, kept_bytes(count)))
		return wf_ledger_fits_call(link, kept_bytes(count)) ? -ENOMEM : -ENOBUFS;
	set = calloc(1, sizeof(*set) + count * sizeof(set->tensors[0]));
	if (!set)
		return -ENOMEM;
	set->sets = sets;
	set->name = *name;
	wf_link_get(name->link);
	wf_ledger_charge(name->link, WF_LEDGER_OWED, kept_bytes(count));
	set->count = count;
	atomic_init(&set->refs, 1);
	wf_map_add(&sets->map, &set->node, hash);
	*attachment_set = set;
	return 0;
}

static void refuse_tensor(struct wf_unexpected *a)
{
	wf_unexpected_drop(a, WEFT_OK);
}

/* Close @set; @let_go is called for each tensor that was not received. */
static void shut(struct wf_attachment_set *set, void (*let_go)(struct wf_unexpected *a))
{
	struct wf_attachment_sets *sets = set->sets;

	set->sets = NULL;
	wf_map_remove(&sets->map, &set->node);
	for (uint32_t i = 0; i < set->count; i++) {
		struct wf_attachment_set_tensor *t = set->tensors[i];

		if (t && t->unexpected)
			let_go(t->unexpected);
		if (t)
			t->unexpected = NULL;
	}
	wf_ledger_discharge(set->name.link, WF_LEDGER_OWED, kept_bytes(set->count));
	wf_link_put(set->name.link);
}

void wf_attachment_set_close(struct wf_attachment_set *set)
{
	if (set->sets)
		shut(set, refuse_tensor);
}

void wf_attachment_sets_fini(struct wf_attachment_sets *sets)
{
	struct wf_map_node *node;

	/* Nobody is left to tell. */
	while ((node = wf_map_first(&sets->map)))
		shut(WF_CONTAINER(node, struct wf_attachment_set, node), wf_unexpected_free);
	wf_map_fini(&sets->map);
}

void wf_attachment_set_get(struct wf_attachment_set *set)
{
	atomic_fetch_add(&set->refs, 1);
}

void wf_attachment_set_put(struct wf_attachment_set *set)
{
	if (atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	for (uint32_t i = 0; i < set->count; i++)
		free(set->tensors[i]);
	free(set);
}

/* Say why the tensor can't be had. */
static int check(const struct wf_attachment_set *set, uint32_t index, struct wf_error *e)
{
	const struct wf_attachment_set_tensor *t = set->tensors[index];

	if (t->unexpected)
		return 0;
	if (t->lost)
		return wf_error_set(e, -ECANCELED,
				    "its sender could not send attachment %u, or took it back",
				    index);
	if (!set->sets)
		return wf_error_set(e, -ECANCELED, "attachment %u has gone with its message",
				    index);
	return wf_error_set(e, -EBADFD, "attachment %u has been received already", index);
}

/* A tensor's sender has taken it back, or is dead. */

static void lost(struct wf_unexpected *a, const struct wf_error *e)
{
	struct wf_attachment_set_tensor *t = a->keeper;

	(void)e; /* a receive of the tensor is told */
	t->unexpected = NULL;
	t->lost = true;
	wf_unexpected_free(a);
}

/* Make @a receivable again, unless the set was closed meanwhile. */
static void give_back(struct wf_receiving *r, struct wf_unexpected *a)
{
	struct wf_attachment_set *set = r->attachment_set;
	struct wf_attachment_set_tensor *t = set->tensors[r->step];

	if (!set->sets) {
		refuse_tensor(a);
		return;
	}
	a->keeper = t;
	a->lost = lost;
	t->unexpected = a;
}

void wf_attachment_set_receive(struct wf_attachment_set *set, uint32_t index,
			       struct wf_receiving *r)
{
	struct wf_attachment_set_tensor *t = set->tensors[index];
	struct wf_unexpected *a = t->unexpected;
	struct wf_error e;

	if (check(set, index, &e)) {
		r->done(r, &e);
		return;
	}
	t->unexpected = NULL;
	wf_receiving_init(r, set->sets->unexpected_queue);
	r->give_back = give_back;
	wf_receiving_meet_kept(r, a);
}

/* Describe the tensor of @t.  NULL: no memory. */
static struct wf_attachment_set_tensor *describe(const struct wf_record_tensor *t)
{
	struct wf_attachment_set_tensor *d = calloc(1, sizeof(*d) + t->rank * sizeof(d->shape[0]));

	if (!d)
		return NULL;
	wf_unexpected_describe(t, d->shape, &d->tensor);
	d->flags = t->flags & ~(unsigned)(WF_TENSOR_RELAYED | WF_TENSOR_LOST);
	d->bytes = t->body.bytes;
	d->lost = t->flags & WF_TENSOR_LOST;
	return d;
}

/* Keep tensor @index of @set.  Takes @answer, unless it fails. */
static int keep(struct wf_attachment_set *set, uint32_t index, const struct wf_record_tensor *t,
		const struct wf_path *came, struct wf_answer *answer)
{
	struct wf_attachment_set_tensor *d = describe(t);
	int err = -ENOMEM;

	if (d && d->lost)
		err = 0;
	else if (d)
		err = wf_unexpected_keep(set->sets->unexpected_queue, set->name.link, t, came,
					 answer, &d->unexpected);
	if (err) {
		free(d);
		return err;
	}
	if (d->unexpected) {
		d->unexpected->keeper = d;
		d->unexpected->lost = lost;
	}
	set->tensors[index] = d;
	set->came++;
	if (set->came == set->count)
		set->whole(set->owner);
	return 0;
}

static int take_attachment(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_attachment_sets *sets = ctx;
	struct wf_attachment_set_name name = { .link = link, .life = link->id };
	struct wf_answer *answer;
	struct wf_record_attachment_key key;
	struct wf_record_tensor t;
	struct wf_path came;
	struct wf_attachment_set *set;
	int err;

	if (wf_record_tensor_get(record->bytes, record->count, &t) ||
	    wf_record_attachment_key_get(t.key, t.key_bytes, &key))
		return -EBADMSG;
	name.call = t.step;
	name.reply = key.reply;
	name.message = key.message;
	set = find(sets, &name, hash_of(sets, &name));
	if (set && (key.index >= set->count || set->tensors[key.index]))
		return -EBADMSG;
	wf_path_come(link, &t.body, &came);
	err = wf_answer_meet(link, &t.body, &answer);
	if (err)
		return err;
	if (!set) {
		wf_counters_add(&sets->unexpected_queue->engine->counters.late_dropped, 1);
		wf_answer_refuse(link, &t.body, answer, WEFT_OK);
		return 0;
	}
	err = keep(set, key.index, &t, &came, answer);
	if (err)
		wf_answer_unmeet(link, &t.body, answer);
	return err;
}

void wf_attachment_sets_route(struct wf_attachment_sets *sets, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_ATTACHMENT, take_attachment, sets);
}
