/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As test_nth, for what the simulated net replaces: doors, names, same-host
 * facts and doorbells are real here, and so is time; only the fabric is fake.
 * Two nodes meet by name, carry a tensor, a call and a ping, and close.
 *
 * test_nth_doors SHAPE KIND N COUNT CODE does one run again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <weft/weft.h>

#include "tests/fake/fabric.h"
#include "tests/sim/mirror.pb-c.h"
#include "tests/sim/nth_script.h"
#include "util/clock.h"

#define LIMIT_NS (10 * WF_NS_PER_S)
#define BYTES 300

static const char *const shapes[] = { "tcp", "shm", NULL }; /* as the fake names them */

static struct weft_node *nodes[2];
static struct weft_peer *peer;
static struct weft_stub *stub;
static uint64_t step;

/* Ends. */

struct trip {
	struct weft_op *op;
	unsigned outcomes;
};

static void ended(struct weft_op *op, void *arg)
{
	struct trip *t = arg;

	(void)op;
	t->outcomes++;
}

static struct weft_op_options options_of(struct trip *t)
{
	return (struct weft_op_options){
		.size = sizeof(struct weft_op_options),
		.timeout_ns = 2 * WF_NS_PER_S,
		.done = ended,
		.arg = t,
	};
}

static void turn(void)
{
	for (unsigned i = 0; i < 2; i++)
		assert_true(weft_poll(nodes[i], WF_NS_PER_MS / 10) >= 0);
}

/* Wait for all, and free them; did they end well? */
static bool land(struct trip *all, size_t count)
{
	uint64_t until_ns = wf_clock_now() + LIMIT_NS;
	bool well = true;

	for (size_t i = 0; i < count; i++) {
		while (!all[i].outcomes && wf_clock_now() < until_ns)
			turn();
		assert_int_equal(all[i].outcomes, 1);
		if (weft_op_status(all[i].op) != WEFT_OK) {
			assert_string_not_equal(weft_op_message(all[i].op), "");
			well = false;
		}
		weft_op_free(all[i].op);
	}
	return well;
}

/* Attempts. */

static bool ping(void)
{
	struct trip t = { 0 };
	struct weft_op_options options = options_of(&t);

	while (wf_nth_again(weft_ping(peer, &options, &t.op)))
		;
	return land(&t, 1);
}

/* Each node stands for a process of its own. */
bool __wrap_wf_host_is_this(uint64_t pid);

bool __wrap_wf_host_is_this(uint64_t pid)
{
	(void)pid;
	return false;
}

static bool carry(void)
{
	static uint8_t from[BYTES], to[BYTES];
	struct trip t[2] = { { 0 } };
	struct weft_send_options so = { .size = sizeof(so), .op = options_of(&t[0]) };
	struct weft_recv_options ro = { .size = sizeof(ro), .op = options_of(&t[1]) };
	int64_t shape = BYTES;
	struct weft_tensor tensor = {
		.device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape,
	};

	step++;
	tensor.data = to;
	while (wf_nth_again(weft_recv(nodes[1], NULL, step, "", 0, &tensor, &ro, &t[1].op)))
		;
	tensor.data = from;
	while (wf_nth_again(weft_send(peer, step, "", 0, &tensor, &so, &t[0].op)))
		;
	return land(t, 2);
}

static void reflect(Sim__Mirror_Service *service, const Sim__Bytes *input,
		    Sim__Bytes_Closure closure, void *data)
{
	(void)service;
	closure(input, data);
}

static void answered(const Sim__Bytes *answer, void *arg)
{
	(void)answer, (void)arg;
}

static bool call(void)
{
	struct trip t = { 0 };
	struct weft_call_options options = { .size = sizeof(options), .op = options_of(&t) };
	Sim__Bytes question = SIM__BYTES__INIT;
	ProtobufCService *service;

	while (wf_nth_again(weft_call_open(stub, &options, &service, &t.op)))
		;
	sim__mirror__reflect(service, &question, answered, NULL);
	return land(&t, 1);
}

/* The script. */

/* One that is driven by a thread of its own: before the others, for the fake knows no threads. */
static void open_threaded(void)
{
	const struct weft_node_options options = { .size = sizeof(options) };
	struct weft_node *node;

	while (wf_nth_again(weft_node_open(&options, &node)))
		;
	assert_int_equal(weft_node_close(node), 0);
}

static void open_nodes(unsigned shape)
{
	const struct weft_node_options options = { .size = sizeof(options), .mode = WEFT_MANUAL };
	const struct wf_fake fake = { .seed = 1, .veto = wf_nth_veto };
	char address[64];

	setenv("WEFT_PROVIDER", shapes[shape], 1);
	setenv("WEFT_SPIN", "0", 1);
	setenv("WEFT_HEARTBEAT", "100ms", 1);
	setenv("WEFT_LOST", "300ms", 1);
	setenv("WEFT_SLOTS", "24", 1);
	wf_fake_open(&fake);
	wf_fake_offer(FI_EP_RDM, "shm", "shm", NULL);
	open_threaded();
	for (unsigned i = 0; i < 2; i++) {
		wf_fake_enter(i);
		while (wf_nth_again(weft_node_open(&options, &nodes[i])))
			;
	}
	(void)snprintf(address, sizeof(address), "localhost%s",
		       strchr(weft_node_address(nodes[1]), ':'));
	while (wf_nth_again(weft_peer_open(nodes[0], address, &peer)))
		;
	while (wf_nth_again(weft_stub_open(peer, &sim__mirror__descriptor, &stub)))
		;
}

static void run_script(unsigned shape)
{
	Sim__Mirror_Service service = { .base = SIM__MIRROR__BASE_INIT, .reflect = reflect };

	open_nodes(shape);
	while (wf_nth_again(weft_serve(nodes[1], &service.base)))
		;
	wf_nth_try(ping);
	wf_nth_try(carry);
	wf_nth_try(call);
	weft_stub_close(stub);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(weft_node_close(nodes[i]), 0);
	assert_int_equal(wf_fake_close(), 0);
}

static const struct wf_nth_script script = { "test_nth_doors", shapes, { 1, 4 }, run_script };

static void descriptors_fail(void **state)
{
	(void)state;
	for (unsigned shape = 0; shapes[shape]; shape++)
		wf_nth_each(&script, shape, WF_NTH_FILE);
}

static void memory_fails(void **state)
{
	(void)state;
	for (unsigned shape = 0; shapes[shape]; shape++)
		wf_nth_each(&script, shape, WF_NTH_MEMORY);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_fail),
		cmocka_unit_test(memory_fails),
	};

	if (argc == 6) {
		wf_nth_once(&script, argv);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
