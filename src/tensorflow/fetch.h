/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetches: what one task wants of another, which comes over weft where both speak it.
 *
 * A fetch asks over gRPC whether the task speaks weft, unless that is known (hello.h), and pings it
 * if nobody has reached it so far; it calls the task's service, and reads the attachment of the
 * reply into memory that the deriving class gives.
 * What the task can't be asked over weft is left to the deriving class, to be asked by gRPC.
 *
 * Its life: begin(), and then ended(), once.  The deriving class lets its reference go there, or
 * in by_grpc() if it leaves the rest to others.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_FETCH_H
#define WEFT_TENSORFLOW_FETCH_H

#include <functional>
#include <memory>
#include <string>

#include <tensorflow/core/distributed_runtime/tensor_coding.h>
#include <tensorflow/core/distributed_runtime/worker_cache.h>
#include <tensorflow/core/distributed_runtime/worker_interface.h>
#include <tensorflow/core/framework/device.h>

#include "transport.h"

namespace weft_tensorflow {

/* The task that something comes from, and the life of one of its devices. */
struct Origin {
	std::string task;
	uint64_t incarnation;
};

class Fetch : public tensorflow::core::RefCounted {
public:
	/* End the fetch as failed with @status, soon. */
	void cancel(const absl::Status &status);

	/* Returns how the fetch has failed so far. */
	absl::Status status() const;

protected:
	/* A function that runs another one in a thread of TensorFlow's, and does not wait. */
	using Run = std::function<void(std::function<void()>)>;

	Fetch(TransportPtr transport, Run run,
	      std::shared_ptr<tensorflow::WorkerCacheInterface> cache, Origin origin);
	~Fetch() override;

	/* Begin; @device is what its answer to a question is decoded for. */
	void begin(tensorflow::DeviceBase *device);

	/* Send @request, and have @then called with the outcome when @response is there. */
	void rpc(const tensorflow::RecvTensorRequest *request, tensorflow::TensorResponse *response,
		 std::function<void(const absl::Status &)> then);

	/* Let status() be @status, unless the fetch has failed before. */
	void note(const absl::Status &status);

	/* Have ended() called in a thread of TensorFlow's, with @status unless it failed before. */
	void finish(const absl::Status &status);

	/* Copy @host, which came, into @to of @device, and have copied() called then. */
	void copy_to_device(const tensorflow::Tensor &host, tensorflow::Device *device,
			    tensorflow::DeviceContext *context, tensorflow::Tensor *to);

	/* Returns whether what was wanted came over weft, in ended(). */
	bool came_over_weft() const { return came_; }
	Transport *transport() const { return transport_.get(); }

	/* Call the method of the task's service, on @service, that gives what is wanted. */
	virtual void call(ProtobufCService *service, Weft__Tensorflow__Have_Closure closure,
			  void *closure_data) = 0;

	/*
	 * Take what the reply @have says of an attachment of @bytes, 0 without one, and set *@into
	 * to memory of as many bytes, NULL to have none read.  The peer may say anything.  On
	 * weft's thread.
	 */
	virtual absl::Status accept(const Weft__Tensorflow__Have *have, size_t bytes,
				    void **into) = 0;

	/* Ask for what is wanted by gRPC. */
	virtual void by_grpc() = 0;

	/* The end, in a thread of TensorFlow's: status() tells how. */
	virtual void ended() = 0;

	/* The end of copy_to_device(), in a thread of TensorFlow's: status() tells how. */
	virtual void copied() = 0;

	/* Returns what is done, for errors: "receiving x". */
	virtual std::string text() const = 0;

private:
	struct Question;

	void ask(tensorflow::DeviceBase *device);
	void asked(const absl::Status &status);
	void without_weft();
	void by_weft();
	int ping();
	void ping_ended(weft_op *op);
	int open_call();
	void came(const Weft__Tensorflow__Have *have);
	void call_ended(weft_op *op);
	void read(void *into, size_t bytes);
	void body_ended(weft_op *op);
	void fail_call(weft_op *op, bool unheard);
	void fail_weft(weft_op *op, bool answered);

	const TransportPtr transport_;
	const Run run_;
	const std::shared_ptr<tensorflow::WorkerCacheInterface> cache_;
	const Origin origin_;
	std::shared_ptr<Peer> peer_;
	bool came_ = false;
	bool again_ = false; /* second try over weft */

	tensorflow::WorkerInterface *worker_ = nullptr;
	tensorflow::CallOptions opts_;
	std::unique_ptr<Question> question_;

	mutable tensorflow::mutex mu_;
	absl::Status status_ TF_GUARDED_BY(mu_);
	weft_op *call_ TF_GUARDED_BY(mu_) = nullptr; /* or the ping that comes first */
	weft_op *body_ TF_GUARDED_BY(mu_) = nullptr;
};

}  // namespace weft_tensorflow

#endif
