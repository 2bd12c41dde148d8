/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Served calls: what a handler learns of the call that it handles, and says beside its reply.
 *
 * A handler of protobuf-c is given a closure and a @closure_data; weft_served() turns the latter
 * into the call, which the functions here take until it has been answered: by the closure, or by
 * weft_served_fail().
 */
#ifndef WEFT_SERVED_H
#define WEFT_SERVED_H

#include <weft/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the served call behind the @closure_data of a handler; NULL for NULL.
 * Threads: any, callback.
 */
WEFT_API struct weft_served *weft_served(void *closure_data);

/*
 * Returns the peer that calls; open until the node closes, not to be closed.
 * Threads: callback, on the handler's worker.
 */
WEFT_API struct weft_peer *weft_served_peer(struct weft_served *call);

/*
 * Returns the time left until the caller's deadline: 0 when it has passed, WEFT_FOREVER when there
 * is none.  Threads: any, callback.
 */
WEFT_API uint64_t weft_served_left_ns(struct weft_served *call);

/*
 * Returns whether the caller has cancelled, gone away, or run out of time.
 * Threads: any, callback.
 */
WEFT_API int weft_served_cancelled(struct weft_served *call);

/*
 * Keep the request message beyond the handler's return, until the reply.  A call that is kept must
 * be answered before its node closes.  Threads: callback, inside the handler.
 */
WEFT_API void weft_served_defer(struct weft_served *call);

/*
 * Answer with a failure instead of calling the closure.  Copies @message.  Threads: any, callback.
 */
WEFT_API void weft_served_fail(struct weft_served *call, enum weft_status status,
			       const char *message);

/*
 * Returns the metadata that the caller sent beside its request: *@count pairs, which live until
 * the reply; NULL: none, or no memory.  Threads: any, one at a time, callback.
 */
WEFT_API const struct weft_metadata *weft_served_metadata(struct weft_served *call, size_t *count);

/*
 * Set metadata for the caller that goes with the first message of a stream, or else with the
 * reply; before the reply.  Copies @pairs, in the place of pairs that were set before.
 * -EALREADY: the first message of the stream has been written.  -EINVAL: a pair breaks a rule.
 * -EMSGSIZE: more than 64 KiB.  Threads: any, one at a time, callback.
 */
WEFT_API int weft_served_set_initial(struct weft_served *call, const struct weft_metadata *pairs,
				     size_t count);

/*
 * Set metadata for the caller that goes with the reply; else as weft_served_set_initial().
 * Threads: any, one at a time, callback.
 */
WEFT_API int weft_served_set_trailing(struct weft_served *call, const struct weft_metadata *pairs,
				      size_t count);

/*
 * Set bytes for the caller beside a failure, 64 KiB at most; before the reply.  Copies @details,
 * in the place of details that were set before.  -EMSGSIZE: too many.
 * Threads: any, one at a time, callback.
 */
WEFT_API int weft_served_set_details(struct weft_served *call, const void *details, size_t bytes);

/*
 * Set the compression of the reply; before the reply.  -EINVAL: there is no such compression.
 * Threads: any, one at a time, callback.
 */
WEFT_API int weft_served_compress(struct weft_served *call, enum weft_compression compression);

/*
 * Returns whether the request was compressed; before the reply.
 * Threads: any, one at a time, callback.
 */
WEFT_API int weft_served_compressed(struct weft_served *call);

/*
 * Have @tell called once on the worker when the caller cancels, goes away or runs out of time,
 * unless the call has been answered; soon, if the caller has done so already.  A thread that
 * answers the call does not learn whether @tell runs just then: what @arg points to is not to be
 * freed by it, and best lives as long as the node.  Threads: callback, on the handler's worker.
 */
WEFT_API void weft_served_on_cancel(struct weft_served *call, void (*tell)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
