/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services served in Python: calls wait in an inbox for the event loop, which answers them.
 */
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "call.h"
#include "errors.h"
#include "inbox.h"

using namespace nb::literals;

/* Memory that a node is lent for as long as it serves: until it has closed. */
struct Served {
	struct Method {
		Served *served;
		unsigned index;
	};

	explicit Served(std::shared_ptr<Service> s) : service(std::move(s)) {}

	std::shared_ptr<Service> service;
	Inbox inbox;
	std::vector<Method> methods;
	/* The worker calls it; what it is in is found by its address. */
	struct Handler {
		ProtobufCService base;
		Served *served;
	} handler = {};
};

static void handle(ProtobufCService *base, unsigned method, const ProtobufCMessage *input,
		   ProtobufCClosure closure, void *closure_data)
{
	auto *handler = reinterpret_cast<Served::Handler *>(base);
	Arrival arrival = { 0, method, weft_served(closure_data), nullptr, closure, closure_data, {} };

	arrival.request.resize(protobuf_c_message_get_packed_size(input));
	protobuf_c_message_pack(input, reinterpret_cast<uint8_t *>(&arrival.request[0]));
	handler->served->inbox.come(std::move(arrival));
}

static void handle_stream(weft_stream *stream, void *arg)
{
	auto *method = static_cast<Served::Method *>(arg);

	method->served->inbox.come(
		{ 0, method->index, weft_stream_served(stream), stream, nullptr, nullptr, {} });
}

static void destroy_nothing(ProtobufCService *service)
{
	(void)service;
}

/* A call that is handled in Python, until it is answered; the last chance is its end. */
class ServedCall : public Part {
public:
	ServedCall(std::shared_ptr<Shared> shared, std::shared_ptr<Served> served, Arrival arrival)
		: Part(std::move(shared)), served_(std::move(served)), arrival_(std::move(arrival))
	{
	}
	~ServedCall() override { close(); }

	void close() override
	{
		if (answered_)
			return;
		end();
		if (shared_->reachable())
			turn_away(arrival_, "the server has given the call up");
	}

	/* The call; raises when it has been answered. */
	struct weft_served *get() const
	{
		return need(answered_ ? nullptr : arrival_.call, "the call is answered");
	}

	weft_stream *stream() const
	{
		get();
		if (!arrival_.stream)
			invalid("the call has no stream");
		return arrival_.stream;
	}

	const ProtobufCMethodDescriptor &method() const { return served_->service->method(arrival_.method); }
	const Arrival &arrival() const { return arrival_; }

	void reply(const nb::bytes &packed)
	{
		Message message(method().output, packed);

		get();
		if (!arrival_.closure)
			invalid("the call has a stream");
		end();
		arrival_.closure(message.get(), arrival_.closure_data);
		kick();
	}

	void fail(int status, const std::string &sentence, const nb::bytes &details)
	{
		struct weft_served *call = get();

		if (details.size())
			check(weft_served_set_details(call, details.c_str(), details.size()));
		end();
		if (arrival_.stream)
			weft_stream_finish(arrival_.stream, weft_status(status), sentence.c_str());
		else
			weft_served_fail(call, weft_status(status), sentence.c_str());
		kick();
	}

	Operation write(const nb::bytes &packed, nb::handle timeout, nb::handle arrays)
	{
		return write_to(shared_, stream(), method().output, packed, timeout, arrays);
	}

	Operation read(nb::handle timeout) { return read_from(shared_, stream(), served_->service, timeout); }

private:
	void end()
	{
		answered_ = true;
		forget(arrival_.number);
	}

	/* The event loop drives a manual node. */
	void kick()
	{
		if (shared_->kick.is_valid())
			shared_->kick();
	}

	std::shared_ptr<Served> served_;
	Arrival arrival_;
	bool answered_ = false;
};

class Server : public Part {
public:
	Server(std::shared_ptr<Shared> shared, std::shared_ptr<Served> served)
		: Part(std::move(shared)), served_(std::move(served))
	{
	}
	~Server() override { close(); }

	/* The node has the service still, and turns calls away. */
	void close() override
	{
		if (shared_->reachable())
			served_->inbox.close();
	}

	int fd() const { return served_->inbox.fd(); }

	/* Calls that have come, and numbers of calls whose callers gave up. */
	nb::tuple take()
	{
		std::vector<Arrival> arrivals;
		std::vector<uint64_t> given_up;
		nb::list calls;

		served_->inbox.take(&arrivals, &given_up);
		for (Arrival &arrival : arrivals)
			calls.append(nb::cast(new ServedCall(shared_, served_, std::move(arrival)),
					      nb::rv_policy::take_ownership));
		return nb::make_tuple(calls, given_up);
	}

private:
	std::shared_ptr<Served> served_;
};

/* @streams: which methods have a stream, by number. */
static Server *serve(const Node &n, std::shared_ptr<Service> service, nb::list streams, uint32_t calls_max,
		     uint32_t calls_per_peer, uint32_t queue_max, uint64_t bytes_max)
{
	auto served = std::make_shared<Served>(service);
	weft_serve_options o = WEFT_SERVE_OPTIONS_INIT;
	std::vector<weft_stream_method> methods;
	weft_node *node = n.shared->node();
	int err;

	for (nb::handle index : streams)
		served->methods.push_back({ served.get(), nb::cast<unsigned>(index) });
	for (Served::Method &method : served->methods)
		methods.push_back({ service->method(method.index).name, handle_stream, &method });
	served->handler.base.descriptor = service->descriptor();
	served->handler.base.invoke = handle;
	served->handler.base.destroy = destroy_nothing;
	served->handler.served = served.get();
	o.methods = methods.data();
	o.method_count = methods.size();
	o.calls_max = calls_max;
	o.calls_per_peer = calls_per_peer;
	o.queue_max = queue_max;
	o.message_bytes_max = bytes_max;
	{
		nb::gil_scoped_release free;

		err = weft_serve_with(node, &served->handler.base, &o);
	}
	check(err);
	n.shared->lent.push_back(served);
	return new Server(n.shared, std::move(served));
}

static double left(const ServedCall &c)
{
	uint64_t ns = weft_served_left_ns(c.get());

	return ns == WEFT_FOREVER ? -1 : double(ns) / 1e9;
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

static void bind_served_call(nb::module_ &m)
{
	nb::class_<ServedCall>(m, "_ServedCall")
		.def_prop_ro("number", [](const ServedCall &c) { return c.arrival().number; })
		.def_prop_ro("method", [](const ServedCall &c) { return c.arrival().method; })
		.def_prop_ro("request", [](const ServedCall &c) {
			return nb::bytes(c.arrival().request.data(), c.arrival().request.size());
		})
		.def_prop_ro("peer", [](const ServedCall &c) {
			return Peer(c.shared(), weft_served_peer(c.get()), false);
		})
		.def_prop_ro("left", &left)
		.def_prop_ro("cancelled", [](const ServedCall &c) { return !!weft_served_cancelled(c.get()); })
		.def_prop_ro("metadata", &metadata)
		.def_prop_ro("attachments", &attachments)
		.def("receive", [](const ServedCall &c, size_t index, nb::handle into, nb::handle timeout) {
			return receive_by(c.shared(), into, timeout,
					  [&](const weft_tensor *t, const weft_recv_options *o, weft_op **op) {
						  return weft_served_receive(c.get(), index, t, o, op);
					  });
		}, "index"_a, "into"_a.none(), "timeout"_a.none())
		.def("attach", [](const ServedCall &c, nb::list arrays) {
			attach_all(c.shared(), arrays,
				   [&](const weft_tensor *t, const weft_send_options *o, weft_op **op) {
					   return weft_served_attach(c.get(), t, o, op);
				   });
		})
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

void bind_serve(nb::module_ &m, nb::class_<Node> &node)
{
	bind_served_call(m);
	nb::class_<Server>(m, "_Server")
		.def_prop_ro("fd", &Server::fd)
		.def("take", &Server::take)
		.def("close", &Server::close);
	node.def("_serve", &serve, "service"_a, "streams"_a, "calls_max"_a, "calls_per_peer"_a, "queue_max"_a,
		 "bytes_max"_a)
		.def("serve_health", [](const Node &n) { check(weft_serve_health(n.shared->node())); },
		     "Serve grpc.health.v1.Health; see weft_rpc(3).")
		.def("set_health", [](const Node &n, const std::string &service, bool serving) {
			check(weft_health_set(n.shared->node(), service.c_str(),
					      serving ? WEFT_HEALTH_SERVING : WEFT_HEALTH_NOT_SERVING));
		}, "service"_a, "serving"_a, "Set the health of a service; \"\": of the node.")
		.def("drain", [](const Node &n, nb::handle timeout) {
			uint64_t ns = nanoseconds(timeout, WEFT_FOREVER);
			weft_node *open = n.shared->node();
			int err = in_slices(ns, [open](uint64_t slice) { return weft_node_drain(open, slice); });

			if (err != -ETIMEDOUT)
				check(err);
			return !err;
		}, "timeout"_a = nb::none(),
		     "Take no more calls, and wait for those that run.  Returns whether none is left.");
}
