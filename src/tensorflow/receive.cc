/* SPDX-License-Identifier: BSD-2-Clause */
#include "receive.h"

#include <tensorflow/core/common_runtime/device_mgr.h>
#include <tensorflow/core/distributed_runtime/request_id.h>
#include <tensorflow/core/distributed_runtime/worker_env.h>
#include <tensorflow/core/distributed_runtime/worker_session.h>
#include <tensorflow/core/util/device_name_utils.h>

#include "counters.h"
#include "device.h"
#include "fetch.h"
#include "work.h"

namespace weft_tensorflow {
namespace {

using tensorflow::DataType;
using tensorflow::Device;
using tensorflow::Rendezvous;
using tensorflow::Tensor;
using tensorflow::TensorShape;

/* Shorter bodies are copied out of weft's frames, and gain nothing in the pool; not tuned yet. */
constexpr size_t kPoolBytesMin = 16 * 1024;

/* An edge: which tensor comes from where, and for whom. */
struct Edge {
	int64_t step;
	std::string key;
	std::string name;
	Origin origin;
	Device *device;
	Rendezvous::Args args;
};

/* One receive.  It keeps the reference that it is made with until it has ended. */
class Receive : public tensorflow::BaseRecvTensorCall, public Fetch {
public:
	Receive(TransportPtr transport, tensorflow::thread::ThreadPool *pool,
		std::shared_ptr<tensorflow::WorkerCacheInterface> cache, Edge edge)
		: Fetch(std::move(transport),
			[pool](std::function<void()> run) { work_schedule(pool, std::move(run)); },
			std::move(cache), edge.origin),
		  edge_(std::move(edge))
	{
	}

	void Start(std::function<void()> done) override;
	void StartAbort(const absl::Status &status) override { cancel(status); }
	absl::Status status() const override { return Fetch::status(); }

	const Edge &edge() const { return edge_; }
	const Tensor &tensor() const { return over_grpc_ ? response_.tensor() : tensor_; }
	bool is_dead() const { return over_grpc_ ? response_.metadata().is_dead() : dead_; }

private:
	void call(ProtobufCService *service, Weft__Tensorflow__Have_Closure closure,
		  void *closure_data) override;
	absl::Status accept(const Weft__Tensorflow__Have *have, size_t bytes, void **into) override;
	Tensor allocate(DataType type, const TensorShape &shape);
	absl::Status unpack();
	bool is_apart() const { return device_is_apart(edge_.device, edge_.args.alloc_attrs); }
	void give_to_device();
	void by_grpc() override;
	void ended() override;
	void copied() override { tell(); }
	void tell();

	std::string text() const override
	{
		return "receiving " + edge_.name + " from " + edge_.origin.task + " in step " +
		       std::to_string(edge_.step);
	}

	const Edge edge_;
	std::function<void()> done_;

	tensorflow::RecvTensorRequest request_;
	tensorflow::TensorResponse response_;
	bool over_grpc_ = false;

	Tensor tensor_;
	bool dead_ = false;
	bool packed_ = false;
};

void Receive::Start(std::function<void()> done)
{
	done_ = std::move(done);
	begin(edge_.device);
}

void Receive::call(ProtobufCService *service, Weft__Tensorflow__Have_Closure closure,
		   void *closure_data)
{
	Weft__Tensorflow__Want want = WEFT__TENSORFLOW__WANT__INIT;

	want.step = edge_.step;
	want.key.len = edge_.key.size();
	want.key.data = reinterpret_cast<uint8_t *>(const_cast<char *>(edge_.key.data()));
	weft__tensorflow__tensors__receive(service, &want, closure, closure_data);
}

void Receive::by_grpc()
{
	over_grpc_ = true;
	request_.set_step_id(edge_.step);
	request_.set_rendezvous_key(edge_.key);
	request_.set_request_id(tensorflow::GetUniqueRequestId());
	response_.InitAlloc(edge_.device, edge_.args.alloc_attrs);
	rpc(&request_, &response_, [this](const absl::Status &status) { finish(status); });
}

/* Returns memory of the host for a tensor that comes: the pool's, or else TensorFlow's. */
Tensor Receive::allocate(DataType type, const TensorShape &shape)
{
	size_t bytes = shape.num_elements() * tensorflow::DataTypeSize(type);

	if (is_apart())
		return device_host_tensor(edge_.device, type, shape);
	if (bytes >= kPoolBytesMin) {
		Tensor tensor(transport()->allocator(), type, shape);

		if (tensor.IsInitialized())
			return tensor;
		counters_add("received_heap");
	}
	return device_tensor(edge_.device, edge_.args.alloc_attrs, type, shape);
}

/* Memory is taken for @bytes, which the reply has beside it, and no more. */
absl::Status Receive::accept(const Weft__Tensorflow__Have *have, size_t bytes, void **into)
{
	auto type = static_cast<DataType>(have->dtype);
	absl::Status lie = absl::DataLossError("weft: " + text() + ": what came is no tensor");
	TensorShape shape;

	dead_ = have->dead;
	packed_ = have->packed && !dead_;
	if (dead_)
		return absl::OkStatus();
	if (packed_) {
		/* A message of protobuf has no more bytes than an int counts. */
		if (!bytes || bytes > INT32_MAX)
			return lie;
		type = tensorflow::DT_UINT8;
		shape = TensorShape({static_cast<int64_t>(bytes)});
	} else if (!tensorflow::DataType_IsValid(have->dtype) ||
		   !tensorflow::DataTypeCanUseMemcpy(type) ||
		   !TensorShape::BuildTensorShape(
			    absl::Span<const int64_t>(have->dim, have->n_dim), &shape)
			    .ok()) {
		return lie;
	}
	if (shape.num_elements()) {
		size_t size = tensorflow::DataTypeSize(type);

		if (!size || bytes % size ||
		    bytes / size != static_cast<size_t>(shape.num_elements()))
			return lie;
	}
	tensor_ = allocate(type, shape);
	if (!tensor_.IsInitialized())
		return absl::ResourceExhaustedError("weft: " + text() + ": no memory for " +
						    shape.DebugString());
	*into = shape.num_elements() ? tensor_.data() : nullptr;
	return absl::OkStatus();
}

/*
 * Make the tensor of the TensorProto that came.  One with fewer elements than its shape says is
 * filled up by TensorFlow; no sender makes such, and they could take any memory.  What is inside of
 * a variant is not looked at: TensorFlow's decoders take what it says, as with gRPC.
 */
absl::Status Receive::unpack()
{
	tensorflow::TensorProto proto;
	TensorShape shape;
	Tensor bytes = std::move(tensor_);

	tensor_ = Tensor();
	if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.TotalBytes())) ||
	    !tensorflow::DataType_IsValid(proto.dtype()) ||
	    tensorflow::DataTypeCanUseMemcpy(proto.dtype()) ||
	    !TensorShape::BuildTensorShape(proto.tensor_shape(), &shape).ok() ||
	    static_cast<size_t>(shape.num_elements()) > bytes.TotalBytes())
		return absl::DataLossError("weft: " + text() + ": what came is no tensor");
	return edge_.device->MakeTensorFromProto(proto, edge_.args.alloc_attrs, &tensor_);
}

/* Copy the tensor that came to where it is wanted. */
void Receive::give_to_device()
{
	Tensor host = std::move(tensor_);

	tensor_ = Tensor(edge_.device->GetAllocator(edge_.args.alloc_attrs), host.dtype(),
			 host.shape());
	if (!tensor_.IsInitialized()) {
		note(absl::ResourceExhaustedError("weft: " + text() + ": no memory of " +
						  edge_.device->name()));
		tell();
		return;
	}
	copy_to_device(host, edge_.device, edge_.args.device_context, &tensor_);
}

void Receive::ended()
{
	bool came = status().ok() && came_over_weft() && !dead_;

	if (came && packed_)
		note(unpack());
	if (came && !packed_ && is_apart())
		give_to_device();
	else
		tell();
}

/* Tell TensorFlow that the receive has ended. */
void Receive::tell()
{
	/* The receive may be gone before what is done then returns. */
	auto done = std::move(done_);

	if (status().ok())
		counters_add(came_over_weft() ? "received_weft" : "received_grpc");
	done();
}

class WeftRendezvous : public tensorflow::BaseRemoteRendezvous {
public:
	WeftRendezvous(const tensorflow::WorkerEnv *env, int64_t step, TransportPtr transport)
		: BaseRemoteRendezvous(env, step), transport_(std::move(transport))
	{
	}

protected:
	void RecvFromRemoteAsync(const Rendezvous::ParsedKey &parsed, const Rendezvous::Args &args,
				 Rendezvous::DoneCallback done) override;

private:
	~WeftRendezvous() override = default;

	absl::Status find(const Rendezvous::ParsedKey &parsed, Edge *edge);

	const TransportPtr transport_;
};

absl::Status WeftRendezvous::find(const Rendezvous::ParsedKey &parsed, Edge *edge)
{
	std::string device;

	if (!tensorflow::DeviceNameUtils::SplitDeviceName(parsed.src_device, &edge->origin.task,
						     &device))
		return absl::InternalError("\"" + std::string(parsed.src_device) +
					   "\" names no device of a task");
	edge->step = step_id_;
	edge->key = std::string(parsed.FullKey());
	edge->name = std::string(parsed.edge_name);
	edge->origin.incarnation = parsed.src_incarnation;
	return session()->device_mgr()->LookupDevice(parsed.dst_device, &edge->device);
}

void WeftRendezvous::RecvFromRemoteAsync(const Rendezvous::ParsedKey &parsed,
					 const Rendezvous::Args &args, Rendezvous::DoneCallback done)
{
	Edge edge = {};
	absl::Status status = find(parsed, &edge);
	Receive *receive;

	if (!status.ok()) {
		done(status, Args(), args, Tensor(), false);
		return;
	}
	edge.args = args;
	receive = new Receive(tsl::core::GetNewRef(transport_.get()), env_->compute_pool,
			      session()->GetSharedWorkerCache(), std::move(edge));
	RegisterCall(receive, args);
	status = receive->status();
	if (!status.ok()) {
		DeregisterCall(receive, args);
		receive->Unref();
		done(status, Args(), args, Tensor(), false);
		return;
	}
	Ref();
	receive->Start([this, receive, done = std::move(done)] {
		const Rendezvous::Args &args = receive->edge().args;
		absl::Status status = receive->status();

		DeregisterCall(receive, args);
		done(status, Args(), args, receive->tensor(), receive->is_dead());
		receive->Unref();
		Unref();
	});
}

}  // namespace

tensorflow::core::RefCountPtr<tensorflow::BaseRemoteRendezvous>
WeftRendezvousMgr::Create(int64_t step, const tensorflow::WorkerEnv *env)
{
	return tensorflow::core::RefCountPtr<tensorflow::BaseRemoteRendezvous>(
		new WeftRendezvous(env, step, tsl::core::GetNewRef(transport_.get())));
}

}  // namespace weft_tensorflow
