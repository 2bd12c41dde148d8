/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interceptors: hooks of a node on every call, unary or a stream, that it makes or serves.
 *
 * Interceptors are given with the options of weft_node_open() and stay until the node has closed.
 * Each hook may be NULL.  Several interceptors are asked in the order in which they are given, and
 * told of the end in the opposite order: an interceptor hears of the end of a call exactly if it
 * was asked about the beginning.  No hook may block.
 */
#ifndef WEFT_INTERCEPT_H
#define WEFT_INTERCEPT_H

#include <weft/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_interceptor {
	size_t size;
	void *arg;
	/*
	 * A call has come, its request is here, and a handler is about to begin: WEFT_OK lets the
	 * handler begin.  Any other status is the answer, with a copy of *@message (NULL: none),
	 * and the handler never hears of the call.
	 * Threads: callback; at the same time for callers on different workers.
	 */
	enum weft_status (*admit)(void *arg, struct weft_served *call, const char *service,
				  const char *method, const char **message);
	/*
	 * A served call is over: it was answered with @status, or nobody waited for an answer any
	 * more.  The peer and the metadata of @call can be looked at, and nothing else.
	 * Threads: callback.
	 */
	void (*served)(void *arg, struct weft_served *call, const char *service, const char *method,
		       enum weft_status status, uint64_t took_ns);
	/*
	 * A call of this node begins: WEFT_OK lets the call go.  Any other status is the outcome,
	 * with a copy of *@message, and nothing is sent.  Metadata can be added to @op.  @parent:
	 * the served call for which this call is made; NULL: none.
	 * Threads: the one that begins the call, inside that function.
	 */
	enum weft_status (*begin)(void *arg, struct weft_op *op, struct weft_served *parent,
				  const char *service, const char *method,
				  const char **message);
	/* A call of this node is over, and its closure is about to run.  Threads: callback. */
	void (*ended)(void *arg, struct weft_op *op, const char *service, const char *method,
		      enum weft_status status, uint64_t took_ns);
};
#define WEFT_INTERCEPTOR_INIT WEFT_SIZED_INIT(struct weft_interceptor)

/*
 * Add metadata for the server, inside begin, after the pairs that the call has; copies @pairs.
 * -EALREADY: outside of begin.  -EINVAL: a pair breaks a rule of struct weft_metadata.
 * -EMSGSIZE: the call would have more than 64 KiB.  Threads: the one that begins the call.
 */
WEFT_API int weft_call_add_metadata(struct weft_op *op, const struct weft_metadata *pairs,
				    size_t count);

#ifdef __cplusplus
}
#endif
#endif
