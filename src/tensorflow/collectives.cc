/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectives.h"

#include <tensorflow/core/common_runtime/base_collective_executor.h>
#include <tensorflow/core/distributed_runtime/collective_param_resolver_distributed.h>
#include <tensorflow/core/distributed_runtime/collective_rma_distributed.h>
#include <tensorflow/core/distributed_runtime/device_resolver_distributed.h>
#include <tensorflow/core/distributed_runtime/rpc_collective_executor_mgr.h>
#include <tensorflow/core/nccl/collective_communicator.h>

#include "answer.h"
#include "counters.h"
#include "device.h"
#include "fetch.h"
#include "waiting.h"
#include "work.h"

namespace weft_tensorflow {
namespace {

using tensorflow::BufRendezvous;
using tensorflow::CancellationManager;
using tensorflow::CancellationToken;
using tensorflow::CollectiveRemoteAccessDistributed;
using tensorflow::Device;
using tensorflow::mutex_lock;
using tensorflow::Tensor;

/*
 * A buffer that TensorFlow wants: the arguments of RecvFromPeer().  The tensor is shared, for a
 * collective that is out of time lets go of its own, and does not wait for its receives.
 */
struct Wanted {
	std::string device;
	std::string task;
	std::string key;
	Device *to_device;
	tensorflow::DeviceContext *to_context;
	tensorflow::AllocatorAttributes to_attributes;
	Tensor to;
	tensorflow::DeviceLocality locality;
	int stream;
	CancellationManager *cancellation;
	tensorflow::StatusCallback done;
};

class Access : public CollectiveRemoteAccessDistributed {
public:
	Access(const tensorflow::DeviceMgr *devices, tensorflow::DeviceResolverInterface *resolver,
	       std::shared_ptr<tensorflow::UnboundedWorkQueue> queue,
	       tensorflow::WorkerCacheInterface *cache, int64_t step, const std::string &task,
	       TransportPtr transport)
		: CollectiveRemoteAccessDistributed(devices, resolver, std::move(queue), cache, step,
						    task),
		  transport_(std::move(transport))
	{
	}

	void RecvFromPeer(const std::string &peer_device, const std::string &peer_task,
			  bool peer_is_local, const std::string &key, Device *to_device,
			  tensorflow::DeviceContext *to_context,
			  const tensorflow::AllocatorAttributes &to_attributes, Tensor *to,
			  const tensorflow::DeviceLocality &locality, int stream,
			  CancellationManager *cancellation,
			  const tensorflow::StatusCallback &done) override;

	/* Receive @wanted by gRPC. */
	void by_grpc(Wanted wanted);

	int64_t step() const { return step_id_; }
	CancellationManager *abortion() { return &abortion_cancel_mgr_; }

	/* Belong to @executor, which lives as long as this. */
	void belong(tensorflow::CollectiveExecutor *executor) { executor_ = executor; }
	tensorflow::CollectiveExecutor *executor() { return executor_; }

private:
	const TransportPtr transport_;
	tensorflow::CollectiveExecutor *executor_ = nullptr;
};

/* A manager whose cancel ends a receive. */
struct Heeded {
	CancellationManager *manager; /* NULL: it has told of a cancel, and may be gone */
	CancellationToken token;
};

/*
 * One receive of a buffer.  The step may be cancelled, and all of the step's collectives aborted:
 * two managers tell of it.  It may end after its collective, whose step may be gone by then, and
 * keeps what it needs of both.
 */
class BufferReceive : public Fetch {
public:
	BufferReceive(TransportPtr transport, std::shared_ptr<tensorflow::UnboundedWorkQueue> queue,
		      tensorflow::WorkerCacheInterface *cache, Access *access, uint64_t incarnation,
		      Wanted wanted)
		: Fetch(std::move(transport),
			[queue](std::function<void()> run) { queue->Schedule(std::move(run)); },
			/* Borrowed, as TensorFlow's own receives of buffers borrow it. */
			std::shared_ptr<tensorflow::WorkerCacheInterface>(
				std::shared_ptr<void>(), cache),
			{wanted.task, incarnation}),
		  access_(access), executor_(tsl::core::GetNewRef(access->executor())),
		  incarnation_(incarnation), wanted_(std::move(wanted)),
		  cancellation_{wanted_.cancellation, 0}, abortion_{access->abortion(), 0}
	{
	}

	void start();

private:
	bool heed(Heeded *heeded);
	void heed_no_more();
	void call(ProtobufCService *service, Weft__Tensorflow__Have_Closure closure,
		  void *closure_data) override;
	absl::Status accept(const Weft__Tensorflow__Have *have, size_t bytes, void **into) override;
	bool is_apart() const { return device_is_apart(wanted_.to_device, wanted_.to_attributes); }
	void by_grpc() override;
	void ended() override;
	void copied() override { tell(); }
	void tell();

	std::string text() const override
	{
		return "receiving buffer " + wanted_.key + " from " + wanted_.device + " in step " +
		       std::to_string(access_->step());
	}

	Access *const access_;
	const tensorflow::core::RefCountPtr<tensorflow::CollectiveExecutor> executor_; /* has access_ */
	const uint64_t incarnation_;
	Wanted wanted_;
	Tensor host_; /* buffer for an accelerator, until it is copied there */
	tensorflow::mutex heed_lock_;
	Heeded cancellation_ TF_GUARDED_BY(heed_lock_);
	Heeded abortion_ TF_GUARDED_BY(heed_lock_);
};

void BufferReceive::start()
{
	Ref();
	if (!heed(&abortion_) || (wanted_.cancellation && !heed(&cancellation_)))
		finish(absl::CancelledError("weft: " + text() + ": cancelled before it began"));
	else
		begin(wanted_.to_device);
	Unref();
}

/* Be cancelled with the manager of @heeded.  False: that has been cancelled already. */
bool BufferReceive::heed(Heeded *heeded)
{
	CancellationManager *manager = heeded->manager;

	Ref(); /* until the manager has told of a cancel, or need not any more */
	heeded->token = manager->get_cancellation_token();
	if (manager->RegisterCallback(heeded->token, [this, heeded] {
		    cancel(absl::CancelledError("weft: " + text() + ": cancelled"));
		    {
			    mutex_lock l(heed_lock_);

			    heeded->manager = nullptr;
		    }
		    Unref();
	    }))
		return true;
	heeded->manager = nullptr;
	Unref();
	return false;
}

/*
 * Be cancelled no more.  A manager tells of its end, too, so that one which has not told is there,
 * and stays while it waits for the lock to do so.
 */
void BufferReceive::heed_no_more()
{
	mutex_lock l(heed_lock_);

	for (Heeded *heeded : {&cancellation_, &abortion_}) {
		if (heeded->manager && heeded->manager->TryDeregisterCallback(heeded->token))
			Unref();
		heeded->manager = nullptr;
	}
}

void BufferReceive::call(ProtobufCService *service, Weft__Tensorflow__Have_Closure closure,
		   void *closure_data)
{
	Weft__Tensorflow__WantBuffer want = WEFT__TENSORFLOW__WANT_BUFFER__INIT;

	want.step = access_->step();
	want.key.len = wanted_.key.size();
	want.key.data = reinterpret_cast<uint8_t *>(wanted_.key.data());
	want.device.len = wanted_.device.size();
	want.device.data = reinterpret_cast<uint8_t *>(wanted_.device.data());
	want.incarnation = incarnation_;
	weft__tensorflow__tensors__receive_buffer(service, &want, closure, closure_data);
}

absl::Status BufferReceive::accept(const Weft__Tensorflow__Have *have, size_t bytes, void **into)
{
	if (have->dtype != wanted_.to.dtype() || bytes != wanted_.to.TotalBytes())
		return absl::InternalError(absl::StrCat(
			"weft: ", text(), ": ", bytes, " bytes of type ", have->dtype, " came, and ",
			wanted_.to.TotalBytes(), " of type ", wanted_.to.dtype(), " are wanted"));
	if (is_apart()) {
		host_ = device_host_tensor(wanted_.to_device, wanted_.to.dtype(),
					   wanted_.to.shape());
		if (!host_.IsInitialized())
			return absl::ResourceExhaustedError("weft: " + text() +
							    ": no memory to copy it from");
	}
	*into = bytes ? (is_apart() ? host_ : wanted_.to).data() : nullptr;
	return absl::OkStatus();
}

void BufferReceive::by_grpc()
{
	Wanted wanted = wanted_; /* a cancel in progress reads the other one */

	heed_no_more();
	wanted_.to = Tensor();
	access_->by_grpc(std::move(wanted));
	Unref();
}

void BufferReceive::ended()
{
	if (status().ok() && is_apart())
		copy_to_device(host_, wanted_.to_device, wanted_.to_context, &wanted_.to);
	else
		tell();
}

/* Tell the collective that the receive has ended. */
void BufferReceive::tell()
{
	tensorflow::StatusCallback done = std::move(wanted_.done);
	absl::Status how = status();

	heed_no_more();
	/* TensorFlow may write in place into a buffer that nobody else has. */
	wanted_.to = Tensor();
	if (how.ok())
		counters_add("buffers_weft");
	/* The collective, and what it lent to the receive, may be gone when it has been told. */
	Unref();
	done(how);
}

void Access::RecvFromPeer(const std::string &peer_device, const std::string &peer_task,
			  bool peer_is_local, const std::string &key, Device *to_device,
			  tensorflow::DeviceContext *to_context,
			  const tensorflow::AllocatorAttributes &to_attributes, Tensor *to,
			  const tensorflow::DeviceLocality &locality, int stream,
			  CancellationManager *cancellation, const tensorflow::StatusCallback &done)
{
	tensorflow::DeviceAttributes from;

	if (peer_is_local) {
		CollectiveRemoteAccessLocal::RecvFromPeer(
			peer_device, peer_task, peer_is_local, key, to_device, to_context,
			to_attributes, to, locality, stream, cancellation, done);
		return;
	}

	Wanted wanted = {peer_device, peer_task, key, to_device, to_context, to_attributes, *to,
			 locality, stream, cancellation, done};

	if (!dev_resolver_->GetDeviceAttributes(peer_device, &from).ok())
		by_grpc(std::move(wanted));
	else
		(new BufferReceive(tsl::core::GetNewRef(transport_.get()), work_queue_,
				   worker_cache_, this, from.incarnation(), std::move(wanted)))
			->start();
}

void Access::by_grpc(Wanted wanted)
{
	auto kept = std::make_shared<Wanted>(std::move(wanted));

	CollectiveRemoteAccessDistributed::RecvFromPeer(
		kept->device, kept->task, false, kept->key, kept->to_device, kept->to_context,
		kept->to_attributes, &kept->to, kept->locality, kept->stream, kept->cancellation,
		[kept](const absl::Status &status) {
			if (status.ok())
				counters_add("buffers_grpc");
			kept->to = Tensor();
			kept->done(status);
		});
}

class Manager : public tensorflow::RpcCollectiveExecutorMgr {
public:
	Manager(const tensorflow::ConfigProto &config, const tensorflow::DeviceMgr *devices,
		std::unique_ptr<tensorflow::DeviceResolverDistributed> resolver,
		std::unique_ptr<tensorflow::CollectiveParamResolverDistributed> params,
		std::unique_ptr<tensorflow::NcclCommunicatorInterface> nccl,
		tensorflow::WorkerCacheInterface *cache, const std::string &task,
		TransportPtr transport)
		: RpcCollectiveExecutorMgr(config, devices, std::move(resolver), std::move(params),
					   std::move(nccl), cache, task),
		  transport_(std::move(transport))
	{
	}

protected:
	tensorflow::CollectiveExecutor *Create(int64_t step) override
	{
		auto *access = new Access(dev_mgr_, dev_resolver_.get(), work_queue_, worker_cache_,
					  step, task_name_,
					  tsl::core::GetNewRef(transport_.get()));

		auto *executor = new tensorflow::BaseCollectiveExecutor(this, access, step, dev_mgr_,
									work_queue_);

		access->belong(executor);
		return executor;
	}

private:
	const TransportPtr transport_;
};

/*
 * Returns what gives the buffer of @hook back to its collective, in a thread of TensorFlow's.  As
 * with TensorFlow's own service, the collective goes on without a receiver that has cancelled.
 */
Answer::Released give_back(tensorflow::thread::ThreadPool *pool, BufRendezvous::Hook *hook)
{
	return [pool, hook](const absl::Status &status) {
		absl::Status how = absl::IsCancelled(status) ? absl::OkStatus() : status;

		work_schedule(pool, [hook, how] {
			hook->prod_cb(how);
			delete hook;
		});
	};
}

}  // namespace

tensorflow::CollectiveExecutorMgrInterface *
collectives_new(const tensorflow::ConfigProto &config, const tensorflow::WorkerEnv *env,
		tensorflow::WorkerCacheInterface *cache, const std::string &task,
		TransportPtr transport)
{
	auto nccl = tensorflow::MaybeCreateNcclCommunicator(config);
	auto resolver = std::make_unique<tensorflow::DeviceResolverDistributed>(env->device_mgr);
	auto params = std::make_unique<tensorflow::CollectiveParamResolverDistributed>(
		config, env->device_mgr, resolver.get(), nccl.get(), cache, task);

	return new Manager(config, env->device_mgr, std::move(resolver), std::move(params),
			   std::move(nccl), cache, task, std::move(transport));
}

std::unique_lock<std::mutex> collectives_lock()
{
	static std::mutex lock;

	return std::unique_lock<std::mutex>(lock);
}

void collectives_serve(const tensorflow::WorkerEnv *env, const Weft__Tensorflow__WantBuffer *want,
		       Weft__Tensorflow__Have_Closure closure, void *closure_data)
{
	std::string device(reinterpret_cast<const char *>(want->device.data), want->device.len);
	Answer answer = {closure, closure_data,
			 std::string(reinterpret_cast<const char *>(want->key.data),
				     want->key.len)};
	std::unique_lock<std::mutex> l = collectives_lock();
	tensorflow::CollectiveExecutor::Handle executor(
		env->collective_executor_mgr->FindOrCreate(want->step), true);
	uint64_t number;

	l.unlock();
	number = waiting_add(answer, env);

	executor.get()->remote_access()->buf_rendezvous()->ConsumeBuf(
		answer.key, device, want->incarnation,
		[pool = env->compute_pool, answer, number](const absl::Status &status,
							   BufRendezvous::Hook *hook) {
			if (!waiting_remove(number)) {
				if (hook)
					give_back(pool, hook)(absl::OkStatus());
				return;
			}
			if (!status.ok())
				answer.fail(status);
			else if (device_is_apart(hook->prod_dev, hook->prod_attr))
				answer.give_copy(*hook->prod_value, hook->prod_dev, hook->prod_ctx,
						 give_back(pool, hook));
			else
				answer.give(*hook->prod_value, false, give_back(pool, hook));
		},
		nullptr);
}

}  // namespace weft_tensorflow
