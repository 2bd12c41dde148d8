/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rpc/reply_cache.h"

/* Of a worker only what a caller's place in the directory needs. */
static struct wf_directory directory;
static struct wf_engine engine;
static struct wf_reply_cache replies;
static atomic_bool forgot;
static struct wf_server_call *const handler = (void *)&engine; /* never looked at */
static uint8_t body[2 * MIB];

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(wf_directory_init(&directory), 0);
	engine.directory = &directory;
	wf_directory_join(&directory, &engine);
	atomic_store(&forgot, false);
	memset(body, 'b', sizeof(body));
	wf_reply_cache_init(&replies, &engine, &forgot);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	wf_reply_cache_fini(&replies);
	assert_true(wf_list_empty(&directory.homes));
	wf_directory_fini(&directory);
	return 0;
}

static const uint8_t *caller(unsigned number)
{
	static uint8_t incarnation[WF_INCARNATION_BYTES];

	memset(incarnation, 0, sizeof(incarnation));
	memcpy(incarnation, &number, sizeof(number));
	return incarnation;
}

static struct wf_reply_cache_entry *begin(unsigned who, uint64_t id)
{
	struct wf_reply_cache_entry *q;

	assert_int_equal(wf_reply_cache_open(&replies, caller(who), id, handler, &q), 0);
	return q;
}

static void answer(unsigned who, uint64_t id, uint64_t bytes)
{
	struct wf_record_reply r = {
		.status = WEFT_OK, .text_bytes = 2, .text = (const uint8_t *)"no",
		.details_bytes = 3, .details = (const uint8_t *)"why",
		.body = { .bytes = bytes }, .eager = body,
	};

	wf_reply_cache_keep(&replies, begin(who, id), &r);
}

static bool is_here(unsigned who, uint64_t id)
{
	return wf_reply_cache_find(&replies, caller(who), id) != NULL;
}

static bool may_have_been(unsigned who, uint64_t id)
{
	return wf_reply_cache_had(&replies, caller(who), id);
}

static void a_request_is_found_while_it_is_handled_and_after(void **state)
{
	const struct wf_reply_cache_entry *q;

	(void)state;
	assert_false(is_here(1, 7));
	assert_ptr_equal(begin(1, 7)->served, handler);
	assert_ptr_equal(wf_reply_cache_find(&replies, caller(1), 7)->served, handler);
	answer(1, 8, 5);
	q = wf_reply_cache_find(&replies, caller(1), 8);
	assert_null(q->served);
	assert_string_equal((const char *)q->reply.text, "no");
	assert_memory_equal(q->reply.details, "why", 3);
	assert_int_equal(q->reply.body.bytes, 5);
	assert_memory_equal(q->reply.eager, "bbbbb", 5);
	assert_false(is_here(2, 7));
	assert_false(is_here(1, 9));
}

static void a_request_that_was_never_here_is_known_not_to_have_been(void **state)
{
	(void)state;
	assert_false(may_have_been(1, 7));
	answer(1, 7, 5);
	assert_false(may_have_been(1, 6));
	assert_false(may_have_been(2, 7));
}

static void a_request_that_was_not_handled_after_all_is_as_one_that_was_never_here(void **state)
{
	(void)state;
	wf_reply_cache_close(&replies, begin(1, 7));
	assert_false(is_here(1, 7));
	assert_false(may_have_been(1, 7));
}

static void the_oldest_replies_go_first(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= WF_REPLY_CACHE_MAX + 2; id++)
		answer(1, id, 5);
	assert_int_equal(replies.kept_count, WF_REPLY_CACHE_MAX);
	assert_false(is_here(1, 2));
	assert_true(is_here(1, 3));
	assert_true(may_have_been(1, 1));
	assert_true(may_have_been(1, 2));
	/* It did not go, and was not here. */
	assert_false(may_have_been(1, WF_REPLY_CACHE_MAX + 3));
}

static void replies_have_room_for_so_many_bytes(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 6; id++)
		answer(1, id, sizeof(body));
	assert_true(replies.kept_bytes <= WF_REPLY_CACHE_BYTES_MAX);
	assert_int_equal(replies.kept_count, 3);
	assert_false(is_here(1, 3));
	assert_true(is_here(1, 4));
}

static void a_request_that_is_handled_never_goes(void **state)
{
	(void)state;
	begin(1, 1);
	for (uint64_t id = 2; id <= 3 * WF_REPLY_CACHE_MAX; id++)
		answer(1, id, 5);
	assert_true(is_here(1, 1));
}

static void an_answer_that_is_lost_may_have_been(void **state)
{
	(void)state;
	wf_reply_cache_lose(&replies, begin(1, 7));
	assert_false(is_here(1, 7));
	assert_true(may_have_been(1, 7));
	assert_false(may_have_been(1, 8));
}

static void ids_may_wrap(void **state)
{
	(void)state;
	wf_reply_cache_lose(&replies, begin(1, UINT64_MAX));
	wf_reply_cache_lose(&replies, begin(1, 1));
	wf_reply_cache_lose(&replies, begin(1, UINT64_MAX - 1));
	assert_true(may_have_been(1, UINT64_MAX));
	assert_true(may_have_been(1, 1));
	assert_false(may_have_been(1, 2));
}

static void a_caller_that_had_to_be_forgotten_is_like_any_stranger(void **state)
{
	(void)state;
	for (unsigned who = 1; who <= WF_REPLY_CACHE_CALLERS_MAX; who++)
		wf_reply_cache_lose(&replies, begin(who, 7));
	assert_true(may_have_been(1, 7));
	assert_false(may_have_been(0, 7));
	wf_reply_cache_lose(&replies, begin(WF_REPLY_CACHE_CALLERS_MAX + 1, 7));
	/* Of whom nothing is known now, nobody can say that there was nothing. */
	assert_true(may_have_been(1, 8));
	assert_true(may_have_been(0, 7));
	assert_false(may_have_been(2, 8));
	assert_int_equal(replies.idle_count, WF_REPLY_CACHE_CALLERS_MAX);
}

static void a_caller_that_was_forgotten_and_comes_back_may_have_had_requests(void **state)
{
	(void)state;
	for (unsigned who = 1; who <= WF_REPLY_CACHE_CALLERS_MAX + 1; who++)
		wf_reply_cache_lose(&replies, begin(who, 7));
	answer(1, 9, 5);
	assert_true(may_have_been(1, 7));
	assert_true(is_here(1, 9));
	assert_false(may_have_been(1, 10));
}

static void a_caller_has_a_place_in_the_directory_as_long_as_it_is_known(void **state)
{
	uint8_t who[WF_INCARNATION_BYTES];

	(void)state;
	memcpy(who, caller(1), sizeof(who));
	assert_null(wf_directory_find(&directory, who));
	answer(1, 7, 5);
	assert_ptr_equal(wf_directory_find(&directory, who), &engine);
	for (uint64_t id = 1; id <= WF_REPLY_CACHE_MAX; id++)
		answer(2, id, 5);
	assert_false(is_here(1, 7));
	assert_ptr_equal(wf_directory_find(&directory, who), &engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_request_is_found_while_it_is_handled_and_after),
		TEST(a_request_that_was_never_here_is_known_not_to_have_been),
		TEST(a_request_that_was_not_handled_after_all_is_as_one_that_was_never_here),
		TEST(the_oldest_replies_go_first),
		TEST(replies_have_room_for_so_many_bytes),
		TEST(a_request_that_is_handled_never_goes),
		TEST(an_answer_that_is_lost_may_have_been),
		TEST(ids_may_wrap),
		TEST(a_caller_that_had_to_be_forgotten_is_like_any_stranger),
		TEST(a_caller_that_was_forgotten_and_comes_back_may_have_had_requests),
		TEST(a_caller_has_a_place_in_the_directory_as_long_as_it_is_known),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
