/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A helper without a thread: a job is done when its owner asks for it after its
 * time has come, or drops it, as if it had just been under way.  Linking this
 * file replaces util/helper.
 */
#include "util/helper.h"

#include "tests/fake/internal.h"

struct wf_helper {
	struct {
		struct wf_helper_job job; /* no owner: the place is free */
		uint64_t due_ns;
	} places[WF_HELPER_JOBS];
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

int wf_helper_give(struct wf_helper *h, const struct wf_helper_job *job)
{
	for (size_t i = 0; i < WF_HELPER_JOBS; i++) {
		if (h->places[i].job.owner)
			continue;
		h->places[i].job = *job;
		h->places[i].due_ns = fake_later_ns();
		return 0;
	}
	return -EAGAIN;
}

static int run(struct wf_helper_job *job)
{
	struct wf_helper_job given = *job;

	job->owner = NULL;
	return given.run(&given);
}

void *wf_helper_ended(struct wf_helper *h, int *status)
{
	for (size_t i = 0; i < WF_HELPER_JOBS; i++) {
		void *owner = h->places[i].job.owner;

		if (!owner || h->places[i].due_ns > wf_clock_now())
			continue;
		*status = run(&h->places[i].job);
		return owner;
	}
	return NULL;
}

void wf_helper_drop(struct wf_helper *h, const void *owner)
{
	for (size_t i = 0; i < WF_HELPER_JOBS; i++)
		if (h->places[i].job.owner == owner)
			(void)run(&h->places[i].job);
}
