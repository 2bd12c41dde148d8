/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/secure/certificates.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#define HOUR_S 3600

static char folder[64];
static long serial;

static void must(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	ERR_print_errors_fp(stderr);
	abort();
}

int certificates_begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/weft-certificates.XXXXXX");
	must(mkdtemp(folder) != NULL, folder);
	return 0;
}

int certificates_end(void **state)
{
	char path[CERTIFICATES_PATH_BYTES];
	DIR *all = opendir(folder);
	struct dirent *file;

	(void)state;
	must(all != NULL, folder);
	while ((file = readdir(all))) {
		if (file->d_name[0] == '.')
			continue;
		certificates_path(path, file->d_name);
		must(!remove(path), path);
	}
	closedir(all);
	return rmdir(folder);
}

void certificates_path(char path[CERTIFICATES_PATH_BYTES], const char *name)
{
	int length = snprintf(path, CERTIFICATES_PATH_BYTES, "%s/%s", folder, name);

	must(length < CERTIFICATES_PATH_BYTES, name);
}

static void add_extension(X509 *cert, const X509 *issuer, int kind, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, (X509 *)issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, kind, value);
	must(extension && X509_add_ext(cert, extension, -1), value);
	X509_EXTENSION_free(extension);
}

struct certificate certificates_make(const struct certificate *issuer,
				     const struct certificates_wish *wish)
{
	struct certificate c = { .cert = X509_new() };
	bool dated = wish->begins_s || wish->ends_s;
	char subject[64];
	X509_NAME *name;

	c.key = wish->rsa_bits ? EVP_RSA_gen(wish->rsa_bits) : EVP_EC_gen("P-256");
	must(c.cert && c.key, "a certificate's key");
	(void)snprintf(subject, sizeof(subject), "%s-%ld",
		       wish->is_authority ? "authority" : "node", ++serial);
	if (wish->common_name)
		(void)snprintf(subject, sizeof(subject), "%s", wish->common_name);
	name = X509_get_subject_name(c.cert);
	must(X509_set_version(c.cert, X509_VERSION_3) &&
		     ASN1_INTEGER_set(X509_get_serialNumber(c.cert), serial) &&
		     X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
						(const unsigned char *)subject, -1, -1, 0) &&
		     X509_gmtime_adj(X509_getm_notBefore(c.cert),
				     dated ? wish->begins_s : -HOUR_S) &&
		     X509_gmtime_adj(X509_getm_notAfter(c.cert), dated ? wish->ends_s : HOUR_S) &&
		     X509_set_pubkey(c.cert, c.key),
	     subject);
	if (!issuer)
		issuer = &c;
	must(X509_set_issuer_name(c.cert, X509_get_subject_name(issuer->cert)), subject);
	add_extension(c.cert, issuer->cert, NID_basic_constraints,
		      wish->is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
	add_extension(c.cert, issuer->cert, NID_key_usage, wish->is_authority ?
		      "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
	add_extension(c.cert, issuer->cert, NID_subject_key_identifier, "hash");
	if (!wish->is_authority)
		add_extension(c.cert, issuer->cert, NID_ext_key_usage,
			      wish->usage ? wish->usage : "serverAuth,clientAuth");
	if (wish->names)
		add_extension(c.cert, issuer->cert, NID_subject_alt_name, wish->names);
	must(X509_sign(c.cert, issuer->key,
		       EVP_get_digestbyname(wish->hash ? wish->hash : "SHA256")),
	     subject);
	return c;
}

void certificates_free(struct certificate *c)
{
	X509_free(c->cert);
	EVP_PKEY_free(c->key);
	*c = (struct certificate){ 0 };
}

/* Open a file that only its owner may read. */
static FILE *open_file(const char *name, int flags)
{
	char path[CERTIFICATES_PATH_BYTES];
	FILE *file;
	int fd;

	certificates_path(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
	must(fd >= 0, path);
	file = fdopen(fd, flags & O_APPEND ? "a" : "w");
	must(file != NULL, path);
	return file;
}

void certificates_save(const char *name, const X509 *cert)
{
	FILE *file = open_file(name, O_TRUNC);

	must(PEM_write_X509(file, cert), name);
	must(!fclose(file), name);
}

void certificates_save_key(const char *name, const EVP_PKEY *key, const char *password)
{
	FILE *file = open_file(name, O_TRUNC);

	must(PEM_write_PKCS8PrivateKey(file, key, password ? EVP_aes_128_cbc() : NULL, password,
				       password ? (int)strlen(password) : 0, NULL, NULL), name);
	must(!fclose(file), name);
}

void certificates_append(const char *name, const X509 *cert)
{
	FILE *file = open_file(name, O_APPEND);

	must(PEM_write_X509(file, cert), name);
	must(!fclose(file), name);
}

void certificates_revoke(const char *name, const struct certificate *issuer, const X509 *cert)
{
	FILE *file = open_file(name, O_APPEND);
	X509_REVOKED *entry = X509_REVOKED_new();
	ASN1_TIME *begins = X509_gmtime_adj(NULL, -HOUR_S), *ends = X509_gmtime_adj(NULL, HOUR_S);
	X509_CRL *list = X509_CRL_new();

	must(entry && begins && ends && list, name);
	must(X509_REVOKED_set_serialNumber(entry, (ASN1_INTEGER *)X509_get0_serialNumber(cert)) &&
	     X509_REVOKED_set_revocationDate(entry, begins) && X509_CRL_add0_revoked(list, entry) &&
	     X509_CRL_set_version(list, X509_CRL_VERSION_2) &&
	     X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer->cert)) &&
	     X509_CRL_set1_lastUpdate(list, begins) && X509_CRL_set1_nextUpdate(list, ends) &&
	     X509_CRL_sort(list) && X509_CRL_sign(list, issuer->key, EVP_sha256()), name);
	must(PEM_write_X509_CRL(file, list), name);
	must(!fclose(file), name);
	ASN1_TIME_free(begins);
	ASN1_TIME_free(ends);
	X509_CRL_free(list);
}

void certificates_say(const char *name, const char *text)
{
	FILE *file = open_file(name, O_TRUNC);

	must(fputs(text, file) >= 0, name);
	must(!fclose(file), name);
}
