/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

/* @ep's connection is no more: what it has under way fails, and it says so. */
void fake_hang_up(struct fake_ep *ep, int err)
{
	struct receive *half;
	bool was_up = ep->state == UP;

	if (ep->type != FI_EP_MSG || ep->state == DOWN)
		return;
	ep->state = DOWN;
	ep->peer = 0;
	WF_LIST_EACH(node, &fake_net.things) {
		struct thing *t = WF_CONTAINER(node, struct thing, node);

		if (t->from != ep->id || (t->kind != SEND && t->kind != READ))
			continue;
		if (!t->quiet)
			fake_cq_tell(ep, (struct cq_entry){ .context = t->context,
							    .err = FI_ECANCELED });
		fake_forget(t);
	}
	WF_LIST_EACH(node, &fake_net.stalled) {
		struct thing *t = WF_CONTAINER(node, struct thing, node);

		if (t->from != ep->id || t->kind != READ)
			continue;
		fake_cq_tell(ep, (struct cq_entry){ .context = t->context,
						    .err = FI_ECANCELED });
		fake_forget(t);
	}
	/* A message that was coming in has spoilt its receive. */
	half = was_up && fake_draw() % 2 ? fake_take_receive(fake_inbox_of(ep)) : NULL;
	if (half) {
		fake_cq_push(ep->cq, (struct cq_entry){ .context = half->context,
							.flags = FI_MSG | FI_RECV, .err = ENOTCONN });
		free(half);
	}
	if (err)
		fake_eq_push(ep->eq, (struct eq_entry){ .fid = &ep->fid.fid, .err = err });
	else
		fake_eq_push(ep->eq, (struct eq_entry){ .kind = FI_SHUTDOWN, .fid = &ep->fid.fid });
}

/* The other end hears of it after what was sent before. */
void fake_hang_up_later(struct fake_ep *ep)
{
	struct thing *t;

	if (ep->type != FI_EP_MSG || !ep->peer)
		return;
	t = fake_thing(HANGUP, ep);
	t->due_ns = WF_MAX(t->due_ns, ep->last_due_ns);
	fake_plan(t);
}

void fake_reset(struct fake_ep *ep)
{
	fake_hang_up_later(ep);
	fake_hang_up(ep, 0);
}

struct fake_pep *fake_pep_at(const struct sockaddr_in *at)
{
	WF_LIST_EACH(node, &fake_net.peps) {
		struct fake_pep *pep = WF_CONTAINER(node, struct fake_pep, node);

		if (pep->address.sin_port == at->sin_port &&
		    pep->address.sin_addr.s_addr == at->sin_addr.s_addr)
			return pep;
	}
	return NULL;
}

void fake_happen_request(struct thing *t)
{
	struct fake_pep *pep = fake_pep_at(&t->at);
	struct fake_ep *ep = fake_ep_by(t->from);
	struct eq_entry entry = { .kind = FI_CONNREQ, .data_bytes = t->count };
	struct handle *handle;

	if (!pep || !pep->listens || fake_net.dead[pep->fabric->node] ||
	    fake_has_way(&fake_net.broken, t->from_node, pep->fabric->node)) {
		fake_hang_up(ep, FI_ECONNREFUSED);
	} else {
		handle = fake_make(sizeof(*handle));
		handle->from = ep->id;
		entry.fid = &pep->fid.fid;
		entry.info = fake_new_info(fake_offer_of(FI_EP_MSG));
		entry.info->handle = &handle->fid;
		memcpy(entry.data, t->copy, t->count);
		fake_eq_push(pep->eq, entry);
	}
	fake_forget(t);
}

void fake_happen_accepted(struct thing *t)
{
	struct fake_ep *acceptor = fake_ep_by(t->from), *dialler = fake_ep_by(t->to);

	if (!dialler || dialler->state != CONNECTING || fake_net.dead[fake_node_of(dialler)]) {
		fake_hang_up(acceptor, 0);
	} else {
		acceptor->state = dialler->state = UP;
		acceptor->peer = dialler->id;
		dialler->peer = acceptor->id;
		fake_eq_push(acceptor->eq, (struct eq_entry){ .kind = FI_CONNECTED,
							      .fid = &acceptor->fid.fid });
		fake_eq_push(dialler->eq, (struct eq_entry){ .kind = FI_CONNECTED,
							     .fid = &dialler->fid.fid });
	}
	fake_forget(t);
}

/* Dial and accept. */

static int ep_connect(struct fid_ep *fid, const void *address, const void *data, size_t count)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);
	struct thing *t;
	int err = fake_veto("fi_connect");

	if (err)
		return err;
	MUST(ep->enabled && ep->state == IDLE && count <= FAKE_DATA_MAX);
	ep->state = CONNECTING;
	fake_net.dialled++;
	t = fake_thing(REQUEST, ep);
	memcpy(&t->at, address, sizeof(t->at));
	t->copy = fake_make(count + 1);
	t->count = count;
	if (count)
		memcpy(t->copy, data, count);
	fake_plan(t);
	return 0;
}

static int ep_accept(struct fid_ep *fid, const void *data, size_t count)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);
	struct fake_ep *dialler;
	struct thing *t;
	int err = fake_veto("fi_accept");

	(void)data, (void)count;
	if (err)
		return err;
	MUST(ep->enabled && ep->state == CONNECTING && ep->peer);
	t = fake_thing(ACCEPTED, ep);
	dialler = fake_ep_by(ep->peer);
	t->to_node = dialler ? fake_node_of(dialler) : t->from_node;
	fake_plan(t);
	return 0;
}

struct fi_ops_cm fake_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm), .getname = fake_ep_getname,
	.connect = ep_connect, .accept = ep_accept,
};

/* Passive endpoints. */

static int pep_getname(struct fid *fid, void *bytes, size_t *count)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid.fid);
	int err = fake_veto("fi_getname");

	if (err)
		return err;
	MUST(*count >= sizeof(pep->address));
	memcpy(bytes, &pep->address, sizeof(pep->address));
	*count = sizeof(pep->address);
	return 0;
}

static int pep_listen(struct fid_pep *fid)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid);
	int err = fake_veto("fi_listen");

	if (err)
		return err;
	MUST(pep->eq);
	pep->listens = true;
	return 0;
}

static int pep_reject(struct fid_pep *fid, fid_t id, const void *data, size_t count)
{
	struct fake_pep *pep = WF_CONTAINER(fid, struct fake_pep, fid);
	struct handle *handle = (void *)id;
	struct thing *t;
	int err = fake_veto("fi_reject");

	(void)data, (void)count;
	if (err) {
		free(handle);
		return err;
	}
	t = fake_make(sizeof(*t));
	t->kind = REFUSED;
	t->due_ns = fake_later_ns();
	t->from_node = t->to_node = pep->fabric->node;
	t->to = handle->from;
	fake_plan(t);
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
	int err = fake_veto("fi_pep_bind");

	(void)flags;
	if (err)
		return err;
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
	fake_net.objects--;
	free(pep);
	return fake_veto("fi_close");
}

static struct fi_ops pep_fid_ops = {
	.size = sizeof(struct fi_ops), .close = pep_close, .bind = pep_bind,
	.control = fake_no_control,
};

int fake_pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out,
		  void *context)
{
	struct sockaddr_in address;
	struct fake_pep *pep;
	int err = fake_veto("fi_passive_ep");

	if (err)
		return err;
	memcpy(&address, info->src_addr, sizeof(address));
	if (!address.sin_port)
		do {
			address.sin_port = htons(fake_net.next_port++);
		} while (!address.sin_port || fake_pep_at(&address));
	else if (fake_pep_at(&address))
		return -FI_EADDRINUSE;
	pep = fake_make(sizeof(*pep));
	pep->fid = (struct fid_pep){
		.fid = { FI_CLASS_PEP, context, &pep_fid_ops },
		.cm = &pep_cm_ops,
	};
	pep->fabric = WF_CONTAINER(fid, struct fake_fabric, fid);
	pep->fabric->users++;
	pep->address = address;
	wf_list_append(&fake_net.peps, &pep->node);
	fake_net.objects++;
	*out = &pep->fid;
	return 0;
}
