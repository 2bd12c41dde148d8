/* SPDX-License-Identifier: BSD-2-Clause */
#include "status.h"

#include <cerrno>

#include "log.h"

namespace weft_nixl {

Status status_of(enum weft_status outcome)
{
	switch (outcome) {
	case WEFT_OK:
		return SUCCESS;
	case WEFT_CANCELLED:
		return CANCELED;
	case WEFT_INVALID_ARGUMENT:
	case WEFT_OUT_OF_RANGE:
		return INVALID_PARAMETER;
	case WEFT_NOT_FOUND:
		return NOT_FOUND;
	case WEFT_PERMISSION_DENIED:
		return NOT_ALLOWED;
	case WEFT_UNIMPLEMENTED:
		return NOT_SUPPORTED;
	case WEFT_UNAVAILABLE:
		return REMOTE_DISCONNECT;
	default:
		return BACKEND_ERROR;
	}
}

Status status_of_error(int err, const char *what)
{
	const char *why = weft_error();

	log_line(LOG_ERROR, "%s: %s", what, *why ? why : weft_strerror(err));
	switch (err) {
	case -EINVAL:
		return INVALID_PARAMETER;
	case -EACCES:
		return NOT_ALLOWED;
	case -ENODEV:
	case -ENOTSUP:
		return NOT_SUPPORTED;
	default:
		return BACKEND_ERROR;
	}
}

}  // namespace weft_nixl
