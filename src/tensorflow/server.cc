/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <tensorflow/core/common_runtime/device_mgr.h>
#include <tensorflow/core/platform/env.h>
#include <tensorflow/core/platform/logging.h>

#include "collectives.h"
#include "device.h"
#include "receive.h"
#include "send.h"
#include "settings.h"
#include "waiting.h"

namespace weft_tensorflow {
namespace {

using tensorflow::ServerDef;
using tensorflow::ServerFactory;
using tensorflow::ServerInterface;

constexpr char kProtocol[] = "grpc+weft";
constexpr int kStopTries = 100; /* each takes a tenth of a second, if calls are left */

std::string task_of(const ServerDef &def)
{
	return "/job:" + def.job_name() + "/replica:" + std::to_string(def.replica()) +
	       "/task:" + std::to_string(def.task_index());
}

class Factory : public ServerFactory {
public:
	bool AcceptsOptions(const ServerDef &def) override { return def.protocol() == kProtocol; }

	absl::Status NewServer(const ServerDef &def, const Options &options,
			       std::unique_ptr<ServerInterface> *server) override
	{
		if (settings_enabled())
			return WeftServer::create(def, options.local_device_mgr, server);
		LOG(WARNING) << "weft: TF_RDMA_ENABLED says no: " << task_of(def)
			     << " moves its tensors by gRPC";
		return tensorflow::GrpcServer::Create(def, tensorflow::Env::Default(),
						      options.local_device_mgr, server);
	}
};

/* Say which devices of the server's gain, and how: those of the host need no word. */
void log_devices(tensorflow::DeviceMgr *devices)
{
	for (const tensorflow::Device *device : devices->ListDevices())
		if (device_is_apart(device, {}))
			LOG(INFO) << "weft: tensors of " << device->name()
				  << " go by way of the host's memory, where TensorFlow copies them";
}

const bool factory_registered = [] {
	ServerFactory::Register("WEFT_SERVER", new Factory);
	return true;
}();

}  // namespace

WeftServer::WeftServer(const ServerDef &def) : GrpcServer(def, tensorflow::Env::Default()) {}

WeftServer::~WeftServer()
{
	if (!transport_)
		return;
	int tries = 0;

	transport_->refuse();
	/* A call that was begun just before may be added only now. */
	do {
		waiting_end(worker_env());
	} while (!transport_->wait_idle() && ++tries < kStopTries);
	if (tries == kStopTries)
		LOG(WARNING) << "weft: a server ends with calls of peers under way";
}

tensorflow::CollectiveExecutorMgrInterface *
WeftServer::new_collectives(const ServerDef &def, const tensorflow::ConfigProto &config,
			    const tensorflow::WorkerEnv *env,
			    tensorflow::WorkerCacheInterface *cache)
{
	return collectives_new(config, env, cache, task_of(def),
			       tsl::core::GetNewRef(transport_.get()));
}

absl::Status WeftServer::begin(const ServerDef &def, tensorflow::DeviceMgr *devices)
{
	tensorflow::GrpcServerOptions o;
	std::string host;
	int port;
	absl::Status status = GetHostAndPort(def, &host, &port);

	if (status.ok())
		status = Transport::open(task_of(def), host, &transport_);
	if (!status.ok())
		return status;
	o.local_device_mgr = devices;
	o.rendezvous_mgr_func = [this](const tensorflow::WorkerEnv *env) {
		return new WeftRendezvousMgr(env, tsl::core::GetNewRef(transport_.get()));
	};
	o.worker_func = [this](tensorflow::WorkerEnv *env, const tensorflow::ConfigProto &config) {
		return std::make_unique<WeftWorker>(env, config, transport_.get());
	};
	o.collective_mgr_func = [this, &def](const tensorflow::ConfigProto &config,
					     const tensorflow::WorkerEnv *env,
					     tensorflow::WorkerCacheInterface *cache) {
		return new_collectives(def, config, env, cache);
	};
	status = Init(o);
	if (!status.ok())
		return status;
	log_devices(worker_env()->device_mgr);
	/* A call of a peer needs all that the server has made by now. */
	transport_->serve(static_cast<WeftWorker *>(worker_impl()));
	return absl::OkStatus();
}

absl::Status WeftServer::UpdateServerDef(const ServerDef &def)
{
	/* Calls of peers find the old collectives, or those over weft. */
	std::unique_lock<std::mutex> l = collectives_lock();
	absl::Status status = GrpcServer::UpdateServerDef(def);
	tensorflow::WorkerEnv *env = worker_env();

	if (!status.ok())
		return status;
	env->collective_executor_mgr.reset(new_collectives(def, def.default_session_config(), env,
							   master_env()->worker_cache));
	master_env()->collective_executor_mgr = env->collective_executor_mgr.get();
	return absl::OkStatus();
}

absl::Status WeftServer::create(const ServerDef &def, tensorflow::DeviceMgr *devices,
				std::unique_ptr<ServerInterface> *server)
{
	std::unique_ptr<WeftServer> fresh(new WeftServer(def));
	absl::Status status = fresh->begin(def, devices);

	if (status.ok())
		*server = std::move(fresh);
	return status;
}

}  // namespace weft_tensorflow
