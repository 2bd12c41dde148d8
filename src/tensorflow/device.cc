/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#include <memory>
#include <utility>

#include <tensorflow/core/common_runtime/copy_tensor.h>

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

/* Returns the attributes of memory of the host that a device copies from and to fast. */
static tensorflow::AllocatorAttributes host_attributes()
{
	tensorflow::AllocatorAttributes host;

	host.set_on_host(true);
	host.set_gpu_compatible(true);
	return host;
}

Tensor device_host_tensor(tensorflow::Device *device, tensorflow::DataType type,
			  const tensorflow::TensorShape &shape)
{
	return device_tensor(device, host_attributes(), type, shape);
}

void device_to_host(const Tensor &tensor, const std::string &name, tensorflow::Device *device,
		    tensorflow::DeviceContext *context,
		    std::function<void(const absl::Status &, const Tensor &)> done)
{
	auto copy = std::make_shared<Tensor>();
	auto from = std::make_shared<Tensor>(tensor); /* lives as long as the copy */
	auto copied = [from, copy, done = std::move(done)](const absl::Status &status) {
		done(status, *copy);
	};

	if (!context) {
		copied(absl::InternalError("no copy can be made of device memory: " + name));
		return;
	}
	if (tensor.dtype() == tensorflow::DT_VARIANT) {
		/* The elements are of the host, and have tensors of the device in them. */
		tensorflow::Allocator *host = device->GetAllocator(host_attributes());

		tensorflow::CopyDeviceToHost(from.get(), host, host, name, device, copy.get(),
					     context, copied);
		return;
	}
	*copy = device_host_tensor(device, tensor.dtype(), tensor.shape());
	if (copy->IsInitialized())
		context->CopyDeviceTensorToCPU(from.get(), name, device, copy.get(), copied);
	else
		copied(absl::ResourceExhaustedError("no memory to copy " + name));
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
