/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services served in Python: calls wait in an inbox for the event loop, which answers them.
 */
#include <cerrno>
#include <new>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "call.h"
#include "errors.h"
#include "inbox.h"
#include "served_call.h"

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

static const char no_memory[] = "no memory for the request";

/* No exception may leave a callback of weft's. */
static void handle(ProtobufCService *base, unsigned method, const ProtobufCMessage *input,
		   ProtobufCClosure closure, void *closure_data)
{
	auto *handler = reinterpret_cast<Served::Handler *>(base);
	struct weft_served *call = weft_served(closure_data);
	Arrival arrival = { 0, method, call, weft_served_peer(call), nullptr, closure, closure_data, {} };

	try {
		arrival.request.resize(protobuf_c_message_get_packed_size(input));
		protobuf_c_message_pack(input, reinterpret_cast<uint8_t *>(&arrival.request[0]));
		handler->served->inbox.come(std::move(arrival));
	} catch (const std::bad_alloc &) {
		weft_served_fail(call, WEFT_RESOURCE_EXHAUSTED, no_memory);
	}
}

static void handle_stream(weft_stream *stream, void *arg)
{
	auto *method = static_cast<Served::Method *>(arg);
	struct weft_served *call = weft_stream_served(stream);

	try {
		method->served->inbox.come({ 0, method->index, call, weft_served_peer(call), stream,
					     nullptr, nullptr, {} });
	} catch (const std::bad_alloc &) {
		weft_stream_finish(stream, WEFT_RESOURCE_EXHAUSTED, no_memory);
	}
}

static void destroy_nothing(ProtobufCService *service)
{
	(void)service;
}

class Server : public Part {
public:
	Server(std::shared_ptr<Shared> shared, std::shared_ptr<Served> served)
		: Part(std::move(shared)), served_(std::move(served))
	{
		enter();
	}
	/* The node has the service still, and turns calls away. */
	~Server() override { close(); }

	int fd() const { return served_->inbox.fd(); }

	/* Calls that have come, and numbers of calls whose callers gave up. */
	nb::tuple take()
	{
		std::vector<Arrival> arrivals;
		std::vector<uint64_t> given_up;
		nb::list calls;

		served_->inbox.take(&arrivals, &given_up);
		for (Arrival &arrival : arrivals)
			calls.append(nb::cast(new ServedCall(shared_, served_->service, std::move(arrival)),
					      nb::rv_policy::take_ownership));
		return nb::make_tuple(calls, given_up);
	}

private:
	void end() override
	{
		if (shared_->reachable())
			served_->inbox.close();
	}

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
		Inside inside(n.shared);

		err = weft_serve_with(node, &served->handler.base, &o);
	}
	check(err);
	n.shared->lent.push_back(served);
	return new Server(n.shared, std::move(served));
}

void bind_serve(nb::module_ &m, nb::class_<Node> &node)
{
	bind_served_call(m);
	nb::class_<Server>(m, "_Server")
		.def_prop_ro("fd", &Server::fd)
		.def("take", &Server::take)
		.def("close", [](Server &s) { s.close(); });
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
			int err = in_slices(n.shared, nullptr, ns,
					    [open](uint64_t slice) { return weft_node_drain(open, slice); });

			if (err == -ESHUTDOWN)
				n.shared->node(); // raises
			if (err != -ETIMEDOUT)
				check(err);
			return !err;
		}, "timeout"_a = nb::none(),
		     "Take no more calls, and wait for those that run.  Returns whether none is left.");
}
