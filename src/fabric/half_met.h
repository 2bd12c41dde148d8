/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Half-met peers of a shared endpoint: entries of its address vector that no way uses, and whose
 * peer has not answered.  They are kept, where removing one spoils its place for the next peer
 * (WF_QUIRK_HALF_MET), and used when the same peer is met again.
 *
 * Threads: owner.
 */
#ifndef WF_HALF_MET_H
#define WF_HALF_MET_H

#include <rdma/fi_domain.h>
#include "util/base.h"
#include "util/list.h"

/* Kept entries until the endpoint is opened anew: an eighth of the vector of shm. */
#define WF_HALF_MET_MAX 32

struct wf_half_met {
	struct wf_list all;
	uint32_t count; /* entries that are kept; not all are in @all, see wf_half_met_lose() */
};

/* Keep the entry @entry of the peer at @address; without memory for that, nobody finds it. */
void wf_half_met_keep(struct wf_half_met *h, const uint8_t *address, size_t bytes,
		      fi_addr_t entry);

/* Count an entry that stays though nobody finds it. */
void wf_half_met_lose(struct wf_half_met *h);

/* Take the entry of the peer at @address.  Returns whether there was one. */
bool wf_half_met_take(struct wf_half_met *h, const uint8_t *address, size_t bytes,
		      fi_addr_t *entry);

/* Forget all entries: their address vector is closed. */
void wf_half_met_forget(struct wf_half_met *h);

#endif
