/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short records: what the two ends of a transfer tell each other about it.
 *
 * Threads: owner.
 */
#ifndef WF_TELL_H
#define WF_TELL_H

#include "link/link.h"

#define WF_TELL_BYTES_MAX WF_OFFER_RECORD_BYTES_MAX /* the longest there is */

/* Post a record, copied; for data frames.  -ENOMEM: it was not said. */
int wf_tell_record(struct wf_link *link, uint8_t type, const uint8_t *bytes, size_t count);

/* The same for one made of an id, a second number and a status. */
int wf_tell(struct wf_link *link, uint8_t type, uint64_t id, uint64_t other, uint8_t status);

#endif
