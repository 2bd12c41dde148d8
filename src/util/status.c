/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/status.h"

#include <errno.h>

#include "util/base.h"

/* The first code of a status is the one that stands for it. */
static const struct {
	int code;
	enum weft_status status;
} rows[] = {
	{ -ECANCELED, WEFT_CANCELLED },
	{ -ETIMEDOUT, WEFT_DEADLINE_EXCEEDED },
	{ -EINVAL, WEFT_INVALID_ARGUMENT },
	{ -ENOENT, WEFT_NOT_FOUND },
	{ -EEXIST, WEFT_ALREADY_EXISTS },
	{ -EACCES, WEFT_PERMISSION_DENIED },
	{ -EPERM, WEFT_PERMISSION_DENIED },
	{ -ENOBUFS, WEFT_RESOURCE_EXHAUSTED },
	{ -ENOMEM, WEFT_RESOURCE_EXHAUSTED },
	{ -ENOSPC, WEFT_RESOURCE_EXHAUSTED },
	{ -EMSGSIZE, WEFT_RESOURCE_EXHAUSTED },
	{ -EBADFD, WEFT_FAILED_PRECONDITION },
	{ -EOWNERDEAD, WEFT_FAILED_PRECONDITION },
	{ -EBADSLT, WEFT_ABORTED },
	{ -ERANGE, WEFT_OUT_OF_RANGE },
	{ -ENOSYS, WEFT_UNIMPLEMENTED },
	{ -EOPNOTSUPP, WEFT_UNIMPLEMENTED },
	{ -EPROTO, WEFT_INTERNAL },
	{ -EBADMSG, WEFT_INTERNAL },
	{ -ECONNRESET, WEFT_UNAVAILABLE },
	{ -ECONNREFUSED, WEFT_UNAVAILABLE },
	{ -EHOSTUNREACH, WEFT_UNAVAILABLE },
	{ -EHOSTDOWN, WEFT_UNAVAILABLE },
	{ -ESHUTDOWN, WEFT_UNAVAILABLE },
	{ -ENOTCONN, WEFT_UNAVAILABLE },
	{ -EIO, WEFT_DATA_LOSS },
	{ -EKEYREJECTED, WEFT_UNAUTHENTICATED },
};

enum weft_status wf_status_of(int code)
{
	if (!code)
		return WEFT_OK;
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		if (rows[i].code == code)
			return rows[i].status;
	return WEFT_UNKNOWN;
}

int wf_status_code(enum weft_status status)
{
	if (status == WEFT_OK)
		return 0;
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		if (rows[i].status == status)
			return rows[i].code;
	return -ENOMSG; /* WEFT_UNKNOWN, and numbers that are no status */
}

enum weft_status wf_status_failure(enum weft_status said)
{
	return said > WEFT_OK && said <= WEFT_UNAUTHENTICATED ? said : WEFT_UNKNOWN;
}

const char *wf_status_name(enum weft_status status)
{
	static const char *const names[] = {
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED",
		"NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	};

	return (unsigned)status < WF_COUNT(names) ? names[status] : "?";
}
