/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/ledger.h"
#include "link/internal.h"

/*
 * Bytes kept for a byte of received records: an unmatched tensor of 40 bytes takes some 800 if it
 * is alone in its step.  Where more is kept the bound itself stops it.
 */
#define KEPT_PER_BYTE 16

/*
 * Times the bound of the owed side, and least bytes, of answers that are too many: a peer with so
 * much takes none.  16 MiB are some 60,000, more than an honest peer causes in a turn.  Not tuned.
 */
#define OVERDRAWN_TIMES 4
#define OVERDRAWN_LEAST_BYTES (16 * MIB)

/* Share of the owed side for calls: an eighth is left to refusals and to answers under way. */
#define CALLS_PART(bytes) ((bytes) - (bytes) / 8)

/*
 * Room left to a call with a stream by what else is kept for it: 64 KiB of metadata, a message in
 * parts that is being put together, and the link.  Not tuned.
 */
#define BESIDE_BYTES (160 * KIB)

static void count_strangers(struct wf_engine *engine, uint64_t bytes)
{
	struct wf_directory *d = engine->directory;

	/* The only worker of a node adds without a locked operation, which waits for all stores. */
	if (d->worker_count == 1)
		wf_counters_add(&d->strangers_bytes, bytes);
	else
		atomic_fetch_add_explicit(&d->strangers_bytes, bytes, memory_order_relaxed);
}

static uint64_t strangers_left(const struct wf_engine *engine)
{
	uint64_t most = engine->options.strangers_bytes;
	uint64_t kept =
		atomic_load_explicit(&engine->directory->strangers_bytes, memory_order_relaxed);

	return most - WF_MIN(kept, most);
}

bool wf_ledger_strangers_full(const struct wf_engine *engine)
{
	return !strangers_left(engine);
}

static uint64_t kept(const struct wf_link *link)
{
	return link->account.bytes[WF_LEDGER_RECEIVED] + link->account.bytes[WF_LEDGER_OWED];
}

uint64_t wf_ledger_bound(const struct wf_link *link)
{
	const struct wf_engine *engine = link->engine;
	uint64_t most = engine->options.peer_bytes;

	if (link->account.stranger)
		most = WF_MIN(most, kept(link) + strangers_left(engine));
	return WF_MAX(most, (uint64_t)WF_LEDGER_LEAST_BYTES) / 2;
}

bool wf_ledger_owes_most(const struct wf_link *link)
{
	return !wf_ledger_has_room(link, WF_LEDGER_OWED);
}

bool wf_ledger_is_overdrawn(const struct wf_link *link)
{
	/* Records of strangers that would be answered are not taken at all. */
	return !link->account.stranger && link->account.untaken_bytes >
	       WF_MAX(OVERDRAWN_TIMES * wf_ledger_bound(link), (uint64_t)OVERDRAWN_LEAST_BYTES);
}

bool wf_ledger_takes_call(const struct wf_link *link, uint64_t bytes)
{
	uint64_t owed = link->account.bytes[WF_LEDGER_OWED], least = WF_LEDGER_LEAST_BYTES / 2;
	uint64_t most;

	if (owed + bytes <= CALLS_PART(least))
		return true;
	most = CALLS_PART(wf_ledger_bound(link));
	return owed < most && bytes <= most - owed;
}

bool wf_ledger_fits_call(const struct wf_link *link, uint64_t bytes)
{
	const struct wf_options *options = &link->engine->options;
	uint64_t most = options->peer_bytes;

	if (link->account.stranger)
		most = WF_MIN(most, options->strangers_bytes);
	return BESIDE_BYTES + bytes <= CALLS_PART(most / 2);
}

bool wf_ledger_takes_parts(const struct wf_link *link, uint32_t bytes)
{
	/* All that strangers have together may be less than the longest record. */
	uint64_t most = link->engine->options.strangers_bytes;

	return !link->account.stranger || kept(link) + bytes <= WF_LEDGER_LEAST_BYTES ||
	       strangers_left(link->engine) >= WF_MIN((uint64_t)bytes, most / 2);
}

uint32_t wf_ledger_frames(const struct wf_link *link)
{
	uint64_t frame = (uint64_t)link->probe.frame_bytes * KEPT_PER_BYTE;
	uint64_t received = link->account.bytes[WF_LEDGER_RECEIVED], most = wf_ledger_bound(link);
	uint64_t frames = (most - WF_MIN(received, most)) / WF_MAX(frame, 1u);

	/* A frame may have more than the least bound has room for: a newcomer may send one. */
	return (uint32_t)(frames || received >= WF_LEDGER_LEAST_BYTES / 2 ? frames : 1);
}

void wf_ledger_charge(struct wf_link *link, enum wf_ledger_side side, uint64_t bytes)
{
	link = wf_link_real(link);
	link->account.bytes[side] += bytes;
	wf_counters_add(&link->engine->counters.kept_bytes, bytes);
	if (link->account.stranger)
		count_strangers(link->engine, bytes);
}

void wf_ledger_discharge(struct wf_link *link, enum wf_ledger_side side, uint64_t bytes)
{
	wf_ledger_charge(link, side, -bytes);
	link = wf_link_real(link);
	if (!link->slots.kept_short)
		return;
	link->slots.kept_less = true;
	wf_link_mark(link);
}

void wf_ledger_answer_waits(struct wf_link *link, uint64_t bytes)
{
	wf_link_real(link)->account.untaken_bytes += bytes;
}

void wf_ledger_answer_left(struct wf_link *link, uint64_t bytes)
{
	wf_link_real(link)->account.untaken_bytes -= bytes;
}

void wf_ledger_begin(struct wf_link *link, bool stranger)
{
	link->account.stranger = stranger;
	wf_ledger_charge(link, WF_LEDGER_OWED, sizeof(*link));
}

/* Stop counting the peer of @link among the strangers. */
static void leave_strangers(struct wf_link *link)
{
	if (link->account.stranger)
		count_strangers(link->engine, -kept(link));
	link->account.stranger = false;
}

void wf_ledger_end(struct wf_link *link)
{
	leave_strangers(link);
	wf_counters_add(&link->engine->counters.kept_bytes, -kept(link));
}

void wf_ledger_merge(struct wf_link *link, struct wf_link *into)
{
	if (!link->account.stranger)
		leave_strangers(into);
	if (!into->account.stranger)
		leave_strangers(link);
	link->account.stranger = false;
	into->account.untaken_bytes += link->account.untaken_bytes;
	link->account.untaken_bytes = 0;
	for (unsigned side = 0; side < WF_LEDGER_SIDES; side++) {
		into->account.bytes[side] += link->account.bytes[side];
		link->account.bytes[side] = 0;
	}
}
