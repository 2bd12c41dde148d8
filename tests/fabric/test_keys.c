/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes that prove themselves by a key file, and seal what they say, over real providers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#include "tests/fabric/said.h"

#define LIMIT_NS 20000000000ull
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define DIALLERS 4
#define ENDS 3
#define LINGER_US 300000 /* some handshakes of each dialler */

static char ours[64], others[64]; /* key files */
static enum weft_security mode; /* of nodes opened from now on */
static bool lingers; /* this process ends with nodes open */

/* Open a node over @provider that proves itself by @key, and is sealed; NULL: it has no key. */
static int try_open(const char *provider, const char *key, struct weft_node **node)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .provider = provider, .log = said_line,
		.security = mode,
	};
	int err;

	if (key)
		assert_int_equal(setenv("WEFT_KEY_FILE", key, 1), 0);
	else
		assert_int_equal(unsetenv("WEFT_KEY_FILE"), 0);
	err = weft_node_open(&options, node);
	assert_int_equal(unsetenv("WEFT_KEY_FILE"), 0);
	return err;
}

static struct weft_node *open_node(const char *provider, const char *key)
{
	struct weft_node *node;

	if (try_open(provider, key, &node))
		fail_msg("%s", weft_error());
	return node;
}

static struct weft_tensor bytes_of(uint8_t *data, int64_t *count)
{
	return (struct weft_tensor){ .data = data, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 }, .shape = count };
}

static void assert_ok(struct weft_op *op)
{
	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	if (weft_op_status(op) != WEFT_OK)
		fail_msg("%s", weft_op_message(op));
	weft_op_free(op);
}

/* Send @count bytes to @peer, another name of node @to. */
static void send_bytes(struct weft_peer *peer, struct weft_node *to, int64_t count)
{
	uint8_t *from = test_malloc((size_t)count), *into = test_calloc(1, (size_t)count);
	struct weft_tensor sent = bytes_of(from, &count), got = bytes_of(into, &count);
	struct weft_op *send, *receive;

	for (int64_t i = 0; i < count; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(weft_recv(to, NULL, (uint64_t)count, "k", 1, &got, NULL, &receive), 0);
	assert_int_equal(weft_send(peer, (uint64_t)count, "k", 1, &sent, NULL, &send), 0);
	assert_ok(send);
	assert_ok(receive);
	assert_memory_equal(from, into, (size_t)count);
	test_free(from);
	test_free(into);
}

/* Ping from @a to @b, which fails.  Returns how. */
static enum weft_status ping_in_vain(struct weft_node *a, struct weft_node *b, char text[600])
{
	struct weft_op_options options = { .size = sizeof(options), .timeout_ns = LIMIT_NS };
	enum weft_status status;
	struct weft_peer *peer;
	struct weft_op *op;

	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	assert_int_equal(weft_ping(peer, &options, &op), 0);
	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	status = weft_op_status(op);
	(void)snprintf(text, 600, "%s", weft_op_message(op));
	weft_op_free(op);
	weft_peer_close(peer);
	return status;
}

/* Send tensors of several lengths over @provider, in the mode that is set. */
static void send_every_length(const char *provider)
{
	static const int64_t counts[] = { 1, 8, 5000, 60000, 66000, (1 << 20) + 1, 9 << 20 };
	struct weft_node *a = open_node(provider, ours), *b = open_node(provider, ours);
	struct weft_peer *peer;

	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	for (size_t k = 0; k < COUNT(counts); k++)
		send_bytes(peer, b, counts[k]);
	weft_peer_close(peer);
	weft_node_close(a);
	weft_node_close(b);
}

static void tensors_of_every_length_pass_between_nodes_of_one_key(void **state)
{
	static const enum weft_security modes[] = { WEFT_SECURITY_NONE, WEFT_SECURITY_KEYED,
						    WEFT_SECURITY_SEALED };

	(void)state;
	for (size_t i = 0; i < COUNT(modes); i++) {
		mode = modes[i];
		send_every_length("tcp");
		send_every_length("sockets");
	}
}

/* How a node that is to be opened proves itself. */
struct proof {
	const char *key; /* NULL: it has none */
	enum weft_security mode;
};

/*
 * Ping from a node of @from to one of @to, which fails with @sentence.  That must come within the
 * time of the dial, which is longer where the host is slow.
 */
static void part_with(struct proof from, struct proof to, const char *sentence)
{
	static const char *const timeouts[] = { "300ms", "3s", "15s" };
	char text[600] = "";

	for (size_t i = 0; i < COUNT(timeouts) && !strstr(text, sentence); i++) {
		struct weft_node *a, *b;

		assert_int_equal(setenv("WEFT_CONNECT_TIMEOUT", timeouts[i], 1), 0);
		mode = from.mode;
		a = open_node("tcp", from.key);
		mode = to.mode;
		b = open_node("tcp", to.key);
		assert_int_equal(unsetenv("WEFT_CONNECT_TIMEOUT"), 0);
		assert_int_not_equal(ping_in_vain(a, b, text), WEFT_OK);
		weft_node_close(a);
		weft_node_close(b);
	}
	if (!strstr(text, sentence))
		fail_msg("\"%s\" does not say \"%s\"", text, sentence);
}

static void nodes_of_different_modes_part_with_a_sentence(void **state)
{
	(void)state;
	part_with((struct proof){ ours, WEFT_SECURITY_KEYED },
		  (struct proof){ ours, WEFT_SECURITY_SEALED },
		  "WEFT_SECURITY is keyed at the node that dials, and sealed at");
}

/* Send 3 MiB over tcp in the mode that is set.  Returns the path of the receive, or of the send. */
static struct weft_path send_for_path(bool of_send)
{
	struct weft_node *a = open_node("tcp", ours), *b = open_node("tcp", ours);
	int64_t count = 3 << 20;
	uint8_t *bytes = test_calloc(2, (size_t)count);
	struct weft_tensor sent = bytes_of(bytes, &count), got = bytes_of(bytes + count, &count);
	struct weft_path path = WEFT_PATH_INIT;
	struct weft_op *send, *receive;
	struct weft_peer *peer;

	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	assert_int_equal(weft_recv(b, NULL, 1, "k", 1, &got, NULL, &receive), 0);
	assert_int_equal(weft_send(peer, 1, "k", 1, &sent, NULL, &send), 0);
	assert_int_equal(weft_wait(send, LIMIT_NS) || weft_wait(receive, LIMIT_NS), 0);
	assert_int_equal(weft_op_path(of_send ? send : receive, &path), 0);
	assert_ok(send);
	assert_ok(receive);
	weft_peer_close(peer);
	weft_node_close(a);
	weft_node_close(b);
	test_free(bytes);
	return path;
}

static void a_path_tells_how_a_body_was_encrypted(void **state)
{
	(void)state;
	for (unsigned of_send = 0; of_send < 2; of_send++) {
		struct weft_path path;

		mode = WEFT_SECURITY_SEALED;
		path = send_for_path(of_send);
		assert_true(!strcmp(path.cipher, "AES-128-GCM") ||
			    !strcmp(path.cipher, "ChaCha20-Poly1305"));
		assert_string_equal(path.way, "pull");
		assert_int_equal(path.copies, 1);
		assert_int_equal(path.registered, 0);
		mode = WEFT_SECURITY_KEYED;
		path = send_for_path(of_send);
		assert_string_equal(path.cipher, "none");
		assert_int_equal(path.copies, 0);
	}
}

static void a_sealed_body_is_refused_where_staging_is(void **state)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t count = 3 << 20;
	uint8_t *bytes = test_calloc(1, (size_t)count);
	struct weft_tensor sent = bytes_of(bytes, &count);
	struct weft_node *a, *b;
	struct weft_peer *peer;
	struct weft_op *send;

	(void)state;
	options.op.flags = WEFT_STRICT_NO_STAGING;
	mode = WEFT_SECURITY_SEALED;
	a = open_node("tcp", ours);
	b = open_node("tcp", ours);
	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	assert_int_equal(weft_send(peer, 1, "k", 1, &sent, &options, &send), 0);
	assert_int_equal(weft_wait(send, LIMIT_NS), 0);
	assert_int_equal(weft_op_status(send), WEFT_FAILED_PRECONDITION);
	assert_non_null(strstr(weft_op_message(send), "bodies are sealed"));
	weft_op_free(send);
	weft_peer_close(peer);
	weft_node_close(a);
	weft_node_close(b);
	test_free(bytes);
}

static void another_key_is_unauthenticated_at_once(void **state)
{
	struct weft_node *a = open_node("tcp", others), *b = open_node("tcp", ours);
	char text[600];

	(void)state;
	assert_int_equal(ping_in_vain(a, b, text), WEFT_UNAUTHENTICATED);
	assert_non_null(strstr(text, "another key"));
	assert_true(said_comes("is kept out: the TLS handshake"));
	weft_node_close(a);
	weft_node_close(b);
}

static void a_node_without_a_key_and_one_with_a_key_do_not_meet(void **state)
{
	struct weft_node *none, *key;
	char text[600];

	(void)state;
	key = open_node("tcp", ours);
	none = open_node("tcp", NULL);
	/* At once, in place of dials until WEFT_CONNECT_TIMEOUT, which is longer than a ping waits. */
	assert_int_equal(ping_in_vain(none, key, text), WEFT_UNAUTHENTICATED);
	assert_non_null(strstr(text, "has a key or certificate, and this node has none"));
	assert_int_equal(ping_in_vain(key, none, text), WEFT_UNAUTHENTICATED);
	assert_non_null(strstr(text, "has no key or certificate, and this node has"));
	assert_true(said_comes("is kept out: 127.0.0.1:"));
	assert_true(said_comes(" sent TLS: it has a key or certificate, and this node has none"));
	weft_node_close(none);
	weft_node_close(key);
}

/* Open a node whose key file the program names; the environment names none. */
static struct weft_node *open_with_key(const char *key)
{
	char setting[128];
	const char *const settings[] = { setting, NULL };
	const struct weft_node_options options = {
		.size = sizeof(options), .provider = "tcp", .log = said_line, .settings = settings,
	};
	struct weft_node *node;

	(void)snprintf(setting, sizeof(setting), "WEFT_KEY_FILE=%s", key);
	if (weft_node_open(&options, &node))
		fail_msg("%s", weft_error());
	return node;
}

static void nodes_of_one_process_may_have_two_keys(void **state)
{
	struct weft_node *a = open_with_key(ours), *b = open_with_key(ours);
	struct weft_node *other = open_with_key(others);
	struct weft_peer *peer;
	char text[600];

	(void)state;
	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);
	send_bytes(peer, b, 1000);
	weft_peer_close(peer);
	assert_int_equal(ping_in_vain(a, other, text), WEFT_UNAUTHENTICATED);
	assert_non_null(strstr(text, "another key"));
	weft_node_close(a);
	weft_node_close(b);
	weft_node_close(other);
}

static void a_key_file_that_others_may_read_opens_no_node(void **state)
{
	struct weft_node *node;

	(void)state;
	assert_int_equal(chmod(others, 0444), 0);
	assert_int_equal(try_open("tcp", others, &node), -EACCES);
	assert_non_null(strstr(weft_error(), others));
	assert_int_equal(chmod(others, 0400), 0);
	assert_int_equal(try_open("tcp", "/nowhere/key", &node), -ENOENT);
	assert_non_null(strstr(weft_error(), "/nowhere/key"));
}

static void a_mode_and_credentials_that_do_not_fit_open_no_node(void **state)
{
	static const struct {
		const char *security, *key_file, *cert, *peer_ids, *says;
		int err;
	} rows[] = {
		{ "keyed", NULL, NULL, NULL, "WEFT_SECURITY=keyed needs WEFT_KEY_FILE", -EINVAL },
		{ "sealed", NULL, NULL, NULL, "WEFT_SECURITY=sealed needs WEFT_KEY_FILE", -EINVAL },
		{ "open", ours, NULL, NULL, "security is open, and a key", -EINVAL },
		{ "keyed", ours, "/c.pem", NULL, "both named", -EINVAL },
		{ "keyed", ours, NULL, "ps*", "both named", -EINVAL },
		{ "keyed", NULL, "/c.pem", NULL, "WEFT_KEY is not named", -EINVAL },
		{ NULL, NULL, NULL, "ps*", "WEFT_PEER_IDS needs certificates", -EINVAL },
		{ "open", NULL, NULL, "ps*", "WEFT_PEER_IDS needs certificates", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct weft_node *node;

		if (rows[i].security)
			setenv("WEFT_SECURITY", rows[i].security, 1);
		if (rows[i].key_file)
			setenv("WEFT_KEY_FILE", rows[i].key_file, 1);
		if (rows[i].cert)
			setenv("WEFT_CERT", rows[i].cert, 1);
		if (rows[i].peer_ids)
			setenv("WEFT_PEER_IDS", rows[i].peer_ids, 1);
		assert_int_equal(weft_node_open(NULL, &node), rows[i].err);
		if (!strstr(weft_error(), rows[i].says))
			fail_msg("\"%s\" does not say \"%s\"", weft_error(), rows[i].says);
		unsetenv("WEFT_SECURITY");
		unsetenv("WEFT_KEY_FILE");
		unsetenv("WEFT_CERT");
		unsetenv("WEFT_PEER_IDS");
	}
}

/* Registered before libcrypto registers anything, so that this runs when that is over. */
static void linger(void)
{
	if (lingers)
		usleep(LINGER_US);
}

/* End this process while nodes of it refuse each other all the time. */
static void end_in_the_middle(void)
{
	static struct weft_node *nodes[1 + DIALLERS]; /* static: no leaks, as nothing is lost */
	static struct weft_peer *peers[1 + DIALLERS];
	static struct weft_op *ops[1 + DIALLERS];

	lingers = true;
	for (unsigned i = 0; i < COUNT(nodes); i++) {
		if (try_open("tcp", i ? others : ours, &nodes[i]))
			_exit(2);
		if (i && (weft_peer_open(nodes[i], weft_node_address(nodes[0]), &peers[i]) ||
			  weft_ping(peers[i], NULL, &ops[i])))
			_exit(3);
	}
	if (!said_comes("is kept out: the TLS handshake"))
		_exit(4);
	exit(0);
}

/* Libcrypto is used by threads of the nodes until the process is gone. */
static void a_program_may_end_while_handshakes_fail(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	for (unsigned i = 0; i < ENDS; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			end_in_the_middle();
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static int make_keys(void **state)
{
	(void)state;
	(void)snprintf(ours, sizeof(ours), "/tmp/weft-keys-ours.%ld", (long)getpid());
	(void)snprintf(others, sizeof(others), "/tmp/weft-keys-others.%ld", (long)getpid());
	return weft_key_new(ours) || weft_key_new(others);
}

static int remove_keys(void **state)
{
	(void)state;
	return unlink(ours) || unlink(others);
}

static int forget(void **state)
{
	(void)state;
	mode = WEFT_SECURITY_NONE;
	said_forget();
	return 0;
}

#define TEST(test) cmocka_unit_test_setup(test, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tensors_of_every_length_pass_between_nodes_of_one_key),
		TEST(nodes_of_different_modes_part_with_a_sentence),
		TEST(a_path_tells_how_a_body_was_encrypted),
		TEST(a_sealed_body_is_refused_where_staging_is),
		TEST(another_key_is_unauthenticated_at_once),
		TEST(a_node_without_a_key_and_one_with_a_key_do_not_meet),
		TEST(nodes_of_one_process_may_have_two_keys),
		TEST(a_key_file_that_others_may_read_opens_no_node),
		TEST(a_mode_and_credentials_that_do_not_fit_open_no_node),
		TEST(a_program_may_end_while_handshakes_fail),
	};

	if (atexit(linger))
		return 1;
	return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
