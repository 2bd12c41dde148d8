/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arenas: TensorFlow's own memory of the host, registered with the fabric once and for all.
 *
 * Where the setting TF_WEFT_REGISTER says yes, TensorFlow takes its tensors out of large pieces of
 * memory that it never gives back, and each node registers each piece.  What a task sends then lies
 * in registered memory, wherever its tensor is.  A provider that registers for nothing gains
 * nothing by it.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_ARENA_H
#define WEFT_TENSORFLOW_ARENA_H

#include <weft/weft.h>

namespace weft_tensorflow {

/* Register with @node all arenas there are, and those to come.  Blocks. */
void arena_join(weft_node *node);

/* Forget @node, which is about to be closed.  Blocks. */
void arena_leave(weft_node *node);

}  // namespace weft_tensorflow

#endif
