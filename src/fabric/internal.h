/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rail and the objects on it, as the files of fabric/ share them.  No other floor includes
 * this header.
 *
 * Threads: owner.
 */
#ifndef WF_FABRIC_INTERNAL_H
#define WF_FABRIC_INTERNAL_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <errno.h>

#include "fabric/ep.h"
#include "fabric/gate.h"
#include "fabric/half_met.h"
#include "fabric/mr.h"
#include "fabric/orphans.h"
#include "fabric/slots.h"
#include "fabric/wait.h"
#include "util/copy_thread.h"
#include "util/table.h"

_Static_assert(sizeof(void *) == sizeof(uint64_t), "a context carries a 64-bit handle");

struct wf_ep {
	struct wf_rail *rail;
	struct fid_ep *fid; /* on connected rails only */
	struct wf_cq cq;    /* own queue, if the row wants one per endpoint; else fid is NULL */
	fi_addr_t to;       /* on shared rails only */
	uint32_t life;      /* shared.life of the rail when @to was made */
	uint32_t pid;       /* process whose memory is read, where the rail itself reads */
	struct wf_gate gate; /* gate of the peer */
	void *owner;
	struct wf_list node;  /* in rail->eps or rail->closed */
	struct wf_list posts;
	uint32_t busy;
	bool up, dead;
	/* On shared rails: has the peer taken a message?  ASKED: the provider has only refused some. */
	enum { WF_EP_NEW, WF_EP_ASKED, WF_EP_MET } contact;
	struct wf_rail_notice connected, closed;
	uint8_t address[WF_ADDRESS_BYTES];
	size_t address_bytes;
};

struct wf_mr {
	struct wf_rail *rail;
	struct fid_mr *fid;
	uint8_t *base;
	size_t bytes;
	bool device; /* the memory is a device's */
	enum wf_counters_memory kind;
	struct wf_list node; /* in rail->mrs */
};

struct wf_rail_request {
	struct fi_info *info;
	struct wf_list node; /* in rail->conns.requests */
	struct wf_rail_notice notice;
	uint8_t data[WF_CONNECT_BYTES];
};

/* Address and ports that a rail binds to, for rows that go by IP. */
struct wf_rail_bind {
	char host[256];
	uint16_t port_first, port_last;
};

/* The endpoint of a shared rail, a new one with each opening; all zero on a connected rail. */
struct wf_rail_shared {
	struct fid_ep *ep;
	struct fid_av *av;
	uint32_t life;        /* times that @ep was opened */
	uint32_t peers_count; /* entries of the address vector */
	struct wf_half_met half_met;
	struct wf_gate gate;  /* gate of @ep, where the provider needs one */
	uint64_t shut_ns;     /* when @gate was found shut last; 0: it was open */
	uint64_t shut_for_ns; /* time for which looks in a row have found @gate shut */
};

/* Listening and connections of a connected rail. */
struct wf_rail_conns {
	uint32_t connecting;  /* endpoints that are not up yet */
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_ep *srx;
	struct wf_list requests;
	struct wf_orphans orphans;
};

/* Reads by process_vm_readv, of the process that the kernel names, in the provider's place. */
struct wf_rail_own {
	bool reads;               /* the rail reads this way */
	bool helpless;            /* no helper can be started */
	struct wf_copy_thread *helper; /* NULL: not started yet, or there can be none */
	void (*wake)(void *ctx);  /* called by the helper at the end of a read; NULL: no helper */
	void *wake_ctx;
};

/* The completion queues of a rail. */
struct wf_rail_queues {
	struct wf_list all;
	struct wf_list warm;  /* queues that each look reads */
	uint32_t warm_count;
	uint32_t cold_count;  /* queues of @all that are not warm */
	bool empty;           /* the last look has found nothing, and all of what comes since rings */
	struct wf_cq cq;      /* queue of all endpoints; fid is NULL where each has its own */
};

/* The address of a rail's endpoint, and the names in /dev/shm that go with it. */
struct wf_rail_self {
	uint8_t address[WF_ADDRESS_BYTES];
	size_t address_bytes;
	char files[WF_ADDRESS_BYTES + 1];
};

struct wf_rail {
	const struct wf_provider *row;
	struct wf_rail_caps caps;
	struct fi_info *candidate; /* the selected offer, without an address of ours */
	struct fi_info *info;      /* the info that was opened */
	struct wf_recorder *recorder; /* NULL: none */
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	/* The members that each poll reads lie together. */
	struct wf_rail_shared shared;
	struct wf_rail_own own;
	uint32_t busy;          /* posts of all endpoints */
	uint32_t polls;
	bool woken;             /* a descriptor of the rail was readable */
	struct wf_list notices;
	struct wf_list delayed; /* notices of the next poll */
	struct wf_list closed;
	struct wf_slots slots;
	struct wf_rail_queues queues;
	struct wf_wait_set wait;
	struct wf_rail_conns conns;

	struct wf_table posts;
	struct wf_list spare;   /* freelist of posts */
	struct wf_list eps, mrs;
	bool device_reached;    /* memory of a device was registered */
	bool (*make_room)(void *ctx); /* as of wf_rail_config */
	void *make_room_ctx;
	struct wf_rail_bind bind;
	struct wf_rail_self self;
	struct wf_counters *counters, unread; /* @unread is used where nobody counts */
};

/*
 * Make @call of the provider, with the arguments that follow, marked so that another thread can
 * name the call while it lasts: any call may never return.  Its value is the call's.
 */
#define WF_RAIL_CALL(rail, call, ...) \
	wf_rail_left(rail, (wf_rail_entered(rail, #call), call(__VA_ARGS__)))

/*
 * Clear errno: when tcp and net read the end of a connection they go by errno, which only failed
 * calls set; after an EAGAIN of before, they would keep the connection for ever.
 */
static inline void wf_rail_entered(const struct wf_rail *rail, const char *call)
{
	errno = 0;
	wf_recorder_enter(rail->recorder, call, rail->caps.provider);
}

static inline ssize_t wf_rail_left(const struct wf_rail *rail, ssize_t value)
{
	wf_recorder_leave(rail->recorder);
	return value;
}

/* select.c */
/* Version of the API to ask for; @device: for a rail that may register devices' memory. */
uint32_t wf_select_api(bool device);
struct fi_info *wf_select_hints(enum wf_provider_shape shape, bool device); /* NULL: no memory */

/* rail.c */
/* Find the @name in /dev/shm of the region at @address.  False: there is no such file. */
bool wf_rail_find_file(const uint8_t *address, size_t address_bytes,
		       char name[WF_ADDRESS_BYTES + 1]);

/* eq.c */
int wf_eq_read(struct wf_rail *rail); /* returns whether there was an event */
void wf_eq_drain(struct wf_rail *rail);

/* ep.c */
void wf_ep_die(struct wf_ep *ep, int status); /* tell CLOSED, once */

#endif
