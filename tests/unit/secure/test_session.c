/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions whose two ends are in one thread, and ends that OpenSSL plays without weft's rules. */
#include "secure/session.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "secure/key_file.h"
#include "tests/unit/secure/certificates.h"

#define ROUNDS_MAX 20 /* a handshake takes three */
#define HOST "node.example.org"
#define NAMES "DNS:" HOST
#define FLIGHT_BYTES_MAX 4096
#define HOUR_S 3600
#define PAST_NS 1
#define NEVER_NS UINT64_MAX
#define HEADER_BYTES 5 /* of a TLS record: type, version, length */

/* One end of a session: weft's own, or OpenSSL's. */
struct end {
	struct wf_credentials *credentials;
	struct wf_session *session;
	SSL *raw;
	int err; /* of its handshake: -EAGAIN until that has ended */
	struct wf_error error;
};

static struct end dialler, listener;
static struct certificate authority;
static const struct certificates_wish good = { .names = NAMES };

static int begin(void **state)
{
	static const struct certificates_wish wish = { .is_authority = true };

	(void)certificates_begin(state);
	authority = certificates_make(NULL, &wish);
	certificates_save("ca.pem", authority.cert);
	return 0;
}

static void close_end(struct end *e)
{
	wf_session_free(e->session);
	wf_credentials_put(e->credentials);
	SSL_free(e->raw);
	*e = (struct end){ 0 };
}

static void close_ends(void)
{
	close_end(&dialler);
	close_end(&listener);
}

static int end(void **state)
{
	close_ends();
	certificates_free(&authority);
	ERR_clear_error();
	return certificates_end(state);
}

/* Open an end with these files; @host: as it dials, NULL: it listens. */
static void open_end(struct end *e, const struct wf_credentials_files *files, const char *host)
{
	struct wf_error error = { 0 };

	*e = (struct end){ .err = -EAGAIN };
	if (wf_credentials_open(files, &e->credentials, &error))
		fail_msg("%s", error.text);
	assert_int_equal(wf_session_new(e->credentials, host, false, &e->session), 0);
}

/* Open an end with a key file, which is made if it is not there. */
static void open_with_key(struct end *e, const char *name, const char *host)
{
	char path[CERTIFICATES_PATH_BYTES];
	struct wf_error error = { 0 };

	certificates_path(path, name);
	if (access(path, F_OK) && wf_key_file_make(path, &error))
		fail_msg("%s", error.text);
	open_end(e, &(struct wf_credentials_files){ .key_file = path }, host);
}

/* Open an end with the certificate of @node, which trusts the authorities in @ca. */
static void open_trusting(struct end *e, const char *node, const char *ca, const char *peers,
			  const char *host)
{
	char cert[CERTIFICATES_PATH_BYTES], key[CERTIFICATES_PATH_BYTES],
		all[CERTIFICATES_PATH_BYTES];
	char name[64];
	const struct wf_credentials_files files = {
		.cert = cert, .key = key, .ca = all, .peers = peers,
	};

	(void)snprintf(name, sizeof(name), "%s.pem", node);
	certificates_path(cert, name);
	(void)snprintf(name, sizeof(name), "%s.key", node);
	certificates_path(key, name);
	certificates_path(all, ca);
	open_end(e, &files, host);
}

static void open_with_cert(struct end *e, const char *node, const char *host)
{
	open_trusting(e, node, "ca.pem", NULL, host);
}

/* Make @node's certificate and key. */
static void make_node(const char *node, const struct certificate *issuer,
		      const struct certificates_wish *wish)
{
	struct certificate c = certificates_make(issuer, wish);
	char name[64];

	(void)snprintf(name, sizeof(name), "%s.pem", node);
	certificates_save(name, c.cert);
	(void)snprintf(name, sizeof(name), "%s.key", node);
	certificates_save_key(name, c.key, NULL);
	certificates_free(&c);
}

/* Open an end of OpenSSL's that verifies nothing; @node: whose certificate it has, NULL: none. */
static void open_raw(struct end *e, const char *node, bool dials, int version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	char path[CERTIFICATES_PATH_BYTES], name[64];
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

	*e = (struct end){ .err = -EAGAIN };
	assert_true(ctx && in && out);
	SSL_CTX_set_security_level(ctx, 0);
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, version), 1);
	if (node) {
		(void)snprintf(name, sizeof(name), "%s.pem", node);
		certificates_path(path, name);
		assert_int_equal(SSL_CTX_use_certificate_chain_file(ctx, path), 1);
		(void)snprintf(name, sizeof(name), "%s.key", node);
		certificates_path(path, name);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM), 1);
	}
	e->raw = SSL_new(ctx);
	assert_non_null(e->raw);
	SSL_CTX_free(ctx);
	BIO_set_mem_eof_return(in, -1);
	BIO_set_mem_eof_return(out, -1);
	SSL_set_bio(e->raw, in, out);
	if (dials)
		SSL_set_connect_state(e->raw);
	else
		SSL_set_accept_state(e->raw);
}

static void feed(struct end *to, const uint8_t *bytes, size_t count)
{
	if (to->session)
		assert_int_equal(wf_session_feed(to->session, bytes, count), 0);
	else
		assert_int_equal(BIO_write(SSL_get_rbio(to->raw), bytes, (int)count), count);
}

/* Take up to @room of the bytes that @from has to send.  Returns how many. */
static size_t take(struct end *from, uint8_t *bytes, size_t room)
{
	const uint8_t *waiting;
	size_t count;

	if (from->raw) {
		int got = BIO_read(SSL_get_wbio(from->raw), bytes, (int)room);

		return got > 0 ? (size_t)got : 0;
	}
	waiting = wf_session_outgoing(from->session, &count);
	count = WF_MIN(count, room);
	if (!waiting)
		return 0;
	memcpy(bytes, waiting, count);
	wf_session_sent(from->session, count);
	return count;
}

/* Carry all that @from has to send, in pieces.  Returns how many bytes. */
static size_t carry(struct end *from, struct end *to, size_t piece)
{
	uint8_t bytes[FLIGHT_BYTES_MAX];
	size_t count, all = 0;

	while ((count = take(from, bytes, piece))) {
		feed(to, bytes, count);
		all += count;
	}
	return all;
}

static void shake(struct end *e)
{
	int rc;

	if (e->err != -EAGAIN)
		return;
	if (e->session) {
		e->err = wf_session_shake(e->session, &e->error);
		return;
	}
	ERR_clear_error();
	rc = SSL_do_handshake(e->raw);
	if (rc == 1)
		e->err = 0;
	else if (SSL_get_error(e->raw, rc) != SSL_ERROR_WANT_READ)
		e->err = -EPROTO;
	ERR_clear_error();
}

/* Carry bytes both ways until neither end has any, and no handshake goes on. */
static void pump(void)
{
	size_t moved = 1;

	for (int round = 0; moved; round++) {
		assert_true(round < ROUNDS_MAX);
		shake(&dialler);
		moved = carry(&dialler, &listener, FLIGHT_BYTES_MAX);
		shake(&listener);
		moved += carry(&listener, &dialler, FLIGHT_BYTES_MAX);
	}
}

static void expect_done(const struct end *e)
{
	if (e->err)
		fail_msg("%d: %s", e->err, e->error.text);
}

static void expect_both_done(void)
{
	expect_done(&dialler);
	expect_done(&listener);
}

static void expect_says(const struct wf_error *error, const char *says)
{
	if (!strstr(error->text, says))
		fail_msg("'%s' lacks '%s'", error->text, says);
}

static void expect_refused(const struct end *e, int code, const char *says)
{
	if (e->err != code)
		fail_msg("%d, and not %d: %s", e->err, code, e->error.text);
	assert_int_equal(e->error.code, code);
	expect_says(&e->error, says);
	assert_string_equal(wf_session_identity(e->session), "");
}

/* The end's handshake is done, and then the peer tells that it refuses us. */
static void expect_told(struct end *e, int code, const char *says)
{
	struct wf_error error = { 0 };
	uint8_t bytes[16];

	expect_done(e);
	assert_int_equal(wf_session_read(e->session, bytes, sizeof(bytes), &error), code);
	assert_int_equal(error.code, code);
	expect_says(&error, says);
	/* The session stays refused. */
	assert_true(wf_session_read(e->session, bytes, sizeof(bytes), &error) < 0);
}

static void expect_same_secret(void)
{
	struct wf_secret ours, theirs, other;

	assert_int_equal(wf_session_secret(dialler.session, "label", &ours), 0);
	assert_int_equal(wf_session_secret(listener.session, "label", &theirs), 0);
	assert_int_equal(wf_session_secret(listener.session, "other", &other), 0);
	assert_memory_equal(&ours, &theirs, sizeof(ours));
	assert_memory_not_equal(&ours, &other, sizeof(ours));
}

/* Bytes that one end writes arrive at the other as they are. */
static void expect_talk(struct end *from, struct end *to)
{
	struct wf_error error = { 0 };
	char bytes[16] = "";

	assert_int_equal(wf_session_write(from->session, "hello", 5), 5);
	carry(from, to, FLIGHT_BYTES_MAX);
	assert_int_equal(wf_session_read(to->session, bytes, sizeof(bytes), &error), 5);
	assert_string_equal(bytes, "hello");
	assert_int_equal(wf_session_read(to->session, bytes, sizeof(bytes), &error), -EAGAIN);
}

/* Open a pair of ends with one key, whose handshake is done. */
static void open_keyed_pair(void)
{
	open_with_key(&dialler, "cluster.key", HOST);
	open_with_key(&listener, "cluster.key", NULL);
	pump();
	expect_both_done();
}

static void ends_with_one_key_prove_it_to_each_other(void **state)
{
	(void)state;
	open_keyed_pair();
	expect_same_secret();
	assert_memory_equal(wf_session_identity(dialler.session), "key:", 4);
	assert_int_equal(strlen(wf_session_identity(dialler.session)), 20);
	assert_string_equal(wf_session_identity(dialler.session),
			    wf_session_identity(listener.session));
	assert_memory_equal(wf_session_cipher(dialler.session), "TLS_", 4);
	assert_string_equal(wf_session_cipher(dialler.session),
			    wf_session_cipher(listener.session));
	expect_talk(&dialler, &listener);
	expect_talk(&listener, &dialler);
}

static void two_sessions_of_one_key_have_different_secrets(void **state)
{
	struct wf_secret first, second;

	(void)state;
	open_keyed_pair();
	assert_int_equal(wf_session_secret(dialler.session, "label", &first), 0);
	close_ends();
	open_keyed_pair();
	assert_int_equal(wf_session_secret(dialler.session, "label", &second), 0);
	assert_memory_not_equal(&first, &second, sizeof(first));
}

static void a_handshake_passes_in_single_bytes(void **state)
{
	uint8_t byte;

	(void)state;
	open_with_key(&dialler, "cluster.key", HOST);
	open_with_key(&listener, "cluster.key", NULL);
	for (int i = 0; i < FLIGHT_BYTES_MAX && (dialler.err || listener.err); i++) {
		shake(&dialler);
		if (take(&dialler, &byte, 1))
			feed(&listener, &byte, 1);
		shake(&listener);
		if (take(&listener, &byte, 1))
			feed(&dialler, &byte, 1);
	}
	expect_both_done();
	expect_same_secret();
}

static void ends_with_different_keys_refuse_each_other(void **state)
{
	(void)state;
	open_with_key(&dialler, "cluster.key", HOST);
	open_with_key(&listener, "other.key", NULL);
	pump();
	expect_refused(&listener, -EKEYREJECTED, "it has another key");
	expect_refused(&dialler, -EKEYREJECTED, "it has another key");
}

static void a_key_and_a_certificate_refuse_each_other(void **state)
{
	(void)state;
	make_node("node", &authority, &good);
	open_with_key(&dialler, "cluster.key", HOST);
	open_with_cert(&listener, "node", NULL);
	pump();
	expect_refused(&dialler, -EKEYREJECTED, "its certificate is refused");
	expect_refused(&listener, -EKEYREJECTED, "it trusts no authority of our certificate");
	close_ends();
	open_with_cert(&dialler, "node", HOST);
	open_with_key(&listener, "cluster.key", NULL);
	pump();
	expect_refused(&listener, -EKEYREJECTED, "it has another key, or a certificate");
	expect_refused(&dialler, -EKEYREJECTED, "it has another key, or does not take our");
}

/* Begin the session of @e anew, with its credentials; @older: by the older key. */
static void begin_again(struct end *e, const char *host, bool older)
{
	wf_session_free(e->session);
	e->session = NULL;
	e->err = -EAGAIN;
	assert_int_equal(wf_session_new(e->credentials, host, older, &e->session), 0);
}

/* Open an end with new.key, beside which the key of @name does until @until_ns. */
static void open_succeeding(struct end *e, const char *name, uint64_t until_ns, const char *host,
			    bool older)
{
	struct end before;

	open_with_key(&before, name, NULL);
	open_with_key(e, "new.key", host);
	assert_true(wf_credentials_succeed(e->credentials, before.credentials, until_ns));
	close_end(&before);
	begin_again(e, host, older);
}

/* Expect a session of @e that is proven; @newest: by the newest key of its credentials. */
static void expect_is_of(const struct end *e, bool newest)
{
	expect_done(e);
	assert_int_equal(wf_session_is_of(e->session, e->credentials), newest);
	/* Peers by an older key have the identity of the newest. */
	assert_string_equal(wf_session_identity(e->session),
			    wf_credentials_identity(e->credentials));
}

static void a_peer_with_the_older_key_is_let_in_while_it_does(void **state)
{
	(void)state;
	open_succeeding(&listener, "old.key", NEVER_NS, NULL, false);
	open_with_key(&dialler, "old.key", HOST);
	pump();
	expect_is_of(&listener, false);
	/* The peer knows of no other key. */
	expect_is_of(&dialler, true);
	assert_string_not_equal(wf_session_identity(listener.session),
				wf_session_identity(dialler.session));
	expect_same_secret();
	expect_talk(&dialler, &listener);
	expect_talk(&listener, &dialler);
}

static void a_peer_with_the_older_key_is_refused_afterwards(void **state)
{
	static const uint64_t until_ns[] = { PAST_NS, 0 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(until_ns); i++) {
		open_succeeding(&listener, "old.key", until_ns[i], NULL, false);
		open_with_key(&dialler, "old.key", HOST);
		pump();
		expect_refused(&listener, -EKEYREJECTED, "it has another key");
		expect_refused(&dialler, -EKEYREJECTED, "it has another key");
		close_ends();
	}
}

static void a_peer_with_the_older_key_alone_is_dialled_by_it(void **state)
{
	(void)state;
	open_succeeding(&dialler, "old.key", NEVER_NS, HOST, false);
	open_with_key(&listener, "old.key", NULL);
	pump();
	expect_refused(&dialler, -EKEYREJECTED, "it has another key");
	expect_refused(&listener, -EKEYREJECTED, "it has another key");
	begin_again(&dialler, HOST, true);
	begin_again(&listener, NULL, false);
	assert_false(wf_session_is_of(dialler.session, dialler.credentials));
	pump();
	expect_is_of(&dialler, false);
	expect_is_of(&listener, true);
	expect_same_secret();
	expect_talk(&dialler, &listener);
	expect_talk(&listener, &dialler);
}

static void a_session_by_the_older_key_is_known_for_one_at_both_ends(void **state)
{
	(void)state;
	open_succeeding(&dialler, "old.key", NEVER_NS, HOST, true);
	open_succeeding(&listener, "old.key", NEVER_NS, NULL, false);
	pump();
	expect_is_of(&dialler, false);
	expect_is_of(&listener, false);
	expect_same_secret();
	/* Both ends have the newest key, and use that unless asked. */
	begin_again(&dialler, HOST, false);
	begin_again(&listener, NULL, false);
	assert_true(wf_session_is_of(dialler.session, dialler.credentials));
	pump();
	expect_is_of(&dialler, true);
	expect_is_of(&listener, true);
	expect_same_secret();
	/* The newest key goes on when the older one does no more. */
	close_ends();
	open_succeeding(&dialler, "old.key", PAST_NS, HOST, false);
	open_succeeding(&listener, "old.key", PAST_NS, NULL, false);
	pump();
	expect_is_of(&dialler, true);
	expect_is_of(&listener, true);
	begin_again(&dialler, HOST, true);
	begin_again(&listener, NULL, false);
	pump();
	expect_refused(&listener, -EKEYREJECTED, "it has another key");
}

static void a_session_is_of_its_own_credentials_alone(void **state)
{
	(void)state;
	open_keyed_pair();
	expect_is_of(&dialler, true);
	expect_is_of(&listener, true);
	/* Credentials of the same file are others. */
	assert_false(wf_session_is_of(dialler.session, listener.credentials));
	assert_false(wf_session_is_of(listener.session, dialler.credentials));
	close_ends();
	make_node("node", &authority, &good);
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_both_done();
	assert_true(wf_session_is_of(dialler.session, dialler.credentials));
	assert_true(wf_session_is_of(listener.session, listener.credentials));
	assert_false(wf_session_is_of(dialler.session, listener.credentials));
}

static void an_older_key_does_for_no_third_one(void **state)
{
	(void)state;
	open_succeeding(&listener, "old.key", NEVER_NS, NULL, false);
	open_with_key(&dialler, "third.key", HOST);
	pump();
	expect_refused(&listener, -EKEYREJECTED, "it has another key");
	close_ends();
	/* Credentials let in the key just before theirs, and none before that. */
	open_succeeding(&listener, "third.key", NEVER_NS, NULL, false);
	open_with_key(&dialler, "old.key", HOST);
	pump();
	expect_refused(&listener, -EKEYREJECTED, "it has another key");
}

/* The file may be read again, the key in it the same, before the grace has passed. */
static void a_file_that_is_read_again_keeps_the_older_key(void **state)
{
	static const uint64_t until_ns[] = { NEVER_NS, PAST_NS };
	struct end before;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(until_ns); i++) {
		open_succeeding(&before, "old.key", until_ns[i], NULL, false);
		open_with_key(&listener, "new.key", NULL);
		assert_false(wf_credentials_succeed(listener.credentials, before.credentials,
						    until_ns[!i]));
		close_end(&before);
		open_with_key(&dialler, "old.key", HOST);
		pump();
		if (i)
			expect_refused(&listener, -EKEYREJECTED, "it has another key");
		else
			expect_is_of(&listener, false);
		close_ends();
	}
}

static SSL_SESSION *raw_key; /* what OpenSSL's end offers as the cluster's key */
static char raw_id[WF_SECRET_BYTES];

static int offer_raw_key(SSL *tls, const EVP_MD *md, const unsigned char **id, size_t *id_bytes,
			 SSL_SESSION **session)
{
	(void)tls;
	(void)md;
	assert_true(SSL_SESSION_up_ref(raw_key));
	*id = (const unsigned char *)raw_id;
	*id_bytes = strlen(raw_id);
	*session = raw_key;
	return 1;
}

/* Have OpenSSL's end dial with the cluster's key, or with another one of its name. */
static void open_raw_with_key(bool other)
{
	static const unsigned char suite[] = { 0x13, 0x01 };
	char path[CERTIFICATES_PATH_BYTES];
	struct wf_error error = { 0 };
	struct wf_secret file, psk;

	open_keyed_pair();
	(void)snprintf(raw_id, sizeof(raw_id), "%s", wf_session_identity(dialler.session));
	close_ends();
	certificates_path(path, "cluster.key");
	assert_int_equal(wf_key_file_read(path, file.bytes, &error), 0);
	assert_int_equal(wf_secret_derive(&file, "weft key", other, 0, &psk), 0);
	open_raw(&dialler, NULL, true, TLS1_3_VERSION);
	open_with_key(&listener, "cluster.key", NULL);
	raw_key = SSL_SESSION_new();
	assert_non_null(raw_key);
	assert_int_equal(SSL_SESSION_set1_master_key(raw_key, psk.bytes, sizeof(psk.bytes)), 1);
	assert_int_equal(SSL_SESSION_set_cipher(raw_key, SSL_CIPHER_find(dialler.raw, suite)), 1);
	assert_int_equal(SSL_SESSION_set_protocol_version(raw_key, TLS1_3_VERSION), 1);
	SSL_set_psk_use_session_callback(dialler.raw, offer_raw_key);
}

static void a_key_is_refused_that_has_but_the_name(void **state)
{
	(void)state;
	open_raw_with_key(false);
	pump();
	expect_both_done();
	SSL_SESSION_free(raw_key);
	close_ends();
	open_raw_with_key(true);
	pump();
	expect_refused(&listener, -EKEYREJECTED, "it names our key and does not have it");
	assert_int_equal(dialler.err, -EPROTO);
	SSL_SESSION_free(raw_key);
}

static int find_zeros(SSL *tls, const unsigned char *id, size_t id_bytes, SSL_SESSION **session)
{
	static const unsigned char suite[] = { 0x13, 0x01 }, zeros[WF_SECRET_BYTES];

	(void)id;
	(void)id_bytes;
	*session = SSL_SESSION_new();
	assert_non_null(*session);
	assert_int_equal(SSL_SESSION_set1_master_key(*session, zeros, sizeof(zeros)), 1);
	assert_int_equal(SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(tls, suite)), 1);
	assert_int_equal(SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION), 1);
	return 1;
}

/* The grace of the older key ends between the dial by it and its handshake. */
static void a_key_that_is_wiped_meanwhile_is_not_offered(void **state)
{
	(void)state;
	open_succeeding(&dialler, "old.key", NEVER_NS, HOST, true);
	wf_credentials_forget_older(dialler.credentials);
	open_raw(&listener, NULL, false, TLS1_3_VERSION);
	SSL_set_psk_find_session_callback(listener.raw, find_zeros);
	pump();
	expect_refused(&dialler, -EKEYREJECTED, "it has another key");
	assert_int_equal(listener.err, -EPROTO);
}

static void bytes_before_the_handshake_are_refused(void **state)
{
	struct wf_error error = { 0 };
	uint8_t bytes[64] = { 0 };
	ssize_t got;
	size_t put;

	(void)state;
	open_raw_with_key(false);
	assert_int_equal(SSL_SESSION_set_max_early_data(raw_key, 1000), 1);
	assert_int_equal(SSL_write_early_data(dialler.raw, "early", 5, &put), 1);
	pump();
	expect_refused(&listener, -EBADMSG, "early data");
	if (!dialler.err)
		assert_int_not_equal(SSL_get_early_data_status(dialler.raw),
				     SSL_EARLY_DATA_ACCEPTED);
	got = wf_session_read(listener.session, bytes, sizeof(bytes), &error);
	assert_true(got < 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0);
	SSL_SESSION_free(raw_key);
}

static void ends_with_certificates_prove_their_names(void **state)
{
	(void)state;
	make_node("one", &authority, &(struct certificates_wish){ .names = NAMES });
	make_node("two", &authority, &(struct certificates_wish){
		  .names = "DNS:two.example.org,URI:spiffe://example.org/two" });
	open_with_cert(&listener, "one", NULL);
	open_with_cert(&dialler, "two", HOST);
	assert_string_equal(wf_session_cipher(dialler.session), "");
	pump();
	expect_both_done();
	assert_string_equal(wf_session_identity(dialler.session), HOST);
	assert_string_equal(wf_session_identity(listener.session), "spiffe://example.org/two");
	expect_same_secret();
	expect_talk(&dialler, &listener);
	expect_talk(&listener, &dialler);
}

/* A node that certifies no name serves as a dialler: its authority is all that is asked. */
static void a_certificate_without_names_has_an_empty_identity(void **state)
{
	(void)state;
	make_node("node", &authority, &good);
	make_node("nameless", &authority, &(struct certificates_wish){ 0 });
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "nameless", HOST);
	pump();
	expect_both_done();
	assert_string_equal(wf_session_identity(listener.session), "");
}

static void certificates_between_node_and_authority_are_sent(void **state)
{
	static const struct certificates_wish wish = { .is_authority = true };
	struct certificate between = certificates_make(&authority, &wish);

	(void)state;
	make_node("node", &between, &good);
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_refused(&dialler, -EKEYREJECTED, "unable to get local issuer certificate");
	close_ends();
	certificates_append("node.pem", between.cert);
	certificates_free(&between);
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_both_done();
}

static void expect_verdict(const struct end *e, int verdict)
{
	expect_refused(e, -EKEYREJECTED, "its certificate is refused: ");
	expect_says(&e->error, X509_verify_cert_error_string(verdict));
}

/*
 * The node "bad" is refused with @verdict, and told @alert, as listener and as dialler.  The good
 * node trusts the authorities in ca.pem.
 */
static void expect_bad_refused(int verdict, const char *alert)
{
	make_node("node", &authority, &good);
	open_with_cert(&dialler, "node", HOST);
	open_with_cert(&listener, "bad", NULL);
	pump();
	expect_verdict(&dialler, verdict);
	expect_refused(&listener, -EKEYREJECTED, alert);
	close_ends();
	open_with_cert(&dialler, "bad", HOST);
	open_with_cert(&listener, "node", NULL);
	pump();
	expect_verdict(&listener, verdict);
	expect_told(&dialler, -EKEYREJECTED, alert);
}

static void an_expired_certificate_is_refused(void **state)
{
	(void)state;
	make_node("bad", &authority, &(struct certificates_wish){
		  .names = NAMES, .begins_s = -2 * HOUR_S, .ends_s = -HOUR_S });
	expect_bad_refused(X509_V_ERR_CERT_HAS_EXPIRED, "our certificate has expired, it says");
}

static void a_certificate_of_the_future_is_refused(void **state)
{
	(void)state;
	make_node("bad", &authority, &(struct certificates_wish){
		  .names = NAMES, .begins_s = HOUR_S, .ends_s = 2 * HOUR_S });
	expect_bad_refused(X509_V_ERR_CERT_NOT_YET_VALID, "takes our certificate for a bad one");
}

static void a_certificate_signed_by_itself_is_refused(void **state)
{
	(void)state;
	make_node("bad", NULL, &good);
	expect_bad_refused(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
			   "it trusts no authority of our certificate");
}

static void a_certificate_of_an_unknown_authority_is_refused(void **state)
{
	static const struct certificates_wish wish = { .is_authority = true };
	struct certificate other = certificates_make(NULL, &wish);

	(void)state;
	make_node("bad", &other, &good);
	certificates_free(&other);
	expect_bad_refused(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
			   "it trusts no authority of our certificate");
}

static void a_certificate_signed_by_a_node_is_refused(void **state)
{
	struct certificate node = certificates_make(&authority, &good);

	(void)state;
	make_node("bad", &node, &good);
	certificates_append("bad.pem", node.cert);
	certificates_free(&node);
	expect_bad_refused(X509_V_ERR_INVALID_CA, "");
}

static void a_revoked_certificate_is_refused(void **state)
{
	struct certificate bad = certificates_make(&authority, &good);

	(void)state;
	certificates_save("bad.pem", bad.cert);
	certificates_save_key("bad.key", bad.key, NULL);
	certificates_revoke("ca.pem", &authority, bad.cert);
	certificates_free(&bad);
	expect_bad_refused(X509_V_ERR_CERT_REVOKED, "our certificate is revoked, it says");
	/* Others of this authority are not. */
	close_ends();
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_both_done();
}

static void a_certificate_of_a_side_is_for_that_side_only(void **state)
{
	const char *alert = "our certificate is not for this use, it says";

	(void)state;
	make_node("node", &authority, &good);
	make_node("server", &authority, &(struct certificates_wish){ .names = NAMES,
								     .usage = "serverAuth" });
	make_node("client", &authority, &(struct certificates_wish){ .names = NAMES,
								     .usage = "clientAuth" });
	open_with_cert(&listener, "server", NULL);
	open_with_cert(&dialler, "client", HOST);
	pump();
	expect_both_done();
	close_ends();
	open_with_cert(&listener, "client", NULL);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_verdict(&dialler, X509_V_ERR_INVALID_PURPOSE);
	expect_refused(&listener, -EKEYREJECTED, alert);
	close_ends();
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "server", HOST);
	pump();
	expect_verdict(&listener, X509_V_ERR_INVALID_PURPOSE);
	expect_told(&dialler, -EKEYREJECTED, alert);
}

/* OpenSSL's end shows what weft's would not load: the other end still looks for itself. */
static void expect_raw_refused(const struct certificates_wish *wish, int verdict)
{
	make_node("node", &authority, &good);
	make_node("bad", &authority, wish);
	open_raw(&listener, "bad", false, TLS1_3_VERSION);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_verdict(&dialler, verdict);
	assert_int_equal(listener.err, -EPROTO);
	close_ends();
	open_raw(&dialler, "bad", true, TLS1_3_VERSION);
	open_with_cert(&listener, "node", NULL);
	pump();
	expect_verdict(&listener, verdict);
}

static void a_signature_with_sha1_is_refused(void **state)
{
	(void)state;
	expect_raw_refused(&(struct certificates_wish){ .names = NAMES, .hash = "SHA1" },
			   X509_V_ERR_CA_MD_TOO_WEAK);
}

static void an_rsa_key_of_1024_bits_is_refused(void **state)
{
	(void)state;
	expect_raw_refused(&(struct certificates_wish){ .names = NAMES, .rsa_bits = 1024 },
			   X509_V_ERR_EE_KEY_TOO_SMALL);
}

static void an_rsa_key_of_2048_bits_is_taken(void **state)
{
	(void)state;
	make_node("node", &authority,
		  &(struct certificates_wish){ .names = NAMES, .rsa_bits = 2048 });
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_both_done();
}

static void a_dialler_without_a_certificate_is_refused(void **state)
{
	(void)state;
	make_node("node", &authority, &good);
	open_with_cert(&listener, "node", NULL);
	open_raw(&dialler, NULL, true, TLS1_3_VERSION);
	pump();
	expect_refused(&listener, -EKEYREJECTED, "it shows no certificate");
}

static void dial(const char *host)
{
	close_ends();
	open_with_cert(&listener, "node", NULL);
	open_with_cert(&dialler, "node", host);
	pump();
}

static void a_certificate_must_have_the_name_that_was_dialled(void **state)
{
	(void)state;
	make_node("node", &authority, &(struct certificates_wish){
		  .names = "DNS:" HOST ",DNS:*.pods.example.org,DNS:n*.example.net,"
			   "URI:dns://uri.example.org" });
	dial(HOST);
	expect_both_done();
	dial("a.pods.example.org");
	expect_both_done();
	dial("other.example.org");
	expect_verdict(&dialler, X509_V_ERR_HOSTNAME_MISMATCH);
	expect_refused(&listener, -EKEYREJECTED, "it takes our certificate for a bad one");
	dial("example.org");
	expect_verdict(&dialler, X509_V_ERR_HOSTNAME_MISMATCH);
	dial("uri.example.org");
	expect_verdict(&dialler, X509_V_ERR_HOSTNAME_MISMATCH);
	dial("a.b.pods.example.org");
	expect_verdict(&dialler, X509_V_ERR_HOSTNAME_MISMATCH);
	dial("node.example.net");
	expect_verdict(&dialler, X509_V_ERR_HOSTNAME_MISMATCH);
}

static void the_common_name_is_no_name_that_was_dialled(void **state)
{
	(void)state;
	make_node("node", &authority, &(struct certificates_wish){
		  .common_name = HOST, .names = "URI:spiffe://example.org/node" });
	dial(HOST);
	expect_verdict(&dialler, X509_V_ERR_HOSTNAME_MISMATCH);
}

static void a_number_that_was_dialled_must_be_in_the_certificate(void **state)
{
	(void)state;
	make_node("node", &authority, &(struct certificates_wish){
		  .names = "IP:127.0.0.1,IP:::1,DNS:127.0.0.3" });
	dial("127.0.0.1");
	expect_both_done();
	dial("::1");
	expect_both_done();
	dial("127.0.0.2");
	expect_verdict(&dialler, X509_V_ERR_IP_ADDRESS_MISMATCH);
	dial("::2");
	expect_verdict(&dialler, X509_V_ERR_IP_ADDRESS_MISMATCH);
	/* A DNS name that looks like a number is none. */
	dial("127.0.0.3");
	expect_verdict(&dialler, X509_V_ERR_IP_ADDRESS_MISMATCH);
}

/* TLS has no way to send a number as the name of the server. */
static void a_name_that_is_dialled_is_sent_and_a_number_is_not(void **state)
{
	static const char *const numbers[] = { "127.0.0.1", "::1" };

	(void)state;
	make_node("node", &authority, &(struct certificates_wish){
		  .names = NAMES ",IP:127.0.0.1,IP:::1" });
	open_raw(&listener, "node", false, TLS1_3_VERSION);
	open_with_cert(&dialler, "node", HOST);
	pump();
	expect_both_done();
	assert_string_equal(SSL_get_servername(listener.raw, TLSEXT_NAMETYPE_host_name), HOST);
	for (size_t i = 0; i < WF_COUNT(numbers); i++) {
		close_ends();
		open_raw(&listener, "node", false, TLS1_3_VERSION);
		open_with_cert(&dialler, "node", numbers[i]);
		pump();
		expect_both_done();
		assert_null(SSL_get_servername(listener.raw, TLSEXT_NAMETYPE_host_name));
	}
}

static void peers_must_be_in_the_list_where_there_is_one(void **state)
{
	const char *unlisted = "no identity in its certificate is listed in WEFT_PEER_IDS";

	(void)state;
	make_node("node", &authority, &good);
	make_node("trainer", &authority, &(struct certificates_wish){
		  .names = "URI:spiffe://example.org/job/trainer-7" });
	open_with_cert(&dialler, "trainer", HOST);
	open_trusting(&listener, "node", "ca.pem", "spiffe://example.org/*/server-*", NULL);
	pump();
	expect_refused(&listener, -EKEYREJECTED, unlisted);
	expect_told(&dialler, -EKEYREJECTED, "does not take our certificate or identity");
	close_ends();
	open_with_cert(&dialler, "trainer", HOST);
	open_trusting(&listener, "node", "ca.pem", "nobody,spiffe://example.org/*/trainer-*", NULL);
	pump();
	expect_both_done();
	assert_string_equal(wf_session_identity(listener.session),
			    "spiffe://example.org/job/trainer-7");
	close_ends();
	open_trusting(&dialler, "trainer", "ca.pem", "node.example.net", HOST);
	open_with_cert(&listener, "node", NULL);
	pump();
	expect_refused(&dialler, -EKEYREJECTED, unlisted);
}

static void a_list_of_peers_takes_the_place_of_the_name_that_was_dialled(void **state)
{
	(void)state;
	make_node("node", &authority, &good);
	open_trusting(&dialler, "node", "ca.pem", "*.example.org", "10.1.2.3");
	open_with_cert(&listener, "node", NULL);
	pump();
	expect_both_done();
	assert_string_equal(wf_session_identity(dialler.session), HOST);
}

/* A list does not stand for an authority. */
static void a_listed_peer_of_an_unknown_authority_is_refused(void **state)
{
	(void)state;
	make_node("node", &authority, &good);
	make_node("bad", NULL, &good);
	open_with_cert(&dialler, "bad", HOST);
	open_trusting(&listener, "node", "ca.pem", "*", NULL);
	pump();
	expect_verdict(&listener, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT);
}

static void tls_1_2_is_refused(void **state)
{
	(void)state;
	make_node("node", &authority, &good);
	open_with_cert(&listener, "node", NULL);
	open_raw(&dialler, "node", true, TLS1_2_VERSION);
	pump();
	expect_refused(&listener, -EBADMSG, "it does not speak TLS 1.3");
	assert_int_equal(dialler.err, -EPROTO);
	close_ends();
	open_with_cert(&dialler, "node", HOST);
	open_raw(&listener, "node", false, TLS1_2_VERSION);
	pump();
	expect_refused(&dialler, -EBADMSG, "it does not speak TLS 1.3");
	close_ends();
	open_with_key(&listener, "cluster.key", NULL);
	open_raw(&dialler, NULL, true, TLS1_2_VERSION);
	pump();
	expect_refused(&listener, -EBADMSG, "it does not speak TLS 1.3");
}

static void plain_bytes_are_refused(void **state)
{
	static const struct {
		const char *bytes, *says;
	} rows[] = {
		{ "WEFT0001 and more that is no TLS", "it does not speak TLS" },
		{ "GET / HTTP/1.1\r\n\r\n", "it speaks HTTP" },
		{ "SSH-2.0-OpenSSH_9.2\r\n", "it does not speak TLS" },
		{ "\x80\x2e\x01\x03\x01 is how SSL 2 began, which nobody speaks ........", "" },
		{ "\x16\x03\x01\xff\xff a record that is too long", "" },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		open_with_key(&listener, "cluster.key", NULL);
		shake(&listener);
		feed(&listener, (const uint8_t *)rows[i].bytes, strlen(rows[i].bytes));
		shake(&listener);
		expect_refused(&listener, -EBADMSG, rows[i].says);
		assert_true(listener.error.text[0]);
		close_end(&listener);
	}
	open_with_key(&dialler, "cluster.key", HOST);
	shake(&dialler);
	feed(&dialler, (const uint8_t *)rows[0].bytes, strlen(rows[0].bytes));
	shake(&dialler);
	expect_refused(&dialler, -EBADMSG, "it does not speak TLS");
}

/* Does byte @at say a record's version?  Those of the records in the clear are proven by nobody. */
static bool is_clear_version(const uint8_t *flight, size_t count, size_t at)
{
	size_t begin = 0;

	while (begin + HEADER_BYTES <= count) {
		size_t length = (size_t)flight[begin + 3] << 8 | flight[begin + 4];

		if (at < begin + HEADER_BYTES + length)
			return flight[begin] != SSL3_RT_APPLICATION_DATA &&
			       (at == begin + 1 || at == begin + 2);
		begin += HEADER_BYTES + length;
	}
	return false;
}

/* A byte of the listener's first flight is flipped: the dialler never proves to the listener. */
static void a_changed_byte_of_the_handshake_ends_it(void **state)
{
	struct wf_credentials *credentials;
	uint8_t flight[FLIGHT_BYTES_MAX];
	size_t count = 1, failures = 0;

	(void)state;
	open_keyed_pair();
	credentials = wf_credentials_get(dialler.credentials);
	close_ends();
	for (size_t at = 0; at < count; at++) {
		dialler = (struct end){ .err = -EAGAIN };
		listener = (struct end){ .err = -EAGAIN };
		assert_int_equal(wf_session_new(credentials, HOST, false, &dialler.session), 0);
		assert_int_equal(wf_session_new(credentials, NULL, false, &listener.session), 0);
		shake(&dialler);
		carry(&dialler, &listener, FLIGHT_BYTES_MAX);
		shake(&listener);
		count = take(&listener, flight, sizeof(flight));
		flight[at] ^= 1 << at % 8;
		feed(&dialler, flight, count);
		flight[at] ^= 1 << at % 8;
		pump();
		failures += dialler.err != -EAGAIN && dialler.err;
		if (!dialler.err && !listener.err) {
			assert_true(is_clear_version(flight, count, at));
			expect_same_secret();
		} else {
			assert_true(dialler.err && listener.err);
			assert_true(dialler.err == -EAGAIN || dialler.error.text[0]);
		}
		close_ends();
	}
	/* The rest says that a record goes on, so that the dialler waits for its end. */
	assert_true(count > 100 && failures > count - 20);
	wf_credentials_put(credentials);
}

static void nothing_is_said_or_heard_before_the_handshake_is_done(void **state)
{
	struct wf_error error = { 0 };
	struct wf_secret secret;
	char bytes[16] = "";

	(void)state;
	open_with_key(&dialler, "cluster.key", HOST);
	open_with_key(&listener, "cluster.key", NULL);
	assert_int_equal(wf_session_write(dialler.session, "early", 5), -EBADMSG);
	shake(&dialler);
	carry(&dialler, &listener, FLIGHT_BYTES_MAX);
	shake(&listener);
	carry(&listener, &dialler, FLIGHT_BYTES_MAX);
	shake(&dialler);
	expect_done(&dialler);
	/* Data that the dialler sends at once arrives with the end of its handshake. */
	assert_int_equal(wf_session_write(dialler.session, "hello", 5), 5);
	carry(&dialler, &listener, FLIGHT_BYTES_MAX);
	assert_int_equal(listener.err, -EAGAIN);
	assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error), -EAGAIN);
	assert_int_equal(wf_session_write(listener.session, "early", 5), -EBADMSG);
	assert_int_not_equal(wf_session_secret(listener.session, "label", &secret), 0);
	assert_string_equal(wf_session_identity(listener.session), "");
	assert_true(wf_session_holds(listener.session));
	shake(&listener);
	expect_done(&listener);
	assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error), 5);
	assert_string_equal(bytes, "hello");
	assert_false(wf_session_holds(listener.session));
}

/* Send all of @text in writes of growing size, and read it in pieces of another. */
static void expect_all_sent(struct end *from, struct end *to, const uint8_t *text, size_t count)
{
	struct wf_error error = { 0 };
	uint8_t *all = malloc(count);
	size_t sent = 0, read = 0, size = 1;
	ssize_t got;

	assert_non_null(all);
	while (sent < count) {
		got = wf_session_write(from->session, text + sent, WF_MIN(size, count - sent));
		assert_true(got > 0 && got <= 16384);
		sent += (size_t)got;
		size = size * 3 % 70001;
		carry(from, to, 1000);
		while ((got = wf_session_read(to->session, all + read, WF_MIN(count - read, 777),
					      &error)) > 0)
			read += (size_t)got;
		assert_true(got == -EAGAIN || read == count);
	}
	assert_int_equal(read, count);
	assert_memory_equal(all, text, count);
	free(all);
}

static void a_mebibyte_goes_both_ways(void **state)
{
	uint8_t *text = malloc(MIB);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < MIB; i++)
		text[i] = (uint8_t)(i * 31 + i / 251);
	open_keyed_pair();
	expect_all_sent(&dialler, &listener, text, MIB);
	expect_all_sent(&listener, &dialler, text, MIB);
	free(text);
}

static void a_part_of_a_record_waits_for_the_rest(void **state)
{
	struct wf_error error = { 0 };
	uint8_t record[256];
	char bytes[16] = "";
	size_t count;

	(void)state;
	open_keyed_pair();
	assert_false(wf_session_holds(listener.session));
	assert_int_equal(wf_session_write(dialler.session, "hello", 5), 5);
	count = take(&dialler, record, sizeof(record));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error),
				 -EAGAIN);
		feed(&listener, record + i, 1);
		assert_true(wf_session_holds(listener.session));
	}
	/* A read may be smaller than what has come. */
	assert_int_equal(wf_session_read(listener.session, bytes, 2, &error), 2);
	assert_true(wf_session_holds(listener.session));
	assert_int_equal(wf_session_read(listener.session, bytes + 2, sizeof(bytes) - 2, &error),
			 3);
	assert_string_equal(bytes, "hello");
	assert_false(wf_session_holds(listener.session));
}

static void a_changed_byte_of_data_is_an_error_and_never_data(void **state)
{
	struct wf_credentials *credentials;
	struct wf_error error = { 0 };
	uint8_t record[256], text[100] = { 1 }, bytes[100];
	size_t count = 1;
	ssize_t got;

	(void)state;
	open_keyed_pair();
	credentials = wf_credentials_get(dialler.credentials);
	close_ends();
	for (size_t at = 0; at < count; at++) {
		dialler = (struct end){ .err = -EAGAIN };
		listener = (struct end){ .err = -EAGAIN };
		assert_int_equal(wf_session_new(credentials, HOST, false, &dialler.session), 0);
		assert_int_equal(wf_session_new(credentials, NULL, false, &listener.session), 0);
		pump();
		expect_both_done();
		assert_int_equal(wf_session_write(dialler.session, text, sizeof(text)),
				 sizeof(text));
		count = take(&dialler, record, sizeof(record));
		record[at] ^= 1 << at % 8;
		feed(&listener, record, count);
		got = wf_session_read(listener.session, bytes, sizeof(bytes), &error);
		/* A record that seems longer waits for its end, and does not verify then. */
		if (got == -EAGAIN) {
			assert_in_range(at, 3, 4);
			for (size_t more = 0; more < 70000; more += count)
				feed(&listener, record, count);
			got = wf_session_read(listener.session, bytes, sizeof(bytes), &error);
		}
		assert_int_equal(got, -EBADMSG);
		assert_int_equal(error.code, -EBADMSG);
		assert_true(error.text[0]);
		assert_true(wf_session_read(listener.session, bytes, sizeof(bytes), &error) < 0);
		assert_int_equal(wf_session_write(listener.session, text, sizeof(text)), -EBADMSG);
		close_ends();
	}
	assert_int_equal(count, HEADER_BYTES + sizeof(text) + 1 + WF_SEAL_TAG_BYTES);
	wf_credentials_put(credentials);
}

static void records_out_of_order_or_again_do_not_verify(void **state)
{
	struct wf_error error = { 0 };
	uint8_t first[256], second[256], bytes[16];
	size_t first_count, second_count;

	(void)state;
	for (int again = 0; again < 2; again++) {
		open_keyed_pair();
		assert_int_equal(wf_session_write(dialler.session, "first", 5), 5);
		first_count = take(&dialler, first, sizeof(first));
		assert_int_equal(wf_session_write(dialler.session, "second", 6), 6);
		second_count = take(&dialler, second, sizeof(second));
		if (again) {
			feed(&listener, first, first_count);
			assert_int_equal(wf_session_read(listener.session, bytes, 16, &error), 5);
			feed(&listener, first, first_count);
		} else {
			feed(&listener, second, second_count);
		}
		assert_int_equal(wf_session_read(listener.session, bytes, 16, &error), -EBADMSG);
		assert_true(error.text[0]);
		close_ends();
	}
}

static void the_end_that_a_peer_announces_is_read_after_its_data(void **state)
{
	struct wf_error error = { 0 };
	uint8_t bytes[16];

	(void)state;
	open_raw_with_key(false);
	pump();
	expect_both_done();
	assert_int_equal(SSL_write(dialler.raw, "hello", 5), 5);
	(void)SSL_shutdown(dialler.raw);
	carry(&dialler, &listener, FLIGHT_BYTES_MAX);
	assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error), 5);
	assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error), 0);
	SSL_SESSION_free(raw_key);
}

/* Have OpenSSL's end change its key @count times, and ask for as many changes of the other end. */
static void change_keys(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(SSL_key_update(dialler.raw, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(dialler.raw), 1);
	}
	carry(&dialler, &listener, FLIGHT_BYTES_MAX);
}

static void a_peer_that_changes_its_key_without_end_is_refused(void **state)
{
	struct wf_error error = { 0 };
	uint8_t bytes[16];

	(void)state;
	open_raw_with_key(false);
	pump();
	expect_both_done();

	change_keys(32);
	assert_int_equal(SSL_write(dialler.raw, "hello", 5), 5);
	carry(&dialler, &listener, FLIGHT_BYTES_MAX);
	assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error), 5);

	change_keys(1);
	assert_int_equal(SSL_write(dialler.raw, "hello", 5), 5);
	carry(&dialler, &listener, FLIGHT_BYTES_MAX);
	assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error), -EBADMSG);
	expect_says(&error, "changes the session's keys without end");
	assert_int_equal(wf_session_read(listener.session, bytes, sizeof(bytes), &error), -EBADMSG);
	SSL_SESSION_free(raw_key);
}

/* A session that goes before its handshake has ended, and one that never began, leave nothing. */
static void a_session_may_be_freed_at_any_time(void **state)
{
	(void)state;
	wf_session_free(NULL);
	wf_credentials_put(NULL);
	open_with_key(&dialler, "cluster.key", HOST);
	shake(&dialler);
	/* A session holds its credentials. */
	wf_credentials_put(dialler.credentials);
	dialler.credentials = NULL;
	open_with_key(&listener, "cluster.key", NULL);
	carry(&dialler, &listener, FLIGHT_BYTES_MAX);
	shake(&listener);
	assert_int_equal(listener.err, -EAGAIN);
	close_ends();
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(ends_with_one_key_prove_it_to_each_other),
		WITH_FOLDER(two_sessions_of_one_key_have_different_secrets),
		WITH_FOLDER(a_handshake_passes_in_single_bytes),
		WITH_FOLDER(ends_with_different_keys_refuse_each_other),
		WITH_FOLDER(a_key_and_a_certificate_refuse_each_other),
		WITH_FOLDER(a_peer_with_the_older_key_is_let_in_while_it_does),
		WITH_FOLDER(a_peer_with_the_older_key_is_refused_afterwards),
		WITH_FOLDER(a_peer_with_the_older_key_alone_is_dialled_by_it),
		WITH_FOLDER(a_session_by_the_older_key_is_known_for_one_at_both_ends),
		WITH_FOLDER(a_session_is_of_its_own_credentials_alone),
		WITH_FOLDER(an_older_key_does_for_no_third_one),
		WITH_FOLDER(a_file_that_is_read_again_keeps_the_older_key),
		WITH_FOLDER(a_key_is_refused_that_has_but_the_name),
		WITH_FOLDER(a_key_that_is_wiped_meanwhile_is_not_offered),
		WITH_FOLDER(bytes_before_the_handshake_are_refused),
		WITH_FOLDER(ends_with_certificates_prove_their_names),
		WITH_FOLDER(a_certificate_without_names_has_an_empty_identity),
		WITH_FOLDER(certificates_between_node_and_authority_are_sent),
		WITH_FOLDER(an_expired_certificate_is_refused),
		WITH_FOLDER(a_certificate_of_the_future_is_refused),
		WITH_FOLDER(a_certificate_signed_by_itself_is_refused),
		WITH_FOLDER(a_certificate_of_an_unknown_authority_is_refused),
		WITH_FOLDER(a_certificate_signed_by_a_node_is_refused),
		WITH_FOLDER(a_revoked_certificate_is_refused),
		WITH_FOLDER(a_certificate_of_a_side_is_for_that_side_only),
		WITH_FOLDER(a_signature_with_sha1_is_refused),
		WITH_FOLDER(an_rsa_key_of_1024_bits_is_refused),
		WITH_FOLDER(an_rsa_key_of_2048_bits_is_taken),
		WITH_FOLDER(a_dialler_without_a_certificate_is_refused),
		WITH_FOLDER(a_certificate_must_have_the_name_that_was_dialled),
		WITH_FOLDER(the_common_name_is_no_name_that_was_dialled),
		WITH_FOLDER(a_number_that_was_dialled_must_be_in_the_certificate),
		WITH_FOLDER(a_name_that_is_dialled_is_sent_and_a_number_is_not),
		WITH_FOLDER(peers_must_be_in_the_list_where_there_is_one),
		WITH_FOLDER(a_list_of_peers_takes_the_place_of_the_name_that_was_dialled),
		WITH_FOLDER(a_listed_peer_of_an_unknown_authority_is_refused),
		WITH_FOLDER(tls_1_2_is_refused),
		WITH_FOLDER(plain_bytes_are_refused),
		WITH_FOLDER(a_changed_byte_of_the_handshake_ends_it),
		WITH_FOLDER(nothing_is_said_or_heard_before_the_handshake_is_done),
		WITH_FOLDER(a_mebibyte_goes_both_ways),
		WITH_FOLDER(a_part_of_a_record_waits_for_the_rest),
		WITH_FOLDER(a_changed_byte_of_data_is_an_error_and_never_data),
		WITH_FOLDER(records_out_of_order_or_again_do_not_verify),
		WITH_FOLDER(the_end_that_a_peer_announces_is_read_after_its_data),
		WITH_FOLDER(a_peer_that_changes_its_key_without_end_is_refused),
		WITH_FOLDER(a_session_may_be_freed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
