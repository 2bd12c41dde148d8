/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "secure/identity.h"
#include "secure/internal.h"

#define RECORD_BYTES_MAX 16384 /* a TLS record has no more */
/*
 * Messages of TLS that a proven peer may send: new keys, and tickets of who listens.  Each new key
 * costs a derivation and an answer, and brings no data.  A door's messages never need one.
 */
#define AFTER_PROOF_MAX 32u

struct wf_session {
	SSL *tls;
	BIO *in, *out; /* the SSL's own: bytes of the peer, and for it */
	struct wf_credentials *credentials;
	bool proven;
	bool failed; /* a read has: OpenSSL would call the next one an end */
	unsigned after_proof; /* messages of TLS that have come since the proof */
	char identity[WF_IDENTITY_BYTES];
};

/* Words for some of OpenSSL's reasons, which name the alert and not what a user can do. */
static const struct {
	int reason, code;
	const char *text;
} reasons[] = {
	{ SSL_R_WRONG_VERSION_NUMBER, EBADMSG,
	  "it does not speak TLS: it has no key, or is no node" },
	{ SSL_R_HTTP_REQUEST, EBADMSG, "it speaks HTTP" },
	{ SSL_R_UNSUPPORTED_PROTOCOL, EBADMSG, "it does not speak TLS 1.3" },
	{ SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, EBADMSG, "it does not speak TLS 1.3" },
	{ SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, EKEYREJECTED,
	  "it has another key, or a certificate of a kind that is not taken here" },
	{ SSL_R_NO_SHARED_CIPHER, EKEYREJECTED, "it has no cipher in common with us" },
	{ SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, EKEYREJECTED,
	  "it has another key, or does not take our certificate or identity" },
	{ SSL_R_BINDER_DOES_NOT_VERIFY, EKEYREJECTED, "it names our key and does not have it" },
	{ SSL_R_TLSV1_ALERT_DECRYPT_ERROR, EKEYREJECTED,
	  "it says that our key or signature is wrong" },
	{ SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, EKEYREJECTED, "it shows no certificate" },
	{ SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, EKEYREJECTED, "it asks for a certificate" },
	{ SSL_R_TLSV1_ALERT_UNKNOWN_CA, EKEYREJECTED, "it trusts no authority of our certificate" },
	{ SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, EKEYREJECTED,
	  "it takes our certificate for a bad one" },
	{ SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, EKEYREJECTED,
	  "our certificate is not for this use, it says" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, EKEYREJECTED,
	  "our certificate has expired, it says" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, EKEYREJECTED,
	  "our certificate is revoked, it says" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, EKEYREJECTED, "it does not take our certificate" },
	{ SSL_R_TLSV1_ALERT_ACCESS_DENIED, EKEYREJECTED, "it does not let our identity in" },
	{ SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY, EKEYREJECTED,
	  "it has no key or certificate, and this node has (WEFT_KEY_FILE, WEFT_CERT)" },
};

/* Have the peer's certificate checked against the name that was dialled, which may be a number. */
static bool expect_name(SSL *tls, const char *host)
{
	uint8_t number[sizeof(struct in6_addr)];

	SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
			       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (inet_pton(AF_INET, host, number) == 1 || inet_pton(AF_INET6, host, number) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host);
	return SSL_set1_host(tls, host) && SSL_set_tlsext_host_name(tls, host);
}

/* Count a message of TLS's own that has come since the handshake. */
static void count_message(int is_sent, int version, int type, const void *bytes, size_t count,
			  SSL *tls, void *arg)
{
	struct wf_session *s = arg;

	(void)version;
	(void)bytes;
	(void)count;
	(void)tls;
	if (!is_sent && s->proven && type == SSL3_RT_HANDSHAKE)
		s->after_proof++;
}

int wf_session_new(struct wf_credentials *credentials, const char *host, bool older,
		   struct wf_session **session)
{
	struct wf_session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->credentials = wf_credentials_get(credentials);
	s->tls = SSL_new(credentials->tls);
	s->in = BIO_new(BIO_s_mem());
	s->out = BIO_new(BIO_s_mem());
	if (!s->tls || !s->in || !s->out) {
		BIO_free(s->in);
		BIO_free(s->out);
		s->in = s->out = NULL;
		goto fail;
	}
	BIO_set_mem_eof_return(s->in, -1); /* no bytes yet is no end */
	BIO_set_mem_eof_return(s->out, -1);
	SSL_set_bio(s->tls, s->in, s->out);
	SSL_set_msg_callback(s->tls, count_message);
	SSL_set_msg_callback_arg(s->tls, s);
	/* Data that offer_key() of credentials.c asks for. */
	if (older && !SSL_set_app_data(s->tls, &s->credentials->older))
		goto fail;
	if (host) {
		SSL_set_connect_state(s->tls);
		if (!credentials->has_key && !credentials->peers && !expect_name(s->tls, host))
			goto fail;
	} else {
		SSL_set_accept_state(s->tls);
	}
	*session = s;
	return 0;

fail:
	wf_session_free(s);
	ERR_clear_error();
	return -ENOMEM;
}

void wf_session_free(struct wf_session *s)
{
	if (!s)
		return;
	SSL_free(s->tls);
	wf_credentials_put(s->credentials);
	free(s);
}

int wf_session_feed(struct wf_session *s, const void *bytes, size_t count)
{
	return BIO_write(s->in, bytes, (int)count) == (int)count ? 0 : -ENOMEM;
}

const uint8_t *wf_session_outgoing(struct wf_session *s, size_t *count)
{
	char *bytes;
	long waiting = BIO_get_mem_data(s->out, &bytes);

	*count = waiting > 0 ? (size_t)waiting : 0;
	return *count ? (const uint8_t *)bytes : NULL;
}

void wf_session_sent(struct wf_session *s, size_t count)
{
	char bytes[1024];

	/* A memory BIO forgets bytes by their being read. */
	while (count) {
		int got = BIO_read(s->out, bytes, (int)WF_MIN(count, sizeof(bytes)));

		if (got <= 0)
			return;
		count -= (size_t)got;
	}
}

/* Say why the handshake has failed, as far as that is known. */
static int say_refused(struct wf_session *s, struct wf_error *e)
{
	unsigned long first = ERR_peek_error();
	int reason = ERR_GET_LIB(first) == ERR_LIB_SSL ? ERR_GET_REASON(first) : 0;
	long verdict = SSL_get_verify_result(s->tls);
	const char *text;

	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED &&
	    verdict == X509_V_ERR_APPLICATION_VERIFICATION)
		return wf_error_set(e, -EKEYREJECTED, "no identity in its certificate is listed in "
				    "WEFT_PEER_IDS");
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return wf_error_set(e, -EKEYREJECTED, "its certificate is refused: %s",
				    X509_verify_cert_error_string(verdict));
	for (size_t i = 0; i < WF_COUNT(reasons); i++)
		if (reason == reasons[i].reason)
			return wf_error_set(e, -reasons[i].code, "%s", reasons[i].text);
	text = ERR_reason_error_string(first);
	return wf_error_set(e, ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE ? -ENOMEM : -EBADMSG,
			    "%s", text ? text : "what it sends is no TLS");
}

/* Take note of who the peer is.  -EKEYREJECTED: nobody is proven. */
static int prove(struct wf_session *s, struct wf_error *e)
{
	static const struct wf_secret none;
	X509 *cert;

	if (s->credentials->has_key) {
		/* The key file's key stands for a session that is resumed. */
		if (!SSL_session_reused(s->tls))
			return wf_error_set(e, -EKEYREJECTED,
					    "it has not proved that it has our key");
		/* libssl keeps the key as long as the session, and has no more use for it. */
		(void)SSL_SESSION_set1_master_key(SSL_get_session(s->tls), none.bytes,
						  sizeof(none.bytes));
		strcpy(s->identity, s->credentials->key.id);
	} else {
		cert = SSL_get0_peer_certificate(s->tls);
		if (!cert || SSL_get_verify_result(s->tls) != X509_V_OK)
			return wf_error_set(e, -EKEYREJECTED, "it shows no certificate");
		wf_identity_of(cert, s->identity);
	}
	s->proven = true;
	return 0;
}

int wf_session_shake(struct wf_session *s, struct wf_error *e)
{
	int rc, why;

	ERR_clear_error();
	rc = SSL_do_handshake(s->tls);
	if (rc == 1)
		return prove(s, e);
	why = SSL_get_error(s->tls, rc);
	if (why == SSL_ERROR_WANT_READ)
		return -EAGAIN;
	rc = say_refused(s, e);
	ERR_clear_error();
	return rc;
}

ssize_t wf_session_read(struct wf_session *s, void *bytes, size_t count, struct wf_error *e)
{
	size_t got;
	int rc;

	/* OpenSSL would go on with the handshake here, and read bytes of an unproven peer. */
	if (!s->proven)
		return -EAGAIN;
	if (s->failed)
		return wf_error_set(e, -EBADMSG, "the session has failed before");
	ERR_clear_error();
	rc = SSL_read_ex(s->tls, bytes, count, &got);
	if (s->after_proof > AFTER_PROOF_MAX) {
		s->failed = true;
		ERR_clear_error();
		return wf_error_set(e, -EBADMSG, "it changes the session's keys without end");
	}
	if (rc == 1)
		return (ssize_t)got;
	rc = SSL_get_error(s->tls, rc);
	if (rc == SSL_ERROR_WANT_READ)
		return -EAGAIN;
	if (rc == SSL_ERROR_ZERO_RETURN)
		return 0;
	s->failed = true;
	rc = say_refused(s, e);
	ERR_clear_error();
	return rc;
}

bool wf_session_holds(const struct wf_session *s)
{
	return SSL_has_pending(s->tls) || BIO_ctrl_pending(s->in);
}

ssize_t wf_session_write(struct wf_session *s, const void *bytes, size_t count)
{
	size_t put;

	if (!s->proven)
		return -EBADMSG;
	ERR_clear_error();
	if (SSL_write_ex(s->tls, bytes, WF_MIN(count, (size_t)RECORD_BYTES_MAX), &put) == 1)
		return (ssize_t)put;
	ERR_clear_error();
	return -EBADMSG;
}

int wf_session_secret(struct wf_session *s, const char *label, struct wf_secret *secret)
{
	if (!s->proven || SSL_export_keying_material(s->tls, secret->bytes, sizeof(secret->bytes),
						     label, strlen(label), NULL, 0, 0) != 1)
		return -ENOMEM;
	return 0;
}

const char *wf_session_identity(const struct wf_session *s)
{
	return s->identity;
}

bool wf_session_is_of(const struct wf_session *s, const struct wf_credentials *credentials)
{
	return s->credentials == credentials && !SSL_get_app_data(s->tls);
}

bool wf_session_does(const struct wf_session *s, const struct wf_credentials *credentials)
{
	const struct wf_credentials_key *key = SSL_get_app_data(s->tls);

	if (!s->credentials->has_key || !credentials->has_key)
		return wf_session_is_of(s, credentials);
	if (!key)
		key = &s->credentials->key;
	return !strcmp(key->id, credentials->key.id) ||
	       (wf_credentials_have_older(credentials) && !strcmp(key->id, credentials->older.id));
}

const char *wf_session_cipher(const struct wf_session *s)
{
	return s->proven ? SSL_get_cipher_name(s->tls) : "";
}
