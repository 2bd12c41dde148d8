/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Side doors: what two nodes of one host and user tell each other beside their door.
 *
 * A node that can share its host listens on a unix socket in /dev/shm, and its hello has
 * nothing of the host but the number that names it.  Who has dialled the peer's door
 * connects there, too.  The kernel says which user and process the other end is; that it
 * is the link's peer is proved by the tokens of both hellos, which are random for each
 * link.  Descriptors come with the packets.  So no process id, descriptor number or path of
 * a peer's own word is ever used.
 *
 * A stranger, who has not said yet which link is its own, has one of a few places for five
 * seconds, and costs one look at the table of links.
 *
 * Never blocks.  Threads: owner.
 */
#ifndef WF_SIDEDOOR_H
#define WF_SIDEDOOR_H

#include "fabric/rail.h"
#include "loop/timer.h"
#include "wire/side.h"

#define WF_SIDEDOOR_STRANGERS_MAX 64 /* as at the door */
#define WF_SIDEDOOR_STRANGER_NS (5 * WF_NS_PER_S)
/* How long a dialler's rails wait for the first packet; not tuned: it takes some 100 us. */
#define WF_SIDEDOOR_WAIT_NS WF_NS_PER_S

struct wf_borrower;
struct wf_host_peer;
struct wf_link;
struct wf_ringer;
struct wf_worker;
struct wf_sidedoor;  /* a worker's */
struct wf_neighbour; /* the process at the other end of a link, or a stranger */

/* What a side door tells of a link. */
struct wf_sidedoor_events {
	/* Same-host rails can be used with the peer from now on. */
	void (*opened)(struct wf_link *link);
	/* After wf_sidedoor_meet() has returned true: the peer has answered, or will not. */
	void (*settled)(struct wf_link *link, bool met);
};

/* The peer of a link as a neighbour on this host; until the peer dies. */
struct wf_sidedoor_link {
	struct wf_neighbour *neighbour; /* NULL: the peer is not met at the side door */
	bool beside;               /* there is somebody at its side door, so it is on this host */
	bool within_process;       /* it is a node of this very process, as the kernel says */
	bool gate_open;            /* it can be reached by a same-host rail */
	struct wf_host_peer *host; /* NULL: its process is not watched */
	struct wf_ringer *ringer;
	struct wf_borrower *borrower; /* NULL: nothing of the peer's was looked at yet */
};

/* Listens on return, as @number. */
int wf_sidedoor_open(struct wf_worker *w, uint64_t number, const struct wf_sidedoor_events *events,
		     struct wf_sidedoor **door, struct wf_error *e);

/* Peers that are met from now on get @fd, the page of our leases; borrowed. */
void wf_sidedoor_show_leases(struct wf_sidedoor *door, int fd);

void wf_sidedoor_close(struct wf_sidedoor *door); /* accepts NULL */

/* For epoll. */
int wf_sidedoor_fd(const struct wf_sidedoor *door);
void wf_sidedoor_poll(struct wf_sidedoor *door);

/* In a forked child: close all descriptors, touch nothing else. */
void wf_sidedoor_forked(struct wf_sidedoor *door);

/*
 * Meet the peer of @link, which we have dialled and whose hello has come.  What comes of
 * it stands in link->side.gate_open and link->gate_text; true: that is still to come, and
 * settled() follows.
 */
bool wf_sidedoor_meet(struct wf_link *link);

/* Take what has come of the peer of @link. */
void wf_sidedoor_hear(struct wf_link *link);

/* Our same-host rails are other ones now. */
void wf_sidedoor_tell(struct wf_link *link);

/* The peer is dead, and the borrower of what it lends has parted from it. */
void wf_sidedoor_forget(struct wf_link *link);

/* As wf_ep_open, for the peer's same-host rail @theirs.  -EHOSTUNREACH: its address has not come. */
int wf_sidedoor_ep_open(struct wf_link *link, struct wf_rail *rail, uint32_t theirs,
			struct wf_ep **ep, struct wf_error *e);

/* The page of the peer's leases: a descriptor, the caller's from now on; -ENOENT. */
int wf_sidedoor_take_leases(struct wf_link *link);

/* The peer's slab @file: a descriptor, the caller's from now on; -ENOENT: it has not come. */
int wf_sidedoor_take_slab(struct wf_link *link, uint64_t file);

/* Have the peer have our slab @file, which is @fd.  -EAGAIN, -ENOTCONN, -ENOMEM: it can't. */
int wf_sidedoor_give_slab(struct wf_link *link, uint64_t file, int fd);

/* We have the peer's slab @file no more.  -EAGAIN: it can't be told. */
int wf_sidedoor_drop_slab(struct wf_link *link, uint64_t file);

#endif
