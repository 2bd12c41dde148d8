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
 * There is one world.  Settings come from the environment, as users give them;
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
 * Over IP; over a fabric of its own; through the memory of one host; over two networks of IP; over
 * a NIC that reaches devices, with IP to fall back on.
 */
enum wf_world_shape {
	WF_WORLD_CONNECTED, WF_WORLD_SHARED, WF_WORLD_SAME_HOST, WF_WORLD_LANES, WF_WORLD_REACHING,
	WF_WORLD_UNDESCRIBED /* by a provider that has no row */
};
extern const enum wf_world_shape wf_world_shapes[3]; /* the first of them */

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

/* Who hears the log of nodes that are opened from here on, up to their WEFT_LOG; NULL: nobody. */
void wf_world_hear(void (*hear)(unsigned number, int level, const char *line));

/*
 * Nodes that are opened from here on, until the world closes, have so many workers; a step
 * polls each.
 */
void wf_world_set_workers(unsigned count);

/* And serve with these limits, whose streams are the world's; NULL: with none. */
void wf_world_set_limits(const struct weft_serve_options *limits);

/* Nodes that are opened from here on have these interceptors; NULL: none.  Forgotten when the world closes. */
void wf_world_intercept(const struct weft_interceptor *const *interceptors);

/* One more; its number. */
unsigned wf_world_add(void);

/* Node @number says from now on that it is node @whom: its incarnation, its address, or both. */
#define WF_WORLD_LIE_INCARNATION 1
#define WF_WORLD_LIE_ADDRESS 2
void wf_world_lie(unsigned number, unsigned whom, unsigned lies);

/* The same in two steps, each of which may fail and be tried again. */
int wf_world_try_add(unsigned *number);
int wf_world_try_serve(unsigned number);

/*
 * Close all nodes, the killed last, and forget every WEFT_* of the environment.  How much
 * has leaked: objects of libfabric, chunks of pools.  Operations must have been freed before.
 */
size_t wf_world_close(void);

/* Nodes that are opened from here on miss a silent one after 300 ms; until the world closes. */
void wf_world_lose_soon(void);

/* Until a death is known with that: the silence, in beats of 100 ms, or redials in vain. */
#define WF_WORLD_LOST_NS (700 * WF_NS_PER_MS)

/*
 * Nothing is kept on behalf of the peer of @link but the link itself, under all its names, and
 * what the peer has still to confirm.
 */
struct wf_link;
bool wf_world_account_is_empty(const struct wf_link *link);

/* Node @number holds nothing of a tensor, call or stream any more: asserts. */
void wf_world_assert_free(unsigned number);

/*
 * Close it when all is over, and given back: no node that lives holds anything, and nothing has
 * leaked: asserts.
 */
void wf_world_end(void);

/* How many there are, the dead included. */
unsigned wf_world_population(void);

struct weft_node *wf_world_node(unsigned number);

/* Node @to as node @from knows it, and its mirror. */
struct weft_peer *wf_world_peer(unsigned from, unsigned to);

/* Node @to as node @from knows it, if it has opened it; else NULL. */
struct weft_peer *wf_world_known(unsigned from, unsigned to);
struct weft_stub *wf_world_stub(unsigned from, unsigned to);

void wf_world_step(void);

/* The same, but where nothing happens the clock moves on, by 5 ms at most and not beyond @until_ns. */
void wf_world_leap(uint64_t until_ns);

/* Called wherever a node sleeps inside a call of its own, while the others live on; NULL: nothing. */
void wf_world_on_sleep(void (*sleep)(void));

/* Step until @done says so, or for @limit_ns; what @done said last. */
bool wf_world_run(bool (*done)(void *ctx), void *ctx, uint64_t limit_ns);
void wf_world_pass(uint64_t ns);

/* Poll node @number alone, without moving the clock. */
void wf_world_poll(unsigned number);

/* Both nodes know each other and have a rail; asserts. */
void wf_world_connect(unsigned from, unsigned to);

/* Close node @number, as its user does. */
void wf_world_leave(unsigned number);

/* SIGKILL; SIGSTOP and SIGCONT; the door's connection is reset, dials may succeed. */
void wf_world_kill(unsigned number);

/* A killed node comes back at its address, as another incarnation with the same number. */
void wf_world_restart(unsigned number);
void wf_world_freeze(unsigned number, bool frozen);
void wf_world_cut_door(unsigned a, unsigned b);

/* The same for @who alone: @whom is not told. */
void wf_world_forget_door(unsigned who, unsigned whom);

/* Fabric and door between the two carry nothing, and nobody is told. */
void wf_world_part(unsigned a, unsigned b, bool parted);

/* What the fabric carries from @from to @to waits.  The rail between the two fails, and stays so. */
void wf_world_hold_way(unsigned from, unsigned to, bool hold);
void wf_world_break_rail(unsigned a, unsigned b, bool broken);

/* The node that wf_fake_enter knows by @fake_node. */
unsigned wf_world_number(unsigned fake_node);

/* The node's counters. */
struct weft_counters wf_world_count(unsigned number);

/* Calls that were served; while it holds, node @number answers none until it is let go. */
unsigned wf_world_served(unsigned number);
void wf_world_hold(unsigned number, bool hold);

/*
 * Ask @handle about every call from now on, in place of a hold: how long until it is
 * answered; UINT64_MAX: it fails with ABORTED; WF_WORLD_KEPT: @handle answers it.  Forgotten
 * when the world closes.
 */
#define WF_WORLD_KEPT (UINT64_MAX - 1)
void wf_world_on_call(uint64_t (*handle)(unsigned number, void *call, const uint8_t *bytes,
					 size_t count));

/*
 * Or @handle has them from now on, by the call's name, and answers each; NULL: again as
 * before.  Forgotten when the world closes.
 */
void wf_world_on_request(void (*handle)(unsigned number, void *call));
void wf_world_answer(void *call, const void *data, size_t bytes);

/*
 * Streams: every node says back each message of Talk, one after the other, until there are
 * none.  Or from now on @handle has them; NULL: again as before.  Forgotten when the world
 * closes.
 */
void wf_world_on_stream(void (*handle)(unsigned number, struct weft_stream *stream));

/* How many node @number has begun to say back, and how many of them run. */
unsigned wf_world_talked(unsigned number);
unsigned wf_world_talking(unsigned number);

/*
 * A flight: one operation and what became of it.  Starting one asserts that it could be
 * started; @outcomes counts how often it ended, which must become 1.
 */
struct wf_flight {
	struct weft_op *op;
	unsigned outcomes;
	enum weft_status status;
	uint64_t started_ns, ended_ns;
	/* of a call */
	unsigned closures;
	size_t reply_bytes;
	bool reply_right; /* what came back is what was sent */
	const uint8_t *request;
	size_t request_bytes;
};

/* For an operation that the test starts itself: options that keep @f up to date. */
struct weft_op_options wf_flight_begin(struct wf_flight *f, uint64_t timeout_ns);

/* @bytes of uint8 under @step and the empty key.  @timeout_ns 0: the node's. */
void wf_flight_send(struct wf_flight *f, unsigned from, unsigned to, uint64_t step,
		    const void *data, size_t bytes, uint64_t timeout_ns);
/* From anybody if @from is @to. */
void wf_flight_receive(struct wf_flight *f, unsigned to, unsigned from, uint64_t step, void *into,
		       size_t bytes, uint64_t timeout_ns);
void wf_flight_call(struct wf_flight *f, unsigned from, unsigned to, const void *data,
		    size_t bytes, uint64_t timeout_ns);
void wf_flight_ping(struct wf_flight *f, unsigned from, unsigned to, uint64_t timeout_ns);

/*
 * A call of Talk, whose flight lands with the call; what is written into it: @bytes of
 * @data; and what is read of it.
 */
void wf_flight_open(struct wf_flight *f, unsigned from, unsigned to, uint64_t timeout_ns,
		    struct weft_stream **stream);
void wf_flight_write(struct wf_flight *f, struct weft_stream *stream, const void *data,
		     size_t bytes, uint64_t timeout_ns);
void wf_flight_read(struct wf_flight *f, struct weft_stream *stream, uint64_t timeout_ns);

/* Step until all @count have ended; asserts that they do within @limit_ns, each once. */
void wf_flight_land(struct wf_flight *flights, size_t count, uint64_t limit_ns);

/* How long it took. */
static inline uint64_t wf_flight_ns(const struct wf_flight *f)
{
	return f->ended_ns - f->started_ns;
}

/* Free what landed. */
void wf_flight_free(struct wf_flight *flights, size_t count);

/* Bytes that depend on @seed and position; and are they those? */
void wf_world_fill(void *bytes, size_t count, uint64_t seed);
bool wf_world_is_filled(const void *bytes, size_t count, uint64_t seed);

#endif
