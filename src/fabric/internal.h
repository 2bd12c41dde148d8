/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of fabric/ share: the rail and the things on it.  No other
 * floor includes this.
 *
 * Everything that waits for the owner is a notice in one list of the rail and
 * lies inside the object that it is about, so telling never needs memory.
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

#include "fabric/gate.h"
#include "fabric/orphans.h"
#include "fabric/rail.h"
#include "util/helper.h"
#include "util/list.h"
#include "util/table.h"


_Static_assert(sizeof(void *) == sizeof(uint64_t), "a context carries a 64-bit handle");

struct wf_rail_notice {
	struct wf_list node; /* in rail->notices, or in no list */
	struct wf_event event;
};

enum wf_post_kind { WF_POST_SLOT, WF_POST_SEND, WF_POST_READ };

/*
 * One operation that the provider holds.  It knows only @id, so a completion
 * that comes late or twice finds nothing.
 */
struct wf_post {
	enum wf_post_kind kind;
	uint64_t id;          /* 0: the provider does not hold it */
	struct wf_ep *ep;     /* NULL for a slot */
	bool held;            /* a slot: its message is the owner's until he gives it back */
	struct wf_list node;  /* in ep->posts, or rail->spare, or slots->refused */
	struct wf_rail_notice notice;
};

/* As many slots are made at once: 1 MiB of frames of 16 KiB. */
#define WF_SLOTS_STEP 64

/* Some receive slots: one piece of memory, cut in equal frames. */
struct wf_slot_block {
	uint8_t *memory;
	size_t bytes;
	struct wf_mr *mr;        /* NULL where local memory needs none */
	struct wf_post posts[WF_SLOTS_STEP];
};

/* The receive slots of a rail: more blocks are made as they are needed. */
struct wf_slots {
	uint32_t frame_bytes, count, most;
	struct wf_slot_block **blocks;
	struct wf_list refused;  /* to be posted again: the provider was full */
};

/* A completion queue: the rail's, or an endpoint's own. */
struct wf_cq {
	struct fid_cq *fid;
	struct wf_ep *ep;    /* whose own it is, or NULL */
	struct wf_list node; /* in rail->cqs */
	struct wf_list warm_node; /* in rail->warm, or in no list */
	uint32_t empty;      /* looks that found nothing since it last had news */
	uint32_t heard;      /* completions since the last sleep, until: */
	bool unwatched;      /* there are so many that nobody need say so */
	uint64_t id;         /* in the waitset */
	struct fi_wait_pollfd fds; /* its descriptors, as they were last asked for */
	size_t fds_size;
};

/* One descriptor for all queues of a rail. */
struct wf_waitset {
	int epoll;  /* -1: there is none */
	int eq_fd;  /* of the event queue, where @epoll has it; -1 */
	bool eq_rang; /* the event queue has had news since it was last read */
	bool edge;
	bool pollfd;           /* completion queues have several descriptors each */
	struct wf_table queues; /* struct wf_cq: in a forked child a descriptor may outlive its queue */
	struct fid **fids; /* of the queues, for fi_trywait */
	size_t count, size;
};

struct wf_ep {
	struct wf_rail *rail;
	struct fid_ep *fid; /* connected rails only */
	struct wf_cq cq;    /* where the row wants one each; fid NULL otherwise */
	fi_addr_t to;       /* shared rails only */
	uint32_t life;      /* of the rail's endpoint that @to belongs to */
	uint32_t pid;       /* whose memory reads go to, where the rail does them itself */
	struct wf_gate gate; /* the peer's */
	void *owner;
	struct wf_list node;  /* in rail->eps or rail->closed */
	struct wf_list posts;
	uint32_t busy;
	bool up, dead;
	struct wf_rail_notice connected, closed;
	uint8_t address[WF_ADDRESS_BYTES];
	size_t address_bytes;
};

struct wf_mr {
	struct wf_rail *rail;
	struct fid_mr *fid;
	uint8_t *base;
	size_t bytes;
	bool device; /* of one's memory */
	struct wf_list node; /* in rail->mrs */
};

struct wf_request {
	struct fi_info *info;
	struct wf_list node; /* in rail->requests */
	struct wf_rail_notice notice;
	uint8_t data[WF_CONNECT_BYTES];
};

struct wf_rail {
	const struct wf_provider *row;
	struct wf_caps caps;
	struct fi_info *candidate; /* what was selected, without an address of ours */
	struct fi_info *info;      /* what was opened */
	char host[256];
	uint16_t port_first, port_last;
	struct wf_counters *counters, unread; /* @unread: where nobody counts */
	struct wf_recorder *recorder; /* NULL: none */

	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;   /* connected: */
	struct fid_pep *pep;
	struct fid_ep *srx;
	struct fid_ep *ep;   /* shared: */
	struct fid_av *av;
	uint32_t life;       /* how often @ep was opened */
	bool own_reads;      /* by process_vm_readv, of the process that the kernel names */
	struct wf_gate gate; /* ours, where the provider needs one */
	uint64_t shut_ns;    /* since when it has been found shut; 0: it was open */
	struct wf_helper *helper; /* of own reads; NULL: not started yet, or it can't be */
	bool helpless;       /* it can't be */
	void (*wake)(void *ctx); /* what the helper does at the end of a read; NULL: none is wanted */
	void *wake_ctx;
	struct wf_cq cq;     /* fid NULL where endpoints have their own */
	struct wf_list cqs;
	struct wf_list warm; /* those of them that may have something to tell */
	uint32_t cold_count; /* the others */
	struct wf_waitset wait;

	struct wf_slots slots;
	struct wf_table posts;
	struct wf_list spare;   /* posts to be used again */
	struct wf_list notices;
	struct wf_list delayed; /* notices of the next poll */
	struct wf_list eps, closed, requests, mrs;
	uint32_t peers_count;   /* entries of the address vector */
	uint32_t busy;          /* posts of all its endpoints */
	uint32_t polls;
	bool woken;             /* a descriptor of it was readable */
	uint32_t connecting;    /* endpoints that are not up yet */
	struct wf_orphans orphans;
	uint64_t registered_bytes;
	bool device_reached; /* memory of one was registered */

	uint8_t address[WF_ADDRESS_BYTES];
	size_t address_bytes;
	char files[WF_ADDRESS_BYTES + 1];
};

/*
 * @call of the provider, with the arguments that follow, marked so that another thread can
 * name it while it lasts: any of them may never return.  Its value is the call's.
 */
#define WF_RAIL_CALL(rail, call, ...) \
	wf_rail_left(rail, (wf_rail_entered(rail, #call), call(__VA_ARGS__)))

/*
 * An end of a connection that tcp and net read they take for whatever errno says, which only
 * failed calls set; if that is EAGAIN, they keep the connection for ever.
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
/* @device: for a rail that may register devices' memory. */
uint32_t wf_select_api(bool device);
struct fi_info *wf_select_hints(enum wf_shape shape, bool device); /* NULL: no memory */

/* rail.c */
/* The @name in /dev/shm of the region at @address.  False: there is no such file. */
bool wf_rail_find_file(const uint8_t *address, size_t address_bytes,
		       char name[WF_ADDRESS_BYTES + 1]);

/* post.c */
int wf_post_take(struct wf_rail *rail, struct wf_ep *ep, enum wf_post_kind kind, void *cookie,
		 struct wf_post **post);
void wf_post_give(struct wf_rail *rail, struct wf_post *post);
void wf_post_tell(struct wf_rail *rail, struct wf_rail_notice *notice);
void wf_post_delay(struct wf_rail *rail, struct wf_rail_notice *notice); /* tell it after the next look at the provider */
void wf_post_late(struct wf_rail *rail); /* count one that nobody waits for */
void wf_post_drop_all(struct wf_ep *ep); /* nobody waits for what is posted on @ep any more */

/* slots.c */
int wf_slots_open(struct wf_rail *rail, uint32_t most, struct wf_error *e); /* with none yet */
void wf_slots_close(struct wf_rail *rail);
int wf_slots_grow(struct wf_rail *rail, uint32_t count, struct wf_error *e); /* to @count, or the most */
void wf_slots_again(struct wf_rail *rail); /* on a new endpoint: all that nobody holds */
struct wf_post *wf_slots_at(struct wf_rail *rail, uint32_t slot);
void wf_slots_post(struct wf_rail *rail, struct wf_post *slot);
void wf_slots_retry(struct wf_rail *rail);

/* cq.c */
int wf_cq_open(struct wf_rail *rail, struct wf_ep *ep, struct wf_cq *cq, struct wf_error *e);
void wf_cq_close(struct wf_rail *rail, struct wf_cq *cq);
int wf_cq_read(struct wf_rail *rail, struct wf_cq *cq); /* how many entries there were */
void wf_cq_drain(struct wf_rail *rail, struct wf_cq *cq);
void wf_cq_end(struct wf_rail *rail, struct wf_post *post, int status);
void wf_cq_warm(struct wf_rail *rail, struct wf_cq *cq); /* look at it from now on */
void wf_cq_cool(struct wf_rail *rail, struct wf_cq *cq); /* no more, until its descriptors say so, if they are known */

/* eq.c */
int wf_eq_read(struct wf_rail *rail); /* whether there was an event */
void wf_eq_drain(struct wf_rail *rail);

/* wait.c */
int wf_wait_open(struct wf_rail *rail, struct wf_error *e);
void wf_wait_close(struct wf_rail *rail);
int wf_wait_add_eq(struct wf_rail *rail, struct wf_error *e);
int wf_wait_add(struct wf_rail *rail, struct wf_cq *cq, struct wf_error *e);
void wf_wait_remove(struct wf_rail *rail, struct wf_cq *cq); /* before its endpoint is closed; harmless again */
void wf_wait_heard(struct wf_rail *rail, struct wf_cq *cq, int count);
void wf_wait_unheard(struct wf_rail *rail, struct wf_cq *cq);
int wf_wait_again(struct wf_rail *rail);
int wf_wait_try(struct wf_rail *rail);
bool wf_wait_eq_ready(const struct wf_rail *rail); /* is there news of the event queue now? */
void wf_wait_hear(struct wf_rail *rail); /* warm what its descriptors say has news */
void wf_wait_cool(struct wf_rail *rail); /* before a sleep, after looks that found nothing */

/* ep.c */
void wf_ep_die(struct wf_ep *ep, int status); /* CLOSED, once */

#endif
