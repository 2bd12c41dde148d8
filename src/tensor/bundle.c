/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/bundle.h"

#include <errno.h>
#include <stdlib.h>

#include "link/ledger.h"
#include "wire/record_call.h"

#define TYPICAL_RANK 4 /* further dimensions are not charged: a record's are longer */

void wf_bundles_init(struct wf_bundles *bundles, struct wf_unexpected_queue *unexpected_queue)
{
	bundles->unexpected_queue = unexpected_queue;
	wf_map_init(&bundles->map);
}

static uint64_t hash_of(const struct wf_bundles *bundles, const struct wf_bundle_name *name)
{
	struct {
		struct wf_link *link;
		uint64_t message;
		uint64_t reply;
	} rest = { name->link, name->message, name->reply };

	return wf_map_hash(&bundles->map, name->call, &rest, sizeof(rest));
}

static struct wf_bundle *find(const struct wf_bundles *bundles, const struct wf_bundle_name *name,
			      uint64_t hash)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&bundles->map, hash, node))) {
		struct wf_bundle *b = WF_CONTAINER(node, struct wf_bundle, node);

		if (b->name.link == name->link && b->name.call == name->call &&
		    b->name.reply == name->reply && b->name.message == name->message)
			return b;
	}
	return NULL;
}

/*
 * Most bytes that a bundle of @count tensors keeps, but for eager bodies, which have credit of
 * their own.
 */
static uint64_t kept_bytes(uint32_t count)
{
	return sizeof(struct wf_bundle) +
	       count * (sizeof(struct wf_bundled *) + sizeof(struct wf_bundled) +
			sizeof(struct wf_unexpected) + 2 * TYPICAL_RANK * sizeof(int64_t));
}

int wf_bundle_open(struct wf_bundles *bundles, const struct wf_bundle_name *name, uint32_t count,
		   struct wf_bundle **bundle)
{
	uint64_t hash = hash_of(bundles, name);
	struct wf_bundle *b;

	if (find(bundles, name, hash))
		return -EBADMSG;
	/* A reply's attachments are never refused: this node has asked for them. */
	if (!name->reply && !wf_ledger_takes_call(wf_link_real(name->link), kept_bytes(count)))
		return -ENOMEM;
	b = calloc(1, sizeof(*b) + count * sizeof(b->tensors[0]));
	if (!b)
		return -ENOMEM;
	b->bundles = bundles;
	b->name = *name;
	wf_link_get(name->link);
	wf_ledger_charge(name->link, WF_LEDGER_OWED, kept_bytes(count));
	b->count = count;
	atomic_init(&b->refs, 1);
	wf_map_add(&bundles->map, &b->node, hash);
	*bundle = b;
	return 0;
}

static void refuse_tensor(struct wf_unexpected *a)
{
	wf_unexpected_drop(a, WEFT_CANCELLED);
}

/* Close @b; @let_go is called for each tensor that was not received. */
static void shut(struct wf_bundle *b, void (*let_go)(struct wf_unexpected *a))
{
	struct wf_bundles *bundles = b->bundles;

	b->bundles = NULL;
	wf_map_remove(&bundles->map, &b->node);
	for (uint32_t i = 0; i < b->count; i++) {
		struct wf_bundled *t = b->tensors[i];

		if (t && t->unexpected)
			let_go(t->unexpected);
		if (t)
			t->unexpected = NULL;
	}
	wf_ledger_discharge(b->name.link, WF_LEDGER_OWED, kept_bytes(b->count));
	wf_link_put(b->name.link);
}

void wf_bundle_close(struct wf_bundle *b)
{
	if (b->bundles)
		shut(b, refuse_tensor);
}

void wf_bundles_fini(struct wf_bundles *bundles)
{
	struct wf_map_node *node;

	/* Nobody is left to tell. */
	while ((node = wf_map_first(&bundles->map)))
		shut(WF_CONTAINER(node, struct wf_bundle, node), wf_unexpected_free);
	wf_map_fini(&bundles->map);
}

void wf_bundle_get(struct wf_bundle *b)
{
	atomic_fetch_add(&b->refs, 1);
}

void wf_bundle_put(struct wf_bundle *b)
{
	if (atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	for (uint32_t i = 0; i < b->count; i++)
		free(b->tensors[i]);
	free(b);
}

/* Say why the tensor can't be had. */
static int check(const struct wf_bundle *b, uint32_t index, struct wf_error *e)
{
	const struct wf_bundled *t = b->tensors[index];

	if (t->unexpected)
		return 0;
	if (t->lost)
		return wf_error_set(e, -ECANCELED,
				    "its sender could not send attachment %u, or took it back",
				    index);
	if (!b->bundles)
		return wf_error_set(e, -ECANCELED, "attachment %u has gone with its message",
				    index);
	return wf_error_set(e, -EBADFD, "attachment %u has been received already", index);
}

/* A tensor's sender has taken it back, or is dead. */

static void lost(struct wf_unexpected *a, const struct wf_error *e)
{
	struct wf_bundled *t = a->keeper;

	(void)e; /* a receive of the tensor is told */
	t->unexpected = NULL;
	t->lost = true;
	wf_unexpected_free(a);
}

/* Make @a receivable again, unless the bundle was closed meanwhile. */
static void give_back(struct wf_receiving *r, struct wf_unexpected *a)
{
	struct wf_bundle *b = r->bundle;
	struct wf_bundled *t = b->tensors[r->step];

	if (!b->bundles) {
		refuse_tensor(a);
		return;
	}
	a->keeper = t;
	a->lost = lost;
	t->unexpected = a;
}

void wf_bundle_receive(struct wf_bundle *b, uint32_t index, struct wf_receiving *r)
{
	struct wf_bundled *t = b->tensors[index];
	struct wf_unexpected *a = t->unexpected;
	struct wf_error e;

	if (check(b, index, &e)) {
		r->done(r, &e);
		return;
	}
	t->unexpected = NULL;
	wf_receiving_init(r, b->bundles->unexpected_queue);
	r->give_back = give_back;
	wf_receiving_meet_kept(r, a);
}

/* Describe the tensor of @t.  NULL: no memory. */
static struct wf_bundled *describe(const struct wf_record_tensor *t)
{
	struct wf_bundled *d = calloc(1, sizeof(*d) + t->rank * sizeof(d->shape[0]));

	if (!d)
		return NULL;
	d->tensor = wf_unexpected_describe(t, d->shape);
	d->flags = t->flags & ~(unsigned)WF_TENSOR_LOST;
	d->bytes = t->body.bytes;
	d->lost = t->flags & WF_TENSOR_LOST;
	return d;
}

/* Keep tensor @index of @b.  Takes @answer, unless it fails. */
static int keep(struct wf_bundle *b, uint32_t index, const struct wf_record_tensor *t,
		const struct wf_path *came, struct wf_answer *answer)
{
	struct wf_bundled *d = describe(t);
	int err = -ENOMEM;

	if (d && d->lost)
		err = 0;
	else if (d)
		err = wf_unexpected_keep(b->bundles->unexpected_queue, b->name.link, t, came,
					 answer, &d->unexpected);
	if (err) {
		free(d);
		return err;
	}
	if (d->unexpected) {
		d->unexpected->keeper = d;
		d->unexpected->lost = lost;
	}
	b->tensors[index] = d;
	b->came++;
	if (b->came == b->count)
		b->whole(b->owner);
	return 0;
}

static int take_attachment(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_bundles *bundles = ctx;
	struct wf_bundle_name name = { .link = link };
	struct wf_answer *answer;
	struct wf_record_attachment_key key;
	struct wf_record_tensor t;
	struct wf_path came;
	struct wf_bundle *b;
	int err;

	if (wf_record_tensor_get(record->bytes, record->count, &t) ||
	    wf_record_attachment_key_get(t.key, t.key_bytes, &key))
		return -EBADMSG;
	name.call = t.step;
	name.reply = key.reply;
	name.message = key.message;
	b = find(bundles, &name, hash_of(bundles, &name));
	if (b && (key.index >= b->count || b->tensors[key.index]))
		return -EBADMSG;
	came = wf_path_come(link, &t.body);
	err = wf_answer_meet(link, &t.body, &answer);
	if (err)
		return err;
	if (!b) {
		wf_counters_add(&bundles->unexpected_queue->engine->counters.late_dropped, 1);
		wf_answer_refuse(link, &t.body, answer, WEFT_CANCELLED);
		return 0;
	}
	err = keep(b, key.index, &t, &came, answer);
	if (err)
		wf_answer_unmeet(link, &t.body, answer);
	return err;
}

void wf_bundles_route(struct wf_bundles *bundles, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_ATTACHMENT, take_attachment, bundles);
}
