/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#include <memory>
#include <utility>

namespace weft_tensorflow {

using tensorflow::Tensor;

bool device_is_apart(const tensorflow::Device *device,
		     const tensorflow::AllocatorAttributes &attributes)
{
	return device->tensorflow_accelerator_device_info() && !attributes.on_host();
}

Tensor device_tensor(tensorflow::Device *device, const tensorflow::AllocatorAttributes &attributes,
		     tensorflow::DataType type, const tensorflow::TensorShape &shape)
{
	tensorflow::AllocationAttributes at_once;

	at_once.retry_on_failure = false;
	return Tensor(device->GetAllocator(attributes), type, shape, at_once);
}

Tensor device_host_tensor(tensorflow::Device *device, tensorflow::DataType type,
			  const tensorflow::TensorShape &shape)
{
	tensorflow::AllocatorAttributes host;

	host.set_on_host(true);
	host.set_gpu_compatible(true);
	return device_tensor(device, host, type, shape);
}

void device_to_host(const Tensor &tensor, const std::string &name, tensorflow::Device *device,
		    tensorflow::DeviceContext *context,
		    std::function<void(const absl::Status &, const Tensor &)> done)
{
	auto copy = std::make_shared<Tensor>(
		device_host_tensor(device, tensor.dtype(), tensor.shape()));
	auto from = std::make_shared<Tensor>(tensor); /* lives as long as the copy */

	if (!context)
		done(absl::InternalError("no copy can be made of device memory: " + name), *copy);
	else if (!copy->IsInitialized())
		done(absl::ResourceExhaustedError("no memory to copy " + name), *copy);
	else
		context->CopyDeviceTensorToCPU(
			from.get(), name, device, copy.get(),
			[from, copy, done = std::move(done)](const absl::Status &status) {
				done(status, *copy);
			});
}

void device_from_host(const Tensor &tensor, tensorflow::Device *device,
		      tensorflow::DeviceContext *context, Tensor *to,
		      std::function<void(const absl::Status &)> done)
{
	auto from = std::make_shared<Tensor>(tensor);

	if (!context)
		done(absl::InternalError("no copy can be made into the memory of " +
					 device->name()));
	else
		context->CopyCPUTensorToDevice(
			from.get(), device, to,
			[from, done = std::move(done)](const absl::Status &status) {
				done(status);
			});
}

}  // namespace weft_tensorflow
