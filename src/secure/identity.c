/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/identity.h"

#include <stdio.h>
#include <string.h>

#include <openssl/x509v3.h>

#include "util/pattern.h"

/* Copy @name if it is text of the kind @type that can be shown; false: it is not. */
static bool copy_name(const GENERAL_NAME *name, int type, char text[WF_IDENTITY_BYTES])
{
	const ASN1_STRING *value;
	int length;

	if (name->type != type)
		return false;
	value = type == GEN_URI ? name->d.uniformResourceIdentifier : name->d.dNSName;
	length = ASN1_STRING_length(value);
	if (length <= 0 || length >= WF_IDENTITY_BYTES)
		return false;
	memcpy(text, ASN1_STRING_get0_data(value), (size_t)length);
	text[length] = '\0';
	/* A zero, or a character that no name has, would make two identities look like one. */
	for (int i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

static bool find_name(const GENERAL_NAMES *names, int type, char text[WF_IDENTITY_BYTES])
{
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
		if (copy_name(sk_GENERAL_NAME_value(names, i), type, text))
			return true;
	return false;
}

void wf_identity_of(const X509 *cert, char identity[WF_IDENTITY_BYTES])
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

	if (!find_name(names, GEN_URI, identity) && !find_name(names, GEN_DNS, identity))
		identity[0] = '\0';
	GENERAL_NAMES_free(names);
}

bool wf_identity_is_same(const char *a, const char *b)
{
	static const char key[] = "key:";
	const size_t count = sizeof(key) - 1;

	return !strcmp(a, b) || (!strncmp(a, key, count) && !strncmp(b, key, count));
}

static bool is_in_list(const char *patterns, const char *text)
{
	for (const char *at = patterns; *at;) {
		size_t count = strcspn(at, ",");

		if (count && wf_pattern_matches(at, count, text, strlen(text)))
			return true;
		at += count + (at[count] == ',');
	}
	return false;
}

bool wf_identity_is_listed(const X509 *cert, const char *patterns)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	char text[WF_IDENTITY_BYTES];
	bool listed = false;

	for (int i = 0; i < sk_GENERAL_NAME_num(names) && !listed; i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

		listed = (copy_name(name, GEN_URI, text) || copy_name(name, GEN_DNS, text)) &&
			 is_in_list(patterns, text);
	}
	GENERAL_NAMES_free(names);
	return listed;
}
