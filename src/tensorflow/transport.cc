/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport.h"

#include <cerrno>

#include <tensorflow/core/platform/env.h>
#include <tensorflow/core/platform/logging.h>

#include "arena.h"
#include "counters.h"
#include "hello.h"
#include "send.h"
#include "settings.h"
#include "status.h"

namespace weft_tensorflow {
namespace {

constexpr uint64_t kIdleNs = 100ull * 1000 * 1000;

void log_line(void *, int level, const char *line)
{
	if (level <= 1)
		LOG(WARNING) << "weft: " << line;
	else
		LOG(INFO) << "weft: " << line;
}

/* Returns the worker that serves; NULL: there is none, and the call has been refused. */
WeftWorker *worker_of(Weft__Tensorflow__Tensors_Service *base, void *closure_data)
{
	WeftWorker *worker = reinterpret_cast<Service *>(base)->worker;

	if (!worker)
		weft_served_fail(weft_served(closure_data), WEFT_UNAVAILABLE,
				 "the server is starting, or has stopped");
	return worker;
}

/* The functions that protobuf-c calls, by the names that WEFT__TENSORFLOW__TENSORS__INIT gives. */
void tensors__receive(Weft__Tensorflow__Tensors_Service *base,
		      const Weft__Tensorflow__Want *want,
		      Weft__Tensorflow__Have_Closure closure, void *closure_data)
{
	WeftWorker *worker = worker_of(base, closure_data);

	if (worker)
		worker->serve(want, closure, closure_data);
}

void tensors__receive_buffer(Weft__Tensorflow__Tensors_Service *base,
			     const Weft__Tensorflow__WantBuffer *want,
			     Weft__Tensorflow__Have_Closure closure, void *closure_data)
{
	WeftWorker *worker = worker_of(base, closure_data);

	if (worker)
		worker->serve_buffer(want, closure, closure_data);
}

/* Returns the fabrics that a node with @options uses, the best first. */
std::string fabrics(const struct weft_node_options &options)
{
	struct weft_info *info;
	std::string text;

	if (weft_info_open(&options, &info))
		return weft_error();
	for (size_t i = 0; i < weft_info_count(info); i++) {
		struct weft_fabric fabric = WEFT_FABRIC_INIT;

		if (!weft_info_get(info, i, &fabric) && fabric.used)
			text += (text.empty() ? "" : ", ") + std::string(fabric.provider) + " (" +
				fabric.domain + ")";
	}
	weft_info_close(info);
	return text;
}

/*
 * Warn if the node of @task listens on loopback, at @address, because the name @host of its host
 * means that here, as /etc/hosts of Debian has it: others take that for a place of their own.
 */
void warn_of_loopback(const std::string &task, const std::string &host, const std::string &address)
{
	bool loopback = address.rfind("127.", 0) == 0 || address.rfind("[::1]", 0) == 0;

	if (loopback && host != "localhost" && address.rfind(host + ":", 0) != 0)
		LOG(WARNING) << "weft: " << host << " is " << address
			     << " here, where no other host reaches " << task
			     << " over weft: WEFT_LISTEN names an address that they do";
}

/*
 * Open a node for @task.  Beyond loopback it is open to all, unless credentials are named: -EACCES
 * is about one of their files then.
 */
int open_at(struct weft_node_options *o, const std::string &task, weft_node **node)
{
	int err = weft_node_open(o, node);

	if (err != -EACCES || settings_credentials())
		return err;
	LOG(WARNING) << "weft: " << task
		     << " is open to every host of its network, as TensorFlow's server is";
	o->security = WEFT_SECURITY_OPEN;
	return weft_node_open(o, node);
}

}  // namespace

Peer::~Peer()
{
	weft_stub_close(stub);
	weft_peer_close(peer);
}

Transport::Transport() : service_(new Service)
{
	service_->base = WEFT__TENSORFLOW__TENSORS__INIT(tensors__);
}

Transport::~Transport()
{
	/* The last reference may go in a callback of the node, which can't close it. */
	tensorflow::Env::Default()->SchedClosure(
		[node = node_, service = service_, peers = std::move(peers_)]() mutable {
			peers.clear();
			arena_leave(node);
			weft_node_close(node);
			delete service;
		});
}

absl::Status Transport::open(const std::string &task, const std::string &host,
			     TransportPtr *transport)
{
	TransportPtr fresh(new Transport);
	absl::Status status = fresh->open_node(task, host);

	if (status.ok())
		*transport = std::move(fresh);
	return status;
}

absl::Status Transport::open_node(const std::string &task, const std::string &host)
{
	struct weft_node_options o = WEFT_NODE_OPTIONS_INIT;
	ProtobufCService *services[] = {&service_->base.base, nullptr};
	std::string listen = host + ":0", name = task.substr(0, 63);
	int err;

	o.log = log_line;
	o.services = services;
	o.name = name.c_str();
	if (!settings_listen())
		o.listen = listen.c_str();
	err = open_at(&o, task, &node_);
	if ((err == -EADDRNOTAVAIL || err == -EINVAL) && o.listen) {
		/* The cluster names the host by an address or name that only others know it by. */
		o.listen = "0.0.0.0:0";
		o.advertise = listen.c_str();
		err = open_at(&o, task, &node_);
	}
	if (err)
		return status_of(WEFT_UNAVAILABLE, "the server of " + task + " can't start",
				 weft_error());
	if (o.listen)
		warn_of_loopback(task, host, weft_node_address(node_));
	arena_join(node_);
	hello_ = hello_make(weft_node_address(node_));
	LOG(INFO) << "weft: " << task << " offers its tensors at " << weft_node_address(node_)
		  << " over " << fabrics(o) << "; weft " << weft_version() << ", libfabric "
		  << weft_info_libfabric();
	return absl::OkStatus();
}

std::shared_ptr<Peer> Transport::find(const std::string &task, uint64_t incarnation)
{
	tensorflow::mutex_lock l(mu_);
	auto at = peers_.find({task, incarnation});

	return at == peers_.end() ? nullptr : at->second;
}

std::shared_ptr<Peer> Transport::learn(const std::string &task, uint64_t incarnation,
				       const std::string &hello)
{
	std::string address = hello_address(hello);
	tensorflow::mutex_lock l(mu_);
	std::shared_ptr<Peer> &entry = peers_[{task, incarnation}];
	std::shared_ptr<Peer> known;
	auto at = peers_.lower_bound({task, 0});

	lost_.erase(task);
	if (entry)
		return entry;
	/* Devices of one life share its peer; what is left of another life is forgotten. */
	while (at != peers_.end() && at->first.first == task) {
		if (!at->second || at->second->hello == hello) {
			known = at->second ? at->second : known;
			at++;
		} else {
			at = peers_.erase(at);
		}
	}
	if (known)
		return entry = known;
	entry = std::make_shared<Peer>();
	entry->task = task;
	entry->hello = hello;
	if (address.empty()) {
		LOG(WARNING) << "weft: " << task << " does not speak weft: its tensors come by gRPC";
	} else if (weft_peer_open(node_, address.c_str(), &entry->peer) ||
		   weft_stub_open(entry->peer, &weft__tensorflow__tensors__descriptor,
				  &entry->stub)) {
		LOG(WARNING) << "weft: " << task << " at " << address
			     << " stays on gRPC: " << weft_error();
	}
	counters_add(entry->stub ? "peers_weft" : "peers_grpc");
	return entry;
}

void Transport::forget(const std::shared_ptr<Peer> &peer, const char *why)
{
	tensorflow::mutex_lock l(mu_);
	bool known = false;

	for (auto at = peers_.begin(); at != peers_.end();) {
		if (at->second == peer) {
			at = peers_.erase(at);
			known = true;
		} else {
			at++;
		}
	}
	if (!known)
		return;
	lost_.insert(peer->task);
	LOG(WARNING) << "weft: " << peer->task << " is lost: " << why;
}

bool Transport::is_lost(const std::string &task)
{
	tensorflow::mutex_lock l(mu_);

	return lost_.count(task);
}

void Transport::probe(const std::shared_ptr<Peer> &peer)
{
	struct Probe {
		TransportPtr transport;
		std::shared_ptr<Peer> peer;
	};
	struct weft_op_options o = WEFT_OP_OPTIONS_INIT;

	if (peer->probed.exchange(true))
		return;
	o.timeout_ns = kReachNs;
	o.arg = new Probe{tsl::core::GetNewRef(this), peer};
	o.done = [](weft_op *op, void *arg) {
		std::unique_ptr<Probe> probe(static_cast<Probe *>(arg));

		if (weft_op_status(op) == WEFT_OK)
			probe->peer->reached = true;
		else if (weft_op_status(op) == WEFT_DEADLINE_EXCEEDED)
			probe->transport->avoid(probe->peer, weft_op_message(op));
		probe->peer->probed = false;
	};
	if (weft_ping(peer->peer, &o, nullptr)) {
		delete static_cast<Probe *>(o.arg);
		peer->probed = false;
	}
}

void Transport::avoid(const std::shared_ptr<Peer> &peer, const char *why)
{
	tensorflow::mutex_lock l(mu_);
	std::shared_ptr<Peer> plain;

	for (auto &[key, entry] : peers_) {
		if (entry != peer)
			continue;
		if (!plain) {
			plain = std::make_shared<Peer>();
			plain->task = peer->task;
			plain->hello = peer->hello;
			LOG(WARNING) << "weft: " << peer->task << " at " << hello_address(peer->hello)
				     << " can't be reached over weft and stays on gRPC: " << why;
			counters_add("peers_grpc");
		}
		entry = plain;
	}
}

void Transport::came(Peer *peer, const std::string &provider)
{
	peer->met = true;
	if (provider.empty())
		return;
	tensorflow::mutex_lock l(mu_);
	if (peer->provider == provider)
		return;
	peer->provider = provider;
	LOG(INFO) << "weft: tensors of " << peer->task << " at " << hello_address(peer->hello)
		  << " come over " << provider;
}

void Transport::refuse()
{
	service_->worker = nullptr;
	weft_node_drain(node_, 0);
}

bool Transport::wait_idle()
{
	return !weft_node_drain(node_, kIdleNs);
}

}  // namespace weft_tensorflow
