/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/poller.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "util/clock.h"

#define LIMIT_MS 30000 /* for what takes milliseconds on an idle machine */
#define TAG (WF_POLLER_TAG_FIRST + 3)

static struct wf_poller poller;

static int open_with_alarm(void **state)
{
	(void)state;
	return wf_poller_open(&poller, true, NULL);
}

static int close_it(void **state)
{
	(void)state;
	wf_poller_close(&poller);
	return 0;
}

static bool is_readable(int ms)
{
	struct pollfd fd = { .fd = poller.epoll_fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

static void an_owner_that_is_awake_gets_no_wake_up(void **state)
{
	(void)state;
	wf_poller_wake(&poller);
	wf_poller_sleep(&poller);
	wf_poller_awake(&poller);
	wf_poller_wake(&poller);
	assert_false(is_readable(0));
}

static void wake_ups_of_one_sleep_are_one_event(void **state)
{
	struct wf_poller_event events[WF_POLLER_EVENTS_MAX];

	(void)state;
	wf_poller_sleep(&poller);
	assert_true(wf_poller_asleep(&poller));
	wf_poller_wake(&poller);
	wf_poller_wake(&poller);
	assert_int_equal(wf_poller_wait(&poller, events, LIMIT_MS), 1);
	assert_in_range(events[0].tag, 0, WF_POLLER_TAG_FIRST - 1);
	wf_poller_awake(&poller);
	assert_false(is_readable(0));
}

static void a_readable_descriptor_is_reported_until_it_is_removed(void **state)
{
	const uint64_t value = ((uint64_t)1 << 56) - 2;
	struct wf_poller_event events[WF_POLLER_EVENTS_MAX];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(wf_poller_add(&poller, ends[0], TAG, value), 0);
	assert_int_equal(wf_poller_wait(&poller, events, 0), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	for (int look = 0; look < 2; look++) {
		assert_int_equal(wf_poller_wait(&poller, events, LIMIT_MS), 1);
		assert_int_equal(events[0].tag, TAG);
		assert_true(events[0].value == value);
	}
	wf_poller_remove(&poller, ends[0]);
	assert_int_equal(wf_poller_wait(&poller, events, 0), 0);
	close(ends[0]);
	close(ends[1]);
}

static void no_descriptor_is_no_error_but_a_closed_one_is(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(wf_poller_add(&poller, -1, TAG, 0), 0);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(wf_poller_add(&poller, ends[0], TAG, 0), -EBADF);
}

static void an_alarm_makes_the_descriptor_readable_once(void **state)
{
	uint64_t now_ns = wf_clock_now(), at_ns = now_ns + 2 * WF_NS_PER_MS;
	struct wf_poller_event events[WF_POLLER_EVENTS_MAX];

	(void)state;
	assert_int_equal(wf_poller_set_alarm(&poller, now_ns, at_ns), 0);
	assert_true(is_readable(LIMIT_MS));
	assert_true(wf_clock_now() >= at_ns);
	assert_int_equal(wf_poller_wait(&poller, events, 0), 1);
	assert_in_range(events[0].tag, 0, WF_POLLER_TAG_FIRST - 1);
	assert_false(is_readable(0));
}

static void an_alarm_at_the_beginning_of_time_is_due(void **state)
{
	(void)state;
	assert_int_equal(wf_poller_set_alarm(&poller, wf_clock_now(), 0), 0);
	assert_true(is_readable(LIMIT_MS));
}

static void an_alarm_that_comes_sooner_stays(void **state)
{
	uint64_t now_ns = wf_clock_now();

	(void)state;
	assert_int_equal(wf_poller_set_alarm(&poller, now_ns, now_ns + 2 * WF_NS_PER_MS), 0);
	assert_int_equal(wf_poller_set_alarm(&poller, now_ns, now_ns + 3600 * WF_NS_PER_S), 0);
	assert_true(is_readable(LIMIT_MS));
}

static void an_alarm_that_is_over_does_not_stand_for_a_later_one(void **state)
{
	uint64_t now_ns = wf_clock_now();
	struct wf_poller_event events[WF_POLLER_EVENTS_MAX];

	(void)state;
	assert_int_equal(wf_poller_set_alarm(&poller, now_ns, now_ns + WF_NS_PER_MS), 0);
	assert_int_equal(wf_poller_wait(&poller, events, LIMIT_MS), 1);
	/* A worker may be a turn behind the clock. */
	assert_int_equal(wf_poller_set_alarm(&poller, now_ns, now_ns + 2 * WF_NS_PER_MS), 0);
	assert_true(is_readable(LIMIT_MS));
}

/* How many descriptors the process may have, and @more than it has. */
static void allow(int more, struct rlimit *old)
{
	int next = dup(0);
	struct rlimit limit;

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, old), 0);
	limit = *old;
	limit.rlim_cur = (rlim_t)(next + more);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void without_descriptors_it_does_not_open_and_keeps_none(void **state)
{
	(void)state;
	for (int more = 0; more < 3; more++) {
		struct wf_poller p;
		struct wf_error e;
		struct rlimit old;
		int err, next;

		allow(more, &old);
		err = wf_poller_open(&p, true, &e);
		next = dup(0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		assert_int_equal(err, -EMFILE);
		assert_false(wf_poller_is_open(&p));
		assert_int_equal(next >= 0, more > 0); /* what it had opened is free again */
		if (next >= 0)
			close(next);
		wf_poller_close(&p);
	}
}

static void without_an_alarm_it_has_a_descriptor_less(void **state)
{
	struct wf_poller p;

	(void)state;
	assert_int_equal(wf_poller_open(&p, false, NULL), 0);
	assert_int_equal(p.timer_fd, -1);
	wf_poller_close(&p);
	assert_false(wf_poller_is_open(&p));
}

#define ON_ONE_OF_ITS_OWN(test) cmocka_unit_test_setup_teardown(test, open_with_alarm, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ONE_OF_ITS_OWN(an_owner_that_is_awake_gets_no_wake_up),
		ON_ONE_OF_ITS_OWN(wake_ups_of_one_sleep_are_one_event),
		ON_ONE_OF_ITS_OWN(a_readable_descriptor_is_reported_until_it_is_removed),
		ON_ONE_OF_ITS_OWN(no_descriptor_is_no_error_but_a_closed_one_is),
		ON_ONE_OF_ITS_OWN(an_alarm_makes_the_descriptor_readable_once),
		ON_ONE_OF_ITS_OWN(an_alarm_at_the_beginning_of_time_is_due),
		ON_ONE_OF_ITS_OWN(an_alarm_that_comes_sooner_stays),
		ON_ONE_OF_ITS_OWN(an_alarm_that_is_over_does_not_stand_for_a_later_one),
		cmocka_unit_test(without_descriptors_it_does_not_open_and_keeps_none),
		cmocka_unit_test(without_an_alarm_it_has_a_descriptor_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
