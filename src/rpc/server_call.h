/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The serving side of calls: a request in, one reply out; or a stream of both (stream.h), and a
 * status out.
 *
 * A served call begins with its record, is handed to a handler once its request is whole and the
 * limits of its service (limit.h) admit it, and ends when the reply has left.  If the caller
 * cancels, dies or runs out of time meanwhile the handler can see it, and its reply is dropped.
 *
 * A call that may be made again is handled once.  If its link goes down the handler goes on
 * alone for a while, for the next attempt to find it; the reply cache (reply_cache.h) keeps its
 * answer.
 *
 * Threads: owner, but where a comment says otherwise.
 */
#ifndef WF_SERVER_CALL_H
#define WF_SERVER_CALL_H

#include <stdatomic.h>
#include "rpc/dedup.h"
#include "rpc/limit.h"
#include "rpc/reply.h"
#include "rpc/services.h"
#include "rpc/stream.h"
#include "transfer/pull.h"
#include "util/freelist.h"
#include "util/map.h"

struct wf_server_call;

struct wf_server_calls {
	struct wf_transfer *transfer;
	struct wf_streams *streams;
	struct wf_services *services;
	/*
	 * For the floor above: the caller gives up while the call runs; at most once.  NULL: not
	 * wanted.
	 */
	void (*given_up)(struct wf_server_call *served);
	/* For the floor above: the memory of the call goes.  NULL: not wanted. */
	void (*gone)(struct wf_server_call *served);
	/* A reply with attachments is posted, and the attachments may be. */
	void (*answered)(struct wf_server_call *served);
	struct wf_limit_turns turns;
	/*
	 * May the handler begin?  A status other than WEFT_OK is the answer, with *@text,
	 * copied.  NULL: always.
	 */
	enum weft_status (*admit)(struct wf_server_call *served, const char **text);
	/*
	 * The call has ended with @status, a notice; called while @served->asked, which admit
	 * counts up, is not 0.  Of the call only link and metadata are left.
	 */
	void (*told)(struct wf_server_call *served, enum weft_status status);
	struct wf_map map; /* served calls by link and id */
	struct wf_list alone; /* calls whose callers are lost */
	struct wf_reply_cache replies;
	struct wf_freelist spare; /* freelist of struct wf_server_call */
	bool draining;     /* no more calls are taken */
	bool closed;       /* no handler is begun any more */
};

/* Where a served call is found. */
enum wf_server_call_place {
	WF_SERVER_CALL_NOWHERE,
	WF_SERVER_CALL_MAPPED, /* in serving->map, and in link->work */
	WF_SERVER_CALL_ALONE, /* in serving->alone: the caller is lost, and may make another attempt */
};

/* The request of a call. */
struct wf_server_call_request {
	struct wf_buffer buffer;
	size_t bytes;
	struct wf_answer *answer; /* answer to the request's offer, until the pull */
	struct wf_pull *pull; /* NULL: not being pulled */
	bool whole;           /* the request has come */
	bool partial;         /* attachments are missing */
	bool was_compressed;
	void *attachment_set; /* attachments of the request; NULL: none */
	uint8_t *metadata;    /* a block, allocated; NULL: no metadata */
	uint32_t metadata_bytes;
	void *pairs;          /* metadata in the handler's form; freed by free() */
	size_t pair_count;
};

/* The handler, but for its reply. */
struct wf_server_call_handler {
	bool begun;    /* the call counts as executed */
	bool deferred; /* the request is kept until the handler replies */
	/*
	 * The caller gives up while the handler runs: called once, as a notice.  NULL: not
	 * wanted.
	 */
	void (*on_cancel)(void *arg);
	void *on_cancel_arg;
	void *user;    /* for the handler, or NULL; freed by @free_user at the end */
	void (*free_user)(void *user);
};

struct wf_server_call {
	struct wf_server_calls *serving;
	struct wf_service *service;
	struct wf_link *link;
	enum wf_server_call_place place;
	struct wf_map_node node;
	struct wf_list link_node; /* in link->work, or in serving->alone */
	uint64_t call;        /* id of the call at the caller */
	uint64_t deadline_ns; /* deadline by our clock; UINT64_MAX: none */
	uint64_t began_ns;    /* when the call came */
	unsigned asked; /* interceptors that want to hear of the end; counted by the floor above */
	atomic_bool cancelled;
	atomic_bool replied;  /* the first to set it replies */
	bool adopted;         /* there is, or was, a member of children; for the floor above */
	int method;
	struct wf_stream *stream; /* NULL: the call is unary */
	uint32_t understood;  /* compressions that the caller understands */
	bool waits;           /* the call waits for a limit of its service */
	struct wf_limit_ticket ticket;
	struct wf_link *entered; /* link of the first attempt, for the limits; NULL: @link */
	uint64_t held_bytes;  /* bytes of messages that the call holds */
	uint64_t charged_bytes; /* bytes charged to the caller, see link/ledger.h */
	struct wf_terms terms; /* terms of the reply: as the request was sent */
	struct wf_loop_notice notice;
	struct wf_timer timer;
	struct wf_list children; /* calls that end with this one; for the floor above */
	struct wf_dedup again;
	struct wf_server_call_request request;
	struct wf_server_call_handler handler;
	struct wf_reply reply;
};

void wf_server_call_init(struct wf_server_calls *serving, struct wf_streams *streams,
			 struct wf_services *services);
void wf_server_call_fini(struct wf_server_calls *serving);

/* Begin no handler any more: the node closes, and a handler could not answer. */
void wf_server_call_close(struct wf_server_calls *serving);

/* End all calls, which nobody will answer any more, when the links of a closing node are gone. */
void wf_server_call_end_all(struct wf_server_calls *serving);

/* Returns the pool of the call's messages. */
struct wf_pool *wf_server_call_pool(const struct wf_server_call *served);

/* Charge @bytes more to the caller, until the call has ended.  Threads: owner. */
void wf_server_call_charge(struct wf_server_call *served, uint64_t bytes);

/* Count a message of @bytes in @buffer as held; for reply.c. */
void wf_server_call_hold(struct wf_server_call *served, const struct wf_buffer *buffer,
			 uint64_t bytes);

/* End the call's place among those that run or wait; for reply.c. */
void wf_server_call_leave(struct wf_server_call *served);

/* End the call; for reply.c. */
void wf_server_call_free(struct wf_server_call *served);

/*
 * Let the handler of @first, which an earlier attempt has begun, answer @s, which is gone; for
 * dedup.c.  Deadline, terms and metadata stay those of the first attempt, for its handler may be
 * looking at them.  Threads: owner.
 */
void wf_server_call_join(struct wf_server_call *first, struct wf_server_call *s);

/* Call @tell once the caller gives up, at once if it has.  Threads: callback. */
void wf_server_call_on_cancel(struct wf_server_call *served, void (*tell)(void *arg), void *arg);

/*
 * Returns the time until the caller's deadline; 0 when it has passed, UINT64_MAX when there is
 * none.  Threads: any, callback.
 */
uint64_t wf_server_call_left_ns(const struct wf_server_call *served);

/* Say for people what the call is, and who has to do something about it. */
void wf_server_call_describe(const struct wf_server_call *served, char *text, size_t bytes);

/* Take REQUEST, GRANT_RESPONSES and CANCEL records.  Threads: setup. */
void wf_server_call_route(struct wf_server_calls *serving, struct wf_routes *routes);

/* Take a CALL record, which the floor above gets first.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_server_call_begin(struct wf_server_calls *serving, struct wf_link *link,
			 const struct wf_record *record);

/* Handle the loss of @link: calls that may be made again go on alone, others are given up. */
void wf_server_call_down(struct wf_link *link, const struct wf_error *e);

#endif
