/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates of nodes that run: new ones, new authorities, and revoked peers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/weft.h>

#include "tests/fabric/said.h"
#include "tests/unit/secure/certificates.h"

#define LIMIT_NS 20000000000ull
#define GONE_NS 5000000000ull
#define BODY_BYTES ((size_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Files of a node's in the folder. */
struct files {
	const char *cert, *key, *ca;
};

static const struct files files_a = { "a.cert", "a.key", "a.ca" };
static const struct files files_b = { "b.cert", "b.key", "b.ca" };
static struct certificate authority;

/* Two nodes that have met, and the certificate of b. */
struct two {
	struct weft_node *a, *b;
	struct weft_peer *to_b;
	struct certificate of_b;
};

/* Give a node a certificate of @issuer for @identity.  Returns it. */
static struct certificate give(const struct files *f, const struct certificate *issuer,
			       const char *identity)
{
	char names[200];
	struct certificate c;

	(void)snprintf(names, sizeof(names), "URI:%s,IP:127.0.0.1", identity);
	c = certificates_make(issuer, &(struct certificates_wish){ .names = names });
	certificates_save(f->cert, c.cert);
	certificates_save_key(f->key, c.key, NULL);
	return c;
}

static void set_path(const char *name, const char *file)
{
	char path[CERTIFICATES_PATH_BYTES];

	certificates_path(path, file);
	assert_int_equal(setenv(name, path, 1), 0);
}

static struct weft_node *open_node(const struct files *f)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .provider = "tcp", .log = said_line,
		.timeout_ns = LIMIT_NS,
	};
	struct weft_node *node;

	set_path("WEFT_CERT", f->cert);
	set_path("WEFT_KEY", f->key);
	set_path("WEFT_CA", f->ca);
	if (weft_node_open(&options, &node))
		fail_msg("%s", weft_error());
	return node;
}

/* Ping @peer.  Returns how that ended, and why in @text. */
static enum weft_status ping(struct weft_peer *peer, char text[600])
{
	enum weft_status status;
	struct weft_op *op;

	assert_int_equal(weft_ping(peer, NULL, &op), 0);
	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	status = weft_op_status(op);
	(void)snprintf(text, 600, "%s", weft_op_message(op));
	weft_op_free(op);
	return status;
}

static void assert_answers(struct weft_peer *peer)
{
	char text[600];

	if (ping(peer, text) != WEFT_OK)
		fail_msg("%s", text);
}

static void assert_identity(struct weft_peer *peer, const char *expected)
{
	char identity[WEFT_IDENTITY_BYTES];

	assert_int_equal(weft_peer_identity(peer, identity, sizeof(identity)), 0);
	assert_string_equal(identity, expected);
}

static uint64_t resumed(struct weft_node *node)
{
	struct weft_counters c = WEFT_COUNTERS_INIT;

	assert_int_equal(weft_node_counters(node, &c), 0);
	return c.links_resumed;
}

/* Open two nodes, of which b, or else a, has dialled the other. */
static struct two open_two(bool b_dials)
{
	struct two two;
	struct weft_peer *to_a;
	struct certificate of_a;

	certificates_save(files_a.ca, authority.cert);
	certificates_save(files_b.ca, authority.cert);
	of_a = give(&files_a, &authority, "spiffe://one/a");
	certificates_free(&of_a);
	two.of_b = give(&files_b, &authority, "spiffe://one/b");
	two.a = open_node(&files_a);
	two.b = open_node(&files_b);
	assert_int_equal(weft_peer_open(two.b, weft_node_address(two.a), &to_a), 0);
	if (b_dials)
		assert_answers(to_a);
	weft_peer_close(to_a);
	assert_int_equal(weft_peer_open(two.a, weft_node_address(two.b), &two.to_b), 0);
	assert_answers(two.to_b);
	assert_identity(two.to_b, "spiffe://one/b");
	return two;
}

static void close_two(struct two *two)
{
	weft_peer_close(two->to_b);
	assert_int_equal(weft_node_close(two->a), 0);
	assert_int_equal(weft_node_close(two->b), 0);
	certificates_free(&two->of_b);
}

/* Ping until a has met b anew, and no ping fails. */
static void go_on_until_resumed(const struct two *two, uint64_t before)
{
	for (uint64_t ms = 0; resumed(two->a) == before; ms++) {
		assert_true(ms < LIMIT_NS / 1000000);
		assert_answers(two->to_b);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	assert_answers(two->to_b);
}

static void a_new_certificate_of_the_same_identity_fails_no_operation(void **state)
{
	(void)state;
	for (unsigned b_dials = 0; b_dials < 2; b_dials++) {
		struct two two = open_two(b_dials);
		uint64_t before = resumed(two.a);

		certificates_free(&two.of_b);
		two.of_b = give(&files_b, &authority, "spiffe://one/b");
		assert_int_equal(weft_node_rekey(two.b), 0);
		go_on_until_resumed(&two, before);
		assert_identity(two.to_b, "spiffe://one/b");
		close_two(&two);
	}
}

static void a_new_authority_takes_the_place_of_the_old_in_three_steps(void **state)
{
	struct certificate next =
		certificates_make(NULL, &(struct certificates_wish){ .is_authority = true }), of_a;
	struct two two = open_two(false);
	uint64_t before;

	(void)state;
	/* Both authorities are trusted, all nodes get new certificates, and the old one goes. */
	certificates_append(files_a.ca, next.cert);
	certificates_append(files_b.ca, next.cert);
	assert_int_equal(weft_node_rekey(two.a), 0);
	assert_int_equal(weft_node_rekey(two.b), 0);
	certificates_free(&two.of_b);
	two.of_b = give(&files_b, &next, "spiffe://one/b");
	of_a = give(&files_a, &next, "spiffe://one/a");
	assert_int_equal(weft_node_rekey(two.a), 0);
	assert_int_equal(weft_node_rekey(two.b), 0);
	go_on_until_resumed(&two, 0);
	certificates_save(files_a.ca, next.cert);
	certificates_save(files_b.ca, next.cert);
	before = resumed(two.a);
	assert_int_equal(weft_node_rekey(two.a), 0);
	assert_int_equal(weft_node_rekey(two.b), 0);
	go_on_until_resumed(&two, before);
	close_two(&two);
	certificates_free(&of_a);
	certificates_free(&next);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Note when the peer has gone. */
static void changed(struct weft_peer *peer, enum weft_peer_state state, const char *why, void *arg)
{
	(void)peer;
	(void)why;
	if (state == WEFT_PEER_GONE)
		atomic_store((_Atomic uint64_t *)arg, now_ns());
}

/* Send a tensor that is longer than a frame from a to b, however that ends. */
static void send_a_body(const struct two *two, uint64_t step)
{
	static uint8_t from[BODY_BYTES], into[BODY_BYTES];
	int64_t count = BODY_BYTES;
	struct weft_tensor sent = { .data = from, .device = { WEFT_CPU, 0 }, .ndim = 1,
				    .dtype = { WEFT_UINT, 8, 1 }, .shape = &count }, got = sent;
	struct weft_op *ops[2];

	got.data = into;
	assert_int_equal(weft_recv(two->b, NULL, step, "k", 1, &got, NULL, &ops[0]), 0);
	assert_int_equal(weft_send(two->to_b, step, "k", 1, &sent, NULL, &ops[1]), 0);
	assert_int_equal(weft_wait(ops[1], LIMIT_NS), 0);
	if (weft_op_status(ops[1]) != WEFT_OK)
		weft_cancel(ops[0]);
	assert_int_equal(weft_wait(ops[0], LIMIT_NS), 0);
	weft_op_free(ops[0]);
	weft_op_free(ops[1]);
}

/* Node a looks at its files by itself, while bodies go to b. */
static void a_peer_whose_certificate_is_revoked_is_gone_in_five_seconds(void **state)
{
	(void)state;
	for (unsigned b_dials = 0; b_dials < 2; b_dials++) {
		struct two two = open_two(b_dials);
		_Atomic uint64_t gone_ns = 0;
		uint64_t revoked_ns, step = 0;
		char text[600];

		assert_int_equal(weft_peer_on_change(two.to_b, changed, (void *)&gone_ns), 0);
		while (step < 10)
			send_a_body(&two, step++);
		revoked_ns = now_ns();
		certificates_revoke(files_a.ca, &authority, two.of_b.cert);
		while (!gone_ns) {
			assert_true(now_ns() - revoked_ns < LIMIT_NS);
			send_a_body(&two, step++);
		}
		print_message("gone in %llu ms\n",
			      (unsigned long long)(gone_ns - revoked_ns) / 1000000);
		assert_true(gone_ns - revoked_ns < GONE_NS);
		/* The revoked peer is not let in by a new dial either. */
		assert_int_equal(ping(two.to_b, text), WEFT_UNAUTHENTICATED);
		assert_non_null(strstr(text, "revoked"));
		close_two(&two);
	}
}

static void a_certificate_that_does_not_fit_its_key_leaves_the_old_one(void **state)
{
	struct two two = open_two(false);
	struct certificate other =
		certificates_make(&authority, &(struct certificates_wish){ .names = "DNS:x" });

	(void)state;
	certificates_save(files_b.cert, other.cert);
	assert_int_equal(weft_node_rekey(two.b), -EINVAL);
	assert_non_null(strstr(weft_error(), files_b.key));
	assert_answers(two.to_b);
	certificates_free(&other);
	close_two(&two);
}

static int begin(void **state)
{
	(void)certificates_begin(state);
	authority = certificates_make(NULL, &(struct certificates_wish){ .is_authority = true });
	return 0;
}

static int end(void **state)
{
	certificates_free(&authority);
	return certificates_end(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_certificate_of_the_same_identity_fails_no_operation),
		cmocka_unit_test(a_new_authority_takes_the_place_of_the_old_in_three_steps),
		cmocka_unit_test(a_peer_whose_certificate_is_revoked_is_gone_in_five_seconds),
		cmocka_unit_test(a_certificate_that_does_not_fit_its_key_leaves_the_old_one),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, begin, end);
}
