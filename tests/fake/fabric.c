/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/fabric.h"

#include <arpa/inet.h>
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

#include "util/clock.h"
#include "util/list.h"

#define NODES 1024
#define OFFERS 16
#define READ_MAX ((size_t)8 << 20) /* as verbs on some kernels: long reads must be cut */
#define DATA_MAX 256

/* The manual forbids this; a real library would crash or lose data. */
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "fake fabric, line %d: not %s\n",      \
				__LINE__, #condition);                         \
			abort();                                               \
		}                                                              \
	} while (0)

struct offer {
	enum fi_ep_type type;
	char provider[64], domain[64];
	char ip[64]; /* "": none */
};

struct fake_fabric {
	struct fid_fabric fid;
	unsigned node, users;
};

struct fake_domain {
	struct fid_domain fid;
	struct fake_fabric *fabric;
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
	uint8_t data[DATA_MAX];
};

struct fake_cq {
	struct fid_cq fid;
	struct fake_domain *domain;
	struct wf_list entries;
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
	uint64_t *ids; /* of endpoints; 0: free */
	size_t count;
	unsigned users;
};

struct receive {
	struct wf_list node;
	void *bytes;
	size_t count;
	void *context;
};

/* Where receives are posted: shared by connections, or a shared endpoint's own. */
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
	uint64_t id; /* its address; never used again */
	struct fake_eq *eq;
	struct fake_cq *cq;
	struct fake_av *av;
	struct fake_srx *srx;
	struct inbox own;      /* shared endpoints */
	struct wf_list waiting; /* messages that found no receive */
	bool enabled;
	enum ep_state state;
	uint64_t peer;       /* connected: the other end, while it is there */
	uint64_t last_due_ns; /* what it sent last arrives then: order is kept */
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
	struct fake_domain *domain;
	const uint8_t *base;
	size_t count;
	uint64_t access;
	bool enabled;
};

/* A connection request between the two ends: what info->handle points to. */
struct handle {
	struct fid fid;
	uint64_t from;
};

enum thing_kind { SEND, ARRIVE, READ, TELL, REQUEST, ACCEPTED, REFUSED, HANGUP };

/* Something that will happen. */
struct thing {
	struct wf_list node; /* in net.things, by time; or in net.stalled */
	enum thing_kind kind;
	uint64_t due_ns;
	uint64_t from, to; /* endpoints */
	unsigned from_node, to_node;
	uint64_t to_shared; /* SEND, READ on a shared endpoint: the address */
	struct sockaddr_in at;
	void *context;
	void *bytes;        /* the user's: borrowed till it happens */
	uint8_t *copy;
	size_t count;
	uint64_t remote, key;
	bool quiet;         /* injected: no completion */
	bool fails, lost;
	struct cq_entry told;
};

static struct {
	struct wf_fake knobs;
	struct offer offers[OFFERS];
	size_t offers_count;
	unsigned node;
	bool dead[NODES], frozen[NODES];
	struct { unsigned a, b; } cuts[64];
	size_t cuts_count;
	uint64_t random, next_id, sent, arrived, overrun;
	uint16_t next_port;
	size_t objects;
	struct wf_list things, stalled, eps, peps;
	struct fake_ep *closed; /* its place is taken by the next, as malloc likes to do */
} net;

/* Chance and time. */

static uint64_t draw(void)
{
	uint64_t z = net.random += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static bool chance(unsigned of_1000)
{
	return of_1000 && draw() % 1000 < of_1000;
}

static uint64_t later(void)
{
	uint64_t span = net.knobs.delay_max_ns - net.knobs.delay_min_ns;

	return wf_clock_now() + net.knobs.delay_min_ns + (span ? draw() % (span + 1) : 0);
}

static void *make(size_t bytes)
{
	void *object = calloc(1, bytes);

	MUST(object);
	return object;
}

static void plan(struct thing *t)
{
	struct wf_list *at = net.things.prev;

	/* Equal times keep the order in which they were planned. */
	while (at != &net.things && WF_CONTAINER(at, struct thing, node)->due_ns > t->due_ns)
		at = at->prev;
	wf_list_insert_before(at->next, &t->node);
}

static void forget(struct thing *t)
{
	wf_list_remove(&t->node);
	free(t->copy);
	free(t);
}

static struct fake_ep *ep_by(uint64_t id)
{
	WF_LIST_EACH(node, &net.eps) {
		struct fake_ep *ep = WF_CONTAINER(node, struct fake_ep, node);

		if (ep->id == id)
			return ep;
	}
	return NULL;
}

static unsigned node_of(const struct fake_ep *ep)
{
	return ep->domain->fabric->node;
}

static struct thing *make_thing(enum thing_kind kind, struct fake_ep *from)
{
	struct thing *t = make(sizeof(*t));

	t->kind = kind;
	t->due_ns = later();
	t->from = from->id;
	t->from_node = node_of(from);
	t->to = from->peer;
	t->to_node = t->from_node;
	return t;
}

/* Queues. */

static void push(struct fake_cq *cq, struct cq_entry entry)
{
	struct cq_entry *e = make(sizeof(*e));

	*e = entry;
	wf_list_append(&cq->entries, &e->node);
}

/* Tell @ep's queue, as badly as the knobs say. */
static void tell(struct fake_ep *ep, struct cq_entry entry)
{
	struct thing *t;

	push(ep->cq, entry);
	if (chance(net.knobs.nobody))
		push(ep->cq, (struct cq_entry){ .err = FI_ECANCELED });
	if (chance(net.knobs.twice)) {
		t = make_thing(TELL, ep);
		t->told = entry;
		plan(t);
	}
}

static void push_eq(struct fake_eq *eq, struct eq_entry entry)
{
	struct eq_entry *e = make(sizeof(*e));

	*e = entry;
	wf_list_append(&eq->entries, &e->node);
}

static struct inbox *inbox_of(struct fake_ep *ep)
{
	return ep->srx ? &ep->srx->inbox : &ep->own;
}

static struct receive *take_receive(struct inbox *inbox)
{
	struct wf_list *node = wf_list_pop(&inbox->posted);

	if (!node)
		return NULL;
	inbox->count--;
	return WF_CONTAINER(node, struct receive, node);
}

/* @ep's connection is no more: what it has under way fails, and it says so. */
static void hang_up(struct fake_ep *ep, int err)
{
	struct receive *half;
	bool was_up = ep->state == UP;

	if (ep->type != FI_EP_MSG || ep->state == DOWN)
		return;
	ep->state = DOWN;
	ep->peer = 0;
	WF_LIST_EACH(node, &net.things) {
		struct thing *t = WF_CONTAINER(node, struct thing, node);

		if (t->from != ep->id || (t->kind != SEND && t->kind != READ))
			continue;
		if (!t->quiet)
			tell(ep, (struct cq_entry){ .context = t->context, .err = FI_ECANCELED });
		forget(t);
	}
	WF_LIST_EACH(node, &net.stalled) {
		struct thing *t = WF_CONTAINER(node, struct thing, node);

		if (t->from != ep->id || t->kind != READ)
			continue;
		tell(ep, (struct cq_entry){ .context = t->context, .err = FI_ECANCELED });
		forget(t);
	}
	/* A message that was coming in has spoilt its receive. */
	half = was_up && draw() % 2 ? take_receive(inbox_of(ep)) : NULL;
	if (half) {
		push(ep->cq, (struct cq_entry){ .context = half->context,
						.flags = FI_MSG | FI_RECV, .err = ENOTCONN });
		free(half);
	}
	if (err)
		push_eq(ep->eq, (struct eq_entry){ .fid = &ep->fid.fid, .err = err });
	else
		push_eq(ep->eq, (struct eq_entry){ .kind = FI_SHUTDOWN, .fid = &ep->fid.fid });
}

/* The other end hears of it after what was sent before. */
static void plan_hang_up(struct fake_ep *ep)
{
	struct thing *t;

	if (ep->type != FI_EP_MSG || !ep->peer)
		return;
	t = make_thing(HANGUP, ep);
	t->due_ns = WF_MAX(t->due_ns, ep->last_due_ns);
	plan(t);
}

static void reset(struct fake_ep *ep)
{
	plan_hang_up(ep);
	hang_up(ep, 0);
}

/* Messages meet receives. */

static void meet(struct fake_ep *ep)
{
	while (!wf_list_empty(&ep->waiting) && ep->enabled) {
		struct thing *t = WF_CONTAINER(ep->waiting.next, struct thing, node);
		struct receive *r = take_receive(inbox_of(ep));

		if (!r)
			return;
		if (t->count > r->count) {
			tell(ep, (struct cq_entry){ .context = r->context,
						    .flags = FI_MSG | FI_RECV, .err = FI_ETRUNC });
			reset(ep);
		} else {
			memcpy(r->bytes, t->copy, t->count);
			net.arrived++;
			tell(ep, (struct cq_entry){ .context = r->context,
						    .flags = FI_MSG | FI_RECV, .len = t->count });
		}
		free(r);
		forget(t);
	}
}

static void happen_send(struct thing *t)
{
	struct fake_ep *ep = ep_by(t->from), *to;

	if (t->fails) {
		if (!t->quiet)
			tell(ep, (struct cq_entry){ .context = t->context, .err = EIO });
		forget(t);
		reset(ep);
		return;
	}
	/* Only now are the bytes taken: whoever reused them too early has spoilt them. */
	if (!t->copy) {
		t->copy = make(t->count + 1);
		memcpy(t->copy, t->bytes, t->count);
	}
	if (!t->quiet)
		tell(ep, (struct cq_entry){ .context = t->context, .flags = FI_MSG | FI_SEND });
	to = ep_by(t->to_shared ? t->to_shared : ep->peer);
	if (!to || t->lost) {
		forget(t);
		return;
	}
	t->kind = ARRIVE;
	t->to = to->id;
	t->to_node = node_of(to);
	t->due_ns = later();
	if (ep->type == FI_EP_MSG || !net.knobs.reorder)
		t->due_ns = WF_MAX(t->due_ns, ep->last_due_ns);
	ep->last_due_ns = t->due_ns;
	plan(t);
}

static void happen_arrive(struct thing *t)
{
	struct fake_ep *to = ep_by(t->to);

	if (!to || net.dead[t->to_node] || to->state == DOWN) {
		forget(t);
		return;
	}
	wf_list_append(&to->waiting, &t->node);
	meet(to);
	if (!wf_list_empty(&to->waiting))
		net.overrun++;
}

static const struct fake_mr *mr_by(const struct fake_domain *domain, uint64_t key)
{
	WF_LIST_EACH(node, &domain->mrs) {
		const struct fake_mr *mr = WF_CONTAINER(node, struct fake_mr, node);

		if (mr->fid.key == key)
			return mr;
	}
	return NULL;
}

/* Where @t reads, or NULL: no such key, right or range. */
static const uint8_t *source_of(const struct thing *t, const struct fake_ep *to)
{
	const struct fake_mr *mr = mr_by(to->domain, t->key);
	uint64_t offset;

	if (!mr || !(mr->access & FI_REMOTE_READ))
		return NULL;
	offset = net.knobs.mr_mode & FI_MR_VIRT_ADDR ? t->remote - (uint64_t)(uintptr_t)mr->base :
						       t->remote;
	if (offset > mr->count || t->count > mr->count - offset)
		return NULL;
	return mr->base + offset;
}

static void happen_read(struct thing *t)
{
	struct fake_ep *ep = ep_by(t->from);
	struct fake_ep *to = ep_by(t->to_shared ? t->to_shared : ep->peer);
	const uint8_t *source = to && !t->fails ? source_of(t, to) : NULL;

	if (ep->type == FI_EP_RDM && to && net.dead[node_of(to)]) {
		/* As shm does: the read never ends, and an error comes that names nobody. */
		push(ep->cq, (struct cq_entry){ .err = -5 });
		forget(t);
		return;
	}
	if (source) {
		memcpy(t->bytes, source, t->count);
		tell(ep, (struct cq_entry){ .context = t->context, .flags = FI_RMA | FI_READ });
	} else {
		tell(ep, (struct cq_entry){ .context = t->context, .err = EIO });
	}
	forget(t);
	if (!source)
		reset(ep);
}

static struct fake_pep *pep_at(const struct sockaddr_in *at)
{
	WF_LIST_EACH(node, &net.peps) {
		struct fake_pep *pep = WF_CONTAINER(node, struct fake_pep, node);

		if (pep->address.sin_port == at->sin_port &&
		    pep->address.sin_addr.s_addr == at->sin_addr.s_addr)
			return pep;
	}
	return NULL;
}

static struct fi_info *new_info(const struct offer *offer);

static const struct offer *offer_of(enum fi_ep_type type)
{
	size_t i;

	for (i = 0; i < net.offers_count; i++)
		if (net.offers[i].type == type)
			return &net.offers[i];
	return NULL;
}

static void happen_request(struct thing *t)
{
	struct fake_pep *pep = pep_at(&t->at);
	struct fake_ep *ep = ep_by(t->from);
	struct eq_entry entry = { .kind = FI_CONNREQ, .data_bytes = t->count };
	struct handle *handle;

	if (!pep || !pep->listens || net.dead[pep->fabric->node]) {
		hang_up(ep, FI_ECONNREFUSED);
	} else {
		handle = make(sizeof(*handle));
		handle->from = ep->id;
		entry.fid = &pep->fid.fid;
		entry.info = new_info(offer_of(FI_EP_MSG));
		entry.info->handle = &handle->fid;
		memcpy(entry.data, t->copy, t->count);
		push_eq(pep->eq, entry);
	}
	forget(t);
}

static void happen_accepted(struct thing *t)
{
	struct fake_ep *acceptor = ep_by(t->from), *dialler = ep_by(t->to);

	if (!dialler || dialler->state != CONNECTING || net.dead[node_of(dialler)]) {
		hang_up(acceptor, 0);
	} else {
		acceptor->state = dialler->state = UP;
		acceptor->peer = dialler->id;
		dialler->peer = acceptor->id;
		push_eq(acceptor->eq, (struct eq_entry){ .kind = FI_CONNECTED,
							 .fid = &acceptor->fid.fid });
		push_eq(dialler->eq, (struct eq_entry){ .kind = FI_CONNECTED,
							.fid = &dialler->fid.fid });
	}
	forget(t);
}

static void happen(struct thing *t)
{
	struct fake_ep *to = ep_by(t->to);

	wf_list_remove(&t->node);
	switch (t->kind) {
	case SEND:
		happen_send(t);
		return;
	case ARRIVE:
		happen_arrive(t);
		return;
	case READ:
		happen_read(t);
		return;
	case TELL:
		push(ep_by(t->from)->cq, t->told);
		break;
	case REQUEST:
		happen_request(t);
		return;
	case ACCEPTED:
		happen_accepted(t);
		return;
	case REFUSED:
		if (to)
			hang_up(to, FI_ECONNREFUSED);
		break;
	case HANGUP:
		if (to)
			hang_up(to, 0);
		break;
	}
	forget(t);
}

static bool is_cut(unsigned a, unsigned b)
{
	size_t i;

	for (i = 0; i < net.cuts_count; i++)
		if ((net.cuts[i].a == a && net.cuts[i].b == b) ||
		    (net.cuts[i].a == b && net.cuts[i].b == a))
			return true;
	return false;
}

/* Must @t wait until a node thaws or a cut heals? */
static bool is_stalled(const struct thing *t)
{
	const struct fake_ep *to, *from;
	const struct fake_pep *pep;
	unsigned node = t->to_node;

	if (t->kind == READ || t->kind == SEND) {
		from = ep_by(t->from);
		to = ep_by(t->to_shared ? t->to_shared : from ? from->peer : 0);
		node = to ? node_of(to) : t->from_node;
	} else if (t->kind == REQUEST) {
		pep = pep_at(&t->at);
		node = pep ? pep->fabric->node : t->from_node;
	}
	if (t->kind == READ && net.frozen[node] && !net.knobs.reads_alone)
		return true;
	return t->kind != SEND && t->kind != TELL && is_cut(t->from_node, node);
}

static void progress(void)
{
	uint64_t now = wf_clock_now();

	while (!wf_list_empty(&net.things)) {
		struct thing *t = WF_CONTAINER(net.things.next, struct thing, node);

		if (t->due_ns > now)
			return;
		if (is_stalled(t)) {
			wf_list_remove(&t->node);
			wf_list_append(&net.stalled, &t->node);
		} else {
			happen(t);
		}
	}
}

static void unstall(void)
{
	struct wf_list was;

	wf_list_init(&was);
	wf_list_splice(&was, &net.stalled);
	WF_LIST_EACH(node, &was) {
		struct thing *t = WF_CONTAINER(node, struct thing, node);

		wf_list_remove(node);
		if (t->kind == READ && t->due_ns == UINT64_MAX) { /* stuck for good */
			wf_list_append(&net.stalled, node);
			continue;
		}
		t->due_ns = wf_clock_now();
		plan(t);
	}
}

/* Completion queues. */

/* The entry that comes out next; a connection's receives keep their order. */
static struct cq_entry *next_entry(struct fake_cq *cq)
{
	size_t count = 0, pick;

	if (wf_list_empty(&cq->entries))
		return NULL;
	if (!net.knobs.shuffle)
		return WF_CONTAINER(cq->entries.next, struct cq_entry, node);
	WF_LIST_EACH(node, &cq->entries)
		count++;
	pick = draw() % count;
	WF_LIST_EACH(node, &cq->entries) {
		struct cq_entry *e = WF_CONTAINER(node, struct cq_entry, node);

		if (!pick--) {
			if (!(e->flags & FI_RECV))
				return e;
			break;
		}
	}
	WF_LIST_EACH(node, &cq->entries) {
		struct cq_entry *e = WF_CONTAINER(node, struct cq_entry, node);

		if (e->flags & FI_RECV)
			return e;
	}
	return WF_CONTAINER(cq->entries.next, struct cq_entry, node);
}

static ssize_t cq_read(struct fid_cq *fid, void *buffer, size_t count)
{
	struct fake_cq *cq = WF_CONTAINER(fid, struct fake_cq, fid);
	struct fi_cq_msg_entry *out = buffer;
	size_t n;

	MUST(!net.frozen[cq->domain->fabric->node]);
	progress();
	for (n = 0; n < count; n++) {
		struct cq_entry *e = next_entry(cq);

		if (!e)
			break;
		wf_list_remove(&e->node);
		if (e->err) { /* it waits at the head for fi_cq_readerr */
			wf_list_prepend(&cq->entries, &e->node);
			return n ? (ssize_t)n : -FI_EAVAIL;
		}
		out[n] = (struct fi_cq_msg_entry){ e->context, e->flags, e->len };
		free(e);
	}
	return n ? (ssize_t)n : -FI_EAGAIN;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out, uint64_t flags)
{
	struct fake_cq *cq = WF_CONTAINER(fid, struct fake_cq, fid);
	struct cq_entry *e = WF_CONTAINER(cq->entries.next, struct cq_entry, node);

	(void)flags;
	if (wf_list_empty(&cq->entries) || !e->err)
		return -FI_EAGAIN;
	*out = (struct fi_cq_err_entry){ .op_context = e->context, .flags = e->flags, .err = e->err };
	wf_list_remove(&e->node);
	free(e);
	return 1;
}

static int cq_close(struct fid *fid)
{
	struct fake_cq *cq = WF_CONTAINER(fid, struct fake_cq, fid.fid);
	struct wf_list *node;

	MUST(!cq->users); /* libfabric 1.17 crashes later */
	while ((node = wf_list_pop(&cq->entries)))
		free(WF_CONTAINER(node, struct cq_entry, node));
	cq->domain->users--;
	net.objects--;
	free(cq);
	return 0;
}

static int no_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS; /* so rails have no descriptor here and are polled */
}

static int no_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid, (void)to, (void)flags;
	return -FI_ENOSYS;
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops), .close = cq_close, .bind = no_bind, .control = no_control,
};
static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq), .read = cq_read, .readerr = cq_readerr,
};

static int cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out,
		void *context)
{
	struct fake_cq *cq = make(sizeof(*cq));

	MUST(attr->format == FI_CQ_FORMAT_MSG);
	cq->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	cq->domain->users++;
	cq->fid = (struct fid_cq){ { FI_CLASS_CQ, context, &cq_fid_ops }, &cq_ops };
	wf_list_init(&cq->entries);
	net.objects++;
	*out = &cq->fid;
	return 0;
}

/* Event queues. */

static ssize_t eq_read(struct fid_eq *fid, uint32_t *kind, void *buffer, size_t bytes,
			uint64_t flags)
{
	struct fake_eq *eq = WF_CONTAINER(fid, struct fake_eq, fid);
	struct eq_entry *e = WF_CONTAINER(eq->entries.next, struct eq_entry, node);
	struct fi_eq_cm_entry *out = buffer;
	ssize_t n;

	(void)flags;
	MUST(!net.frozen[eq->fabric->node]);
	progress();
	if (wf_list_empty(&eq->entries))
		return -FI_EAGAIN;
	e = WF_CONTAINER(eq->entries.next, struct eq_entry, node);
	if (!e->kind)
		return -FI_EAVAIL;
	MUST(bytes >= sizeof(*out) + e->data_bytes);
	*kind = e->kind;
	out->fid = e->fid;
	out->info = e->info;
	memcpy(out->data, e->data, e->data_bytes);
	n = (ssize_t)(sizeof(*out) + e->data_bytes);
	wf_list_remove(&e->node);
	free(e);
	return n;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *out, uint64_t flags)
{
	struct fake_eq *eq = WF_CONTAINER(fid, struct fake_eq, fid);
	struct eq_entry *e = WF_CONTAINER(eq->entries.next, struct eq_entry, node);

	(void)flags;
	if (wf_list_empty(&eq->entries) || e->kind)
		return -FI_EAGAIN;
	*out = (struct fi_eq_err_entry){ .fid = e->fid, .err = e->err };
	wf_list_remove(&e->node);
	free(e);
	return sizeof(*out);
}

static int eq_close(struct fid *fid)
{
	struct fake_eq *eq = WF_CONTAINER(fid, struct fake_eq, fid.fid);
	struct wf_list *node;

	MUST(!eq->users);
	while ((node = wf_list_pop(&eq->entries))) {
		struct eq_entry *e = WF_CONTAINER(node, struct eq_entry, node);

		if (e->info) {
			free(e->info->handle);
			fi_freeinfo(e->info);
		}
		free(e);
	}
	eq->fabric->users--;
	net.objects--;
	free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops), .close = eq_close, .bind = no_bind, .control = no_control,
};
static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq), .read = eq_read, .readerr = eq_readerr,
};

static int eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out,
		void *context)
{
	struct fake_eq *eq = make(sizeof(*eq));

	(void)attr;
	eq->fabric = WF_CONTAINER(fid, struct fake_fabric, fid);
	eq->fabric->users++;
	eq->fid = (struct fid_eq){ { FI_CLASS_EQ, context, &eq_fid_ops }, &eq_ops };
	wf_list_init(&eq->entries);
	net.objects++;
	*out = &eq->fid;
	return 0;
}

/* Address vectors hold ids of endpoints, 16 bytes long on the wire. */

struct id_address {
	char tag[8];
	uint64_t id;
};

static int av_insert(struct fid_av *fid, const void *bytes, size_t count, fi_addr_t *out,
		     uint64_t flags, void *context)
{
	struct fake_av *av = WF_CONTAINER(fid, struct fake_av, fid);
	struct id_address address;
	size_t i;

	(void)flags, (void)context;
	MUST(count == 1);
	memcpy(&address, bytes, sizeof(address));
	if (memcmp(address.tag, "fakefab", 8))
		return 0;
	for (i = 0; i < av->count && av->ids[i]; i++)
		;
	if (i == av->count) {
		av->ids = realloc(av->ids, (av->count + 1) * sizeof(*av->ids));
		MUST(av->ids);
		av->count++;
	}
	av->ids[i] = address.id;
	*out = i;
	return 1;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addrs, size_t count, uint64_t flags)
{
	struct fake_av *av = WF_CONTAINER(fid, struct fake_av, fid);

	(void)flags;
	MUST(count == 1 && addrs[0] < av->count && av->ids[addrs[0]]);
	av->ids[addrs[0]] = 0;
	return 0;
}

static int av_close(struct fid *fid)
{
	struct fake_av *av = WF_CONTAINER(fid, struct fake_av, fid.fid);

	MUST(!av->users);
	av->domain->users--;
	net.objects--;
	free(av->ids);
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops), .close = av_close, .bind = no_bind, .control = no_control,
};
static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av), .insert = av_insert, .remove = av_remove,
};

static int av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out,
		void *context)
{
	struct fake_av *av = make(sizeof(*av));

	MUST(attr->type == FI_AV_TABLE);
	av->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	av->domain->users++;
	av->fid = (struct fid_av){ { FI_CLASS_AV, context, &av_fid_ops }, &av_ops };
	net.objects++;
	*out = &av->fid;
	return 0;
}

/* Messages and reads. */

static ssize_t may_post(const struct fake_ep *ep)
{
	MUST(ep->enabled);
	MUST(ep->type == FI_EP_RDM || ep->state == UP || ep->state == DOWN);
	return chance(net.knobs.eagain) ? -FI_EAGAIN : 0;
}

/* On a connection that is gone a post is taken, and fails. */
static bool is_gone(struct fake_ep *ep, void *context, bool quiet)
{
	if (ep->type == FI_EP_RDM || ep->state == UP)
		return false;
	if (!quiet)
		tell(ep, (struct cq_entry){ .context = context, .err = ENOTCONN });
	return true;
}

static uint64_t shared_id(const struct fake_ep *ep, fi_addr_t to)
{
	if (ep->type == FI_EP_MSG)
		return 0;
	MUST(to < ep->av->count && ep->av->ids[to]);
	return ep->av->ids[to];
}

static ssize_t post_send(struct fake_ep *ep, const void *bytes, size_t count, fi_addr_t to,
			 void *context, bool quiet)
{
	ssize_t err = may_post(ep);
	struct thing *t;

	if (err || is_gone(ep, context, quiet))
		return err;
	t = make_thing(SEND, ep);
	t->due_ns = wf_clock_now() + net.knobs.send_ns; /* the delay is of the way */
	t->to_shared = shared_id(ep, to);
	t->bytes = (void *)bytes;
	t->count = count;
	t->context = context;
	t->quiet = quiet;
	t->fails = chance(net.knobs.fail);
	t->lost = chance(net.knobs.lose);
	if (quiet) {
		t->copy = make(count + 1);
		memcpy(t->copy, bytes, count);
	}
	net.sent++;
	plan(t);
	return 0;
}

static ssize_t msg_send(struct fid_ep *fid, const void *bytes, size_t count, void *desc,
			fi_addr_t to, void *context)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);

	MUST(desc || !(net.knobs.mr_mode & FI_MR_LOCAL));
	return post_send(ep, bytes, count, to, context, false);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *bytes, size_t count, fi_addr_t to)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);

	MUST(count <= net.knobs.inject_bytes); /* some providers lose it in silence */
	return post_send(ep, bytes, count, to, NULL, true);
}

static ssize_t post_receive(struct inbox *inbox, void *bytes, size_t count, void *desc,
			void *context)
{
	struct receive *r;

	MUST(desc || !(net.knobs.mr_mode & FI_MR_LOCAL));
	if (chance(net.knobs.eagain))
		return -FI_EAGAIN;
	if (inbox->count >= net.knobs.slots_max)
		return -FI_ENOMEM;
	r = make(sizeof(*r));
	*r = (struct receive){ .bytes = bytes, .count = count, .context = context };
	wf_list_append(&inbox->posted, &r->node);
	inbox->count++;
	return 0;
}

static ssize_t msg_recv(struct fid_ep *fid, void *bytes, size_t count, void *desc, fi_addr_t from,
			void *context)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);
	ssize_t err;

	MUST(from == FI_ADDR_UNSPEC && !ep->srx);
	err = post_receive(&ep->own, bytes, count, desc, context);
	if (!err)
		meet(ep);
	return err;
}

static ssize_t srx_recv(struct fid_ep *fid, void *bytes, size_t count, void *desc, fi_addr_t from,
			void *context)
{
	struct fake_srx *srx = WF_CONTAINER(fid, struct fake_srx, fid);
	ssize_t err;

	MUST(from == FI_ADDR_UNSPEC);
	err = post_receive(&srx->inbox, bytes, count, desc, context);
	if (err)
		return err;
	WF_LIST_EACH(node, &net.eps) {
		struct fake_ep *ep = WF_CONTAINER(node, struct fake_ep, node);

		if (ep->srx == srx)
			meet(ep);
	}
	return 0;
}

static ssize_t rma_read(struct fid_ep *fid, void *bytes, size_t count, void *desc, fi_addr_t to,
			uint64_t address, uint64_t key, void *context)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);
	ssize_t err = may_post(ep);
	struct thing *t;

	MUST(desc || !(net.knobs.mr_mode & FI_MR_LOCAL));
	MUST(count <= READ_MAX);
	if (err || is_gone(ep, context, false))
		return err;
	t = make_thing(READ, ep);
	t->due_ns = later() + net.knobs.delay_min_ns; /* there and back */
	t->to_shared = shared_id(ep, to);
	t->bytes = bytes;
	t->count = count;
	t->remote = address;
	t->key = key;
	t->context = context;
	t->fails = chance(net.knobs.fail);
	if (chance(net.knobs.stick)) {
		t->due_ns = UINT64_MAX;
		wf_list_append(&net.stalled, &t->node);
	} else {
		plan(t);
	}
	return 0;
}

static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg), .recv = msg_recv, .send = msg_send, .inject = msg_inject,
};
static struct fi_ops_msg srx_msg_ops = { .size = sizeof(struct fi_ops_msg), .recv = srx_recv };
static struct fi_ops_rma rma_ops = { .size = sizeof(struct fi_ops_rma), .read = rma_read };

/* Endpoints. */

static int ep_getname(struct fid *fid, void *bytes, size_t *count)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid.fid);
	struct id_address address = { "fakefab", ep->id };

	MUST(*count >= sizeof(address));
	memcpy(bytes, &address, sizeof(address));
	*count = sizeof(address);
	return 0;
}

static int ep_connect(struct fid_ep *fid, const void *address, const void *data, size_t count)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);
	struct thing *t;

	MUST(ep->enabled && ep->state == IDLE && count <= DATA_MAX);
	ep->state = CONNECTING;
	t = make_thing(REQUEST, ep);
	memcpy(&t->at, address, sizeof(t->at));
	t->copy = make(count + 1);
	t->count = count;
	if (count)
		memcpy(t->copy, data, count);
	plan(t);
	return 0;
}

static int ep_accept(struct fid_ep *fid, const void *data, size_t count)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);
	struct fake_ep *dialler;
	struct thing *t;

	(void)data, (void)count;
	MUST(ep->enabled && ep->state == CONNECTING && ep->peer);
	t = make_thing(ACCEPTED, ep);
	dialler = ep_by(ep->peer);
	t->to_node = dialler ? node_of(dialler) : t->from_node;
	plan(t);
	return 0;
}

static struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm), .getname = ep_getname,
	.connect = ep_connect, .accept = ep_accept,
};

static int ep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid.fid);

	(void)flags;
	MUST(!ep->enabled);
	if (to->fclass == FI_CLASS_CQ) {
		ep->cq = WF_CONTAINER(to, struct fake_cq, fid.fid);
		ep->cq->users++;
	} else if (to->fclass == FI_CLASS_EQ) {
		ep->eq = WF_CONTAINER(to, struct fake_eq, fid.fid);
		ep->eq->users++;
	} else if (to->fclass == FI_CLASS_AV) {
		ep->av = WF_CONTAINER(to, struct fake_av, fid.fid);
		ep->av->users++;
	} else if (to->fclass == FI_CLASS_SRX_CTX) {
		ep->srx = WF_CONTAINER(to, struct fake_srx, fid.fid);
		ep->srx->users++;
	}
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid.fid);

	(void)arg;
	MUST(command == FI_ENABLE && ep->cq && (ep->type == FI_EP_MSG ? ep->eq && ep->srx : !!ep->av));
	ep->enabled = true;
	return 0;
}

/* What had been posted ends with an error in a queue that may outlive the endpoint. */
static void drop_things(struct fake_ep *ep, struct wf_list *things)
{
	WF_LIST_EACH(node, things) {
		struct thing *t = WF_CONTAINER(node, struct thing, node);

		if (t->from == ep->id && (t->kind == SEND || t->kind == READ)) {
			if (!t->quiet)
				push(ep->cq, (struct cq_entry){ .context = t->context,
								.err = FI_ECANCELED });
			forget(t);
		} else if (t->kind == TELL && t->from == ep->id) {
			push(ep->cq, t->told);
			forget(t);
		} else if ((t->kind == REQUEST || t->kind == ACCEPTED) && t->from == ep->id) {
			forget(t);
		}
	}
}

static int ep_close(struct fid *fid)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid.fid);
	struct wf_list *node;
	struct receive *r;

	plan_hang_up(ep);
	if (ep->enabled) {
		drop_things(ep, &net.things);
		drop_things(ep, &net.stalled);
	}
	while ((node = wf_list_first(&ep->waiting)))
		forget(WF_CONTAINER(node, struct thing, node));
	while ((r = take_receive(&ep->own)))
		free(r);
	if (ep->cq)
		ep->cq->users--;
	if (ep->eq)
		ep->eq->users--;
	if (ep->av)
		ep->av->users--;
	if (ep->srx)
		ep->srx->users--;
	wf_list_remove(&ep->node);
	ep->domain->users--;
	net.objects--;
	free(net.closed);
	net.closed = ep;
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops), .close = ep_close, .bind = ep_bind, .control = ep_control,
};

static int ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		void *context)
{
	struct fake_ep *ep = net.closed ? net.closed : make(sizeof(*ep));
	struct handle *handle = (void *)info->handle;

	net.closed = NULL;
	*ep = (struct fake_ep){ 0 };

	ep->fid = (struct fid_ep){
		.fid = { FI_CLASS_EP, context, &ep_fid_ops },
		.cm = &ep_cm_ops,
		.msg = &msg_ops,
		.rma = &rma_ops,
	};
	ep->type = info->ep_attr->type;
	ep->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	ep->domain->users++;
	ep->id = ++net.next_id;
	wf_list_init(&ep->own.posted);
	wf_list_init(&ep->waiting);
	wf_list_append(&net.eps, &ep->node);
	if (handle) {
		ep->peer = handle->from;
		ep->state = CONNECTING;
		free(handle);
		info->handle = NULL;
	}
	net.objects++;
	*out = &ep->fid;
	return 0;
}

static int srx_close(struct fid *fid)
{
	struct fake_srx *srx = WF_CONTAINER(fid, struct fake_srx, fid.fid);
	struct receive *r;

	MUST(!srx->users);
	while ((r = take_receive(&srx->inbox)))
		free(r);
	srx->domain->users--;
	net.objects--;
	free(srx);
	return 0;
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops), .close = srx_close, .bind = no_bind, .control = no_control,
};

static int srx_open(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **out,
		void *context)
{
	struct fake_srx *srx = make(sizeof(*srx));

	(void)attr;
	srx->fid = (struct fid_ep){
		.fid = { FI_CLASS_SRX_CTX, context, &srx_fid_ops },
		.msg = &srx_msg_ops,
	};
	srx->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	srx->domain->users++;
	wf_list_init(&srx->inbox.posted);
	net.objects++;
	*out = &srx->fid;
	return 0;
}

/* Passive endpoints. */

static int pep_getname(struct fid *fid, void *bytes, size_t *count)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid.fid);

	MUST(*count >= sizeof(pep->address));
	memcpy(bytes, &pep->address, sizeof(pep->address));
	*count = sizeof(pep->address);
	return 0;
}

static int pep_listen(struct fid_pep *fid)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid);

	MUST(pep->eq);
	pep->listens = true;
	return 0;
}

static int pep_reject(struct fid_pep *fid, fid_t id, const void *data, size_t count)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid);
	struct handle *handle = (void *)id;
	struct thing *t = make(sizeof(*t));

	(void)data, (void)count;
	t->kind = REFUSED;
	t->due_ns = later();
	t->from_node = t->to_node = pep->fabric->node;
	t->to = handle->from;
	plan(t);
	free(handle);
	return 0;
}

static struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm), .getname = pep_getname,
	.listen = pep_listen, .reject = pep_reject,
};

static int pep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid.fid);

	(void)flags;
	MUST(to->fclass == FI_CLASS_EQ);
	pep->eq = WF_CONTAINER(to, struct fake_eq, fid.fid);
	pep->eq->users++;
	return 0;
}

static int pep_close(struct fid *fid)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid.fid);

	if (pep->eq)
		pep->eq->users--;
	pep->fabric->users--;
	wf_list_remove(&pep->node);
	net.objects--;
	free(pep);
	return 0;
}

static struct fi_ops pep_fid_ops = {
	.size = sizeof(struct fi_ops), .close = pep_close, .bind = pep_bind, .control = no_control,
};

static int pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out,
		void *context)
{
	struct sockaddr_in address;
	struct fake_pep *pep;

	memcpy(&address, info->src_addr, sizeof(address));
	if (!address.sin_port)
		do {
			address.sin_port = htons(net.next_port++);
		} while (!address.sin_port || pep_at(&address));
	else if (pep_at(&address))
		return -FI_EADDRINUSE;
	pep = make(sizeof(*pep));
	pep->fid = (struct fid_pep){
		.fid = { FI_CLASS_PEP, context, &pep_fid_ops },
		.cm = &pep_cm_ops,
	};
	pep->fabric = WF_CONTAINER(fid, struct fake_fabric, fid);
	pep->fabric->users++;
	pep->address = address;
	wf_list_append(&net.peps, &pep->node);
	net.objects++;
	*out = &pep->fid;
	return 0;
}

/* Registrations. */

static int mr_close(struct fid *fid)
{
	struct fake_mr *mr = WF_CONTAINER(fid, struct fake_mr, fid.fid);

	wf_list_remove(&mr->node);
	mr->domain->users--;
	net.objects--;
	free(mr);
	return 0;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops), .close = mr_close, .bind = no_bind, .control = no_control,
};

static int mr_open(struct fid *fid, const void *base, size_t count, uint64_t access,
		   uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **out, void *context)
{
	struct fake_domain *domain = WF_CONTAINER(fid, struct fake_domain, fid.fid);
	struct fake_mr *mr;

	MUST(!offset && !flags);
	if (net.knobs.mr_mode & FI_MR_PROV_KEY)
		key = ++net.next_id;
	else if (mr_by(domain, key))
		return -FI_ENOKEY;
	mr = make(sizeof(*mr));
	mr->fid = (struct fid_mr){ { FI_CLASS_MR, context, &mr_fid_ops }, mr, key };
	mr->domain = domain;
	mr->domain->users++;
	mr->base = base;
	mr->count = count;
	mr->access = access;
	wf_list_append(&domain->mrs, &mr->node);
	net.objects++;
	*out = &mr->fid;
	return 0;
}

static struct fi_ops_mr mr_ops = { .size = sizeof(struct fi_ops_mr), .reg = mr_open };

/* Domain and fabric. */

static int domain_close(struct fid *fid)
{
	struct fake_domain *domain = WF_CONTAINER(fid, struct fake_domain, fid.fid);

	MUST(!domain->users);
	domain->fabric->users--;
	net.objects--;
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops), .close = domain_close, .bind = no_bind, .control = no_control,
};
static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain), .av_open = av_open, .cq_open = cq_open,
	.endpoint = ep_open, .srx_ctx = srx_open,
};

static int domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	struct fake_domain *domain = make(sizeof(*domain));

	(void)info;
	domain->fid = (struct fid_domain){
		.fid = { FI_CLASS_DOMAIN, context, &domain_fid_ops },
		.ops = &domain_ops,
		.mr = &mr_ops,
	};
	domain->fabric = WF_CONTAINER(fid, struct fake_fabric, fid);
	domain->fabric->users++;
	wf_list_init(&domain->mrs);
	net.objects++;
	*out = &domain->fid;
	return 0;
}

static int fabric_close(struct fid *fid)
{
	struct fake_fabric *fabric = WF_CONTAINER(fid, struct fake_fabric, fid.fid);

	MUST(!fabric->users);
	net.objects--;
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops), .close = fabric_close, .bind = no_bind, .control = no_control,
};
static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric), .domain = domain_open, .passive_ep = pep_open,
	.eq_open = eq_open,
};

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct fake_fabric *fabric = make(sizeof(*fabric));

	(void)attr;
	fabric->fid = (struct fid_fabric){
		.fid = { FI_CLASS_FABRIC, context, &fabric_fid_ops },
		.ops = &fabric_ops,
	};
	fabric->node = net.node;
	net.objects++;
	*out = &fabric->fid;
	return 0;
}

/* What libfabric exports beside its tables. */

uint32_t fi_version(void)
{
	return net.knobs.version ? net.knobs.version : FI_VERSION(1, 17);
}

const char *fi_strerror(int code)
{
	return code > 255 ? "libfabric's error" : strerror(code);
}

static void *copy_of(const void *bytes, size_t count)
{
	void *copy = bytes ? make(count) : NULL;

	return copy ? memcpy(copy, bytes, count) : NULL;
}

static char *text_of(const char *text)
{
	return copy_of(text, text ? strlen(text) + 1 : 0);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	static const struct fi_info none;
	const struct fi_info *from = info ? info : &none;
	struct fi_info *to = copy_of(from, sizeof(*from));

	to->next = NULL;
	to->src_addr = copy_of(from->src_addr, from->src_addrlen);
	to->dest_addr = copy_of(from->dest_addr, from->dest_addrlen);
	to->tx_attr = make(sizeof(*to->tx_attr));
	to->rx_attr = make(sizeof(*to->rx_attr));
	to->ep_attr = make(sizeof(*to->ep_attr));
	to->domain_attr = make(sizeof(*to->domain_attr));
	to->fabric_attr = make(sizeof(*to->fabric_attr));
	if (!info)
		return to;
	*to->tx_attr = *from->tx_attr;
	*to->rx_attr = *from->rx_attr;
	*to->ep_attr = *from->ep_attr;
	*to->domain_attr = *from->domain_attr;
	*to->fabric_attr = *from->fabric_attr;
	to->domain_attr->name = text_of(from->domain_attr->name);
	to->fabric_attr->name = text_of(from->fabric_attr->name);
	to->fabric_attr->prov_name = text_of(from->fabric_attr->prov_name);
	return to;
}

void fi_freeinfo(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		free(info->src_addr);
		free(info->dest_addr);
		free(info->tx_attr);
		free(info->rx_attr);
		free(info->ep_attr);
		free(info->domain_attr->name);
		free(info->domain_attr);
		free(info->fabric_attr->name);
		free(info->fabric_attr->prov_name);
		free(info->fabric_attr);
		free(info);
	}
}

static struct fi_info *new_info(const struct offer *offer)
{
	struct fi_info *info = fi_dupinfo(NULL);
	struct sockaddr_in *v4;
	struct sockaddr_in6 *v6;

	info->caps = FI_MSG | FI_RMA;
	info->ep_attr->type = offer->type;
	info->ep_attr->protocol = FI_PROTO_UNSPEC;
	info->ep_attr->protocol_version = 1;
	info->ep_attr->max_msg_size = READ_MAX;
	info->tx_attr->size = 256;
	info->tx_attr->inject_size = net.knobs.inject_bytes;
	info->rx_attr->size = net.knobs.slots_max;
	info->domain_attr->name = text_of(offer->domain);
	info->domain_attr->mr_mode = (int)net.knobs.mr_mode;
	info->domain_attr->mr_key_size = 8;
	info->fabric_attr->name = text_of("fake");
	info->fabric_attr->prov_name = text_of(offer->provider);
	if (!offer->ip[0])
		return info;
	if (strchr(offer->ip, ':')) {
		v6 = make(sizeof(*v6));
		v6->sin6_family = AF_INET6;
		MUST(inet_pton(AF_INET6, offer->ip, &v6->sin6_addr) == 1);
		info->addr_format = FI_SOCKADDR_IN6;
		info->src_addr = v6;
		info->src_addrlen = sizeof(*v6);
	} else {
		v4 = make(sizeof(*v4));
		v4->sin_family = AF_INET;
		MUST(inet_pton(AF_INET, offer->ip, &v4->sin_addr) == 1);
		info->addr_format = FI_SOCKADDR_IN;
		info->src_addr = v4;
		info->src_addrlen = sizeof(*v4);
	}
	return info;
}

/* FI_PROVIDER, as libfabric reads it: the core's name or the whole one, ^ turns it round. */
static bool is_filtered(const char *provider)
{
	const char *filter = getenv("FI_PROVIDER");
	size_t core = strcspn(provider, ";"), item;
	bool negated, found = false;

	if (!filter)
		return false;
	negated = *filter == '^';
	for (filter += negated; *filter; filter += item + (filter[item] == ',')) {
		item = strcspn(filter, ",");
		found |= (item == core || item == strlen(provider)) &&
			 !strncmp(filter, provider, item);
	}
	return found == negated;
}

static bool fits(const struct offer *offer, const char *node, const struct fi_info *hints)
{
	const char *provider = hints->fabric_attr->prov_name;
	const char *domain = hints->domain_attr->name;

	return hints->ep_attr->type == offer->type && !is_filtered(offer->provider) &&
	       (!provider || !strncmp(offer->provider, provider, strlen(provider))) &&
	       (!domain || !strcmp(offer->domain, domain)) &&
	       (!node || !strcmp(offer->ip, node));
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **out)
{
	struct fi_info *list = NULL, **tail = &list;
	size_t i;

	(void)flags;
	MUST(version <= fi_version()); /* libfabric says -FI_ENOSYS */
	for (i = 0; i < net.offers_count; i++) {
		if (!fits(&net.offers[i], node, hints))
			continue;
		*tail = new_info(&net.offers[i]);
		if (service && (*tail)->addr_format == FI_SOCKADDR_IN)
			((struct sockaddr_in *)(*tail)->src_addr)->sin_port =
				htons((uint16_t)atoi(service));
		tail = &(*tail)->next;
	}
	*out = list;
	return list ? 0 : -FI_ENODATA;
}

/* What tests call. */

void wf_fake_offer_nothing(void)
{
	net.offers_count = 0;
}

void wf_fake_offer(enum fi_ep_type type, const char *provider, const char *domain, const char *ip)
{
	struct offer *offer = &net.offers[net.offers_count++];

	MUST(net.offers_count <= OFFERS);
	offer->type = type;
	snprintf(offer->provider, sizeof(offer->provider), "%s", provider);
	snprintf(offer->domain, sizeof(offer->domain), "%s", domain);
	snprintf(offer->ip, sizeof(offer->ip), "%s", ip ? ip : "");
}

void wf_fake_open(const struct wf_fake *fake)
{
	memset(&net, 0, sizeof(net));
	net.knobs = *fake;
	net.random = fake->seed;
	net.next_port = 20000;
	if (!net.knobs.inject_bytes)
		net.knobs.inject_bytes = 64;
	if (!net.knobs.slots_max)
		net.knobs.slots_max = 1024;
	MUST(net.knobs.delay_min_ns <= net.knobs.delay_max_ns);
	wf_list_init(&net.things);
	wf_list_init(&net.stalled);
	wf_list_init(&net.eps);
	wf_list_init(&net.peps);
	wf_fake_offer(FI_EP_MSG, "tcp", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_RDM, "efa", "fake0", NULL);
}

struct wf_fake *wf_fake_knobs(void)
{
	return &net.knobs;
}

size_t wf_fake_close(void)
{
	struct wf_list *node;

	while ((node = wf_list_first(&net.things)) || (node = wf_list_first(&net.stalled)))
		forget(WF_CONTAINER(node, struct thing, node));
	free(net.closed);
	net.closed = NULL;
	return net.objects;
}

void wf_fake_enter(unsigned node)
{
	MUST(node < NODES);
	net.node = node;
}

void wf_fake_kill(unsigned node)
{
	progress();
	net.dead[node] = true;
	net.frozen[node] = false;
	WF_LIST_EACH(at, &net.eps) {
		struct fake_ep *ep = WF_CONTAINER(at, struct fake_ep, node);

		if (node_of(ep) == node)
			reset(ep);
	}
	unstall();
}

void wf_fake_freeze(unsigned node, bool frozen)
{
	progress();
	net.frozen[node] = frozen;
	if (!frozen)
		unstall();
}

void wf_fake_cut(unsigned a, unsigned b, bool cut)
{
	size_t i;

	progress();
	if (cut) {
		MUST(net.cuts_count < WF_COUNT(net.cuts));
		net.cuts[net.cuts_count].a = a;
		net.cuts[net.cuts_count++].b = b;
		return;
	}
	for (i = 0; i < net.cuts_count; i++)
		if ((net.cuts[i].a == a && net.cuts[i].b == b) ||
		    (net.cuts[i].a == b && net.cuts[i].b == a))
			net.cuts[i--] = net.cuts[--net.cuts_count];
	unstall();
}

uint64_t wf_fake_next_ns(void)
{
	return wf_list_empty(&net.things) ? UINT64_MAX :
					    WF_CONTAINER(net.things.next, struct thing, node)->due_ns;
}

uint64_t wf_fake_sent(void)
{
	return net.sent;
}

uint64_t wf_fake_arrived(void)
{
	return net.arrived;
}

uint64_t wf_fake_overrun(void)
{
	return net.overrun;
}
