/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe.h"

#include <cstdlib>
#include <memory>
#include <new>

#include "errors.h"

nb::dict path_of(const weft_op *op)
{
	weft_path p = WEFT_PATH_INIT;
	nb::dict d;

	check(weft_op_path(op, &p));
	d["provider"] = nb::str(p.provider);
	d["device"] = nb::str(p.device);
	d["way"] = nb::str(p.way);
	d["checksum"] = nb::str(p.checksum);
	d["cipher"] = nb::str(p.cipher);
	d["bytes"] = p.bytes;
	d["copies"] = p.copies;
	d["registered"] = bool(p.registered);
	d["chunks"] = p.chunks;
	d["retries"] = p.retries;
	d["helped"] = p.helped;
	d["rails"] = p.rails;
	d["queued_ns"] = p.queued_ns;
	d["matched_ns"] = p.matched_ns;
	d["first_byte_ns"] = p.first_byte_ns;
	d["last_byte_ns"] = p.last_byte_ns;
	d["done_ns"] = p.done_ns;
	return d;
}

static nb::list statuses_of(const uint64_t (&counts)[WEFT_UNAUTHENTICATED + 1])
{
	nb::list all;

	for (uint64_t count : counts)
		all.append(count);
	return all;
}

nb::dict counters_of(weft_node *node)
{
	weft_counters c = WEFT_COUNTERS_INIT;
	nb::dict d;

	check(weft_node_counters(node, &c));
#define COUNT(name) d[#name] = c.name
	COUNT(frames_sent);
	COUNT(frames_received);
	COUNT(frames_replayed);
	COUNT(frames_refused);
	COUNT(rights_refused);
	COUNT(links_rekeyed);
	COUNT(bytes_eager);
	COUNT(bytes_pulled);
	COUNT(bytes_viewed);
	COUNT(peers_lost);
	COUNT(links_resumed);
	COUNT(pool_bytes);
	COUNT(pool_bytes_used);
	COUNT(pool_waits);
	COUNT(registered_bytes);
	COUNT(registered_user);
	COUNT(registered_pool);
	COUNT(registered_device);
	COUNT(registered_cached);
	COUNT(registrations);
	COUNT(registration_hits);
	COUNT(registration_evictions);
	COUNT(late_dropped);
	COUNT(calls);
	COUNT(served);
	COUNT(message_bytes);
	COUNT(unpack_failures);
	COUNT(calls_waiting);
	COUNT(calls_refused);
	COUNT(calls_repeated);
	COUNT(served_repeated);
	COUNT(kept_bytes);
	COUNT(records_refused);
	COUNT(aborts_ignored);
	COUNT(pinned_bytes);
#undef COUNT
	d["calls_ended"] = statuses_of(c.calls_ended);
	d["served_ended"] = statuses_of(c.served_ended);
	return d;
}

nb::str dump_of(const std::shared_ptr<Shared> &shared)
{
	weft_node *node = shared->node();
	char *text = nullptr;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int err;

	if (!out)
		throw std::bad_alloc();
	{
		Inside inside(shared, nullptr, false);

		err = weft_dump(node, out);
	}
	fclose(out);
	std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
	check(err);
	return text_of(text);
}
