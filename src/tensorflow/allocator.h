/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The allocator of received tensors: memory of weft's pool, which is registered and not faulted in
 * anew for each tensor.  A pool without room gives nothing, and the caller takes the device's own
 * memory.
 *
 * A tensor may outlive its server, so each one keeps the transport, and with it the node.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_ALLOCATOR_H
#define WEFT_TENSORFLOW_ALLOCATOR_H

#include <string>

#include <tensorflow/core/framework/allocator.h>

namespace weft_tensorflow {

class Transport;

class PoolAllocator : public tensorflow::Allocator {
public:
	/* Borrows @transport, whose member this is. */
	explicit PoolAllocator(Transport *transport) : transport_(transport) {}

	std::string Name() override { return "weft"; }
	void *AllocateRaw(size_t alignment, size_t bytes) override;
	void DeallocateRaw(void *memory) override;

private:
	Transport *const transport_;
};

}  // namespace weft_tensorflow

#endif
