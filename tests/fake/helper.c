/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A helper without a thread: a copy is made when its owner asks for it after its
 * time has come, or drops it, as if it had just been under way.  Linking this
 * file replaces fabric/helper.
 */
#include "fabric/helper.h"

#include "fabric/vm.h"
#include "tests/fake/internal.h"

struct wf_helper {
	struct {
		struct wf_helper_copy copy; /* no owner: the place is free */
		uint64_t due_ns;
	} places[WF_HELPER_COPIES];
};

int wf_helper_open(void (*wake)(void *ctx), void *ctx, struct wf_helper **helper)
{
	int err = fake_veto("pthread_create");

	(void)wake; /* the test polls */
	(void)ctx;
	if (!err)
		*helper = fake_make(sizeof(**helper));
	return err;
}

void wf_helper_close(struct wf_helper *h)
{
	free(h);
}

int wf_helper_give(struct wf_helper *h, const struct wf_helper_copy *copy)
{
	for (size_t i = 0; i < WF_HELPER_COPIES; i++) {
		if (h->places[i].copy.owner)
			continue;
		h->places[i].copy = *copy;
		h->places[i].due_ns = fake_later_ns();
		return 0;
	}
	return -EAGAIN;
}

static int make(struct wf_helper_copy *c)
{
	c->owner = NULL;
	return wf_vm_read(c->pid, c->into, c->count, c->address);
}

void *wf_helper_ended(struct wf_helper *h, int *status)
{
	for (size_t i = 0; i < WF_HELPER_COPIES; i++) {
		void *owner = h->places[i].copy.owner;

		if (!owner || h->places[i].due_ns > wf_clock_now())
			continue;
		*status = make(&h->places[i].copy);
		return owner;
	}
	return NULL;
}

void wf_helper_drop(struct wf_helper *h, const void *owner)
{
	for (size_t i = 0; i < WF_HELPER_COPIES; i++)
		if (h->places[i].copy.owner == owner)
			(void)make(&h->places[i].copy);
}
