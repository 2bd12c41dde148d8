/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting calls: calls of peers for what TensorFlow has yet to make.
 *
 * Each is answered once: with what TensorFlow makes, or with a failure as soon as its caller gives
 * up or its server ends.  TensorFlow itself keeps a request of a step that never begins for good.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_WAITING_H
#define WEFT_TENSORFLOW_WAITING_H

#include <cstdint>
#include <functional>

#include <tensorflow/core/distributed_runtime/worker_env.h>

#include "answer.h"

namespace weft_tensorflow {

/*
 * Add the call of @answer, which the server of @env waits with.  When its caller gives up,
 * @given_up is called on weft's thread, and then the call is answered.  Returns the call's number.
 * Threads: callback.
 */
uint64_t waiting_add(const Answer &answer, const tensorflow::WorkerEnv *env,
		     std::function<void()> given_up = nullptr);

/* Remove a call.  False: it has been answered, and what TensorFlow has made for it is not needed. */
bool waiting_remove(uint64_t number);

/* Answer all calls that the server of @env waits with: it ends. */
void waiting_end(const tensorflow::WorkerEnv *env);

}  // namespace weft_tensorflow

#endif
