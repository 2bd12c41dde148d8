/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/stripe.h"

#include <errno.h>
#include <stdlib.h>

struct wf_stripe_way *wf_stripe_find(struct wf_stripe *spread, const struct wf_lane *lane)
{
	for (uint32_t i = 0; spread && i < spread->count; i++)
		if (spread->ways[i].lane == lane)
			return &spread->ways[i];
	return NULL;
}

/* Take a way whose lane has closed, or a new one. */
static struct wf_stripe_way *take_way(struct wf_stripe *spread)
{
	struct wf_stripe_way *way = wf_stripe_find(spread, NULL);

	return way ? way : &spread->ways[spread->count++];
}

int wf_stripe_add(struct wf_stripe **spread, struct wf_lane *lane,
		  const struct wf_record_lane *record, const struct wf_grant_span *into)
{
	struct wf_engine *engine = lane->link->engine;
	struct wf_grant grant;
	struct wf_error e;
	int err;

	if (wf_stripe_find(*spread, lane))
		return -EALREADY;
	if (!*spread)
		*spread = calloc(1, sizeof(**spread));
	if (!*spread)
		return -ENOMEM;
	err = wf_grant_local(&grant, lane->on->rail, &engine->pool, into, &e);
	if (err) {
		wf_log(&engine->log, WF_LOG_INFO, "%s: a lane is not used: %s",
		       wf_link_label(lane->link), e.text);
		return err;
	}
	*take_way(*spread) = (struct wf_stripe_way){
		.lane = lane,
		.grant = grant,
		.address = record->address,
		.key = record->key,
	};
	return 0;
}

void wf_stripe_close_way(struct wf_stripe_way *way)
{
	wf_grant_close(&way->grant);
	*way = (struct wf_stripe_way){ .lane = NULL };
}

uint32_t wf_stripe_carried(const struct wf_stripe *spread)
{
	return spread ? (uint32_t)__builtin_popcount(spread->carried) : 0;
}

void wf_stripe_close(struct wf_stripe *spread)
{
	for (uint32_t i = 0; spread && i < spread->count; i++)
		wf_grant_close(&spread->ways[i].grant);
	free(spread);
}

/* Get the grant by which a peer reads @body over @lane, and open it if it is not yet. */
static int open_on(struct wf_stripe_offer *offer, const struct wf_lane *lane,
		   const struct wf_grant_span *body, const struct wf_grant **grant)
{
	struct wf_engine *engine = lane->link->engine;
	uint32_t at = 0;
	struct wf_error e;
	int err;

	while (at < offer->count && offer->all[at].on != lane->on)
		at++;
	if (at == offer->count) {
		err = wf_grant_remote(&offer->all[at].grant, lane->on->rail, &engine->pool, body,
				      &e);
		if (err) {
			wf_log(&engine->log, WF_LOG_INFO, "%s: a lane is not used: %s",
			       wf_link_label(lane->link), e.text);
			return err;
		}
		offer->all[at].on = lane->on;
		offer->count++;
	}
	*grant = &offer->all[at].grant;
	return 0;
}

int wf_stripe_tell(struct wf_stripe_offer **offer, struct wf_link *link, uint64_t pull,
		   uint8_t priority, bool shared, const struct wf_grant_span *body)
{
	uint8_t record[WF_RECORD_LANE_BYTES];

	if (!*offer)
		*offer = calloc(1, sizeof(**offer));
	if (!*offer)
		return -ENOMEM;
	if (shared && (*offer)->pull != pull)
		(*offer)->told = 0;
	(*offer)->pull = pull;
	if ((*offer)->told > link->probe.lane_total)
		return 0;
	WF_LIST_EACH(node, &link->lanes) {
		const struct wf_lane *lane = WF_CONTAINER(node, struct wf_lane, node);
		struct wf_bytes_writer w = wf_bytes_writer(record, sizeof(record));
		const struct wf_grant *grant;

		if (!lane->ep || open_on(*offer, lane, body, &grant))
			continue;
		wf_record_lane_put(&w, &(struct wf_record_lane){ .pull = pull,
								 .lane = lane->number,
								 .address = grant->address,
								 .key = grant->key });
		if (wf_message_post_copy(link, priority, WF_RECORD_LANE, record, sizeof(record)))
			return -ENOMEM;
	}
	(*offer)->told++;
	return 0;
}

void wf_stripe_take_back(struct wf_stripe_offer *offer)
{
	for (uint32_t i = 0; offer && i < offer->count; i++)
		wf_grant_close(&offer->all[i].grant);
	free(offer);
}
