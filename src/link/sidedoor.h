/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Side doors: messages between two nodes of one host and user, beside their door.
 *
 * A node that can share its host listens on a unix socket in /dev/shm, and its hello has nothing of
 * the host but the number that names that socket.  A node that has dialled the peer's door connects
 * there, too.  The kernel says which user and process the other end is; that it is the link's peer
 * is proved by the tokens of both hellos, which are random for each link.  Descriptors come with
 * the packets.  So no process id, descriptor number or path of a peer's own word is ever used.
 *
 * A stranger, which has not said yet which link is its own, has one of a few places for five
 * seconds, gives way where descriptors run out, and costs one look at the table of links.
 *
 * Never blocks.  Threads: owner.
 */
#ifndef WF_SIDEDOOR_H
#define WF_SIDEDOOR_H

#include "fabric/rail.h"
#include "loop/timer.h"
#include "wire/side.h"

#define WF_SIDEDOOR_STRANGERS_MAX 64 /* places for strangers, as at the door */
#define WF_SIDEDOOR_STRANGER_NS (5 * WF_NS_PER_S)
/* Time that a dialler's rails wait for the first packet; not tuned: it takes some 100 us. */
#define WF_SIDEDOOR_WAIT_NS WF_NS_PER_S

struct wf_shm_import;
struct wf_host_peer;
struct wf_link;
struct wf_remote_doorbell;
struct wf_engine;
struct wf_sidedoor;  /* the side door of a worker */
struct wf_neighbour; /* the process at the other end of a link, or a stranger */

/* Upcalls of a side door about a link. */
struct wf_sidedoor_events {
	/* The peer can be reached by same-host rails from now on. */
	void (*opened)(struct wf_link *link);
	/* The peer has answered, or will not, after wf_sidedoor_meet() has returned true. */
	void (*settled)(struct wf_link *link, bool met);
};

/* The peer of a link as a neighbour on this host.  Valid until the peer dies. */
struct wf_sidedoor_link {
	struct wf_neighbour *neighbour; /* NULL: the peer is not met at the side door */
	bool beside;               /* the peer's side door has a process: it is on this host */
	bool within_process;       /* the peer is a node of this very process, as the kernel says */
	bool gate_open;            /* the peer can be reached by a same-host rail */
	struct wf_host_peer *host; /* NULL: the peer's process is not watched */
	struct wf_remote_doorbell *remote_doorbell;
	struct wf_shm_import *shm_import; /* NULL: nothing that the peer lends was looked at yet */
};

/* Open the side door of @engine, which listens on return, as @number. */
int wf_sidedoor_open(struct wf_engine *engine, uint64_t number,
		     const struct wf_sidedoor_events *events, struct wf_sidedoor **door,
		     struct wf_error *e);

/* Give @fd, the page of our leases, to peers that are met from now on; borrowed. */
void wf_sidedoor_show_leases(struct wf_sidedoor *door, int fd);

void wf_sidedoor_close(struct wf_sidedoor *door); /* accepts NULL */

/* Returns the descriptor for epoll. */
int wf_sidedoor_fd(const struct wf_sidedoor *door);
void wf_sidedoor_poll(struct wf_sidedoor *door);

/* In a forked child: close all descriptors, touch nothing else. */
void wf_sidedoor_forked(struct wf_sidedoor *door);

/*
 * Meet the peer of @link, which we have dialled and whose hello has come.  The outcome stands in
 * link->side.gate_open and link->dial.gate_text; true: settled() tells when the outcome is there, and
 * maybe has already.
 */
bool wf_sidedoor_meet(struct wf_link *link);

/* Take packets that have come for @link. */
void wf_sidedoor_hear(struct wf_link *link);

/* Tell the peer that our same-host rails have changed. */
void wf_sidedoor_tell(struct wf_link *link);

/* Leave the side door of a dead peer; the importer of what it lends has parted from @link. */
void wf_sidedoor_forget(struct wf_link *link);

/*
 * Open an endpoint, as wf_ep_open(), for the peer's same-host rail @theirs.  -EHOSTUNREACH: its
 * address has not come.
 */
int wf_sidedoor_ep_open(struct wf_link *link, struct wf_rail *rail, uint32_t theirs,
			struct wf_ep **ep, struct wf_error *e);

/* Take the descriptor of the page of the peer's leases, the caller's from now on; -ENOENT. */
int wf_sidedoor_take_leases(struct wf_link *link);

/*
 * Take the descriptor of the peer's slab @file, the caller's from now on; -ENOENT: it has not come.
 */
int wf_sidedoor_take_slab(struct wf_link *link, uint64_t file);

/* Send the peer our slab @file, which is @fd.  -EAGAIN, -ENOTCONN, -ENOMEM: it can't be sent. */
int wf_sidedoor_give_slab(struct wf_link *link, uint64_t file, int fd);

/* Tell the peer that we have dropped its slab @file.  -EAGAIN: the peer can't be told. */
int wf_sidedoor_drop_slab(struct wf_link *link, uint64_t file);

#endif
