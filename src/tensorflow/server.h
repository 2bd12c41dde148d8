/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server of the protocol "grpc+weft": TensorFlow's gRPC server, whose rendezvous and worker
 * move tensors over weft.  The library registers its factory when it is loaded.
 *
 * TensorFlow never ends a server that has started; one that has not started ends as any object.
 *
 * Threads: as TensorFlow's GrpcServer.
 */
#ifndef WEFT_TENSORFLOW_SERVER_H
#define WEFT_TENSORFLOW_SERVER_H

#include <memory>

#include <tensorflow/core/distributed_runtime/rpc/grpc_server_lib.h>

#include "transport.h"

namespace weft_tensorflow {

class WeftServer : public tensorflow::GrpcServer {
public:
	/* Create the server of @def, with @devices unless that is NULL. */
	static absl::Status create(const tensorflow::ServerDef &def, tensorflow::DeviceMgr *devices,
				   std::unique_ptr<tensorflow::ServerInterface> *server);
	~WeftServer() override;

	/*
	 * TensorFlow makes new collectives of its own here; those over weft take their place.  It
	 * does so, too, for eager code of another task that connects to this one, and those stay.
	 */
	absl::Status UpdateServerDef(const tensorflow::ServerDef &def) override;

private:
	explicit WeftServer(const tensorflow::ServerDef &def);
	absl::Status begin(const tensorflow::ServerDef &def, tensorflow::DeviceMgr *devices);
	tensorflow::CollectiveExecutorMgrInterface *
	new_collectives(const tensorflow::ServerDef &def, const tensorflow::ConfigProto &config,
			const tensorflow::WorkerEnv *env,
			tensorflow::WorkerCacheInterface *cache);

	TransportPtr transport_;
};

}  // namespace weft_tensorflow

#endif
