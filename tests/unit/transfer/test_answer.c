/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/answer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#define FEW 1000
#define MANY 1000000

/*
 * What the same work may take longer beside MANY offers than beside FEW, in one process: a walk
 * over them would take 1000 times as long; misses of caches are seen to make it 2.5, and other
 * tests beside it 11.
 */
#define SLOWER_MAX 100

static struct wf_directory directory;
static struct wf_engine engine;
static struct wf_link links[2];
static unsigned withdrawn_count, lost_count;

static void withdrawn(struct wf_answer *answer)
{
	withdrawn_count++;
	wf_answer_close(answer);
}

static void lost(struct wf_answer *answer, const struct wf_error *e)
{
	(void)e;
	lost_count++;
	wf_answer_close(answer);
}

static const struct wf_answer_keeper keeper = { .withdrawn = withdrawn, .lost = lost };

static struct wf_answer *open_offer(struct wf_link *link, uint64_t offer)
{
	struct wf_answer *answer;

	assert_int_equal(wf_answer_open(link, &(struct wf_body){ .offer = offer }, &answer), 0);
	answer->keeper = &keeper;
	return answer;
}

/* Links that have no rail, so that what is said to their peers stays in their queues. */
static int set_up(void **state)
{
	(void)state;
	withdrawn_count = lost_count = 0;
	engine.directory = &directory;
	for (size_t i = 0; i < WF_COUNT(links); i++) {
		links[i] = (struct wf_link){ .engine = &engine, .state = WF_LINK_TRYING,
					     .refs = 1 };
		wf_tx_init(&links[i].out);
		wf_map_init(&links[i].offers.map);
		wf_list_init(&links[i].offers.all);
	}
	return 0;
}

static size_t drop_words(struct wf_link *link)
{
	struct wf_list *node;
	size_t count = 0;

	while ((node = wf_list_pop(&link->out.controls))) {
		struct wf_message_control *c = WF_CONTAINER(node, struct wf_message_control, node);

		assert_int_equal(c->type, WF_RECORD_WITHDRAWN);
		c->sent(c, NULL);
		count++;
	}
	while ((node = wf_list_pop(&link->out.queues[0]))) {
		struct wf_message *m = WF_CONTAINER(node, struct wf_message, node);

		assert_int_equal(m->type, WF_RECORD_PULLED);
		m->sent(m, NULL);
		count++;
	}
	return count;
}

static int tear_down(void **state)
{
	const struct wf_error e = { .code = -ENOTCONN };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(links); i++) {
		wf_answers_lost(&links[i], &e);
		drop_words(&links[i]);
		wf_map_fini(&links[i].offers.map);
	}
	return 0;
}

static void an_offer_is_withdrawn_by_the_peer_that_made_it_alone(void **state)
{
	(void)state;
	open_offer(&links[0], 7);
	open_offer(&links[1], 7);
	open_offer(&links[1], 8);

	assert_int_equal(wf_answers_withdraw(&links[0], 7), 0);
	assert_int_equal(withdrawn_count, 1);
	assert_int_equal(links[0].offers.map.count, 0);
	assert_int_equal(links[1].offers.map.count, 2);

	/* Over, or never made: it is answered all the same. */
	assert_int_equal(wf_answers_withdraw(&links[0], 7), 0);
	assert_int_equal(wf_answers_withdraw(&links[0], 8), 0);
	assert_int_equal(withdrawn_count, 1);
	assert_int_equal(drop_words(&links[0]), 2);
}

static void an_offer_that_is_not_over_can_not_be_made_again(void **state)
{
	struct wf_answer *answer, *second = NULL;

	(void)state;
	answer = open_offer(&links[0], 7);
	assert_int_equal(wf_answer_open(&links[0], &(struct wf_body){ .offer = 7 }, &second), -EBADMSG);
	assert_null(second);

	wf_answer_pulled(answer, &links[0], WEFT_OK);
	answer = open_offer(&links[0], 7);
	wf_answer_withdrawn(answer, &links[0]);
	answer = open_offer(&links[0], 7);
	wf_answer_close(answer);
	open_offer(&links[0], 7);
	assert_int_equal(drop_words(&links[0]), 2);
}

static void offers_end_with_their_peer_and_leave_no_memory(void **state)
{
	const struct wf_error e = { .code = -ENOTCONN };

	(void)state;
	for (uint64_t offer = 1; offer <= FEW; offer++)
		open_offer(&links[0], offer);
	open_offer(&links[1], 1);

	wf_answers_lost(&links[0], &e);
	assert_int_equal(lost_count, FEW);
	assert_int_equal(links[0].offers.map.bucket_count, 1);
	assert_true(wf_list_empty(&links[0].offers.all));
	assert_int_equal(links[1].offers.map.count, 1);
	open_offer(&links[0], 1); /* by another life of the peer's */
}

/* Of rounds of the work, the fastest: others share the processor. */
static uint64_t work_ns(struct wf_link *link)
{
	struct timespec from, to;
	uint64_t best = UINT64_MAX, ns;

	for (unsigned round = 0; round < 9; round++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		for (uint64_t i = 0; i < FEW; i++)
			assert_int_equal(wf_answers_withdraw(link, UINT64_MAX - i), 0);
		for (uint64_t i = 0; i < FEW; i++)
			wf_answer_close(open_offer(link, (uint64_t)2 * MANY + i));
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		drop_words(link);
		ns = (uint64_t)(to.tv_sec - from.tv_sec) * WF_NS_PER_S + (uint64_t)to.tv_nsec -
		     (uint64_t)from.tv_nsec;
		best = WF_MIN(best, ns);
	}
	return best;
}

static void an_offer_waits_while_a_stranger_takes_no_answers(void **state)
{
	const struct wf_body body = { .way = WF_BODY_PULL, .bytes = 1, .offer = 2 };
	struct wf_answer *answer;

	(void)state;
	links[0].account.stranger = true;
	wf_ledger_charge(&links[0], WF_LEDGER_OWED, MIB);
	assert_int_equal(wf_answer_meet(&links[0], &body, &answer), -ENOMEM);
	wf_ledger_discharge(&links[0], WF_LEDGER_OWED, MIB);
	assert_int_equal(wf_answer_meet(&links[0], &body, &answer), 0);
	wf_answer_close(answer);
}

static void an_offer_costs_the_same_beside_a_million(void **state)
{
	uint64_t few_ns, many_ns;

	(void)state;
	for (uint64_t offer = 1; offer <= FEW; offer++)
		open_offer(&links[0], offer);
	few_ns = work_ns(&links[0]);
	for (uint64_t offer = FEW + 1; offer <= MANY; offer++)
		open_offer(&links[0], offer);
	many_ns = work_ns(&links[0]);
	print_message("%llu ns beside %d offers, %llu beside %d\n", (unsigned long long)few_ns, FEW,
		      (unsigned long long)many_ns, MANY);
	assert_true(many_ns < SLOWER_MAX * few_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_offer_is_withdrawn_by_the_peer_that_made_it_alone,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_offer_that_is_not_over_can_not_be_made_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(offers_end_with_their_peer_and_leave_no_memory,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_offer_waits_while_a_stranger_takes_no_answers, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_offer_costs_the_same_beside_a_million, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
