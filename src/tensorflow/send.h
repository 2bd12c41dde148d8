/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The serving side: the worker of a server, which gives its tensors to peers over weft.
 *
 * A call whose caller has given up aborts its step here, as TensorFlow's own service does.
 *
 * Threads: weft's call serve(), which does not block; TensorFlow's the rest.
 */
#ifndef WEFT_TENSORFLOW_SEND_H
#define WEFT_TENSORFLOW_SEND_H

#include <tensorflow/core/distributed_runtime/rpc/grpc_worker_service.h>

#include "transport.h"

namespace weft_tensorflow {

class WeftWorker : public tensorflow::GrpcWorker {
public:
	/* Borrows @transport, which stops before the worker ends. */
	WeftWorker(tensorflow::WorkerEnv *env, const tensorflow::ConfigProto &config,
		   Transport *transport);

	/* Answer questions for a hello; all other requests go as ever. */
	void GrpcRecvTensorAsync(tensorflow::CallOptions *opts,
				 const tensorflow::RecvTensorRequest *request,
				 ::grpc::ByteBuffer *response,
				 tensorflow::StatusCallback done) override;

	/* Answer a peer's call of weft.tensorflow.Tensors.Receive. */
	void serve(const Weft__Tensorflow__Want *want, Weft__Tensorflow__Have_Closure closure,
		   void *closure_data);

	/* Answer a peer's call of weft.tensorflow.Tensors.ReceiveBuffer. */
	void serve_buffer(const Weft__Tensorflow__WantBuffer *want,
			  Weft__Tensorflow__Have_Closure closure, void *closure_data);

private:
	Transport *const transport_;
};

}  // namespace weft_tensorflow

#endif
