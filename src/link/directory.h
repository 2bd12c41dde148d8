/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory of a node: which of its workers has the link to which peer.
 *
 * A node has one identity, whichever of its workers a peer meets, and two nodes
 * have one link.  So the worker of a link is settled here, before a hello is
 * answered or a link greeted: by the incarnation that the peer claims, else by an
 * address that it was named by, else by where there are fewest.  A claim brings a peer
 * to a worker, no more: whether two links there have one peer is proved (same.c).
 *
 * Only who opens peers and who greets comes here: one lock, and a search through
 * all entries.
 *
 * Threads: any, but for what says otherwise.
 */
#ifndef WF_DIRECTORY_H
#define WF_DIRECTORY_H

#include <pthread.h>
#include <stdatomic.h>
#include "util/list.h"
#include "wire/greet.h"

#define WF_WORKERS_MAX 16 /* of a node; not tuned: more than anybody has measured */

struct wf_worker;

/* An entry, part of what it stands for: a link, a peer, or a stranger at the door. */
struct wf_home {
	struct wf_list node;
	struct wf_worker *worker;
	const char *address; /* "": none known */
	bool claimed;        /* the incarnation is known */
	uint8_t incarnation[WF_INCARNATION_BYTES];
};

struct wf_directory {
	pthread_mutex_t lock;
	uint8_t incarnation[WF_INCARNATION_BYTES]; /* the node's own */
	struct wf_list homes;
	struct wf_worker *workers[WF_WORKERS_MAX];
	uint32_t worker_count;
	uint32_t last; /* that was picked */
	_Atomic uint64_t strangers_bytes; /* kept on behalf of all strangers, see ledger.h */
};

/* A negative code: no lock. */
int wf_directory_init(struct wf_directory *d);
void wf_directory_fini(struct wf_directory *d);

/* @w takes its part of the peers from now on.  Threads: setup. */
void wf_directory_join(struct wf_directory *d, struct wf_worker *w);

/* Enter @home at @w.  Borrows it and the address until it leaves. */
void wf_directory_enter(struct wf_directory *d, struct wf_home *home, struct wf_worker *w,
			const char *address);

/*
 * Enter @home where it belongs, and that is @home->worker.  Borrows the address until it leaves.
 * Both are what a stranger claims, where there is an incarnation: he is not found by that address.
 */
void wf_directory_place(struct wf_directory *d, struct wf_home *home, const char *address,
			const uint8_t *incarnation);
void wf_directory_leave(struct wf_directory *d, struct wf_home *home);

/* The address of an entry, which lies at @to, becomes @address. */
void wf_directory_address(struct wf_directory *d, char *to, const char *address);

/*
 * @home is that of @incarnation until it is disclaimed, as others of the same worker may
 * be.  Its worker; or another: that one has the peer, and nothing was done.
 */
struct wf_worker *wf_directory_claim(struct wf_directory *d, struct wf_home *home,
				     const uint8_t *incarnation);
void wf_directory_disclaim(struct wf_directory *d, struct wf_home *home);

/* Which worker has the peer, NULL: none. */
struct wf_worker *wf_directory_find(struct wf_directory *d, const uint8_t *incarnation);

#endif
