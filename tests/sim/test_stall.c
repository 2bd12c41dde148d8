/* SPDX-License-Identifier: BSD-2-Clause */
/* The watchdog: for each state of each operation, the line that says who waits for whom. */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define SMALL 100
#define BIG (3 * MIB + 17) /* pulled, in several chunks */
#define LINES_MAX 256

/* What node 0 has logged, level 1 unless WEFT_LOG says more. */
static struct {
	int level;
	char text[1024];
} lines[LINES_MAX];
static unsigned line_count;

static uint8_t source[BIG], target[BIG];

static void hear(unsigned number, int level, const char *line)
{
	if (number != 0)
		return;
	assert_true(line_count < LINES_MAX);
	lines[line_count].level = level;
	(void)snprintf(lines[line_count++].text, sizeof(lines[0].text), "%s", line);
}

static void fail_with_lines(const char *wanted, unsigned count)
{
	for (unsigned i = 0; i < line_count; i++)
		print_message("%d %s\n", lines[i].level, lines[i].text);
	fail_msg("%u lines with: %s", count, wanted);
}

/* There are @count lines with @part, in which ? stands for any digit, and no others if @alone. */
static void check_lines(const char *part, unsigned count, bool alone)
{
	char pattern[1024];
	unsigned found = 0;

	(void)snprintf(pattern, sizeof(pattern), "*%s*", part);
	for (unsigned i = 0; i < line_count; i++)
		found += fnmatch(pattern, lines[i].text, 0) == 0;
	if (found != count || (alone && line_count != count))
		fail_with_lines(part, found);
}

static void open_world(enum wf_world_shape shape, const char *stall, const struct wf_fake *fake)
{
	line_count = 0;
	assert_int_equal(setenv("WEFT_STALL", stall, 1), 0);
	wf_world_hear(hear);
	wf_world_open(shape, 2, fake);
}

static void close_world(void)
{
	wf_world_hear(NULL);
	assert_int_equal(wf_world_close(), 0);
}

/* It was to fail, but in no special way. */
static void end(struct wf_flight *f)
{
	weft_cancel(f->op);
	wf_flight_land(f, 1, 5 * S);
	wf_flight_free(f, 1);
}

static void a_receive_names_the_peer_that_has_not_sent(void **state)
{
	struct wf_flight f, g;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_flight_receive(&f, 0, 1, 7, target, SMALL, 0);
	wf_world_pass(900 * MS);
	assert_int_equal(line_count, 0);
	wf_world_pass(200 * MS);
	check_lines("recv step 7 key \"\" from n1 stands still for 1.? s: n1 has not sent it (link 1 to n1: up on ", 1, true);
	check_lines("heard 0.", 1, true); /* it lives: heartbeats */

	/* One line in each span, and none once it moves. */
	wf_world_pass(2 * S);
	check_lines("recv step 7", 3, true);
	wf_flight_send(&g, 1, 0, 7, source, SMALL, 0);
	wf_flight_land(&f, 1, S);
	wf_flight_land(&g, 1, S);
	wf_world_pass(3 * S);
	check_lines("recv step 7", 3, true);
	wf_flight_free(&f, 1);
	wf_flight_free(&g, 1);
	close_world();
}

static void a_receive_under_another_step_shows_that_something_came(void **state)
{
	struct wf_flight f, g;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_flight_send(&g, 1, 0, 8, source, SMALL, 0);
	wf_flight_land(&g, 1, S);
	wf_flight_receive(&f, 0, 0, 7, target, SMALL, 0);
	wf_world_pass(1200 * MS);
	check_lines("recv step 7 key \"\" from any peer stands still for 1.? s: no peer has sent it, while 1 tensors that came are not received", 1, true);
	end(&f);
	wf_flight_free(&g, 1);
	close_world();
}

static void a_send_names_the_peer_that_has_not_received(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_flight_send(&f, 0, 1, 7, source, BIG, 0);
	wf_world_pass(1200 * MS);
	check_lines("send step 7 key \"\" 3145745 bytes to n1 stands still for 1.? s: offered over tcp, and n1 has not received it (link 1 to n1: up on tcp, heard ", 1, true);
	end(&f);
	close_world();
}

static void a_send_that_is_taken_back_says_why_and_by_whom_it_is_kept(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_SHARED, "200ms", NULL);
	wf_world_connect(0, 1);
	wf_flight_send(&f, 0, 1, 7, source, BIG, 0);
	wf_world_pass(100 * MS);
	wf_world_freeze(1, true);
	weft_cancel(f.op);
	wf_world_pass(400 * MS);
	check_lines("taken back, and n1 has not answered: it was cancelled (link 1 to n1: up on efa", 1, true);
	wf_world_freeze(1, false);
	wf_flight_land(&f, 1, 5 * S);
	wf_flight_free(&f, 1);
	close_world();
}

static void a_send_without_a_rail_says_how_dialling_fails(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	(void)wf_world_peer(0, 1);
	wf_world_kill(1);
	wf_flight_send(&f, 0, 1, 7, source, SMALL, 0);
	wf_world_pass(1200 * MS);
	check_lines("stands still for 1.? s: no rail to 127.0.0.1:", 1, true);
	check_lines(": to be dialled again: ", 1, true);
	check_lines("refused)", 1, true);
	end(&f);
	close_world();
}

static void a_send_without_credit_says_so(void **state)
{
	struct wf_flight f[40];

	(void)state;
	assert_int_equal(setenv("WEFT_WINDOW", "2", 1), 0);
	assert_int_equal(setenv("WEFT_LOST", "60s", 1), 0);
	open_world(WF_WORLD_SHARED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_world_freeze(1, true);
	/* Each fills most of a frame. */
	for (unsigned i = 0; i < WF_COUNT(f); i++)
		wf_flight_send(&f[i], 0, 1, i, source, 3000, 0);
	wf_world_pass(1500 * MS);
	check_lines("and 21 more operations", 1, false);
	check_lines("not all of it has left yet (link 1 to n1: up on efa", 16, false);
	check_lines(" records wait and it has granted no credit for 1.", 16, false);
	check_lines("it has not confirmed 2 frames, the first for ", 16, false);
	assert_int_equal(line_count, 17);
	wf_world_freeze(1, false);
	wf_flight_land(f, WF_COUNT(f), 5 * S);
	wf_flight_free(f, WF_COUNT(f));
	close_world();
}

static void a_receive_without_memory_says_how_much_there_is(void **state)
{
	struct wf_flight sends[2];
	struct weft_op *recvs[2];

	(void)state;
	assert_int_equal(setenv("WEFT_POOL_BYTES", "4M", 1), 0);
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < 2; i++) {
		wf_flight_send(&sends[i], 1, 0, i, source, BIG, 0);
		assert_int_equal(weft_recv(wf_world_node(0), wf_world_peer(0, 1), i, "", 0, NULL,
					   NULL, &recvs[i]), 0);
		wf_world_pass(100 * MS);
	}
	wf_world_pass(1100 * MS);
	check_lines("recv step 1 key \"\" from n1 stands still for 1.? s: n1 has sent it, and 3145745 bytes of the pool are waited for: 3211264 of 4194304 are in use (WEFT_POOL_BYTES)", 1, true);
	weft_op_free(recvs[0]);
	wf_flight_land(sends, 2, S);
	assert_int_equal(weft_wait(recvs[1], S), 0);
	weft_op_free(recvs[1]);
	wf_flight_free(sends, 2);
	close_world();
}

static void a_pull_that_sticks_says_how_far_it_came(void **state)
{
	struct wf_fake fake = { .seed = 1, .delay_min_ns = 5000, .delay_max_ns = 50000 };
	struct wf_flight f, g;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "200ms", &fake);
	wf_world_connect(0, 1);
	wf_fake_knobs()->stick = 1000;
	wf_flight_send(&g, 1, 0, 7, source, BIG, 0);
	wf_flight_receive(&f, 0, 1, 7, target, BIG, 0);
	wf_world_pass(250 * MS);
	check_lines("recv step 7 key \"\" from n1 stands still for 0.? s: 0 of 3145745 bytes are read, ", 1, true);
	check_lines(" reads from n1 are under way over tcp (link 1 to n1: up on tcp, ", 1, true);
	wf_fake_knobs()->stick = 0;
	end(&f);
	end(&g);
	close_world();
}

static void a_deadline_within_a_body_does_not_say_that_nobody_sent(void **state)
{
	struct wf_flight f, g, h;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "10s", NULL);
	wf_world_connect(0, 1);
	wf_fake_knobs()->stick = 1000;
	wf_flight_send(&g, 1, 0, 7, source, BIG, 0);
	wf_flight_receive(&f, 0, 0, 7, target, BIG, 200 * MS);
	wf_flight_receive(&h, 0, 0, 8, target, BIG, 200 * MS);
	wf_world_pass(300 * MS);
	wf_fake_knobs()->stick = 0;
	wf_flight_land(&f, 1, 5 * S);
	wf_flight_land(&h, 1, 5 * S);
	assert_string_equal(weft_op_message(f.op), "the deadline passed before n1 had sent all of "
						   "step 7, key \"\"");
	assert_string_equal(weft_op_message(h.op), "the deadline passed before any peer sent "
						   "step 8, key \"\"");
	wf_flight_free(&f, 1);
	wf_flight_free(&h, 1);
	end(&g);
	close_world();
}

static void a_slow_receive_that_goes_on_is_not_named(void **state)
{
	struct wf_fake fake = { .seed = 1, .delay_min_ns = 40 * MS, .delay_max_ns = 45 * MS };
	struct wf_flight f, g;

	(void)state;
	assert_int_equal(setenv("WEFT_CHUNK_BYTES", "64K", 1), 0);
	assert_int_equal(setenv("WEFT_DEPTH", "1", 1), 0);
	open_world(WF_WORLD_SHARED, "300ms", &fake);
	wf_world_connect(0, 1);
	wf_flight_send(&g, 1, 0, 7, source, BIG, 0);
	wf_flight_receive(&f, 0, 1, 7, target, BIG, 0);
	wf_flight_land(&f, 1, 30 * S);
	assert_int_equal(f.status, WEFT_OK);
	/* Many times the span. */
	assert_true(wf_flight_ns(&f) > 3 * S);
	assert_int_equal(line_count, 0);
	wf_flight_land(&g, 1, S);
	wf_flight_free(&f, 1);
	wf_flight_free(&g, 1);
	close_world();
}

/* One worker ends the receive, and the other one pulls the tensor. */
static void a_receive_that_another_worker_pulls_is_not_named(void **state)
{
	struct wf_fake fake = { .seed = 1, .delay_min_ns = 40 * MS, .delay_max_ns = 45 * MS };
	struct wf_flight f, g;

	(void)state;
	for (unsigned from = 1; from < 3; from++) {
		line_count = 0;
		assert_int_equal(setenv("WEFT_CHUNK_BYTES", "64K", 1), 0);
		assert_int_equal(setenv("WEFT_DEPTH", "1", 1), 0);
		assert_int_equal(setenv("WEFT_STALL", "500ms", 1), 0);
		wf_world_hear(hear);
		wf_world_set_workers(2);
		wf_world_open(WF_WORLD_SHARED, 3, &fake);
		wf_world_connect(0, 1);
		wf_world_connect(0, 2);
		wf_flight_send(&g, from, 0, 7, source, BIG, 0);
		wf_flight_receive(&f, 0, 0, 7, target, BIG, 0);
		wf_flight_land(&f, 1, 30 * S);
		assert_int_equal(f.status, WEFT_OK);
		assert_true(wf_flight_ns(&f) > 3 * S / 2);
		assert_int_equal(line_count, 0);
		wf_flight_land(&g, 1, S);
		wf_flight_free(&f, 1);
		wf_flight_free(&g, 1);
		close_world();
	}
}

static void end_stream(struct wf_flight *call, struct weft_stream *stream)
{
	weft_stream_close(stream);
	wf_flight_land(call, 1, 5 * S);
	wf_flight_free(call, 1);
}

static void a_stream_with_a_message_now_and_then_is_not_named(void **state)
{
	struct weft_stream *stream;
	struct wf_flight call, f[3];

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_flight_open(&call, 0, 1, 60 * S, &stream);
	for (unsigned i = 0; i < 30; i++) {
		wf_flight_write(&f[0], stream, source, SMALL, 0);
		wf_flight_read(&f[1], stream, 0);
		wf_flight_land(f, 2, S);
		assert_int_equal(f[1].status, WEFT_OK);
		wf_flight_free(f, 2);
		wf_world_pass(100 * MS);
	}
	assert_int_equal(line_count, 0);

	/* When nothing comes any more both are named. */
	wf_flight_read(&f[2], stream, 0);
	wf_world_pass(1200 * MS);
	check_lines("call sim.Mirror/Talk 0 bytes to n1 stands still for 1.? s: ", 1, false);
	check_lines("read in call ?, sim.Mirror/Talk stands still for 1.? s: ", 1, false);
	end_stream(&call, stream);
	wf_flight_land(&f[2], 1, S);
	wf_flight_free(&f[2], 1);
	close_world();
}

static struct weft_stream *served_stream;

static void keep_stream(unsigned number, struct weft_stream *stream)
{
	(void)number;
	served_stream = stream;
}

static bool is_served(void *ctx)
{
	(void)ctx;
	return served_stream != NULL;
}

static void a_stream_that_pulls_a_long_message_is_not_named(void **state)
{
	struct wf_fake fake = { .seed = 1, .delay_min_ns = 40 * MS, .delay_max_ns = 45 * MS };
	struct weft_stream *stream;
	struct wf_flight call, f, g;

	(void)state;
	assert_int_equal(setenv("WEFT_CHUNK_BYTES", "64K", 1), 0);
	assert_int_equal(setenv("WEFT_DEPTH", "1", 1), 0);
	open_world(WF_WORLD_SHARED, "500ms", &fake);
	wf_world_connect(0, 1);
	served_stream = NULL;
	wf_world_on_stream(keep_stream);
	wf_flight_open(&call, 0, 1, 60 * S, &stream);
	assert_true(wf_world_run(is_served, NULL, S));
	wf_flight_write(&g, served_stream, source, BIG, 0);
	wf_flight_read(&f, stream, 0);
	wf_flight_land(&f, 1, 30 * S);
	assert_int_equal(f.status, WEFT_OK);
	assert_true(wf_flight_ns(&f) > 3 * S / 2);
	assert_int_equal(line_count, 0);
	wf_flight_land(&g, 1, S);
	weft_stream_finish(served_stream, WEFT_OK, NULL);
	wf_flight_free(&f, 1);
	wf_flight_free(&g, 1);
	end_stream(&call, stream);
	close_world();
}

static void reflected(const Sim__Bytes *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static void *served;

static void keep(unsigned number, void *call)
{
	(void)number;
	served = call;
}

/* The request was delivered long ago, and the handler takes one attachment after the other. */
static void a_call_whose_attachments_are_taken_one_by_one_is_not_named(void **state)
{
	struct weft_call_options options = { .size = sizeof(options) };
	Sim__Bytes request = SIM__BYTES__INIT;
	struct wf_flight call, there[20], taken[20];
	ProtobufCService *service;
	int64_t bytes = BIG;
	struct weft_tensor row = { .data = source, .device = { WEFT_CPU, 0 }, .ndim = 1,
				   .dtype = { WEFT_UINT, 8, 1 }, .shape = &bytes };

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	served = NULL;
	wf_world_on_request(keep);
	options.op = wf_flight_begin(&call, 0);
	assert_int_equal(weft_call_open(wf_world_stub(0, 1), &options, &service, &call.op), 0);
	for (unsigned i = 0; i < WF_COUNT(there); i++) {
		struct weft_send_options send = { .size = sizeof(send) };

		send.op = wf_flight_begin(&there[i], 0);
		assert_int_equal(weft_call_attach(call.op, &row, &send, &there[i].op), 0);
	}
	sim__mirror__reflect(service, &request, reflected, NULL);
	wf_world_pass(100 * MS);
	for (unsigned i = 0; i < WF_COUNT(taken); i++) {
		struct weft_recv_options recv = { .size = sizeof(recv) };

		recv.op = wf_flight_begin(&taken[i], 0);
		assert_int_equal(weft_served_receive(served, i, NULL, &recv, &taken[i].op), 0);
		wf_flight_land(&taken[i], 1, S);
		wf_flight_free(&taken[i], 1);
		wf_world_pass(100 * MS);
	}
	check_lines("call sim.Mirror/Reflect", 0, false);
	wf_world_answer(served, source, SMALL);
	wf_flight_land(&call, 1, S);
	wf_flight_land(there, WF_COUNT(there), S);
	wf_flight_free(&call, 1);
	wf_flight_free(there, WF_COUNT(there));
	close_world();
}

static void a_call_says_that_the_reply_is_owed(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	wf_flight_call(&f, 0, 1, source, SMALL, 0);
	wf_world_pass(1200 * MS);
	check_lines("call sim.Mirror/Reflect 102 bytes to n1 stands still for 1.? s: the request is delivered, and n1 owes the reply (link 1 to n1: up on tcp", 1, true);
	wf_world_hold(1, false);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	close_world();
}

static void a_call_says_that_its_request_is_not_confirmed(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_world_freeze(1, true);
	wf_flight_call(&f, 0, 1, source, SMALL, 0);
	wf_world_pass(1200 * MS);
	check_lines("the request has left, and n1 has not confirmed it (link 1 to n1: up on tcp, heard 1.", 1, true);
	wf_world_freeze(1, false);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	close_world();
}

static void a_call_whose_request_is_pulled_says_so(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_world_freeze(1, true);
	wf_flight_call(&f, 0, 1, source, BIG, 0);
	wf_world_pass(1200 * MS);
	check_lines("the request: offered over tcp, and n1 has not received it (link 1 to n1: up", 1, true);
	wf_world_freeze(1, false);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	close_world();
}

static void a_ping_says_that_the_answer_is_owed(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_world_freeze(1, true);
	wf_flight_ping(&f, 0, 1, 0);
	wf_world_pass(1200 * MS);
	check_lines("ping to n1 stands still for 1.? s: sent, and n1 owes the answer (link 1 to n1: ", 1, true);
	wf_world_freeze(1, false);
	wf_flight_land(&f, 1, S);
	wf_flight_free(&f, 1);
	close_world();
}

static void a_deadline_says_what_did_not_happen(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_flight_receive(&f, 0, 1, 7, target, SMALL, 1500 * MS);
	wf_flight_land(&f, 1, 2 * S);
	assert_int_equal(f.status, WEFT_DEADLINE_EXCEEDED);
	check_lines("recv step 7 key \"\" from n1 stands still for 1.? s: n1 has not sent it", 1, false);
	check_lines("recv step 7 key \"\" from n1 has not ended in 1.5 s: n1 has not sent it (link 1 ", 1, false);
	assert_int_equal(line_count, 2);
	wf_flight_free(&f, 1);
	close_world();
}

static void an_early_deadline_is_but_a_note(void **state)
{
	struct wf_flight f;

	(void)state;
	assert_int_equal(setenv("WEFT_LOG", "2", 1), 0);
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_flight_receive(&f, 0, 1, 7, target, SMALL, 500 * MS);
	wf_flight_land(&f, 1, S);
	check_lines("recv step 7 key \"\" from n1 has not ended in 0.5 s: n1 has not sent it", 1, true);
	assert_int_equal(lines[0].level, 2);
	wf_flight_free(&f, 1);
	close_world();
}

static void a_lost_peer_says_what_it_owed(void **state)
{
	struct wf_flight f[3];

	(void)state;
	open_world(WF_WORLD_CONNECTED, "10s", NULL);
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	wf_flight_call(&f[0], 0, 1, source, SMALL, 0);
	wf_flight_send(&f[1], 0, 1, 7, source, BIG, 0);
	wf_flight_receive(&f[2], 0, 1, 8, target, SMALL, 0);
	wf_world_pass(100 * MS);
	wf_world_kill(1);
	wf_flight_land(f, 3, 5 * S);
	check_lines(" to n1 fails, for n1 is gone: ", 2, false);
	check_lines(": the request is delivered, and n1 owes the reply (", 1, false);
	check_lines("send step 7 key \"\" 3145745 bytes to n1 fails, for n1 is gone: ", 1, false);
	check_lines(": offered over tcp, and n1 has not received it (", 1, false);
	check_lines("recv step 8 key \"\" from n1 fails, for n1 is gone: ", 1, false);
	check_lines(": n1 has not sent it (", 1, false);
	assert_int_equal(line_count, 3);
	wf_flight_free(f, 3);
	close_world();
}

static void a_peer_that_leaves_in_order_is_but_a_note(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "10s", NULL);
	wf_world_connect(0, 1);
	wf_flight_receive(&f, 0, 1, 8, target, SMALL, 0);
	wf_world_pass(100 * MS);
	wf_world_leave(1);
	wf_flight_land(&f, 1, 5 * S);
	assert_int_equal(line_count, 0);
	wf_flight_free(&f, 1);
	close_world();
}

static void the_steps_of_a_connection_are_of_level_3(void **state)
{
	static const char *const steps[] = {
		": this node dials 127.0.0.1:", ": its hello has come from ", ": connected by efa",
	};

	(void)state;
	assert_int_equal(setenv("WEFT_LOG", "3", 1), 0);
	open_world(WF_WORLD_SHARED, "10s", NULL);
	wf_world_connect(0, 1);
	for (size_t i = 0; i < WF_COUNT(steps); i++)
		check_lines(steps[i], 1, false);
	for (unsigned i = 0; i < line_count; i++)
		assert_int_equal(lines[i].level, 3);
	line_count = 0;
	wf_world_leave(0);
	check_lines(": this node says goodbye", 1, false);
	close_world();
	assert_int_equal(unsetenv("WEFT_LOG"), 0);
}

static void a_dial_given_up_says_how_long_it_took(void **state)
{
	struct wf_flight f;

	(void)state;
	assert_int_equal(setenv("WEFT_CONNECT_TIMEOUT", "2500ms", 1), 0);
	assert_int_equal(setenv("WEFT_LOG", "2", 1), 0);
	open_world(WF_WORLD_CONNECTED, "10s", NULL);
	(void)wf_world_peer(0, 1);
	wf_world_kill(1);
	wf_flight_send(&f, 0, 1, 7, source, SMALL, 0);
	wf_flight_land(&f, 1, 5 * S);
	assert_int_equal(weft_op_status(f.op), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_op_message(f.op),
			       " can't be reached in 2.5 s (WEFT_CONNECT_TIMEOUT): dial "));
	check_lines("fails, for *refused: no rail to * (link 1 to *: to be dialled again)", 1, false);
	wf_flight_free(&f, 1);
	close_world();
	assert_int_equal(unsetenv("WEFT_LOG"), 0);
	assert_int_equal(unsetenv("WEFT_CONNECT_TIMEOUT"), 0);
}

static void many_that_stand_still_are_counted(void **state)
{
	struct wf_flight f[100];

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	for (unsigned i = 0; i < WF_COUNT(f); i++)
		wf_flight_receive(&f[i], 0, 1, i, target, SMALL, 0);
	wf_world_pass(2500 * MS);
	check_lines(" from n1 stands still for 1.? s: n1 has not sent it", 16, false);
	check_lines(" from n1 stands still for 2.? s: n1 has not sent it", 16, false);
	check_lines("and 84 more operations", 2, false);
	assert_int_equal(line_count, 34);
	for (unsigned i = 0; i < WF_COUNT(f); i++)
		weft_cancel(f[i].op);
	wf_flight_land(f, WF_COUNT(f), S);
	wf_flight_free(f, WF_COUNT(f));
	close_world();
}

static void a_note_that_may_come_at_any_time_is_not_named(void **state)
{
	struct weft_op_options options;
	struct weft_window *window;
	struct wf_flight f, g;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	assert_int_equal(weft_window_open(wf_world_node(0), target, SMALL, WEFT_WINDOW_WRITE,
					  &window), 0);
	options = wf_flight_begin(&f, WEFT_FOREVER);
	assert_int_equal(weft_window_next(window, &options, &f.op), 0);
	wf_world_pass(3 * S);
	assert_int_equal(line_count, 0);
	options = wf_flight_begin(&g, 10 * S);
	assert_int_equal(weft_window_next(window, &options, &g.op), 0);
	wf_world_pass(1200 * MS);
	check_lines("take a note of a window stands still for 1.? s", 1, true);
	end(&f);
	end(&g);
	close_world();
}

static void a_tensor_that_may_land_at_any_time_is_not_named(void **state)
{
	struct weft_op_options options;
	struct weft_landing *landing;
	struct wf_flight f, g;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	assert_int_equal(weft_landing_open(wf_world_node(0), target, SMALL, 1, &landing), 0);
	options = wf_flight_begin(&f, WEFT_FOREVER);
	assert_int_equal(weft_landing_next(landing, &options, &f.op), 0);
	wf_world_pass(3 * S);
	assert_int_equal(line_count, 0);
	options = wf_flight_begin(&g, 10 * S);
	assert_int_equal(weft_landing_next(landing, &options, &g.op), 0);
	wf_world_pass(1200 * MS);
	check_lines("take a tensor of a landing stands still for 1.? s", 1, true);
	end(&f);
	end(&g);
	assert_int_equal(weft_landing_close(landing), 0);
	close_world();
}

static void with_0_nothing_is_said(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "0", NULL);
	wf_world_connect(0, 1);
	wf_flight_receive(&f, 0, 1, 7, target, SMALL, 30 * S);
	wf_flight_land(&f, 1, 31 * S);
	assert_int_equal(line_count, 0);
	wf_flight_free(&f, 1);
	close_world();
}

static char *dump(unsigned number)
{
	size_t bytes;
	char *text;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(weft_dump(wf_world_node(number), out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void check_dump(unsigned number, const char *part)
{
	char *text = dump(number);

	if (!strstr(text, part))
		fail_msg("not in the dump: %s\n%s", part, text);
	free(text);
}

/* The other side's dump has what it owes, and what it got and nobody asked for. */
static void a_dump_shows_what_others_wait_for(void **state)
{
	struct wf_flight f, g, h;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	wf_flight_call(&f, 0, 1, source, SMALL, 0);
	wf_flight_send(&g, 0, 1, 9, source, SMALL, 0);
	wf_flight_land(&g, 1, S);
	wf_world_pass(300 * MS);
	check_dump(1, "\ncall to serve: sim.Mirror/Reflect from n0: the handler has not replied\n");
	check_dump(1, "\nnot received: step 9 key \"\" 100 bytes from n0, come 0.3 s ago\n");
	weft_cancel(f.op);
	wf_flight_land(&f, 1, S);
	wf_world_pass(100 * MS);
	check_dump(1, "the handler has not replied, and the caller has given up\n");
	wf_world_hold(1, false);
	wf_flight_receive(&h, 1, 0, 9, target, SMALL, 0);
	wf_flight_land(&h, 1, S);
	wf_flight_free(&h, 1);
	assert_int_equal(weft_step_abort(wf_world_node(0), 9, WEFT_ABORTED, "for a test"), 0);
	wf_world_pass(100 * MS);
	check_dump(1, "\nstep 9 was aborted: for a test\n");
	check_dump(1, "link 1: step 9 is aborted: ");
	wf_flight_free(&f, 1);
	wf_flight_free(&g, 1);
	close_world();
}

/* A dump has the same words, and what happened before. */
static void a_dump_shows_links_operations_and_events(void **state)
{
	static const char *const parts[] = {
		"node n0 at 127.0.0.1:",
		"\nrail 0: tcp on lo\n",
		"\nlink 1 to n1 at 127.0.0.1:",
		": up on tcp, heard ",
		": recv step 7 key \"\" from n1, begun 0.3 s ago, 59.7 s left: n1 has not sent it (link 1 to n1: up on tcp",
		": call sim.Mirror/Reflect 102 bytes to n1, begun 0.3 s ago, 59.7 s left: the request is delivered, and n1 owes the reply (",
		"\npool: ",
		"  link 1: dials the door\n",
		"  link 1: is up on rail 0, epoch 1\n",
		"operation 1 begins: a ping\n",
		"operation 1 has ended\n",
		"begins: a receive of step 7\n",
	};
	struct wf_flight f, g;

	(void)state;
	open_world(WF_WORLD_CONNECTED, "1s", NULL);
	wf_world_connect(0, 1);
	wf_world_hold(1, true);
	wf_flight_receive(&f, 0, 1, 7, target, SMALL, 0);
	wf_flight_call(&g, 0, 1, source, SMALL, 0);
	wf_world_pass(300 * MS);
	for (size_t i = 0; i < WF_COUNT(parts); i++)
		check_dump(0, parts[i]);
	wf_world_hold(1, false);
	wf_flight_land(&g, 1, S);
	wf_flight_free(&g, 1);
	end(&f);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receive_names_the_peer_that_has_not_sent),
		cmocka_unit_test(a_receive_under_another_step_shows_that_something_came),
		cmocka_unit_test(a_send_names_the_peer_that_has_not_received),
		cmocka_unit_test(a_send_that_is_taken_back_says_why_and_by_whom_it_is_kept),
		cmocka_unit_test(a_send_without_a_rail_says_how_dialling_fails),
		cmocka_unit_test(a_send_without_credit_says_so),
		cmocka_unit_test(a_receive_without_memory_says_how_much_there_is),
		cmocka_unit_test(a_pull_that_sticks_says_how_far_it_came),
		cmocka_unit_test(a_deadline_within_a_body_does_not_say_that_nobody_sent),
		cmocka_unit_test(a_slow_receive_that_goes_on_is_not_named),
		cmocka_unit_test(a_receive_that_another_worker_pulls_is_not_named),
		cmocka_unit_test(a_stream_with_a_message_now_and_then_is_not_named),
		cmocka_unit_test(a_stream_that_pulls_a_long_message_is_not_named),
		cmocka_unit_test(a_call_whose_attachments_are_taken_one_by_one_is_not_named),
		cmocka_unit_test(a_call_says_that_the_reply_is_owed),
		cmocka_unit_test(a_call_says_that_its_request_is_not_confirmed),
		cmocka_unit_test(a_call_whose_request_is_pulled_says_so),
		cmocka_unit_test(a_ping_says_that_the_answer_is_owed),
		cmocka_unit_test(a_deadline_says_what_did_not_happen),
		cmocka_unit_test(an_early_deadline_is_but_a_note),
		cmocka_unit_test(a_lost_peer_says_what_it_owed),
		cmocka_unit_test(a_peer_that_leaves_in_order_is_but_a_note),
		cmocka_unit_test(the_steps_of_a_connection_are_of_level_3),
		cmocka_unit_test(a_dial_given_up_says_how_long_it_took),
		cmocka_unit_test(many_that_stand_still_are_counted),
		cmocka_unit_test(a_note_that_may_come_at_any_time_is_not_named),
		cmocka_unit_test(a_tensor_that_may_land_at_any_time_is_not_named),
		cmocka_unit_test(with_0_nothing_is_said),
		cmocka_unit_test(a_dump_shows_what_others_wait_for),
		cmocka_unit_test(a_dump_shows_links_operations_and_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
