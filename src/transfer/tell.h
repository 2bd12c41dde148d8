/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short records by which the two ends of a transfer tell each other about it.
 *
 * Threads: owner.
 */
#ifndef WF_TELL_H
#define WF_TELL_H

#include "link/link.h"

#define WF_TELL_BYTES_MAX WF_RECORD_OFFER_BYTES_MAX /* longest of these records */

/* Post a record, copied, in data frames.  -ENOMEM: nothing was posted. */
int wf_tell_record(struct wf_link *link, uint8_t type, const uint8_t *bytes, size_t count);

/* Post a record made of an id, a second number and a status, as wf_tell_record() does. */
int wf_tell(struct wf_link *link, uint8_t type, uint64_t id, uint64_t other, uint8_t status);

#endif
