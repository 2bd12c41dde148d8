/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

int fake_no_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS; /* so rails have no descriptor here and are polled */
}

int fake_no_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid, (void)to, (void)flags;
	return -FI_ENOSYS;
}

/* Domain and fabric. */

static int domain_close(struct fid *fid)
{
	struct fake_domain *domain = WF_CONTAINER(fid, struct fake_domain, fid.fid);

	MUST(!domain->users);
	domain->fabric->users--;
	fake_net.objects--;
	free(domain);
	return fake_veto("fi_close");
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops), .close = domain_close, .bind = fake_no_bind,
	.control = fake_no_control,
};
static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain), .av_open = fake_av_open, .cq_open = fake_cq_open,
	.endpoint = fake_ep_open, .srx_ctx = fake_srx_open,
};

static int domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	struct fake_domain *domain;
	int err = fake_veto("fi_domain");

	if (err)
		return err;
	domain = fake_make(sizeof(*domain));
	domain->fid = (struct fid_domain){
		.fid = { FI_CLASS_DOMAIN, context, &domain_fid_ops },
		.ops = &domain_ops,
		.mr = &fake_mr_ops,
	};
	domain->fabric = WF_CONTAINER(fid, struct fake_fabric, fid);
	domain->fabric->users++;
	domain->number = fake_offer_number(info->domain_attr->name);
	domain->device = info->caps & FI_HMEM;
	wf_list_init(&domain->mrs);
	fake_net.objects++;
	*out = &domain->fid;
	return 0;
}

static int fabric_close(struct fid *fid)
{
	struct fake_fabric *fabric = WF_CONTAINER(fid, struct fake_fabric, fid.fid);

	MUST(!fabric->users);
	fake_net.objects--;
	free(fabric);
	return fake_veto("fi_close");
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops), .close = fabric_close, .bind = fake_no_bind,
	.control = fake_no_control,
};
static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric), .domain = domain_open, .passive_ep = fake_pep_open,
	.eq_open = fake_eq_open,
};

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct fake_fabric *fabric;
	int err = fake_veto("fi_fabric");

	(void)attr;
	if (err)
		return err;
	fabric = fake_make(sizeof(*fabric));
	fabric->fid = (struct fid_fabric){
		.fid = { FI_CLASS_FABRIC, context, &fabric_fid_ops },
		.ops = &fabric_ops,
	};
	fabric->node = fake_net.node;
	fake_net.objects++;
	*out = &fabric->fid;
	return 0;
}

/* What tests call. */

void wf_fake_open(const struct wf_fake *fake)
{
	memset(&fake_net, 0, sizeof(fake_net));
	fake_net.knobs = *fake;
	fake_net.random = fake->seed;
	fake_net.next_port = 20000;
	if (!fake_net.knobs.inject_bytes)
		fake_net.knobs.inject_bytes = 64;
	if (!fake_net.knobs.slots_max)
		fake_net.knobs.slots_max = 1024;
	MUST(fake_net.knobs.delay_min_ns <= fake_net.knobs.delay_max_ns);
	wf_list_init(&fake_net.things);
	wf_list_init(&fake_net.stalled);
	wf_list_init(&fake_net.eps);
	wf_list_init(&fake_net.peps);
	wf_list_init(&fake_net.mrs);
	wf_list_init(&fake_net.windows);
	/* The shared rail is efa's, which serves by name only. */
	setenv("FI_PROVIDER", "shm,verbs,efa,tcp,tcp;ofi_rxm,warp", 0);
	wf_fake_offer(FI_EP_MSG, "tcp", "lo", "127.0.0.1");
	wf_fake_offer(FI_EP_RDM, "efa", "fake0", NULL);
}

struct wf_fake *wf_fake_knobs(void)
{
	return &fake_net.knobs;
}

size_t wf_fake_close(void)
{
	struct wf_list *node;

	while ((node = wf_list_first(&fake_net.things)) ||
	       (node = wf_list_first(&fake_net.stalled)))
		fake_forget(WF_CONTAINER(node, struct thing, node));
	fake_close_windows();
	free(fake_net.closed);
	fake_net.closed = NULL;
	free(fake_net.ep_by_id);
	fake_net.ep_by_id = NULL;
	fake_net.ep_ids = 0;
	return fake_net.objects;
}

void wf_fake_enter(unsigned node)
{
	MUST(node < FAKE_NODES);
	fake_net.node = node;
}

void wf_fake_kill(unsigned node)
{
	fake_progress();
	fake_net.dead[node] = true;
	fake_net.frozen[node] = false;
	WF_LIST_EACH(at, &fake_net.eps) {
		struct fake_ep *ep = WF_CONTAINER(at, struct fake_ep, node);

		if (fake_node_of(ep) == node)
			fake_reset(ep);
	}
	fake_unstall();
}

void wf_fake_freeze(unsigned node, bool frozen)
{
	fake_progress();
	fake_net.frozen[node] = frozen;
	if (!frozen)
		fake_unstall();
}

static void set_way(struct fake_ways *ways, unsigned from, unsigned to, bool on)
{
	fake_progress();
	if (on) {
		MUST(ways->count < WF_COUNT(ways->all));
		ways->all[ways->count].from = from;
		ways->all[ways->count++].to = to;
		return;
	}
	for (size_t i = 0; i < ways->count; i++)
		if (ways->all[i].from == from && ways->all[i].to == to)
			ways->all[i--] = ways->all[--ways->count];
	fake_unstall();
}

void wf_fake_cut(unsigned a, unsigned b, bool cut)
{
	set_way(&fake_net.held, a, b, cut);
	set_way(&fake_net.held, b, a, cut);
}

void wf_fake_cut_domain(const char *domain)
{
	fake_net.cut_domain = domain ? fake_offer_number(domain) : 0;
	fake_unstall();
}

void wf_fake_break_domain(const char *domain)
{
	unsigned number = fake_offer_number(domain);

	WF_LIST_EACH(at, &fake_net.eps) {
		struct fake_ep *ep = WF_CONTAINER(at, struct fake_ep, node);

		if (ep->domain->number == number && ep->state == UP)
			fake_reset(ep);
	}
}

void wf_fake_hold(unsigned from, unsigned to, bool hold)
{
	set_way(&fake_net.held, from, to, hold);
}

void wf_fake_break(unsigned a, unsigned b, bool broken)
{
	set_way(&fake_net.broken, a, b, broken);
	set_way(&fake_net.broken, b, a, broken);
	if (!broken)
		return;
	fake_tell(WF_FAKE_BREAK, a, b);
	WF_LIST_EACH(at, &fake_net.eps) {
		struct fake_ep *ep = WF_CONTAINER(at, struct fake_ep, node);
		struct fake_ep *peer = ep->peer ? fake_ep_by(ep->peer) : NULL;

		if (peer && ((fake_node_of(ep) == a && fake_node_of(peer) == b) ||
			     (fake_node_of(ep) == b && fake_node_of(peer) == a)))
			fake_reset(ep);
	}
}

uint64_t wf_fake_next_ns(void)
{
	const struct wf_list *first = fake_net.things.next;

	return first == &fake_net.things ? UINT64_MAX :
					   WF_CONTAINER(first, struct thing, node)->due_ns;
}

uint64_t wf_fake_sent(void)
{
	return fake_net.sent;
}

uint64_t wf_fake_arrived(void)
{
	return fake_net.arrived;
}

uint64_t wf_fake_dialled(void)
{
	return fake_net.dialled;
}

uint64_t wf_fake_overrun(void)
{
	return fake_net.overrun;
}
