/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "util/clock.h"

#define LIMIT_MS 30000 /* for what takes milliseconds on an idle machine */
#define LIMIT_NS (LIMIT_MS * WF_NS_PER_MS)
#define TAG (WF_POLLER_TAG_FIRST + 1)

/* A floor above that writes down what is asked of it. */
static struct wf_loop loop;
static char trace[512];
static uint64_t still_ns, read_value;
static unsigned read_tag;
static int arm_result;
static uint64_t arm_until_ns; /* 0: the client needs no turn */
static atomic_bool armed;

static void note(const char *word)
{
	size_t used = strlen(trace);

	if (used + strlen(word) + 2 <= sizeof(trace)) {
		strcat(trace, word);
		strcat(trace, " ");
	}
}

static size_t count_of(const char *word)
{
	size_t count = 0;

	for (const char *at = trace; (at = strstr(at, word)); at++)
		count++;
	return count;
}

static void begin(void *ctx)
{
	(void)ctx;
	note("begin");
}

static void stood_still(void *ctx, uint64_t ns)
{
	(void)ctx;
	still_ns = ns;
}

static int poll_wire(void *ctx)
{
	(void)ctx;
	note("poll");
	return 0;
}

static void readable(void *ctx, unsigned tag, uint64_t value)
{
	(void)ctx;
	note("readable");
	read_tag = tag;
	read_value = value;
}

static void look(void *ctx)
{
	(void)ctx;
}

static void send_all(void *ctx)
{
	(void)ctx;
	note("send");
}

static int arm_wire(void *ctx, uint64_t *until_ns)
{
	int result = arm_result;

	(void)ctx;
	note("arm");
	arm_result = 0;
	if (arm_until_ns)
		*until_ns = arm_until_ns;
	atomic_store(&armed, result == 0);
	return result;
}

static void awake(void *ctx)
{
	(void)ctx;
	note("awake");
}

static const struct wf_loop_client client = {
	.begin = begin,
	.stood_still = stood_still,
	.poll = poll_wire,
	.readable = readable,
	.look = look,
	.send = send_all,
	.arm = arm_wire,
	.awake = awake,
};

static int open_loop(void **state)
{
	const struct wf_loop_config config = {
		.client = &client, .alarm = true, .sleep_max_ns = LIMIT_NS,
	};

	(void)state;
	*trace = '\0';
	still_ns = read_value = arm_until_ns = 0;
	read_tag = 0;
	arm_result = 0;
	atomic_store(&armed, false);
	return wf_loop_open(&loop, &config, NULL);
}

static int close_loop(void **state)
{
	(void)state;
	wf_loop_close(&loop);
	return 0;
}

static void fire(struct wf_timer *timer)
{
	(void)timer;
	note("timer");
}

static void run_task(struct wf_loop_task *task)
{
	(void)task;
	note("task");
}

static void run_notice(struct wf_loop_notice *notice)
{
	(void)notice;
	note("notice");
}

/*
 * Returns the trace of turns without the looks at descriptors that a turn takes when the one before
 * is a millisecond ago, as may be on a busy machine.
 */
static const char *turns(void)
{
	static const char look[] = "awake ";
	char *at;

	while ((at = strstr(trace, look)))
		memmove(at, at + strlen(look), strlen(at + strlen(look)) + 1);
	return trace;
}

static struct wf_timer timer;
static struct wf_loop_task task = { .run = run_task };
static struct wf_loop_notice notice = { .run = run_notice };

static void a_turn_runs_timers_then_tasks_then_notices_and_sends_first_and_last(void **state)
{
	(void)state;
	wf_loop_defer(&loop, &notice);
	wf_loop_submit(&loop, &task);
	wf_loop_timer(&loop, &timer, loop.now_ns, fire);
	assert_int_equal(wf_loop_poll(&loop), 3);
	assert_string_equal(turns(), "begin send poll timer task notice send ");
	assert_int_equal(wf_loop_poll(&loop), 0);
}

static struct wf_loop_notice second = { .run = run_notice };

static void submit_and_defer(struct wf_loop_notice *n)
{
	(void)n;
	note("first");
	wf_loop_submit(&loop, &task);
	wf_loop_defer(&loop, &second);
}

static void a_notice_and_a_task_that_a_notice_leaves_run_in_its_turn(void **state)
{
	struct wf_loop_notice first = { .run = submit_and_defer };

	(void)state;
	wf_loop_defer(&loop, &first);
	wf_loop_poll(&loop);
	assert_string_equal(turns(), "begin send poll first notice task send ");
}

static void a_loop_is_pressed_until_it_has_run_all_notices_but_the_quiet(void **state)
{
	(void)state;
	wf_loop_defer_quietly(&loop, &second);
	assert_false(loop.pressing);
	wf_loop_defer(&loop, &notice);
	assert_true(loop.pressing);
	wf_loop_poll(&loop);
	assert_false(loop.pressing);
	assert_string_equal(turns(), "begin send poll notice notice send ");
}

#define MANY 1000 /* more than a turn runs of a kind */

/* Things of one kind, of which a turn runs a part.  Returns the turns that it took to run all. */
static int turns_for(const char *word, int most)
{
	uint64_t until_ns;
	int done = 0, count;

	for (count = 0; done < MANY; count++) {
		int now;

		/* Nobody sleeps on the rest. */
		assert_int_equal(wf_loop_arm(&loop, &until_ns), -EAGAIN);
		*trace = '\0';
		now = wf_loop_poll(&loop);
		assert_in_range(now, 1, most);
		assert_int_equal(count_of("poll"), 1);
		assert_true(count_of(word) > 0);
		done += now;
	}
	assert_int_equal(done, MANY);
	assert_int_equal(wf_loop_poll(&loop), 0);
	return count;
}

static void a_time_before_the_last_turn_does_not_turn_the_clock_back(void **state)
{
	uint64_t now_ns;

	(void)state;
	wf_loop_tick(&loop);
	now_ns = loop.now_ns;
	still_ns = 0;
	wf_loop_tick_at(&loop, now_ns - 1000);
	assert_int_equal(loop.now_ns, now_ns);
	assert_int_equal(still_ns, 0);
}

static void a_long_list_of_notices_takes_turns_that_look_at_the_wire(void **state)
{
	static struct wf_loop_notice many[MANY];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(many); i++) {
		many[i].run = run_notice;
		wf_loop_defer(&loop, &many[i]);
	}
	assert_true(turns_for("notice", 200) >= 5);
}

static void a_long_list_of_tasks_takes_turns_that_look_at_the_wire(void **state)
{
	static struct wf_loop_task many[MANY];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(many); i++) {
		many[i].run = run_task;
		wf_loop_submit(&loop, &many[i]);
	}
	assert_true(turns_for("task", 300) >= 4);
}

static void timers_that_are_due_at_once_take_turns_that_look_at_the_wire(void **state)
{
	static struct wf_timer many[MANY];
	int fired = 0;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(many); i++)
		wf_loop_timer(&loop, &many[i], loop.now_ns, fire);
	for (int now; fired < MANY; fired += now) {
		now = wf_loop_poll(&loop);
		assert_in_range(now, 1, 200);
	}
	assert_int_equal(fired, MANY);
	assert_int_equal(wf_loop_poll(&loop), 0);
}

static void resubmit(struct wf_loop_task *t)
{
	note("task");
	wf_loop_submit(&loop, t);
}

static void a_task_that_submits_itself_again_does_not_hold_the_turn(void **state)
{
	struct wf_loop_task again = { .run = resubmit };

	(void)state;
	wf_loop_submit(&loop, &again);
	wf_loop_poll(&loop);
	assert_in_range(count_of("task"), 1, 2);
}

static void outside_a_turn_it_drains_until_nothing_is_left(void **state)
{
	struct wf_loop_notice first = { .run = submit_and_defer };

	(void)state;
	wf_loop_defer(&loop, &first);
	assert_true(wf_loop_drain(&loop));
	assert_int_equal(count_of("task"), 1);
	assert_int_equal(count_of("notice"), 1);
	assert_false(wf_loop_drain(&loop));
}

static void a_wait_in_vain_lasts_until_its_time_and_disarms_the_client(void **state)
{
	uint64_t until_ns = wf_clock_now() + 5 * WF_NS_PER_MS;

	(void)state;
	assert_int_equal(wf_loop_wait(&loop, until_ns), 0);
	assert_true(wf_clock_now() >= until_ns);
	assert_true(count_of("arm") >= 1);
	assert_int_equal(count_of("awake"), count_of("arm"));
	assert_false(wf_poller_asleep(&loop.poller));
}

static void *submit_to_the_sleeper(void *ctx)
{
	while (!atomic_load(&armed))
		usleep(100);
	wf_loop_submit(&loop, &task);
	return ctx;
}

static void a_task_of_another_thread_ends_the_sleep(void **state)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, submit_to_the_sleeper, NULL), 0);
	assert_int_equal(wf_loop_wait(&loop, until_ns), 1);
	assert_int_equal(count_of("task"), 1);
	assert_true(loop.now_ns < until_ns);
	pthread_join(thread, NULL);
}

static void a_timer_ends_the_sleep(void **state)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;

	(void)state;
	wf_loop_timer(&loop, &timer, loop.now_ns + 5 * WF_NS_PER_MS, fire);
	assert_int_equal(wf_loop_wait(&loop, until_ns), 1);
	assert_int_equal(count_of("timer"), 1);
	assert_true(loop.now_ns < until_ns);
}

static void a_client_that_needs_a_turn_is_not_slept_on(void **state)
{
	uint64_t until_ns;

	(void)state;
	arm_result = -EAGAIN;
	assert_int_equal(wf_loop_arm(&loop, &until_ns), -EAGAIN);
	assert_false(wf_poller_asleep(&loop.poller));
	assert_string_equal(trace, "send arm awake ");
}

static void a_sleep_is_as_short_as_the_client_and_the_next_timer_say(void **state)
{
	uint64_t until_ns;

	(void)state;
	wf_loop_timer(&loop, &timer, loop.now_ns + 7, fire);
	assert_int_equal(wf_loop_arm(&loop, &until_ns), 0);
	assert_true(until_ns == loop.now_ns + 7);
	wf_loop_woken(&loop);
	arm_until_ns = loop.now_ns + 3;
	assert_int_equal(wf_loop_arm(&loop, &until_ns), 0);
	assert_true(until_ns == loop.now_ns + 3);
	wf_loop_woken(&loop);
	wf_timer_stop(&loop.timers, &timer);
}

static void tasks_submitted_or_deferred_before_are_not_slept_on(void **state)
{
	uint64_t until_ns;

	(void)state;
	wf_loop_submit(&loop, &task);
	assert_int_equal(wf_loop_arm(&loop, &until_ns), -EAGAIN);
	wf_loop_poll(&loop);
	wf_loop_defer(&loop, &notice);
	assert_int_equal(wf_loop_arm(&loop, &until_ns), -EAGAIN);
	wf_loop_poll(&loop);
	assert_int_equal(wf_loop_arm(&loop, &until_ns), 0);
	wf_loop_woken(&loop);
}

static void a_readable_descriptor_ends_the_sleep_and_is_named(void **state)
{
	uint64_t until_ns;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(wf_poller_add(&loop.poller, ends[0], TAG, 77), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(wf_loop_arm_fd(&loop, &until_ns), -EAGAIN);
	assert_int_equal(count_of("readable"), 1);
	assert_int_equal(read_tag, TAG);
	assert_int_equal(read_value, 77);
	wf_poller_remove(&loop.poller, ends[0]);
	close(ends[0]);
	close(ends[1]);
}

static void a_program_that_sleeps_on_the_descriptor_is_woken_for_a_timer(void **state)
{
	struct pollfd fd = { .fd = wf_loop_fd(&loop), .events = POLLIN };
	uint64_t until_ns;

	(void)state;
	wf_loop_timer(&loop, &timer, loop.now_ns + 5 * WF_NS_PER_MS, fire);
	assert_int_equal(wf_loop_arm_fd(&loop, &until_ns), 0);
	assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
	wf_loop_woken(&loop);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(wf_loop_poll(&loop), 1);
	assert_int_equal(count_of("timer"), 1);
}

static void a_client_hears_that_it_has_not_looked_for_10_ms(void **state)
{
	uint64_t looked_ns = loop.now_ns;

	(void)state;
	wf_loop_tick_at(&loop, looked_ns + 10 * WF_NS_PER_MS - 1);
	assert_int_equal(still_ns, 0);
	wf_loop_tick_at(&loop, looked_ns + 10 * WF_NS_PER_MS);
	assert_int_equal(still_ns, 10 * WF_NS_PER_MS);
}

/* A program may call functions of its node and never poll: no peer gets an answer meanwhile. */
static void time_without_a_look_adds_up_over_ticks_until_a_turn_looks(void **state)
{
	uint64_t looked_ns = loop.now_ns;

	(void)state;
	for (unsigned ms = 1; ms <= 400; ms++) {
		wf_loop_tick_at(&loop, looked_ns + ms * WF_NS_PER_MS);
		assert_true(ms < 10 || still_ns + still_ns / 8 + WF_NS_PER_MS >= ms * WF_NS_PER_MS);
	}
	wf_loop_poll(&loop);
	still_ns = 0;
	wf_loop_tick_at(&loop, loop.now_ns + 10 * WF_NS_PER_MS - 1);
	assert_int_equal(still_ns, 0);
}

static void be_forked(struct wf_loop_notice *n)
{
	(void)n;
	note("fork");
	wf_loop_forked(&loop);
}

static void a_forked_child_tells_nothing_more_and_waits_no_more(void **state)
{
	struct wf_loop_notice fork = { .run = be_forked };

	(void)state;
	wf_loop_defer(&loop, &fork);
	wf_loop_defer(&loop, &notice);
	assert_int_equal(wf_loop_wait(&loop, wf_clock_now() + LIMIT_NS), 1);
	assert_string_equal(turns(), "begin send poll fork ");
	assert_int_equal(wf_loop_fd(&loop), -1);
}

static void a_child_that_a_guest_forks_does_not_turn_the_loop_again(void **state)
{
	struct wf_loop_notice fork = { .run = be_forked };

	(void)state;
	wf_loop_defer(&loop, &fork);
	assert_false(wf_loop_spin(&loop));
	assert_string_equal(turns(), "begin send poll fork ");
}

#define ON_ONE_OF_ITS_OWN(test) cmocka_unit_test_setup_teardown(test, open_loop, close_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ONE_OF_ITS_OWN(
			a_turn_runs_timers_then_tasks_then_notices_and_sends_first_and_last),
		ON_ONE_OF_ITS_OWN(
			a_notice_and_a_task_that_a_notice_leaves_run_in_its_turn),
		ON_ONE_OF_ITS_OWN(a_loop_is_pressed_until_it_has_run_all_notices_but_the_quiet),
		ON_ONE_OF_ITS_OWN(a_time_before_the_last_turn_does_not_turn_the_clock_back),
		ON_ONE_OF_ITS_OWN(a_long_list_of_notices_takes_turns_that_look_at_the_wire),
		ON_ONE_OF_ITS_OWN(a_long_list_of_tasks_takes_turns_that_look_at_the_wire),
		ON_ONE_OF_ITS_OWN(timers_that_are_due_at_once_take_turns_that_look_at_the_wire),
		ON_ONE_OF_ITS_OWN(a_task_that_submits_itself_again_does_not_hold_the_turn),
		ON_ONE_OF_ITS_OWN(outside_a_turn_it_drains_until_nothing_is_left),
		ON_ONE_OF_ITS_OWN(a_wait_in_vain_lasts_until_its_time_and_disarms_the_client),
		ON_ONE_OF_ITS_OWN(a_task_of_another_thread_ends_the_sleep),
		ON_ONE_OF_ITS_OWN(a_timer_ends_the_sleep),
		ON_ONE_OF_ITS_OWN(a_client_that_needs_a_turn_is_not_slept_on),
		ON_ONE_OF_ITS_OWN(a_sleep_is_as_short_as_the_client_and_the_next_timer_say),
		ON_ONE_OF_ITS_OWN(tasks_submitted_or_deferred_before_are_not_slept_on),
		ON_ONE_OF_ITS_OWN(a_readable_descriptor_ends_the_sleep_and_is_named),
		ON_ONE_OF_ITS_OWN(a_program_that_sleeps_on_the_descriptor_is_woken_for_a_timer),
		ON_ONE_OF_ITS_OWN(a_client_hears_that_it_has_not_looked_for_10_ms),
		ON_ONE_OF_ITS_OWN(time_without_a_look_adds_up_over_ticks_until_a_turn_looks),
		ON_ONE_OF_ITS_OWN(a_forked_child_tells_nothing_more_and_waits_no_more),
		ON_ONE_OF_ITS_OWN(a_child_that_a_guest_forks_does_not_turn_the_loop_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
