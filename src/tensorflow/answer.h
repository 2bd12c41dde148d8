/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers: calls of peers that are served, each answered once, with a tensor or a failure.
 *
 * A tensor is not copied: the attachment of the reply borrows its buffer and holds a reference
 * until weft needs it no more.  Strings, variants and resources are packed as a TensorProto, and
 * tensors of an accelerator are copied to the host by TensorFlow first.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_ANSWER_H
#define WEFT_TENSORFLOW_ANSWER_H

#include <functional>
#include <string>

#include <tensorflow/core/framework/device.h>
#include <tensorflow/core/framework/tensor.h>
#include <weft/weft.h>

#include "tensors.pb-c.h"

namespace weft_tensorflow {

struct Answer {
	/* A function that is called once, in any thread: the tensor is not needed any more. */
	using Released = std::function<void(const absl::Status &)>;

	Weft__Tensorflow__Have_Closure closure;
	void *closure_data;
	std::string key;

	struct weft_served *call() const { return weft_served(closure_data); }

	/* Answer with a failure. */
	void fail(const absl::Status &status) const;

	/* Answer with @tensor, or that it is dead. */
	void give(const tensorflow::Tensor &tensor, bool is_dead,
		  const Released &released = nullptr) const;

	/*
	 * Answer with a copy of @tensor in the host's memory, which TensorFlow makes.  The tensor
	 * is not needed any more when that has been made.
	 */
	void give_copy(const tensorflow::Tensor &tensor, tensorflow::Device *device,
		       tensorflow::DeviceContext *context, const Released &released = nullptr) const;
};

/* Returns whether @tensor has no plain bytes, and goes as a TensorProto. */
bool answer_is_packed(const tensorflow::Tensor &tensor);

}  // namespace weft_tensorflow

#endif
