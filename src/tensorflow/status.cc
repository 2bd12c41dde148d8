/* SPDX-License-Identifier: BSD-2-Clause */
#include "status.h"

#include <cerrno>

#include <absl/strings/str_cat.h>

namespace weft_tensorflow {

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

enum weft_status status_to_weft(const absl::Status &status)
{
	return static_cast<enum weft_status>(status.code());
}

}  // namespace weft_tensorflow
