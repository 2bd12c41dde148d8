/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seeds beyond the first thousand of test_random: those that failed once, and some
 * with nodes of several workers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/sim/seeds.h"

/* With one worker each. */
static const uint64_t known[] = {
	44,   /* a new link died when its only rail failed once */
	182,  /* an offer that was withdrawn while the rail failed waited there for ever */
	263,  /* of twenty nodes the last to come got no credit */
	669,  /* a door that was reset in the middle of the first handshake cost all operations */
	3231, /* the same, in the second attempt */
	3728, /* word of a failed rail was lost with the door */
	4078, /* a node closed, and a peer of the same host read on */
	6319, /* a pong of an earlier connection made a link look up */
	158,  /* what waited for memory never ended when its node closed */
	1667, /* the pong of an earlier life made a new one wait for a redial */
	2406, /* a handler began while its node closed */
	11110, /* a rail came up while a node closed, and it made its last offers there */
	16461, /* a pong came after the end of its connection */
	21252, /* a pull that was taken back while it stopped ended too late */
	29556, /* who was dialled gave up, and who dialled read on */
	28725, /* a rail was opened anew between two hellos, and the peer kept its old address */
	51399, /* who had stood still read pool memory by the key of its slab, and it was another tensor */
	235227, /* who dialled gave up before who was dialled, and that one read on */
	611,  /* a stream broke while its link died, which was told to cancel the call, and kept it */
	4008596, /* a read of a stream went on after the deadline of its call, which had ended well */
	104119, /* a stream got its turn while its node closed, and kept what had come */
	106500, /* a stream broke, and a message waited for what went beside it, beyond its call */
	111839, /* a call's time passed while its good end waited for messages, and a frozen caller heard that end */
	420536, /* there was no memory to send an attachment, nor to say that it would not come */
	1795371375, /* the fake fabric read memory for a process that had died */
	22913, /* a peer was restarted and died while a call waited for its next attempt */
	5282, /* a link without a slot got none when another had used up more than its share */
	33770, /* a receive named a peer by a link that was another name of one, and was freed meanwhile */
	56265, /* a node closed over messages whose attachments were offered, and kept the answers */
	78943, /* a tensor was looked at by the receive that gave it back and by the next, with one lock */
	6198, /* a cancel overtook the last frame of its call, which waited for what never went beside it */
	226539, /* two short spells of errors, while a reader waited for its offer, ended its pull */
	72099, /* a link came up between the offer of a proof and the answer, and one peer stayed two */
	1795263167, /* a control frame that a shared rail delivered twice */
	3445, /* credits were given back in a control frame that waited for a lost answer, too long */
	13170, /* a get missed its deadline while its window closed, and was cancelled by nobody */
	23522, /* a relay was cancelled, and ended its own reads first and those of others then */
	1795767989, /* a step ended at a relay, whose own reads ended first and those of others then */
	1795817032, /* two links became one while a put ran, which did not hear then that its peer had gone */
	1795831786, /* a put was late with half of its record out, and the rest let the owner read what was given back */
	39526, /* pushes were late, each asked for slots anew, and the owner refused the fifth time */
	74,   /* peers of a shared rail reopened it for each other's pings, for ever */
	1796088662, /* who stood still was called twice without a poll, and read pool memory given to others */
	4040264, /* there was no memory to say that an attachment would not come, and its reader waited */
};

static void seeds_that_failed_once_do_not_again(void **state)
{
	const struct wf_seeds_plan plan = { .workers = 1, .jobs = 1 };
	uint64_t failures = 0;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(known); i++)
		failures += wf_seeds_run(known[i], 1, &plan);
	assert_int_equal(failures, 0);
}

static void nor_do_they_break_where_nodes_have_several_workers(void **state)
{
	struct wf_seeds_plan plan = { .jobs = WF_SEEDS_JOBS };
	uint64_t failures = 0;

	(void)state;
	for (plan.workers = 2; plan.workers <= 3; plan.workers++)
		failures += wf_seeds_run(1, 200, &plan);
	plan.workers = 3;
	/* A closing node waited for one worker's offers, and did not poll the others. */
	failures += wf_seeds_run(1590, 1, &plan);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_that_failed_once_do_not_again),
		cmocka_unit_test(nor_do_they_break_where_nodes_have_several_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
