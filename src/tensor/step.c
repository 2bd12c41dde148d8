/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/status.h"

static struct wf_step *new_step(uint64_t number, enum weft_status status, const char *why,
				size_t bytes)
{
	struct wf_step *s;

	bytes = WF_MIN(bytes, (size_t)WF_STEP_TEXT_BYTES);
	s = malloc(sizeof(*s) + bytes + 1);
	if (!s)
		return NULL;
	*s = (struct wf_step){ .number = number, .status = status };
	wf_list_init(&s->node);
	if (bytes)
		memcpy(s->text, why, bytes);
	s->text[bytes] = '\0';
	return s;
}

struct wf_step *wf_step_new_aborted(uint64_t number, enum weft_status status, const char *why,
				    size_t bytes)
{
	struct wf_step *s = new_step(number, status, why, bytes);

	if (s)
		s->aborted = true;
	return s;
}

struct wf_step *wf_step_new_ended(uint64_t number)
{
	return new_step(number, WEFT_FAILED_PRECONDITION, NULL, 0);
}

void wf_step_free(struct wf_step *s)
{
	free(s);
}

int wf_step_error(const struct wf_step *s, struct wf_error *e)
{
	return wf_error_set(e, wf_status_code(s->status), "step %llu %s%s%s",
			    (unsigned long long)s->number,
			    s->aborted ? "was aborted" : "has ended on this node",
			    s->text[0] ? ": " : "", s->text);
}

enum weft_status wf_step_told(const struct wf_step *s)
{
	return s->aborted ? s->status : WEFT_OK;
}

void wf_steps_init(struct wf_steps *steps)
{
	*steps = (struct wf_steps){ 0 };
	wf_map_init(&steps->map);
	wf_list_init(&steps->by_age);
}

static struct wf_step *oldest(const struct wf_steps *steps)
{
	return WF_CONTAINER(wf_list_first(&steps->by_age), struct wf_step, node);
}

static void forget(struct wf_steps *steps, struct wf_step *s)
{
	wf_map_remove(&steps->map, &s->map_node);
	wf_list_remove(&s->node);
	steps->count--;
	wf_step_free(s);
}

void wf_steps_fini(struct wf_steps *steps)
{
	while (steps->count)
		forget(steps, oldest(steps));
	wf_map_fini(&steps->map);
}

static uint64_t hash_of(const struct wf_steps *steps, uint64_t number)
{
	return wf_map_hash(&steps->map, number, NULL, 0);
}

struct wf_step *wf_steps_find(const struct wf_steps *steps, uint64_t number)
{
	struct wf_map_node *at = NULL;
	uint64_t hash;

	/* Most jobs abort nothing: they need not pay for a hash. */
	if (!steps->count)
		return NULL;
	hash = hash_of(steps, number);
	while ((at = wf_map_find(&steps->map, hash, at))) {
		struct wf_step *s = WF_CONTAINER(at, struct wf_step, map_node);

		if (s->number == number)
			return s;
	}
	return NULL;
}

void wf_steps_add(struct wf_steps *steps, struct wf_step *fresh, uint64_t now_ns)
{
	wf_map_add(&steps->map, &fresh->map_node, hash_of(steps, fresh->number));
	fresh->since_ns = now_ns;
	wf_list_append(&steps->by_age, &fresh->node);
	if (++steps->count > WF_STEPS_MAX)
		forget(steps, oldest(steps));
}

bool wf_steps_crowded(const struct wf_steps *steps, uint64_t now_ns)
{
	return steps->count == WF_STEPS_MAX && now_ns - oldest(steps)->since_ns < WF_STEP_YOUNG_NS;
}
