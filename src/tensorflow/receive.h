/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving side: the rendezvous of a server, whose receives from other tasks go over weft.
 *
 * A receive calls weft.tensorflow.Tensors.Receive of the task that has the tensor, and reads the
 * attachment of the reply straight into the tensor that TensorFlow gets, or, for the memory of an
 * accelerator, into one of the host that TensorFlow copies.  A task that does not speak weft is
 * asked by gRPC.
 *
 * TensorFlow's continuations run kernels, so they run on its compute pool and never on weft's
 * thread.
 *
 * Threads: TensorFlow's.
 */
#ifndef WEFT_TENSORFLOW_RECEIVE_H
#define WEFT_TENSORFLOW_RECEIVE_H

#include <tensorflow/core/distributed_runtime/base_rendezvous_mgr.h>

#include "transport.h"

namespace weft_tensorflow {

class WeftRendezvousMgr : public tensorflow::BaseRendezvousMgr {
public:
	WeftRendezvousMgr(const tensorflow::WorkerEnv *env, TransportPtr transport)
		: BaseRendezvousMgr(env), transport_(std::move(transport))
	{
	}

protected:
	tensorflow::core::RefCountPtr<tensorflow::BaseRemoteRendezvous>
	Create(int64_t step, const tensorflow::WorkerEnv *env) override;

private:
	TransportPtr transport_;
};

}  // namespace weft_tensorflow

#endif
