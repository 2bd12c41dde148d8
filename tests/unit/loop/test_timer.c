/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/timer.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define TIMERS 48

/* What should be true of each timer, kept without any heap. */
struct model {
	struct wf_timer timer;
	uint64_t at_ns;
	bool armed;
	bool later; /* armed during this run, so not to be fired by it */
};

static struct wf_timers timers;
static struct model models[TIMERS];
static uint64_t now_ns, last_ns, seed;
static bool running;

static uint64_t draw(uint64_t below)
{
	/* xorshift64: the same run every time */
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void fired(struct wf_timer *timer);

static void arm(struct model *m, uint64_t at_ns)
{
	wf_timer_arm(&timers, &m->timer, at_ns, fired);
	m->at_ns = at_ns;
	m->armed = true;
	m->later = running;
}

static void stop(struct model *m)
{
	wf_timer_stop(&timers, &m->timer);
	m->armed = false;
}

static uint64_t next_of_models(void)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < TIMERS; i++)
		if (models[i].armed && models[i].at_ns < next_ns)
			next_ns = models[i].at_ns;
	return next_ns;
}

/* Arm or stop one at random, some in the past, many at the same time. */
static void disturb(void)
{
	struct model *m = &models[draw(TIMERS)];

	if (draw(4) == 0)
		stop(m);
	else
		arm(m, now_ns + draw(64) - WF_MIN(now_ns, 8));
	assert_int_equal(m->timer.armed, m->armed);
	assert_int_equal(wf_timer_next_ns(&timers), next_of_models());
}

static void fired(struct wf_timer *timer)
{
	struct model *m = WF_CONTAINER(timer, struct model, timer);

	assert_true(m->armed);
	assert_false(m->later);
	assert_false(timer->armed);
	assert_in_range(m->at_ns, last_ns, now_ns);
	last_ns = m->at_ns;
	m->armed = false;

	if (draw(4) == 0)
		arm(m, now_ns - WF_MIN(now_ns, draw(4)));
	if (draw(2) == 0)
		disturb();
}

static void any_mix_of_calls_fires_what_is_due_in_order(void **state)
{
	size_t total = 0;

	(void)state;
	seed = 20;
	now_ns = 1;
	for (int round = 0; round < 5000; round++) {
		for (uint64_t n = draw(12); n > 0; n--)
			disturb();

		now_ns += draw(24);
		last_ns = 0;
		running = true;
		total += wf_timer_run(&timers, now_ns, SIZE_MAX);
		running = false;

		for (size_t i = 0; i < TIMERS; i++) {
			struct model *m = &models[i];

			assert_false(m->armed && !m->later && m->at_ns <= now_ns);
			m->later = false;
		}
		assert_int_equal(wf_timer_next_ns(&timers), next_of_models());
	}
	assert_true(total > 10000); /* the mix did fire timers */
}

static int fire_count;

static void count_and_rearm(struct wf_timer *t)
{
	fire_count++;
	wf_timer_arm(&timers, t, 0, count_and_rearm);
}

static void a_timer_that_is_always_due_fires_once_a_call(void **state)
{
	struct wf_timer t = { 0 };

	(void)state;
	timers = (struct wf_timers){ 0 };
	fire_count = 0;
	wf_timer_arm(&timers, &t, 5, count_and_rearm);
	assert_int_equal(wf_timer_run(&timers, 4, SIZE_MAX), 0);
	assert_int_equal(wf_timer_run(&timers, 5, SIZE_MAX), 1);
	assert_int_equal(wf_timer_run(&timers, 5, SIZE_MAX), 1);
	assert_int_equal(fire_count, 2);
	assert_int_equal(wf_timer_next_ns(&timers), 0);
}

static void count_one(struct wf_timer *t)
{
	(void)t;
	fire_count++;
}

static void timers_due_beyond_the_most_of_a_call_fire_in_the_next(void **state)
{
	struct wf_timer many[5] = { 0 };

	(void)state;
	timers = (struct wf_timers){ 0 };
	fire_count = 0;
	for (size_t i = 0; i < WF_COUNT(many); i++)
		wf_timer_arm(&timers, &many[i], 5 - i, count_one);
	assert_int_equal(wf_timer_run(&timers, 5, 3), 3);
	assert_int_equal(fire_count, 3);
	assert_int_equal(wf_timer_next_ns(&timers), 4);
	assert_int_equal(wf_timer_run(&timers, 5, 3), 2);
	assert_int_equal(wf_timer_next_ns(&timers), UINT64_MAX);
}

static struct wf_timer pair[2];

static void stop_the_other(struct wf_timer *t)
{
	fire_count++;
	wf_timer_stop(&timers, t == &pair[0] ? &pair[1] : &pair[0]);
}

static void a_due_timer_stopped_by_another_does_not_fire(void **state)
{
	(void)state;
	timers = (struct wf_timers){ 0 };
	fire_count = 0;
	wf_timer_arm(&timers, &pair[0], 3, stop_the_other);
	wf_timer_arm(&timers, &pair[1], 3, stop_the_other);
	assert_int_equal(wf_timer_run(&timers, 3, SIZE_MAX), 1);
	assert_int_equal(fire_count, 1);
	assert_int_equal(wf_timer_next_ns(&timers), UINT64_MAX);
}

static void forget(struct wf_timer *t)
{
	/* The owner may free it now: whoever still reads it meets nonsense. */
	memset(t, 0xff, sizeof(*t));
	fire_count++;
}

static void a_fired_timer_is_not_touched_again(void **state)
{
	struct wf_timer many[100] = { 0 };

	(void)state;
	timers = (struct wf_timers){ 0 };
	fire_count = 0;
	for (size_t i = 0; i < WF_COUNT(many); i++)
		wf_timer_arm(&timers, &many[i], i % 7, forget);
	assert_int_equal(wf_timer_run(&timers, 7, SIZE_MAX), WF_COUNT(many));
	assert_int_equal(fire_count, WF_COUNT(many));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_mix_of_calls_fires_what_is_due_in_order),
		cmocka_unit_test(a_timer_that_is_always_due_fires_once_a_call),
		cmocka_unit_test(timers_due_beyond_the_most_of_a_call_fire_in_the_next),
		cmocka_unit_test(a_due_timer_stopped_by_another_does_not_fire),
		cmocka_unit_test(a_fired_timer_is_not_touched_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
