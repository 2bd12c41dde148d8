/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of TensorFlow's devices, and the copies of those apart: accelerators, whose memory the host
 * can't read.
 *
 * Tensors of devices apart go over weft by way of the host's memory.  TensorFlow makes the copies,
 * in the order of its streams.
 *
 * Threads: any; what is done afterwards runs in a thread of the device's, or in the caller's.
 */
#ifndef WEFT_TENSORFLOW_DEVICE_H
#define WEFT_TENSORFLOW_DEVICE_H

#include <functional>
#include <string>

#include <tensorflow/core/framework/device.h>
#include <tensorflow/core/framework/tensor.h>

namespace weft_tensorflow {

/* Returns whether a tensor of @device with @attributes lies where the host can't read it. */
bool device_is_apart(const tensorflow::Device *device,
		     const tensorflow::AllocatorAttributes &attributes);

/*
 * Returns a tensor in memory of @device with @attributes; one that is not initialized if there is
 * no memory now: to wait for some, as TensorFlow does elsewhere, would keep weft's thread.
 */
tensorflow::Tensor device_tensor(tensorflow::Device *device,
				 const tensorflow::AllocatorAttributes &attributes,
				 tensorflow::DataType type, const tensorflow::TensorShape &shape);

/* Returns device_tensor() in memory of the host that @device copies from and to fast. */
tensorflow::Tensor device_host_tensor(tensorflow::Device *device, tensorflow::DataType type,
				      const tensorflow::TensorShape &shape);

/* Copy @tensor, called @name, to the host, and call @done with the copy. */
void device_to_host(
	const tensorflow::Tensor &tensor, const std::string &name, tensorflow::Device *device,
	tensorflow::DeviceContext *context,
	std::function<void(const absl::Status &, const tensorflow::Tensor &copy)> done);

/* Copy @tensor of the host into @to, which has its type and shape, and call @done. */
void device_from_host(const tensorflow::Tensor &tensor, tensorflow::Device *device,
		      tensorflow::DeviceContext *context, tensorflow::Tensor *to,
		      std::function<void(const absl::Status &)> done);

}  // namespace weft_tensorflow

#endif
