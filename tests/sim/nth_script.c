/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/nth_script.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/weft.h>

#include "tests/sim/world.h"

static const char *const kinds[] = { "memory", "fabric", "file", NULL };
static bool is_child;
static uint64_t row;

/* Runs at once: most of those with real time only wait. */
#define CHILDREN 4
#define SETTLE_MS 10000 /* for a thread to end, on a busy machine */

static struct child {
	pid_t pid; /* 0: none */
	struct wf_nth_fault fault;
} children[CHILDREN];

bool wf_nth_is_child(void)
{
	return is_child;
}

uint64_t wf_nth_row(void)
{
	return row;
}

/* A sentence that no call of a script leaves. */
static void forget_error(void)
{
	const struct weft_tensor none = { .ndim = -1 };
	uint64_t bytes;

	assert_int_not_equal(weft_tensor_bytes(&none, &bytes), 0);
}

bool wf_nth_again(int rc)
{
	static unsigned tries;

	if (!rc) {
		tries = 0;
		forget_error();
		return false;
	}
	if (!wf_nth_failed())
		fail_msg("a call failed with nothing amiss: %s", weft_error());
	if (rc > 0 || !weft_error()[0] || strstr(weft_error(), "rank -1"))
		fail_msg("a call that fails gives %d and \"%s\"", rc, weft_error());
	if (tries++ > row)
		fail_msg("a call fails for ever: %s", weft_error());
	forget_error();
	return true;
}

static unsigned descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void run(const struct wf_nth_script *script, unsigned variant,
		const struct wf_nth_fault *fault)
{
	unsigned files = descriptors();
	size_t blocks = wf_nth_blocks();

	row = fault->count;
	wf_nth_fail(fault);
	forget_error();
	script->run(variant);
	/* Looking up a name has a thread of its own, which may outlive the node that asked. */
	for (unsigned ms = 0; ms < SETTLE_MS && (wf_nth_blocks() != blocks || descriptors() != files);
	     ms++)
		usleep(1000);
	if (wf_nth_blocks() != blocks)
		fail_msg("%zd blocks of memory leaked", (ssize_t)(wf_nth_blocks() - blocks));
	assert_int_equal(descriptors(), files);
}

/* Wait for one of the children: 1 if it has failed. */
static unsigned reap(const struct wf_nth_script *script, unsigned variant)
{
	int status = 0;
	pid_t pid = wait(&status);
	struct child *c = children;

	assert_true(pid > 0);
	while (c->pid != pid)
		c++;
	c->pid = 0;
	if (!status)
		return 0;
	print_error("failed: %s %s %s %llu %llu %u does it again\n", script->program,
		    script->variants[variant], kinds[c->fault.kind],
		    (unsigned long long)c->fault.first, (unsigned long long)c->fault.count,
		    c->fault.code);
	return 1;
}

/* Run it in a process of its own; how many others have failed meanwhile. */
static unsigned start(const struct wf_nth_script *script, unsigned variant,
		      const struct wf_nth_fault *fault)
{
	unsigned failed = 0, at = 0;

	while (at < CHILDREN && children[at].pid)
		at++;
	if (at == CHILDREN) {
		failed = reap(script, variant);
		for (at = 0; children[at].pid; at++)
			;
	}
	fflush(NULL);
	children[at].fault = *fault;
	children[at].pid = fork();
	assert_true(children[at].pid >= 0);
	if (children[at].pid)
		return failed;
	is_child = true;
	/* An assertion that fails leaves by main, with a status of its own. */
	run(script, variant, fault);
	exit(0);
}

static bool any_child(void)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		if (children[i].pid)
			return true;
	return false;
}

/* A positive number of the environment's. */
static uint64_t setting(const char *name, uint64_t preset)
{
	const char *text = getenv(name);
	uint64_t number = text ? strtoull(text, NULL, 10) : 0;

	return number ? number : preset;
}

void wf_nth_each(const struct wf_nth_script *script, unsigned variant, enum wf_nth_kind kind)
{
	const uint64_t stride = setting("NTH_STRIDE", 1);
	struct wf_nth_fault fault = { .kind = kind };
	unsigned failed = 0;
	uint64_t calls;

	if (is_child)
		return; /* its own run has failed */
	run(script, variant, &fault);
	calls = wf_nth_calls(kind);
	print_message("%s: %llu calls for %s\n", script->variants[variant],
		      (unsigned long long)calls, kinds[kind]);
	assert_true(calls > 0);
	for (fault.first = 1 + setting("NTH_FIRST", stride) % stride; fault.first <= calls;
	     fault.first += stride) {
		fault.code = 0;
		for (size_t i = 0; script->rows[i]; i++) {
			fault.count = script->rows[i];
			failed += start(script, variant, &fault);
		}
		fault.count = 1;
		for (fault.code = 1; kind == WF_NTH_FABRIC && fault.code < WF_NTH_CODES; fault.code++)
			failed += start(script, variant, &fault);
	}
	while (any_child())
		failed += reap(script, variant);
	assert_int_equal(failed, 0);
}

static unsigned index_of(const char *const *names, const char *name)
{
	unsigned i = 0;

	while (names[i] && strcmp(names[i], name))
		i++;
	if (!names[i])
		fail_msg("%s is unknown", name);
	return i;
}

void wf_nth_once(const struct wf_nth_script *script, char **argv)
{
	const struct wf_nth_fault fault = {
		.kind = (enum wf_nth_kind)index_of(kinds, argv[2]),
		.first = strtoull(argv[3], NULL, 0),
		.count = strtoull(argv[4], NULL, 0),
		.code = (unsigned)strtoul(argv[5], NULL, 0),
	};

	run(script, index_of(script->variants, argv[1]), &fault);
}

void wf_nth_try(bool (*attempt)(void))
{
	unsigned tries = 0;

	while (!attempt())
		if (tries++ > wf_nth_row() + 1)
			fail_msg("it never goes well again");
}

const char *const wf_nth_shapes[] = {
	[WF_WORLD_CONNECTED] = "connected", [WF_WORLD_SHARED] = "shared", NULL
};

static void memory_fails_on_a_connected_rail(void **state)
{
	wf_nth_each(*state, WF_WORLD_CONNECTED, WF_NTH_MEMORY);
}

static void memory_fails_on_a_shared_rail(void **state)
{
	wf_nth_each(*state, WF_WORLD_SHARED, WF_NTH_MEMORY);
}

static void the_fabric_fails_on_a_connected_rail(void **state)
{
	wf_nth_each(*state, WF_WORLD_CONNECTED, WF_NTH_FABRIC);
}

int wf_nth_on_rails(const struct wf_nth_script *script, int argc, char **argv)
{
	void *of = (void *)(uintptr_t)script;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(memory_fails_on_a_connected_rail, of),
		cmocka_unit_test_prestate(memory_fails_on_a_shared_rail, of),
		cmocka_unit_test_prestate(the_fabric_fails_on_a_connected_rail, of),
	};

	if (argc != 6)
		return cmocka_run_group_tests(tests, NULL, NULL);
	wf_nth_once(script, argv);
	return 0;
}
