/* SPDX-License-Identifier: BSD-2-Clause */
#include "send.h"

#include <tensorflow/core/distributed_runtime/rendezvous_mgr_interface.h>
#include <tensorflow/core/distributed_runtime/rpc/grpc_tensor_coding.h>
#include <tensorflow/core/distributed_runtime/worker_env.h>

#include "answer.h"
#include "collectives.h"
#include "device.h"
#include "hello.h"
#include "waiting.h"
#include "work.h"

namespace weft_tensorflow {

using tensorflow::Device;
using tensorflow::Rendezvous;
using tensorflow::Tensor;

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
	uint64_t number;

	if (status.ok())
		status = PrepareRecvTensor(parsed, &device);
	if (!status.ok()) {
		answer.fail(status);
		return;
	}
	/* The step of a call whose caller has gone ends here, too, as with gRPC. */
	number = waiting_add(answer, env_, [this, step = want->step] { AbortStep(step); });
	env_->rendezvous_mgr->RecvLocalAsync(
		want->step, parsed,
		[answer, device, number, pool = env_->compute_pool](
			const absl::Status &status, const Rendezvous::Args &args,
			const Rendezvous::Args &, const Tensor &tensor, bool is_dead) {
			if (!waiting_remove(number))
				return;
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

}  // namespace weft_tensorflow
