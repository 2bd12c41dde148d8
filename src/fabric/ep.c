/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"
#include "fabric/sock.h"
#include "fabric/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Turns to take the bytes before a socket's end, at most its buffer.  A bound, not tuned. */
#define END_READS_TURNS 10000

static struct wf_ep *make(struct wf_rail *rail, void *owner)
{
	struct wf_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->rail = rail;
	ep->owner = owner;
	wf_list_init(&ep->node);
	wf_list_init(&ep->posts);
	wf_list_init(&ep->connected.node);
	wf_list_init(&ep->closed.node);
	ep->connected.event = (struct wf_rail_event){ .kind = WF_EVENT_CONNECTED, .ep = ep };
	ep->closed.event = (struct wf_rail_event){ .kind = WF_EVENT_CLOSED, .ep = ep };
	return ep;
}

void wf_ep_die(struct wf_ep *ep, int status)
{
	if (ep->dead)
		return;
	ep->dead = true;
	ep->closed.event.status = status;
	wf_post_tell(ep->rail, &ep->closed);
}

/* Can libfabric read @address, which came from a peer, without harm, by its family and length? */
static bool is_sound(const struct wf_rail *rail, const uint8_t *address, size_t bytes)
{
	sa_family_t family;

	if (!bytes || bytes > WF_ADDRESS_BYTES)
		return false;
	if (rail->info->addr_format == FI_ADDR_STR)
		return !address[bytes - 1] && memchr(address, 0, bytes) == address + bytes - 1;
	if (!rail->caps.by_ip)
		return bytes == rail->self.address_bytes;
	if (bytes < sizeof(struct sockaddr_in))
		return false;
	memcpy(&family, address + offsetof(struct sockaddr, sa_family), sizeof(family));
	return (family == AF_INET && bytes == sizeof(struct sockaddr_in)) ||
	       (family == AF_INET6 && bytes == sizeof(struct sockaddr_in6));
}

/* Open all that an endpoint of a connected rail needs before it connects or accepts. */
static int open_fid(struct wf_ep *ep, struct fi_info *info, struct wf_error *e)
{
	struct wf_rail *rail = ep->rail;
	struct wf_cq *cq = rail->queues.cq.fid ? &rail->queues.cq : &ep->cq;
	int err;

	if (cq == &ep->cq) {
		err = wf_cq_open(rail, ep, &ep->cq, e);
		if (err)
			return err;
	}
	info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	err = WF_RAIL_CALL(rail, fi_endpoint, rail->domain, info, &ep->fid, NULL);
	if (err)
		goto close_cq;
	info->handle = NULL; /* the handle of a request is the endpoint's from here on */
	err = WF_RAIL_CALL(rail, fi_ep_bind, ep->fid, &rail->conns.eq->fid, 0);
	if (!err)
		err = WF_RAIL_CALL(rail, fi_ep_bind, ep->fid, &cq->fid->fid, FI_TRANSMIT | FI_RECV);
	if (!err)
		err = WF_RAIL_CALL(rail, fi_ep_bind, ep->fid, &rail->conns.srx->fid, 0);
	if (!err)
		err = WF_RAIL_CALL(rail, fi_enable, ep->fid);
	if (err)
		goto close_ep;
	return 0;

close_ep:
	WF_RAIL_CALL(rail, fi_close, &ep->fid->fid);
	ep->fid = NULL;
close_cq:
	wf_cq_close(rail, &ep->cq);
	return wf_error_set(e, err, "%s opens no endpoint: %s", rail->caps.provider,
			    wf_error_name(err));
}

static void close_fid(struct wf_ep *ep)
{
	struct wf_rail *rail = ep->rail;

	wf_wait_remove(rail, &ep->cq);
	WF_RAIL_CALL(rail, fi_close, &ep->fid->fid);
	wf_cq_close(rail, &ep->cq);
}

static void enlist(struct wf_ep *ep)
{
	ep->rail->conns.connecting += !ep->up;
	wf_list_append(&ep->rail->eps, &ep->node);
}

/* The rail's own info, turned to the peer: any source, @address as destination. */
static struct fi_info *info_to(const struct wf_rail *rail, const uint8_t *address, size_t bytes)
{
	struct fi_info *info = fi_dupinfo(rail->info);
	void *copy = malloc(bytes);

	if (!info || !copy) {
		free(copy);
		fi_freeinfo(info);
		return NULL;
	}
	memcpy(copy, address, bytes);
	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	free(info->dest_addr);
	info->dest_addr = copy;
	info->dest_addrlen = bytes;
	if (rail->caps.by_ip)
		info->addr_format = bytes == sizeof(struct sockaddr_in) ? FI_SOCKADDR_IN :
									  FI_SOCKADDR_IN6;
	return info;
}

static int open_connected(struct wf_ep *ep, const uint8_t *address, size_t address_bytes,
			  const void *data, size_t data_bytes, struct wf_error *e)
{
	struct wf_rail *rail = ep->rail;
	struct fi_info *info = info_to(rail, address, address_bytes);
	int err;

	if (!info)
		return wf_error_set(e, -ENOMEM, "no memory for an endpoint");
	err = open_fid(ep, info, e);
	if (err)
		goto free_info;
	err = WF_RAIL_CALL(rail, fi_connect, ep->fid, info->dest_addr, data, data_bytes);
	if (err) {
		wf_error_set(e, err, "%s cannot connect: %s", rail->caps.provider,
			     wf_error_name(err));
		close_fid(ep);
	}
free_info:
	fi_freeinfo(info);
	return err;
}

/* Another way to the same peer, whose entry in the vector can be shared. */
static struct wf_ep *twin_of(const struct wf_ep *ep)
{
	WF_LIST_EACH(node, &ep->rail->eps) {
		struct wf_ep *other = WF_CONTAINER(node, struct wf_ep, node);

		if (other != ep && other->life == ep->life &&
		    other->address_bytes == ep->address_bytes &&
		    !memcmp(other->address, ep->address, ep->address_bytes))
			return other;
	}
	return NULL;
}

/* Check that the peer has a file as we have one: the provider can't do without.  -EHOSTDOWN. */
static int check_file(const struct wf_ep *ep, struct wf_error *e)
{
	char name[WF_ADDRESS_BYTES + 1];

	if (!wf_provider_has(ep->rail->row, WF_QUIRK_LIVE_NAME, fi_version()) ||
	    !ep->rail->self.files[0] || wf_rail_find_file(ep->address, ep->address_bytes, name))
		return 0;
	return wf_error_set(e, -EHOSTDOWN, "%s: the peer's /dev/shm/%s is gone",
			    ep->rail->caps.provider, name);
}

/*
 * Check that a descriptor is left: a provider that could not open the peer's file leaves half an
 * entry, too.  -EMFILE and the like.
 */
static int check_descriptor(const struct wf_rail *rail, struct wf_error *e)
{
	int fd;

	if (!wf_provider_has(rail->row, WF_QUIRK_LIVE_NAME, fi_version()))
		return 0;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return wf_error_set(e, -errno, "%s: no descriptor to meet a peer: %s",
				    rail->caps.provider, wf_error_name(-errno));
	close(fd);
	return 0;
}

/* Take the peer's gate.  A peer has a gate where we have one, by the same libfabric. */
static int take_gate(struct wf_ep *ep, int gate_fd, struct wf_error *e)
{
	int fd, err;

	if (!ep->rail->shared.gate.page)
		return 0;
	fd = fcntl(gate_fd, F_DUPFD_CLOEXEC, 0);
	err = fd < 0 ? -errno : wf_gate_take(&ep->gate, fd);
	return err ? wf_error_set(e, err, "%s: the peer's gate can't be taken: %s",
				  ep->rail->caps.provider, wf_error_name(err)) : 0;
}

/* Open a way to @address of process @pid; 0 where the rail need not know. */
static int open_shared(struct wf_ep *ep, const uint8_t *address, size_t address_bytes,
		       uint32_t pid, int gate_fd, struct wf_error *e)
{
	struct wf_rail *rail = ep->rail;
	struct wf_ep *twin;
	int n, err = take_gate(ep, gate_fd, e);

	if (err)
		return err;
	if (!rail->shared.ep)
		return wf_error_set(e, -ENOTCONN, "%s has no endpoint", rail->caps.provider);
	ep->pid = pid;
	memcpy(ep->address, address, address_bytes);
	ep->address_bytes = address_bytes;
	ep->life = rail->shared.life;
	ep->up = true;
	twin = twin_of(ep);
	if (twin) {
		ep->to = twin->to;
		ep->contact = twin->contact;
		return 0;
	}
	if (wf_half_met_take(&rail->shared.half_met, ep->address, address_bytes, &ep->to)) {
		ep->contact = WF_EP_ASKED;
		return 0;
	}
	if (rail->shared.peers_count >= rail->caps.peers_max)
		return wf_error_set(e, -ENOSPC, "%s knows %u peers, and no more fit",
				    rail->caps.provider, rail->shared.peers_count);
	err = check_file(ep, e);
	if (!err)
		err = check_descriptor(rail, e);
	if (err)
		return err;
	n = WF_RAIL_CALL(rail, fi_av_insert, rail->shared.av, ep->address, 1, &ep->to, 0, NULL);
	if (n != 1)
		return wf_error_set(e, n < 0 ? n : -EADDRNOTAVAIL,
				    "%s does not take the peer's address", rail->caps.provider);
	rail->shared.peers_count++;
	/* If the file went meanwhile the entry may be half made, and is left alone for good. */
	err = check_file(ep, e);
	if (err)
		wf_half_met_lose(&rail->shared.half_met);
	return err;
}

static int refuse_address(const struct wf_rail *rail, struct wf_error *e)
{
	return wf_error_set(e, -EBADMSG, "the peer's address is none of %s", rail->caps.provider);
}

/* Hand out @made, which is open; or free it, if @err says that it is not. */
static int hand_out(struct wf_ep *made, int err, struct wf_ep **ep)
{
	if (err) {
		wf_gate_close(&made->gate);
		free(made);
		return err;
	}
	enlist(made);
	*ep = made;
	return 0;
}

int wf_ep_open(struct wf_rail *rail, const uint8_t *address, size_t address_bytes,
	       const void *data, size_t data_bytes, void *owner, struct wf_ep **ep,
	       struct wf_error *e)
{
	struct wf_ep *made;
	int err;

	if (!is_sound(rail, address, address_bytes) || rail->own.reads)
		return refuse_address(rail, e);
	if (data_bytes > WF_CONNECT_BYTES)
		return wf_error_set(e, -EMSGSIZE, "connect data of %zu bytes is longer than %d",
				    data_bytes, WF_CONNECT_BYTES);
	made = make(rail, owner);
	if (!made)
		return wf_error_set(e, -ENOMEM, "no memory for an endpoint");
	if (rail->caps.connected)
		err = open_connected(made, address, address_bytes, data, data_bytes, e);
	else
		err = open_shared(made, address, address_bytes, 0, -1, e);
	return hand_out(made, err, ep);
}

int wf_ep_open_here(struct wf_rail *rail, const uint8_t *address, size_t address_bytes,
		    uint32_t pid, int gate_fd, void *owner, struct wf_ep **ep, struct wf_error *e)
{
	struct wf_ep *made;
	int err;

	if (!is_sound(rail, address, address_bytes) || rail->caps.connected || !pid)
		return refuse_address(rail, e);
	made = make(rail, owner);
	if (!made)
		return wf_error_set(e, -ENOMEM, "no memory for an endpoint");
	err = open_shared(made, address, address_bytes, pid, gate_fd, e);
	return hand_out(made, err, ep);
}

static void free_request(struct wf_rail_request *request)
{
	wf_list_remove(&request->notice.node);
	wf_list_remove(&request->node);
	fi_freeinfo(request->info);
	free(request);
}

int wf_ep_accept(struct wf_rail *rail, struct wf_rail_request *request, void *owner,
		 struct wf_ep **ep, struct wf_error *e)
{
	struct wf_ep *made = make(rail, owner);
	int err;

	if (!made) {
		wf_ep_reject(rail, request);
		return wf_error_set(e, -ENOMEM, "no memory for an endpoint");
	}
	err = open_fid(made, request->info, e);
	if (err) {
		free(made);
		wf_ep_reject(rail, request);
		return err;
	}
	err = WF_RAIL_CALL(rail, fi_accept, made->fid, NULL, 0);
	free_request(request);
	if (err) {
		wf_error_set(e, err, "%s cannot accept: %s", rail->caps.provider,
			     wf_error_name(err));
		close_fid(made);
		free(made);
		return err;
	}
	enlist(made);
	*ep = made;
	return 0;
}

void wf_ep_reject(struct wf_rail *rail, struct wf_rail_request *request)
{
	/* If the reject fails, the peer's own time limit ends its attempt. */
	if (request->info->handle)
		WF_RAIL_CALL(rail, fi_reject, rail->conns.pep, request->info->handle, NULL, 0);
	free_request(request);
}

/* The queue in which operations of @ep end: its own, or the rail's. */
static struct wf_cq *cq_of(struct wf_ep *ep)
{
	return ep->cq.fid ? &ep->cq : &ep->rail->queues.cq;
}

static bool reads(const struct wf_ep *ep)
{
	WF_LIST_EACH(node, &ep->posts) {
		const struct wf_post *post = WF_CONTAINER(node, struct wf_post, node);

		if (post->kind == WF_POST_READ && post->id)
			return true;
	}
	return false;
}

/* Let the provider itself fail the reads of @ep, as happens when their socket is at its end. */
static void end_reads(struct wf_ep *ep)
{
	struct wf_rail *rail = ep->rail;
	uint8_t here[WF_ADDRESS_BYTES], there[WF_ADDRESS_BYTES];
	size_t here_bytes = sizeof(here), there_bytes = sizeof(there);

	/* A connection that was reset has no peer's address any more, and needs no shutdown. */
	if (!WF_RAIL_CALL(rail, fi_getname, &ep->fid->fid, here, &here_bytes) &&
	    !WF_RAIL_CALL(rail, fi_getpeer, ep->fid, there, &there_bytes) &&
	    here_bytes == there_bytes)
		wf_sock_shut(here, there, here_bytes);
	for (unsigned i = 0; i < END_READS_TURNS && reads(ep); i++)
		wf_cq_read(rail, cq_of(ep));
}

static void close_connected(struct wf_ep *ep)
{
	struct wf_rail *rail = ep->rail;

	/* Unwatch now: after the close the numbers of the descriptors may be others'. */
	wf_wait_remove(rail, &ep->cq);
	WF_RAIL_CALL(rail, fi_close, &ep->fid->fid);
	/*
	 * Drain what @ep left in the queues: slots that were being filled must
	 * be posted again, and an event about this endpoint must not be found
	 * when another one has come to lie at its address.
	 */
	wf_cq_drain(rail, cq_of(ep));
	wf_cq_close(rail, &ep->cq);
	wf_eq_drain(rail);
}

static void close_shared(struct wf_ep *ep)
{
	struct wf_rail *rail = ep->rail;
	struct wf_ep *twin;

	if (ep->life != rail->shared.life)
		return;
	twin = twin_of(ep);
	if (twin) {
		/* The entry has the marks of all that were sent by it, whichever way. */
		twin->contact = WF_MAX(twin->contact, ep->contact);
		return;
	}
	if (ep->contact == WF_EP_ASKED &&
	    wf_provider_has(rail->row, WF_QUIRK_HALF_MET, fi_version())) {
		wf_half_met_keep(&rail->shared.half_met, ep->address, ep->address_bytes, ep->to);
		return;
	}
	WF_RAIL_CALL(rail, fi_av_remove, rail->shared.av, &ep->to, 1, 0);
	rail->shared.peers_count--;
}

void wf_ep_close(struct wf_ep *ep)
{
	if (!ep)
		return;
	ep->dead = true; /* CLOSED is not told any more */
	wf_gate_close(&ep->gate);
	ep->rail->conns.connecting -= !ep->up;
	if (wf_provider_has(ep->rail->row, WF_QUIRK_FREES_TWICE, fi_version()) && reads(ep))
		end_reads(ep);
	wf_post_drop_all(ep);
	if (ep->rail->caps.connected)
		close_connected(ep);
	else
		close_shared(ep);
	wf_list_remove(&ep->connected.node);
	wf_list_remove(&ep->closed.node);
	wf_list_remove(&ep->node);
	/* Events that poll has handed out already may name @ep: they find no owner. */
	ep->owner = NULL;
	wf_list_append(&ep->rail->closed, &ep->node);
}

void *wf_ep_owner(const struct wf_ep *ep)
{
	return ep->owner;
}

uint32_t wf_ep_busy(const struct wf_ep *ep)
{
	return ep->busy;
}

/* Returns 0 if @ep can be used now. */
static int usable(const struct wf_ep *ep)
{
	if (ep->dead || (!ep->rail->caps.connected && ep->life != ep->rail->shared.life))
		return -ENOTCONN;
	return ep->up ? 0 : -EAGAIN;
}

/* The code for a refused post, which kills a connected endpoint unless the queue is full. */
static int refused(struct wf_ep *ep, ssize_t err)
{
	if (err == -FI_EAGAIN)
		return -EAGAIN;
	if (ep->rail->caps.connected)
		wf_ep_die(ep, (int)err);
	return (int)err;
}

static struct fid_ep *fid_of(const struct wf_ep *ep)
{
	return ep->rail->caps.connected ? ep->fid : ep->rail->shared.ep;
}

/* Post a send; the caller is inside the peer's gate. */
static int post_send(struct wf_ep *ep, const void *bytes, size_t count, void *desc, void *cookie)
{
	struct wf_rail *rail = ep->rail;
	struct wf_post *post;
	ssize_t ret;

	if (count <= rail->caps.inject_bytes) {
		ret = WF_RAIL_CALL(rail, fi_inject, fid_of(ep), bytes, count, ep->to);
		return ret ? refused(ep, ret) : 1;
	}
	if (wf_post_take(rail, ep, WF_POST_SEND, cookie, &post))
		return -EAGAIN; /* no memory for the post, for now: as good as a full queue */
	ret = WF_RAIL_CALL(rail, fi_send, fid_of(ep), bytes, count, desc, ep->to, (void *)post->id);
	if (ret) {
		wf_post_give(rail, post);
		return refused(ep, ret);
	}
	return 0;
}

int wf_ep_send(struct wf_ep *ep, const void *bytes, size_t count, void *desc, void *cookie)
{
	int rc = usable(ep);

	if (rc)
		return rc;
	if (count > ep->rail->slots.frame_bytes)
		return -EMSGSIZE; /* the peer's slots are no larger, and some providers hang then */
	if (!wf_gate_enter(&ep->gate))
		return -EAGAIN;
	rc = post_send(ep, bytes, count, desc, cookie);
	if (rc >= 0)
		ep->contact = WF_EP_MET;
	else if (ep->contact == WF_EP_NEW)
		ep->contact = WF_EP_ASKED;
	/* A refused send knocks, too: at first contact the provider itself sends something. */
	wf_gate_knock(&ep->gate);
	wf_gate_leave(&ep->gate);
	return rc;
}

/* Read @spans without the provider.  @post has ended when this returns. */
static int read_ourselves(struct wf_ep *ep, struct wf_post *post, const struct wf_span *spans,
			  uint32_t span_count)
{
	struct wf_rail *rail = ep->rail;
	int err = WF_RAIL_CALL(rail, wf_vm_read_spans, ep->pid, spans, span_count);

	wf_cq_end(rail, post, err);
	wf_post_delay(rail, &post->notice);
	return 0;
}

int wf_ep_read(struct wf_ep *ep, void *into, size_t count, void *desc, uint64_t address,
	       uint64_t key, void *cookie)
{
	struct wf_rail *rail = ep->rail;
	struct wf_post *post;
	ssize_t ret;
	int err = usable(ep);

	if (err)
		return err;
	if (count > rail->caps.read_bytes_max)
		return -EMSGSIZE;
	err = wf_post_take(rail, ep, WF_POST_READ, cookie, &post);
	if (err)
		return -EAGAIN;
	if (rail->own.reads)
		return read_ourselves(ep, post, &(struct wf_span){ into, count, address }, 1);
	ret = WF_RAIL_CALL(rail, fi_read, fid_of(ep), into, count, desc, ep->to, address, key,
			   (void *)post->id);
	if (ret) {
		wf_post_give(rail, post);
		return refused(ep, ret);
	}
	return 0;
}

int wf_ep_read_spans(struct wf_ep *ep, const struct wf_span *spans, uint32_t span_count,
		     void *desc, uint64_t key, void *cookie)
{
	struct iovec into[WF_READ_SPANS_MAX];
	struct fi_rma_iov from[WF_READ_SPANS_MAX];
	void *descs[WF_READ_SPANS_MAX];
	struct fi_msg_rma msg = {
		.msg_iov = into, .desc = descs, .iov_count = span_count, .addr = ep->to,
		.rma_iov = from, .rma_iov_count = span_count,
	};
	struct wf_rail *rail = ep->rail;
	struct wf_post *post;
	size_t count = 0;
	ssize_t ret;
	int err;

	if (span_count == 1)
		return wf_ep_read(ep, spans->into, spans->count, desc, spans->address, key, cookie);
	err = usable(ep);
	if (err)
		return err;
	for (uint32_t i = 0; i < span_count; i++) {
		into[i] = (struct iovec){ spans[i].into, spans[i].count };
		from[i] = (struct fi_rma_iov){ spans[i].address, spans[i].count, key };
		descs[i] = desc;
		count += spans[i].count;
	}
	if (span_count > rail->caps.read_spans_max || count > rail->caps.read_bytes_max)
		return -EMSGSIZE;
	err = wf_post_take(rail, ep, WF_POST_READ, cookie, &post);
	if (err)
		return -EAGAIN;
	if (rail->own.reads)
		return read_ourselves(ep, post, spans, span_count);
	msg.context = (void *)post->id;
	ret = WF_RAIL_CALL(rail, fi_readmsg, fid_of(ep), &msg, FI_COMPLETION);
	if (ret) {
		wf_post_give(rail, post);
		return refused(ep, ret);
	}
	return 0;
}

/* The helper of @rail, started at the first call; NULL: no helper can be started. */
static struct wf_copy_thread *helper_of(struct wf_rail *rail)
{
	if (rail->own.helper || rail->own.helpless)
		return rail->own.helper;
	rail->own.helpless = !rail->own.reads || !rail->own.wake ||
			 wf_copy_thread_open(rail->own.wake, rail->own.wake_ctx, &rail->own.helper);
	return rail->own.helper;
}

static int copy(const struct wf_copy_thread_job *job)
{
	return wf_vm_read_spans(job->pid, job->spans, job->span_count);
}

int wf_ep_read_aside(struct wf_ep *ep, const struct wf_span *spans, uint32_t span_count,
		     void *cookie)
{
	struct wf_copy_thread *helper = helper_of(ep->rail);
	struct wf_copy_thread_job job = { .run = copy, .pid = ep->pid, .span_count = span_count };
	struct wf_post *post;
	int err = usable(ep);

	_Static_assert(WF_READ_SPANS_MAX <= WF_COPY_THREAD_SPANS_MAX, "a job holds any read");
	if (err)
		return err;
	memcpy(job.spans, spans, span_count * sizeof(*spans));
	if (!helper || wf_post_take(ep->rail, ep, WF_POST_READ, cookie, &post))
		return -EAGAIN;
	job.owner = post;
	err = wf_copy_thread_give(helper, &job);
	if (err)
		wf_post_give(ep->rail, post);
	return err;
}
