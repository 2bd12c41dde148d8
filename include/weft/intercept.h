/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interceptors: a node's word on every call, unary or a stream, that it makes or serves.
 *
 * They are given with the options of weft_node_open and stay until the node has closed.
 * Each hook may be NULL.  Several are asked in the order in which they stand there, and told
 * of the end in the opposite one: an interceptor hears of the end of a call exactly if it was
 * asked about its beginning.  None of them may block.
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
	 * A call has come, its request is here, and a handler is about to begin: WEFT_OK lets
	 * it.  Any other status is the answer, with a copy of *@message (NULL: none), and the
	 * handler never hears of the call.  @call is what a handler has as closure_data.
	 * Threads: callback; of callers on different workers at the same time.
	 */
	enum weft_status (*admit)(void *arg, void *call, const char *service,
				  const char *method, const char **message);
	/*
	 * It is over: it was answered with @status, or nobody waited for that any more.  Of
	 * @call its peer and metadata can be looked at, and nothing else.  Threads: callback.
	 */
	void (*served)(void *arg, void *call, const char *service, const char *method,
		       enum weft_status status, uint64_t took_ns);
	/*
	 * A call of this node begins: WEFT_OK lets it.  Any other status is its outcome, with a
	 * copy of *@message, and nothing is sent.  Metadata can be added to @op.  @parent: the
	 * call that is served and for which this one is made, NULL: none.
	 * Threads: the one that begins the call, inside that function.
	 */
	enum weft_status (*begin)(void *arg, struct weft_op *op, void *parent,
				  const char *service, const char *method,
				  const char **message);
	/* It is over, and its closure is about to hear so.  Threads: callback. */
	void (*ended)(void *arg, struct weft_op *op, const char *service, const char *method,
		      enum weft_status status, uint64_t took_ns);
};

/*
 * In begin: more metadata for the server, after what the call has; copied.  -EALREADY:
 * outside of it.  Threads: the one that begins the call.
 */
WEFT_API int weft_call_add_metadata(struct weft_op *op, const struct weft_metadata *pairs,
				    size_t count);

#ifdef __cplusplus
}
#endif
#endif
