/* SPDX-License-Identifier: BSD-2-Clause */
#include "receive.h"

#include <tensorflow/core/common_runtime/device_mgr.h>
#include <tensorflow/core/distributed_runtime/request_id.h>
#include <tensorflow/core/distributed_runtime/tensor_coding.h>
#include <tensorflow/core/distributed_runtime/worker_cache.h>
#include <tensorflow/core/distributed_runtime/worker_env.h>
#include <tensorflow/core/distributed_runtime/worker_interface.h>
#include <tensorflow/core/distributed_runtime/worker_session.h>
#include <tensorflow/core/platform/threadpool.h>
#include <tensorflow/core/util/device_name_utils.h>

#include "counters.h"
#include "hello.h"
#include "status.h"

namespace weft_tensorflow {
namespace {

using tensorflow::DataType;
using tensorflow::Device;
using tensorflow::Rendezvous;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::WorkerInterface;
using tensorflow::mutex_lock;

/* Shorter bodies are copied out of weft's frames, and gain nothing in the pool; not tuned yet. */
constexpr size_t kPoolBytesMin = 16 * 1024;

/* An edge: which tensor comes from where, and for whom. */
struct Edge {
	int64_t step;
	std::string key;
	std::string name;
	std::string task;
	uint64_t incarnation;
	Device *device;
	Rendezvous::Args args;

	bool into_device_memory() const
	{
		return device->tensorflow_accelerator_device_info() && !args.alloc_attrs.on_host();
	}
};

/*
 * One receive.  Its life: by_weft(), or by_grpc(), or ask() and then one of them; and finish(),
 * once, from any thread.
 */
class Receive : public tensorflow::BaseRecvTensorCall, public tensorflow::core::RefCounted {
public:
	Receive(TransportPtr transport, tensorflow::thread::ThreadPool *pool,
		std::shared_ptr<tensorflow::WorkerCacheInterface> cache, Edge edge)
		: transport_(std::move(transport)), pool_(pool), cache_(std::move(cache)),
		  edge_(std::move(edge))
	{
	}

	void Start(std::function<void()> done) override;
	void StartAbort(const absl::Status &status) override;

	absl::Status status() const override
	{
		mutex_lock l(mu_);

		return status_;
	}

	const Edge &edge() const { return edge_; }
	const Tensor &tensor() const { return over_grpc_ ? response_.tensor() : tensor_; }
	bool is_dead() const { return over_grpc_ ? response_.metadata().is_dead() : dead_; }

private:
	~Receive() override;

	void ask();
	void by_grpc();
	void rpc(void (Receive::*then)(const absl::Status &));
	void asked(const absl::Status &status);
	void came_by_grpc(const absl::Status &status);

	void by_weft();
	void call_ended(weft_op *op);
	void came(const Weft__Tensorflow__Have *have);
	absl::Status accept(const Weft__Tensorflow__Have *have, const struct weft_tensor *body);
	void read(const struct weft_tensor *body);
	Tensor allocate(DataType type, const TensorShape &shape);
	void body_ended(weft_op *op);
	void fail_weft(weft_op *op);
	void unpack();

	void finish(const absl::Status &status);

	std::string text() const
	{
		return "receiving " + edge_.name + " from " + edge_.task + " in step " +
		       std::to_string(edge_.step);
	}

	const TransportPtr transport_;
	tensorflow::thread::ThreadPool *const pool_;
	const std::shared_ptr<tensorflow::WorkerCacheInterface> cache_;
	const Edge edge_;
	std::shared_ptr<Peer> peer_;
	std::function<void()> done_;

	WorkerInterface *worker_ = nullptr;
	tensorflow::CallOptions opts_;
	tensorflow::RecvTensorRequest request_;
	tensorflow::TensorResponse response_;
	bool over_grpc_ = false;

	Tensor tensor_;
	bool dead_ = false;
	bool packed_ = false;

	mutable tensorflow::mutex mu_;
	absl::Status status_ TF_GUARDED_BY(mu_);
	weft_op *call_ TF_GUARDED_BY(mu_) = nullptr;
	weft_op *body_ TF_GUARDED_BY(mu_) = nullptr;
};

Receive::~Receive()
{
	weft_op_free(body_);
	weft_op_free(call_);
	if (worker_)
		cache_->ReleaseWorker(edge_.task, worker_);
}

void Receive::Start(std::function<void()> done)
{
	done_ = std::move(done);
	if (edge_.into_device_memory()) {
		by_grpc();
		return;
	}
	peer_ = transport_->find(edge_.task, edge_.incarnation);
	if (!peer_)
		ask();
	else if (peer_->stub)
		by_weft();
	else
		by_grpc();
}

void Receive::StartAbort(const absl::Status &status)
{
	{
		mutex_lock l(mu_);

		status_.Update(status);
		if (body_)
			weft_cancel(body_);
		if (call_)
			weft_cancel(call_);
	}
	opts_.StartCancel();
}

/* Send the request, and have @then called when the answer is in the response. */
void Receive::rpc(void (Receive::*then)(const absl::Status &))
{
	if (!worker_)
		worker_ = cache_->GetOrCreateWorker(edge_.task);
	if (!worker_) {
		finish(absl::InternalError("no worker is known as " + edge_.task));
		return;
	}
	/* The answer may come, and the receive end, before this function has. */
	Ref();
	worker_->RecvTensorAsync(&opts_, &request_, &response_,
				 [this, then](const absl::Status &s) { (this->*then)(s); });
	/* An abort before the request was on its way had nothing to cancel. */
	if (!status().ok())
		opts_.StartCancel();
	Unref();
}

void Receive::ask()
{
	tensorflow::AllocatorAttributes host;

	host.set_on_host(true);
	hello_ask(&request_);
	response_.InitAlloc(edge_.device, host);
	rpc(&Receive::asked);
}

void Receive::asked(const absl::Status &status)
{
	std::string hello = status.ok() ? hello_get(response_.metadata()) : "";

	if (status.ok() || absl::IsInvalidArgument(status))
		peer_ = transport_->learn(edge_.task, edge_.incarnation, hello);
	request_.Clear();
	response_.Clear();
	/* A task that did not answer gets the request itself, which fails as ever. */
	if (peer_ && peer_->stub)
		by_weft();
	else
		by_grpc();
}

void Receive::by_grpc()
{
	absl::Status aborted = status();

	if (!aborted.ok()) {
		finish(aborted);
		return;
	}
	over_grpc_ = true;
	request_.set_step_id(edge_.step);
	request_.set_rendezvous_key(edge_.key);
	request_.set_request_id(tensorflow::GetUniqueRequestId());
	response_.InitAlloc(edge_.device, edge_.args.alloc_attrs);
	rpc(&Receive::came_by_grpc);
}

void Receive::came_by_grpc(const absl::Status &status)
{
	if (status.ok())
		counters_add("received_grpc");
	finish(status);
}

void Receive::by_weft()
{
	struct weft_call_options o = WEFT_CALL_OPTIONS_INIT;
	Weft__Tensorflow__Want want = WEFT__TENSORFLOW__WANT__INIT;
	ProtobufCService *service;
	weft_op *call;
	absl::Status failed;
	int err;

	want.step = edge_.step;
	want.key.len = edge_.key.size();
	want.key.data = reinterpret_cast<uint8_t *>(const_cast<char *>(edge_.key.data()));
	/* A step takes as long as it likes; TensorFlow cancels, and weft sees a peer that is lost. */
	o.op.timeout_ns = WEFT_FOREVER;
	o.op.arg = this;
	o.op.done = [](weft_op *op, void *arg) { static_cast<Receive *>(arg)->call_ended(op); };
	Ref();
	{
		/* An abort cancels what has begun, and what has not begun by then never does. */
		mutex_lock l(mu_);

		failed = status_;
		err = failed.ok() ? weft_call_open(peer_->stub, &o, &service, &call) : 0;
		if (err) {
			failed = status_of_error(err, text());
		} else if (failed.ok()) {
			call_ = call;
			Ref(); /* until call_ended() */
			weft__tensorflow__tensors__receive(
				service, &want,
				[](const Weft__Tensorflow__Have *have, void *arg) {
					if (have)
						static_cast<Receive *>(arg)->came(have);
				},
				this);
		}
	}
	if (!failed.ok())
		finish(failed);
	Unref();
}

/* Returns memory for a tensor that comes: the pool's, or else the device's. */
Tensor Receive::allocate(DataType type, const TensorShape &shape)
{
	size_t bytes = shape.num_elements() * tensorflow::DataTypeSize(type);

	if (bytes >= kPoolBytesMin) {
		Tensor tensor(transport_->allocator(), type, shape);

		if (tensor.IsInitialized())
			return tensor;
		counters_add("received_heap");
	}
	return Tensor(edge_.device->GetAllocator(edge_.args.alloc_attrs), type, shape);
}

/* The end of the call, on weft's thread: a reply has come before, or never comes. */
void Receive::call_ended(weft_op *op)
{
	if (weft_op_status(op) != WEFT_OK)
		fail_weft(op);
	Unref();
}

/* The reply, on weft's thread. */
void Receive::came(const Weft__Tensorflow__Have *have)
{
	const struct weft_tensor *body;
	absl::Status status;
	weft_op *call;

	{
		mutex_lock l(mu_);

		call = call_;
	}
	body = weft_op_attachment(call, 0, nullptr);
	status = accept(have, body);
	if (!status.ok() || dead_ || (!tensor_.TotalBytes() && !packed_)) {
		transport_->came(peer_.get(), "");
		if (status.ok())
			counters_add("received_weft");
		finish(status);
	} else {
		read(body);
	}
}

/* Take what the reply says of the tensor, and memory for it.  The peer may say anything. */
absl::Status Receive::accept(const Weft__Tensorflow__Have *have, const struct weft_tensor *body)
{
	TensorShape shape;
	absl::Status status;

	dead_ = have->dead;
	packed_ = have->packed && !dead_;
	if (dead_)
		return status;
	if (packed_) {
		if (!body || body->ndim != 1)
			return absl::DataLossError("weft: " + text() + ": no tensor came");
		tensor_ = allocate(tensorflow::DT_UINT8, TensorShape({body->shape[0]}));
	} else {
		DataType type = static_cast<DataType>(have->dtype);

		status = TensorShape::BuildTensorShape(
			absl::Span<const int64_t>(have->dim, have->n_dim), &shape);
		if (!status.ok() || !tensorflow::DataType_IsValid(have->dtype) ||
		    !tensorflow::DataTypeCanUseMemcpy(type))
			return absl::DataLossError("weft: " + text() +
						   ": what came is no tensor");
		tensor_ = allocate(type, shape);
	}
	if (!tensor_.IsInitialized())
		return absl::ResourceExhaustedError("weft: " + text() + ": no memory for " +
						    tensor_.shape().DebugString());
	return status;
}

/* Read @body into the tensor. */
void Receive::read(const struct weft_tensor *body)
{
	struct weft_recv_options o = WEFT_RECV_OPTIONS_INIT;
	int64_t bytes = static_cast<int64_t>(tensor_.TotalBytes());
	struct weft_tensor into = {};
	absl::Status failed;
	int err = 0;

	into.data = tensor_.data();
	into.device = {WEFT_CPU, 0};
	into.ndim = 1;
	into.dtype = {WEFT_UINT, 8, 1};
	into.shape = &bytes;
	o.op.timeout_ns = WEFT_FOREVER;
	o.op.arg = this;
	o.op.done = [](weft_op *op, void *arg) { static_cast<Receive *>(arg)->body_ended(op); };
	Ref();
	{
		mutex_lock l(mu_);

		failed = status_;
		if (failed.ok() && !body)
			failed = absl::DataLossError("weft: " + text() + ": no bytes came");
		if (failed.ok())
			err = weft_op_receive(call_, 0, &into, &o, &body_);
		if (err)
			failed = status_of_error(err, text());
	}
	if (!failed.ok())
		finish(failed);
	Unref();
}

/* The end of the body, on weft's thread. */
void Receive::body_ended(weft_op *op)
{
	if (weft_op_status(op) != WEFT_OK) {
		fail_weft(op);
		return;
	}
	transport_->came(peer_.get(), counters_path("received", op));
	counters_add("received_weft");
	if (packed_)
		pool_->Schedule([this] { unpack(); });
	else
		finish(absl::OkStatus());
}

/* Make the tensor of the TensorProto that came. */
void Receive::unpack()
{
	tensorflow::TensorProto proto;
	Tensor bytes = std::move(tensor_);
	absl::Status status;

	tensor_ = Tensor();
	if (proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.TotalBytes())))
		status = edge_.device->MakeTensorFromProto(proto, edge_.args.alloc_attrs,
							   &tensor_);
	else
		status = absl::DataLossError("weft: " + text() + ": what came is no tensor");
	finish(status);
}

/* Tell of a failure of weft's, unless gRPC can do what weft never could with this peer. */
void Receive::fail_weft(weft_op *op)
{
	enum weft_status code = weft_op_status(op);
	const char *why = weft_op_message(op);
	const void *details;
	size_t bytes;
	absl::Status failed;
	bool lost = code == WEFT_UNAVAILABLE && status().ok();

	if (lost && !peer_->met && weft_op_executed(op) == WEFT_EXECUTED_NO) {
		transport_->avoid(peer_, why);
		pool_->Schedule([this] { by_grpc(); });
		return;
	}
	if (lost)
		transport_->forget(peer_, why);
	failed = status_of(code, text(), why);
	details = weft_call_details(op, &bytes);
	status_add_details(&failed, details, details ? bytes : 0);
	finish(failed);
}

void Receive::finish(const absl::Status &status)
{
	{
		mutex_lock l(mu_);

		status_.Update(status);
	}
	pool_->Schedule([this] {
		/* The receive may be gone before the function returns. */
		auto done = std::move(done_);

		done();
	});
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

	if (!tensorflow::DeviceNameUtils::SplitDeviceName(parsed.src_device, &edge->task, &device))
		return absl::InternalError("\"" + std::string(parsed.src_device) +
					   "\" names no device of a task");
	edge->step = step_id_;
	edge->key = std::string(parsed.FullKey());
	edge->name = std::string(parsed.edge_name);
	edge->incarnation = parsed.src_incarnation;
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
