/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/credentials.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "secure/identity.h"
#include "secure/internal.h"
#include "secure/key_file.h"
#include "secure/secret_heap.h"
#include "util/bytes.h"
#include "util/clock.h"

#define SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
/* The suites of a key file: the hash of all of them is that of the key's binder. */
#define KEY_SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"
#define SIGNATURES "ECDSA+SHA256:ECDSA+SHA384:ed25519:RSA-PSS+SHA256:RSA-PSS+SHA384"
#define SECURITY_BITS_LEVEL 2 /* OpenSSL's: 112 bits, so no SHA-1 and no RSA below 2048 bits */
#define SECURITY_BITS 112     /* the bits of that level */
#define CHAIN_BYTES_MAX 32768 /* certificates that a peer shows; a chain of four has some 6 KiB */

/* OpenSSL takes a key for a session that is resumed, and asks for its context. */
static const unsigned char context[] = { 'w', 'e', 'f', 't' };

static bool is_given(const char *path)
{
	return path && *path;
}

static bool set_up(SSL_SESSION *s, const SSL_CIPHER *cipher, const struct wf_secret *psk)
{
	return SSL_SESSION_set1_master_key(s, psk->bytes, sizeof(psk->bytes)) &&
	       SSL_SESSION_set_cipher(s, cipher) &&
	       SSL_SESSION_set1_id_context(s, context, sizeof(context)) &&
	       SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION);
}

/*
 * Make the session that stands for @key of @c, as TLS 1.3 knows it; none if @key does no more: it
 * is wiped then, and zeros are a key that everybody has.  Returns 0 without memory, for OpenSSL.
 */
static int make_session(SSL *tls, struct wf_credentials *c, const struct wf_credentials_key *key,
			SSL_SESSION **session)
{
	static const unsigned char suite[] = { 0x13, 0x01 }; /* TLS_AES_128_GCM_SHA256 */
	const SSL_CIPHER *cipher = SSL_CIPHER_find(tls, suite);
	SSL_SESSION *s = cipher ? SSL_SESSION_new() : NULL;
	bool does, set;

	pthread_mutex_lock(&c->lock);
	does = key == &c->key || wf_credentials_have_older(c);
	set = does && s && set_up(s, cipher, key->psk);
	pthread_mutex_unlock(&c->lock);
	if (!set)
		SSL_SESSION_free(s);
	*session = set ? s : NULL;
	return set || !does;
}

/* OpenSSL asks the side that dials for its key. */
static int offer_key(SSL *tls, const EVP_MD *md, const unsigned char **id, size_t *id_bytes,
		     SSL_SESSION **session)
{
	struct wf_credentials *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));
	const struct wf_credentials_key *key = SSL_get_app_data(tls) ? &c->older : &c->key;

	*session = NULL;
	if (md && !EVP_MD_is_a(md, "SHA256"))
		return 1; /* no key fits */
	*id = (const unsigned char *)key->id;
	*id_bytes = strlen(key->id);
	return make_session(tls, c, key, session);
}

static bool names(const unsigned char *id, size_t id_bytes, const struct wf_credentials_key *key)
{
	return id_bytes == strlen(key->id) && !memcmp(id, key->id, id_bytes);
}

/* OpenSSL asks the side that was dialled for the key that a peer names. */
static int find_key(SSL *tls, const unsigned char *id, size_t id_bytes, SSL_SESSION **session)
{
	struct wf_credentials *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));
	const struct wf_credentials_key *key = NULL;

	*session = NULL;
	if (names(id, id_bytes, &c->key))
		key = &c->key;
	else if (wf_credentials_have_older(c) && names(id, id_bytes, &c->older))
		key = &c->older;
	if (!key)
		return 1; /* another key: the handshake fails */
	/* For wf_session_is_of(): such a session does not hold for long. */
	if (key == &c->older && !SSL_set_app_data(tls, (void *)&c->older))
		return 0;
	return make_session(tls, c, key, session);
}

/* OpenSSL has looked at a certificate; the last one is the peer's own, whose identity must do. */
static int check_peer(int ok, X509_STORE_CTX *store)
{
	const SSL *tls = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	const struct wf_credentials *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));

	if (!ok || X509_STORE_CTX_get_error_depth(store) || !c->peers ||
	    wf_identity_is_listed(X509_STORE_CTX_get_current_cert(store), c->peers))
		return ok;
	X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

/* Record what OpenSSL says went wrong first. */
static int say(struct wf_error *e, int err, const char *what, const char *path)
{
	unsigned long first = ERR_peek_error();
	const char *why = ERR_reason_error_string(first);

	ERR_clear_error();
	/* A file that can't be opened: OpenSSL has no text for an errno. */
	if (ERR_SYSTEM_ERROR(first)) {
		err = -ERR_GET_REASON(first);
		why = wf_error_name(err);
	}
	return wf_error_set(e, err, "%s %.200s: %s", what, path, why ? why : "it can't be used");
}

static int use_key_file(struct wf_credentials *c, const char *path, struct wf_error *e)
{
	struct wf_secret file, id;
	struct wf_bytes_reader r = wf_bytes_reader(id.bytes, sizeof(id.bytes));
	int err;

	c->key.psk = wf_secret_heap_take();
	c->older.psk = wf_secret_heap_take();
	err = wf_key_file_read(path, file.bytes, e);
	if (err)
		return err;
	err = c->key.psk && c->older.psk ?
		      wf_secret_derive(&file, "weft key", 0, 0, c->key.psk) : -ENOMEM;
	if (!err)
		err = wf_secret_derive(&file, "weft key id", 0, 0, &id);
	wf_secret_wipe(&file);
	if (err)
		return wf_error_set(e, err, "key file %.300s: out of memory", path);
	c->has_key = true;
	(void)snprintf(c->key.id, sizeof(c->key.id), "key:%016" PRIx64, wf_bytes_get_u64(&r));
	strcpy(c->identity, c->key.id);
	SSL_CTX_set_psk_use_session_callback(c->tls, offer_key);
	SSL_CTX_set_psk_find_session_callback(c->tls, find_key);
	/* A peer that shows a certificate in the place of the key is verified by no authority. */
	SSL_CTX_set_verify(c->tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	if (!SSL_CTX_set_ciphersuites(c->tls, KEY_SUITES))
		return say(e, -EINVAL, "the ciphers for key file", path);
	return 0;
}

/* Is the private key its owner's alone?  Or its group's, for Kubernetes gives files to root. */
static int check_key(const char *path, struct wf_error *e)
{
	struct stat file;

	if (stat(path, &file))
		return wf_error_set(e, -errno, "key %.300s: %s", path, wf_error_name(-errno));
	if (file.st_mode & (S_IWGRP | S_IRWXO))
		return wf_error_set(e, -EACCES, "key %.300s has mode %03o: others must have no "
				    "right to it (chmod 400)", path, file.st_mode & 0777);
	if (file.st_uid != geteuid() && file.st_uid)
		return wf_error_set(e, -EACCES, "key %.300s belongs to user %u, and this process "
				    "runs as user %u", path, file.st_uid, geteuid());
	return 0;
}

/* Take the authorities, and revocation lists: in these the peers' own certificates are sought. */
static int use_authorities(struct wf_credentials *c, const char *path, struct wf_error *e)
{
	X509_STORE *store = SSL_CTX_get_cert_store(c->tls);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
	STACK_OF(X509_OBJECT) *objects;
	bool authority = false, list = false;

	if (!lookup || X509_load_cert_crl_file(lookup, path, X509_FILETYPE_PEM) <= 0)
		return say(e, -EINVAL, "authorities", path);
	objects = X509_STORE_get0_objects(store);
	for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
		X509_LOOKUP_TYPE type = X509_OBJECT_get_type(sk_X509_OBJECT_value(objects, i));

		authority |= type == X509_LU_X509;
		list |= type == X509_LU_CRL;
	}
	if (!authority)
		return wf_error_set(e, -EINVAL, "authorities %.300s: there is no certificate",
				    path);
	if (list)
		X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
	return 0;
}

/*
 * Refuse this node's own certificate if peers would refuse its signature: OpenSSL 3.0 does so by
 * itself, and 3.5 loads it.  Nobody looks at the signature of one that is its own authority.
 */
static int check_signature(const struct wf_credentials *c, const char *path, struct wf_error *e)
{
	X509 *cert = SSL_CTX_get0_certificate(c->tls);
	int bits;

	if (X509_get_extension_flags(cert) & EXFLAG_SS ||
	    !X509_get_signature_info(cert, NULL, NULL, &bits, NULL) || bits >= SECURITY_BITS)
		return 0;
	return wf_error_set(e, -EINVAL, "certificate %.300s: its signature is too weak: %d bits of "
			    "security, and peers ask for %d", path, bits, SECURITY_BITS);
}

static int use_certificates(struct wf_credentials *c, const struct wf_credentials_files *f,
			    struct wf_error *e)
{
	int err = check_key(f->key, e), asked = 0;

	if (err)
		return err;
	SSL_CTX_set_default_passwd_cb_userdata(c->tls, &asked);
	if (SSL_CTX_use_certificate_chain_file(c->tls, f->cert) <= 0)
		return say(e, -EINVAL, "certificate", f->cert);
	err = check_signature(c, f->cert, e);
	if (err)
		return err;
	err = SSL_CTX_use_PrivateKey_file(c->tls, f->key, SSL_FILETYPE_PEM) <= 0 ||
	      SSL_CTX_check_private_key(c->tls) <= 0;
	SSL_CTX_set_default_passwd_cb_userdata(c->tls, NULL);
	if (asked)
		return wf_error_set(e, -EINVAL, "key %.300s is encrypted: there is nobody to ask "
				    "for its password", f->key);
	if (err)
		return say(e, -EINVAL, "key", f->key);
	wf_identity_of(SSL_CTX_get0_certificate(c->tls), c->identity);
	if (is_given(f->peers)) {
		c->peers = strdup(f->peers);
		if (!c->peers)
			return wf_error_set(e, -ENOMEM, "certificate: out of memory");
	}
	SSL_CTX_set_verify(c->tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, check_peer);
	if (!SSL_CTX_set_ciphersuites(c->tls, SUITES) ||
	    !SSL_CTX_set1_sigalgs_list(c->tls, SIGNATURES))
		return say(e, -EINVAL, "the ciphers for certificate", f->cert);
	return use_authorities(c, f->ca, e);
}

/* OpenSSL asks for a password.  There is none, and @ctx counts that it was asked for. */
static int no_password(char *text, int bytes, int writes, void *ctx)
{
	int *asked = ctx;

	(void)text;
	(void)bytes;
	(void)writes;
	if (asked)
		++*asked;
	return 0;
}

/* Set what both kinds have in common: TLS 1.3, and nothing that outlives a session. */
static bool set_rules(SSL_CTX *tls)
{
	SSL_CTX_set_max_cert_list(tls, CHAIN_BYTES_MAX);
	SSL_CTX_set_security_level(tls, SECURITY_BITS_LEVEL);
	SSL_CTX_set_default_passwd_cb(tls, no_password);
	(void)SSL_CTX_set_options(tls, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
				  SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
				  SSL_OP_PRIORITIZE_CHACHA);
	(void)SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE |
			       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	(void)SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
	if (!SSL_CTX_set_session_id_context(tls, context, sizeof(context)))
		return false;
	return SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) &&
	       SSL_CTX_set_max_proto_version(tls, TLS1_3_VERSION) &&
	       SSL_CTX_set_num_tickets(tls, 0) && SSL_CTX_set_max_early_data(tls, 0) &&
	       SSL_CTX_set_recv_max_early_data(tls, 0) && SSL_CTX_set1_groups_list(tls, GROUPS);
}

/* Are enough files named, and of one kind alone? */
static int check_names(const struct wf_credentials_files *f, struct wf_error *e)
{
	int certificates = is_given(f->cert) + is_given(f->key) + is_given(f->ca);

	if (is_given(f->key_file) && (certificates || is_given(f->peers)))
		return wf_error_set(e, -EINVAL, "WEFT_KEY_FILE and certificates are both named: "
				    "a node proves itself by one of them");
	if (!is_given(f->key_file) && certificates != 3)
		return wf_error_set(e, -EINVAL, "certificates need WEFT_CERT, WEFT_KEY and "
				    "WEFT_CA: %s is not named%s", !is_given(f->cert) ? "WEFT_CERT" :
				    !is_given(f->key) ? "WEFT_KEY" : "WEFT_CA",
				    is_given(f->key) && certificates == 1 ?
				    "; WEFT_KEY_FILE names a key that all nodes share" : "");
	return 0;
}

/*
 * Keep libcrypto alive to the end of the process: by itself it frees its locks inside exit(), while
 * a node that is open still has threads that use them.  Whoever uses libcrypto first decides.
 */
static void outlive_exit(void)
{
	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

int wf_credentials_open(const struct wf_credentials_files *files,
			struct wf_credentials **credentials, struct wf_error *e)
{
	struct wf_credentials *c;
	int err = check_names(files, e);

	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c || pthread_mutex_init(&c->lock, NULL)) {
		free(c);
		return wf_error_set(e, -ENOMEM, "credentials: out of memory");
	}
	c->refs = 1;
	outlive_exit();
	ERR_clear_error();
	c->tls = SSL_CTX_new(TLS_method());
	if (!c->tls || !set_rules(c->tls)) {
		err = say(e, -ENOMEM, "credentials:", "TLS can't be set up");
	} else {
		SSL_CTX_set_app_data(c->tls, c);
		err = is_given(files->key_file) ? use_key_file(c, files->key_file, e) :
						  use_certificates(c, files, e);
	}
	if (err) {
		wf_credentials_put(c);
		return err;
	}
	*credentials = c;
	return 0;
}

static void copy_key(struct wf_credentials_key *to, const struct wf_credentials_key *from)
{
	*to->psk = *from->psk;
	strcpy(to->id, from->id);
}

bool wf_credentials_succeed(struct wf_credentials *c, const struct wf_credentials *older,
			    uint64_t until_ns)
{
	if (!c->has_key || !older->has_key)
		return false;
	if (!strcmp(c->key.id, older->key.id)) {
		copy_key(&c->older, &older->older);
		c->older_until_ns = atomic_load(&older->older_until_ns);
		return false;
	}
	copy_key(&c->older, &older->key);
	c->older_until_ns = until_ns;
	return true;
}

bool wf_credentials_have_key(const struct wf_credentials *c)
{
	return c && c->has_key;
}

bool wf_credentials_have_older(const struct wf_credentials *c)
{
	uint64_t until_ns = atomic_load(&c->older_until_ns);

	return until_ns && wf_clock_now() < until_ns;
}

void wf_credentials_forget_older(struct wf_credentials *c)
{
	pthread_mutex_lock(&c->lock);
	c->older_until_ns = 0;
	if (c->older.psk)
		wf_secret_wipe(c->older.psk);
	pthread_mutex_unlock(&c->lock);
}

const char *wf_credentials_identity(const struct wf_credentials *c)
{
	return c->identity;
}

struct wf_credentials *wf_credentials_get(struct wf_credentials *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void wf_credentials_put(struct wf_credentials *c)
{
	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	SSL_CTX_free(c->tls);
	wf_secret_heap_give(c->key.psk);
	wf_secret_heap_give(c->older.psk);
	pthread_mutex_destroy(&c->lock);
	free(c->peers);
	free(c);
}
