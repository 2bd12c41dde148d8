/* SPDX-License-Identifier: BSD-2-Clause */
#include "status.h"

#include <cerrno>

#include <absl/strings/cord.h>
#include <absl/strings/str_cat.h>
#include <tensorflow/core/distributed_runtime/rpc/grpc_util.h>

namespace weft_tensorflow {

/* The message in which TensorFlow's gRPC, too, carries the payloads of a status. */
using Payloads = tensorflow::distributed_runtime::GrpcPayloadContainer;

absl::Status status_of(enum weft_status code, const std::string &what, const char *why)
{
	if (code == WEFT_OK)
		return absl::OkStatus();
	return absl::Status(static_cast<absl::StatusCode>(code),
			    absl::StrCat("weft: ", what, ": ", why ? why : ""));
}

absl::Status status_of_error(int err, const std::string &what)
{
	enum weft_status code = WEFT_INTERNAL;

	if (err == -ENOMEM || err == -ENOBUFS)
		code = WEFT_RESOURCE_EXHAUSTED;
	else if (err == -EINVAL)
		code = WEFT_INVALID_ARGUMENT;
	return status_of(code, what, weft_error());
}

std::string status_details(const absl::Status &status)
{
	Payloads payloads;

	status.ForEachPayload([&payloads](absl::string_view key, const absl::Cord &value) {
		(*payloads.mutable_payloads())[std::string(key)] = std::string(value);
	});
	return payloads.SerializeAsString();
}

void status_add_details(absl::Status *status, const void *details, size_t bytes)
{
	Payloads payloads;

	if (!payloads.ParseFromArray(details, static_cast<int>(bytes)))
		return;
	for (const auto &[key, value] : payloads.payloads())
		status->SetPayload(key, absl::Cord(absl::string_view(value)));
}

enum weft_status status_to_weft(const absl::Status &status)
{
	return static_cast<enum weft_status>(status.code());
}

}  // namespace weft_tensorflow
