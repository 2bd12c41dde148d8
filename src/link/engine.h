/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A progress engine, of which each worker has one: loop, rails, door and links.  One thread owns
 * it, and nothing inside is locked.
 *
 * Other threads reach an engine by wf_loop_submit() only.  News for users leaves through
 * wf_loop_defer(), at the end of a turn of the loop, so that no user's callback ever runs inside
 * the library's own work.
 */
#ifndef WF_ENGINE_H
#define WF_ENGINE_H

#include "fabric/rail.h"
#include "link/directory.h"
#include "link/door.h"
#include "link/doorbell.h"
#include "link/host.h"
#include "link/outframe.h"
#include "link/route.h"
#include "loop/loop.h"
#include "memory/pool.h"
#include "util/list.h"
#include "util/log.h"
#include "util/map.h"
#include "util/options.h"
#include "util/table.h"
#include "wire/greet.h"
#include "wire/pack.h"

#define WF_ENGINE_RAILS_MAX 8 /* our rails; a hello names up to 16 */

struct wf_lane;
struct wf_link;
struct wf_engine_rail;
struct wf_shm_export;
struct wf_sidedoor;

/* A read that a rail has under way: the cookie of its READ event. */
struct wf_engine_read {
	void (*done)(struct wf_engine_read *read, int status);
};

/* Upcalls to the floors above, except for records: see route.h. */
struct wf_engine_sink {
	/* A rail works (again): @link may move bulk data; its epoch is new. */
	void (*up)(void *ctx, struct wf_link *link);
	/* The peer has proven itself again, maybe by another key of its key file. */
	void (*proven)(void *ctx, struct wf_link *link);
	/* The rail is gone: reads on a connected one have ended without a completion. */
	void (*paused)(void *ctx, struct wf_link *link);
	/* A lane is ready; or about to close, and its reads end without a completion. */
	void (*lane)(void *ctx, struct wf_lane *lane, bool open);
	/* A shared rail was opened anew: nothing that was stuck on it touches memory any more. */
	void (*quiet)(void *ctx, const struct wf_engine_rail *on);
	/* Worker @home has the peer of @link, never greeted: operations for it are to go there. */
	void (*elsewhere)(void *ctx, struct wf_link *link, struct wf_engine *home);
	/* @from turned out to be the peer of @into, and is from now on another name of it. */
	void (*merged)(void *ctx, struct wf_link *from, struct wf_link *into);
	/* The peer is about to be declared dead because of @e: all is still as it was. */
	void (*dying)(void *ctx, struct wf_link *link, const struct wf_error *e);
	/* The peer is dead: everything that waits for it fails with @e. */
	void (*down)(void *ctx, struct wf_link *link, const struct wf_error *e);
	/* Nobody has a reference to @link, whose memory is freed on return. */
	void (*unused)(void *ctx, struct wf_link *link);
};

/* A rail, and how its receive slots are promised to links. */
struct wf_engine_rail {
	struct wf_rail *rail;
	uint32_t edition;      /* number of times that a same-host rail was opened */
	uint32_t link_count;
	uint32_t promised; /* slots that links may still fill with data frames */
	uint32_t share;    /* the most promised slots for one link */
	bool hungry;       /* a link without a promised slot got none */
	uint64_t shared_ns; /* when the share was last computed */
	struct wf_list abandoned; /* frames that a shared endpoint may still read */
	bool reopen;           /* operations on the rail are stuck: reopen it in the next turn */
	struct wf_timer reopen_timer; /* reopens a rail that has failed, or keeps @abandoned */
	uint64_t reopen_pause_ns;
	struct wf_timer tidy_timer; /* runs while a connection to the rail says nothing */
};

/*
 * Encrypted parts of bodies that a worker keeps at once, of its own reads and of its peers': apart,
 * so that neither waits for the other.  Not tuned.
 */
#define WF_FETCHED_BYTES (32 * MIB)
#define WF_PARCELS_BYTES (32 * MIB)

struct wf_engine {
	struct wf_options options;
	struct wf_log log;
	struct wf_counters counters;
	struct wf_loop loop;
	bool manual;
	bool beyond_loopback;
	struct wf_credentials *credentials; /* a reference; NULL: without TLS */
	struct wf_acl *acl;    /* a reference; NULL: peers may do anything */
	char name[WF_GREET_NAME_BYTES];
	struct wf_directory *directory; /* the directory of the node */
	const struct wf_engine *first; /* the first worker, whose door listens; NULL: this one */

	struct wf_select select;
	struct wf_engine_rail rails[WF_ENGINE_RAILS_MAX];
	uint32_t rail_count;
	char host_address[WF_SOCKET_ADDRESS_BYTES]; /* host where rails that go by IP listen */

	struct wf_door *door;
	char address[WF_SOCKET_ADDRESS_BYTES]; /* address of the door, as told to others */
	struct wf_host *host;  /* NULL: this host lets no marker be kept */
	struct wf_sidedoor *sidedoor; /* NULL: this host lets no side door be opened */
	struct wf_doorbell *bell;
	struct wf_shm_export *shm_export; /* NULL: no same-host rail, so nothing can be lent */
	struct wf_list shm_imports; /* importers of chunks that peers lend; see lease.h */

	struct wf_pool pool;   /* the pool of the user */
	struct wf_outframes frames; /* frames of the links */
	/* encrypted parts of bodies, beside the user's budget: of our reads, and of our peers' */
	struct wf_pool fetched, parcels;
	uint32_t frame_bytes;  /* the largest frame of any rail */
	struct wf_table links; /* links by the id that peers put into frames */
	struct wf_list link_list;
	uint32_t link_number;  /* number of the last link that was made */
	struct wf_list dirty;  /* links with something to send */
	struct wf_list unused_links; /* links to be freed between two turns */
	struct wf_timer reprove_timer; /* see reprove.h */
	uint64_t kept_out_ns;  /* until then strangers are kept out without a line in the log */
	uint64_t refused_ns;   /* until then peers are refused rights without a line in the log */
	const struct wf_routes *routes;
	const struct wf_engine_sink *sink;
	void *sink_ctx;
};

struct wf_engine_config {
	const struct wf_options *options;
	struct wf_log log;
	const char *name;
	bool manual;
	struct wf_credentials *credentials; /* NULL: without TLS; the worker takes a reference */
	struct wf_acl *acl; /* NULL: peers may do anything; the worker takes a reference */
	struct wf_directory *directory;
	/* The first worker, whose door listens for this one too; NULL: this one. */
	const struct wf_engine *first;
	const struct wf_routes *routes; /* routes of records; borrowed until the worker closes */
	const struct wf_engine_sink *sink;
	void *sink_ctx;
};

/* Open rails, door and pools.  The first worker of a node listens on return.  Threads: setup. */
int wf_engine_open(struct wf_engine *engine, const struct wf_engine_config *config,
		   struct wf_error *e);

/*
 * Say goodbye on every link and close the rails: afterwards every operation has ended and no memory
 * is touched any more.  Then call wf_engine_close().  Threads: setup.
 */
void wf_engine_leave(struct wf_engine *engine);

/* Free links and pools.  Threads: setup. */
void wf_engine_close(struct wf_engine *engine);

/*
 * Send messages that tasks run outside a turn have posted, except on links where a frame is not
 * confirmed yet: there the next turn begins with sending, and packs.  Threads: owner.
 */
void wf_engine_flush(struct wf_engine *engine);

/* Tags of what the poller of a worker's loop reports. */
enum wf_engine_tag {
	WF_ENGINE_TAG_DOOR = WF_POLLER_TAG_FIRST,
	WF_ENGINE_TAG_SIDEDOOR,
	WF_ENGINE_TAG_BELL,
	WF_ENGINE_TAG_RAIL, /* a rail, by its number */
	WF_ENGINE_TAG_PEER  /* the pidfd of a peer's process, by the link's id */
};

/*
 * Watch the process of the link @link_id by its pidfd, until unwatched.  The poller has 56 bits of
 * the id: generations of one place repeat after 16 million peers.  Threads: owner.
 */
static inline int wf_engine_watch_peer(struct wf_engine *engine, int fd, uint64_t link_id)
{
	return wf_poller_add(&engine->loop.poller, fd, WF_ENGINE_TAG_PEER, link_id);
}

static inline void wf_engine_unwatch_peer(struct wf_engine *engine, int fd)
{
	wf_poller_remove(&engine->loop.poller, fd);
}

/*
 * Leave @engine in a forked child: close descriptors that would hide our death, touch nothing of
 * the fabric, and turn the loop no more, also when the fork was in a callback of this worker.
 */
void wf_engine_forked(struct wf_engine *engine);

#endif
