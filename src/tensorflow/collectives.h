/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives: the buffers that rings and trees of MultiWorkerMirroredStrategy pass on.
 *
 * The receiver calls weft.tensorflow.Tensors.ReceiveBuffer of the task that provides the buffer,
 * and reads the attachment of the reply straight into the tensor that TensorFlow names, or, for the
 * memory of an accelerator, into one of the host that TensorFlow copies.  The provider's tensor is
 * lent to weft, and given back when the receiver has it all.
 *
 * Groups are made by gRPC, as ever.  So are buffers of a task that does not speak weft received.
 *
 * Threads: weft's call collectives_serve(), which does not block; TensorFlow's the rest.
 */
#ifndef WEFT_TENSORFLOW_COLLECTIVES_H
#define WEFT_TENSORFLOW_COLLECTIVES_H

#include <mutex>
#include <string>

#include <tensorflow/core/distributed_runtime/worker_cache.h>
#include <tensorflow/core/distributed_runtime/worker_env.h>
#include <tensorflow/core/framework/collective.h>

#include "transport.h"

namespace weft_tensorflow {

/*
 * Returns the caller's manager of collectives for @task, whose buffers go over weft.  Borrows @env
 * and @cache.
 */
tensorflow::CollectiveExecutorMgrInterface *
collectives_new(const tensorflow::ConfigProto &config, const tensorflow::WorkerEnv *env,
		tensorflow::WorkerCacheInterface *cache, const std::string &task,
		TransportPtr transport);

/* Returns a lock: while it is held no call of a peer looks for the collectives of a server. */
std::unique_lock<std::mutex> collectives_lock();

/* Answer a peer's call for a buffer of the collectives of @env. */
void collectives_serve(const tensorflow::WorkerEnv *env, const Weft__Tensorflow__WantBuffer *want,
		       Weft__Tensorflow__Have_Closure closure, void *closure_data);

}  // namespace weft_tensorflow

#endif
