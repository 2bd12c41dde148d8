/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/sender_sums.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "util/checksum.h"
#include "util/clock.h"

#define LIMIT_NS (30 * WF_NS_PER_S) /* for what takes milliseconds on an idle machine */
#define BYTES (7 * MIB + 123)       /* the last piece is short */
#define PIECES 8
#define READER 5

/* In one record. */
_Static_assert(WF_RECORD_SUMS_MAX == 4, "the tests expect four at a time");

static uint8_t body[BYTES];
static struct wf_loop loop; /* its timers and its clock, which the tests move */
static struct wf_sender_sums_common summers;
static struct wf_sender_sums *summing;

/* Records that the reader was told. */
static struct wf_record_sums told[4];
static uint32_t told_count;
static unsigned refusals; /* how often there is no memory to tell it */
static unsigned moves;

static int tell(struct wf_sender_sums *s, const struct wf_record_sums *record)
{
	assert_ptr_equal(s->owner, told);
	if (refusals) {
		refusals--;
		return -ENOMEM;
	}
	assert_true(told_count < WF_COUNT(told));
	told[told_count++] = *record;
	return 0;
}

static void moved(struct wf_sender_sums *s)
{
	(void)s;
	moves++;
}

static int set_up_with(bool helper)
{
	for (size_t i = 0; i < BYTES; i++)
		body[i] = (uint8_t)(i * 31 + i / 4093);
	loop = (struct wf_loop){ .now_ns = WF_NS_PER_S };
	told_count = 0;
	refusals = moves = 0;
	wf_sender_sums_init(&summers, &loop, helper);
	summing = wf_sender_sums_open(&summers, told, tell);
	return summing ? 0 : -1;
}

static int set_up(void **state)
{
	(void)state;
	return set_up_with(false);
}

static int set_up_helper(void **state)
{
	(void)state;
	return set_up_with(true);
}

static int tear_down(void **state)
{
	(void)state;
	wf_sender_sums_close(summing);
	wf_sender_sums_fini(&summers);
	assert_int_equal(wf_timer_next_ns(&loop.timers), UINT64_MAX);
	return 0;
}

/* Turns of the loop, 1 ms apart, until nothing is left to do. */
static void turn_all(void)
{
	while (wf_timer_next_ns(&loop.timers) != UINT64_MAX) {
		loop.now_ns += WF_NS_PER_MS;
		wf_timer_run(&loop.timers, loop.now_ns, SIZE_MAX);
	}
}

static void assert_sums(const struct wf_record_sums *r, uint32_t first, uint32_t count)
{
	assert_int_equal(r->pull, READER);
	assert_int_equal(r->first, first);
	assert_int_equal(r->count, count);
	for (uint32_t i = first; i < first + count; i++)
		assert_true(r->sums[i - first] ==
			    wf_checksum(body + i * MIB, WF_MIN(MIB, BYTES - i * MIB)));
}

static void nothing_is_summed_up_before_a_reader_asks(void **state)
{
	(void)state;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	assert_int_equal(wf_timer_next_ns(&loop.timers), UINT64_MAX);
	assert_int_equal(wf_sender_sums_over(summing), 0);
}

static void each_question_is_answered_with_one_record(void **state)
{
	(void)state;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	wf_sender_sums_ask(summing, BYTES, READER);
	turn_all();
	assert_int_equal(told_count, 1);
	assert_sums(&told[0], 0, 4);
	wf_sender_sums_ask(summing, BYTES, READER);
	turn_all();
	assert_int_equal(told_count, 2);
	assert_sums(&told[1], 4, 4);
}

static void a_reader_that_asks_for_more_than_there_is_is_told_no_more(void **state)
{
	(void)state;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	for (int i = 0; i < 10; i++)
		wf_sender_sums_ask(summing, BYTES, READER);
	turn_all();
	assert_int_equal(told_count, 2);
	assert_int_equal(wf_sender_sums_over(summing), BYTES);
}

static void another_reader_is_told_nothing(void **state)
{
	(void)state;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	wf_sender_sums_ask(summing, BYTES, READER);
	wf_sender_sums_ask(summing, BYTES, READER + 1);
	turn_all();
	assert_int_equal(told_count, 1);
}

static void pieces_that_are_not_there_yet_are_waited_for(void **state)
{
	(void)state;
	wf_sender_sums_ready(summing, body, BYTES, 2 * MIB + 1);
	wf_sender_sums_ask(summing, BYTES, READER);
	turn_all();
	assert_int_equal(told_count, 0);
	assert_int_equal(wf_sender_sums_over(summing), 2 * MIB);
	wf_sender_sums_ready(summing, body, BYTES, 4 * MIB);
	turn_all();
	assert_int_equal(told_count, 1);
	assert_sums(&told[0], 0, 4);
}

static void a_body_that_passes_through_a_small_room_has_the_sums_of_the_whole(void **state)
{
	static uint8_t buffer[2 * MIB];

	(void)state;
	wf_sender_sums_ask(summing, BYTES, READER);
	wf_sender_sums_ask(summing, BYTES, READER);
	for (size_t at = 0; at < BYTES; at += MIB) {
		size_t bytes = WF_MIN(MIB, BYTES - at);

		memcpy(buffer + at % sizeof(buffer), body + at, bytes);
		wf_sender_sums_ready(summing, buffer, sizeof(buffer), at + bytes);
		turn_all();
	}
	assert_int_equal(told_count, 2);
	assert_sums(&told[0], 0, 4);
	assert_sums(&told[1], 4, 4);
}

static void without_memory_for_a_record_it_is_told_later(void **state)
{
	(void)state;
	refusals = 3;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	wf_sender_sums_ask(summing, BYTES, READER);
	turn_all();
	assert_int_equal(refusals, 0);
	assert_int_equal(told_count, 1);
	assert_sums(&told[0], 0, 4);
}

static void without_a_helper_a_turn_sums_up_one_piece(void **state)
{
	(void)state;
	summing->moved = moved;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	wf_sender_sums_ask(summing, BYTES, READER);
	wf_timer_run(&loop.timers, loop.now_ns, SIZE_MAX);
	assert_int_equal(wf_sender_sums_over(summing), MIB);
	turn_all();
	assert_int_equal(moves, 4);
}

static void a_helper_sums_up_the_same(void **state)
{
	uint64_t limit_ns = wf_clock_now() + LIMIT_NS;

	(void)state;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	wf_sender_sums_ask(summing, BYTES, READER);
	wf_sender_sums_ask(summing, BYTES, READER);
	while (told_count < 2) {
		assert_true(wf_clock_now() < limit_ns);
		loop.now_ns += WF_NS_PER_MS;
		wf_timer_run(&loop.timers, loop.now_ns, SIZE_MAX);
		sched_yield();
	}
	assert_sums(&told[0], 0, 4);
	assert_sums(&told[1], 4, 4);
}

static void a_body_is_touched_no_more_once_it_is_stopped(void **state)
{
	(void)state;
	wf_sender_sums_ready(summing, body, BYTES, BYTES);
	wf_sender_sums_ask(summing, BYTES, READER);
	wf_timer_run(&loop.timers, loop.now_ns, SIZE_MAX);
	wf_sender_sums_stop(summing);
	assert_false(summing->aside);
	assert_int_equal(wf_timer_next_ns(&loop.timers), UINT64_MAX);
	memset(body, 0, sizeof(body)); /* the thread sanitizer would see a reader */
}

#define ALONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define WITH_A_HELPER(test) cmocka_unit_test_setup_teardown(test, set_up_helper, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(nothing_is_summed_up_before_a_reader_asks),
		ALONE(each_question_is_answered_with_one_record),
		ALONE(a_reader_that_asks_for_more_than_there_is_is_told_no_more),
		ALONE(another_reader_is_told_nothing),
		ALONE(pieces_that_are_not_there_yet_are_waited_for),
		ALONE(a_body_that_passes_through_a_small_room_has_the_sums_of_the_whole),
		ALONE(without_memory_for_a_record_it_is_told_later),
		ALONE(without_a_helper_a_turn_sums_up_one_piece),
		WITH_A_HELPER(a_helper_sums_up_the_same),
		WITH_A_HELPER(a_body_is_touched_no_more_once_it_is_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
