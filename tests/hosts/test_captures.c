/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What somebody who records the network sees of nodes: their doors speak TLS and nothing else,
 * whether or not they come to trust each other, and rails carry tensors as the mode says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

#include "core/node.h"
#include "tests/hosts/capture.h"
#include "tests/unit/secure/certificates.h"

#define LIMIT_NS 20000000000ull
#define SKIPPED 77
#define HOST "a-host-that-nobody-names"
#define IDENTITY "spiffe://captured/"
#define SAMPLE_BYTES 16
#define SAMPLES 64
#define RECORD_HEAD_BYTES 5
#define RECORD_BYTES_MAX (16384 + 256)

enum { ALERT = 21, HANDSHAKE = 22, DATA = 23 }; /* types of TLS records */

/* Key or certificate that a node proves itself by. */
struct proof {
	enum weft_security security;
	const char *key;  /* file of a key; NULL: none */
	const char *cert; /* name of a certificate, its key and its authority; NULL: none */
};

/* A node under capture. */
struct side {
	struct weft_node *node;
	const char *name;
	uint16_t port; /* port of its door */
};

static const struct proof bare = { WEFT_SECURITY_OPEN, NULL, NULL };
static char keys[2][64];
static const struct proof by_key = { WEFT_SECURITY_SEALED, keys[0], NULL };
static const struct proof by_another_key = { WEFT_SECURITY_SEALED, keys[1], NULL };
static const struct proof by_key_alone = { WEFT_SECURITY_KEYED, keys[0], NULL };
static const struct proof by_cert = { WEFT_SECURITY_SEALED, NULL, "one" };
static const struct proof by_another_cert = { WEFT_SECURITY_SEALED, NULL, "other" };

static void name_file(const char *variable, const char *name, const char *kind)
{
	char file[80], path[CERTIFICATES_PATH_BYTES];

	(void)snprintf(file, sizeof(file), "%s.%s", name, kind);
	certificates_path(path, file);
	assert_int_equal(setenv(variable, path, 1), 0);
}

static struct side open_side(const char *name, const struct proof *proof)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .security = proof->security, .name = name,
		.provider = "tcp", .timeout_ns = LIMIT_NS,
	};
	struct side side = { .name = name };

	if (proof->key)
		assert_int_equal(setenv("WEFT_KEY_FILE", proof->key, 1), 0);
	if (proof->cert) {
		name_file("WEFT_CERT", proof->cert, "cert");
		name_file("WEFT_KEY", proof->cert, "key");
		name_file("WEFT_CA", proof->cert, "ca");
	}
	if (weft_node_open(&options, &side.node))
		fail_msg("%s", weft_error());
	(void)(unsetenv("WEFT_KEY_FILE") | unsetenv("WEFT_CERT") | unsetenv("WEFT_KEY") |
	       unsetenv("WEFT_CA"));
	side.port = (uint16_t)atoi(strrchr(weft_node_address(side.node), ':') + 1);
	return side;
}

/* Let @from dial @to.  Returns how that ends. */
static enum weft_status meet(const struct side *from, const struct side *to)
{
	enum weft_status status;
	struct weft_peer *peer;
	struct weft_op *op;

	assert_int_equal(weft_peer_open(from->node, weft_node_address(to->node), &peer), 0);
	assert_int_equal(weft_ping(peer, NULL, &op), 0);
	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	status = weft_op_status(op);
	weft_op_free(op);
	weft_peer_close(peer);
	return status;
}

/* Bytes that tell something */

static bool has(const struct capture_stream *s, const void *bytes, size_t count)
{
	return s->count && memmem(s->bytes, s->count, bytes, count);
}

static void assert_lacks(const struct capture_stream *s, const void *bytes, size_t count,
			 const char *what)
{
	if (has(s, bytes, count))
		fail_msg("from port %u to %u: %s is in clear", s->from, s->to, what);
}

/* Is @s nothing but whole TLS records, of which the first is of the handshake or an alert? */
static bool is_tls(const struct capture_stream *s)
{
	size_t at = 0, length;

	while (s->count - at >= RECORD_HEAD_BYTES) {
		const uint8_t *record = s->bytes + at;

		length = (size_t)record[3] << 8 | record[4];
		if (record[0] < ALERT - 1 || record[0] > DATA || record[1] != 3 || record[2] > 3 ||
		    !length || length > RECORD_BYTES_MAX ||
		    (!at && record[0] != ALERT && record[0] != HANDSHAKE))
			return false;
		at += RECORD_HEAD_BYTES + length;
		if (at > s->count)
			return false;
	}
	return at == s->count;
}

static bool is_of_door(const struct capture_stream *s, const struct side *side)
{
	return s->from == side->port || s->to == side->port;
}

/* Stream @s, of what @side says, tells nothing of it. */
static void assert_tells_nothing(const struct capture_stream *s, const struct side *side)
{
	const uint8_t *incarnation = side->node->directory.incarnation;
	char hex[2 * WF_INCARNATION_BYTES + 1];

	for (size_t i = 0; i < WF_INCARNATION_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", incarnation[i]);
	assert_lacks(s, side->name, strlen(side->name), "the name of the node");
	assert_lacks(s, HOST, strlen(HOST), "the name of the host");
	assert_lacks(s, incarnation, WF_INCARNATION_BYTES, "the incarnation");
	assert_lacks(s, hex, strlen(hex), "the incarnation");
	assert_lacks(s, "127.0.0.1", strlen("127.0.0.1"), "an address");
	assert_lacks(s, IDENTITY, strlen(IDENTITY), "an identity");
}

/*
 * Both nodes have dialled each other, or tried: all that they said, or with @only all that this one
 * said, tells nothing, and is TLS alone at their doors.
 */
static void assert_both_tell_nothing(const struct side *a, const struct side *b,
				     const struct side *only)
{
	const struct capture_stream *streams;
	size_t count = capture_streams(&streams), doors = 0;

	for (size_t i = 0; i < count; i++) {
		const struct capture_stream *s = &streams[i];
		const struct side *at = is_of_door(s, a) ? a : b;
		const struct side *speaker = s->from == at->port ? at : at == a ? b : a;

		if (!is_of_door(s, at)) {
			/* A stream of the rail, which both may have. */
			assert_null(only);
			assert_tells_nothing(s, a);
			assert_tells_nothing(s, b);
		} else if (!only || speaker == only) {
			if (!is_tls(s))
				fail_msg("from port %u to %u: %zu bytes are not TLS alone", s->from,
					 s->to, s->count);
			assert_tells_nothing(s, speaker);
			doors += s->count != 0;
		}
	}
	assert_in_range(doors, only ? 1 : 2, count);
}

static void close_sides(struct side *a, struct side *b)
{
	assert_int_equal(weft_node_close(a->node), 0);
	assert_int_equal(weft_node_close(b->node), 0);
	capture_forget();
}

/* Have nodes with these proofs dial each other, a first; that ends as @status both times. */
static void capture_doors(const struct proof *of_a, const struct proof *of_b,
			  enum weft_status status, bool a_is_bare)
{
	struct side a = open_side("nobody-says-alpha", of_a);
	struct side b = open_side("nobody-says-beta", of_b);
	enum weft_status there = meet(&a, &b), back = meet(&b, &a);

	if (status == WEFT_UNKNOWN) {
		assert_int_not_equal(there, WEFT_OK);
		assert_int_not_equal(back, WEFT_OK);
	} else {
		assert_int_equal(there, status);
		assert_int_equal(back, status);
	}
	assert_both_tell_nothing(&a, &b, a_is_bare ? &b : NULL);
	close_sides(&a, &b);
}

static void doors_of_nodes_that_trust_each_other_speak_tls_alone(void **state)
{
	(void)state;
	capture_doors(&by_key, &by_key, WEFT_OK, false);
	capture_doors(&by_key_alone, &by_key_alone, WEFT_OK, false);
	capture_doors(&by_cert, &by_cert, WEFT_OK, false);
}

static void doors_tell_nothing_to_a_peer_with_another_key(void **state)
{
	(void)state;
	capture_doors(&by_another_key, &by_key, WEFT_UNAUTHENTICATED, false);
}

static void doors_tell_nothing_to_a_peer_with_the_certificate_of_another_authority(void **state)
{
	(void)state;
	capture_doors(&by_another_cert, &by_cert, WEFT_UNAUTHENTICATED, false);
	capture_doors(&by_key, &by_cert, WEFT_UNAUTHENTICATED, false);
}

static void doors_tell_nothing_to_a_peer_in_open_mode(void **state)
{
	(void)state;
	assert_int_equal(setenv("WEFT_CONNECT_TIMEOUT", "300ms", 1), 0);
	capture_doors(&bare, &by_key, WEFT_UNKNOWN, true);
	capture_doors(&bare, &by_cert, WEFT_UNKNOWN, true);
	assert_int_equal(unsetenv("WEFT_CONNECT_TIMEOUT"), 0);
}

/* Without TLS the capture has what the others lack: a check that the others can fail. */
static void doors_in_open_mode_tell_names_and_incarnations(void **state)
{
	struct side a = open_side("nobody-says-alpha", &bare);
	struct side b = open_side("nobody-says-beta", &bare);
	const struct capture_stream *streams;
	size_t count, names = 0, incarnations = 0, tls = 0;

	(void)state;
	assert_int_equal(meet(&a, &b), WEFT_OK);
	count = capture_streams(&streams);
	for (size_t i = 0; i < count; i++) {
		if (!is_of_door(&streams[i], &b))
			continue;
		names += has(&streams[i], a.name, strlen(a.name));
		names += has(&streams[i], b.name, strlen(b.name));
		incarnations += has(&streams[i], a.node->directory.incarnation,
				    WF_INCARNATION_BYTES);
		incarnations += has(&streams[i], b.node->directory.incarnation,
				    WF_INCARNATION_BYTES);
		tls += is_tls(&streams[i]);
	}
	assert_int_equal(names, 2);
	assert_int_equal(incarnations, 2);
	assert_int_equal(tls, 0);
	close_sides(&a, &b);
}

/* Tensors */

static const int64_t lengths[] = { 8, 1024, 1 << 20 };

static void fill(uint8_t *bytes, size_t count, unsigned seed)
{
	unsigned short chance[3] = { 1, 2, (unsigned short)seed };

	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(nrand48(chance) >> 11);
}

static void move(const struct side *from, const struct side *to, uint64_t step, uint8_t *bytes,
		 int64_t count)
{
	struct weft_tensor sent = { .data = bytes, .device = { WEFT_CPU, 0 }, .ndim = 1,
				    .dtype = { WEFT_UINT, 8, 1 }, .shape = &count }, got = sent;
	struct weft_op *ops[2];
	struct weft_peer *peer;

	got.data = test_calloc(1, (size_t)count);
	assert_int_equal(weft_peer_open(from->node, weft_node_address(to->node), &peer), 0);
	assert_int_equal(weft_recv(to->node, NULL, step, "k", 1, &got, NULL, &ops[0]), 0);
	assert_int_equal(weft_send(peer, step, "k", 1, &sent, NULL, &ops[1]), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(weft_wait(ops[i], LIMIT_NS), 0);
		assert_int_equal(weft_op_status(ops[i]), WEFT_OK);
		weft_op_free(ops[i]);
	}
	assert_memory_equal(got.data, bytes, (size_t)count);
	weft_peer_close(peer);
	test_free(got.data);
}

/* How many of up to SAMPLES pieces of a tensor are in any stream? */
static unsigned samples_seen(const uint8_t *bytes, size_t count)
{
	const size_t sample = count < SAMPLE_BYTES ? count : SAMPLE_BYTES, pieces = count / sample;
	const size_t samples = pieces < SAMPLES ? pieces : SAMPLES;
	const struct capture_stream *streams;
	size_t stream_count = capture_streams(&streams);
	unsigned seen = 0;

	for (size_t i = 0; i < samples; i++) {
		const uint8_t *at = bytes + i * pieces / samples * sample;
		bool found = false;

		for (size_t j = 0; j < stream_count && !found; j++)
			found = has(&streams[j], at, sample);
		seen += found;
	}
	assert_true(!seen || seen == samples);
	return seen;
}

/* Move a tensor of each length both ways.  Their bytes are seen as @seen says, by length. */
static void capture_tensors(const struct proof *proof, const bool seen[3])
{
	struct side a = open_side("nobody-says-alpha", proof);
	struct side b = open_side("nobody-says-beta", proof);

	for (unsigned i = 0; i < 2 * WF_COUNT(lengths); i++) {
		int64_t count = lengths[i / 2];
		uint8_t *bytes = test_malloc((size_t)count);

		fill(bytes, (size_t)count, 10 * (unsigned)proof->security + i);
		move(i % 2 ? &a : &b, i % 2 ? &b : &a, i, bytes, count);
		assert_int_equal(samples_seen(bytes, (size_t)count) != 0, seen[i / 2]);
		test_free(bytes);
	}
	if (proof->security != WEFT_SECURITY_OPEN)
		assert_both_tell_nothing(&a, &b, NULL);
	close_sides(&a, &b);
}

static void tensors_of_sealed_nodes_are_never_in_clear(void **state)
{
	(void)state;
	capture_tensors(&by_key, (const bool[]){ false, false, false });
	capture_tensors(&by_cert, (const bool[]){ false, false, false });
}

static void long_tensors_of_keyed_nodes_are_in_clear(void **state)
{
	(void)state;
	capture_tensors(&by_key_alone, (const bool[]){ false, false, true });
}

static void tensors_in_open_mode_are_in_clear(void **state)
{
	(void)state;
	capture_tensors(&bare, (const bool[]){ true, true, true });
}

/* Make certificate @name, its key, and the authority of its own that has signed it. */
static void make_certificate(const char *name)
{
	struct certificate authority =
		certificates_make(NULL, &(struct certificates_wish){ .is_authority = true });
	struct certificate c = certificates_make(&authority, &(struct certificates_wish){
			.names = "URI:" IDENTITY "node,IP:127.0.0.1" });
	char file[80];

	(void)snprintf(file, sizeof(file), "%s.ca", name);
	certificates_save(file, authority.cert);
	(void)snprintf(file, sizeof(file), "%s.cert", name);
	certificates_save(file, c.cert);
	(void)snprintf(file, sizeof(file), "%s.key", name);
	certificates_save_key(file, c.key, NULL);
	certificates_free(&authority);
	certificates_free(&c);
}

static int make_files(void **state)
{
	(void)certificates_begin(state);
	make_certificate("one");
	make_certificate("other");
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "/tmp/weft-captures.%u.%ld", i,
			       (long)getpid());
		if (weft_key_new(keys[i]))
			return -1;
	}
	return 0;
}

static int remove_files(void **state)
{
	return unlink(keys[0]) || unlink(keys[1]) || certificates_end(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doors_of_nodes_that_trust_each_other_speak_tls_alone),
		cmocka_unit_test(doors_tell_nothing_to_a_peer_with_another_key),
		cmocka_unit_test(
			doors_tell_nothing_to_a_peer_with_the_certificate_of_another_authority),
		cmocka_unit_test(doors_tell_nothing_to_a_peer_in_open_mode),
		cmocka_unit_test(doors_in_open_mode_tell_names_and_incarnations),
		cmocka_unit_test(tensors_of_sealed_nodes_are_never_in_clear),
		cmocka_unit_test(long_tensors_of_keyed_nodes_are_in_clear),
		cmocka_unit_test(tensors_in_open_mode_are_in_clear),
	};
	char reason[CAPTURE_REASON_BYTES];

	(void)argc;
	if (!capture_begin(HOST, reason)) {
		printf("skip: %s\n", reason);
		return SKIPPED;
	}
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
