/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

struct inbox *fake_inbox_of(struct fake_ep *ep)
{
	return ep->srx ? &ep->srx->inbox : &ep->own;
}

struct receive *fake_take_receive(struct inbox *inbox)
{
	struct wf_list *node = wf_list_pop(&inbox->posted);

	if (!node)
		return NULL;
	inbox->count--;
	return WF_CONTAINER(node, struct receive, node);
}

/* Messages meet receives. */

static void meet(struct fake_ep *ep)
{
	while (!wf_list_empty(&ep->waiting) && ep->enabled) {
		struct thing *t = WF_CONTAINER(ep->waiting.next, struct thing, node);
		struct receive *r = fake_take_receive(fake_inbox_of(ep));

		if (!r)
			return;
		fake_net.waiting--;
		if (t->count > r->count) {
			fake_cq_tell(ep, (struct cq_entry){ .context = r->context,
							    .flags = FI_MSG | FI_RECV, .err = FI_ETRUNC });
			fake_reset(ep);
		} else {
			memcpy(r->bytes, t->copy, t->count);
			if (t->count > 128 && fake_chance(fake_net.knobs.flip_end))
				((uint8_t *)r->bytes)[t->count - 1] ^= 1;
			if (t->count && fake_chance(fake_net.knobs.tamper)) {
				((uint8_t *)r->bytes)[fake_draw() % t->count] ^= 1 << fake_draw() % 8;
				fake_tell(WF_FAKE_TAMPER, t->from_node, t->to_node);
			}
			fake_net.arrived++;
			fake_cq_tell(ep, (struct cq_entry){ .context = r->context,
							    .flags = FI_MSG | FI_RECV, .len = t->count });
		}
		free(r);
		fake_forget(t);
	}
}

/* The bytes of @t leave for @to. */
static void send_off(struct thing *t, struct fake_ep *ep, struct fake_ep *to)
{
	if (fake_net.knobs.sent)
		fake_net.knobs.sent(t->copy, t->count);
	t->kind = ARRIVE;
	t->to = to->id;
	t->to_node = fake_node_of(to);
	t->due_ns = fake_later_ns();
	if (fake_chance(fake_net.knobs.slow)) {
		t->due_ns += fake_net.knobs.slow_ns;
		fake_tell(WF_FAKE_SLOW, t->from_node, t->to_node);
	}
	if (t->due_ns < ep->last_due_ns && ep->type == FI_EP_RDM && fake_net.knobs.reorder)
		fake_tell(WF_FAKE_REORDER, t->from_node, t->to_node);
	else
		t->due_ns = WF_MAX(t->due_ns, ep->last_due_ns);
	ep->last_due_ns = t->due_ns;
	if (fake_net.held.count && fake_has_way(&fake_net.held, t->from_node, t->to_node))
		fake_tell(WF_FAKE_HOLD, t->from_node, t->to_node);
	fake_plan(t);
}

void fake_happen_send(struct thing *t)
{
	struct fake_ep *ep = fake_ep_by(t->from), *to;
	bool again;

	to = fake_ep_by(t->to_shared ? t->to_shared : ep->peer);
	if (t->fails || fake_is_broken(ep, to)) {
		if (t->fails)
			fake_tell(WF_FAKE_FAIL, t->from_node, fake_other(ep, to));
		if (!t->quiet)
			fake_cq_tell(ep, (struct cq_entry){ .context = t->context, .err = EIO });
		fake_forget(t);
		fake_reset(ep);
		return;
	}
	/* Only now are the bytes taken: whoever reused them too early has spoilt them. */
	if (!t->copy) {
		t->copy = fake_make(t->count + 1);
		memcpy(t->copy, t->bytes, t->count);
	}
	again = t->again && to && !t->lost;
	if (!t->quiet)
		fake_cq_tell(ep, (struct cq_entry){ .context = t->context,
						    .flags = FI_MSG | FI_SEND,
						    .err = again ? EIO : 0 });
	if (t->lost)
		fake_tell(WF_FAKE_LOSE, t->from_node, fake_other(ep, to));
	if (!to || t->lost) {
		fake_forget(t);
		return;
	}
	send_off(t, ep, to);
	if (again) {
		fake_tell(WF_FAKE_AGAIN, fake_node_of(ep), fake_node_of(to));
		fake_reset(ep);
	}
}

void fake_happen_arrive(struct thing *t)
{
	struct fake_ep *to = fake_ep_by(t->to);

	if (!to || fake_net.dead[t->to_node] || to->state == DOWN) {
		fake_forget(t);
		return;
	}
	wf_list_append(&to->waiting, &t->node);
	fake_net.waiting++;
	meet(to);
	if (!wf_list_empty(&to->waiting))
		fake_net.overrun++;
}

/* Posts. */

/* Who is at the other end; the node itself if nobody is. */
unsigned fake_other(const struct fake_ep *ep, const struct fake_ep *to)
{
	return fake_node_of(to ? to : ep);
}

bool fake_is_broken(const struct fake_ep *ep, const struct fake_ep *to)
{
	return to && fake_net.broken.count &&
	       fake_has_way(&fake_net.broken, fake_node_of(ep), fake_node_of(to));
}

ssize_t fake_may_post(const struct fake_ep *ep, fi_addr_t to, const char *call)
{
	MUST(ep->enabled);
	MUST(ep->type == FI_EP_RDM || ep->state == UP || ep->state == DOWN);
	if (!fake_chance(fake_net.knobs.eagain))
		return fake_veto(call);
	fake_tell(WF_FAKE_EAGAIN, fake_node_of(ep),
		  fake_other(ep, fake_ep_by(ep->peer ? ep->peer : fake_shared_id(ep, to))));
	return -FI_EAGAIN;
}

/* On a connection that is gone a post is taken, and fails. */
bool fake_is_gone(struct fake_ep *ep, void *context, bool quiet)
{
	if (ep->type == FI_EP_RDM || ep->state == UP)
		return false;
	if (!quiet)
		fake_cq_tell(ep, (struct cq_entry){ .context = context, .err = ENOTCONN });
	return true;
}

uint64_t fake_shared_id(const struct fake_ep *ep, fi_addr_t to)
{
	if (ep->type == FI_EP_MSG)
		return 0;
	MUST(to < ep->av->count && ep->av->ids[to]);
	return ep->av->ids[to];
}

static ssize_t post_send(struct fake_ep *ep, const void *bytes, size_t count, fi_addr_t to,
			 void *context, bool quiet)
{
	ssize_t err = fake_may_post(ep, to, quiet ? "fi_inject" : "fi_send");
	struct thing *t;

	if (err || fake_is_gone(ep, context, quiet))
		return err;
	t = fake_thing(SEND, ep);
	t->due_ns = wf_clock_now() + fake_net.knobs.send_ns; /* the delay is of the way */
	t->to_shared = fake_shared_id(ep, to);
	t->bytes = (void *)bytes;
	t->count = count;
	t->context = context;
	t->quiet = quiet;
	t->fails = fake_chance(fake_net.knobs.fail);
	t->lost = fake_chance(fake_net.knobs.lose);
	t->again = fake_chance(fake_net.knobs.again);
	if (quiet) {
		t->copy = fake_make(count + 1);
		memcpy(t->copy, bytes, count);
	}
	fake_net.sent++;
	fake_plan(t);
	return 0;
}

static ssize_t msg_send(struct fid_ep *fid, const void *bytes, size_t count, void *desc,
			fi_addr_t to, void *context)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);

	MUST(desc || !(fake_net.knobs.mr_mode & FI_MR_LOCAL));
	return post_send(ep, bytes, count, to, context, false);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *bytes, size_t count, fi_addr_t to)
{
	struct fake_ep *ep = WF_CONTAINER(fid, struct fake_ep, fid);

	MUST(count <= fake_net.knobs.inject_bytes); /* some providers lose it in silence */
	return post_send(ep, bytes, count, to, NULL, true);
}

static ssize_t post_receive(struct inbox *inbox, void *bytes, size_t count, void *desc,
			void *context)
{
	struct receive *r;
	int err;

	MUST(desc || !(fake_net.knobs.mr_mode & FI_MR_LOCAL));
	if (fake_chance(fake_net.knobs.eagain))
		return -FI_EAGAIN;
	if (inbox->count >= fake_net.knobs.slots_max)
		return -FI_ENOMEM;
	err = fake_veto("fi_recv");
	if (err)
		return err;
	r = fake_make(sizeof(*r));
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
	if (err || !fake_net.waiting)
		return err;
	WF_LIST_EACH(node, &fake_net.eps) {
		struct fake_ep *ep = WF_CONTAINER(node, struct fake_ep, node);

		if (ep->srx == srx)
			meet(ep);
	}
	return 0;
}

struct fi_ops_msg fake_msg_ops = {
	.size = sizeof(struct fi_ops_msg), .recv = msg_recv, .send = msg_send, .inject = msg_inject,
};
struct fi_ops_msg fake_srx_msg_ops = { .size = sizeof(struct fi_ops_msg), .recv = srx_recv };
