/* SPDX-License-Identifier: BSD-2-Clause */
#include "send.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include <tensorflow/core/distributed_runtime/rendezvous_mgr_interface.h>
#include <tensorflow/core/distributed_runtime/rpc/grpc_tensor_coding.h>
#include <tensorflow/core/distributed_runtime/worker_env.h>
#include <tensorflow/core/platform/threadpool.h>

#include "counters.h"
#include "hello.h"
#include "status.h"

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

/* A call that is served: answered once, by one of its functions. */
struct Answer {
	Weft__Tensorflow__Have_Closure closure;
	void *closure_data;
	std::string key;

	struct weft_served *call() const { return weft_served(closure_data); }

	void fail(const absl::Status &status) const
	{
		std::string details = status_details(status);

		/* Details that are too long are left out. */
		(void)weft_served_set_details(call(), details.data(), details.size());
		weft_served_fail(call(), status_to_weft(status),
				 std::string(status.message()).c_str());
	}

	void give(const Tensor &tensor, bool is_dead) const;

private:
	bool attach(const Tensor &bytes) const;
};

void sent(struct weft_op *op, void *arg)
{
	counters_path("sent", op);
	counters_add("sent_held", -1);
	delete static_cast<Tensor *>(arg);
}

/* Attach @bytes to the reply.  False: the call has been answered by a failure. */
bool Answer::attach(const Tensor &bytes) const
{
	struct weft_send_options o = WEFT_SEND_OPTIONS_INIT;
	int64_t length = static_cast<int64_t>(bytes.TotalBytes());
	struct weft_tensor t = {};
	auto *held = new Tensor(bytes); /* shares the buffer */
	int err;

	t.data = bytes.data();
	t.device = {WEFT_CPU, 0};
	t.ndim = 1;
	t.dtype = {WEFT_UINT, 8, 1};
	t.shape = &length;
	o.flags = WEFT_OPAQUE;
	o.op.timeout_ns = WEFT_FOREVER;
	o.op.done = sent;
	o.op.arg = held;
	err = weft_served_attach(call(), &t, &o, nullptr);
	if (err) {
		delete held;
		fail(status_of_error(err, "sending " + key));
		return false;
	}
	counters_add("sent_held");
	return true;
}

/* Returns @tensor packed as a TensorProto, in a tensor of bytes. */
absl::Status pack(const Tensor &tensor, Tensor *bytes)
{
	tensorflow::TensorProto proto;
	size_t length;

	tensor.AsProtoTensorContent(&proto);
	length = proto.ByteSizeLong();
	if (length > INT32_MAX)
		return absl::InvalidArgumentError(absl::StrCat(
			"the tensor takes ", length, " bytes as a message: at most 2 GiB"));
	*bytes = Tensor(tensorflow::DT_UINT8, {static_cast<int64_t>(length)});
	if (!proto.SerializeToArray(bytes->data(), static_cast<int>(length)))
		return absl::InternalError("the tensor can't be packed");
	return absl::OkStatus();
}

void Answer::give(const Tensor &tensor, bool is_dead) const
{
	Weft__Tensorflow__Have have = WEFT__TENSORFLOW__HAVE__INIT;
	std::vector<int64_t> dims;
	Tensor bytes = tensor;

	have.dead = is_dead;
	have.dtype = tensor.dtype();
	if (!is_dead) {
		for (int i = 0; i < tensor.dims(); i++)
			dims.push_back(tensor.dim_size(i));
		have.n_dim = dims.size();
		have.dim = dims.data();
		have.packed = !tensorflow::DataTypeCanUseMemcpy(tensor.dtype());
		if (have.packed) {
			absl::Status status = pack(tensor, &bytes);

			if (!status.ok()) {
				fail(status);
				return;
			}
		}
		if (bytes.TotalBytes() && !attach(bytes))
			return;
	}
	counters_add("sent_weft");
	closure(&have, closure_data);
}

bool in_device_memory(Device *device, const Rendezvous::Args &args)
{
	return device->tensorflow_accelerator_device_info() && !args.alloc_attrs.on_host();
}

/* Copy @tensor to the host by TensorFlow's own copy, and give that. */
void give_copy(const Answer &answer, Device *device, const Rendezvous::Args &args,
	       const Tensor &tensor)
{
	tensorflow::AllocatorAttributes host;
	Tensor *copy;

	if (!args.device_context) {
		answer.fail(absl::InternalError("no copy can be made of device memory: " +
						answer.key));
		return;
	}
	host.set_on_host(true);
	host.set_gpu_compatible(true);
	copy = new Tensor(device->GetAllocator(host), tensor.dtype(), tensor.shape());
	/* The tensor must live until the copy is made. */
	args.device_context->CopyDeviceTensorToCPU(
		&tensor, answer.key, device, copy,
		[answer, copy, tensor](const absl::Status &status) {
			if (status.ok())
				answer.give(*copy, false);
			else
				answer.fail(status);
			delete copy;
		});
}

}  // namespace

WeftWorker::WeftWorker(tensorflow::WorkerEnv *env, const tensorflow::ConfigProto &config,
		       Transport *transport)
	: GrpcWorker(env, config), transport_(transport)
{
	transport->serve(this);
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
		[answer, device, number](const absl::Status &status, const Rendezvous::Args &args,
					 const Rendezvous::Args &, const Tensor &tensor,
					 bool is_dead) {
			waiting().remove(number);
			if (!status.ok())
				answer.fail(status);
			else if (!is_dead && in_device_memory(device, args))
				give_copy(answer, device, args, tensor);
			else
				answer.give(tensor, is_dead);
		});
}

void WeftWorker::give_up(int64_t step)
{
	env_->compute_pool->Schedule([this, step] { AbortStep(step); });
}

}  // namespace weft_tensorflow
