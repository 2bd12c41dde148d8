/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the objects of the fake fabric: the network, and all that is
 * under way in it.  Each object has a file of its name; a thing is something
 * that will happen, and happening.c makes it happen in its time.
 */
#ifndef WF_FAKE_INTERNAL_H
#define WF_FAKE_INTERNAL_H

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "tests/fake/fabric.h"
#include "util/clock.h"
#include "util/list.h"

#define FAKE_NODES 1024
#define FAKE_OFFERS 16
#define FAKE_WAYS 512
#define FAKE_READ_MAX ((size_t)8 << 20) /* as verbs on some kernels: long reads must be cut */
#define FAKE_DATA_MAX 256

/* The manual demands @condition; without it a real library would crash or lose data. */
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s, line %d: not %s\n", __FILE__,     \
				__LINE__, #condition);                         \
			abort();                                               \
		}                                                              \
	} while (0)

struct offer {
	enum fi_ep_type type;
	char provider[64], domain[64];
	uint8_t bus, slot; /* place of the NIC; 0: not known */
	bool device;       /* the NIC reaches devices */
	char ip[64]; /* "": none */
};

struct fake_fabric {
	struct fid_fabric fid;
	unsigned node, users;
};

struct fake_domain {
	struct fid_domain fid;
	struct fake_fabric *fabric;
	unsigned number; /* number of the offer */
	bool device;     /* opened with FI_HMEM */
	unsigned users;
	struct wf_list mrs;
};

struct fake_eq {
	struct fid_eq fid;
	struct fake_fabric *fabric;
	struct wf_list entries;
	unsigned users;
};

struct eq_entry {
	struct wf_list node;
	uint32_t kind; /* 0: an error */
	struct fid *fid;
	struct fi_info *info;
	int err;
	size_t data_bytes;
	uint8_t data[FAKE_DATA_MAX];
};

struct fake_cq {
	struct fid_cq fid;
	struct fake_domain *domain;
	struct wf_list entries;
	size_t size, count; /* entries that were asked for, and that are there */
	unsigned users;
};

struct cq_entry {
	struct wf_list node;
	void *context;
	uint64_t flags;
	size_t len;
	int err;
};

struct fake_av {
	struct fid_av fid;
	struct fake_domain *domain;
	uint64_t *ids; /* ids of endpoints; 0: free */
	size_t count;
	unsigned users;
};

struct receive {
	struct wf_list node;
	void *bytes;
	size_t count;
	void *context;
};

/* The posted receives: shared by connections, or a shared endpoint's own. */
struct inbox {
	struct wf_list posted;
	size_t count;
};

struct fake_srx {
	struct fid_ep fid;
	struct fake_domain *domain;
	struct inbox inbox;
	unsigned users;
};

enum ep_state { IDLE, CONNECTING, UP, DOWN };

struct fake_ep {
	struct fid_ep fid;
	struct wf_list node; /* in net.eps */
	enum fi_ep_type type;
	struct fake_domain *domain;
	uint64_t id; /* address of the endpoint; never used again */
	struct fake_eq *eq;
	struct fake_cq *cq;
	struct fake_av *av;
	struct fake_srx *srx;
	struct inbox own;      /* inbox of a shared endpoint */
	struct wf_list waiting; /* messages that found no receive */
	bool enabled;
	enum ep_state state;
	uint64_t peer;       /* connected: the other end, while it is there */
	uint64_t last_due_ns; /* when its last message arrives: order is kept */
};

struct fake_pep {
	struct fid_pep fid;
	struct wf_list node; /* in net.peps */
	struct fake_fabric *fabric;
	struct fake_eq *eq;
	struct sockaddr_in address;
	bool listens;
};

struct fake_mr {
	struct fid_mr fid;
	struct wf_list node; /* in domain->mrs */
	struct wf_list every; /* in net.mrs */
	struct fake_domain *domain;
	const uint8_t *base;
	uint8_t *bytes; /* as the NIC reaches them: at base, or by a window to a device */
	size_t count;
	uint64_t access;
	bool enabled;
};

/* Address vectors hold ids of endpoints, 16 bytes long on the wire. */
struct id_address {
	char tag[8]; /* "fakefab" */
	uint64_t id;
};

/* A connection request between the two ends: what info->handle points to. */
struct handle {
	struct fid fid;
	uint64_t from;
};

enum thing_kind { SEND, ARRIVE, READ, TELL, REQUEST, ACCEPTED, REFUSED, HANGUP };

/* Something that will happen. */
#define FAKE_SPANS 4 /* pieces of memory of one read */

/* A piece of memory that is read, after the first. */
struct fake_span {
	void *bytes;
	size_t count;
	uint64_t remote;
	const uint8_t *source;
};

struct thing {
	struct wf_list node; /* in net.things, by time; or in net.stalled */
	enum thing_kind kind;
	uint64_t due_ns;
	uint64_t from, to; /* endpoints */
	unsigned from_node, to_node;
	unsigned domain; /* domain of the way; 0: any */
	uint64_t to_shared; /* SEND, READ on a shared endpoint: the address */
	struct sockaddr_in at;
	void *context;
	void *bytes;        /* the user's: borrowed till the thing happens */
	uint8_t *copy;
	size_t count;
	uint64_t remote, key;
	const uint8_t *source; /* READ: the memory that the key has led to */
	struct fake_span more[FAKE_SPANS - 1]; /* READ: what is read besides */
	size_t more_count;
	bool quiet;         /* injected: no completion */
	bool fails, lost, again;
	struct cq_entry told;
};

/* Ways from one node to another. */
struct fake_ways {
	struct { unsigned from, to; } all[2 * FAKE_WAYS];
	size_t count;
};

struct fake_net {
	struct wf_fake knobs;
	struct offer offers[FAKE_OFFERS];
	size_t offers_count;
	unsigned node;
	bool dead[FAKE_NODES], frozen[FAKE_NODES];
	struct fake_ways held, broken; /* each way of a cut is held */
	unsigned cut_domain; /* 0: none */
	uint64_t random, next_key, sent, arrived, dialled, overrun, queue_overruns;
	uint16_t next_port;
	size_t objects;
	struct wf_list things, stalled, eps, peps, mrs, windows;
	struct fake_ep **ep_by_id; /* NULL: closed */
	size_t ep_ids;
	size_t waiting; /* messages that found no receive */
	struct fake_ep *closed; /* the next endpoint takes its memory, as malloc likes to do */
};

extern struct fake_net fake_net;

/* Does @call fail, though nothing is wrong with it?  0, or the code it returns. */
static inline int fake_veto(const char *call)
{
	return fake_net.knobs.veto ? fake_net.knobs.veto(call) : 0;
}

/* happening.c: chance and time. */
uint64_t fake_draw(void);
bool fake_chance(unsigned of_1000);

/* Tell the test's counter of faults. */
void fake_tell(enum wf_fake_fault fault, unsigned node, unsigned other);

/* Is the way from @from to @to among @ways? */
bool fake_has_way(const struct fake_ways *ways, unsigned from, unsigned to);
void *fake_make(size_t bytes);

/* The time at which a message that leaves now arrives. */
uint64_t fake_later_ns(void);

/* Make a thing of @from, due at once by default; it happens after fake_plan. */
struct thing *fake_thing(enum thing_kind kind, struct fake_ep *from);
void fake_plan(struct thing *t);
void fake_forget(struct thing *t);

/* Let all things happen that are due. */
void fake_progress(void);
/* Let things that stalled try again. */
void fake_unstall(void);

struct fake_ep *fake_ep_by(uint64_t id);
unsigned fake_node_of(const struct fake_ep *ep);

/* queue.c: into queues; tell is as bad as the knobs say. */
void fake_cq_push(struct fake_cq *cq, struct cq_entry entry);
void fake_cq_tell(struct fake_ep *ep, struct cq_entry entry);
void fake_eq_push(struct fake_eq *eq, struct eq_entry entry);
int fake_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out,
		 void *context);
int fake_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out,
		 void *context);

/* address.c */
int fake_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out,
		 void *context);

/* connection.c: a connection ends here, and there later; reset does both. */
void fake_hang_up(struct fake_ep *ep, int err);
void fake_hang_up_later(struct fake_ep *ep);
void fake_reset(struct fake_ep *ep);
struct fake_pep *fake_pep_at(const struct sockaddr_in *at);
void fake_happen_request(struct thing *t);
void fake_happen_accepted(struct thing *t);
int fake_pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out,
		  void *context);
extern struct fi_ops_cm fake_ep_cm_ops;

/* message.c */
struct inbox *fake_inbox_of(struct fake_ep *ep);
struct receive *fake_take_receive(struct inbox *inbox);
void fake_happen_send(struct thing *t);
void fake_happen_arrive(struct thing *t);

/* May a post be made by @call?  0, or the code it returns. */
ssize_t fake_may_post(const struct fake_ep *ep, fi_addr_t to, const char *call);
/* The node at the other end of a post. */
unsigned fake_other(const struct fake_ep *ep, const struct fake_ep *to);
/* Is the way of a post broken? */
bool fake_is_broken(const struct fake_ep *ep, const struct fake_ep *to);
/* Is the connection of a post gone?  Then @context ends with an error, unless @quiet. */
bool fake_is_gone(struct fake_ep *ep, void *context, bool quiet);
/* The id of the endpoint that a post on a shared endpoint goes to. */
uint64_t fake_shared_id(const struct fake_ep *ep, fi_addr_t to);
extern struct fi_ops_msg fake_msg_ops, fake_srx_msg_ops;

/* memory.c */
void fake_happen_read(struct thing *t);
extern struct fi_ops_rma fake_rma_ops;
extern struct fi_ops_mr fake_mr_ops;
void fake_close_windows(void);

/* endpoint.c */
int fake_ep_getname(struct fid *fid, void *bytes, size_t *count);
int fake_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		 void *context);
int fake_srx_open(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **out,
		  void *context);

/* info.c: numbers begin with 1. */
unsigned fake_offer_number(const char *domain);
const struct offer *fake_offer_of(enum fi_ep_type type);
struct fi_info *fake_new_info(const struct offer *offer);

/* fabric.c: functions that no object of the fake has. */
int fake_no_control(struct fid *fid, int command, void *arg);
int fake_no_bind(struct fid *fid, struct fid *to, uint64_t flags);

#endif
