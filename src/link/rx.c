/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of a link on their way in: taken in order and exactly once.  A frame that comes twice is
 * confirmed again, one that comes too early is dropped and asked for again, and one that a peer
 * may not send ends the link.  A frame in whose middle memory runs out counts as lost: it comes
 * again, like any other.
 */
#include "link/rx.h"
#include "link/link.h"
#include "link/internal.h"
#include "link/ledger.h"

#include <errno.h>
#include <stdio.h>

/*
 * Has a control frame overtaken data frames that were lost?  It would withdraw an offer that is
 * yet to come.  Then it counts as lost too, and comes again.
 */
static bool too_early(const struct wf_link *link, const struct wf_unpack *unpack)
{
	struct wf_unpack peek = *unpack;
	struct wf_record_small small;
	struct wf_record record;

	return wf_unpack_next(&peek, &record) > 0 &&
	       !wf_record_small_get(record.bytes, record.count, &small) &&
	       (int32_t)(link->tx.sequence.received - (uint32_t)small.other) < 0;
}

/*
 * Does a record of @type cause one that goes back, whatever the program does?  Those about windows
 * and lanes are let in from a peer that somebody here has named, or two nodes might wait for each
 * other.  Offers, which other records bring, are looked at where they are answered (answer.h).
 */
static bool is_answered(const struct wf_link *link, uint8_t type)
{
	return type == WF_RECORD_CALL || type == WF_RECORD_ECHO || type == WF_RECORD_RESUME ||
	       type == WF_RECORD_SEAL || type == WF_RECORD_SEALED ||
	       (link->account.stranger && (type == WF_RECORD_ASK || type == WF_RECORD_PUSH ||
					   type == WF_RECORD_SPREAD));
}

/*
 * Check the peer's account for memory that @record may leave here.  A record that has begun goes
 * on, for its rest is what ends it.  -ENOMEM: its frame stays with the peer.  -ECANCELED: the peer
 * is dead, for it does not take what it is owed.
 */
static int check_account(struct wf_link *link, const struct wf_record *record)
{
	bool owes_most = !wf_ledger_has_room(link, WF_LEDGER_OWED);

	if (record->flags & WF_RECORD_CONTINUED)
		return 0;
	if (owes_most && wf_ledger_is_overdrawn(link)) {
		wf_link_violate(link, "it takes too few of the answers to what it sends");
		return -ECANCELED;
	}
	if (wf_ledger_has_room(link, WF_LEDGER_RECEIVED) &&
	    !(owes_most && is_answered(link, record->type)) &&
	    (!(record->flags & WF_RECORD_MORE) || wf_ledger_takes_parts(link, record->total)))
		return 0;
	wf_counters_add(&link->engine->counters.records_refused, 1);
	return -ENOMEM;
}

/* Charge the record that is put together, which is kept until the next one comes. */
static void charge_assembly(struct wf_link *link)
{
	uint64_t bytes = link->rx.assembly.bytes ? link->rx.assembly.total : 0;

	if (bytes == link->rx.assembly_bytes)
		return;
	wf_ledger_charge(link, WF_LEDGER_OWED, bytes - link->rx.assembly_bytes);
	link->rx.assembly_bytes = bytes;
}

/* Take a record of a control frame: credit records are the link's own, others go up. */
static int control_record(struct wf_link *link, const struct wf_record *record)
{
	struct wf_record_small small;

	if (record->flags || record->type < WF_RECORD_WITHDRAW)
		return -EBADMSG;
	if (record->type == WF_RECORD_WITHDRAW && !wf_ledger_has_room(link, WF_LEDGER_OWED))
		return -ENOMEM;
	if (record->type != WF_RECORD_RETURN && record->type != WF_RECORD_RETURNED)
		return wf_route_record(link->engine->routes, link, record);
	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	if (record->type == WF_RECORD_RETURN)
		wf_rx_credit_asked(link, (uint32_t)WF_MIN(small.id, UINT32_MAX));
	else
		wf_rx_credit_returned(link, (uint32_t)small.id);
	return 0;
}

/* Take a record of a data frame, or a part of one. */
static int data_record(struct wf_link *link, const struct wf_record *record)
{
	struct wf_record whole;
	int rc;

	/* A record that was put together has been taken, and is no more to be paid for. */
	if (!(record->flags & WF_RECORD_CONTINUED) && !link->rx.assembly.open) {
		wf_assembly_fini(&link->rx.assembly);
		charge_assembly(link);
	}
	rc = check_account(link, record);
	if (rc)
		return rc;
	rc = wf_assembly_add(&link->rx.assembly, record, WF_LINK_RECORD_BYTES_MAX, &whole);
	charge_assembly(link);
	if (rc <= 0)
		return rc;
	if (whole.type >= WF_RECORD_WITHDRAW)
		return -EBADMSG;
	rc = wf_route_record(link->engine->routes, link, &whole);
	/* With the link its assembly has ended, too. */
	if (rc == -ENOMEM && wf_link_greeted(link))
		wf_assembly_undo(&link->rx.assembly, record);
	return rc;
}

/*
 * Take the records of a frame but for the first *@handled, which were taken when the frame came
 * before.  -EAGAIN: memory ran out or the rail failed before the end; the frame counts as lost,
 * and *@handled says how far it got.  -ECANCELED: a record has ended the link, but not its memory:
 * our caller holds it.
 */
static int take_records(struct wf_link *link, struct wf_unpack *unpack, uint32_t *handled,
			int (*take)(struct wf_link *link, const struct wf_record *record))
{
	uint32_t epoch = link->probe.epoch;
	struct wf_record record;
	uint32_t at = 0;
	int rc;

	link->rx.record_type = 0;
	while ((rc = wf_unpack_next(unpack, &record)) > 0) {
		if (at++ < *handled)
			continue;
		link->rx.record_type = record.type;
		rc = take(link, &record);
		if (!wf_link_greeted(link))
			return -ECANCELED;
		if (rc == -ENOMEM)
			return -EAGAIN;
		if (rc < 0)
			break;
		++*handled;
		if (link->state != WF_LINK_UP || link->probe.epoch != epoch)
			return -EAGAIN;
	}
	*handled = 0;
	return rc;
}

/* End @link for the record that was looked at last. */
static void violate_by_record(struct wf_link *link)
{
	char what[64];

	(void)snprintf(what, sizeof(what), "a record of type %u that makes no sense",
		       link->rx.record_type);
	wf_link_violate(link, what);
}

/*
 * Acknowledge at once what came before a frame that can't be taken now: the peer, which gets no
 * acknowledgement of that one for as long, is to see that the rail works.
 */
static void confirm_others(struct wf_link *link)
{
	link->tx.ack_now = true;
	wf_link_mark(link);
}

static void take_control(struct wf_link *link, struct wf_unpack *unpack, uint32_t seq)
{
	bool had = (int32_t)(seq - link->rx.control_received) <= 0;
	int rc;

	if (!had && too_early(link, unpack)) {
		wf_tx_ask(link);
		return;
	}
	if (!had && seq != link->rx.control_received + 1) {
		wf_link_violate(link, "a control frame out of turn");
		return;
	}
	if (!had)
		wf_link_record(link, WF_RECORDER_CONTROL_IN, seq, 0);
	/* A frame that was had comes again when its answer was lost, or comes late. */
	rc = had ? 0 : take_records(link, unpack, &link->rx.control_handled, control_record);
	if (rc == -EBADMSG)
		violate_by_record(link);
	else if (rc == -EAGAIN)
		confirm_others(link);
	if (rc)
		return;
	if (!had)
		link->rx.control_received = seq;
	link->tx.answer_owed = true;
	wf_link_mark(link);
}

static void take_data(struct wf_link *link, struct wf_unpack *unpack, uint32_t seq)
{
	int rc;

	if (seq == link->tx.sequence.received && !wf_rx_credit_open(link)) {
		wf_link_violate(link, "a frame for which it had no credit");
		return;
	}
	rc = wf_sequence_receive(&link->tx.sequence, seq);
	if (rc == -EALREADY) {
		link->tx.ack_now = true;
		wf_link_mark(link);
		return;
	}
	if (rc) {
		wf_tx_ask(link);
		return;
	}
	wf_link_record(link, WF_RECORDER_FRAME_IN, seq, link->tx.sequence.acked);
	link->on->promised--;
	rc = take_records(link, unpack, &link->rx.data_handled, data_record);
	if (rc == -ECANCELED)
		return;
	if (rc == -EAGAIN) {
		/* The frame is not confirmed, so its promise still stands. */
		link->tx.sequence.received--;
		if (link->on)
			link->on->promised++;
		confirm_others(link);
		wf_tx_ask(link);
		return;
	}
	if (rc < 0) {
		violate_by_record(link);
		return;
	}
	wf_rx_credit_refill(link);
	wf_tx_confirm_later(link);
}

static struct wf_link *addressee(struct wf_engine *engine, const struct wf_frame *frame)
{
	struct wf_link *link = wf_table_get(&engine->links, frame->link);

	if (!link || !wf_link_greeted(link))
		return NULL;
	return frame->sealed || link->token == frame->token ? link : NULL;
}

/* Open a frame of @link's that is sealed, or must be.  Otherwise nobody has heard it. */
static bool is_opened(struct wf_link *link, const struct wf_frame *frame, uint8_t *bytes)
{
	int err = wf_seals_open(link, frame, bytes);

	if (!err)
		return true;
	wf_counters_add(err == -EALREADY ? &link->engine->counters.late_dropped :
			&link->engine->counters.frames_refused, 1);
	return false;
}

void wf_rx_received(struct wf_engine *engine, struct wf_engine_rail *on, uint8_t *bytes,
		    size_t count)
{
	struct wf_unpack unpack;
	struct wf_frame frame;
	struct wf_link *link;

	if (wf_unpack_begin(&unpack, bytes, count, &frame) || !(link = addressee(engine, &frame))) {
		wf_counters_add(&engine->counters.frames_refused, 1);
		return;
	}
	if (frame.epoch != link->probe.epoch || link->on != on) {
		wf_counters_add(&engine->counters.late_dropped, 1);
		return;
	}
	if (!is_opened(link, &frame, bytes))
		return;
	wf_link_get(link);
	wf_keepalive_heard(link);
	wf_tx_progress(&link->tx, engine->loop.now_ns);
	wf_counters_add(&engine->counters.frames_received, 1);
	/* Room is taken before the link is up, for then bodies are planned that ask for it. */
	if ((int64_t)(frame.eager_credit - link->eager_credit.granted) > 0)
		link->eager_credit.granted = frame.eager_credit;
	if (link->state == WF_LINK_TRYING || frame.kind == WF_FRAME_PING ||
	    frame.kind == WF_FRAME_PONG)
		wf_probe_frame(link, &frame);
	if (link->state != WF_LINK_UP)
		goto put;
	wf_tx_confirm(link, frame.ack);
	if (link->state != WF_LINK_UP)
		goto put;
	if (wf_credit_update(&link->tx.credit, frame.credit, UINT16_MAX) == -EPROTO) {
		wf_link_violate(link, "it promises more than any rail has");
		goto put;
	}
	if (frame.kind == WF_FRAME_DATA)
		take_data(link, &unpack, frame.seq);
	else if (frame.kind == WF_FRAME_CONTROL)
		take_control(link, &unpack, frame.seq);
	else if (frame.kind == WF_FRAME_ANSWER)
		wf_tx_answered(link, frame.seq);
	if (link->out.waiting)
		wf_link_mark(link);
put:
	wf_link_put(link);
}
