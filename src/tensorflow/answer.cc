/* SPDX-License-Identifier: BSD-2-Clause */
#include "answer.h"

#include <memory>
#include <vector>

#include <tensorflow/core/platform/logging.h>

#include "body.h"
#include "counters.h"
#include "device.h"
#include "status.h"

namespace weft_tensorflow {
namespace {

using tensorflow::Tensor;

/* A tensor whose buffer weft reads. */
struct Held {
	std::string key;
	Tensor bytes;
	Answer::Released released;
};

/* The end of an attachment: its tensor is let go before whoever made it is told. */
void sent(struct weft_op *op, void *arg)
{
	std::unique_ptr<Held> held(static_cast<Held *>(arg));
	Answer::Released released = std::move(held->released);
	absl::Status status =
		status_of(weft_op_status(op), "sending " + held->key, weft_op_message(op));

	counters_path("sent", op);
	counters_add("sent_held", -1);
	if (!status.ok() && weft_op_status(op) != WEFT_CANCELLED)
		LOG(WARNING) << "weft: " << status.message();
	held.reset();
	if (released)
		released(status);
}

/* Attach @bytes to the reply of @answer. */
absl::Status attach(const Answer &answer, const Tensor &bytes, const Answer::Released &released)
{
	struct weft_send_options o = WEFT_SEND_OPTIONS_INIT;
	int64_t length = static_cast<int64_t>(bytes.TotalBytes());
	std::unique_ptr<Held> held(new Held{answer.key, bytes, released}); /* shares the buffer */
	struct weft_tensor body = body_of(bytes.data(), &length);
	int err;

	o.flags = WEFT_OPAQUE;
	o.op.timeout_ns = WEFT_FOREVER;
	o.op.done = sent;
	o.op.arg = held.get();
	counters_add("sent_held");
	err = weft_served_attach(answer.call(), &body, &o, nullptr);
	if (err) {
		counters_add("sent_held", -1);
		return status_of_error(err, "sending " + answer.key);
	}
	held.release();
	return absl::OkStatus();
}

/* Returns @tensor packed as a TensorProto, in a tensor of bytes. */
absl::Status pack(const Tensor &tensor, Tensor *bytes)
{
	tensorflow::TensorProto proto;
	size_t length;

	tensor.AsProtoTensorContent(&proto);
	length = proto.ByteSizeLong();
	if (length > INT32_MAX)
		return absl::InvalidArgumentError(absl::StrCat(
			"the tensor takes ", length, " bytes as a message: at most 2 GiB"));
	*bytes = Tensor(tensorflow::DT_UINT8, {static_cast<int64_t>(length)});
	if (!bytes->IsInitialized())
		return absl::ResourceExhaustedError("no memory to pack the tensor");
	if (!proto.SerializeToArray(bytes->data(), static_cast<int>(length)))
		return absl::InternalError("the tensor can't be packed");
	return absl::OkStatus();
}

}  // namespace

void Answer::fail(const absl::Status &status) const
{
	std::string details = status_details(status);

	/* Details that are too long are left out. */
	(void)weft_served_set_details(call(), details.data(), details.size());
	weft_served_fail(call(), status_to_weft(status), std::string(status.message()).c_str());
}

void Answer::give(const Tensor &tensor, bool is_dead, const Released &released) const
{
	Weft__Tensorflow__Have have = WEFT__TENSORFLOW__HAVE__INIT;
	std::vector<int64_t> dims;
	Tensor bytes = tensor;
	bool attached = false;
	absl::Status status;

	have.dead = is_dead;
	have.dtype = tensor.dtype();
	if (!is_dead) {
		for (int i = 0; i < tensor.dims(); i++)
			dims.push_back(tensor.dim_size(i));
		have.n_dim = dims.size();
		have.dim = dims.data();
		have.packed = answer_is_packed(tensor);
		if (have.packed)
			status = pack(tensor, &bytes);
		attached = status.ok() && bytes.TotalBytes();
		if (attached)
			status = attach(*this, bytes, released);
	}
	if (status.ok()) {
		counters_add("sent_weft");
		closure(&have, closure_data);
	} else {
		fail(status);
	}
	if (released && !(attached && status.ok()))
		released(status);
}

void Answer::give_copy(const Tensor &tensor, tensorflow::Device *device,
		       tensorflow::DeviceContext *context, const Released &released) const
{
	device_to_host(tensor, key, device, context,
		       [answer = *this, released](const absl::Status &status, const Tensor &copy) {
			       if (status.ok())
				       answer.give(copy, false);
			       else
				       answer.fail(status);
			       if (released)
				       released(status);
		       });
}

bool answer_is_packed(const Tensor &tensor)
{
	return !tensorflow::DataTypeCanUseMemcpy(tensor.dtype());
}

}  // namespace weft_tensorflow
