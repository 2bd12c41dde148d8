/* SPDX-License-Identifier: BSD-2-Clause */
#include "allocator.h"

#include "settings.h"
#include "transport.h"

namespace weft_tensorflow {
namespace {

/* 64: what weft_alloc() promises, and TensorFlow asks for (EIGEN_MAX_ALIGN_BYTES). */
constexpr size_t kAlignment = 64;

}  // namespace

void *PoolAllocator::AllocateRaw(size_t alignment, size_t bytes)
{
	void *memory;

	if (!settings_pool() || alignment > kAlignment ||
	    weft_alloc(transport_->node(), bytes, &memory))
		return nullptr;
	transport_->Ref();
	return memory;
}

void PoolAllocator::DeallocateRaw(void *memory)
{
	if (!memory)
		return;
	weft_free(transport_->node(), memory);
	transport_->Unref();
}

}  // namespace weft_tensorflow
