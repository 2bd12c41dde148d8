/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/pairs.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tool/histogram.h"
#include "tool/perf_run.h"

/* Keys of a pair's tensors. */
#define ORDER "weft.pairs.order"
#define BODY "weft.pairs.body"
#define WORD "weft.pairs.word"

/* Bodies that are not timed: links come up, and windows of TCP settle. */
#define WARM_COUNT 8u

/* The most bodies of a batch: more would take longer than anyone asks for. */
#define BATCH_MAX (1u << 20)

/* A half has about so many batches, so that a wrong guess of their length costs little. */
#define BATCHES 4u

/* Time for operations to end once they are cancelled; what still runs keeps its memory. */
#define CANCEL_NS 1000000000ull

/* Orders to the receiver. */
enum kind {
	DONE = 0,
	ECHO = 1, /* answer each of so many bodies of 8 bytes */
	TAKE = 2  /* take so many bodies of the plan's size, and answer the last */
};

/* In little-endian. */
struct order {
	uint64_t kind, count;
};

/* Memory that operations borrow. */
struct memory {
	struct memory *next;
	struct order order;
	uint64_t word, small[2];
	void *bodies[PERF_RUN_WINDOW_MAX];
};

struct pairs {
	struct weft_node *node;
	struct pairs_plan plan;
	unsigned window;
	struct memory *memory; /* the one in use first; then those that operations may still own */
	bool unclean;          /* operations may own the first, too */
	struct pairs_pair pair;
	uint64_t until_ns; /* deadline of the next operations */
	struct weft_op *bodies[PERF_RUN_WINDOW_MAX], *order, *word; /* running ones */
	struct histogram latency;
	char why[sizeof(((struct matrix_cell *)NULL)->failed)]; /* the first failure of the pair */
};

static const struct perf_place here;

/* Memory */

static void give(const struct pairs *p, struct memory *memory)
{
	for (unsigned i = 0; i < p->window; i++)
		perf_run_give(p->node, &here, memory->bodies[i]);
	free(memory);
}

/* Take memory that no operation owns. */
static bool take(struct pairs *p)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	for (unsigned i = 0; memory && i < p->window; i++) {
		memory->bodies[i] = perf_run_take(p->node, &here, p->plan.bytes);
		if (memory->bodies[i])
			continue;
		give(p, memory);
		memory = NULL;
	}
	if (!memory)
		return false;
	memory->next = p->memory;
	p->memory = memory;
	p->unclean = false;
	return true;
}

bool pairs_plan_fits(const struct pairs_plan *plan)
{
	const uint64_t day_ns = 86400ull * 1000000000ull;

	return plan->bytes && plan->bytes <= PERF_BYTES_MAX && plan->time_ns &&
	       plan->time_ns <= day_ns;
}

struct pairs *pairs_open(struct weft_node *node, const struct pairs_plan *plan)
{
	struct pairs *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->node = node;
	p->plan = *plan;
	p->window = perf_run_window(plan->bytes);
	if (take(p))
		return p;
	free(p);
	return NULL;
}

void pairs_close(struct pairs *p)
{
	while (p && p->memory) {
		struct memory *next = p->memory->next;

		give(p, p->memory);
		p->memory = next;
	}
	free(p);
}

/* Operations */

__attribute__((format(printf, 3, 4))) static int failed(struct pairs *p, int err,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!*p->why)
		vsnprintf(p->why, sizeof(p->why), format, args);
	va_end(args);
	return err;
}

static uint64_t left_ns(const struct pairs *p)
{
	uint64_t now = tool_now_ns();

	return p->until_ns > now ? p->until_ns - now : 1;
}

static struct weft_op_options limits(const struct pairs *p)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;

	options.timeout_ns = left_ns(p);
	return options;
}

static int begin_send(struct pairs *p, const char *key, void *data, uint64_t bytes,
		      struct weft_op **op)
{
	struct weft_send_options options = { .size = sizeof(options), .op = limits(p) };
	int64_t shape;
	struct weft_tensor tensor = perf_run_tensor(&here, data, &shape, bytes);
	int err = weft_send(p->pair.peer, p->pair.number, key, strlen(key), &tensor, &options, op);

	return err ? failed(p, err, "%s", weft_error()) : 0;
}

static int begin_recv(struct pairs *p, const char *key, void *data, uint64_t bytes,
		      struct weft_op **op)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = limits(p) };
	int64_t shape;
	struct weft_tensor tensor = perf_run_tensor(&here, data, &shape, bytes);
	int err = weft_recv(p->node, p->pair.peer, p->pair.number, key, strlen(key), &tensor,
			    &options, op);

	return err ? failed(p, err, "%s", weft_error()) : 0;
}

/* Wait for *@op, if there is one, and free it.  @path, unless NULL, gets its path. */
static int settle(struct pairs *p, struct weft_op **op, struct weft_path *path)
{
	int err = *op ? tool_wait(*op) : 0;

	if (!*op)
		return 0;
	/* Operations that end soon never make tool_wait() look. */
	if (err == -EINTR || tool_ending())
		return failed(p, -EINTR, "interrupted");
	if (err)
		return failed(p, err, "%s", weft_error());
	if (weft_op_status(*op) != WEFT_OK)
		return failed(p, -EIO, "%s: %s", weft_status_name(weft_op_status(*op)),
			      weft_op_message(*op));
	if (path)
		weft_op_path(*op, path);
	weft_op_free(*op);
	*op = NULL;
	return 0;
}

/* End what still runs of a pair that failed. */
static void clean(struct pairs *p)
{
	struct weft_op *all[PERF_RUN_WINDOW_MAX + 2] = { p->order, p->word };
	size_t count = sizeof(all) / sizeof(*all);

	memcpy(&all[2], p->bodies, sizeof(p->bodies));
	for (size_t i = 0; i < count; i++)
		if (all[i])
			weft_cancel(all[i]);
	if (weft_wait_all(all, count, CANCEL_NS))
		p->unclean = true;
	for (size_t i = 0; i < count; i++)
		weft_op_free(all[i]);
	memset(p->bodies, 0, sizeof(p->bodies));
	p->order = p->word = NULL;
}

static int begin(struct pairs *p, const struct pairs_pair *pair)
{
	p->pair = *pair;
	p->until_ns = tool_now_ns() + PAIRS_MEET_NS;
	if (p->until_ns > pair->until_ns)
		p->until_ns = pair->until_ns;
	p->why[0] = '\0';
	return p->unclean && !take(p) ? failed(p, -ENOMEM, "no memory") : 0;
}

/* The side that sends. */

/* Order a batch, and wait until the receiver is ready for it. */
static int order(struct pairs *p, enum kind kind, uint64_t count)
{
	struct memory *m = p->memory;
	int err = 0;

	m->order = (struct order){ htole64(kind), htole64(count) };
	if (kind != DONE)
		err = begin_recv(p, WORD, &m->word, sizeof(m->word), &p->word);
	if (!err)
		err = begin_send(p, ORDER, &m->order, sizeof(m->order), &p->order);
	if (!err)
		err = settle(p, &p->order, NULL);
	if (!err)
		err = settle(p, &p->word, NULL);
	if (!err)
		p->until_ns = p->pair.until_ns;
	return err;
}

/* Send @count bodies of 8 bytes, one after the other, and add their times to @times. */
static int send_small(struct pairs *p, uint64_t count, struct histogram *times)
{
	struct memory *m = p->memory;
	int err = order(p, ECHO, count);

	for (uint64_t i = 0; i < count && !err; i++) {
		uint64_t start_ns;

		err = begin_recv(p, WORD, &m->word, sizeof(m->word), &p->word);
		start_ns = tool_now_ns();
		if (!err)
			err = begin_send(p, BODY, &m->small[0], sizeof(m->small[0]), &p->bodies[0]);
		if (!err)
			err = settle(p, &p->word, NULL);
		if (!err)
			histogram_add(times, tool_now_ns() - start_ns);
		if (!err)
			err = settle(p, &p->bodies[0], NULL);
	}
	return err;
}

/* Send @count bodies of the plan's size.  @took_ns: until the receiver had the last. */
static int send_bodies(struct pairs *p, uint64_t count, uint64_t *took_ns, struct weft_path *path)
{
	struct memory *m = p->memory;
	int err = order(p, TAKE, count);
	uint64_t start_ns;

	if (!err)
		err = begin_recv(p, WORD, &m->word, sizeof(m->word), &p->word);
	start_ns = tool_now_ns();
	for (uint64_t i = 0; i < count && !err; i++) {
		unsigned slot = (unsigned)(i % p->window);

		err = settle(p, &p->bodies[slot], NULL);
		if (!err)
			err = begin_send(p, BODY, m->bodies[slot], p->plan.bytes, &p->bodies[slot]);
	}
	if (!err)
		err = settle(p, &p->word, NULL);
	*took_ns = tool_now_ns() - start_ns;
	for (unsigned slot = 0; slot < p->window && !err; slot++)
		err = settle(p, &p->bodies[slot], path);
	return err;
}

/* Choose the size of the next batch, after @count bodies that took @took_ns. */
static uint64_t next_batch(const struct pairs *p, uint64_t count, uint64_t took_ns)
{
	double batch_ns = (double)p->plan.time_ns / 2 / BATCHES;
	double bodies = batch_ns * (double)count / (double)(took_ns ? took_ns : 1);

	return bodies < 1 ? 1 : bodies > BATCH_MAX ? BATCH_MAX : (uint64_t)bodies;
}

static int measure_latency(struct pairs *p, struct matrix_cell *cell)
{
	uint64_t count = WARM_COUNT, start_ns = tool_now_ns(), until_ns, now;
	int err = send_small(p, count, &p->latency);

	/* The first batch is not counted. */
	memset(&p->latency, 0, sizeof(p->latency));
	now = tool_now_ns();
	until_ns = now + p->plan.time_ns / 2;
	while (!err && (!p->latency.count || now < until_ns)) {
		count = next_batch(p, count, now - start_ns);
		start_ns = now;
		err = send_small(p, count, &p->latency);
		now = tool_now_ns();
	}
	cell->p50_ns = histogram_part_ns(&p->latency, 0.5);
	cell->p99_ns = histogram_part_ns(&p->latency, 0.99);
	return err;
}

static int measure_bandwidth(struct pairs *p, struct matrix_cell *cell, struct weft_path *path)
{
	uint64_t count = p->window, took_ns, sum_ns = 0, sum = 0;
	int err = send_bodies(p, count, &took_ns, path);

	while (!err && (!sum_ns || sum_ns < p->plan.time_ns / 2)) {
		count = next_batch(p, count, took_ns);
		err = send_bodies(p, count, &took_ns, path);
		sum_ns += took_ns;
		sum += count;
	}
	if (!err)
		cell->bytes_per_s =
			(uint64_t)((double)sum * (double)p->plan.bytes * 1e9 / (double)sum_ns);
	return err;
}

void pairs_measure(struct pairs *p, const struct pairs_pair *pair, struct matrix_cell *cell)
{
	struct weft_path path = WEFT_PATH_INIT;
	struct matrix_cell found = { 0 };
	int err = begin(p, pair);

	if (!err)
		err = measure_latency(p, &found);
	if (!err)
		err = measure_bandwidth(p, &found, &path);
	if (!err)
		err = order(p, DONE, 0);
	if (err) {
		clean(p);
		found = (struct matrix_cell){ 0 };
		snprintf(found.failed, sizeof(found.failed), "%s", p->why);
	} else {
		snprintf(found.provider, sizeof(found.provider), "%s", path.provider);
		snprintf(found.device, sizeof(found.device), "%s", path.device);
		snprintf(found.way, sizeof(found.way), "%s", path.way);
		found.rails = path.rails;
	}
	*cell = found;
}

/* The side that receives. */

static int say_ready(struct pairs *p)
{
	struct memory *m = p->memory;
	int err = settle(p, &p->word, NULL);

	return err ? err : begin_send(p, WORD, &m->word, sizeof(m->word), &p->word);
}

/* The next receive is posted before a body is answered: no body comes unexpected. */
static int answer_small(struct pairs *p, uint64_t count)
{
	struct memory *m = p->memory;
	int err = begin_recv(p, BODY, &m->small[0], sizeof(m->small[0]), &p->bodies[0]);

	if (!err)
		err = say_ready(p);
	for (uint64_t i = 0; i < count && !err; i++) {
		unsigned next = (i + 1) % 2;

		err = settle(p, &p->bodies[i % 2], NULL);
		if (!err && i + 1 < count)
			err = begin_recv(p, BODY, &m->small[next], sizeof(m->small[next]),
					 &p->bodies[next]);
		if (!err)
			err = say_ready(p);
	}
	return err;
}

static int take_bodies(struct pairs *p, uint64_t count)
{
	struct memory *m = p->memory;
	int err = 0;

	for (unsigned i = 0; i < p->window && i < count && !err; i++)
		err = begin_recv(p, BODY, m->bodies[i], p->plan.bytes, &p->bodies[i]);
	if (!err)
		err = say_ready(p);
	for (uint64_t i = 0; i < count && !err; i++) {
		unsigned slot = (unsigned)(i % p->window);

		err = settle(p, &p->bodies[slot], NULL);
		if (!err && i + p->window < count)
			err = begin_recv(p, BODY, m->bodies[slot], p->plan.bytes, &p->bodies[slot]);
	}
	return err ? err : say_ready(p);
}

/* Follow one order.  1: the sender is done. */
static int follow(struct pairs *p)
{
	struct memory *m = p->memory;
	int err = begin_recv(p, ORDER, &m->order, sizeof(m->order), &p->order);
	uint64_t count;

	if (!err)
		err = settle(p, &p->order, NULL);
	if (err)
		return err;
	p->until_ns = p->pair.until_ns;
	count = le64toh(m->order.count);
	if (le64toh(m->order.kind) == DONE)
		return 1;
	if (!count || count > BATCH_MAX)
		return failed(p, -EPROTO, "the sender orders a batch of no size there is");
	switch (le64toh(m->order.kind)) {
	case ECHO:
		return answer_small(p, count);
	case TAKE:
		return take_bodies(p, count);
	default:
		return failed(p, -EPROTO, "the sender orders what nobody knows");
	}
}

const char *pairs_answer(struct pairs *p, const struct pairs_pair *pair)
{
	int err = begin(p, pair);

	while (!err)
		err = follow(p);
	if (err > 0)
		err = settle(p, &p->word, NULL);
	if (!err)
		return NULL;
	clean(p);
	return p->why;
}
