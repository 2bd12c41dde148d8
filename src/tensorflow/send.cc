/* SPDX-License-Identifier: BSD-2-Clause */
#include "send.h"

#include <mutex>
#include <unordered_map>

#include <tensorflow/core/distributed_runtime/rendezvous_mgr_interface.h>
#include <tensorflow/core/distributed_runtime/rpc/grpc_tensor_coding.h>
#include <tensorflow/core/distributed_runtime/worker_env.h>

#include "answer.h"
#include "collectives.h"
#include "counters.h"
#include "device.h"
#include "hello.h"
#include "work.h"

namespace weft_tensorflow {
namespace {

using tensorflow::Device;
using tensorflow::Rendezvous;
using tensorflow::Tensor;

/*
 * Calls that wait for their tensors, by a number that weft_served_on_cancel() is given: weft may
 * tell of a cancel while another thread answers, so what it is given must not be freed memory.
 */
class Waiting {
public:
	void *add(WeftWorker *worker, int64_t step)
	{
		counters_add("sent_waiting");
		std::lock_guard<std::mutex> l(lock_);

		calls_[++last_] = {worker, step};
		return reinterpret_cast<void *>(last_);
	}

	void remove(void *number)
	{
		counters_add("sent_waiting", -1);
		std::lock_guard<std::mutex> l(lock_);

		calls_.erase(reinterpret_cast<uintptr_t>(number));
	}

	void cancel(void *number)
	{
		Call call = {};

		{
			std::lock_guard<std::mutex> l(lock_);
			auto at = calls_.find(reinterpret_cast<uintptr_t>(number));

			if (at != calls_.end())
				call = at->second;
		}
		if (call.worker)
			call.worker->give_up(call.step);
	}

private:
	struct Call {
		WeftWorker *worker;
		int64_t step;
	};

	std::mutex lock_;
	uintptr_t last_ = 0;
	std::unordered_map<uintptr_t, Call> calls_;
};

Waiting &waiting()
{
	static auto *all = new Waiting;

	return *all;
}

}  // namespace

WeftWorker::WeftWorker(tensorflow::WorkerEnv *env, const tensorflow::ConfigProto &config,
		       Transport *transport)
	: GrpcWorker(env, config), transport_(transport)
{
}

void WeftWorker::GrpcRecvTensorAsync(tensorflow::CallOptions *opts,
				     const tensorflow::RecvTensorRequest *request,
				     ::grpc::ByteBuffer *response, tensorflow::StatusCallback done)
{
	if (request->rendezvous_key() != kHelloKey) {
		GrpcWorker::GrpcRecvTensorAsync(opts, request, response, std::move(done));
		return;
	}

	tensorflow::RecvTensorResponse hello;

	hello_put(transport_->hello(), &hello);
	tensorflow::grpc::EncodeRecvTensorResponseToByteBuffer(hello, response);
	done(absl::OkStatus());
}

void WeftWorker::serve(const Weft__Tensorflow__Want *want, Weft__Tensorflow__Have_Closure closure,
		       void *closure_data)
{
	Answer answer = {closure, closure_data,
			 std::string(reinterpret_cast<const char *>(want->key.data),
				     want->key.len)};
	Rendezvous::ParsedKey parsed;
	Device *device = nullptr;
	absl::Status status = Rendezvous::ParseKey(answer.key, &parsed);
	void *number;

	if (status.ok())
		status = PrepareRecvTensor(parsed, &device);
	if (!status.ok()) {
		answer.fail(status);
		return;
	}
	weft_served_defer(answer.call());
	number = waiting().add(this, want->step);
	weft_served_on_cancel(answer.call(), [](void *arg) { waiting().cancel(arg); }, number);
	env_->rendezvous_mgr->RecvLocalAsync(
		want->step, parsed,
		[answer, device, number, pool = env_->compute_pool](
			const absl::Status &status, const Rendezvous::Args &args,
			const Rendezvous::Args &, const Tensor &tensor, bool is_dead) {
			waiting().remove(number);
			if (!status.ok())
				answer.fail(status);
			else if (!is_dead && device_is_apart(device, args.alloc_attrs))
				answer.give_copy(tensor, device, args.device_context);
			else if (!is_dead && answer_is_packed(tensor))
				/* Packing takes time, and this may be weft's thread. */
				work_schedule(pool,
					      [answer, tensor] { answer.give(tensor, false); });
			else
				answer.give(tensor, is_dead);
		});
}

void WeftWorker::serve_buffer(const Weft__Tensorflow__WantBuffer *want,
			      Weft__Tensorflow__Have_Closure closure, void *closure_data)
{
	collectives_serve(env_, want, closure, closure_data);
}

void WeftWorker::give_up(int64_t step)
{
	work_schedule(env_->compute_pool, [this, step] { AbortStep(step); });
}

}  // namespace weft_tensorflow
