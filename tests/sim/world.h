/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world: some whole nodes in this thread, over the fake fabric and the
 * simulated net, on virtual time.
 *
 * Nodes are manual.  A step polls each of them once and moves the clock to the
 * next thing that happens, by a millisecond at most (or as far as a worker that
 * has nothing to do would sleep: wf_world_leap).  Where a node would sleep,
 * the others live on instead: so weft_wait and weft_node_close work as well.
 * The same seed and the same calls give the same run.
 *
 * A program has one world.  Settings come from the environment, as users give them;
 * with WORLD_LOG in it the nodes' log (WEFT_LOG) is printed with virtual times.
 */
#ifndef WF_SIM_WORLD_H
#define WF_SIM_WORLD_H

#include <weft/weft.h>
#include "tests/fake/clock.h"
#include "tests/fake/fabric.h"
#include "tests/sim/net.h"

#define WF_WORLD_NODES_MAX 20

/*
 * Rails of a world: over IP; over a fabric of its own; through the memory of one host; over two
 * networks of IP; over a NIC that reaches devices, with IP to fall back on.
 */
enum wf_world_shape {
	WF_WORLD_CONNECTED, WF_WORLD_SHARED, WF_WORLD_SAME_HOST, WF_WORLD_LANES, WF_WORLD_REACHING,
	WF_WORLD_UNDESCRIBED /* over a provider that has no row */
};
extern const enum wf_world_shape wf_world_shapes[3]; /* the first three shapes */

/* The two networks, as libfabric's domains; doors are on the first. */
#define WF_WORLD_NET_1 "net1"
#define WF_WORLD_NET_2 "net2"

#define WF_WORLD_STRANGE "warp" /* the provider that has no row */

/* The NIC that reaches devices. */
#define WF_WORLD_NIC "mlx5_0"

/*
 * Open @count nodes, 0 to @count - 1, over rails of one shape.  NULL @fake: 5 to 50 us of
 * way, no faults.
 */
void wf_world_open(enum wf_world_shape shape, unsigned count, const struct wf_fake *fake);

/* Let @hear get the log of nodes opened from now on, up to their WEFT_LOG; NULL: nobody. */
void wf_world_hear(void (*hear)(unsigned number, int level, const char *line));

/*
 * Give @count workers to nodes that are opened from now on, until the world closes; a step
 * polls each.
 */
void wf_world_set_workers(unsigned count);

/* Let nodes opened from now on serve with @limits, but the world's methods; NULL: without. */
void wf_world_set_limits(const struct weft_serve_options *limits);

/* Give @interceptors to nodes opened from now on; NULL: none.  Forgotten when the world closes. */
void wf_world_intercept(const struct weft_interceptor *const *interceptors);

/* Open one more node, and return its number. */
unsigned wf_world_add(void);

/* Let node @number say that it is node @whom: by incarnation, address, or both. */
#define WF_WORLD_LIE_INCARNATION 1
#define WF_WORLD_LIE_ADDRESS 2
void wf_world_lie(unsigned number, unsigned whom, unsigned lies);

/* Add a node in two steps, each of which may fail and be tried again. */
int wf_world_try_add(unsigned *number);
int wf_world_try_serve(unsigned number);

/*
 * Close all nodes, the killed last, and forget every WEFT_* of the environment.  Returns how
 * much has leaked: objects of libfabric, chunks of pools.  Operations must be freed before.
 */
size_t wf_world_close(void);

/* Let nodes opened from now on miss a silent one after 300 ms; until the world closes. */
void wf_world_lose_soon(void);

/* Time to a known death after wf_world_lose_soon: silence, beats of 100 ms, or vain redials. */
#define WF_WORLD_LOST_NS (700 * WF_NS_PER_MS)

/*
 * Is nothing kept on behalf of the peer of @link but the link itself, under all its names, and
 * frames that the peer has still to confirm?
 */
struct wf_link;
bool wf_world_account_is_empty(const struct wf_link *link);

/* Assert that node @number holds nothing of a tensor, call or stream any more. */
void wf_world_assert_free(unsigned number);

/*
 * Close the world when all is over, and given back.  Asserts that no living node holds anything,
 * and that nothing has leaked.
 */
void wf_world_end(void);

/* Count of all nodes, the dead included. */
unsigned wf_world_population(void);

struct weft_node *wf_world_node(unsigned number);

/* Link of node @number, which has one worker, with the other of two nodes. */
struct wf_link *wf_world_link(unsigned number);

/* Node @to as node @from knows it. */
struct weft_peer *wf_world_peer(unsigned from, unsigned to);

/* Node @to as node @from knows it, if it has opened it; else NULL. */
struct weft_peer *wf_world_known(unsigned from, unsigned to);
/* Stub of node @to's service Mirror, as node @from has it. */
struct weft_stub *wf_world_stub(unsigned from, unsigned to);

void wf_world_step(void);

/*
 * Step, but move the clock on where nothing happens, by 5 ms at most and not beyond @until_ns.
 */
void wf_world_leap(uint64_t until_ns);

/* Call @sleep where a node sleeps inside a call of its own, and the others live on; NULL: none. */
void wf_world_on_sleep(void (*sleep)(void));

/* Step until @done says so, or for @limit_ns.  Returns what @done said last. */
bool wf_world_run(bool (*done)(void *ctx), void *ctx, uint64_t limit_ns);
void wf_world_pass(uint64_t ns);

/* Poll node @number alone, without moving the clock. */
void wf_world_poll(unsigned number);

/* Let two nodes know each other and have a rail; asserts. */
void wf_world_connect(unsigned from, unsigned to);

/* Close node @number, as its user does. */
void wf_world_leave(unsigned number);

/* Kill node @number, as SIGKILL does. */
void wf_world_kill(unsigned number);

/* Let a killed node come back at its address, as another incarnation with the same number. */
void wf_world_restart(unsigned number);
/* Stop node @number as SIGSTOP does, or go on as SIGCONT does. */
void wf_world_freeze(unsigned number, bool frozen);
/* Reset the door's connection; later dials may succeed. */
void wf_world_cut_door(unsigned a, unsigned b);

/* Reset the door's connection for @who alone: @whom is not told. */
void wf_world_forget_door(unsigned who, unsigned whom);

/* Let fabric and door between the two carry nothing, and tell nobody. */
void wf_world_part(unsigned a, unsigned b, bool parted);

/* Hold all that the fabric carries from @from to @to. */
void wf_world_hold_way(unsigned from, unsigned to, bool hold);
/* Fail the rail between the two, for as long as @broken. */
void wf_world_break_rail(unsigned a, unsigned b, bool broken);

/* The node that wf_fake_enter knows by @fake_node. */
unsigned wf_world_number(unsigned fake_node);

/* The node's counters. */
struct weft_counters wf_world_count(unsigned number);

/*
 * Take all that is left of the pool of node @number, in @count pieces at most; asserts that these
 * suffice.  Returns the number of pieces.
 */
size_t wf_world_take_pool(unsigned number, void **pieces, size_t count);

/* Calls that node @number has served. */
unsigned wf_world_served(unsigned number);
/* Let node @number answer no call until the hold is let go. */
void wf_world_hold(unsigned number, bool hold);

/*
 * Ask @handle about every call from now on, in place of a hold: the time until the answer;
 * UINT64_MAX: the call fails with ABORTED; WF_WORLD_KEPT: @handle answers the call.  Forgotten
 * when the world closes.
 */
#define WF_WORLD_KEPT (UINT64_MAX - 1)
void wf_world_on_call(uint64_t (*handle)(unsigned number, void *call, const uint8_t *bytes,
					 size_t count));

/*
 * Give every call to @handle from now on, by the call's name, to be answered there; NULL: as
 * before.  Forgotten when the world closes.
 */
void wf_world_on_request(void (*handle)(unsigned number, void *call));
void wf_world_answer(void *call, const void *data, size_t bytes);

/*
 * Give every stream to @handle from now on.  NULL: as before, when a node says back each message
 * of Talk, one after the other, until there are none.  Forgotten when the world closes.
 */
void wf_world_on_stream(void (*handle)(unsigned number, struct weft_stream *stream));

/* Streams that node @number has begun to say back. */
unsigned wf_world_talked(unsigned number);
/* Streams that node @number says back now. */
unsigned wf_world_talking(unsigned number);

/*
 * A flight: an operation and its outcome.  Starting a flight asserts that the operation could
 * be started; @outcomes counts its ends, and must become 1.
 */
struct wf_flight {
	struct weft_op *op;
	unsigned outcomes;
	enum weft_status status;
	uint64_t started_ns, ended_ns;
	/* a call */
	unsigned closures;
	size_t reply_bytes;
	bool reply_right; /* the reply is what was sent */
	const uint8_t *request;
	size_t request_bytes;
};

/*
 * Ask @draw about the priority of every operation that is begun from now on; NULL: the default.
 * Forgotten when the world closes.
 */
void wf_world_prefer(uint32_t (*draw)(void));
bool wf_world_prefers(void); /* Is @draw asked? */

/* Options that keep @f up to date, for an operation that the test starts itself. */
struct weft_op_options wf_flight_begin(struct wf_flight *f, uint64_t timeout_ns);

/* Send @bytes of uint8 under @step and the empty key.  @timeout_ns 0: the node's. */
void wf_flight_send(struct wf_flight *f, unsigned from, unsigned to, uint64_t step,
		    const void *data, size_t bytes, uint64_t timeout_ns);
/* Send @bytes of pool memory under @step and the empty key, for the peer to look at. */
void wf_flight_share(struct wf_flight *f, unsigned from, unsigned to, uint64_t step, void *data,
		     size_t bytes);
/* Receive a tensor of wf_flight_send, from anybody if @from is @to. */
void wf_flight_receive(struct wf_flight *f, unsigned to, unsigned from, uint64_t step, void *into,
		       size_t bytes, uint64_t timeout_ns);
void wf_flight_call(struct wf_flight *f, unsigned from, unsigned to, const void *data,
		    size_t bytes, uint64_t timeout_ns);
void wf_flight_ping(struct wf_flight *f, unsigned from, unsigned to, uint64_t timeout_ns);

/* Open a call of Talk, whose flight lands with the call. */
void wf_flight_open(struct wf_flight *f, unsigned from, unsigned to, uint64_t timeout_ns,
		    struct weft_stream **stream);
/* Write a message, @bytes of @data, into a stream. */
void wf_flight_write(struct wf_flight *f, struct weft_stream *stream, const void *data,
		     size_t bytes, uint64_t timeout_ns);
/* Read a message of a stream. */
void wf_flight_read(struct wf_flight *f, struct weft_stream *stream, uint64_t timeout_ns);

/* Step until all @count flights have ended; asserts that they do within @limit_ns, each once. */
void wf_flight_land(struct wf_flight *flights, size_t count, uint64_t limit_ns);

/* Time from the start of @f to its end. */
static inline uint64_t wf_flight_ns(const struct wf_flight *f)
{
	return f->ended_ns - f->started_ns;
}

/* Free the operations of @count flights that have landed. */
void wf_flight_free(struct wf_flight *flights, size_t count);

/* Write, and check, bytes that depend on @seed and position. */
void wf_world_fill(void *bytes, size_t count, uint64_t seed);
bool wf_world_is_filled(const void *bytes, size_t count, uint64_t seed);

/* Returns whether all of @count bytes have @value. */
bool wf_world_all_are(const void *bytes, size_t count, uint8_t value);

/* Assert what assert_memory_equal() does, which is slow: only where contents differ, it says how. */
#define assert_same_content(a, b, count)                                                           \
	do {                                                                                       \
		if ((count) && memcmp(a, b, count))                                                \
			assert_memory_equal(a, b, count);                                          \
	} while (0)

#endif
