/* SPDX-License-Identifier: BSD-2-Clause */
#include "flight.h"

#include <errno.h>

void flight_explain(const struct weft_op *op, const char *peer,
		    struct sentence *why)
{
	enum weft_status status = weft_op_status(op);
	const char *message = weft_op_message(op);

	if (status == WEFT_ABORTED) /* our server's own sentence */
		sentence_set(why, -EIO, "%s", message);
	else if (status == WEFT_UNAVAILABLE)
		sentence_set(why, -EIO, "lost %s: %s", peer, message);
	else
		sentence_set(why, -EIO, "%s: %s: %s", peer,
			     weft_status_name(status), message);
}

int flight_add(struct flight *f, int err, struct weft_op *op, const char *peer,
	       struct sentence *why)
{
	if (err)
		return sentence_set(why, err, "%s: %s", peer, weft_error());
	if (f->count == FLIGHT_OPS) { /* a mistake of ours, not of a peer's */
		weft_op_free(op);
		return sentence_set(why, -ENOBUFS, "more than %d operations",
				    FLIGHT_OPS);
	}
	f->ops[f->count].op = op;
	f->ops[f->count].peer = peer;
	f->count++;
	return 0;
}

bool flight_landed(const struct flight *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		if (!weft_op_ended(f->ops[i].op))
			return false;
	}
	return true;
}

int flight_check(const struct flight *f, struct sentence *why)
{
	const struct weft_op *failed = NULL;
	const char *peer = NULL;

	for (unsigned i = 0; i < f->count; i++) {
		const struct weft_op *op = f->ops[i].op;

		if (!weft_op_ended(op) || weft_op_status(op) == WEFT_OK)
			continue;
		/* A server's own sentence says more than that it left after. */
		if (!failed || weft_op_status(op) == WEFT_ABORTED) {
			failed = op;
			peer = f->ops[i].peer;
		}
	}
	if (!failed)
		return 0;
	flight_explain(failed, peer, why);
	return -EIO;
}

void flight_clear(struct flight *f, struct traffic *t)
{
	for (unsigned i = 0; i < f->count; i++) {
		if (t)
			traffic_add(t, f->ops[i].op);
		weft_op_free(f->ops[i].op);
	}
	f->count = 0;
}
