/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

/* Endpoints. */

int fake_ep_getname(struct fid *fid, void *bytes, size_t *count)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid.fid);
	struct id_address address = { "fakefab", ep->id };
	int err = fake_veto("fi_getname");

	if (err)
		return err;
	MUST(*count >= sizeof(address));
	memcpy(bytes, &address, sizeof(address));
	*count = sizeof(address);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid.fid);
	int err = fake_veto("fi_ep_bind");

	(void)flags;
	if (err)
		return err;
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
	int err = fake_veto("fi_enable");

	(void)arg;
	if (err)
		return err;
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
				fake_cq_push(ep->cq, (struct cq_entry){ .context = t->context,
									.err = FI_ECANCELED });
			fake_forget(t);
		} else if (t->kind == TELL && t->from == ep->id) {
			fake_cq_push(ep->cq, t->told);
			fake_forget(t);
		} else if ((t->kind == REQUEST || t->kind == ACCEPTED) && t->from == ep->id) {
			fake_forget(t);
		}
	}
}

static int ep_close(struct fid *fid)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid.fid);
	struct wf_list *node;
	struct receive *r;

	fake_hang_up_later(ep);
	if (ep->enabled) {
		drop_things(ep, &fake_net.things);
		drop_things(ep, &fake_net.stalled);
	}
	while ((node = wf_list_first(&ep->waiting))) {
		fake_forget(WF_CONTAINER(node, struct thing, node));
		fake_net.waiting--;
	}
	while ((r = fake_take_receive(&ep->own)))
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
	fake_net.ep_by_id[ep->id - 1] = NULL;
	ep->domain->users--;
	fake_net.objects--;
	free(fake_net.closed);
	fake_net.closed = ep;
	return fake_veto("fi_close");
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops), .close = ep_close, .bind = ep_bind, .control = ep_control,
};

/* The next id is this endpoint's. */
static uint64_t add_id(struct fake_ep *ep)
{
	size_t count = fake_net.ep_ids + 1;

	fake_net.ep_by_id = realloc(fake_net.ep_by_id, count * sizeof(*fake_net.ep_by_id));
	MUST(fake_net.ep_by_id);
	fake_net.ep_by_id[fake_net.ep_ids++] = ep;
	return count;
}

int fake_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		 void *context)
{
	struct handle *handle = (void *)info->handle;
	int err = fake_veto("fi_endpoint");
	struct fake_ep *ep;

	if (err)
		return err;
	ep = fake_net.closed ? fake_net.closed : fake_make(sizeof(*ep));
	fake_net.closed = NULL;
	*ep = (struct fake_ep){ 0 };

	ep->fid = (struct fid_ep){
		.fid = { FI_CLASS_EP, context, &ep_fid_ops },
		.cm = &fake_ep_cm_ops,
		.msg = &fake_msg_ops,
		.rma = &fake_rma_ops,
	};
	ep->type = info->ep_attr->type;
	ep->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	ep->domain->users++;
	ep->id = add_id(ep);
	wf_list_init(&ep->own.posted);
	wf_list_init(&ep->waiting);
	wf_list_append(&fake_net.eps, &ep->node);
	if (handle) {
		ep->peer = handle->from;
		ep->state = CONNECTING;
		free(handle);
		info->handle = NULL;
	}
	fake_net.objects++;
	*out = &ep->fid;
	return 0;
}

static int srx_close(struct fid *fid)
{
	struct fake_srx *srx = WF_CONTAINER(fid, struct fake_srx, fid.fid);
	struct receive *r;

	MUST(!srx->users);
	while ((r = fake_take_receive(&srx->inbox)))
		free(r);
	srx->domain->users--;
	fake_net.objects--;
	free(srx);
	return fake_veto("fi_close");
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops), .close = srx_close, .bind = fake_no_bind,
	.control = fake_no_control,
};

int fake_srx_open(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **out,
		  void *context)
{
	struct fake_srx *srx;
	int err = fake_veto("fi_srx_context");

	(void)attr;
	if (err)
		return err;
	srx = fake_make(sizeof(*srx));
	srx->fid = (struct fid_ep){
		.fid = { FI_CLASS_SRX_CTX, context, &srx_fid_ops },
		.msg = &fake_srx_msg_ops,
	};
	srx->domain = WF_CONTAINER(fid, struct fake_domain, fid);
	srx->domain->users++;
	wf_list_init(&srx->inbox.posted);
	fake_net.objects++;
	*out = &srx->fid;
	return 0;
}
