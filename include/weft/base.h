/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every part of weft's interface shares: export marks, status codes,
 * times, and the four words that say which thread may call a function.
 *
 *   any       from any thread, at any time
 *   owner     from the thread that polls the node: the library's own in a
 *             threaded node, the caller's in a manual one
 *   setup     before the object is used, or after its last use
 *   callback  also inside a completion callback
 *
 * Functions return 0 or a negative code: an errno, or one of libfabric's
 * FI_E* numbers, which agree with errno below 256.  weft_error() then holds
 * one sentence about it.
 *
 * A NULL that can't be done without is -EINVAL; functions that return no code
 * do nothing and give NULL, 0 or "".  A NULL for the operation that a function
 * begins (struct weft_op **) says that nobody waits for it: it goes on without
 * a handle.
 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

/* A time limit that never passes; it must be asked for by name. */
#define WEFT_FOREVER UINT64_MAX

/* How an operation ended.  The numbers are gRPC's. */
enum weft_status {
	WEFT_OK = 0,
	WEFT_CANCELLED = 1,
	WEFT_UNKNOWN = 2,
	WEFT_INVALID_ARGUMENT = 3,
	WEFT_DEADLINE_EXCEEDED = 4,
	WEFT_NOT_FOUND = 5,
	WEFT_ALREADY_EXISTS = 6,
	WEFT_PERMISSION_DENIED = 7,
	WEFT_RESOURCE_EXHAUSTED = 8,
	WEFT_FAILED_PRECONDITION = 9,
	WEFT_ABORTED = 10,
	WEFT_OUT_OF_RANGE = 11,
	WEFT_UNIMPLEMENTED = 12,
	WEFT_INTERNAL = 13,
	WEFT_UNAVAILABLE = 14,
	WEFT_DATA_LOSS = 15,
	WEFT_UNAUTHENTICATED = 16
};

/* Did the other side act on an operation that failed? */
enum weft_executed {
	WEFT_EXECUTED_NO = 0,    /* it surely did not */
	WEFT_EXECUTED_MAYBE = 1, /* it may have */
	WEFT_EXECUTED_YES = 2    /* it did */
};

/* The version of the library that is running, as "0.1.0".  Threads: any. */
WEFT_API const char *weft_version(void);

/* The name of a status, as "DEADLINE_EXCEEDED".  Threads: any, callback. */
WEFT_API const char *weft_status_name(enum weft_status status);

/* The text of a negative return value.  Threads: any, callback. */
WEFT_API const char *weft_strerror(int err);

/*
 * The sentence behind the last function of weft that failed in this thread.
 * Valid until the next call in this thread.  Threads: any, callback.
 */
WEFT_API const char *weft_error(void);

#ifdef __cplusplus
}
#endif
#endif
