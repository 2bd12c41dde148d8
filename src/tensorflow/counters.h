/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of the process: how many tensors went which way.  A name is made by its first count,
 * and weft_tensorflow.counters() of Python has them all:
 *
 *   received_weft, received_grpc  edges that ended well here, by what carried them
 *   buffers_weft, buffers_grpc    buffers of collectives that ended well here, likewise
 *   received_bytes                bytes of all that weft carried
 *   received_over_PROVIDER        bodies by libfabric's name of the provider
 *   received_staged               bodies that went through a bounce buffer on this side
 *   received_registered           bodies whose memory was registered for them
 *   received_heap                 bodies that found no room in weft's pool
 *   received_copied               tensors and buffers that TensorFlow copied into a device's memory
 *   sent_weft, sent_bytes         replies that were given, and bytes attached to them
 *   sent_staged                   attachments that went through a bounce buffer on this side
 *   sent_registered               attachments whose memory was registered for them
 *   sent_held                     tensors that weft still holds a reference to: now
 *   sent_waiting                  calls of peers that wait for their tensors: now
 *   registered_bytes              bytes of TensorFlow's arenas that were registered with nodes
 *   peers_weft, peers_grpc        incarnations of tasks, by how their tensors come
 *   work_beside_pool              continuations that found TensorFlow's compute pool full
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_COUNTERS_H
#define WEFT_TENSORFLOW_COUNTERS_H

#include <cstdint>
#include <string>

struct weft_op;

namespace weft_tensorflow {

/* Add @more to the counter @name. */
void counters_add(const std::string &name, int64_t more = 1);

/*
 * Count the path of a body that has ended under @prefix, "received" or "sent".  Returns
 * libfabric's name of its provider, "" where nothing moved.
 */
std::string counters_path(const char *prefix, const struct weft_op *op);

}  // namespace weft_tensorflow

#endif
