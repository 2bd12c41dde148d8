/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Certificates for tests, and a folder for the files that they and their keys are in.  Any failure
 * stops the test.
 */
#ifndef CERTIFICATES_H
#define CERTIFICATES_H

#include <stdbool.h>

#include <openssl/x509.h>

#define CERTIFICATES_PATH_BYTES 256

struct certificate {
	X509 *cert;
	EVP_PKEY *key;
};

/* How a certificate is to be; a zeroed one is a node's own without any fault. */
struct certificates_wish {
	const char *common_name; /* NULL: one of its own */
	const char *names;  /* "DNS:node,URI:spiffe://one/a,IP:127.0.0.1"; NULL: no names */
	const char *usage;  /* extended key usage; NULL: both sides of TLS */
	bool is_authority;
	long begins_s, ends_s; /* from now; both 0: an hour ago and an hour on */
	unsigned rsa_bits;  /* 0: a key of the curve P-256 */
	const char *hash;   /* of the signature; NULL: SHA256 */
};

/* Make the folder, or remove it with all files in it.  For cmocka; 0. */
int certificates_begin(void **state);
int certificates_end(void **state);

/* Write the path that the file @name of the folder has. */
void certificates_path(char path[CERTIFICATES_PATH_BYTES], const char *name);

/* Make a certificate with a key of its own, signed by @issuer; NULL: by itself. */
struct certificate certificates_make(const struct certificate *issuer,
				     const struct certificates_wish *wish);
void certificates_free(struct certificate *c);

/* Write a file of the folder anew, as PEM.  @password: encrypts the key; NULL: it stays clear. */
void certificates_save(const char *name, const X509 *cert);
void certificates_save_key(const char *name, const EVP_PKEY *key, const char *password);

/* Append to a file of the folder: a certificate, or a list that revokes the one of @cert. */
void certificates_append(const char *name, const X509 *cert);
void certificates_revoke(const char *name, const struct certificate *issuer, const X509 *cert);

/* Write any text to a file of the folder. */
void certificates_say(const char *name, const char *text);

#endif
