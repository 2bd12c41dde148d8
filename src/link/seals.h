/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The secret that a link has from the TLS session of its door, and what is sealed with it: frames
 * on every rail but those of one host, and the data by which a peer connects.
 *
 * The secret is that of the door's last session when the probe of the rail began, and outlives it:
 * a door that is dialled again proves the same peer.  Each probe has keys of its own, one for each
 * direction, derived from the secret and the probe's epoch.
 *
 * Threads: owner.
 */
#ifndef WF_SEALS_H
#define WF_SEALS_H

#include "secure/identity.h"
#include "secure/ratchet.h"
#include "wire/frame.h"

struct wf_conn;
struct wf_link;
struct wf_outframe;

#define WF_SEALS_MAC_BYTES 16

struct wf_seals {
	bool known;              /* the peer was met in TLS, and @secret is known */
	bool on;                 /* frames on the rail in use are sealed */
	bool bodies;             /* and so are bodies then, which move in parcels (wire/parcel.h) */
	bool renew;              /* credentials have changed since: the rail gets keys of the next */
	uint8_t cipher;          /* enum wf_seal_cipher of both */
	uint32_t epoch;          /* epoch of the keys; 0: there are none */
	/* Secrets of the secret heap; NULL: the peer was not met in TLS yet. */
	struct wf_secret *secret; /* secret of @epoch */
	struct wf_secret *next;   /* secret of later epochs: of the door's last session */
	struct wf_ratchet out, in;
	char identity[WF_IDENTITY_BYTES]; /* identity of the peer, as TLS has proven it */
};

/* Take the secret of the session of @conn, in which the peer of @link was met.  -ENOMEM. */
int wf_seals_meet(struct wf_link *link, const struct wf_conn *conn);

/* Are bodies sealed that move over the rail of @link, which is up? */
bool wf_seals_bodies(const struct wf_link *link);

/* Returns the cipher of both ends of @link. */
enum wf_seal_cipher wf_seals_cipher(const struct wf_link *link);

/* Wipe all: the peer is gone. */
void wf_seals_forget(struct wf_seals *seals);

/*
 * Has the door of @conn the identity that the peer of @link was met with?  Without TLS all have.
 * If so the link has the identity as it is proven now, for that of a key file may have got another
 * name, and the secret of that session for probes to come.  False also: no memory for that.
 */
bool wf_seals_meet_again(struct wf_link *link, const struct wf_conn *conn);

/* Make keys for the probe under way of the rail in use.  -ENOMEM. */
int wf_seals_probe(struct wf_link *link);

/*
 * Seal @frame, whose header is not written yet, into its sealed bytes: they are what the rail is to
 * send.  -ENOMEM; -EOVERFLOW: the rail has had more frames than it may.
 */
int wf_seals_close(struct wf_link *link, struct wf_outframe *frame);

/*
 * Open, in place, the body of a frame that was parsed from @bytes.  0, also where frames are not
 * sealed.  -EBADMSG: it does not verify, or is sealed where none is, or the reverse; -EALREADY:
 * it came before; -ENOMEM.
 */
int wf_seals_open(struct wf_link *link, const struct wf_frame *frame, uint8_t *bytes);

/*
 * Write what proves that a request of probe @epoch for @lane, at a rail of @address, comes from an
 * end of @link.  -ENOMEM.
 */
int wf_seals_request(const struct wf_link *link, uint64_t id, uint32_t epoch, uint32_t lane,
		     const uint8_t *address, size_t address_bytes,
		     uint8_t mac[WF_SEALS_MAC_BYTES]);

#endif
