/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work for TensorFlow's compute pool, handed over by weft's thread.
 *
 * A pool whose queues are full runs what it is given at once, in the caller: kernels then, and as
 * long as these take weft's thread would look dead to its peers.  Such work goes to threads of our
 * own instead, in the order in which it comes.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_WORK_H
#define WEFT_TENSORFLOW_WORK_H

#include <functional>

#include <tensorflow/core/platform/threadpool.h>

namespace weft_tensorflow {

/*
 * Have @work run in @pool, or beside it, and never inside this function, unless the system gives no
 * thread at all.
 */
void work_schedule(tensorflow::thread::ThreadPool *pool, std::function<void()> work);

}  // namespace weft_tensorflow

#endif
