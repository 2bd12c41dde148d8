/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/copy_thread.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "util/thread.h"

enum state { FREE, GIVEN, RUNNING, ENDED };

struct place {
	enum state state;
	struct wf_copy_thread_job job;
	int status;
};

struct wf_copy_thread {
	void (*wake)(void *ctx);
	void *ctx;
	pthread_t thread;
	uint32_t count; /* places that are not free; only the worker looks at it */

	pthread_mutex_t lock; /* protects all members below */
	pthread_cond_t given, ended;
	bool leaving;
	struct place places[WF_COPY_THREAD_JOBS];
};

/* Return any place in @state, or NULL.  The lock is held. */
static struct place *find(struct wf_copy_thread *h, enum state state)
{
	for (uint32_t i = 0; i < WF_COPY_THREAD_JOBS; i++)
		if (h->places[i].state == state)
			return &h->places[i];
	return NULL;
}

/* Run the job of @place without the lock, which is held before and after. */
static void run_one(struct wf_copy_thread *h, struct place *place)
{
	struct wf_copy_thread_job job = place->job;
	int status;

	place->state = RUNNING;
	pthread_mutex_unlock(&h->lock);
	status = job.run(&job);
	pthread_mutex_lock(&h->lock);
	place->status = status;
	place->state = ENDED;
	pthread_cond_signal(&h->ended);
	pthread_mutex_unlock(&h->lock);
	if (h->wake)
		h->wake(h->ctx);
	pthread_mutex_lock(&h->lock);
}

static void *run(void *arg)
{
	struct wf_copy_thread *h = arg;
	struct place *place;

	pthread_mutex_lock(&h->lock);
	while (!h->leaving) {
		place = find(h, GIVEN);
		if (place)
			run_one(h, place);
		else
			pthread_cond_wait(&h->given, &h->lock);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static bool is_alone(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2;
}

int wf_copy_thread_open(void (*wake)(void *ctx), void *ctx, struct wf_copy_thread **helper)
{
	struct wf_copy_thread *h;
	int err;

	if (is_alone())
		return -ENOTSUP;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->wake = wake;
	h->ctx = ctx;
	err = -pthread_mutex_init(&h->lock, NULL);
	if (err)
		goto free_memory;
	err = -pthread_cond_init(&h->given, NULL);
	if (err)
		goto destroy_lock;
	err = -pthread_cond_init(&h->ended, NULL);
	if (err)
		goto destroy_given;
	err = wf_thread_start(&h->thread, "weft copy", run, h);
	if (err)
		goto destroy_ended;
	*helper = h;
	return 0;

destroy_ended:
	pthread_cond_destroy(&h->ended);
destroy_given:
	pthread_cond_destroy(&h->given);
destroy_lock:
	pthread_mutex_destroy(&h->lock);
free_memory:
	free(h);
	return err;
}

void wf_copy_thread_close(struct wf_copy_thread *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->leaving = true;
	pthread_cond_signal(&h->given);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->ended);
	pthread_cond_destroy(&h->given);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

int wf_copy_thread_give(struct wf_copy_thread *h, const struct wf_copy_thread_job *job)
{
	struct place *place;

	if (h->count == WF_COPY_THREAD_JOBS)
		return -EAGAIN;
	pthread_mutex_lock(&h->lock);
	place = find(h, FREE);
	place->job = *job;
	place->state = GIVEN;
	h->count++;
	pthread_cond_signal(&h->given);
	pthread_mutex_unlock(&h->lock);
	return 0;
}

static void empty(struct wf_copy_thread *h, struct place *place)
{
	place->state = FREE;
	h->count--;
}

void *wf_copy_thread_ended(struct wf_copy_thread *h, int *status)
{
	void *owner = NULL;
	struct place *place;

	/* Skip the lock while no job was given: none can have ended. */
	if (!h->count)
		return NULL;
	pthread_mutex_lock(&h->lock);
	place = find(h, ENDED);
	if (place) {
		owner = place->job.owner;
		*status = place->status;
		empty(h, place);
	}
	pthread_mutex_unlock(&h->lock);
	return owner;
}

void wf_copy_thread_drop(struct wf_copy_thread *h, const void *owner)
{
	if (!h->count)
		return;
	pthread_mutex_lock(&h->lock);
	for (uint32_t i = 0; i < WF_COPY_THREAD_JOBS; i++) {
		struct place *place = &h->places[i];

		if (place->state == FREE || place->job.owner != owner)
			continue;
		while (place->state == RUNNING)
			pthread_cond_wait(&h->ended, &h->lock);
		empty(h, place);
	}
	pthread_mutex_unlock(&h->lock);
}
