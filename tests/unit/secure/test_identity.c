/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/x509v3.h>

#define NAMES_MAX 4

/* A subject alternative name, whose text may have zeros in it. */
struct name {
	int type;
	const char *text;
	int count; /* 0: up to the text's end */
};

static X509 *cert;

static int make_cert(void **state)
{
	(void)state;
	cert = X509_new();
	return cert ? 0 : -1;
}

static int free_cert(void **state)
{
	(void)state;
	X509_free(cert);
	return 0;
}

/* Give the certificate these names alone; NULL ends them. */
static void set_names(const struct name names[NAMES_MAX])
{
	GENERAL_NAMES *all = sk_GENERAL_NAME_new_null();
	ASN1_IA5STRING *text;
	GENERAL_NAME *name;

	assert_non_null(all);
	for (int i = 0; i < NAMES_MAX && names[i].text; i++) {
		name = GENERAL_NAME_new();
		text = ASN1_IA5STRING_new();
		assert_true(name && text);
		assert_true(ASN1_STRING_set(text, names[i].text,
					    names[i].count ? names[i].count : -1));
		GENERAL_NAME_set0_value(name, names[i].type, text);
		assert_true(sk_GENERAL_NAME_push(all, name) > 0);
	}
	assert_int_equal(X509_add1_ext_i2d(cert, NID_subject_alt_name, all, 0, X509V3_ADD_REPLACE),
			 1);
	GENERAL_NAMES_free(all);
}

static void expect_identity(const char *expected)
{
	char identity[WF_IDENTITY_BYTES];

	memset(identity, 'x', sizeof(identity));
	wf_identity_of(cert, identity);
	assert_string_equal(identity, expected);
}

static void a_uri_is_the_identity_before_any_dns_name(void **state)
{
	(void)state;
	set_names((struct name[NAMES_MAX]){ { GEN_DNS, "node.example.org", 0 },
					    { GEN_URI, "spiffe://one/a", 0 },
					    { GEN_URI, "spiffe://one/b", 0 } });
	expect_identity("spiffe://one/a");
	set_names((struct name[NAMES_MAX]){ { GEN_DNS, "node.example.org", 0 },
					    { GEN_DNS, "other.example.org", 0 } });
	expect_identity("node.example.org");
}

static void a_certificate_without_such_names_has_no_identity(void **state)
{
	X509_NAME *subject = X509_get_subject_name(cert);

	(void)state;
	expect_identity("");
	assert_false(wf_identity_is_listed(cert, "*"));
	/* The common name is none, as in TLS of today. */
	assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
						    (const unsigned char *)"node", -1, -1, 0), 1);
	set_names((struct name[NAMES_MAX]){ { GEN_EMAIL, "node@example.org", 0 } });
	expect_identity("");
	assert_false(wf_identity_is_listed(cert, "node,node@example.org,*"));
}

static void a_name_with_a_character_that_is_not_shown_is_no_identity(void **state)
{
	static const struct name bad[] = {
		{ GEN_DNS, "good.org\0.evil.net", 18 }, { GEN_URI, "spiffe://one/a\0b", 16 },
		{ GEN_URI, "spiffe://one/a\0", 15 },    { GEN_URI, "\0", 1 },
		{ GEN_DNS, "two names", 0 },            { GEN_DNS, " node", 0 },
		{ GEN_DNS, "node ", 0 },                { GEN_URI, "spiffe://one/\n", 0 },
		{ GEN_DNS, "node\x7f", 0 },             { GEN_DNS, "n\xc3\xb6" "de", 0 },
		{ GEN_DNS, "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(bad); i++) {
		set_names((struct name[NAMES_MAX]){ bad[i] });
		expect_identity("");
		assert_false(wf_identity_is_listed(cert, "*,good.org,spiffe://one/a"));
		/* Other names of the certificate still count. */
		set_names((struct name[NAMES_MAX]){ bad[i], { GEN_DNS, "node", 0 } });
		expect_identity("node");
		assert_true(wf_identity_is_listed(cert, "node"));
		assert_false(wf_identity_is_listed(cert, "good.org,spiffe://one/a"));
	}
}

static void a_name_that_is_too_long_is_no_identity(void **state)
{
	char text[WF_IDENTITY_BYTES + 1];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[WF_IDENTITY_BYTES] = '\0';
	set_names((struct name[NAMES_MAX]){ { GEN_DNS, text, 0 } });
	expect_identity("");
	assert_false(wf_identity_is_listed(cert, "*"));
	text[WF_IDENTITY_BYTES - 1] = '\0';
	set_names((struct name[NAMES_MAX]){ { GEN_DNS, text, 0 } });
	expect_identity(text);
	assert_true(wf_identity_is_listed(cert, "*"));
}

static void any_name_of_a_certificate_may_be_the_one_that_is_listed(void **state)
{
	static const struct {
		const char *patterns;
		bool listed;
	} rows[] = {
		{ "spiffe://one/a", true },
		{ "node.example.org", true },
		{ "*.example.org", true },
		{ "nobody,node.example.org", true },
		{ "nobody,spiffe://one/*,else", true },
		{ "nobody,,node.example.org,", true },
		{ "nobody", false },
		{ "node", false },
		{ "node.example.or,ode.example.org", false },
		{ "nobody,else", false },
		{ "", false },
		{ ",", false },
		{ ",,,", false },
		{ "192.0.2.1", false },
	};

	(void)state;
	set_names((struct name[NAMES_MAX]){ { GEN_EMAIL, "nobody", 0 },
					    { GEN_DNS, "node.example.org", 0 },
					    { GEN_URI, "spiffe://one/a", 0 } });
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		if (wf_identity_is_listed(cert, rows[i].patterns) != rows[i].listed)
			fail_msg("'%s'", rows[i].patterns);
}

static void all_keys_are_one_identity_and_names_only_if_they_are_equal(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "key:0123456789abcdef", "key:0123456789abcdef", true },
		{ "key:0123456789abcdef", "key:fedcba9876543210", true },
		{ "node", "node", true },
		{ "spiffe://one/a", "spiffe://one/a", true },
		{ "", "", true },
		{ "", "key:0123456789abcdef", false },
		{ "", "node", false },
		{ "node", "key:0123456789abcdef", false },
		{ "node", "nodes", false },
		{ "node", "Node", false },
		{ "spiffe://one/a", "spiffe://one/b", false },
		{ "key", "key:0123456789abcdef", false },
		{ "keys.example.org", "key:0123456789abcdef", false },
		{ "keys.example.org", "keyed.example.org", false },
		{ "Key:0123456789abcdef", "key:0123456789abcdef", false },
		{ "spiffe://key:1", "key:0123456789abcdef", false },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		if (wf_identity_is_same(rows[i].a, rows[i].b) != rows[i].same ||
		    wf_identity_is_same(rows[i].b, rows[i].a) != rows[i].same)
			fail_msg("'%s' and '%s'", rows[i].a, rows[i].b);
}

#define WITH_CERT(test) cmocka_unit_test_setup_teardown(test, make_cert, free_cert)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_CERT(a_uri_is_the_identity_before_any_dns_name),
		WITH_CERT(a_certificate_without_such_names_has_no_identity),
		WITH_CERT(a_name_with_a_character_that_is_not_shown_is_no_identity),
		WITH_CERT(a_name_that_is_too_long_is_no_identity),
		WITH_CERT(any_name_of_a_certificate_may_be_the_one_that_is_listed),
		cmocka_unit_test(all_keys_are_one_identity_and_names_only_if_they_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
