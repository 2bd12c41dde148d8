/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reply cache: replies kept for callers that may ask again.
 *
 * A call that its caller makes again when it fails has a request id, the same in each attempt.
 * Under the caller's incarnation and that id the cache has the call's handler while it runs, and
 * its answer for a while afterwards: so a later attempt gets that, and no handler runs twice.
 *
 * When there are too many the oldest go first.  Dropped replies are remembered by the last id of
 * their caller, whose ids count up: whether an unknown request up to that id was handled nobody
 * can say any more.
 *
 * A caller with entries here comes back to this worker: the directory has its place.
 *
 * Threads: owner.
 */
#ifndef WF_REPLY_CACHE_H
#define WF_REPLY_CACHE_H

#include <stdatomic.h>
#include "link/engine.h"
#include "wire/record.h"
#include "wire/record_call.h"

/* Limits of a worker; not tuned: some seconds of a busy server, for a short break of a link. */
#define WF_REPLY_CACHE_MAX 1024
#define WF_REPLY_CACHE_BYTES_MAX (8 * MIB)

/* Callers remembered for replies that were dropped; not tuned. */
#define WF_REPLY_CACHE_CALLERS_MAX 256

struct wf_caller;
struct wf_server_call;

struct wf_reply_cache_entry {
	struct wf_map_node node;
	struct wf_list age;       /* in replies->kept */
	struct wf_caller *caller;
	uint64_t id;
	struct wf_server_call *served; /* call whose handler runs; NULL: it has answered */
	struct wf_record_reply reply; /* the answer; its text a C string, its body at eager */
	uint8_t *block;           /* memory of the reply's bytes */
	uint64_t bytes;           /* size of the entry and @block */
};

struct wf_reply_cache {
	struct wf_engine *engine;
	atomic_bool *forgot;      /* some caller with dropped replies was forgotten by the node */
	struct wf_map requests, callers;
	struct wf_list kept;      /* answered requests, the oldest first */
	struct wf_list idle;      /* callers whose replies were all dropped, the oldest first */
	unsigned kept_count, idle_count;
	uint64_t kept_bytes;
};

void wf_reply_cache_init(struct wf_reply_cache *r, struct wf_engine *engine, atomic_bool *forgot);
void wf_reply_cache_fini(struct wf_reply_cache *r);

/* Returns the entry, or NULL. */
struct wf_reply_cache_entry *wf_reply_cache_find(struct wf_reply_cache *r,
						 const uint8_t *incarnation, uint64_t id);

/* Returns whether a request without an entry may have had one. */
bool wf_reply_cache_had(struct wf_reply_cache *r, const uint8_t *incarnation, uint64_t id);

/* Make an entry for @served, whose handler begins.  -ENOMEM. */
int wf_reply_cache_open(struct wf_reply_cache *r, const uint8_t *incarnation, uint64_t id,
			struct wf_server_call *served, struct wf_reply_cache_entry **request);

/* Close the entry of a call that was not handled after all: the next attempt may be. */
void wf_reply_cache_close(struct wf_reply_cache *r, struct wf_reply_cache_entry *request);

/* Keep the answer @reply, with the body at eager; it is copied, if there is room. */
void wf_reply_cache_keep(struct wf_reply_cache *r, struct wf_reply_cache_entry *request,
			 const struct wf_record_reply *reply);

/* Drop the entry, whose answer, if any, is for nobody. */
void wf_reply_cache_lose(struct wf_reply_cache *r, struct wf_reply_cache_entry *request);

#endif
