/* SPDX-License-Identifier: BSD-2-Clause */
#include "call.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "served_call.h"

using namespace nb::literals;

/* Options of a call as Python gives them. */
struct CallOptions {
	CallOptions(Flight &flight, nb::handle timeout, nb::handle metadata, const ServedCall *parent,
		    nb::handle retry, uint64_t bytes_max)
		: pairs(metadata), parent(parent)
	{
		fill(o.op, flight, timeout);
		o.metadata = pairs.get();
		o.metadata_count = pairs.count();
		o.message_bytes_max = bytes_max;
		if (retry.is_none())
			return;
		r.attempts = nb::cast<unsigned>(retry[0]);
		r.statuses = nb::cast<uint32_t>(retry[1]);
		r.idempotent = nb::cast<bool>(retry[2]);
		o.retry = &r;
	}

	/* The options.  The parent may be answered by the time that Python has run again. */
	const weft_call_options *get()
	{
		o.parent = parent ? parent->get() : nullptr;
		return &o;
	}

private:
	Pairs pairs;
	const ServedCall *parent;
	weft_retry r = WEFT_RETRY_INIT;
	weft_call_options o = WEFT_CALL_OPTIONS_INIT;
};

class Stub {
public:
	Stub(const Peer &peer, std::shared_ptr<Service> service)
		: shared_(peer.shared()), service_(std::move(service))
	{
		check(weft_stub_open(peer.get(), service_->descriptor(), &stub_));
	}
	Stub(const Stub &) = delete;
	~Stub()
	{
		if (!shared_->forked())
			weft_stub_close(stub_);
	}

	/* The stub; raises when the node is closed. */
	weft_stub *get() const
	{
		shared_->node();
		return stub_;
	}
	const std::shared_ptr<Shared> &shared() const { return shared_; }
	const std::shared_ptr<Service> &service() const { return service_; }

private:
	std::shared_ptr<Shared> shared_;
	std::shared_ptr<Service> service_;
	weft_stub *stub_;
};

/* The outcome is the operation's, and the reply is there for as long. */
static void ignore_reply(const ProtobufCMessage *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static nb::object reply_of(Flight &flight)
{
	return bytes_of(weft_call_reply(flight.op));
}

static Operation call(const Stub &stub, unsigned method, const nb::bytes &request, nb::handle timeout,
		      nb::handle metadata, const ServedCall *parent, nb::handle retry, uint64_t bytes_max,
		      nb::handle arrays)
{
	auto flight = std::make_unique<Flight>(stub.shared());
	CallOptions options(*flight, timeout, metadata, parent, retry, bytes_max);
	Attached taken(stub.shared(), arrays);
	Message message(stub.service()->method(method).input, request);
	ProtobufCService *service;

	flight->result = reply_of;
	flight->keeps = stub.service();
	check(weft_call_open(stub.get(), options.get(), &service, &flight->op));
	/* Python runs after each array and may close the node: the call would never end then. */
	taken.attach([&](const weft_tensor *t, const weft_send_options *o, weft_op **op) {
		(void)stub.get(); // raises
		return weft_call_attach(flight->op, t, o, op);
	});
	(void)stub.get(); // raises
	service->invoke(service, method, message.get(), ignore_reply, nullptr);
	return Operation(std::move(flight));
}

/* Streams. */

class Stream : public Part {
public:
	Stream(std::shared_ptr<Shared> shared, std::shared_ptr<Service> service, unsigned method,
	       weft_stream *stream)
		: Part(std::move(shared)), service_(std::move(service)), method_(method), stream_(stream)
	{
		enter();
	}
	~Stream() override { close(); }

	weft_stream *get() const { return need(stream_, "the stream is closed"); }

	Operation write(const nb::bytes &packed, nb::handle timeout, nb::handle arrays)
	{
		return write_to({ shared_, service_, service_->method(method_).input,
				  [this] { return get(); }, torn_ }, packed, timeout, arrays);
	}

	Operation read(nb::handle timeout) const { return read_from(shared_, get(), service_, timeout); }

private:
	void end() override
	{
		if (shared_->reachable())
			weft_stream_close(stream_);
	}

	std::shared_ptr<Service> service_;
	unsigned method_;
	weft_stream *stream_;
	bool torn_ = false; // as Writer has it
};

static nb::tuple open_stream(const Stub &stub, unsigned method, nb::handle timeout, nb::handle metadata,
			     const ServedCall *parent, uint64_t bytes_max)
{
	auto flight = std::make_unique<Flight>(stub.shared());
	CallOptions options(*flight, timeout, metadata, parent, nb::none(), bytes_max);
	const char *name = stub.service()->method(method).name;
	weft_stream *stream;

	flight->keeps = stub.service();
	check(weft_stream_open(stub.get(), name, options.get(), &stream, &flight->op));
	return nb::make_tuple(nb::cast(new Stream(stub.shared(), stub.service(), method, stream),
				       nb::rv_policy::take_ownership),
			      nb::cast(Operation(std::move(flight))));
}

void need_whole(bool torn)
{
	if (torn)
		invalid("a message was refused with some of its arrays attached: the call can "
			"only end");
}

Operation write_to(const Writer &writer, const nb::bytes &packed, nb::handle timeout,
		   nb::handle arrays)
{
	auto flight = std::make_unique<Flight>(writer.shared);
	weft_op_options o = WEFT_OP_OPTIONS_INIT;
	Message message(writer.type, packed);
	Attached taken(writer.shared, arrays);

	need_whole(writer.torn);
	flight->keeps = writer.service;
	fill(o, *flight, timeout);
	try {
		taken.attach([&](const weft_tensor *t, const weft_send_options *s, weft_op **op) {
			return weft_stream_attach(writer.stream(), t, s, op);
		});
		check(weft_stream_write(writer.stream(), message.get(), &o, &flight->op));
	} catch (...) {
		writer.torn |= taken.has_begun();
		throw;
	}
	return Operation(std::move(flight));
}

static nb::object message_of(Flight &flight)
{
	const ProtobufCMessage *message = weft_stream_message(flight.op);

	return message ? nb::object(bytes_of(message)) : nb::none();
}

Operation read_from(const std::shared_ptr<Shared> &shared, weft_stream *stream,
		    const std::shared_ptr<Service> &service, nb::handle timeout)
{
	auto flight = std::make_unique<Flight>(shared);
	weft_op_options o = WEFT_OP_OPTIONS_INIT;

	flight->result = message_of;
	flight->keeps = service;
	fill(o, *flight, timeout);
	check(weft_stream_read(stream, &o, &flight->op));
	return Operation(std::move(flight));
}

/* Attachments and metadata, which come beside messages. */

nb::tuple attachment_of(const weft_tensor *t, unsigned flags)
{
	nb::list shape;

	for (int32_t i = 0; i < t->ndim; i++)
		shape.append(t->shape[i]);
	return nb::make_tuple(nb::tuple(shape), name_of_dtype(t->dtype), bool(flags & WEFT_DEAD));
}

static nb::list attachments(const Operation &o)
{
	size_t count = o.done() ? weft_op_attachments(o.flight().op) : 0;
	nb::list list;

	for (size_t i = 0; i < count; i++) {
		unsigned flags = 0;

		list.append(attachment_of(weft_op_attachment(o.flight().op, i, &flags), flags));
	}
	return list;
}

static Operation receive(const Operation &o, size_t index, nb::handle into, nb::handle timeout)
{
	return receive_by(o.flight().shared, into, timeout,
			  [&](const weft_tensor *t, const weft_recv_options *r, weft_op **op) {
				  (void)o.flight().shared->node(); // raises: taking @into runs Python
				  return weft_op_receive(o.flight().op, index, t, r, op);
			  });
}

static nb::list initial(const Operation &o)
{
	size_t count = 0;
	const weft_metadata *pairs = weft_call_initial(o.flight().op, &count);

	return list_of(pairs, count);
}

static nb::list trailing(const Operation &o)
{
	size_t count = 0;
	const weft_metadata *pairs = o.done() ? weft_call_trailing(o.flight().op, &count) : nullptr;

	return list_of(pairs, count);
}

static nb::bytes details(const Operation &o)
{
	size_t bytes = 0;
	const void *details = o.done() ? weft_call_details(o.flight().op, &bytes) : nullptr;

	return nb::bytes(details, details ? bytes : 0);
}

void bind_call(nb::module_ &m)
{
	bind_service(m);
	nb::class_<Stub>(m, "_Stub")
		.def(nb::init<const Peer &, std::shared_ptr<Service>>())
		.def("call", &call, "method"_a, "request"_a, "timeout"_a.none(), "metadata"_a,
		     "parent"_a.none(), "retry"_a.none(), "bytes_max"_a, "arrays"_a)
		.def("stream", &open_stream, "method"_a, "timeout"_a.none(), "metadata"_a,
		     "parent"_a.none(), "bytes_max"_a);
	nb::class_<Stream>(m, "_Stream")
		.def("write", &Stream::write, "packed"_a, "timeout"_a.none(), "arrays"_a)
		.def("read", &Stream::read, "timeout"_a.none())
		.def("half_close", [](const Stream &s) { check(weft_stream_half_close(s.get())); })
		.def("close", [](Stream &s) { s.close(); });
	m.def("_attachments", &attachments);
	m.def("_receive", &receive, "operation"_a, "index"_a, "into"_a.none(), "timeout"_a.none());
	m.def("_initial", &initial);
	m.def("_trailing", &trailing);
	m.def("_details", &details);
}
