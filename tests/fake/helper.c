/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A helper without a thread: a job is done when its owner asks for it after its
 * time has come, or drops it, as if it had just been under way.  Linking this
 * file replaces util/helper.
 */
#include "util/copy_thread.h"

#include "tests/fake/internal.h"

struct wf_copy_thread {
	struct {
		struct wf_copy_thread_job job; /* no owner: the place is free */
		uint64_t due_ns;
	} places[WF_COPY_THREAD_JOBS];
};

int wf_copy_thread_open(void (*wake)(void *ctx), void *ctx, struct wf_copy_thread **helper)
{
	int err = fake_veto("pthread_create");

	(void)wake; /* the test polls */
	(void)ctx;
	if (!err)
		*helper = fake_make(sizeof(**helper));
	return err;
}

void wf_copy_thread_close(struct wf_copy_thread *h)
{
	free(h);
}

int wf_copy_thread_give(struct wf_copy_thread *h, const struct wf_copy_thread_job *job)
{
	for (size_t i = 0; i < WF_COPY_THREAD_JOBS; i++) {
		if (h->places[i].job.owner)
			continue;
		h->places[i].job = *job;
		h->places[i].due_ns = fake_later_ns();
		return 0;
	}
	return -EAGAIN;
}

static int run(struct wf_copy_thread_job *job)
{
	struct wf_copy_thread_job given = *job;

	job->owner = NULL;
	return given.run(&given);
}

void *wf_copy_thread_ended(struct wf_copy_thread *h, int *status)
{
	for (size_t i = 0; i < WF_COPY_THREAD_JOBS; i++) {
		void *owner = h->places[i].job.owner;

		if (!owner || h->places[i].due_ns > wf_clock_now())
			continue;
		*status = run(&h->places[i].job);
		return owner;
	}
	return NULL;
}

void wf_copy_thread_drop(struct wf_copy_thread *h, const void *owner)
{
	for (size_t i = 0; i < WF_COPY_THREAD_JOBS; i++)
		if (h->places[i].job.owner == owner)
			(void)run(&h->places[i].job);
}
