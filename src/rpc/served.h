/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The serving side of calls: a request in, one reply out; or a stream of both
 * (stream.h), and a status out.
 *
 * A served call begins with its record, is handed to a handler once its
 * request is whole and the limits of its service (limit.h) let it, and ends when the
 * reply has left.  If the caller cancels, dies or runs out of time meanwhile the handler
 * can see it, and its reply is dropped.
 *
 * A call that may be made again is handled once.  If its link goes down the
 * handler goes on alone for a while, for the next attempt to find it; then, and
 * for what it has answered, see replies.h.
 *
 * Threads: owner, but for what says otherwise.
 */
#ifndef WF_SERVED_H
#define WF_SERVED_H

#include <stdatomic.h>
#include "rpc/again.h"
#include "rpc/limit.h"
#include "rpc/reply.h"
#include "rpc/services.h"
#include "rpc/stream.h"
#include "transfer/pull.h"
#include "util/map.h"
#include "util/spare.h"

struct wf_served;

struct wf_serving {
	struct wf_transfer *transfer;
	struct wf_streams *streams;
	struct wf_services *services;
	/*
	 * For the floor above: the caller gives up while the call runs, at most once; and its
	 * memory goes.  NULL: it does not want to know.
	 */
	void (*given_up)(struct wf_served *served);
	void (*gone)(struct wf_served *served);
	/* A reply, with attachments, is posted, and so may be those. */
	void (*answered)(struct wf_served *served);
	struct wf_turns turns;
	/*
	 * May the handler begin?  Other than WEFT_OK is the answer, with *@text, copied.  It counts in
	 * @served->asked, and while that is not 0 the end is told too: as a notice, with what became
	 * of the call, and with nothing of it left but link and metadata.  NULL: always, and nobody.
	 */
	enum weft_status (*admit)(struct wf_served *served, const char **text);
	void (*told)(struct wf_served *served, enum weft_status status);
	struct wf_map map; /* served calls by link and id */
	struct wf_list alone; /* those whose callers are lost and may come back */
	struct wf_replies replies;
	struct wf_spare spare; /* of struct wf_served */
	bool draining;     /* no more calls are taken */
	bool closed;       /* no handler is begun any more */
};

/* Where a served call is found. */
enum wf_served_place {
	WF_SERVED_NOWHERE,
	WF_SERVED_MAPPED, /* in serving->map, and in a list of its link */
	WF_SERVED_ALONE,  /* in serving->alone: its caller is lost, and it waits for another attempt */
};

/* What the caller has sent. */
struct wf_served_request {
	struct wf_buffer buffer;
	size_t bytes;
	struct wf_answer *answer; /* to its offer, until it is pulled */
	struct wf_pull *pull; /* while it is pulled; NULL: it is not */
	bool whole;           /* it has come */
	bool partial;         /* not all that goes beside it has come */
	bool was_compressed;
	void *bundle;         /* of what goes beside it; NULL: nothing does */
	uint8_t *metadata;    /* a block, allocated; NULL: there is none */
	uint32_t metadata_bytes;
	void *pairs;          /* the metadata, as the handler sees it; freed by free() */
	size_t pair_count;
};

/* Of the handler, all but its reply. */
struct wf_served_handler {
	bool begun;    /* it counts as executed */
	bool deferred; /* the call is kept until it replies */
	/* The caller gives up while the handler is at it: told once, as a notice.  NULL: it does not want to know. */
	void (*on_cancel)(void *arg);
	void *on_cancel_arg;
	void *user;    /* the handler's, or NULL; freed by @free_user at the end */
	void (*free_user)(void *user);
};

struct wf_served {
	struct wf_serving *serving;
	struct wf_service *service;
	struct wf_link *link;
	enum wf_served_place place;
	struct wf_map_node node;
	struct wf_list link_node; /* in a list of @link, or of those that are alone */
	uint64_t call;        /* the caller's id */
	uint64_t deadline_ns; /* by our clock; UINT64_MAX: none */
	uint64_t began_ns;    /* when it came */
	unsigned asked;       /* by the floor above: who is to be told of its end */
	atomic_bool cancelled;
	atomic_bool replied;  /* the first to set it replies */
	int method;
	struct wf_stream *stream; /* NULL: it is unary */
	uint32_t understood;  /* compressions, by its caller */
	bool waits;           /* for a limit of its service */
	struct wf_ticket ticket;
	struct wf_link *entered; /* over which the first attempt came, if not by @link: the limits count that */
	uint64_t held_bytes;  /* of messages, as they are counted */
	uint64_t charged_bytes; /* to its caller's account, see link/ledger.h */
	struct wf_terms terms; /* of the reply: as the request was sent */
	struct wf_notice notice;
	struct wf_timer timer;
	struct wf_list children; /* calls that end with it: the floor above's */
	struct wf_again again;
	struct wf_served_request request;
	struct wf_served_handler handler;
	struct wf_reply reply;
};

void wf_served_init(struct wf_serving *serving, struct wf_streams *streams,
		    struct wf_services *services);
void wf_served_fini(struct wf_serving *serving);

/* The node closes: no handler is begun any more, for it could not answer. */
void wf_served_close(struct wf_serving *serving);

/* Where its messages lie. */
struct wf_pool *wf_served_pool(const struct wf_served *served);

/* @bytes more are kept for it until it has ended, in its caller's account.  Threads: owner. */
void wf_served_charge(struct wf_served *served, uint64_t bytes);

/*
 * For reply.c: a message of @bytes is held in @buffer; it takes no place any more among those that
 * run or wait; it has ended.
 */
void wf_served_hold(struct wf_served *served, const struct wf_buffer *buffer, uint64_t bytes);
void wf_served_leave(struct wf_served *served);
void wf_served_free(struct wf_served *served);

/*
 * For again.c: the handler of @first, which an earlier attempt has begun, answers @s instead,
 * which is gone.  Deadline, terms and metadata stay those of the first attempt, for its handler may be
 * looking at them.  Threads: owner.
 */
void wf_served_join(struct wf_served *first, struct wf_served *s);

/* From now on @tell hears of it, at once if it has happened.  Threads: callback. */
void wf_served_on_cancel(struct wf_served *served, void (*tell)(void *arg), void *arg);

/* Until the caller's deadline; 0 when it has passed, UINT64_MAX when there is none.  Threads: any, callback. */
uint64_t wf_served_left_ns(const struct wf_served *served);

/* For people: what it is, and who has to do something about it. */
void wf_served_describe(const struct wf_served *served, char *text, size_t bytes);

/* A server takes REQUEST, GRANT_RESPONSES and CANCEL records.  Threads: setup. */
void wf_served_route(struct wf_serving *serving, struct wf_routes *routes);

/* A CALL record, which the floor above takes first.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_served_call(struct wf_serving *serving, struct wf_link *link,
		   const struct wf_record *record);
void wf_served_down(struct wf_link *link, const struct wf_error *e);

#endif
