/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sequence.h"

#include <errno.h>

/*
 * Totals wrap: a total in the half circle behind is older.  Far fewer than
 * 2^31 frames are ever under way, for each needs a receive slot.
 */
static bool is_older(uint32_t total, uint32_t than)
{
	return total - than > INT32_MAX;
}

uint32_t wf_sequence_next(struct wf_sequence *s)
{
	return s->sent++;
}

int wf_sequence_ack(struct wf_sequence *s, uint32_t ack)
{
	uint32_t fresh = ack - s->acked;

	if (is_older(ack, s->acked))
		return 0;
	if (fresh > s->sent - s->acked)
		return -EPROTO;
	s->acked = ack;
	return (int)fresh;
}

int wf_sequence_receive(struct wf_sequence *s, uint32_t seq)
{
	if (is_older(seq, s->received))
		return -EALREADY;
	if (seq != s->received)
		return -ENODATA;
	s->received++;
	return 0;
}
