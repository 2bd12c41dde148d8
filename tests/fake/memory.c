/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

#include <sys/mman.h>
#include <sys/uio.h>

/* Reads. */

static const struct fake_mr *mr_by(const struct fake_domain *domain, uint64_t key)
{
	WF_LIST_EACH(node, &domain->mrs) {
		const struct fake_mr *mr = WF_CONTAINER(node, struct fake_mr, node);

		if (mr->fid.key == key)
			return mr;
	}
	return NULL;
}

/* Where @count bytes at @remote are, or NULL: no such key, right or range. */
static const uint8_t *find_source(const struct fake_ep *to, uint64_t key, uint64_t remote,
				  size_t count)
{
	const struct fake_mr *mr = mr_by(to->domain, key);
	uint64_t offset;

	if (!mr || !(mr->access & FI_REMOTE_READ))
		return NULL;
	offset = remote;
	if (fake_net.knobs.mr_mode & FI_MR_VIRT_ADDR)
		offset -= (uint64_t)(uintptr_t)mr->base;
	if (offset > mr->count || count > mr->count - offset)
		return NULL;
	return mr->bytes + offset;
}

/* Find all that @t reads, or return NULL. */
static const uint8_t *source_of(struct thing *t, const struct fake_ep *to)
{
	for (size_t i = 0; i < t->more_count; i++) {
		struct fake_span *s = &t->more[i];

		s->source = find_source(to, t->key, s->remote, s->count);
		if (!s->source)
			return NULL;
	}
	return find_source(to, t->key, t->remote, t->count);
}

/* Whose memory @t reads; NULL: that end is closed, so it brings nothing any more. */
static struct fake_ep *read_from(const struct thing *t)
{
	const struct fake_ep *ep = fake_ep_by(t->from);
	struct fake_ep *to = fake_ep_by(t->to_shared ? t->to_shared : ep->peer);

	return to && to->state != DOWN ? to : NULL;
}

static void fail_read(struct thing *t, struct fake_ep *ep)
{
	fake_cq_tell(ep, (struct cq_entry){ .context = t->context, .err = EIO });
	fake_forget(t);
	fake_reset(ep);
}

/* What comes is not always what was there. */
static void damage(const struct thing *t, const struct fake_ep *ep, const struct fake_ep *to)
{
	size_t at = (size_t)((const uint8_t *)fake_net.knobs.flip_at - t->source);

	if (fake_net.knobs.flip_at && at < t->count)
		((uint8_t *)t->bytes)[at] ^= 1;
	if (t->count && fake_chance(fake_net.knobs.flip)) {
		((uint8_t *)t->bytes)[fake_draw() % t->count] ^= 1 << fake_draw() % 8;
		fake_tell(WF_FAKE_FLIP, t->from_node, fake_other(ep, to));
	}
}

/*
 * Twice: first the other side looks for key, right and range, and on the way
 * back the bytes are taken.  Closing the key in between stops nothing; the reader's own
 * death does, for nobody waits for them any more.
 */
void fake_happen_read(struct thing *t)
{
	struct fake_ep *ep = fake_ep_by(t->from);
	struct fake_ep *to = read_from(t);

	if (fake_net.dead[t->from_node]) {
		fake_forget(t);
		return;
	}
	if (ep->type == FI_EP_RDM && to && fake_net.dead[fake_node_of(to)]) {
		/* As shm does: the read never ends, and an error comes that names nobody. */
		fake_cq_push(ep->cq, (struct cq_entry){ .err = -5 });
		fake_forget(t);
		return;
	}
	if (t->fails)
		fake_tell(WF_FAKE_FAIL, t->from_node, fake_other(ep, to));
	if (!to || t->fails || fake_is_broken(ep, to)) {
		fail_read(t, ep);
		return;
	}
	if (t->source) {
		memcpy(t->bytes, t->source, t->count);
		for (size_t i = 0; i < t->more_count; i++)
			memcpy(t->more[i].bytes, t->more[i].source, t->more[i].count);
		damage(t, ep, to);
		fake_cq_tell(ep, (struct cq_entry){ .context = t->context,
						    .flags = FI_RMA | FI_READ });
		fake_forget(t);
		return;
	}
	t->source = source_of(t, to);
	if (!t->source) {
		fail_read(t, ep);
		return;
	}
	t->due_ns += fake_net.knobs.delay_min_ns;
	fake_plan(t);
}

static bool overlap(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

bool wf_fake_is_open(const void *at, size_t bytes)
{
	WF_LIST_EACH(node, &fake_net.mrs) {
		const struct fake_mr *mr = WF_CONTAINER(node, struct fake_mr, every);

		if (mr->access & FI_REMOTE_READ && overlap(mr->base, mr->count, at, bytes))
			return true;
	}
	return false;
}

/* Does @t read any of the @bytes at @at? */
static bool touches(const struct thing *t, const void *at, size_t bytes)
{
	for (size_t i = 0; i < t->more_count; i++)
		if (overlap(t->more[i].source, t->more[i].count, at, bytes))
			return true;
	return overlap(t->source, t->count, at, bytes);
}

static bool reads(const struct wf_list *things, const void *at, size_t bytes)
{
	WF_LIST_EACH(node, things) {
		const struct thing *t = WF_CONTAINER(node, struct thing, node);

		if (t->kind == READ && t->source && !fake_net.dead[t->from_node] &&
		    read_from(t) && touches(t, at, bytes))
			return true;
	}
	return false;
}

bool wf_fake_is_read(const void *at, size_t bytes)
{
	return reads(&fake_net.things, at, bytes) || reads(&fake_net.stalled, at, bytes);
}

static bool is_registered(const struct fake_mr *mr)
{
	WF_LIST_EACH(node, &fake_net.mrs)
		if (WF_CONTAINER(node, struct fake_mr, every) == mr)
			return true;
	return false;
}

/* Where the NIC writes what is to come to @bytes. */
static void *destination(void *bytes, const void *desc)
{
	const struct fake_mr *mr = desc;

	MUST(!mr || is_registered(mr));
	return mr ? mr->bytes + ((uint8_t *)bytes - mr->base) : bytes;
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);
	ssize_t err = fake_may_post(ep, msg->addr, "fi_read");
	size_t count = 0;
	struct thing *t;

	MUST(flags == FI_COMPLETION);
	MUST(msg->iov_count >= 1 && msg->iov_count <= FAKE_SPANS);
	MUST(msg->rma_iov_count == msg->iov_count);
	for (size_t i = 0; i < msg->iov_count; i++) {
		MUST(msg->desc[i] || !(fake_net.knobs.mr_mode & FI_MR_LOCAL));
		MUST(msg->rma_iov[i].len == msg->msg_iov[i].iov_len);
		MUST(msg->rma_iov[i].key == msg->rma_iov[0].key);
		count += msg->msg_iov[i].iov_len;
	}
	MUST(count <= FAKE_READ_MAX);
	if (err || fake_is_gone(ep, msg->context, false))
		return err;
	t = fake_thing(READ, ep);
	t->due_ns = fake_later_ns();
	t->to_shared = fake_shared_id(ep, msg->addr);
	t->bytes = destination(msg->msg_iov[0].iov_base, msg->desc[0]);
	t->count = msg->msg_iov[0].iov_len;
	t->remote = msg->rma_iov[0].addr;
	t->key = msg->rma_iov[0].key;
	t->more_count = msg->iov_count - 1;
	for (size_t i = 0; i < t->more_count; i++)
		t->more[i] = (struct fake_span){
			.bytes = destination(msg->msg_iov[i + 1].iov_base, msg->desc[i + 1]),
			.count = msg->msg_iov[i + 1].iov_len,
			.remote = msg->rma_iov[i + 1].addr,
		};
	t->context = msg->context;
	t->fails = fake_chance(fake_net.knobs.fail);
	if (fake_chance(fake_net.knobs.stick)) {
		fake_tell(WF_FAKE_STICK, t->from_node,
			  fake_other(ep, fake_ep_by(t->to_shared ? t->to_shared : ep->peer)));
		t->due_ns = UINT64_MAX;
		wf_list_append(&fake_net.stalled, &t->node);
	} else {
		fake_plan(t);
	}
	return 0;
}

static ssize_t rma_read(struct fid_ep *fid, void *bytes, size_t count, void *desc, fi_addr_t to,
			uint64_t address, uint64_t key, void *context)
{
	const struct iovec into = { bytes, count };
	const struct fi_rma_iov from = { address, count, key };
	const struct fi_msg_rma msg = {
		.msg_iov = &into, .desc = &desc, .iov_count = 1, .addr = to,
		.rma_iov = &from, .rma_iov_count = 1, .context = context,
	};

	return rma_readmsg(fid, &msg, FI_COMPLETION);
}

struct fi_ops_rma fake_rma_ops = {
	.size = sizeof(struct fi_ops_rma), .read = rma_read, .readmsg = rma_readmsg,
};

/* Registrations. */

static int mr_close(struct fid *fid)
{
	struct fake_mr *mr = WF_CONTAINER(fid, struct fake_mr, fid.fid);

	wf_list_remove(&mr->node);
	wf_list_remove(&mr->every);
	mr->domain->users--;
	fake_net.objects--;
	free(mr);
	return fake_veto("fi_close");
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops), .close = mr_close, .bind = fake_no_bind,
	.control = fake_no_control,
};

/* Would @count bytes more pass the limit? */
static bool passes_limit(const struct fake_domain *domain, size_t count)
{
	uint64_t bytes = count;

	WF_LIST_EACH(node, &domain->mrs)
		bytes += WF_CONTAINER(node, struct fake_mr, node)->count;
	return fake_net.knobs.mr_bytes_max && bytes > fake_net.knobs.mr_bytes_max;
}

/* @bytes: where the NIC reaches what is at @base. */
static int add(struct fake_domain *domain, const void *base, uint8_t *bytes, size_t count,
	       uint64_t access, uint64_t key, void *context, struct fid_mr **out)
{
	struct fake_mr *mr;

	if (fake_chance(fake_net.knobs.refuse)) {
		fake_tell(WF_FAKE_REFUSE, domain->fabric->node, domain->fabric->node);
		return -FI_ENOMEM;
	}
	if (passes_limit(domain, count))
		return -FI_ENOMEM;
	if (fake_net.knobs.mr_mode & FI_MR_PROV_KEY)
		key = ++fake_net.next_key;
	else if (mr_by(domain, key))
		return -FI_ENOKEY;
	mr = fake_make(sizeof(*mr));
	mr->fid = (struct fid_mr){ { FI_CLASS_MR, context, &mr_fid_ops }, mr, key };
	mr->domain = domain;
	mr->domain->users++;
	mr->base = base;
	mr->bytes = bytes;
	mr->count = count;
	mr->access = access;
	wf_list_append(&domain->mrs, &mr->node);
	wf_list_append(&fake_net.mrs, &mr->every);
	fake_net.objects++;
	*out = &mr->fid;
	return 0;
}

static int mr_open(struct fid *fid, const void *base, size_t count, uint64_t access,
		   uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **out, void *context)
{
	struct fake_domain *domain = WF_CONTAINER(fid, struct fake_domain, fid.fid);
	int err = fake_veto("fi_mr_reg");

	MUST(!offset && !flags);
	return err ? err : add(domain, base, (uint8_t *)base, count, access, key, context, out);
}

/* Devices' memory.  It stays reachable after a registration's end, as a NIC may be late. */

struct window {
	struct wf_list node;
	void *at;
	size_t bytes;
};

void fake_close_windows(void)
{
	struct wf_list *node;

	while ((node = wf_list_first(&fake_net.windows))) {
		struct window *window = WF_CONTAINER(node, struct window, node);

		wf_list_remove(node);
		munmap(window->at, window->bytes);
		free(window);
	}
}

static void keep_window(void *at, size_t bytes)
{
	struct window *window = fake_make(sizeof(*window));

	window->at = at;
	window->bytes = bytes;
	wf_list_append(&fake_net.windows, &window->node);
}

#ifdef FI_MR_DMABUF
static int open_dma_buf(const struct fi_mr_dmabuf *buf, void **at)
{
	void *window = mmap(NULL, buf->offset + buf->len, PROT_READ | PROT_WRITE, MAP_SHARED,
			    buf->fd, 0);

	if (window == MAP_FAILED)
		return -FI_EINVAL;
	keep_window(window, buf->offset + buf->len);
	*at = (uint8_t *)window + buf->offset;
	return 0;
}
#endif

/* As nvidia-peermem does, from the address alone. */
static int open_address(const struct fi_mr_attr *attr, void **at)
{
	const struct iovec *iov = attr->mr_iov;
	int err = fake_net.knobs.window(iov->iov_base, iov->iov_len, at);

	if (!err)
		keep_window(*at, iov->iov_len);
	return err;
}

static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		   struct fid_mr **out)
{
	struct fake_domain *domain = WF_CONTAINER(fid, struct fake_domain, fid.fid);
	const void *base = NULL;
	size_t bytes = 0;
	int err = fake_veto("fi_mr_regattr");
	void *at = NULL;

	MUST(domain->device && attr->iov_count == 1);
	if (err)
		return err;
#ifdef FI_MR_DMABUF
	if (flags & FI_MR_DMABUF) {
		MUST(flags == FI_MR_DMABUF && attr->iface == FI_HMEM_SYSTEM);
		base = (uint8_t *)attr->dmabuf->base_addr + attr->dmabuf->offset;
		bytes = attr->dmabuf->len;
		err = open_dma_buf(attr->dmabuf, &at);
	}
#endif
	if (flags == FI_HMEM_DEVICE_ONLY) {
		MUST(attr->iface == FI_HMEM_CUDA);
		base = attr->mr_iov->iov_base;
		bytes = attr->mr_iov->iov_len;
		err = fake_net.knobs.window ? open_address(attr, &at) : -FI_ENOSYS;
	}
	return err ? err : add(domain, base, at, bytes, attr->access, attr->requested_key,
			       attr->context, out);
}

struct fi_ops_mr fake_mr_ops = {
	.size = sizeof(struct fi_ops_mr), .reg = mr_open, .regattr = regattr,
};
