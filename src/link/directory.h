/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory of a node: which of its workers has the link to which peer.
 *
 * A node has one identity, whichever of its workers a peer meets, and two nodes have one link.  So
 * the directory settles the worker of a link before a hello is answered or a link greeted: by the
 * incarnation that the peer claims, else by an address that the peer was named by, else by which
 * worker has fewest.  A claim brings a peer to a worker, no more: whether two links there have one
 * peer is proved (same.c).
 *
 * Only opening peers and greeting come here: one lock, and a search through all entries.
 *
 * Threads: any, unless a function says otherwise.
 */
#ifndef WF_DIRECTORY_H
#define WF_DIRECTORY_H

#include <pthread.h>
#include <stdatomic.h>
#include "util/list.h"
#include "wire/greet.h"

#define WF_WORKERS_MAX 16 /* workers of a node; not tuned: more than anybody has measured */

struct wf_engine;

/* An entry, part of the object that it stands for: a link, a peer, or a stranger at the door. */
struct wf_directory_home {
	struct wf_list node;
	struct wf_engine *engine;
	const char *address; /* "": none known */
	bool claimed;        /* the incarnation is known */
	uint8_t incarnation[WF_INCARNATION_BYTES];
};

struct wf_directory {
	pthread_mutex_t lock;
	uint8_t incarnation[WF_INCARNATION_BYTES]; /* the incarnation of this node */
	struct wf_list homes;
	struct wf_engine *workers[WF_WORKERS_MAX];
	uint32_t worker_count;
	uint32_t last; /* the worker that was picked last */
	_Atomic uint64_t strangers_bytes; /* bytes kept on behalf of all strangers, see ledger.h */
};

/* Make an empty directory.  A negative code: no lock could be made. */
int wf_directory_init(struct wf_directory *d);
void wf_directory_fini(struct wf_directory *d);

/* Let @engine take its share of the peers from now on.  Threads: setup. */
void wf_directory_join(struct wf_directory *d, struct wf_engine *engine);

/* Enter @home at @engine.  Borrows @home and @address until @home leaves. */
void wf_directory_enter(struct wf_directory *d, struct wf_directory_home *home,
			struct wf_engine *engine, const char *address);

/*
 * Enter @home where it belongs, which is then @home->engine.  Borrows the address until @home
 * leaves.  With an @incarnation, address and incarnation are what a stranger claims: the entry is
 * not found by that address.
 */
void wf_directory_place(struct wf_directory *d, struct wf_directory_home *home, const char *address,
			const uint8_t *incarnation);
void wf_directory_leave(struct wf_directory *d, struct wf_directory_home *home);

/* Set the address of an entry, which lies at @to, to @address. */
void wf_directory_address(struct wf_directory *d, char *to, const char *address);

/*
 * Claim @incarnation for @home until it is disclaimed; other entries of the same worker may claim
 * it, too.  Returns the worker of @home; or another worker: that one has the peer, and nothing was
 * done.
 */
struct wf_engine *wf_directory_claim(struct wf_directory *d, struct wf_directory_home *home,
				     const uint8_t *incarnation);
void wf_directory_disclaim(struct wf_directory *d, struct wf_directory_home *home);

/* Returns the worker that has the peer, NULL: none. */
struct wf_engine *wf_directory_find(struct wf_directory *d, const uint8_t *incarnation);

#endif
