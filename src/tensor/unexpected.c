/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/unexpected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/ledger.h"
#include "transfer/pull.h"

void wf_unexpected_init(struct wf_unexpected_queue *unexpected_queue, struct wf_engine *engine,
			struct wf_transfer *t)
{
	*unexpected_queue = (struct wf_unexpected_queue){
		.engine = engine, .transfer = t, .lock = PTHREAD_MUTEX_INITIALIZER,
	};
	wf_map_init(&unexpected_queue->firsts);
	wf_freelist_init(&unexpected_queue->pulls, sizeof(struct wf_pull), 0, 0);
}

void wf_unexpected_fini(struct wf_unexpected_queue *unexpected_queue)
{
	wf_freelist_fini(&unexpected_queue->pulls);
	wf_map_fini(&unexpected_queue->firsts);
	pthread_mutex_destroy(&unexpected_queue->lock);
}

static void lose(struct wf_unexpected *a, const struct wf_error *e)
{
	wf_counters_add(&a->unexpected_queue->engine->counters.late_dropped, 1);
	a->lost(a, e);
}

static void withdrawn(struct wf_answer *answer)
{
	struct wf_unexpected *a = answer->owner;
	struct wf_link *link = answer->link;
	struct wf_error e;

	a->answer = NULL;
	wf_error_set(&e, -ECANCELED, "%s took its tensor back", wf_link_label(link));
	lose(a, &e);
	wf_answer_withdrawn(answer, link);
}

/* The offer of a peer that is dead can't be pulled; bytes that it sent whole stay. */
static void lost(struct wf_answer *answer, const struct wf_error *e)
{
	struct wf_unexpected *a = answer->owner;

	a->answer = NULL;
	wf_answer_close(answer);
	lose(a, e);
}

static const struct wf_answer_keeper keeper = {
	.withdrawn = withdrawn,
	.lost = lost,
};

void wf_unexpected_give_answer(struct wf_unexpected *a, struct wf_answer *answer)
{
	a->answer = answer;
	if (!answer)
		return;
	answer->keeper = &keeper;
	answer->owner = a;
}

int wf_unexpected_keep(struct wf_unexpected_queue *unexpected_queue, struct wf_link *link,
		       const struct wf_record_tensor *t, const struct wf_path *came,
		       struct wf_answer *answer, struct wf_unexpected **unexpected)
{
	size_t shape_bytes = (size_t)t->rank * sizeof(int64_t);
	size_t body_bytes = t->body.way == WF_BODY_EAGER ? t->body.bytes : 0;
	struct wf_unexpected *a;

	a = malloc(sizeof(*a) + shape_bytes + body_bytes);
	if (!a)
		return -ENOMEM;
	a->unexpected_queue = unexpected_queue;
	a->link = link;
	wf_link_get(link);
	a->path = *came;
	a->record = *t;
	memcpy(a->bytes, t->shape, shape_bytes);
	if (body_bytes)
		memcpy(a->bytes + shape_bytes, t->eager, body_bytes);
	a->record.key = NULL;
	a->record.shape = a->bytes;
	a->record.eager = a->bytes + shape_bytes;
	a->number = unexpected_queue->came++;
	a->since_ns = unexpected_queue->engine->loop.now_ns;
	a->charged_bytes = 0;
	wf_list_init(&a->node);
	wf_list_init(&a->kept_node);
	wf_list_init(&a->link_node);
	wf_list_init(&a->part_node);
	wf_list_init(&a->use_node);
	a->part = NULL;
	wf_unexpected_give_answer(a, answer);
	unexpected_queue->count++;
	*unexpected = a;
	return 0;
}

void wf_unexpected_charge(struct wf_unexpected *a, uint64_t more)
{
	uint64_t eager = a->record.body.way == WF_BODY_EAGER ? a->record.body.bytes : 0;

	a->charged_bytes = sizeof(*a) + a->record.rank * sizeof(int64_t) + eager + more;
	wf_ledger_charge(a->link, WF_LEDGER_RECEIVED, a->charged_bytes);
}

void wf_unexpected_describe(const struct wf_record_tensor *t, int64_t *shape,
			    struct weft_tensor *tensor)
{
	for (unsigned i = 0; i < t->rank; i++)
		shape[i] = wf_record_tensor_dim(t, i);
	*tensor = (struct weft_tensor){ 0 };
	tensor->device.type = WEFT_CPU;
	tensor->ndim = t->rank;
	tensor->dtype = t->dtype;
	tensor->shape = shape;
}

void wf_unexpected_free(struct wf_unexpected *a)
{
	a->unexpected_queue->count--;
	wf_unexpected_unwait(a);
	wf_answer_close(a->answer);
	wf_ledger_discharge(a->link, WF_LEDGER_RECEIVED, a->charged_bytes);
	wf_link_put(a->link);
	free(a);
}

/* Returns the number of the tensor whose member at @offset is @node. */
static uint64_t number_of(const struct wf_list *node, size_t offset)
{
	return ((const struct wf_unexpected *)(const void *)((const char *)node - offset))->number;
}

/*
 * Returns the place of a tensor in @list, threaded through the members at @offset, behind earlier
 * tensors; as a rule the end, or the beginning for one that was given back.
 */
static struct wf_list *place_of(struct wf_list *list, size_t offset, uint64_t number)
{
	struct wf_list *at = list->next;

	if (wf_list_empty(list) || number_of(list->prev, offset) < number)
		return list;
	while (number_of(at, offset) < number)
		at = at->next;
	return at;
}

/* Put @a before @at, under the lock. */
static void enter(struct wf_unexpected *a, struct wf_list *at, uint64_t hash)
{
	struct wf_map *firsts = &a->unexpected_queue->firsts;

	if (at->prev == a->queue) {
		if (at != a->queue)
			wf_map_remove(firsts, &WF_CONTAINER(at, struct wf_unexpected, node)->first);
		wf_map_add(firsts, &a->first, hash);
	}
	wf_list_insert_before(at, &a->node);
}

/* Take @a out of its queue, under the lock. */
static void leave(struct wf_unexpected *a)
{
	struct wf_map *firsts = &a->unexpected_queue->firsts;
	struct wf_list *next = a->node.next;

	if (a->node.prev == a->queue) {
		wf_map_remove(firsts, &a->first);
		if (next != a->queue)
			wf_map_add(firsts, &WF_CONTAINER(next, struct wf_unexpected, node)->first,
				   a->first.hash);
	}
	wf_list_remove(&a->node);
}

void wf_unexpected_wait(struct wf_unexpected *a, struct wf_list *queue, uint64_t hash,
			struct wf_part *part)
{
	struct wf_list *at = place_of(queue, offsetof(struct wf_unexpected, node), a->number);
	struct wf_list *kept = &part->use.use->kept;

	wf_part_hold(part);
	a->part = part;
	wf_list_insert_before(place_of(&part->kept, offsetof(struct wf_unexpected, part_node),
				       a->number), &a->part_node);
	wf_list_insert_before(place_of(kept, offsetof(struct wf_unexpected, use_node), a->number),
			      &a->use_node);
	a->queue = queue;
	pthread_mutex_lock(&a->unexpected_queue->lock);
	enter(a, at, hash);
	pthread_mutex_unlock(&a->unexpected_queue->lock);
}

void wf_unexpected_unwait(struct wf_unexpected *a)
{
	if (!a->part)
		return;
	pthread_mutex_lock(&a->unexpected_queue->lock);
	leave(a);
	pthread_mutex_unlock(&a->unexpected_queue->lock);
	wf_list_remove(&a->kept_node);
	wf_list_remove(&a->link_node);
	wf_list_remove(&a->part_node);
	wf_list_remove(&a->use_node);
	wf_part_put(a->part);
	a->part = NULL;
}

struct wf_answer *wf_unexpected_take_answer(struct wf_unexpected *a)
{
	struct wf_answer *answer = a->answer;

	a->answer = NULL;
	return answer;
}

void wf_unexpected_drop(struct wf_unexpected *a, enum weft_status status)
{
	wf_counters_add(&a->unexpected_queue->engine->counters.late_dropped, 1);
	wf_answer_refuse(a->link, &a->record.body, wf_unexpected_take_answer(a), status);
	wf_unexpected_free(a);
}
