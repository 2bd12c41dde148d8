/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message: a record given to a link to send, as data or as a control.
 *
 * Threads: owner.
 */
#ifndef WF_MESSAGE_H
#define WF_MESSAGE_H

#include "util/error.h"
#include "util/list.h"
#include "wire/record.h"

struct wf_link;

/*
 * A record to be sent: @head then @body.  Borrows both until @sent, which is called once: with NULL
 * when all bytes are in frames (the buffers are free), with an error when the link died before.
 * Never inside wf_link_post.
 */
struct wf_message {
	struct wf_list node;
	uint8_t type;
	/*
	 * Priority; wf_link_post() sets it to that of a waiting message which this one @follows, so that
	 * the two stay in order.
	 */
	uint8_t priority;
	const void *head, *body;
	size_t head_bytes, body_bytes;
	size_t done_bytes; /* bytes of head and body that are in frames */
	uint32_t frames;   /* frames that took some of the bytes */
	uint64_t first_ns; /* when the first frame took some */
	void (*sent)(struct wf_message *m, const struct wf_error *e);
	/*
	 * Returns whether @m must not overtake @before, a message with the same function, whatever
	 * their priorities.  NULL: it may overtake any of a lower priority.
	 */
	bool (*follows)(const struct wf_message *m, const struct wf_message *before);
};

/* A record for control frames: small, repeated until answered, needs no credit. */
struct wf_message_control {
	struct wf_list node;
	uint8_t type;
	uint64_t id;
	/* The peer has @c (@e is NULL), or the link died. */
	void (*sent)(struct wf_message_control *c, const struct wf_error *e);
};

/* Queue @m; dials if the link is idle.  A link that is gone fails it at the end of this turn. */
void wf_link_post(struct wf_link *link, struct wf_message *m);

/* Take back a message of which no byte has left.  -EALREADY: too late, sent() follows. */
int wf_link_unpost(struct wf_link *link, struct wf_message *m);

/* The longest record that is posted as a copy. */
#define WF_MESSAGE_COPY_BYTES_MAX WF_RECORD_OFFER_BYTES_MAX

/* Room for a copy of a record that is posted later, for certain.  NULL: no memory. */
struct wf_message_copy *wf_message_copy_new(void);

/* Post a record as @copy, which is taken, in data frames, charged to the peer. */
void wf_message_copy_post(struct wf_message_copy *copy, struct wf_link *link, uint8_t priority,
			  uint8_t type, const uint8_t *bytes, size_t count);

/* Free @copy, which is not posted.  Accepts NULL. */
void wf_message_copy_free(struct wf_message_copy *copy);

/* Post a copy of a record, as wf_message_copy_post() does.  -ENOMEM: nothing was posted. */
int wf_message_post_copy(struct wf_link *link, uint8_t priority, uint8_t type,
			 const uint8_t *bytes, size_t count);

/*
 * Post a copy of a record that an operation of this node's program causes, for which the peer is
 * not charged.  -ENOMEM: nothing was posted.
 */
int wf_message_post_own(struct wf_link *link, uint8_t priority, uint8_t type, const uint8_t *bytes,
			size_t count);

/* Post a small record (wire/record.h), as wf_message_post_copy() does. */
int wf_message_post_small(struct wf_link *link, uint8_t priority, uint8_t type, uint64_t id,
			  uint64_t other, uint8_t status);

/*
 * Let @m, of which a part has left over @link, be finished by a copy, so that its head, body and
 * owner may go: sent() is not called.  -ENOMEM: nothing was done.
 */
int wf_message_finish_copy(struct wf_message *m, struct wf_link *link);

/* Queue @c for the next control frame. */
void wf_link_control(struct wf_link *link, struct wf_message_control *c);

#endif
