/* SPDX-License-Identifier: BSD-2-Clause */
/* What an operation asks of its way is met, or it fails and says why: never less in silence. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 300
#define BIG (3 * MIB + 17)
#define LONG (9 * MIB) /* more reads than are under way at once */

static uint8_t source[LONG], target[LONG];

static struct weft_op_options with(uint32_t flags, uint32_t rails_min, const char *provider)
{
	return (struct weft_op_options){
		.size = sizeof(struct weft_op_options), .timeout_ns = 20 * S, .flags = flags,
		.rails_min = rails_min, .provider = provider,
	};
}

static const struct weft_op_options nothing = { .size = sizeof(nothing), .timeout_ns = 20 * S };

static struct weft_tensor row_of(uint8_t *data, int64_t *shape)
{
	return (struct weft_tensor){
		.data = data, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
		.shape = shape,
	};
}

static struct weft_op *send(const struct weft_op_options *options, int64_t bytes)
{
	struct weft_send_options o = { .size = sizeof(o), .op = *options };
	struct weft_tensor t = row_of(source, &bytes);
	struct weft_op *op;

	assert_int_equal(weft_send(wf_world_peer(0, 1), 1, "k", 1, &t, &o, &op), 0);
	return op;
}

static struct weft_op *receive(const struct weft_op_options *options, int64_t bytes)
{
	struct weft_recv_options o = { .size = sizeof(o), .op = *options };
	struct weft_tensor t = row_of(target, &bytes);
	struct weft_op *op;

	assert_int_equal(weft_recv(wf_world_node(1), NULL, 1, "k", 1, &t, &o, &op), 0);
	return op;
}

static bool has_ended(void *op)
{
	return weft_op_ended(op);
}

/* Lets @op end and go; @words NULL: well, else it fails and says them. */
static void ends(struct weft_op *op, const char *words)
{
	assert_true(wf_world_run(has_ended, op, 30 * S));
	assert_int_equal(weft_op_status(op), words ? WEFT_FAILED_PRECONDITION : WEFT_OK);
	if (words && !strstr(weft_op_message(op), words))
		fail_msg("\"%s\" does not say \"%s\"", weft_op_message(op), words);
	weft_op_free(op);
}

/* A tensor of which the sender asks @options, then one of which the receiver does. */
static void tensors(const struct weft_op_options *options, int64_t bytes, const char *sent,
		    const char *received)
{
	struct weft_op *in, *out = send(options, bytes);

	if (sent) {
		ends(out, sent);
	} else {
		in = receive(&nothing, bytes);
		ends(out, NULL);
		ends(in, NULL);
	}
	out = send(&nothing, bytes);
	in = receive(options, bytes);
	ends(in, received);
	ends(out, NULL);
}

static void call(const struct weft_op_options *options, size_t bytes, const char *words)
{
	struct weft_call_options call_options = { .size = sizeof(call_options), .op = *options };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct weft_stub *stub;
	struct weft_op *op;

	question.body.data = source;
	question.body.len = bytes;
	assert_int_equal(weft_stub_open(wf_world_peer(0, 1), &sim__mirror__descriptor, &stub), 0);
	assert_int_equal(weft_call_open(stub, &call_options, &service, &op), 0);
	sim__mirror__reflect(service, &question, NULL, NULL);
	ends(op, words);
	weft_stub_close(stub);
}

static void ping(const struct weft_op_options *options, const char *words)
{
	struct weft_op *op;

	assert_int_equal(weft_ping(wf_world_peer(0, 1), options, &op), 0);
	ends(op, words);
}

static void all(const struct weft_op_options *options, const char *words, const char *received)
{
	tensors(options, SMALL, words, received);
	tensors(options, BIG, words, received);
	call(options, SMALL, words);
	call(options, BIG, words);
	ping(options, words);
}

static void a_provider_that_carries_it_is_no_matter(void **state)
{
	struct weft_op_options options = with(0, 1, "TCP");

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	all(&options, NULL, NULL);
	assert_int_equal(wf_world_close(), 0);
}

static void another_provider_is_refused(void **state)
{
	struct weft_op_options options = with(0, 0, "efa");

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	all(&options, "the link to n1 runs over tcp, not efa as asked: this node has no such rail",
	    "the link to n0 runs over tcp, not efa as asked: this node has no such rail");
	assert_int_equal(wf_world_close(), 0);
}

/* The name is the caller's only until the call returns. */
static void the_name_of_the_provider_is_copied(void **state)
{
	char name[] = "efa";
	struct weft_op_options options = with(0, 0, name);
	struct weft_op *op;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	op = send(&options, SMALL);
	memcpy(name, "tcp", sizeof(name));
	ends(op, "not efa as asked");
	assert_int_equal(wf_world_close(), 0);
}

static void fewer_rails_than_asked_for_are_refused(void **state)
{
	struct weft_op_options one = with(0, 1, NULL), two = with(0, 2, NULL);

	(void)state;
	wf_world_open(WF_WORLD_SHARED, 2, NULL);
	all(&one, NULL, NULL);
	all(&two, "2 rails were asked for, and the link to n1 runs over 1, efa",
	    "2 rails were asked for, and the link to n0 runs over 1, efa");
	assert_int_equal(wf_world_close(), 0);
}

/* Two nodes that have both rails that the fake offers; efa is the better one. */
static void open_both(void)
{
	wf_world_open(WF_WORLD_SHARED, 0, NULL);
	assert_int_equal(setenv("WEFT_PROVIDER", "efa,tcp", 1), 0);
	wf_world_add();
	wf_world_add();
}

static bool is_over_tcp(void *ctx)
{
	struct weft_path path = { .size = sizeof(path) };
	struct weft_op *op;

	(void)ctx;
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &nothing, &op), 0);
	assert_true(wf_world_run(has_ended, op, 30 * S));
	assert_int_equal(weft_op_path(op, &path), 0);
	weft_op_free(op);
	return !strcmp(path.provider, "tcp");
}

/* The better rail is dumb for as long as it is tried; the other one is not. */
static void fall_back(void)
{
	wf_fake_cut(0, 1, true);
	wf_world_pass(600 * MS);
	wf_fake_cut(0, 1, false);
	assert_true(wf_world_run(is_over_tcp, NULL, 30 * S));
}

static void a_fallback_is_refused_with_its_reason(void **state)
{
	struct weft_op_options options = with(WEFT_STRICT_NO_FALLBACK, 0, NULL);
	struct weft_op *op;

	(void)state;
	open_both();
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &nothing, &op), 0);
	fall_back();
	ends(op, NULL);
	all(&nothing, NULL, NULL);
	all(&options, "the link to n1 runs over tcp, not efa, and no fallback was asked for: "
		      "efa: no answer to a ping in time",
	    "the link to n0 runs over tcp, not efa, and no fallback was asked for: "
	    "the node that dialled has taken another");
	assert_int_equal(wf_world_close(), 0);
}

static void the_best_rail_is_no_fallback(void **state)
{
	struct weft_op_options options = with(WEFT_STRICT_NO_FALLBACK, 0, NULL);
	struct weft_op_options other = with(0, 0, "tcp");

	(void)state;
	open_both();
	all(&options, NULL, NULL);
	all(&other, "the link to n1 runs over efa, not tcp as asked: a better one works",
	    "the link to n0 runs over efa, not tcp as asked: a better one works");
	assert_int_equal(wf_world_close(), 0);
}

/* Of two hosts shared memory is not a rail that both have, though both do. */
static void memory_of_another_host_is_not_missed(void **state)
{
	struct weft_op_options options = with(WEFT_STRICT_NO_FALLBACK, 0, NULL);

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 0, NULL);
	assert_int_equal(setenv("WEFT_PROVIDER", "shm,tcp", 1), 0);
	wf_world_add();
	wf_world_add();
	all(&options, NULL, NULL);
	assert_int_equal(wf_world_close(), 0);
}

static bool is_read(void *ctx)
{
	(void)ctx;
	return wf_fake_is_read(source, LONG);
}

/*
 * The rail fails in the middle: who is strict, @sender or receiver, ends it; else it goes on.  The
 * sender does not hear of what its receiver demands.
 */
static void change_rails(bool sender, bool receiver)
{
	struct weft_op_options strict = with(WEFT_STRICT_NO_FALLBACK, 0, NULL);
	struct weft_path path = { .size = sizeof(path) };
	struct weft_op *in, *out;

	open_both();
	wf_world_connect(0, 1);
	in = receive(receiver ? &strict : &nothing, LONG);
	out = send(sender ? &strict : &nothing, LONG);
	assert_true(wf_world_run(is_read, NULL, S));
	wf_fake_knobs()->fail = 1000;
	wf_world_pass(5 * MS);
	wf_fake_knobs()->fail = 0;
	fall_back();
	assert_true(wf_world_run(has_ended, in, 30 * S));
	assert_true(wf_world_run(has_ended, out, 30 * S));
	if (!sender && !receiver) {
		assert_int_equal(weft_op_status(in), WEFT_OK);
		assert_int_equal(weft_op_status(out), WEFT_OK);
		assert_int_equal(weft_op_path(in, &path), 0);
		assert_string_equal(path.provider, "tcp");
	} else {
		assert_int_not_equal(weft_op_status(in), WEFT_OK);
		assert_int_equal(weft_op_status(sender ? out : in), WEFT_FAILED_PRECONDITION);
		assert_int_equal(weft_op_status(out) == WEFT_OK, !sender);
	}
	weft_op_free(in);
	weft_op_free(out);
	assert_int_equal(wf_world_close(), 0);
}

static void strictness_holds_when_the_rail_changes_on_the_way(void **state)
{
	(void)state;
	change_rails(false, false);
	change_rails(true, false);
	change_rails(false, true);
}

static void *kept; /* a call that is served, and not answered */

static void keep(unsigned number, void *call)
{
	(void)number;
	kept = call;
}

static bool is_cancelled(void *ctx)
{
	(void)ctx;
	return kept && weft_served_cancelled(kept);
}

/* The request is in many frames; the rail fails when the first have left, and the server gets all. */
static void a_handler_hears_that_its_request_has_come_over_a_fallback(void **state)
{
	struct weft_call_options options = {
		.size = sizeof(options), .op = with(WEFT_STRICT_NO_FALLBACK, 0, NULL),
	};
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;
	struct weft_op *op, *in, *out;

	(void)state;
	assert_int_equal(setenv("WEFT_WINDOW", "2", 1), 0);
	assert_int_equal(setenv("WEFT_FRAME_BYTES", "1K", 1), 0);
	assert_int_equal(setenv("WEFT_EAGER_BYTES", "64K", 1), 0);
	kept = NULL;
	open_both();
	wf_world_on_request(keep);
	wf_world_connect(0, 1);
	in = receive(&nothing, LONG); /* its read is what the rail fails by */
	out = send(&nothing, LONG);
	assert_true(wf_world_run(is_read, NULL, S));
	question.body.data = source;
	question.body.len = 40 * KIB;
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &op), 0);
	sim__mirror__reflect(service, &question, NULL, NULL);
	wf_fake_knobs()->fail = 1000;
	wf_world_pass(5 * MS);
	wf_fake_knobs()->fail = 0;
	fall_back();
	assert_true(wf_world_run(has_ended, op, 10 * S));
	assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_MAYBE);
	ends(op, "no fallback was asked for");
	assert_true(wf_world_run(is_cancelled, NULL, S));
	weft_served_fail(kept, WEFT_ABORTED, NULL);
	ends(in, NULL);
	ends(out, NULL);
	assert_int_equal(wf_world_close(), 0);
}

/* Every second element: it has to be gathered in other memory before it is sent. */
static int send_copied(bool strided, uint32_t flags)
{
	struct weft_send_options o = {
		.size = sizeof(o), .op = with(flags, 0, NULL), .flags = strided ? 0 : WEFT_SNAPSHOT,
	};
	int64_t shape = SMALL, stride = 2;
	struct weft_tensor t = row_of(source, &shape);
	struct weft_op *op, *in;
	int err;

	t.strides = strided ? &stride : NULL;
	err = weft_send(wf_world_peer(0, 1), 1, "k", 1, &t, &o, &op);
	if (!err) {
		in = receive(&nothing, SMALL);
		ends(op, NULL);
		ends(in, NULL);
	}
	return err;
}

static void a_copy_first_is_refused(void **state)
{
	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	for (unsigned strided = 0; strided < 2; strided++) {
		assert_int_equal(send_copied(strided, 0), 0);
		assert_int_equal(send_copied(strided, WEFT_STRICT_NO_STAGING), -EBADFD);
		assert_non_null(strstr(weft_error(), "no staging was asked for"));
	}
	all(&(struct weft_op_options){ .size = sizeof(nothing), .timeout_ns = 20 * S,
				       .flags = WEFT_STRICT_NO_STAGING }, NULL, NULL);
	assert_int_equal(wf_world_close(), 0);
}

static void a_whole_node_can_be_strict(void **state)
{
	struct weft_op *op;

	(void)state;
	wf_world_open(WF_WORLD_SHARED, 0, NULL);
	assert_int_equal(setenv("WEFT_PROVIDER", "efa,tcp", 1), 0);
	assert_int_equal(setenv("WEFT_STRICT", "no-fallback,no-staging", 1), 0);
	wf_world_add();
	assert_int_equal(unsetenv("WEFT_STRICT"), 0);
	wf_world_add();
	assert_int_equal(weft_ping(wf_world_peer(0, 1), &nothing, &op), 0);
	fall_back();
	ends(op, "no fallback was asked for");
	call(&nothing, BIG, "no fallback was asked for");
	assert_int_equal(send_copied(true, 0), -EBADFD);
	assert_int_equal(wf_world_close(), 0);
}

static void a_strict_node_has_every_provider_it_names(void **state)
{
	struct weft_node_options options = { .size = sizeof(options), .mode = WEFT_MANUAL };
	struct weft_node *node;

	(void)state;
	wf_world_open(WF_WORLD_CONNECTED, 0, NULL);
	assert_int_equal(setenv("WEFT_PROVIDER", "tcp,bogus", 1), 0);
	assert_int_equal(weft_node_open(&options, &node), 0);
	weft_node_close(node);
	options.flags = WEFT_STRICT_NO_FALLBACK;
	assert_int_equal(weft_node_open(&options, &node), -ENODATA);
	assert_string_equal(weft_error(), "WEFT_PROVIDER names bogus, which does not serve, and "
					  "WEFT_STRICT says no-fallback: libfabric has none of that "
					  "name here");
	assert_int_equal(setenv("WEFT_PROVIDER", "tcp,efa", 1), 0);
	assert_int_equal(weft_node_open(&options, &node), 0);
	weft_node_close(node);
	options.flags = 1;
	assert_int_equal(weft_node_open(&options, &node), -EINVAL);
	assert_int_equal(wf_world_close(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_provider_that_carries_it_is_no_matter),
		cmocka_unit_test(another_provider_is_refused),
		cmocka_unit_test(the_name_of_the_provider_is_copied),
		cmocka_unit_test(fewer_rails_than_asked_for_are_refused),
		cmocka_unit_test(a_fallback_is_refused_with_its_reason),
		cmocka_unit_test(the_best_rail_is_no_fallback),
		cmocka_unit_test(memory_of_another_host_is_not_missed),
		cmocka_unit_test(strictness_holds_when_the_rail_changes_on_the_way),
		cmocka_unit_test(a_handler_hears_that_its_request_has_come_over_a_fallback),
		cmocka_unit_test(a_copy_first_is_refused),
		cmocka_unit_test(a_whole_node_can_be_strict),
		cmocka_unit_test(a_strict_node_has_every_provider_it_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
