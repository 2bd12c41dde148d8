/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings that the plug-in itself reads.  All others are weft's own, which reads
 * TF_RDMA_DEV_NAME, TF_RDMA_BUF_SIZE, TF_RDMA_CHUNK_SIZE and TF_RDMA_ACC_SIZE beside its own
 * names: weft_options(7).
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_SETTINGS_H
#define WEFT_TENSORFLOW_SETTINGS_H

namespace weft_tensorflow {

/* Returns whether tensors may go over weft: TF_RDMA_ENABLED does not say no. */
bool settings_enabled();

/* Returns whether tensors are received into weft's pool: TF_WEFT_POOL does not say no. */
bool settings_pool();

/*
 * Returns whether TensorFlow's own memory is to be registered: TF_WEFT_REGISTER says yes, and
 * TF_CPU_ALLOCATOR_USE_BFC does not say no.
 */
bool settings_register();

/* Returns whether the environment names the address that the node listens on. */
bool settings_listen();

/* Returns whether the environment names a key or certificates. */
bool settings_credentials();

}  // namespace weft_tensorflow

#endif
