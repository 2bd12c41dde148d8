/* SPDX-License-Identifier: BSD-2-Clause */
#include "node.h"

#include <cerrno>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <vector>

#include "describe.h"
#include "errors.h"
#include "tensor.h"

using namespace nb::literals;
using Text = std::optional<std::string>;

/* Peers. */

Peer::Peer(std::shared_ptr<Shared> shared, weft_peer *peer, bool owned)
	: shared_(std::move(shared)), peer_(peer), owned_(owned)
{
}

Peer::Peer(Peer &&other) noexcept
	: shared_(std::move(other.shared_)), peer_(other.peer_), owned_(other.owned_)
{
	other.owned_ = false;
}

Peer::~Peer()
{
	if (owned_ && shared_->reachable())
		weft_peer_close(peer_);
}

weft_peer *Peer::get() const
{
	shared_->node();
	return peer_;
}

Key::Key(nb::handle object, const char *wrong)
{
	if (PyUnicode_Check(object.ptr())) {
		data = PyUnicode_AsUTF8AndSize(object.ptr(), &bytes);
		if (!data)
			throw nb::python_error();
	} else if (PyBytes_Check(object.ptr())) {
		data = PyBytes_AsString(object.ptr());
		bytes = PyBytes_Size(object.ptr());
	} else {
		invalid(wrong);
	}
}

nb::object peer_of(const std::shared_ptr<Shared> &shared, const weft_op *op)
{
	weft_peer *peer = shared->open() ? weft_op_peer(op) : nullptr;

	return peer ? nb::cast(Peer(shared, peer, false)) : nb::none();
}

/* Nodes. */

static weft_security security_of(const Text &mode)
{
	if (!mode)
		return WEFT_SECURITY_NONE;
	if (*mode == "open")
		return WEFT_SECURITY_OPEN;
	if (*mode == "keyed")
		return WEFT_SECURITY_KEYED;
	if (*mode != "sealed")
		invalid("security is \"open\", \"keyed\", \"sealed\" or None");
	return WEFT_SECURITY_SEALED;
}

using Settings = std::map<std::string, std::string>;

static void open_node(Node *self, const Text &listen, const Text &advertise, const Text &name, const Text &provider,
		      const Text &device, nb::handle timeout, uint64_t pool_bytes, const Text &security,
		      bool manual, unsigned workers, bool checksum, const Settings &settings)
{
	weft_node_options o = WEFT_NODE_OPTIONS_INIT;
	std::vector<std::string> lines;
	std::vector<const char *> texts;

	for (const auto &[setting, value] : settings)
		lines.push_back(setting + "=" + value);
	for (const auto &line : lines)
		texts.push_back(line.c_str());
	texts.push_back(nullptr);

	o.mode = manual ? WEFT_MANUAL : WEFT_THREADED;
	o.security = security_of(security);
	o.listen = listen ? listen->c_str() : nullptr;
	o.advertise = advertise ? advertise->c_str() : nullptr;
	o.name = name ? name->c_str() : nullptr;
	o.provider = provider ? provider->c_str() : nullptr;
	o.device = device ? device->c_str() : nullptr;
	o.timeout_ns = nanoseconds(timeout, 0);
	o.pool_bytes = pool_bytes;
	o.workers = workers;
	o.flags = checksum ? WEFT_CHECKSUM : 0;
	o.settings = texts.data();
	new (self) Node{ std::make_shared<Shared>(o) };
}

static Peer open_peer(const Node &n, const std::string &address)
{
	weft_peer *peer;

	check(weft_peer_open(n.shared->node(), address.c_str(), &peer));
	return Peer(n.shared, peer, true);
}

static int poll(const Node &n, nb::handle timeout)
{
	weft_node *node = n.shared->node();
	uint64_t ns = nanoseconds(timeout, WEFT_FOREVER);
	int count = 0;
	int err = in_slices(n.shared, nullptr, ns, [&](uint64_t slice) {
		count = weft_poll(node, slice);
		return count || !slice ? 0 : -ETIMEDOUT;
	});

	if (err == -ESHUTDOWN)
		n.shared->node(); // raises
	check(count);
	return count;
}

/* Seconds until a manual node is to be polled at the latest; None: now. */
static nb::object arm(const Node &n)
{
	weft_node *node = n.shared->node();
	Turn turn(*n.shared);
	uint64_t ns = 0;
	int err;

	/* Another thread drives the node, and kicks the loop when it leaves. */
	if (!turn.has_come())
		return nb::float_(0.1);
	err = weft_arm(node, &ns);
	if (err == -EAGAIN)
		return nb::none();
	check(err);
	return nb::float_(ns == WEFT_FOREVER ? 3600.0 : double(ns) / 1e9);
}

/* The descriptor of a manual node, for an event loop that drives it. */
static int node_fd(const Node &n)
{
	weft_node *node = n.shared->node();
	int fd;

	{
		Inside inside(n.shared);

		fd = weft_fd(node);
	}
	check(fd);
	return fd;
}

/* The descriptor of the queue, for an event loop, or a thread, that drains it. */
static int queue_fd(const Node &n)
{
	int fd;

	n.shared->node();
	fd = weft_queue_fd(n.shared->queue());
	check(fd);
	return fd;
}

/* Tensors. */

static Operation send(const Peer &peer, uint64_t step, nb::handle key, nb::handle tensor, nb::handle timeout,
		      bool dead, bool opaque, bool snapshot, bool share, unsigned priority, nb::handle stream)
{
	auto flight = std::make_unique<Flight>(peer.shared());
	weft_send_options o = WEFT_SEND_OPTIONS_INIT;
	Key k(key);

	flight->array.take(tensor, false, stream);
	fill(o.op, *flight, timeout, priority);
	o.flags = (dead ? WEFT_DEAD : 0) | (opaque ? WEFT_OPAQUE : 0) | (snapshot ? WEFT_SNAPSHOT : 0) |
		  (share ? WEFT_SHARE : 0);
	o.stream = flight->array.stream();
	check(weft_send(peer.get(), step, k.data, size_t(k.bytes), flight->array.pointer(), &o, &flight->op));
	return Operation(std::move(flight));
}

static Operation recv(const Node &n, uint64_t step, nb::handle key, nb::handle into, const Peer *peer,
		      nb::handle timeout, bool any_shape, bool drop, bool relay, unsigned priority,
		      nb::handle stream)
{
	auto flight = std::make_unique<Flight>(n.shared);
	weft_recv_options o = WEFT_RECV_OPTIONS_INIT;
	const char *data = nullptr;
	size_t bytes = 0;

	if (!key.is_none()) {
		Key k(key);

		data = k.data;
		bytes = size_t(k.bytes);
	}
	fill_recv(o, *flight, into, timeout, priority, stream);
	o.flags = (any_shape ? WEFT_ANY_SHAPE : 0) | (drop ? WEFT_DROP : 0) | (relay ? WEFT_RELAY : 0) |
		  (key.is_none() ? WEFT_ANY_KEY : 0);
	check(weft_recv(n.shared->node(), peer ? peer->get() : nullptr, step, data, bytes,
			flight->array.pointer(), &o, &flight->op));
	return Operation(std::move(flight));
}

static Operation broadcast(const Node &n, nb::list peers, uint64_t step, nb::handle key, nb::handle tensor,
			   nb::handle timeout, bool share, unsigned readers, nb::handle stream)
{
	auto flight = std::make_unique<Flight>(n.shared);
	weft_broadcast_options o = WEFT_BROADCAST_OPTIONS_INIT;
	std::vector<weft_peer *> to;
	Key k(key);

	flight->array.take(tensor, false, stream);
	fill(o.op, *flight, timeout);
	for (nb::handle peer : peers)
		to.push_back(nb::cast<const Peer &>(peer).get());
	o.flags = share ? WEFT_SHARE : 0;
	o.readers = readers;
	o.stream = flight->array.stream();
	check(weft_broadcast(to.data(), to.size(), step, k.data, size_t(k.bytes), flight->array.pointer(), &o,
			     &flight->op));
	return Operation(std::move(flight));
}

static Operation ping(const Peer &peer, nb::handle timeout)
{
	auto flight = std::make_unique<Flight>(peer.shared());
	weft_op_options o = WEFT_OP_OPTIONS_INIT;

	fill(o, *flight, timeout);
	check(weft_ping(peer.get(), &o, &flight->op));
	return Operation(std::move(flight));
}

static nb::object probe(const Node &n, uint64_t step, nb::handle key, const Peer *peer)
{
	weft_probe_info info = WEFT_PROBE_INFO_INIT;
	Key k(key);
	nb::list shape;
	nb::dict d;
	int err = weft_probe(n.shared->node(), peer ? peer->get() : nullptr, step, k.data, size_t(k.bytes),
			     &info);

	if (err == -EAGAIN)
		return nb::none();
	check(err);
	for (int32_t i = 0; i < info.ndim; i++)
		shape.append(info.shape[i]);
	d["peer"] = Peer(n.shared, info.peer, false);
	d["shape"] = nb::tuple(shape);
	d["dtype"] = name_of_dtype(info.dtype);
	d["nbytes"] = info.bytes;
	d["dead"] = !!(info.flags & WEFT_DEAD);
	return d;
}

static nb::str identity_of(const Peer &p)
{
	char identity[WEFT_IDENTITY_BYTES];

	check(weft_peer_identity(p.get(), identity, sizeof(identity)));
	return text_of(identity);
}

nb::class_<Peer> bind_peer(nb::module_ &m)
{
	return nb::class_<Peer>(m, "Peer", "Another node, by its address.  Nothing is sent until it is used.")
		.def_prop_ro("name", [](const Peer &p) { return text_of(weft_peer_name(p.get())); },
			     "The peer's name, once it has told it, else its address.")
		.def_prop_ro("identity", &identity_of,
			     "What the peer has proven to be: 'key:' and digits, or a name of its certificate; '' in\n"
			     "a node without keys.  An error before it was met.")
		.def("send", &send, "step"_a, "key"_a, "tensor"_a, nb::kw_only(), "timeout"_a = nb::none(),
		     "dead"_a = false, "opaque"_a = false, "snapshot"_a = false, "share"_a = false,
		     "priority"_a = 0, "stream"_a = nb::none(),
		     "Send an array by step and key, without a copy where the fabric allows it.\n\n"
		     "tensor: anything with __dlpack__ or a buffer; borrowed until the operation ends.\n"
		     "timeout: seconds; None: the node's.  dead: matched, without content.  opaque: bytes that\n"
		     "the ends understand.  snapshot: copied at once.  share: memory of Node.empty(), which\n"
		     "nobody writes to any more: peers of this host get it without a copy.  priority: 0 to 3.\n"
		     "stream: of CUDA memory, the stream after whose work it is ready, as DLPack counts them.")
		.def("ping", &ping, nb::kw_only(), "timeout"_a = nb::none(),
		     "Ask for an answer over the fabric; connects if need be.");
}

nb::class_<Node> bind_node(nb::module_ &m)
{
	nb::class_<Node> c(m, "Node",
			   "This process's end of everything: a node of weft.\n\n"
			   "Words left out are as the environment says, see weft_options(7).  listen: host:port,\n"
			   "127.0.0.1:0 by default.  timeout: seconds for operations that name none.  security:\n"
			   "'sealed' or 'keyed', with a key or certificates; 'open' to leave loopback without.\n"
			   "manual: driven by the thread that waits, without one of\n"
			   "its own.  checksum: bodies are verified on arrival.  settings: a dict of those of\n"
			   "weft_options(7) by name, before the environment's.");

	c.def("__init__", &open_node, nb::kw_only(), "listen"_a = nb::none(), "advertise"_a = nb::none(),
	      "name"_a = nb::none(), "provider"_a = nb::none(), "device"_a = nb::none(),
	      "timeout"_a = nb::none(), "pool_bytes"_a = 0, "security"_a = nb::none(), "manual"_a = false,
	      "workers"_a = 0, "checksum"_a = false, "settings"_a = Settings())
		.def("__enter__", [](nb::handle self) { return nb::borrow(self); })
		.def("__exit__", [](const Node &n, nb::args) { n.shared->close(); })
		.def_prop_ro("address", [](const Node &n) { return nb::str(weft_node_address(n.shared->node())); },
			     "The address to give to others, host:port.")
		.def_prop_ro("closed", [](const Node &n) { return !n.shared->open(); })
		.def_prop_ro("manual", [](const Node &n) { return n.shared->manual(); })
		.def("close", [](const Node &n) { n.shared->close(); },
		     "Say goodbye to all peers; operations under way end as cancelled.\n\n"
		     "While results in the node's memory are alive it stays underneath, and is of no use.")
		.def("peer", &open_peer, "address"_a, "The node at host:port.")
		.def("recv", &recv, "step"_a, "key"_a.none() = nb::none(), nb::kw_only(), "into"_a = nb::none(),
		     "peer"_a.none() = nb::none(), "timeout"_a = nb::none(), "any_shape"_a = false,
		     "drop"_a = false, "relay"_a = false, "priority"_a = 0, "stream"_a = nb::none(),
		     "Receive a tensor of a step and key; result() is a weft.Tensor, or into.\n\n"
		     "key: None: any that nobody else waits for.  into: an array to receive into, of the\n"
		     "tensor's dtype and shape.  peer: None: from any.  any_shape: into may be longer.\n"
		     "drop: a receive that is cancelled or late drops its tensor.  relay: of a broadcast, pass\n"
		     "it on to other receivers; needs peer.")
		.def("broadcast", &broadcast, "peers"_a, "step"_a, "key"_a, "tensor"_a, nb::kw_only(),
		     "timeout"_a = nb::none(), "share"_a = false, "readers"_a = 0, "stream"_a = nb::none(),
		     "Send a tensor to many peers, which receive it as any, or with relay=True.")
		.def("probe", &probe, "step"_a, "key"_a, "peer"_a.none() = nb::none(),
		     "Describe the tensor that waits for a receive, as a dict; None: there is none.")
		.def("empty", [](const Node &n, nb::handle shape, const char *dtype) {
			return empty(n.shared, shape, dtype);
		}, "shape"_a, "dtype"_a = "float32",
		     "Take memory of the node's pool, which needs no registration: a weft.Tensor.")
		.def("abort_step", [](const Node &n, uint64_t step, int status, const std::string &message) {
			check(weft_step_abort(n.shared->node(), step, weft_status(status), message.c_str()));
		}, "step"_a, "status"_a, "message"_a = "",
		     "End all operations of a step, here and on every node that takes part in it.")
		.def("end_step", [](const Node &n, uint64_t step) {
			check(weft_step_end(n.shared->node(), step));
		}, "step"_a, "Drop all that is kept of a step.")
		.def("poll", &poll, "timeout"_a = 0.0, "Drive a manual node.  Returns how many operations ended.")
		.def("rekey", [](const Node &n) { check(weft_node_rekey(n.shared->node())); },
		     "Read key file or certificates, and WEFT_ALLOW, anew; operations go on.")
		.def("counters", [](const Node &n) { return counters_of(n.shared->node()); },
		     "Totals since the node was opened, as a dict; see weft_node(3).")
		.def("dump", [](const Node &n) { return dump_of(n.shared); },
		     "What the node holds, which operation waits for whom, and what happened last.")
		.def("_arm", &arm)
		.def("_fd", &node_fd)
		.def_prop_ro("_id", [](const Node &n) { return reinterpret_cast<uintptr_t>(n.shared.get()); })
		.def("_queue_fd", &queue_fd)
		.def("_drain", [](const Node &n) { return n.shared->drain(); })
		.def_prop_ro("_idle", [](const Node &n) { return n.shared->idle(); })
		.def("_on_close", [](const Node &n, nb::handle owner, nb::object function) {
			n.shared->on_close(owner, std::move(function));
		})
		.def("_set_kick", [](const Node &n, nb::handle kick) {
			n.shared->kick = kick.is_none() ? nb::object() : nb::borrow(kick);
		}, "kick"_a.none());
	m.def("_close_all_nodes", &close_all_nodes);
	return c;
}
