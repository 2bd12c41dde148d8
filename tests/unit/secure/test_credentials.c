/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/credentials.h"
#include "secure/internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/ui.h>

#include "secure/key_file.h"
#include "tests/unit/secure/certificates.h"

#define PAST_NS 1
#define NEVER_NS UINT64_MAX

static const struct certificates_wish authorities = { .is_authority = true };
static const struct certificates_wish nodes = { .names = "DNS:node" };

static struct certificate authority, node;
static char cluster_key[CERTIFICATES_PATH_BYTES];
static char cert[CERTIFICATES_PATH_BYTES], key[CERTIFICATES_PATH_BYTES];
static char ca[CERTIFICATES_PATH_BYTES];
static int prompts; /* how often anybody was asked for a password */

/* Each test begins with files that are good. */
static int begin(void **state)
{
	struct wf_error e = { 0 };

	(void)certificates_begin(state);
	certificates_path(cluster_key, "cluster.key");
	certificates_path(cert, "node.pem");
	certificates_path(key, "node.key");
	certificates_path(ca, "ca.pem");
	authority = certificates_make(NULL, &authorities);
	node = certificates_make(&authority, &nodes);
	certificates_save("ca.pem", authority.cert);
	certificates_save("node.pem", node.cert);
	certificates_save_key("node.key", node.key, NULL);
	return wf_key_file_make(cluster_key, &e);
}

static int end(void **state)
{
	certificates_free(&authority);
	certificates_free(&node);
	return certificates_end(state);
}

static struct wf_credentials *open_files(const struct wf_credentials_files *files)
{
	struct wf_credentials *c = NULL;
	struct wf_error e = { 0 };

	if (wf_credentials_open(files, &c, &e))
		fail_msg("%s", e.text);
	return c;
}

/* Open a key file of this name, which is made if it is not there. */
static struct wf_credentials *open_key(const char *name)
{
	char path[CERTIFICATES_PATH_BYTES];
	struct wf_error e = { 0 };

	certificates_path(path, name);
	if (access(path, F_OK) && wf_key_file_make(path, &e))
		fail_msg("%s", e.text);
	return open_files(&(struct wf_credentials_files){ .key_file = path });
}

static struct wf_credentials_files good(void)
{
	return (struct wf_credentials_files){ .cert = cert, .key = key, .ca = ca };
}

static void expect_opened(const struct wf_credentials_files *files)
{
	struct wf_credentials *c = open_files(files);

	wf_credentials_put(wf_credentials_get(c));
	wf_credentials_put(c);
}

/* The files are refused with @code and a sentence that names @file and has @says. */
static void expect_refused(const struct wf_credentials_files *files, int code, const char *file,
			   const char *says)
{
	struct wf_credentials *c = NULL;
	struct wf_error e = { 0 };
	int err = wf_credentials_open(files, &c, &e);

	if (err != code)
		fail_msg("%d, and not %d: %s", err, code, e.text);
	assert_int_equal(e.code, code);
	assert_null(c);
	if (!strstr(e.text, file) || !strstr(e.text, says))
		fail_msg("'%s' lacks '%s' or '%s'", e.text, file, says);
}

static void good_files_are_taken(void **state)
{
	struct wf_credentials_files files = good();

	(void)state;
	expect_opened(&files);
	files.key_file = "";
	files.peers = "";
	expect_opened(&files);
	files.peers = "node,spiffe://example.org/*";
	expect_opened(&files);
	expect_opened(&(struct wf_credentials_files){ .key_file = cluster_key });
	expect_opened(&(struct wf_credentials_files){
		.key_file = cluster_key, .cert = "", .key = "", .ca = "", .peers = "" });
}

static void no_file_at_all_is_refused(void **state)
{
	(void)state;
	expect_refused(&(struct wf_credentials_files){ 0 }, -EINVAL, "WEFT_CERT", "is not named");
	/* A list of peers alone proves nothing. */
	expect_refused(&(struct wf_credentials_files){ .peers = "*" }, -EINVAL, "WEFT_CERT",
		       "is not named");
}

static void a_file_that_is_not_named_is_asked_for(void **state)
{
	struct wf_credentials_files files = good();

	(void)state;
	files.key = NULL;
	expect_refused(&files, -EINVAL, "", "WEFT_KEY is not named");
	files = good();
	files.ca = "";
	expect_refused(&files, -EINVAL, "", "WEFT_CA is not named");
	files = good();
	files.cert = NULL;
	expect_refused(&files, -EINVAL, "", "WEFT_CERT is not named");
	/* The name of a shared key's file is easily taken for that of a certificate's key. */
	expect_refused(&(struct wf_credentials_files){ .key = "a.key" }, -EINVAL, "",
		       "; WEFT_KEY_FILE names a key that all nodes share");
}

static void a_key_file_beside_certificates_is_refused(void **state)
{
	struct wf_credentials_files files = good();

	(void)state;
	files.key_file = cluster_key;
	expect_refused(&files, -EINVAL, "WEFT_KEY_FILE", "both named");
	for (int i = 0; i < 4; i++) {
		files = (struct wf_credentials_files){ .key_file = cluster_key,
						       .cert = i == 0 ? cert : NULL,
						       .key = i == 1 ? key : NULL,
						       .ca = i == 2 ? ca : NULL,
						       .peers = i == 3 ? "*" : NULL };
		expect_refused(&files, -EINVAL, "WEFT_KEY_FILE", "both named");
	}
}

static void a_missing_file_is_named(void **state)
{
	struct wf_credentials_files files = good();

	(void)state;
	assert_int_equal(unlink(ca), 0);
	expect_refused(&files, -ENOENT, ca, "No such file");
	assert_int_equal(unlink(cert), 0);
	expect_refused(&files, -ENOENT, cert, "No such file");
	assert_int_equal(unlink(key), 0);
	expect_refused(&files, -ENOENT, key, "No such file");
	assert_int_equal(unlink(cluster_key), 0);
	expect_refused(&(struct wf_credentials_files){ .key_file = cluster_key }, -ENOENT,
		       cluster_key, "No such file");
}

static void a_key_file_that_others_can_read_is_refused(void **state)
{
	(void)state;
	assert_int_equal(chmod(cluster_key, 0444), 0);
	expect_refused(&(struct wf_credentials_files){ .key_file = cluster_key }, -EACCES,
		       cluster_key, "mode 444");
}

static void a_private_key_that_others_can_use_is_refused(void **state)
{
	static const struct {
		mode_t mode;
		bool good;
	} rows[] = {
		{ 0400, true }, { 0600, true }, { 0440, true }, { 0640, true },
		{ 0444, false }, { 0604, false }, { 0402, false }, { 0620, false }, { 0666, false },
	};
	struct wf_credentials_files files = good();
	char says[16];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		assert_int_equal(chmod(key, rows[i].mode), 0);
		(void)snprintf(says, sizeof(says), "mode %03o", rows[i].mode);
		if (rows[i].good)
			expect_opened(&files);
		else
			expect_refused(&files, -EACCES, key, says);
	}
}

static void a_private_key_of_another_user_is_refused(void **state)
{
	struct wf_credentials_files files = good();

	(void)state;
	if (geteuid())
		skip(); /* root alone can give a file away */
	assert_int_equal(chown(key, 12345, (gid_t)-1), 0);
	expect_refused(&files, -EACCES, key, "belongs to user 12345");
}

static void a_key_of_another_certificate_is_refused(void **state)
{
	struct certificate other = certificates_make(&authority, &nodes);
	struct wf_credentials_files files = good();

	(void)state;
	certificates_save_key("node.key", other.key, NULL);
	certificates_free(&other);
	expect_refused(&files, -EINVAL, key, "key values mismatch");
}

static void a_file_without_what_is_expected_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "\n", "no PEM at all\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"-----BEGIN CERTIFICATE-----\n",
	};
	struct wf_credentials_files files = good();

	(void)state;
	for (size_t i = 0; i < WF_COUNT(texts); i++) {
		certificates_say("node.pem", texts[i]);
		expect_refused(&files, -EINVAL, cert, ": ");
		certificates_save("node.pem", node.cert);
		certificates_say("node.key", texts[i]);
		expect_refused(&files, -EINVAL, key, ": ");
		certificates_save_key("node.key", node.key, NULL);
		certificates_say("ca.pem", texts[i]);
		expect_refused(&files, -EINVAL, ca, ": ");
		certificates_save("ca.pem", authority.cert);
	}
	/* Keys and certificates in each other's place. */
	files.ca = key;
	expect_refused(&files, -EINVAL, key, ": ");
	files = good();
	files.cert = key;
	expect_refused(&files, -EINVAL, key, ": ");
	files = good();
	files.key = cert;
	expect_refused(&files, -EINVAL, cert, ": ");
}

static void authorities_need_a_certificate_beside_their_list(void **state)
{
	struct wf_credentials_files files = good();

	(void)state;
	assert_int_equal(unlink(ca), 0);
	certificates_revoke("ca.pem", &authority, node.cert);
	expect_refused(&files, -EINVAL, ca, "there is no certificate");
	certificates_append("ca.pem", authority.cert);
	expect_opened(&files);
}

static void a_certificate_that_is_too_weak_is_refused(void **state)
{
	static const struct certificates_wish weak[] = {
		{ .names = "DNS:node", .hash = "SHA1" }, { .names = "DNS:node", .rsa_bits = 1024 },
	};
	struct wf_credentials_files files = good();
	struct certificate c;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(weak); i++) {
		c = certificates_make(&authority, &weak[i]);
		certificates_save("node.pem", c.cert);
		certificates_save_key("node.key", c.key, NULL);
		certificates_free(&c);
		expect_refused(&files, -EINVAL, cert, i ? "ee key too small" : "too weak");
	}
}

/* OpenSSL opens a dialogue: with the terminal, if nothing is done about it. */
static int on_prompt(UI *ui)
{
	(void)ui;
	prompts++;
	return 0;
}

static void an_encrypted_key_is_refused_and_nobody_asked(void **state)
{
	UI_METHOD *method = UI_create_method("counts");
	struct wf_credentials_files files = good();
	BIO *file;

	(void)state;
	assert_non_null(method);
	UI_method_set_opener(method, on_prompt);
	UI_set_default_method(method);
	certificates_save_key("node.key", node.key, "password");
	expect_refused(&files, -EINVAL, key, "is encrypted");
	/* A key that is encrypted in the older form of such files. */
	file = BIO_new_file(key, "w");
	assert_non_null(file);
	assert_int_equal(PEM_write_bio_PrivateKey_traditional(file, node.key, EVP_aes_128_cbc(),
							      (unsigned char *)"password", 8, NULL,
							      NULL), 1);
	BIO_free(file);
	expect_refused(&files, -EINVAL, key, "is encrypted");
	UI_set_default_method(UI_OpenSSL());
	UI_destroy_method(method);
	assert_int_equal(prompts, 0);
}

static void a_key_that_is_succeeded_does_until_its_time(void **state)
{
	static const struct {
		uint64_t until_ns;
		bool does;
	} rows[] = { { NEVER_NS, true }, { PAST_NS, false }, { 0, false } };
	struct wf_credentials *older = open_key("cluster.key"), *newer;

	(void)state;
	assert_false(wf_credentials_have_older(older));
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		newer = open_key("new.key");
		assert_false(wf_credentials_have_older(newer));
		assert_true(wf_credentials_succeed(newer, older, rows[i].until_ns));
		assert_int_equal(wf_credentials_have_older(newer), rows[i].does);
		assert_false(wf_credentials_have_older(older));
		/* Peers see the newest key. */
		assert_memory_equal(wf_credentials_identity(newer), "key:", 4);
		assert_string_not_equal(wf_credentials_identity(newer),
					wf_credentials_identity(older));
		wf_credentials_put(newer);
	}
	wf_credentials_put(older);
}

static void a_key_that_is_forgotten_is_gone_from_memory(void **state)
{
	static const struct wf_secret none;
	struct wf_credentials *older = open_key("cluster.key"), *newer = open_key("new.key");

	(void)state;
	assert_true(wf_credentials_succeed(newer, older, NEVER_NS));
	assert_memory_not_equal(newer->older.psk, &none, sizeof(none));
	wf_credentials_forget_older(newer);
	assert_memory_equal(newer->older.psk, &none, sizeof(none));
	assert_false(wf_credentials_have_older(newer));
	assert_memory_not_equal(newer->key.psk, &none, sizeof(none));
	wf_credentials_put(newer);
	wf_credentials_put(older);
}

static void the_same_key_has_the_grace_that_there_was(void **state)
{
	static const uint64_t until_ns[] = { NEVER_NS, PAST_NS };
	struct wf_credentials *first = open_key("cluster.key"), *second, *third, *fourth;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(until_ns); i++) {
		second = open_key("new.key");
		third = open_key("new.key");
		fourth = open_key("new.key");
		assert_true(wf_credentials_succeed(second, first, until_ns[i]));
		/* Neither longer nor shorter than it was, however often the file is read. */
		assert_false(wf_credentials_succeed(third, second, until_ns[!i]));
		assert_false(wf_credentials_succeed(fourth, third, until_ns[!i]));
		assert_int_equal(wf_credentials_have_older(third), !i);
		wf_credentials_put(second);
		wf_credentials_put(third);
		assert_int_equal(wf_credentials_have_older(fourth), !i);
		wf_credentials_put(fourth);
	}
	/* Nothing did beside the first. */
	second = open_key("cluster.key");
	assert_false(wf_credentials_succeed(second, first, NEVER_NS));
	assert_false(wf_credentials_have_older(second));
	wf_credentials_put(second);
	wf_credentials_put(first);
}

static void a_certificate_never_has_an_older_key(void **state)
{
	struct wf_credentials_files files = good();
	struct wf_credentials *keyed = open_key("cluster.key"), *older = open_files(&files);
	struct wf_credentials *newer = open_files(&files);

	(void)state;
	assert_false(wf_credentials_succeed(newer, older, NEVER_NS));
	assert_false(wf_credentials_have_older(newer));
	assert_false(wf_credentials_succeed(newer, keyed, NEVER_NS));
	assert_false(wf_credentials_have_older(newer));
	assert_false(wf_credentials_succeed(keyed, older, NEVER_NS));
	assert_false(wf_credentials_have_older(keyed));
	assert_string_equal(wf_credentials_identity(newer), "node");
	wf_credentials_put(keyed);
	wf_credentials_put(older);
	wf_credentials_put(newer);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FILES(good_files_are_taken),
		WITH_FILES(no_file_at_all_is_refused),
		WITH_FILES(a_file_that_is_not_named_is_asked_for),
		WITH_FILES(a_key_file_beside_certificates_is_refused),
		WITH_FILES(a_missing_file_is_named),
		WITH_FILES(a_key_file_that_others_can_read_is_refused),
		WITH_FILES(a_private_key_that_others_can_use_is_refused),
		WITH_FILES(a_private_key_of_another_user_is_refused),
		WITH_FILES(a_key_of_another_certificate_is_refused),
		WITH_FILES(a_file_without_what_is_expected_is_refused),
		WITH_FILES(authorities_need_a_certificate_beside_their_list),
		WITH_FILES(a_certificate_that_is_too_weak_is_refused),
		WITH_FILES(an_encrypted_key_is_refused_and_nobody_asked),
		WITH_FILES(a_key_that_is_succeeded_does_until_its_time),
		WITH_FILES(a_key_that_is_forgotten_is_gone_from_memory),
		WITH_FILES(the_same_key_has_the_grace_that_there_was),
		WITH_FILES(a_certificate_never_has_an_older_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
