/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/seals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "link/internal.h"
#include "link/link.h"
#include "secure/secret_heap.h"

_Static_assert(WF_FRAME_SEAL_BYTES == WF_SEAL_TAG_BYTES, "a frame has room for its seal");

#define LABEL "EXPORTER-weft-link"

static int keep_secret(struct wf_seals *s, const struct wf_secret *secret)
{
	if (!s->secret)
		s->secret = wf_secret_heap_take();
	if (!s->next)
		s->next = wf_secret_heap_take();
	if (!s->secret || !s->next)
		return -ENOMEM;
	*s->next = *secret;
	return 0;
}

int wf_seals_meet(struct wf_link *link, const struct wf_conn *conn)
{
	struct wf_seals *s = &link->seals;
	struct wf_secret secret;
	int err = wf_conn_secret(conn, LABEL, &secret);

	if (err == -ENOENT)
		return 0; /* there is no TLS here */
	if (!err)
		err = keep_secret(s, &secret);
	wf_secret_wipe(&secret);
	if (err)
		return err;
	s->known = true;
	s->bodies = !strcmp(wf_options_security(&link->engine->options), "sealed");
	s->cipher = (uint8_t)WF_MAX(wf_seal_preferred(), (enum wf_seal_cipher)link->peer->cipher);
	(void)snprintf(s->identity, sizeof(s->identity), "%s", wf_conn_identity(conn));
	return 0;
}

bool wf_seals_bodies(const struct wf_link *link)
{
	return link->seals.on && link->seals.bodies;
}

enum wf_seal_cipher wf_seals_cipher(const struct wf_link *link)
{
	return (enum wf_seal_cipher)link->seals.cipher;
}

static void drop_keys(struct wf_seals *s)
{
	wf_ratchet_end(&s->out);
	wf_ratchet_end(&s->in);
	s->epoch = 0;
	s->on = false;
}

void wf_seals_forget(struct wf_seals *s)
{
	drop_keys(s);
	wf_secret_heap_give(s->secret);
	wf_secret_heap_give(s->next);
	*s = (struct wf_seals){ 0 };
}

bool wf_seals_meet_again(struct wf_link *link, const struct wf_conn *conn)
{
	const char *identity = wf_conn_identity(conn);

	if (!wf_identity_is_same(link->seals.identity, identity) ||
	    (link->seals.known && wf_conn_secret(conn, LABEL, link->seals.next)))
		return false;
	/* The identity of a key file is named by its present key. */
	(void)snprintf(link->seals.identity, sizeof(link->seals.identity), "%s", identity);
	return true;
}

/* Make the key of one direction: the side that dialled sends by number 0, the other by 1. */
static int make_key(const struct wf_link *link, struct wf_ratchet *ratchet, bool seals)
{
	const struct wf_seals *s = &link->seals;
	struct wf_secret secret;
	int err = wf_secret_derive(s->secret, "frames", link->probe.epoch,
				   link->dialler != seals, &secret);

	if (!err)
		err = wf_ratchet_begin(ratchet, (enum wf_seal_cipher)s->cipher, &secret, seals);
	wf_secret_wipe(&secret);
	return err;
}

int wf_seals_probe(struct wf_link *link)
{
	struct wf_seals *s = &link->seals;
	int err;

	if (!s->known)
		return 0;
	/* Keys go on with their epoch, or a number would be used twice. */
	if (s->epoch != link->probe.epoch) {
		drop_keys(s);
		*s->secret = *s->next;
		err = make_key(link, &s->out, true);
		if (!err)
			err = make_key(link, &s->in, false);
		if (err) {
			drop_keys(s);
			return err;
		}
		s->epoch = link->probe.epoch;
	}
	/* Rails of one host lead to processes whose user the kernel has named. */
	s->on = !wf_rail_caps(link->on->rail)->same_host;
	return 0;
}

int wf_seals_close(struct wf_link *link, struct wf_outframe *f)
{
	const size_t head = WF_FRAME_HEADER_BYTES;
	struct wf_ratchet *out = &link->seals.out;

	if (!f->sealed && wf_pool_take(&link->engine->frames.pool, link->engine->frame_bytes,
				       (void **)&f->sealed))
		return -ENOMEM;
	f->header.sealed = true;
	f->header.token = 0;
	f->header.number = out->number;
	wf_frame_put(f->sealed, &f->header);
	return wf_ratchet_seal(out, f->sealed, head, f->bytes + head, f->sealed + head,
			       f->header.body_bytes, f->sealed + head + f->header.body_bytes);
}

int wf_seals_open(struct wf_link *link, const struct wf_frame *frame, uint8_t *bytes)
{
	uint8_t *body = bytes + WF_FRAME_HEADER_BYTES;

	if (frame->sealed != link->seals.on)
		return -EBADMSG;
	if (!frame->sealed)
		return 0;
	return wf_ratchet_open(&link->seals.in, frame->number, bytes, WF_FRAME_HEADER_BYTES, body,
			       body, frame->body_bytes, body + frame->body_bytes);
}

int wf_seals_request(const struct wf_link *link, uint64_t id, uint32_t epoch, uint32_t lane,
		     const uint8_t *address, size_t address_bytes,
		     uint8_t mac[WF_SEALS_MAC_BYTES])
{
	uint8_t bytes[16 + WF_ADDRESS_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	const struct wf_seals *s = &link->seals;
	struct wf_secret secret;
	bool now = s->epoch && epoch == s->epoch;
	int err = wf_secret_derive(now ? s->secret : s->next, "request", 0, 0, &secret);

	if (err)
		return err;
	wf_bytes_put_u64(&w, id);
	wf_bytes_put_u32(&w, epoch);
	wf_bytes_put_u32(&w, lane);
	wf_bytes_put(&w, address, address_bytes);
	err = w.bad ? -EINVAL : wf_secret_mac(&secret, bytes, (size_t)(w.at - bytes), mac,
					      WF_SEALS_MAC_BYTES);
	wf_secret_wipe(&secret);
	return err;
}
