/* SPDX-License-Identifier: BSD-2-Clause */
#include "hello.h"

#include <absl/strings/str_cat.h>
#include <tensorflow/core/distributed_runtime/request_id.h>
#include <tensorflow/core/platform/random.h>

namespace weft_tensorflow {

const char kHelloKey[] = "weft.tensorflow.hello";

std::string hello_make(const std::string &address)
{
	return absl::StrCat(address, " ", tensorflow::random::New64());
}

std::string hello_address(const std::string &hello)
{
	size_t end = hello.find(' ');

	return end == std::string::npos ? "" : hello.substr(0, end);
}

void hello_ask(tensorflow::RecvTensorRequest *request)
{
	request->set_rendezvous_key(kHelloKey);
	request->set_request_id(tensorflow::GetUniqueRequestId());
}

void hello_put(const std::string &hello, tensorflow::RecvTensorResponse *response)
{
	response->mutable_transport_options()->set_type_url(kHelloKey);
	response->mutable_transport_options()->set_value(hello);
}

std::string hello_get(const tensorflow::RecvTensorResponse &response)
{
	const auto &options = response.transport_options();

	return options.type_url() == kHelloKey ? std::string(options.value()) : "";
}

}  // namespace weft_tensorflow
