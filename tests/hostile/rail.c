/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rail for tests/hostile, where Python speaks the protocol: libfabric's calls
 * are inline functions, which ctypes can't reach.  Frames go in and out as they
 * are; nothing here knows what is in them.
 *
 * Threads: one for each rail.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUFFER_BYTES 66560 /* the longest frame over tcp */
#define SENDS_MAX 512	   /* frames under way at once; not tuned */
#define EVENT_BYTES 1024
#define EXPORT __attribute__((visibility("default")))

struct hostile_fabric {
	struct fi_info *list, *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

struct buffer {
	uint8_t bytes[BUFFER_BYTES];
	size_t count; /* bytes of the frame that has come */
	int sends;    /* it is of those that send, and under way */
};

struct hostile_rail {
	struct hostile_fabric *fabric;
	struct fi_info *info;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct buffer *buffers; /* those that receive, then those that send */
	struct buffer **late;   /* frames that came while something was read, the oldest first */
	int late_count;
	int receives, next_send, read_done;
};

EXPORT struct hostile_fabric *hostile_open(const char *provider);
EXPORT void hostile_facts(const struct hostile_fabric *f, uint32_t facts[4]);
EXPORT struct hostile_rail *hostile_connect(struct hostile_fabric *f, const void *address,
					    size_t address_bytes, const void *data,
					    size_t data_bytes, int receives, int limit_ms);
EXPORT int hostile_send(struct hostile_rail *r, const void *bytes, size_t count);
EXPORT int hostile_receive(struct hostile_rail *r, void *bytes, size_t room);
EXPORT void *hostile_register(struct hostile_fabric *f, void *at, size_t bytes, uint64_t *key);
EXPORT int hostile_read(struct hostile_rail *r, void *into, size_t bytes, uint64_t address,
			uint64_t key, int limit_ms);
EXPORT void hostile_close(struct hostile_rail *r);

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The connected endpoints of @provider, with what weft_wire(7) asks of them; NULL: none. */
struct hostile_fabric *hostile_open(const char *provider)
{
	struct hostile_fabric *f = calloc(1, sizeof(*f));
	struct fi_info *hints = fi_allocinfo();

	if (!f || !hints)
		return NULL;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &f->list))
		return NULL;
	fi_freeinfo(hints);
	for (f->info = f->list; f->info; f->info = f->info->next)
		if (!strcmp(f->info->fabric_attr->prov_name, provider))
			break;
	if (!f->info || fi_fabric(f->info->fabric_attr, &f->fabric, NULL) ||
	    fi_domain(f->fabric, f->info, &f->domain, NULL))
		return NULL;
	return f;
}

/* Version of libfabric, protocol, its version, and whether reads name virtual addresses. */
void hostile_facts(const struct hostile_fabric *f, uint32_t facts[4])
{
	facts[0] = fi_version();
	facts[1] = f->info->ep_attr->protocol;
	facts[2] = f->info->ep_attr->protocol_version;
	facts[3] = !!(f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR);
}

static int post_receive(struct hostile_rail *r, struct buffer *b)
{
	return (int)fi_recv(r->ep, b->bytes, BUFFER_BYTES, NULL, 0, b);
}

static int open_endpoint(struct hostile_rail *r)
{
	struct fi_eq_attr events = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr completions = { .size = 4096,
					  .format = FI_CQ_FORMAT_MSG,
					  .wait_obj = FI_WAIT_NONE };
	struct hostile_fabric *f = r->fabric;
	int err;

	if ((err = fi_eq_open(f->fabric, &events, &r->eq, NULL)) ||
	    (err = fi_cq_open(f->domain, &completions, &r->cq, NULL)) ||
	    (err = fi_endpoint(f->domain, r->info, &r->ep, NULL)) ||
	    (err = fi_ep_bind(r->ep, &r->eq->fid, 0)) ||
	    (err = fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV)) ||
	    (err = fi_enable(r->ep)))
		return err;
	for (int i = 0; i < r->receives && !err; i++)
		err = post_receive(r, &r->buffers[i]);
	return err;
}

/* 0, or why the connection is not made by @limit_ms. */
static int await(struct hostile_rail *r, int limit_ms)
{
	const struct timespec moment = { .tv_nsec = 200 * 1000 };
	int64_t until = now_ms() + limit_ms;

	while (now_ms() < until) {
		struct fi_cq_msg_entry unused;
		uint8_t event[EVENT_BYTES];
		uint32_t what;
		ssize_t n = fi_eq_read(r->eq, &what, event, sizeof(event), 0);

		if (n > 0)
			return what == FI_CONNECTED ? 0 : -FI_ECONNREFUSED;
		if (n == -FI_EAVAIL)
			return -FI_ECONNREFUSED;
		(void)fi_cq_read(r->cq, &unused, 1); /* it makes progress */
		nanosleep(&moment, NULL);
	}
	return -FI_ETIMEDOUT;
}

/* A connection to @address that says @data; NULL: it is refused or not answered. */
struct hostile_rail *hostile_connect(struct hostile_fabric *f, const void *address,
				     size_t address_bytes, const void *data, size_t data_bytes,
				     int receives, int limit_ms)
{
	struct hostile_rail *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->fabric = f;
	r->receives = receives;
	r->info = fi_dupinfo(f->info);
	r->buffers = calloc((size_t)(receives + SENDS_MAX), sizeof(*r->buffers));
	r->late = calloc((size_t)receives, sizeof(*r->late));
	if (!r->info || !r->buffers || !r->late)
		goto close;
	free(r->info->src_addr);
	r->info->src_addr = NULL;
	r->info->src_addrlen = 0;
	free(r->info->dest_addr);
	r->info->dest_addr = malloc(address_bytes);
	r->info->dest_addrlen = address_bytes;
	if (!r->info->dest_addr)
		goto close;
	memcpy(r->info->dest_addr, address, address_bytes);
	if (open_endpoint(r) || fi_connect(r->ep, address, data, data_bytes) || await(r, limit_ms))
		goto close;
	return r;

close:
	hostile_close(r);
	return NULL;
}

/* One completion: the buffer that received, or NULL; -EAGAIN: none; else the rail is broken. */
static int complete(struct hostile_rail *r, struct buffer **received)
{
	struct fi_cq_msg_entry entry;
	ssize_t n = fi_cq_read(r->cq, &entry, 1);
	struct buffer *b;

	*received = NULL;
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry e = { 0 };

		(void)fi_cq_readerr(r->cq, &e, 0);
		if (e.op_context == r)
			r->read_done = e.err ? -e.err : -FI_EIO;
		return e.op_context == r ? 0 : -FI_EIO;
	}
	if (n != 1)
		return n ? (int)n : -FI_EAGAIN;
	if (entry.op_context == r) {
		r->read_done = 1;
		return 0;
	}
	b = entry.op_context;
	if (b && b >= r->buffers + r->receives) {
		b->sends = 0;
	} else if (b) {
		b->count = entry.len;
		*received = b;
	}
	return 0;
}

/* The oldest frame that has come, or as complete(). */
static int next_frame(struct hostile_rail *r, struct buffer **received)
{
	if (!r->late_count)
		return complete(r, received);
	*received = r->late[0];
	memmove(r->late, r->late + 1, (size_t)--r->late_count * sizeof(*r->late));
	return 0;
}

/* 0, -EAGAIN: no room, receive first; else the rail is broken. */
int hostile_send(struct hostile_rail *r, const void *bytes, size_t count)
{
	struct buffer *b = &r->buffers[r->receives + r->next_send];
	int rc;

	if (count > BUFFER_BYTES)
		return -FI_EMSGSIZE;
	if (b->sends)
		return -FI_EAGAIN;
	memcpy(b->bytes, bytes, count);
	rc = (int)fi_send(r->ep, b->bytes, count, NULL, 0, b);
	if (rc)
		return rc;
	b->sends = 1;
	r->next_send = (r->next_send + 1) % SENDS_MAX;
	return 0;
}

/* The bytes of a frame that has come, 0: none, below 0: the rail is broken. */
int hostile_receive(struct hostile_rail *r, void *bytes, size_t room)
{
	struct buffer *b;
	size_t count;
	uint8_t event[EVENT_BYTES];
	uint32_t what;
	ssize_t n;
	int rc;

	while (!(rc = next_frame(r, &b))) {
		if (!b)
			continue;
		count = b->count < room ? b->count : room;
		memcpy(bytes, b->bytes, count);
		rc = post_receive(r, b);
		return rc ? rc : (int)count;
	}
	if (rc != -FI_EAGAIN)
		return rc;
	n = fi_eq_read(r->eq, &what, event, sizeof(event), 0);
	return n > 0 || n == -FI_EAVAIL ? -FI_ENOTCONN : 0;
}

/* Let peers read @bytes at @at, until the end of the process. */
void *hostile_register(struct hostile_fabric *f, void *at, size_t bytes, uint64_t *key)
{
	static uint64_t wanted = 4711;
	struct fid_mr *mr;

	if (fi_mr_reg(f->domain, at, bytes, FI_REMOTE_READ, 0, wanted++, 0, &mr, NULL))
		return NULL;
	*key = fi_mr_key(mr);
	return mr;
}

/* Read the peer's memory: 0, or why not.  Frames that come meanwhile are received later. */
int hostile_read(struct hostile_rail *r, void *into, size_t bytes, uint64_t address, uint64_t key,
		 int limit_ms)
{
	int64_t until = now_ms() + limit_ms;
	struct buffer *b;
	int rc;

	r->read_done = 0;
	rc = (int)fi_read(r->ep, into, bytes, NULL, 0, address, key, r);
	if (rc)
		return rc;
	while (!r->read_done && now_ms() < until) {
		rc = complete(r, &b);
		if (rc && rc != -FI_EAGAIN)
			return rc;
		if (b)
			r->late[r->late_count++] = b;
	}
	return r->read_done == 1 ? 0 : r->read_done ? r->read_done : -FI_ETIMEDOUT;
}

/* End the connection without a word; NULL: nothing. */
void hostile_close(struct hostile_rail *r)
{
	if (!r)
		return;
	if (r->ep) {
		(void)fi_shutdown(r->ep, 0);
		(void)fi_close(&r->ep->fid);
	}
	if (r->cq)
		(void)fi_close(&r->cq->fid);
	if (r->eq)
		(void)fi_close(&r->eq->fid);
	if (r->info)
		fi_freeinfo(r->info);
	free(r->late);
	free(r->buffers);
	free(r);
}
