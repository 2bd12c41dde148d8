/* SPDX-License-Identifier: BSD-2-Clause */
#include "landings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define AWAITED 4 /* operations that wait for a tensor: tensors lie in their slots now and then */
#define HOLD_NS (20 * MS) /* how long a tensor is held, at most */
#define OPEN_LEAST_NS (200 * MS)
#define OPEN_MOST_NS (2 * SECOND)
#define SHUT_NS (200 * MS) /* how long the memory of a closed landing is watched */

/* A tensor in its slot, which is ours until the operation is freed. */
struct landings_hold {
	struct landings_hold *next;
	struct weft_op *op;
	struct content what;
	uint64_t until_ns;
};

const char *landings_key(bool calm)
{
	return calm ? "calm landing" : "wild landing";
}

static size_t bytes_of(const struct landing *l)
{
	return l->slots * l->slot_bytes;
}

static void tell(const struct landing *l, uint32_t peer, enum report_fault fault,
		 uint64_t begun_ns, const char *text)
{
	job_tell_owned(l->traffic, REPORT_LANDING, peer, l->calm, fault, begun_ns, text);
}

static void tell_of_all(const struct landing *l, enum report_fault fault, uint64_t begun_ns,
			const char *text)
{
	tell(l, l->traffic->config.self, fault, begun_ns, text);
}

/* Does the tensor of @op say what its push was? */
static bool says(const struct landing *l, const struct weft_op *op, struct content *what)
{
	const struct weft_tensor *got = weft_op_tensor(op, NULL);
	const struct traffic *t = l->traffic;
	uint64_t number;

	return !weft_op_landed(op, &number) && got->ndim == 1 &&
	       (size_t)got->shape[0] <= l->slot_bytes &&
	       content_get(got->data, (size_t)got->shape[0], what) && what->to == t->config.self &&
	       what->from < t->config.count && what->from != t->config.self &&
	       what->lane == !l->calm && what->sequence == number;
}

/* Keep @op, whose tensor has landed.  Under the lock. */
static void hold(struct landing *l, struct weft_op *op)
{
	struct landings_hold *h = malloc(sizeof(*h));

	if (!h || !weft_op_tensor(op, NULL)->shape[0]) {
		weft_op_free(op);
		free(h);
		return;
	}
	h->op = op;
	if (!says(l, op, &h->what)) {
		tell_of_all(l, REPORT_WRONG, now_ns(), "a tensor landed wrong");
		weft_op_free(op);
		free(h);
		return;
	}
	if (!content_is_new(&l->landed[h->what.from], &h->what))
		tell(l, h->what.from, REPORT_TWICE, now_ns(), "a tensor landed again");
	h->until_ns = now_ns() + h->what.sequence * MS % HOLD_NS;
	h->next = l->holds;
	l->holds = h;
}

static void landed(struct weft_op *op, void *arg);

/* Wait for a tensor.  Under the lock. */
static void await(struct landing *l)
{
	const struct weft_op_options options = { .size = sizeof(options),
						 .timeout_ns = WEFT_FOREVER,
						 .done = landed,
						 .arg = l };
	struct weft_op *op; /* which the callback gets, too */

	if (weft_landing_next(l->landing, &options, &op))
		tell_of_all(l, REPORT_FAILED, now_ns(), weft_error());
}

/* A callback of the worker.  A landing that closes, or has closed, may tell of tensors no more. */
static void landed(struct weft_op *op, void *arg)
{
	struct landing *l = arg;

	pthread_mutex_lock(&l->lock);
	if (l->is_open && weft_op_status(op) == WEFT_OK) {
		hold(l, op);
		await(l);
	} else {
		if (l->is_open && weft_op_status(op) != WEFT_CANCELLED)
			tell_of_all(l, REPORT_FAILED, now_ns(), weft_op_message(op));
		weft_op_free(op);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Take a tensor whose time is over, or any.  NULL: there is none. */
static struct landings_hold *take_hold(struct landing *l, bool any)
{
	struct landings_hold **at, *h;
	uint64_t now = now_ns();

	pthread_mutex_lock(&l->lock);
	for (at = &l->holds; *at && !any && (*at)->until_ns > now;)
		at = &(*at)->next;
	h = *at;
	if (h)
		*at = h->next;
	pthread_mutex_unlock(&l->lock);
	return h;
}

static void give_back(struct landing *l, bool all)
{
	struct landings_hold *h;

	while ((h = take_hold(l, all))) {
		struct content what;

		if (!says(l, h->op, &what) || memcmp(&what, &h->what, sizeof(what)))
			tell(l, h->what.from, REPORT_TOUCHED, h->until_ns,
			     "a tensor has changed in its slot");
		weft_op_free(h->op);
		free(h);
	}
}

static int open_one(struct landing *l)
{
	const char *key = landings_key(l->calm);
	int err;

	guarded_mark(l->memory, bytes_of(l));
	l->turn_ns = now_ns() + OPEN_LEAST_NS + job_draw(l->traffic, OPEN_MOST_NS);
	err = weft_landing_open(l->traffic->node, l->memory, l->slot_bytes, l->slots, &l->landing);
	if (err)
		return err;
	pthread_mutex_lock(&l->lock);
	l->is_open = true;
	for (unsigned i = 0; i < AWAITED; i++)
		await(l);
	pthread_mutex_unlock(&l->lock);
	return weft_landing_publish(l->landing, key, strlen(key));
}

/* From here on the memory is ours alone. */
static void close_one(struct landing *l)
{
	uint64_t begun = now_ns();

	pthread_mutex_lock(&l->lock);
	l->is_open = false;
	pthread_mutex_unlock(&l->lock);
	give_back(l, true);
	if (weft_landing_close(l->landing))
		tell_of_all(l, REPORT_FAILED, begun, weft_error());
	l->landing = NULL;
	if (now_ns() - begun > l->traffic->config.bound_ns + SLACK_NS)
		tell_of_all(l, REPORT_LATE, begun, "a landing took long to close");
	guarded_mark(l->memory, bytes_of(l));
	l->turn_ns = now_ns() + SHUT_NS;
}

static void check_closed(const struct landing *l)
{
	if (!guarded_is_quiet(l->memory, 0, bytes_of(l)))
		tell_of_all(l, REPORT_TOUCHED, l->turn_ns - SHUT_NS,
			    "memory was written after its landing had closed");
}

static int set_up(struct traffic *t, bool calm)
{
	struct landing *l = &t->landings[calm];

	l->traffic = t;
	l->calm = calm;
	l->slot_bytes = calm ? LANDINGS_CALM_BYTES : LANDINGS_WILD_BYTES;
	/* One for each sender and one more: if a sender that is killed kept its slots, others starved. */
	l->slots = t->config.count;
	l->memory = guarded_take(bytes_of(l));
	if (!l->memory)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	return open_one(l);
}

int landings_open(struct traffic *t)
{
	int err = set_up(t, true);

	return err ? err : set_up(t, false);
}

void landings_turn(struct traffic *t)
{
	struct landing *wild = &t->landings[false];
	uint64_t now = now_ns();

	give_back(&t->landings[true], false);
	give_back(wild, false);
	if (now < wild->turn_ns || (wild->landing && t->drains))
		return;
	if (wild->landing) {
		close_one(wild);
		return;
	}
	check_closed(wild);
	if (open_one(wild))
		tell_of_all(wild, REPORT_FAILED, now, weft_error());
}

void landings_close(struct traffic *t)
{
	for (unsigned calm = 0; calm < 2; calm++) {
		if (t->landings[calm].landing)
			close_one(&t->landings[calm]);
		check_closed(&t->landings[calm]);
	}
}

void landings_fini(struct traffic *t)
{
	for (unsigned calm = 0; calm < 2; calm++) {
		guarded_give(t->landings[calm].memory);
		pthread_mutex_destroy(&t->landings[calm].lock);
	}
}
