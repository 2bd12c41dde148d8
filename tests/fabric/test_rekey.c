/* SPDX-License-Identifier: BSD-2-Clause */
/* New keys in the place of old ones, under nodes that run, over real providers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "secure/credentials.h"
#include "secure/session.h"
#include "tests/fabric/calls.pb-c.h"
#include "tests/fabric/said.h"
#include "wire/frame.h"
#include "wire/greet.h"

#define LIMIT_NS 20000000000ull
#define TEXT_BYTES 1000
#define PATH_BYTES 96
#define KEY_BYTES 32
#define LONGEST_BYTES ((size_t)4 << 20)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static char folder[64];
/* Key files of nodes a and b, and two to copy from: the key that both begin with, and the next. */
static char file_a[PATH_BYTES], file_b[PATH_BYTES], old[PATH_BYTES], fresh[PATH_BYTES];
static Calls__Test_Service service;

struct two {
	struct weft_node *a, *b;
	struct weft_peer *to_a, *to_b;
	struct weft_stub *stub_a, *stub_b; /* of the services of a, at b, and of b, at a */
};

/* Files */

/* Put @bytes in the place of file @path, as a whole. */
static void put_file(const char *path, const void *bytes, size_t count)
{
	char beside[PATH_BYTES + 4];
	int fd;

	(void)snprintf(beside, sizeof(beside), "%s.new", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), (ssize_t)count);
	assert_int_equal(close(fd), 0);
	assert_int_equal(rename(beside, path), 0);
}

/* Put the key of file @from in the place of that of file @path. */
static void put_key(const char *path, const char *from)
{
	uint8_t key[KEY_BYTES];
	int fd = open(from, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, key, sizeof(key)), sizeof(key));
	assert_int_equal(close(fd), 0);
	put_file(path, key, sizeof(key));
}

static void make_key(const char *path)
{
	char beside[PATH_BYTES + 4];

	(void)snprintf(beside, sizeof(beside), "%s.new", path);
	if (weft_key_new(beside))
		fail_msg("%s", weft_error());
	assert_int_equal(rename(beside, path), 0);
}

/* Time */

static void sleep_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Nodes */

static void handle_empty(Calls__Test_Service *of, const Calls__Nothing *request,
			 Calls__Nothing_Closure closure, void *closure_data)
{
	Calls__Nothing reply = CALLS__NOTHING__INIT;

	(void)of;
	(void)request;
	closure(&reply, closure_data);
}

/* Open a node that proves itself by file @key, with the list @allow and service unless NULL. */
static struct weft_node *open_node(const char *key, const char *allow)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .provider = "tcp", .log = said_line,
		.timeout_ns = LIMIT_NS,
		.services = (ProtobufCService *const[]){ &service.base, NULL },
	};
	struct weft_node *node;

	assert_int_equal(setenv("WEFT_KEY_FILE", key, 1), 0);
	if (allow)
		assert_int_equal(setenv("WEFT_ALLOW", allow, 1), 0);
	if (weft_node_open(&options, &node))
		fail_msg("%s", weft_error());
	assert_int_equal(unsetenv("WEFT_KEY_FILE") || unsetenv("WEFT_ALLOW"), 0);
	return node;
}

static enum weft_status end_of(struct weft_op *op, char text[TEXT_BYTES])
{
	enum weft_status status;

	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	status = weft_op_status(op);
	(void)snprintf(text, TEXT_BYTES, "%s", weft_op_message(op));
	weft_op_free(op);
	return status;
}

static void ends(struct weft_op *op, enum weft_status status)
{
	char text[TEXT_BYTES];
	enum weft_status end = end_of(op, text);

	if (end != status)
		fail_msg("%s, not %s: \"%s\"", weft_status_name(end), weft_status_name(status),
			 text);
}

static struct weft_op *ping(struct weft_peer *peer)
{
	struct weft_op *op;

	assert_int_equal(weft_ping(peer, NULL, &op), 0);
	return op;
}

/*
 * Open the nodes with the old key, b with the list @allow unless NULL, and let them meet: b dials a
 * if @b_dials, else a dials b.
 */
static struct two open_two(const char *grace, bool b_dials, const char *allow)
{
	struct two two;

	put_key(file_a, old);
	put_key(file_b, old);
	assert_int_equal(setenv("WEFT_KEY_GRACE", grace, 1), 0);
	two.a = open_node(file_a, NULL);
	two.b = open_node(file_b, allow);
	assert_int_equal(unsetenv("WEFT_KEY_GRACE"), 0);
	assert_int_equal(weft_peer_open(two.a, weft_node_address(two.b), &two.to_b), 0);
	assert_int_equal(weft_peer_open(two.b, weft_node_address(two.a), &two.to_a), 0);
	assert_int_equal(weft_stub_open(two.to_b, &calls__test__descriptor, &two.stub_b), 0);
	assert_int_equal(weft_stub_open(two.to_a, &calls__test__descriptor, &two.stub_a), 0);
	ends(ping(b_dials ? two.to_a : two.to_b), WEFT_OK);
	ends(ping(b_dials ? two.to_b : two.to_a), WEFT_OK);
	return two;
}

static void close_two(struct two *two)
{
	weft_stub_close(two->stub_a);
	weft_stub_close(two->stub_b);
	weft_peer_close(two->to_a);
	weft_peer_close(two->to_b);
	assert_int_equal(weft_node_close(two->a), 0);
	assert_int_equal(weft_node_close(two->b), 0);
}

static void rekey(struct weft_node *node)
{
	if (weft_node_rekey(node))
		fail_msg("%s", weft_error());
}

static struct weft_counters count(struct weft_node *node)
{
	struct weft_counters counters = WEFT_COUNTERS_INIT;

	assert_int_equal(weft_node_counters(node, &counters), 0);
	return counters;
}

/* Wait until the links of both nodes have been proven anew more than so many times. */
static void wait_until_resumed(const struct two *two, uint64_t a, uint64_t b)
{
	uint64_t until = now_ns() + LIMIT_NS;

	while (count(two->a).links_resumed <= a || count(two->b).links_resumed <= b) {
		assert_true(now_ns() < until);
		sleep_a_little();
	}
}

/* Wait until the links that @node has dialled have got keys of new files more than @before times. */
static void wait_until_rekeyed(struct weft_node *node, uint64_t before)
{
	for (uint64_t until = now_ns() + LIMIT_NS; count(node).links_rekeyed <= before;) {
		assert_true(now_ns() < until);
		sleep_a_little();
	}
}

static void identity_of(struct weft_peer *peer, char identity[WEFT_IDENTITY_BYTES])
{
	if (weft_peer_identity(peer, identity, WEFT_IDENTITY_BYTES))
		fail_msg("%s", weft_error());
}

/* Tell the identity that the key of file @path gives. */
static void identity_by(const char *path, char identity[WEFT_IDENTITY_BYTES])
{
	struct weft_node *a = open_node(path, NULL), *b = open_node(path, NULL);
	struct weft_peer *peer;

	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	ends(ping(peer), WEFT_OK);
	identity_of(peer, identity);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(a), 0);
	assert_int_equal(weft_node_close(b), 0);
}

/* Let a node with the key of file @path dial @node, or be dialled by it.  Returns how that ends. */
static enum weft_status meet_third(struct weft_node *node, const char *path, bool dialled)
{
	struct weft_node *third = open_node(path, NULL), *from = dialled ? node : third;
	struct weft_node *to = dialled ? third : node;
	enum weft_status status;
	struct weft_peer *peer;
	char text[TEXT_BYTES];

	assert_int_equal(weft_peer_open(from, weft_node_address(to), &peer), 0);
	status = end_of(ping(peer), text);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(third), 0);
	return status;
}

/* Meet a node with the key of file @path until that ends so. */
static void meet_until(struct weft_node *node, const char *path, bool dialled,
		       enum weft_status status)
{
	uint64_t until = now_ns() + LIMIT_NS;

	while (meet_third(node, path, dialled) != status)
		assert_true(now_ns() < until);
}

/* Operations */

static void nothing_came(const Calls__Nothing *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static struct weft_op *call(struct weft_stub *stub)
{
	const Calls__Nothing request = CALLS__NOTHING__INIT;
	ProtobufCService *once;
	struct weft_op *op;

	assert_int_equal(weft_call_open(stub, NULL, &once, &op), 0);
	calls__test__empty(once, &request, nothing_came, NULL);
	return op;
}

/* Calls and tensors of all sizes, from one node to the other, in a thread of their own. */
struct traffic {
	struct weft_node *to;
	struct weft_peer *peer; /* @to, at the other */
	struct weft_stub *stub; /* of its service */
	uint64_t step;          /* the first */
	pthread_t thread;
	atomic_bool stop, failed;
	atomic_uint rounds;
	char wrong[TEXT_BYTES + 100]; /* the first thing that failed; "": nothing has */
};

/* Did @op end well?  Frees it; NULL: it did not begin. */
static bool went_well(struct traffic *t, const char *what, size_t bytes, struct weft_op *op)
{
	bool good = op && !weft_wait(op, LIMIT_NS) && weft_op_status(op) == WEFT_OK;

	if (!good && !t->wrong[0])
		(void)snprintf(t->wrong, sizeof(t->wrong), "%s of %zu bytes: %s", what, bytes,
			       op ? weft_op_message(op) : weft_error());
	weft_op_free(op);
	return good;
}

static bool call_goes_well(struct traffic *t)
{
	const Calls__Nothing request = CALLS__NOTHING__INIT;
	ProtobufCService *once;
	struct weft_op *op;

	if (weft_call_open(t->stub, NULL, &once, &op))
		return went_well(t, "call", 0, NULL);
	calls__test__empty(once, &request, nothing_came, NULL);
	return went_well(t, "call", 0, op);
}

static bool tensor_goes_well(struct traffic *t, uint64_t step, int64_t length, uint8_t *from,
			     uint8_t *into)
{
	struct weft_tensor sent = { .data = from, .device = { WEFT_CPU, 0 }, .ndim = 1,
				    .dtype = { WEFT_UINT, 8, 1 }, .shape = &length }, got = sent;
	struct weft_op *send = NULL, *receive = NULL;
	bool good;

	got.data = into;
	memset(from, (int)step + 1, (size_t)length);
	memset(into, 0, (size_t)length);
	if (weft_recv(t->to, NULL, step, "k", 1, &got, NULL, &receive) ||
	    weft_send(t->peer, step, "k", 1, &sent, NULL, &send))
		good = false;
	else
		good = true;
	good = went_well(t, "send", (size_t)length, send) && good;
	good = went_well(t, "receive", (size_t)length, receive) && good;
	if (good && memcmp(from, into, (size_t)length)) {
		(void)snprintf(t->wrong, sizeof(t->wrong), "%lld other bytes", (long long)length);
		good = false;
	}
	(void)weft_step_end(t->to, step);
	return good;
}

static void *keep_busy(void *arg)
{
	static const int64_t sizes[] = { 1, 100, 5000, 60000, 66000, 1 << 20, LONGEST_BYTES };
	uint8_t *from = malloc(LONGEST_BYTES), *into = malloc(LONGEST_BYTES);
	struct traffic *t = arg;
	uint64_t step = t->step;

	while (!atomic_load(&t->stop) && !atomic_load(&t->failed)) {
		bool good = from && into && call_goes_well(t);

		for (size_t i = 0; i < COUNT(sizes) && good; i++)
			good = tensor_goes_well(t, step++, sizes[i], from, into);
		atomic_store(&t->failed, !good);
		atomic_fetch_add(&t->rounds, 1);
	}
	free(from);
	free(into);
	return NULL;
}

static void begin(struct traffic *t, struct weft_node *to, struct weft_peer *peer,
		  struct weft_stub *stub, uint64_t step)
{
	*t = (struct traffic){ .to = to, .peer = peer, .stub = stub, .step = step };
	assert_int_equal(pthread_create(&t->thread, NULL, keep_busy, t), 0);
}

/* Wait until @rounds more have begun and ended; fewer if something has failed. */
static void let_go_on(struct traffic *t, unsigned rounds)
{
	unsigned until_round = atomic_load(&t->rounds) + rounds + 1;
	uint64_t until = now_ns() + 3 * LIMIT_NS;

	while (atomic_load(&t->rounds) < until_round && !atomic_load(&t->failed) &&
	       now_ns() < until)
		sleep_a_little();
}

static void went_all_well(struct traffic *t)
{
	atomic_store(&t->stop, true);
	assert_int_equal(pthread_join(t->thread, NULL), 0);
	if (t->wrong[0])
		fail_msg("round %u: %s", atomic_load(&t->rounds), t->wrong);
	assert_false(atomic_load(&t->failed));
}

/* Replace the key of both nodes, one after the other, while operations go both ways. */
static void replace_under_way(const char *grace, bool b_dials)
{
	struct two two = open_two(grace, b_dials, NULL);
	struct weft_node *dials = b_dials ? two.b : two.a;
	struct traffic there, back;

	begin(&there, two.b, two.to_b, two.stub_b, 0);
	begin(&back, two.a, two.to_a, two.stub_a, 1u << 30);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t a = count(two.a).links_resumed, b = count(two.b).links_resumed;
		uint64_t keys = count(dials).links_rekeyed;

		make_key(fresh);
		put_key(i % 2 ? file_b : file_a, fresh);
		rekey(i % 2 ? two.b : two.a);
		let_go_on(&there, 1);
		put_key(i % 2 ? file_a : file_b, fresh);
		rekey(i % 2 ? two.a : two.b);
		wait_until_resumed(&two, a, b);
		wait_until_rekeyed(dials, keys);
		let_go_on(&there, 2);
		let_go_on(&back, 2);
	}
	went_all_well(&there);
	went_all_well(&back);
	assert_int_equal(count(two.a).peers_lost + count(two.b).peers_lost, 0);
	close_two(&two);
}

static void operations_go_on_while_the_key_is_replaced(void **state)
{
	(void)state;
	replace_under_way("1s", false);
	replace_under_way("1s", true);
}

static void a_node_with_the_old_key_is_let_in_within_the_grace(void **state)
{
	struct two two = open_two("600s", false, NULL);

	(void)state;
	put_key(file_b, fresh);
	rekey(two.b);
	for (unsigned dialled = 0; dialled < 2; dialled++) {
		assert_int_equal(meet_third(two.b, old, dialled), WEFT_OK);
		assert_int_equal(meet_third(two.b, fresh, dialled), WEFT_OK);
		assert_int_equal(meet_third(two.a, old, dialled), WEFT_OK);
		assert_int_equal(meet_third(two.a, fresh, dialled), WEFT_UNAUTHENTICATED);
	}
	ends(ping(two.to_a), WEFT_OK);
	ends(ping(two.to_b), WEFT_OK);
	close_two(&two);
}

static void a_node_with_the_old_key_is_refused_after_the_grace(void **state)
{
	static const char *const graces[] = { "100ms", "0" };

	(void)state;
	for (size_t i = 0; i < COUNT(graces); i++) {
		struct two two = open_two(graces[i], false, NULL);

		put_key(file_a, fresh);
		put_key(file_b, fresh);
		rekey(two.b);
		rekey(two.a);
		for (unsigned dialled = 0; dialled < 2; dialled++) {
			meet_until(two.b, old, dialled, WEFT_UNAUTHENTICATED);
			assert_int_equal(meet_third(two.b, fresh, dialled), WEFT_OK);
		}
		ends(ping(two.to_a), WEFT_OK);
		ends(ping(two.to_b), WEFT_OK);
		close_two(&two);
	}
}

static void note_gone(struct weft_peer *peer, enum weft_peer_state state, const char *why,
		      void *arg)
{
	(void)peer;
	(void)why;
	if (state == WEFT_PEER_GONE)
		atomic_store((atomic_bool *)arg, true);
}

static void wait_for(const atomic_bool *what)
{
	uint64_t until = now_ns() + LIMIT_NS;

	while (!atomic_load(what)) {
		assert_true(now_ns() < until);
		sleep_a_little();
	}
}

static void a_link_ends_whose_peer_has_only_the_old_key(void **state)
{
	struct weft_op *pending;
	char text[TEXT_BYTES];

	(void)state;
	assert_int_equal(setenv("WEFT_LOST", "2s", 1), 0);
	for (unsigned b_dials = 0; b_dials < 2; b_dials++) {
		struct two two = open_two("100ms", b_dials, NULL);
		atomic_bool a_gone = false, b_gone = false;

		assert_int_equal(weft_peer_on_change(two.to_a, note_gone, &a_gone), 0);
		assert_int_equal(weft_peer_on_change(two.to_b, note_gone, &b_gone), 0);
		assert_int_equal(weft_recv(two.b, two.to_a, 1, "k", 1, NULL, NULL, &pending), 0);
		put_key(file_b, fresh);
		rekey(two.b);
		wait_for(&a_gone);
		wait_for(&b_gone);
		assert_int_not_equal(end_of(pending, text), WEFT_OK);
		ends(ping(two.to_b), WEFT_UNAUTHENTICATED);
		ends(ping(two.to_a), WEFT_UNAUTHENTICATED);
		/* With the new key they meet again. */
		put_key(file_a, fresh);
		rekey(two.a);
		ends(ping(two.to_b), WEFT_OK);
		ends(call(two.stub_a), WEFT_OK);
		close_two(&two);
	}
	assert_int_equal(unsetenv("WEFT_LOST"), 0);
}

static void a_link_that_began_by_the_old_key_in_its_grace_ends_with_it(void **state)
{
	(void)state;
	assert_int_equal(setenv("WEFT_LOST", "2s", 1), 0);
	for (unsigned dialled = 0; dialled < 2; dialled++) {
		struct two two = open_two("5s", false, NULL);
		struct weft_node *third = open_node(old, NULL);
		atomic_bool gone = false;
		struct weft_peer *there, *back;

		put_key(file_b, fresh);
		rekey(two.b);
		assert_int_equal(weft_peer_open(third, weft_node_address(two.b), &there), 0);
		assert_int_equal(weft_peer_open(two.b, weft_node_address(third), &back), 0);
		ends(ping(dialled ? back : there), WEFT_OK);
		ends(ping(dialled ? there : back), WEFT_OK);
		assert_int_equal(weft_peer_on_change(there, note_gone, &gone), 0);
		wait_for(&gone);
		ends(ping(there), WEFT_UNAUTHENTICATED);
		weft_peer_close(back);
		weft_peer_close(there);
		assert_int_equal(weft_node_close(third), 0);
		close_two(&two);
	}
	assert_int_equal(unsetenv("WEFT_LOST"), 0);
}

static void a_key_file_that_cannot_be_used_leaves_the_key_before(void **state)
{
	static const uint8_t bytes[KEY_BYTES + 1];
	static const size_t lengths[] = { 0, KEY_BYTES - 1, KEY_BYTES + 1 };
	struct two two = open_two("0", false, NULL);

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		put_file(file_b, bytes, lengths[i]);
		assert_int_equal(weft_node_rekey(two.b), -EINVAL);
		assert_non_null(strstr(weft_error(), file_b));
		assert_int_equal(meet_third(two.b, old, i % 2), WEFT_OK);
		ends(ping(two.to_b), WEFT_OK);
	}
	assert_int_equal(unlink(file_b), 0);
	assert_int_equal(weft_node_rekey(two.b), -ENOENT);
	assert_int_equal(meet_third(two.b, old, false), WEFT_OK);
	/* The same key in a new file is no change. */
	put_key(file_b, old);
	rekey(two.b);
	assert_int_equal(meet_third(two.b, old, false), WEFT_OK);
	put_key(file_b, fresh);
	rekey(two.b);
	meet_until(two.b, fresh, false, WEFT_OK);
	close_two(&two);
}

static void the_grace_of_a_key_outlives_a_second_look_at_the_new_one(void **state)
{
	struct two two = open_two("600s", false, NULL);

	(void)state;
	put_key(file_b, fresh);
	rekey(two.b);
	rekey(two.b);
	put_key(file_b, fresh);
	rekey(two.b);
	for (unsigned dialled = 0; dialled < 2; dialled++) {
		assert_int_equal(meet_third(two.b, old, dialled), WEFT_OK);
		assert_int_equal(meet_third(two.b, fresh, dialled), WEFT_OK);
	}
	close_two(&two);
}

static void a_node_sees_by_itself_that_its_key_has_changed(void **state)
{
	struct two two = open_two("100ms", false, NULL);
	uint64_t a = count(two.a).links_resumed, b = count(two.b).links_resumed;

	(void)state;
	put_key(file_a, fresh);
	put_key(file_b, fresh);
	meet_until(two.b, fresh, false, WEFT_OK);
	meet_until(two.a, fresh, true, WEFT_OK);
	wait_until_resumed(&two, a, b);
	meet_until(two.b, old, false, WEFT_UNAUTHENTICATED);
	ends(ping(two.to_b), WEFT_OK);
	ends(call(two.stub_a), WEFT_OK);
	close_two(&two);
}

/* The first has not looked at its file, and the second never had another key. */
static void a_node_that_starts_with_the_new_key_is_let_in(void **state)
{
	struct two two = open_two("100ms", false, NULL);

	(void)state;
	for (unsigned dialled = 0; dialled < 2; dialled++) {
		make_key(fresh);
		put_key(file_b, fresh);
		assert_int_equal(meet_third(two.b, fresh, dialled), WEFT_OK);
	}
	close_two(&two);
}

static void call_until(struct weft_stub *stub, enum weft_status status)
{
	uint64_t until = now_ns() + LIMIT_NS;
	char text[TEXT_BYTES];

	while (end_of(call(stub), text) != status) {
		assert_true(now_ns() < until);
		sleep_a_little();
	}
}

static void a_node_takes_a_file_that_is_mended_later(void **state)
{
	static const uint8_t bytes[KEY_BYTES - 1];
	struct two two = open_two("600s", false, NULL);

	(void)state;
	put_file(file_b, bytes, sizeof(bytes));
	assert_true(said_comes("this node's credentials stay as they were"));
	assert_true(said_has(file_b));
	assert_int_equal(meet_third(two.b, old, false), WEFT_OK);
	put_key(file_b, fresh);
	meet_until(two.b, fresh, false, WEFT_OK);
	close_two(&two);
}

static void a_list_that_cannot_be_used_keeps_no_key_back(void **state)
{
	static const char good[] = "allow * calls *\n", bad[] = "allow * everything\n",
			  none[] = "allow * abort\n";
	static const uint8_t bytes[KEY_BYTES - 1];
	char list[PATH_BYTES];
	struct two two;

	(void)state;
	(void)snprintf(list, sizeof(list), "%s/list", folder);
	put_file(list, good, strlen(good));
	two = open_two("600s", false, list);
	ends(call(two.stub_b), WEFT_OK);
	put_file(list, bad, strlen(bad));
	assert_true(said_comes("the rights of this node's peers stay as they were"));
	put_key(file_b, fresh);
	meet_until(two.b, fresh, false, WEFT_OK);
	ends(call(two.stub_b), WEFT_OK);
	/* A key file that cannot be used keeps no list back, either. */
	put_file(file_b, bytes, sizeof(bytes));
	assert_true(said_comes("what this node proves itself by, and its peers' rights, "
			       "stay as they were"));
	put_file(list, none, strlen(none));
	call_until(two.stub_b, WEFT_PERMISSION_DENIED);
	assert_int_equal(meet_third(two.b, fresh, false), WEFT_OK);
	close_two(&two);
	assert_int_equal(unlink(list), 0);
}

static void an_identity_is_that_of_the_key_that_was_shown_last(void **state)
{
	char identity[WEFT_IDENTITY_BYTES], seen[WEFT_IDENTITY_BYTES];

	(void)state;
	for (unsigned b_dials = 0; b_dials < 2; b_dials++) {
		struct two two = open_two("100ms", b_dials, NULL);
		uint64_t a = count(two.a).links_resumed, b = count(two.b).links_resumed;

		identity_by(old, identity);
		identity_of(two.to_b, seen);
		assert_string_equal(seen, identity);
		put_key(file_a, fresh);
		put_key(file_b, fresh);
		rekey(two.b);
		rekey(two.a);
		wait_until_resumed(&two, a, b);
		ends(ping(two.to_b), WEFT_OK);
		ends(ping(two.to_a), WEFT_OK);
		identity_by(fresh, identity);
		identity_of(two.to_b, seen);
		assert_string_equal(seen, identity);
		identity_of(two.to_a, seen);
		assert_string_equal(seen, identity);
		close_two(&two);
	}
}

static void rights_follow_the_key_that_a_peer_shows(void **state)
{
	char identity[WEFT_IDENTITY_BYTES], text[2 * WEFT_IDENTITY_BYTES], list[PATH_BYTES];
	struct two two;
	uint64_t a, b;

	(void)state;
	(void)snprintf(list, sizeof(list), "%s/list", folder);
	identity_by(fresh, identity);
	(void)snprintf(text, sizeof(text), "allow %s all\n", identity);
	put_file(list, text, strlen(text));
	two = open_two("100ms", false, list);
	a = count(two.a).links_resumed;
	b = count(two.b).links_resumed;
	ends(call(two.stub_b), WEFT_PERMISSION_DENIED);
	put_key(file_a, fresh);
	put_key(file_b, fresh);
	rekey(two.b);
	rekey(two.a);
	wait_until_resumed(&two, a, b);
	ends(call(two.stub_b), WEFT_OK);
	close_two(&two);
	assert_int_equal(unlink(list), 0);
}

static int make_files(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/weft-rekey.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(file_a, sizeof(file_a), "%s/a", folder);
	(void)snprintf(file_b, sizeof(file_b), "%s/b", folder);
	(void)snprintf(old, sizeof(old), "%s/old", folder);
	(void)snprintf(fresh, sizeof(fresh), "%s/fresh", folder);
	calls__test__init(&service, NULL);
	service.empty = handle_empty;
	return weft_key_new(old) || weft_key_new(fresh);
}

static int remove_files(void **state)
{
	(void)state;
	return unlink(file_a) || unlink(file_b) || unlink(old) || unlink(fresh) || rmdir(folder);
}

static int forget(void **state)
{
	(void)state;
	said_forget();
	return 0;
}

#define TEST(test) cmocka_unit_test_setup(test, forget)

/* A peer that the test plays by itself: a session at the door of a node, and nothing more. */
struct caller {
	struct wf_credentials *credentials;
	struct wf_session *session;
	int fd;
};

/* Send what the session of @c has to say. */
static void say(const struct caller *c)
{
	const uint8_t *bytes;
	size_t count;

	while ((bytes = wf_session_outgoing(c->session, &count))) {
		assert_int_equal(send(c->fd, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
		wf_session_sent(c->session, count);
	}
}

/* Wait for bytes of the node.  False: it has ended the connection. */
static bool hear(const struct caller *c)
{
	uint8_t bytes[4096];
	ssize_t count = recv(c->fd, bytes, sizeof(bytes), 0);

	if (count > 0)
		assert_int_equal(wf_session_feed(c->session, bytes, (size_t)count), 0);
	return count > 0;
}

/* Prove the key of file @key to @node. */
static struct caller open_caller(const struct weft_node *node, const char *key)
{
	const struct wf_credentials_files files = { .key_file = key };
	const struct timeval limit = { .tv_sec = LIMIT_NS / 1000000000 };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *port = strrchr(weft_node_address(node), ':');
	struct caller c = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	struct wf_error e = { 0 };
	int err;

	assert_non_null(port);
	at.sin_port = htons((uint16_t)atoi(port + 1));
	assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(connect(c.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	if (wf_credentials_open(&files, &c.credentials, &e))
		fail_msg("%s", e.text);
	assert_int_equal(wf_session_new(c.credentials, "127.0.0.1", false, &c.session), 0);
	while ((err = wf_session_shake(c.session, &e)) == -EAGAIN) {
		say(&c);
		assert_true(hear(&c));
	}
	if (err)
		fail_msg("%s", e.text);
	say(&c);
	return c;
}

/* Say the hello of a peer without rails.  Does the node say anything to it? */
static bool is_answered(const struct caller *c)
{
	const struct wf_greet greet = {
		.kind = WF_GREET_HELLO,
		.hello = { .wire_min = WF_WIRE_VERSION, .wire_max = WF_WIRE_VERSION,
			   .incarnation = "a caller", .link = 1, .token = 2,
			   .lost_ns = LIMIT_NS, .security = "sealed" },
	};
	uint8_t bytes[WF_GREET_BYTES_MAX];
	int count = wf_greet_put(&greet, bytes);
	struct wf_error e;
	ssize_t got;

	assert_true(count > 0);
	assert_int_equal(wf_session_write(c->session, bytes, (size_t)count), count);
	say(c);
	while ((got = wf_session_read(c->session, bytes, sizeof(bytes), &e)) == -EAGAIN)
		if (!hear(c))
			return false;
	return got > 0;
}

static void close_caller(struct caller *c)
{
	wf_session_free(c->session);
	wf_credentials_put(c->credentials);
	close(c->fd);
}

/* Somebody with a key that leaks holds a session ready, and greets by it after the change. */
static void a_session_of_the_old_key_meets_nobody_by_a_later_hello(void **state)
{
	struct weft_node *node;
	struct caller caller;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		put_key(file_a, old);
		assert_int_equal(setenv("WEFT_KEY_GRACE", i == 1 ? "60s" : "0", 1), 0);
		node = open_node(file_a, NULL);
		assert_int_equal(unsetenv("WEFT_KEY_GRACE"), 0);
		caller = open_caller(node, old);
		if (i) {
			put_key(file_a, fresh);
			rekey(node);
		}
		/* Before the change, in the grace of the old key, after it. */
		assert_int_equal(is_answered(&caller), i < 2);
		close_caller(&caller);
		assert_int_equal(weft_node_close(node), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(operations_go_on_while_the_key_is_replaced),
		TEST(a_node_with_the_old_key_is_let_in_within_the_grace),
		TEST(a_node_with_the_old_key_is_refused_after_the_grace),
		TEST(a_link_ends_whose_peer_has_only_the_old_key),
		TEST(a_link_that_began_by_the_old_key_in_its_grace_ends_with_it),
		TEST(a_key_file_that_cannot_be_used_leaves_the_key_before),
		TEST(the_grace_of_a_key_outlives_a_second_look_at_the_new_one),
		TEST(a_node_sees_by_itself_that_its_key_has_changed),
		TEST(a_node_that_starts_with_the_new_key_is_let_in),
		TEST(a_node_takes_a_file_that_is_mended_later),
		TEST(a_list_that_cannot_be_used_keeps_no_key_back),
		TEST(an_identity_is_that_of_the_key_that_was_shown_last),
		TEST(rights_follow_the_key_that_a_peer_shows),
		TEST(a_session_of_the_old_key_meets_nobody_by_a_later_hello),
	};

	(void)argc;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
