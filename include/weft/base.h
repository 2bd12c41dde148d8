/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by every part of weft's interface: export marks, status codes, times, and
 * the three words that say which thread may call a function.
 *
 *   any       from any thread, at any time
 *   owner     from the thread that polls the node: the library's own in a
 *             threaded node, the caller's in a manual one
 *   callback  also inside a completion callback
 *
 * Functions return 0 or a negative code: an errno, or one of libfabric's
 * FI_E* numbers, which agree with errno below 256.  weft_error() then holds
 * one sentence about the failure.
 *
 * NULL for an argument that a function needs is -EINVAL, also of a function that answers
 * a question by an int, and WEFT_INVALID_ARGUMENT of one that returns a status; others do
 * nothing then and return NULL, 0 or a text.  NULL for the operation that a
 * function begins (struct weft_op **) says that nobody waits: the operation goes
 * on without a handle; but it is -EINVAL of weft_window_find(), and of weft_recv()
 * with WEFT_RECV_MANY and a callback.
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

/* A time limit that never passes; callers must ask for it by name. */
#define WEFT_FOREVER UINT64_MAX

/*
 * Initialisers of structs that begin with their size, such as WEFT_SEND_OPTIONS_INIT, are made of
 * these: all else is zero, but the size of the operation's own options inside.
 */
#ifdef __cplusplus
#define WEFT_SIZED_INIT(type) ([] { type init = {}; init.size = sizeof(init); return init; }())
#define WEFT_SIZED_OP_INIT(type) \
	([] { \
		type init = {}; \
		init.size = sizeof(init); \
		init.op.size = sizeof(init.op); \
		return init; \
	}())
#else
#define WEFT_SIZED_INIT(type) { .size = sizeof(type) }
#define WEFT_SIZED_OP_INIT(type) \
	{ .size = sizeof(type), .op = { .size = sizeof(struct weft_op_options) } }
#endif

/* Outcome of an operation.  The numbers are gRPC's. */
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

/* Whether the other side acted on an operation that failed. */
enum weft_executed {
	WEFT_EXECUTED_NO = 0,    /* the other side surely did not act */
	WEFT_EXECUTED_MAYBE = 1, /* the other side may have acted */
	WEFT_EXECUTED_YES = 2    /* the other side acted */
};

/* Returns the version of the library that is running, as "0.1.0".  Threads: any, callback. */
WEFT_API const char *weft_version(void);

/* Returns the name of a status, as "DEADLINE_EXCEEDED".  Threads: any, callback. */
WEFT_API const char *weft_status_name(enum weft_status status);

/* Returns the text of a negative return value.  Threads: any, callback. */
WEFT_API const char *weft_strerror(int err);

/*
 * Returns the sentence behind the last function of weft that failed in this thread, valid until
 * the next call in this thread.  Threads: any, callback.
 */
WEFT_API const char *weft_error(void);

#ifdef __cplusplus
}
#endif
#endif
