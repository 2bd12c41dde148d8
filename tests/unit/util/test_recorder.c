/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct wf_recorder recorder;

static void begin(void)
{
	memset(&recorder, 0, sizeof(recorder));
}

static void events_are_read_in_the_order_they_were_written(void **state)
{
	struct wf_recorder_event e;

	(void)state;
	begin();
	for (uint64_t i = 0; i < 10; i++) {
		wf_recorder_turn(&recorder, 100 + i);
		wf_recorder_add(&recorder, WF_RECORDER_FRAME_OUT, 7, i, 2 * i);
	}

	assert_int_equal(wf_recorder_first(&recorder), 0);
	assert_int_equal(wf_recorder_last(&recorder), 10);
	for (uint64_t i = 0; i < 10; i++) {
		assert_true(wf_recorder_get(&recorder, i, &e));
		assert_int_equal(e.time_ns, 100 + i);
		assert_int_equal(e.kind, WF_RECORDER_FRAME_OUT);
		assert_int_equal(e.link, 7);
		assert_int_equal(e.a, i);
		assert_int_equal(e.b, 2 * i);
	}
}

static void a_full_ring_keeps_the_newest(void **state)
{
	uint64_t all = 3 * WF_RECORDER_EVENTS + 5;
	struct wf_recorder_event e;

	(void)state;
	begin();
	for (uint64_t i = 0; i < all; i++)
		wf_recorder_add(&recorder, WF_RECORDER_FRAME_IN, 1, i, i);

	assert_int_equal(wf_recorder_first(&recorder), all - WF_RECORDER_EVENTS);
	assert_int_equal(wf_recorder_last(&recorder), all);
	for (uint64_t i = all - WF_RECORDER_EVENTS + 1; i < all; i++) {
		assert_true(wf_recorder_get(&recorder, i, &e));
		assert_int_equal(e.a, i);
	}
	/* Its place is the next to be written, so it may be half gone. */
	assert_false(wf_recorder_get(&recorder, all - WF_RECORDER_EVENTS, &e));
	assert_false(wf_recorder_get(&recorder, 0, &e));
}

static void every_kind_has_a_text(void **state)
{
	char text[WF_RECORDER_TEXT_BYTES];

	(void)state;
	for (unsigned kind = 0; kind < WF_RECORDER_KINDS; kind++) {
		struct wf_recorder_event e = { .kind = kind, .a = UINT64_MAX, .b = UINT64_MAX };

		memset(text, 0, sizeof(text));
		wf_recorder_text(&e, text);
		assert_true(strlen(text) > 0);
		assert_true(strlen(text) < sizeof(text) - 1);
	}
}

static void a_text_names_link_numbers_and_code(void **state)
{
	struct wf_recorder_event e = {
		.kind = WF_RECORDER_READ_FAILED, .link = 3, .a = 65536, .b = (uint64_t)-EIO,
	};
	char text[WF_RECORDER_TEXT_BYTES];

	(void)state;
	wf_recorder_text(&e, text);
	assert_string_equal(text,
			    "link 3: a read of 65536 bytes has failed: Input/output error");
	e = (struct wf_recorder_event){ .kind = WF_RECORDER_OP_END, .a = 5 };
	wf_recorder_text(&e, text);
	assert_string_equal(text, "operation 5 has ended");
}

static void without_a_recorder_nothing_happens(void **state)
{
	(void)state;
	wf_recorder_add(NULL, WF_RECORDER_UP, 1, 2, 3);
	wf_recorder_enter(NULL, "fi_send", "tcp");
	wf_recorder_leave(NULL);
}

static atomic_bool over;

/* Both numbers and the link of an event are the same here: a torn one would not be whole. */
static void *write_on(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; !atomic_load(&over); i++) {
		wf_recorder_turn(&recorder, i);
		wf_recorder_add(&recorder, WF_RECORDER_OFFER, (uint32_t)i, i, i);
	}
	return NULL;
}

static void a_reader_beside_the_writer_never_gets_a_torn_event(void **state)
{
	uint64_t whole = 0, gone = 0;
	struct wf_recorder_event e;
	pthread_t writer;

	(void)state;
	begin();
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&writer, NULL, write_on, NULL), 0);
	/* Newest first, for a writer that does nothing else soon laps who begins with the oldest. */
	while (wf_recorder_last(&recorder) < 200 * WF_RECORDER_EVENTS || whole < 100000) {
		uint64_t first = wf_recorder_first(&recorder);

		for (uint64_t n = wf_recorder_last(&recorder); n-- > first;) {
			if (!wf_recorder_get(&recorder, n, &e)) {
				gone++;
				continue;
			}
			whole++;
			assert_int_equal(e.a, n + 1);
			assert_int_equal(e.b, n + 1);
			assert_int_equal(e.time_ns, n + 1);
			assert_int_equal(e.link, (uint32_t)(n + 1));
		}
	}
	atomic_store(&over, true);
	assert_int_equal(pthread_join(writer, NULL), 0);
	printf("%llu events read whole, %llu overwritten meanwhile\n", (unsigned long long)whole,
	       (unsigned long long)gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_read_in_the_order_they_were_written),
		cmocka_unit_test(a_full_ring_keeps_the_newest),
		cmocka_unit_test(every_kind_has_a_text),
		cmocka_unit_test(a_text_names_link_numbers_and_code),
		cmocka_unit_test(without_a_recorder_nothing_happens),
		cmocka_unit_test(a_reader_beside_the_writer_never_gets_a_torn_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
