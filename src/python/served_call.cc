/* SPDX-License-Identifier: BSD-2-Clause */
#include "served_call.h"

#include <nanobind/stl/string.h>

#include "call.h"
#include "errors.h"

using namespace nb::literals;

ServedCall::ServedCall(std::shared_ptr<Shared> shared, std::shared_ptr<Service> service, Arrival arrival)
	: Part(std::move(shared)), service_(std::move(service)), arrival_(std::move(arrival))
{
	enter();
}

void ServedCall::end()
{
	/* Locks of a child's copies may be held for ever. */
	if (answered_ || shared_->forked())
		return;
	answered();
	if (shared_->reachable())
		turn_away(arrival_, "the server has given the call up");
}

struct weft_served *ServedCall::get() const
{
	return need(answered_ ? nullptr : arrival_.call, "the call is answered");
}

weft_stream *ServedCall::stream() const
{
	get();
	if (!arrival_.stream)
		invalid("the call has no stream");
	return arrival_.stream;
}

void ServedCall::attach(nb::list arrays)
{
	Attached taken(shared_, arrays);

	try {
		taken.attach([&](const weft_tensor *t, const weft_send_options *o, weft_op **op) {
			return weft_served_attach(get(), t, o, op);
		});
	} catch (...) {
		torn_ |= taken.has_begun();
		throw;
	}
}

void ServedCall::reply(const nb::bytes &packed)
{
	Message message(method().output, packed);

	get();
	need_whole(torn_);
	if (!arrival_.closure)
		invalid("the call has a stream");
	answered();
	arrival_.closure(message.get(), arrival_.closure_data);
	kick();
}

void ServedCall::fail(int status, const std::string &sentence, const nb::bytes &details)
{
	struct weft_served *call = get();

	if (details.size())
		check(weft_served_set_details(call, details.c_str(), details.size()));
	answered();
	if (arrival_.stream)
		weft_stream_finish(arrival_.stream, weft_status(status), sentence.c_str());
	else
		weft_served_fail(call, weft_status(status), sentence.c_str());
	kick();
}

Operation ServedCall::write(const nb::bytes &packed, nb::handle timeout, nb::handle arrays)
{
	return write_to({ shared_, service_, method().output, [this] { return stream(); }, torn_ },
			packed, timeout, arrays);
}

Operation ServedCall::read(nb::handle timeout)
{
	return read_from(shared_, stream(), service_, timeout);
}

void ServedCall::answered()
{
	answered_ = true;
	forget(arrival_.number);
}

/* The event loop drives a manual node. */
void ServedCall::kick()
{
	if (shared_->kick.is_valid())
		shared_->kick();
}

static double left(const ServedCall &c)
{
	uint64_t ns = c.is_over() ? 0 : weft_served_left_ns(c.get());

	return ns == WEFT_FOREVER ? -1 : double(ns) / 1e9;
}

static bool cancelled(const ServedCall &c)
{
	return c.is_over() || weft_served_cancelled(c.get());
}

static nb::list metadata(const ServedCall &c)
{
	size_t count = 0;
	const weft_metadata *pairs = weft_served_metadata(c.get(), &count);

	return list_of(pairs, count);
}

/* Set metadata for the caller by @set. */
static void set_metadata(const ServedCall &c, nb::list list,
			 int (*set)(struct weft_served *, const weft_metadata *, size_t))
{
	Pairs pairs(list);

	check(set(c.get(), pairs.get(), pairs.count()));
}

static nb::list attachments(const ServedCall &c)
{
	size_t count = c.arrival().stream ? 0 : weft_served_attachments(c.get());
	nb::list list;

	for (size_t i = 0; i < count; i++) {
		unsigned flags = 0;

		list.append(attachment_of(weft_served_attachment(c.get(), i, &flags), flags));
	}
	return list;
}

void bind_served_call(nb::module_ &m)
{
	nb::class_<ServedCall>(m, "_ServedCall")
		.def_prop_ro("number", [](const ServedCall &c) { return c.arrival().number; })
		.def_prop_ro("method", [](const ServedCall &c) { return c.arrival().method; })
		.def_prop_ro("request", [](const ServedCall &c) {
			return nb::bytes(c.arrival().request.data(), c.arrival().request.size());
		})
		.def_prop_ro("peer", [](const ServedCall &c) {
			(void)c.get(); // raises
			return Peer(c.shared(), c.arrival().peer, false);
		})
		.def_prop_ro("left", &left)
		.def_prop_ro("cancelled", &cancelled)
		.def_prop_ro("metadata", &metadata)
		.def_prop_ro("attachments", &attachments)
		.def("receive", [](const ServedCall &c, size_t index, nb::handle into, nb::handle timeout) {
			return receive_by(c.shared(), into, timeout,
					  [&](const weft_tensor *t, const weft_recv_options *o, weft_op **op) {
						  return weft_served_receive(c.get(), index, t, o, op);
					  });
		}, "index"_a, "into"_a.none(), "timeout"_a.none())
		.def("attach", &ServedCall::attach)
		.def("set_initial", [](const ServedCall &c, nb::list pairs) {
			set_metadata(c, pairs, weft_served_set_initial);
		})
		.def("set_trailing", [](const ServedCall &c, nb::list pairs) {
			set_metadata(c, pairs, weft_served_set_trailing);
		})
		.def("reply", &ServedCall::reply)
		.def("fail", &ServedCall::fail)
		.def("write", &ServedCall::write, "packed"_a, "timeout"_a.none(), "arrays"_a)
		.def("read", &ServedCall::read, "timeout"_a.none());
}
