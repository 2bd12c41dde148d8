/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport of a server: a node of weft, and what is known of the tasks that tensors come from.
 *
 * A task is known by its name and the incarnation of the device that a tensor comes from.  One that
 * is not known is asked by a RecvTensor whose key is no key (hello.h): a server with the plug-in
 * answers with its hello, any other with INVALID_ARGUMENT, and stays on gRPC.  A task that has
 * restarted has other incarnations and another hello, by which its former life is closed and
 * forgotten; so is a peer that weft has lost.  One that does not answer a ping stays on gRPC, too.
 *
 * The server, each rendezvous, each receive and each tensor in memory of the pool keep the
 * transport by a reference.  The last one closes the node, in a thread of TensorFlow's.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_TRANSPORT_H
#define WEFT_TENSORFLOW_TRANSPORT_H

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <absl/status/status.h>
#include <tensorflow/core/platform/mutex.h>
#include <tensorflow/core/platform/refcount.h>
#include <tensorflow/core/platform/thread_annotations.h>
#include <weft/weft.h>

#include "allocator.h"
#include "tensors.pb-c.h"

namespace weft_tensorflow {

class WeftWorker;

/* A task whose hello came by gRPC answers a ping at once, however busy its host; not tuned yet. */
constexpr uint64_t kReachNs = 10ull * 1000 * 1000 * 1000;

/* One life of a task, as tensors are asked of it.  Closed with its last reference. */
struct Peer {
	std::string task;                 /* "/job:ps/replica:0/task:0" */
	std::string hello;                /* hello that the task gave; "": the task stays on gRPC */
	weft_peer *peer = nullptr;
	weft_stub *stub = nullptr;        /* service of the task (tensors.proto); NULL: gRPC */
	std::atomic<bool> reached{false}; /* the task has answered a ping */
	std::atomic<bool> probed{false};  /* probe() is at it */
	std::atomic<bool> met{false};     /* the task has answered a call */
	std::string provider;             /* provider of the last body; under the transport's lock */

	~Peer();
};

/* The service weft.tensorflow.Tensors, as weft calls it: @base comes first. */
struct Service {
	Weft__Tensorflow__Tensors_Service base;
	std::atomic<WeftWorker *> worker{nullptr};
};

class Transport;
using TransportPtr = tensorflow::core::RefCountPtr<Transport>;

class Transport : public tensorflow::core::RefCounted {
public:
	/*
	 * Open the transport of @task, whose node listens on @host unless the environment names an
	 * address.
	 */
	static absl::Status open(const std::string &task, const std::string &host,
				 TransportPtr *transport);

	weft_node *node() const { return node_; }
	PoolAllocator *allocator() { return &allocator_; }

	/* Returns the text by which this server is known to others, which learn() takes. */
	const std::string &hello() const { return hello_; }

	/* Returns what is known of @incarnation of a device of @task; NULL: nothing yet. */
	std::shared_ptr<Peer> find(const std::string &task, uint64_t incarnation);

	/* Remember @hello, which @incarnation of a device of @task gave; "": it stays on gRPC. */
	std::shared_ptr<Peer> learn(const std::string &task, uint64_t incarnation,
				    const std::string &hello);

	/* Forget a peer that weft has lost, for the reason @why: it is asked anew. */
	void forget(const std::shared_ptr<Peer> &peer, const char *why);

	/* Returns whether @task was lost, and has not answered since. */
	bool is_lost(const std::string &task);

	/* Find out whether @peer answers a ping, for fetches that end before: if not, avoid() it. */
	void probe(const std::shared_ptr<Peer> &peer);

	/* Keep a peer that can't be reached over weft on gRPC, for the reason @why. */
	void avoid(const std::shared_ptr<Peer> &peer, const char *why);

	/*
	 * Note that @peer has answered, and that a body came over @provider unless that is "": the
	 * first provider is logged, and each change.
	 */
	void came(Peer *peer, const std::string &provider);

	/* Let @worker answer calls of peers, until refuse(). */
	void serve(WeftWorker *worker) { service_->worker = worker; }

	/* Refuse calls of peers from now on, but for one that is being begun. */
	void refuse();

	/* Wait a tenth of a second.  Returns whether all calls of peers have been answered. */
	bool wait_idle();

private:
	Transport();
	~Transport() override;
	absl::Status open_node(const std::string &task, const std::string &host);

	weft_node *node_ = nullptr;
	Service *service_; /* lives as long as the node */
	PoolAllocator allocator_{this};
	std::string hello_;
	tensorflow::mutex mu_;
	std::map<std::pair<std::string, uint64_t>, std::shared_ptr<Peer>> peers_
		TF_GUARDED_BY(mu_);
	std::set<std::string> lost_ TF_GUARDED_BY(mu_); /* tasks */
};

}  // namespace weft_tensorflow

#endif
