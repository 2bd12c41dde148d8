/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/transfer.h"

#include <errno.h>

#include "transfer/outgoing.h"
#include "transfer/pull.h"
#include "transfer/stage.h"

#define OFFERS_MAX (1u << 20) /* outstanding offers of a node; each also holds a tensor */
#define PULLS_MAX (1u << 20)

int wf_transfer_init(struct wf_transfer *t, struct wf_engine *engine)
{
	*t = (struct wf_transfer){ .engine = engine };
	wf_table_init(&t->outgoing, OFFERS_MAX);
	wf_table_init(&t->pulls, PULLS_MAX);
	wf_freelist_init(&t->records, sizeof(struct wf_outgoing_record) + WF_OUTGOING_HEAD_BYTES, 0,
			 0);
	wf_list_init(&t->stages);
	wf_list_init(&t->asked);
	wf_imports_init(&t->imports);
	wf_pace_init(&t->pace, &engine->loop);
	wf_parcels_init(&t->parcels);
	wf_sender_sums_init(&t->summers, &engine->loop, engine->options.helper);
	return wf_view_init(&t->views, engine);
}

void wf_transfer_fini(struct wf_transfer *t)
{
	wf_sender_sums_fini(&t->summers);
	wf_timer_stop(&t->engine->loop.timers, &t->trim);
	wf_kinds_fini(&t->kinds);
	wf_imports_fini(&t->imports);
	wf_view_fini(&t->views);
	wf_pace_fini(&t->pace);
	wf_parcels_fini(&t->parcels);
	wf_table_fini(&t->outgoing);
	wf_table_fini(&t->pulls);
	wf_freelist_fini(&t->records);
}

/*
 * Find an offer of ours that the peer names: it must belong to that peer, and have been told to
 * it.
 */
static struct wf_outgoing *find_outgoing(struct wf_transfer *t, struct wf_link *link,
					 uint64_t offer)
{
	struct wf_outgoing *p = wf_table_get(&t->outgoing, offer);

	return p && wf_link_real(p->link) == link && p->state != WF_OUTGOING_QUEUED ? p : NULL;
}

/* Find a pull of ours that the peer names: it must read from that peer. */
static struct wf_pull *find_pull(struct wf_transfer *t, const struct wf_link *link, uint64_t id)
{
	struct wf_pull *pull = wf_table_get(&t->pulls, id);

	return pull && pull->link == link ? pull : NULL;
}

static int take_offer(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_record_offer offer;
	struct wf_pull *pull;

	if (wf_record_offer_get(record->bytes, record->count, &offer))
		return -EBADMSG;
	pull = find_pull(t, link, offer.pull);
	if (pull)
		wf_pull_again(pull, &offer.body);
	return 0;
}

static int take_sums(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_record_sums sums;
	struct wf_pull *pull;

	if (wf_record_sums_get(record->bytes, record->count, &sums))
		return -EBADMSG;
	pull = find_pull(t, link, sums.pull);
	return pull ? wf_pull_told(pull, &sums) : 0;
}

static int take_lane(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_record_lane lane;
	struct wf_pull *pull;

	if (wf_record_lane_get(record->bytes, record->count, &lane))
		return -EBADMSG;
	pull = find_pull(t, link, lane.pull);
	if (pull)
		wf_pull_lane(pull, &lane);
	return 0;
}

static int take_filled(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_record_small small;
	struct wf_pull *pull;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	pull = find_pull(t, link, small.id);
	return pull ? wf_pull_filled(pull, small.other) : 0;
}

static int take_seal(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_parcel_ask ask;
	struct wf_outgoing *p;

	if (wf_parcel_ask_get(record->bytes, record->count, &ask))
		return -EBADMSG;
	p = find_outgoing(t, link, ask.offer);
	if (!p)
		return wf_parcels_refuse(&t->parcels, link, &ask, WEFT_NOT_FOUND);
	return wf_outgoing_seal(p, &ask);
}

static int take_sealed(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_parcel_answer answer;

	if (wf_parcel_answer_get(record->bytes, record->count, &answer))
		return -EBADMSG;
	return wf_fetch_answered(link, find_pull(t, link, answer.pull), &answer);
}

static int take_opened(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_record_small small;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	wf_parcels_opened(&t->parcels, link, small.id, small.other);
	return 0;
}

static int take_withdraw(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_record_small small;

	(void)ctx;
	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	return wf_answers_withdraw(link, small.id);
}

/* The end of a view is seen elsewhere, too; RELEASED says where to look, and when. */
static int take_released(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_shm_export *shm_export = link->engine->shm_export;
	struct wf_record_small small;

	(void)ctx;
	if (wf_record_small_get(record->bytes, record->count, &small) || small.other > UINT32_MAX)
		return -EBADMSG;
	if (shm_export)
		wf_shm_export_released(shm_export, small.id, (uint32_t)small.other);
	return 0;
}

/* Take a record about an offer of ours. */
static int take_about_offer(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_transfer *t = ctx;
	struct wf_record_small small;
	struct wf_outgoing *p;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	p = find_outgoing(t, link, small.id);
	if (!p) {
		/* The outgoing body ended in the meantime: by its deadline, say. */
		wf_counters_add(&t->engine->counters.late_dropped, 1);
		if (record->type != WF_RECORD_RESUME)
			return 0;
		/* A reader that hears so need not wait for its deadline. */
		return wf_outgoing_tell(link, 0, &(struct wf_record_offer){ .pull = small.other });
	}
	switch (record->type) {
	case WF_RECORD_PULLED:
		wf_outgoing_pulled(p, small.status, (uint32_t)WF_MIN(small.other, UINT32_MAX));
		break;
	case WF_RECORD_RESUME:
		return wf_outgoing_resume(p, small.other, small.status);
	case WF_RECORD_SPREAD:
		return wf_outgoing_spread(p, small.other);
	case WF_RECORD_TAKEN:
		return wf_outgoing_taken(p, small.other);
	case WF_RECORD_CHECK:
		return wf_outgoing_check(p, small.other);
	default:
		wf_outgoing_withdrawn(p);
		break;
	}
	return 0;
}

void wf_transfer_route(struct wf_transfer *t, struct wf_routes *routes)
{
	static const enum wf_record_type about_offers[] = {
		WF_RECORD_PULLED, WF_RECORD_RESUME, WF_RECORD_SPREAD,
		WF_RECORD_TAKEN, WF_RECORD_CHECK, WF_RECORD_WITHDRAWN,
	};

	for (size_t i = 0; i < WF_COUNT(about_offers); i++)
		wf_route_set(routes, about_offers[i], take_about_offer, t);
	wf_route_set(routes, WF_RECORD_OFFER, take_offer, t);
	wf_route_set(routes, WF_RECORD_SUMS, take_sums, t);
	wf_route_set(routes, WF_RECORD_LANE, take_lane, t);
	wf_route_set(routes, WF_RECORD_FILLED, take_filled, t);
	wf_route_set(routes, WF_RECORD_SEAL, take_seal, t);
	wf_route_set(routes, WF_RECORD_SEALED, take_sealed, t);
	wf_route_set(routes, WF_RECORD_OPENED, take_opened, t);
	wf_route_set(routes, WF_RECORD_WITHDRAW, take_withdraw, t);
	wf_route_set(routes, WF_RECORD_RELEASED, take_released, t);
}

static struct wf_outgoing *first_waiting(const struct wf_link *link)
{
	struct wf_list *node = wf_list_first(&link->work[WF_ABOVE_OUTGOING_WAITING]);

	return node ? WF_CONTAINER(node, struct wf_outgoing, node) : NULL;
}

void wf_transfer_start(struct wf_link *link)
{
	struct wf_outgoing *p;

	while (wf_link_caps(link) && (p = first_waiting(link)))
		if (!wf_outgoing_up(p))
			return;
}

void wf_transfer_up(struct wf_link *link)
{
	wf_transfer_start(link);
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_PULLS])
		wf_pull_up(WF_CONTAINER(node, struct wf_pull, node));
}

void wf_transfer_paused(struct wf_link *link)
{
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_OUTGOING])
		wf_outgoing_paused(WF_CONTAINER(node, struct wf_outgoing, node));
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_PULLS])
		wf_pull_paused(WF_CONTAINER(node, struct wf_pull, node));
}

void wf_transfer_lane(const struct wf_lane *lane, bool open)
{
	/*
	 * All pulls stay in the list meanwhile: one that goes on inside may find another lane
	 * closed, of which all are to hear before it is freed.  None ends here.
	 */
	WF_LIST_EACH(node, &lane->link->work[WF_ABOVE_PULLS]) {
		struct wf_pull *pull = WF_CONTAINER(node, struct wf_pull, node);

		if (open)
			wf_pull_lane_up(pull);
		else
			wf_pull_lane_closed(pull, lane);
	}
}

void wf_transfer_down(struct wf_transfer *t, struct wf_link *link, const struct wf_error *e)
{
	wf_parcels_drop(&t->parcels, link);
	wf_answers_lost(link, e);
	/* Pulls of a loan have no answer of their own, and another of them may have given it up. */
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_PULLS])
		wf_pull_lost(WF_CONTAINER(node, struct wf_pull, node), e);
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_OUTGOING])
		wf_outgoing_fail(WF_CONTAINER(node, struct wf_outgoing, node), e);
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_OUTGOING_WAITING])
		wf_outgoing_fail(WF_CONTAINER(node, struct wf_outgoing, node), e);
}

/* Find an outgoing body that waits for a peer which was never met. */
static struct wf_outgoing *find_hopeless(const struct wf_transfer *t)
{
	WF_LIST_EACH(node, &t->engine->link_list) {
		const struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (!wf_link_was_up(link) && first_waiting(link))
			return first_waiting(link);
	}
	return NULL;
}

bool wf_transfer_recall(struct wf_transfer *t, const struct wf_error *e)
{
	struct wf_outgoing *p;
	uint32_t at = 0;

	t->closing = true;
	while ((p = wf_table_next(&t->outgoing, &at)))
		wf_outgoing_stop(p, e);
	/* A record that needs no offer, an answer say, may yet go to a peer that was there. */
	while ((p = find_hopeless(t)))
		wf_outgoing_stop(p, e);
	at = 0;
	return !wf_table_next(&t->outgoing, &at) && !t->waiting_count &&
	       wf_stage_all_quiet(t);
}

void wf_transfer_quiet(struct wf_transfer *t, const struct wf_engine_rail *on)
{
	struct wf_pull *pull;
	uint32_t at = 0;

	while ((pull = wf_table_next(&t->pulls, &at)))
		if (pull->rail.on == on)
			wf_pull_quiet(pull);
}
