/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

/* What comes into queues. */

void fake_cq_push(struct fake_cq *cq, struct cq_entry entry)
{
	struct cq_entry *e = fake_make(sizeof(*e));

	*e = entry;
	wf_list_append(&cq->entries, &e->node);
	fake_net.queue_overruns += ++cq->count > cq->size;
}

uint64_t wf_fake_queue_overruns(void)
{
	return fake_net.queue_overruns;
}

/* Tell @ep's queue, as badly as the knobs say. */
void fake_cq_tell(struct fake_ep *ep, struct cq_entry entry)
{
	struct thing *t;

	fake_cq_push(ep->cq, entry);
	if (fake_chance(fake_net.knobs.nobody)) {
		fake_tell(WF_FAKE_NOBODY, fake_node_of(ep), fake_node_of(ep));
		fake_cq_push(ep->cq, (struct cq_entry){ .err = FI_ECANCELED });
	}
	if (fake_chance(fake_net.knobs.twice)) {
		fake_tell(WF_FAKE_TWICE, fake_node_of(ep), fake_node_of(ep));
		t = fake_thing(TELL, ep);
		t->told = entry;
		fake_plan(t);
	}
}

void fake_eq_push(struct fake_eq *eq, struct eq_entry entry)
{
	struct eq_entry *e = fake_make(sizeof(*e));

	*e = entry;
	wf_list_append(&eq->entries, &e->node);
}

/* Completion queues. */

/* The first that is a receive, if any. */
static struct cq_entry *first_receive(struct fake_cq *cq)
{
	WF_LIST_EACH(node, &cq->entries) {
		struct cq_entry *e = WF_CONTAINER(node, struct cq_entry, node);

		if (e->flags & FI_RECV)
			return e;
	}
	return NULL;
}

/* The entry that comes out next; a connection's receives keep their order. */
static struct cq_entry *next_entry(struct fake_cq *cq)
{
	struct cq_entry *first = WF_CONTAINER(cq->entries.next, struct cq_entry, node), *picked = first;
	size_t count = 0, pick;

	if (wf_list_empty(&cq->entries))
		return NULL;
	if (!fake_net.knobs.shuffle || first->node.next == &cq->entries)
		return first;
	WF_LIST_EACH(node, &cq->entries)
		count++;
	for (pick = fake_draw() % count; pick; pick--)
		picked = WF_CONTAINER(picked->node.next, struct cq_entry, node);
	if (picked->flags & FI_RECV)
		picked = first_receive(cq);
	if (picked != first)
		fake_tell(WF_FAKE_SHUFFLE, cq->domain->fabric->node, cq->domain->fabric->node);
	return picked;
}

static ssize_t cq_read(struct fid_cq *fid, void *buffer, size_t count)
{
	struct fake_cq *cq = WF_CONTAINER(fid, struct fake_cq, fid);
	struct fi_cq_msg_entry *out = buffer;
	int err;
	size_t n;

	MUST(!fake_net.frozen[cq->domain->fabric->node]);
	fake_progress();
	err = wf_list_empty(&cq->entries) ? -FI_EAGAIN : fake_veto("fi_cq_read");
	if (err)
		return err;
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
		cq->count--;
		free(e);
	}
	return (ssize_t)n;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out, uint64_t flags)
{
	struct fake_cq *cq = WF_CONTAINER(fid, struct fake_cq, fid);
	struct cq_entry *e = WF_CONTAINER(cq->entries.next, struct cq_entry, node);
	int err;

	(void)flags;
	if (wf_list_empty(&cq->entries) || !e->err)
		return -FI_EAGAIN;
	err = fake_veto("fi_cq_readerr");
	if (err)
		return err;
	*out = (struct fi_cq_err_entry){ .op_context = e->context, .flags = e->flags,
					 .err = e->err };
	wf_list_remove(&e->node);
	cq->count--;
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
	fake_net.objects--;
	free(cq);
	return fake_veto("fi_close");
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops), .close = cq_close, .bind = fake_no_bind,
	.control = fake_no_control,
};
static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq), .read = cq_read, .readerr = cq_readerr,
};

int fake_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out,
		 void *context)
{
	struct fake_cq *cq;
	int err = fake_veto("fi_cq_open");

	if (err)
		return err;
	cq = fake_make(sizeof(*cq));
	MUST(attr->format == FI_CQ_FORMAT_MSG);
	cq->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	cq->domain->users++;
	cq->size = attr->size;
	cq->fid = (struct fid_cq){ { FI_CLASS_CQ, context, &cq_fid_ops }, &cq_ops };
	wf_list_init(&cq->entries);
	fake_net.objects++;
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
	int err;

	(void)flags;
	MUST(!fake_net.frozen[eq->fabric->node]);
	fake_progress();
	if (wf_list_empty(&eq->entries))
		return -FI_EAGAIN;
	err = fake_veto("fi_eq_read");
	if (err)
		return err;
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
	int err;

	(void)flags;
	if (wf_list_empty(&eq->entries) || e->kind)
		return -FI_EAGAIN;
	err = fake_veto("fi_eq_readerr");
	if (err)
		return err;
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
	fake_net.objects--;
	free(eq);
	return fake_veto("fi_close");
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops), .close = eq_close, .bind = fake_no_bind,
	.control = fake_no_control,
};
static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq), .read = eq_read, .readerr = eq_readerr,
};

int fake_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out,
		 void *context)
{
	struct fake_eq *eq;
	int err = fake_veto("fi_eq_open");

	(void)attr;
	if (err)
		return err;
	eq = fake_make(sizeof(*eq));
	eq->fabric = WF_CONTAINER(fid, struct fake_fabric, fid);
	eq->fabric->users++;
	eq->fid = (struct fid_eq){ { FI_CLASS_EQ, context, &eq_fid_ops }, &eq_ops };
	wf_list_init(&eq->entries);
	fake_net.objects++;
	*out = &eq->fid;
	return 0;
}
