/* SPDX-License-Identifier: BSD-2-Clause */
/* A helper that copies this very process's memory. */
#include "util/copy_thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "fabric/vm.h"
#include "util/clock.h"

#define LIMIT_NS (10 * WF_NS_PER_S)
#define LONG_BYTES (64 * MIB) /* some milliseconds of work */

struct world {
	struct wf_copy_thread *helper;
	_Atomic unsigned wakes;
	char *from, *into;
};

static void wake(void *ctx)
{
	struct world *w = ctx;

	atomic_fetch_add(&w->wakes, 1);
}

static void begin(struct world *w)
{
	int err;

	*w = (struct world){ .from = malloc(LONG_BYTES), .into = malloc(LONG_BYTES) };
	memset(w->from, 7, LONG_BYTES);
	memset(w->into, 0, LONG_BYTES);
	err = wf_copy_thread_open(wake, w, &w->helper);
	if (err == -ENOTSUP)
		exit(77); /* one processor */
	assert_int_equal(err, 0);
}

static void end(struct world *w)
{
	wf_copy_thread_close(w->helper);
	free(w->from);
	free(w->into);
}

static int copy(const struct wf_copy_thread_job *job)
{
	return wf_vm_read_spans(job->pid, job->spans, job->span_count);
}

static int give(struct world *w, void *owner, pid_t pid, size_t count)
{
	const struct wf_copy_thread_job job = {
		.owner = owner, .run = copy, .pid = (uint32_t)pid, .span_count = 1,
		.spans = { { w->into, count, (uintptr_t)w->from } },
	};

	return wf_copy_thread_give(w->helper, &job);
}

/* Wait for a copy to end; whose. */
static void *await(struct world *w, int *status)
{
	uint64_t until = wf_clock_now() + LIMIT_NS;
	void *owner;

	do {
		owner = wf_copy_thread_ended(w->helper, status);
		sched_yield();
	} while (!owner && wf_clock_now() < until);
	return owner;
}

static void a_copy_is_made_and_told_once(void **state)
{
	struct world w;
	int owner, status = 1;

	(void)state;
	begin(&w);
	assert_null(wf_copy_thread_ended(w.helper, &status));
	assert_int_equal(give(&w, &owner, getpid(), 1000), 0);
	assert_ptr_equal(await(&w, &status), &owner);
	assert_int_equal(status, 0);
	assert_memory_equal(w.into, w.from, 1000);
	assert_int_equal(w.into[1000], 0);
	assert_null(wf_copy_thread_ended(w.helper, &status));
	end(&w);
	assert_int_equal(atomic_load(&w.wakes), 1);
}

static void a_copy_thread_takes_no_more_jobs_than_it_has_places_for(void **state)
{
	struct world w;
	int owners[WF_COPY_THREAD_JOBS + 1], status;

	(void)state;
	begin(&w);
	for (size_t i = 0; i < WF_COPY_THREAD_JOBS; i++)
		assert_int_equal(give(&w, &owners[i], getpid(), LONG_BYTES), 0);
	assert_int_equal(give(&w, &owners[WF_COPY_THREAD_JOBS], getpid(), 1), -EAGAIN);
	assert_non_null(await(&w, &status));
	assert_int_equal(give(&w, &owners[WF_COPY_THREAD_JOBS], getpid(), 1), 0);
	for (size_t i = 0; i < WF_COPY_THREAD_JOBS; i++)
		assert_non_null(await(&w, &status));
	end(&w);
}

static void a_dropped_copy_touches_nothing_and_the_next_goes_on(void **state)
{
	struct world w;
	int first, second, status = 1;

	(void)state;
	begin(&w);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(give(&w, &first, getpid(), LONG_BYTES), 0);
		assert_int_equal(give(&w, &second, getpid(), LONG_BYTES), 0);
		(void)poll(NULL, 0, (int)(i % 4)); /* before it begins, and in the middle */
		wf_copy_thread_drop(w.helper, &first);
		wf_copy_thread_drop(w.helper, &second);
		memset(w.into, 0, LONG_BYTES);
		(void)poll(NULL, 0, 2);
		for (size_t at = 0; at < LONG_BYTES; at += KIB)
			assert_int_equal(w.into[at], 0);
		assert_null(wf_copy_thread_ended(w.helper, &status));
	}
	assert_int_equal(give(&w, &first, getpid(), 1000), 0);
	assert_int_equal(give(&w, &second, getpid(), 2000), 0);
	wf_copy_thread_drop(w.helper, &first);
	wf_copy_thread_drop(w.helper, &first);
	assert_ptr_equal(await(&w, &status), &second);
	assert_int_equal(status, 0);
	end(&w);
}

static void a_copy_from_a_process_that_is_gone_is_an_error(void **state)
{
	struct world w;
	int owner, status = 1;
	pid_t pid;

	(void)state;
	begin(&w);
	pid = fork();
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(give(&w, &owner, pid, 1000), 0);
	assert_ptr_equal(await(&w, &status), &owner);
	assert_int_equal(status, -ESRCH);
	end(&w);
}

static void closing_waits_for_the_copy_that_is_made_and_makes_no_other(void **state)
{
	struct world w;
	int first, second;

	(void)state;
	begin(&w);
	assert_int_equal(give(&w, &first, getpid(), LONG_BYTES), 0);
	assert_int_equal(give(&w, &second, getpid(), LONG_BYTES), 0);
	wf_copy_thread_close(w.helper);
	w.helper = NULL;
	memset(w.into, 0, LONG_BYTES);
	(void)poll(NULL, 0, 20);
	for (size_t at = 0; at < LONG_BYTES; at += KIB)
		assert_int_equal(w.into[at], 0);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_made_and_told_once),
		cmocka_unit_test(a_copy_thread_takes_no_more_jobs_than_it_has_places_for),
		cmocka_unit_test(a_dropped_copy_touches_nothing_and_the_next_goes_on),
		cmocka_unit_test(a_copy_from_a_process_that_is_gone_is_an_error),
		cmocka_unit_test(closing_waits_for_the_copy_that_is_made_and_makes_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
