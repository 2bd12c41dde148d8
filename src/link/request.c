/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/request.h"

#include "link/internal.h"
#include "link/link.h"

#define PROVED_BYTES (16 + WF_SEALS_MAC_BYTES) /* u64 link, u32 epoch, u32 lane, proof */

_Static_assert(PROVED_BYTES <= WF_CONNECT_BYTES, "connect data fits every provider");

int wf_request_put(const struct wf_link *link, uint32_t lane, const struct wf_greet_rail *to,
		   struct wf_bytes_writer *w)
{
	uint8_t mac[WF_SEALS_MAC_BYTES];
	int err;

	wf_bytes_put_u64(w, link->peer->link);
	if (!link->seals.known) {
		wf_bytes_put_u64(w, link->peer->token);
		wf_bytes_put_u32(w, link->probe.epoch);
		if (lane)
			wf_bytes_put_u32(w, lane);
		return 0;
	}
	err = wf_seals_request(link, link->peer->link, link->probe.epoch, lane, to->address,
			       to->address_bytes, mac);
	if (err)
		return err;
	wf_bytes_put_u32(w, link->probe.epoch);
	wf_bytes_put_u32(w, lane);
	wf_bytes_put(w, mac, sizeof(mac));
	return 0;
}

/* Is the rest of a request, behind the link's id, the proof that it must be? */
static bool is_proved(const struct wf_link *link, const struct wf_engine_rail *on,
		      struct wf_bytes_reader *r, uint32_t *epoch, uint32_t *lane)
{
	uint8_t address[WF_ADDRESS_BYTES], said[WF_SEALS_MAC_BYTES], right[WF_SEALS_MAC_BYTES];

	*epoch = wf_bytes_get_u32(r);
	*lane = wf_bytes_get_u32(r);
	wf_bytes_get(r, said, sizeof(said));
	return !r->bad &&
	       !wf_seals_request(link, link->id, *epoch, *lane, address,
				 wf_rail_address(on->rail, address), right) &&
	       wf_secret_is_same(said, right, sizeof(right));
}

/* Has the rest of a request, behind the link's id, the token that it must have? */
static bool has_token(const struct wf_link *link, struct wf_bytes_reader *r, uint32_t *epoch,
		      uint32_t *lane)
{
	uint64_t token = wf_bytes_get_u64(r);

	*epoch = wf_bytes_get_u32(r);
	*lane = wf_bytes_reader_left(r) >= 4 ? wf_bytes_get_u32(r) : 0;
	return !r->bad && link->token == token;
}

struct wf_link *wf_request_get(const struct wf_engine *engine, const struct wf_engine_rail *on,
			       const uint8_t *bytes, size_t count, uint32_t *epoch,
			       uint32_t *lane)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	uint64_t id = wf_bytes_get_u64(&r);
	struct wf_link *link = r.bad ? NULL : wf_table_get(&engine->links, id);

	if (!link || !wf_link_greeted(link) || link->dialler)
		return NULL;
	if (!(link->seals.known ? is_proved(link, on, &r, epoch, lane) :
				  has_token(link, &r, epoch, lane)))
		return NULL;
	/* Before its first probe a link has no epoch, nor a secret for one. */
	return *epoch ? link : NULL;
}
