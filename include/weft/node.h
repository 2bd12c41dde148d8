/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes, peers and operations.
 *
 * A node is this process's end of everything.  A peer is another node, named by the host:port that
 * it listens at.  A rail is a provider of libfabric on one NIC, interface or domain, as a node has
 * it open; bodies of one peer may go over several.  An operation is what a caller waits for: it has
 * one deadline and ends exactly once.
 */
#ifndef WEFT_NODE_H
#define WEFT_NODE_H

#include <stdio.h>
#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_node;
struct weft_peer;
struct weft_op;
struct weft_interceptor;
struct weft_queue;

/* The thread that drives a node. */
enum weft_mode {
	WEFT_THREADED = 0, /* a thread of the library */
	WEFT_MANUAL = 1    /* the caller's thread, by weft_poll and weft_wait */
};

/* Claims about peers and about what is said to them; weft_security(7).  Nothing lowers them. */
enum weft_security {
	WEFT_SECURITY_NONE = 0,  /* SEALED with a key or certificate, else listens on loopback only */
	WEFT_SECURITY_OPEN = 1,  /* nothing is claimed, and every address is allowed */
	WEFT_SECURITY_KEYED = 2, /* peers are proven, all is sealed but the bodies of tensors */
	WEFT_SECURITY_SEALED = 3 /* peers are proven, and all is sealed */
};

/*
 * Options of a node.  Zero means "as @settings or the environment say, else the default";
 * weft_options(7) lists all.  @size is sizeof(struct weft_node_options).
 */
struct weft_node_options {
	size_t size;
	enum weft_mode mode;
	enum weft_security security;
	const char *listen;      /* "host:port" to listen at; port 0: any; NULL: 127.0.0.1:0 */
	const char *advertise;   /* address that others use; NULL: @listen */
	const char *name;        /* name for people, up to 63 bytes; NULL: host.pid */
	const char *provider;    /* choice of providers, narrower than FI_PROVIDER's */
	const char *device;      /* choice of a NIC, interface or domain by name */
	uint64_t timeout_ns;     /* deadline of operations that name none */
	uint64_t pool_bytes;     /* bytes of registered memory that the pool may hold */
	/*
	 * Callback for lines of the log, up to the level of WEFT_LOG: warnings (@level 1), notes
	 * (2) and steps (3).  The callback is never called concurrently, and must not call
	 * functions of weft.  NULL: no log, or one on standard error where WEFT_LOG says "stderr:".
	 */
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;
	uint64_t flags;          /* enum weft_op_flag, for every operation */
	/*
	 * Services to serve, ended by NULL: as weft_serve() does, but before the first call can
	 * come, so that a server that restarts answers no call with UNIMPLEMENTED.  Handlers may
	 * run before weft_node_open() has returned.  All methods are unary here: a service with
	 * streams is served by weft_serve_streams(), after the open, when the node listens already.
	 * NULL: none.
	 */
	struct ProtobufCService *const *services;
	/*
	 * Threads that share the peers of a threaded node, each with its own connections and part
	 * of the pool: up to 16; 0: as WEFT_WORKERS says.  Everything that concerns a peer happens
	 * on one of these threads.  Callbacks and handlers of different peers may run at the same
	 * time, and so may callbacks of receives from any peer.
	 */
	unsigned workers;
	/* Interceptors of calls, ended by NULL, see intercept.h; copied.  NULL: none. */
	const struct weft_interceptor *const *interceptors;
	const char *rules;       /* rules of memory for weft_alloc_near, as WEFT_RULES */
	/*
	 * Settings by their names, "WEFT_LOST=5s" each, ended by NULL: before the environment's,
	 * and behind the members above.  Copied.  NULL: none.
	 */
	const char *const *settings;
};
#define WEFT_NODE_OPTIONS_INIT WEFT_SIZED_INIT(struct weft_node_options)

/*
 * Open a node, which listens when the function returns.  Returns @node owned: free it with
 * weft_node_close().  -EINVAL: an option is wrong.  -ENODATA: no provider fits.  -EACCES: an
 * address beyond loopback without credentials or WEFT_SECURITY=open.  -EADDRINUSE: the address is
 * taken.  -EEXIST: two services of one name.  -ELIBACC, -ELIBBAD: as weft_info_open().
 *
 * Threads: any; the first node of a process, or what weft_info_open() asks before, sets variables
 * of libfabric, so that other threads of the program must not use the environment meanwhile.
 */
WEFT_API int weft_node_open(const struct weft_node_options *options,
			    struct weft_node **node);

/*
 * Say goodbye to every peer and free the node.  Pending operations end with CANCELLED first.  The
 * close waits for callbacks and device copies that run, for up to 2 s until peers have stopped
 * reading what was offered to them, and then for each worker up to 1 s until peers have confirmed
 * what was sent.  Accepts NULL.  -EDEADLK inside a callback: nothing was done.  Every operation of
 * the node must be freed, before or afterwards; results in pool memory go with the node.  weft(7),
 * "What outlives a node", has the other objects.
 * Threads: any but the node's callbacks, while no other thread is in a function on the node or on
 * what belongs to it, but for weft_queue_next(), and weft_op_free() of what came out of a queue.
 */
WEFT_API int weft_node_close(struct weft_node *node);

/*
 * Returns the address to give to others, "host:port", which lives as long as the node.
 * Threads: any, callback.
 */
WEFT_API const char *weft_node_address(const struct weft_node *node);

/*
 * Open a peer by the address that it listens at; nothing is sent until the peer is used.  The same
 * text gives the same peer: "localhost:7000" and "127.0.0.1:7000" are two.  Close a peer as often
 * as it was opened.  -EINVAL: @address is not host:port, or the port is 0.  -ENOMEM.
 * Threads: any, callback.
 */
WEFT_API int weft_peer_open(struct weft_node *node, const char *address,
			    struct weft_peer **peer);

/*
 * Close a peer, before its node closes, which ends every peer that is left; accepts NULL.  Pending
 * operations go on, and the connection stays until the node closes.  Threads: any, callback.
 */
WEFT_API void weft_peer_close(struct weft_peer *peer);

/* Returns the peer's name as its hello gave it, else its address.  Threads: any, callback. */
WEFT_API const char *weft_peer_name(const struct weft_peer *peer);

/* State of a peer. */
enum weft_peer_state {
	WEFT_PEER_UP = 1,       /* met, and within reach */
	WEFT_PEER_DRAINING = 2, /* takes no more calls */
	WEFT_PEER_GONE = 3      /* dead, or out of reach; an address is dialled anew */
};

/*
 * Have @changed called when @peer's state changes, and at first if the peer is up or draining;
 * NULL: no more.  Nothing is sent for it: a peer is met when it is used.  @why is a sentence for
 * WEFT_PEER_GONE, else "".  A rail that fails and is opened anew is no change, and states that
 * follow each other at once may be told as the last.  The callback runs where those of operations
 * do, and may begin and free operations.  One listener for each peer: the last; a call of the one
 * before that has begun may still run when the function has returned, so what its @arg points to
 * best lives as long as the node.  -ENOMEM.  Threads: any, callback.
 */
WEFT_API int weft_peer_on_change(struct weft_peer *peer,
				 void (*changed)(struct weft_peer *peer,
						 enum weft_peer_state state, const char *why,
						 void *arg),
				 void *arg);

/* Demands of an operation, or of all of a node: an operation fails where it can't have them. */
enum weft_op_flag {
	WEFT_CHECKSUM = 1 << 16,           /* bodies and replies of calls are verified on arrival */
	WEFT_STRICT_NO_STAGING = 1 << 17,  /* bodies are not copied into the pool first */
	WEFT_STRICT_NO_FALLBACK = 1 << 18  /* the rail is the best that both nodes have */
};

#define WEFT_PRIORITY_MAX 3 /* the highest priority of an operation */

/*
 * Options of an operation; NULL means all zero.  @done runs on the worker, or on a thread that
 * waits and does the worker's work meanwhile, never before the function that began the operation
 * has returned: exactly once, but of a receive with WEFT_RECV_MANY once for each tensor and once
 * for the end.  A queue in the place of @done, see queue.h, leaves it to any thread to hear of the
 * end.
 */
struct weft_op_options {
	size_t size;
	/*
	 * Time for the operation.  0: the node's, but the call's or none where the function that
	 * begins the operation says so: those of stream.h and attachment.h, and WEFT_RECV_MANY.
	 */
	uint64_t timeout_ns;
	void (*done)(struct weft_op *op, void *arg);
	void *arg;           /* the program's, see weft_op_arg() */
	uint32_t flags;       /* enum weft_op_flag */
	uint32_t rails_min;   /* strict: rails that the link runs over at least */
	const char *provider; /* strict: libfabric's full name of the rail; copied; NULL: any */
	struct weft_queue *queue; /* a queue of the node, in the place of @done; NULL: none */
	/*
	 * 0, the default, to WEFT_PRIORITY_MAX: goes before lower ones to and from the same peer,
	 * but for tensors of one step and key, which stay in order
	 */
	uint32_t priority;
	uint32_t reserved[3]; /* zero: room to grow inside other options */
};
#define WEFT_OP_OPTIONS_INIT WEFT_SIZED_INIT(struct weft_op_options)

/*
 * Send a ping over the fabric, connecting if needed; @op ends when the answer has come.
 * Threads: any, callback.
 */
WEFT_API int weft_ping(struct weft_peer *peer, const struct weft_op_options *options,
		       struct weft_op **op);

/*
 * Wait until @op has ended, for at most @timeout_ns.  0: @op has ended; weft_op_status() has the
 * outcome.  -ETIMEDOUT: @op has not ended, and still owns its buffer.  -EDEADLK inside a callback.
 * Threads: any; the owner of a manual node drives it by this function.
 */
WEFT_API int weft_wait(struct weft_op *op, uint64_t timeout_ns);

/*
 * Wait until one of the @count operations at @ops has ended, for at most @timeout_ns.  NULLs among
 * them are passed over; the others are of one node.  *@index: the first that has ended, by its
 * place.  -EINVAL: there is none, or they are of several nodes.  Other codes, and who drives a
 * manual node, as weft_wait() has them.  Threads: any.
 */
WEFT_API int weft_wait_any(struct weft_op *const *ops, size_t count, uint64_t timeout_ns,
			   size_t *index);

/*
 * Wait until all of the @count operations at @ops have ended, for at most @timeout_ns altogether.
 * NULLs among them are passed over.  Codes as weft_wait() has them.  Threads: any.
 */
WEFT_API int weft_wait_all(struct weft_op *const *ops, size_t count, uint64_t timeout_ns);

/*
 * Wait until @op has ended, which its deadline bounds, read its outcome into *@status and free it.
 * 0: @op is freed, and unless *@status is WEFT_OK weft_error() has its sentence.  Other codes, as
 * weft_wait() has them: @op is still the caller's.  Threads: any.
 */
WEFT_API int weft_finish(struct weft_op *op, enum weft_status *status);

/* Returns the argument that the options of @op gave, as @done gets it.  Threads: any, callback. */
WEFT_API void *weft_op_arg(const struct weft_op *op);

/* Returns whether @op has ended.  Threads: any, callback. */
WEFT_API int weft_op_ended(const struct weft_op *op);

/*
 * Returns the outcome of @op; WEFT_UNKNOWN while it runs, except inside the closure of @op, a call.
 * Threads: any, callback.
 */
WEFT_API enum weft_status weft_op_status(const struct weft_op *op);

/*
 * Returns one sentence about the outcome, "" when that is WEFT_OK; lives as long as @op.
 * Threads: any, callback.
 */
WEFT_API const char *weft_op_message(const struct weft_op *op);

/* Returns whether the other side acted on @op.  Threads: any, callback. */
WEFT_API enum weft_executed weft_op_executed(const struct weft_op *op);

/* Ask for an early end of @op.  The outcome may still be success.  Threads: any, callback. */
WEFT_API void weft_cancel(struct weft_op *op);

/*
 * Give up the handle @op; accepts NULL.  A running operation goes on detached, and its buffer
 * stays borrowed until it ends.  Threads: any, callback.
 */
WEFT_API void weft_op_free(struct weft_op *op);

/* Path that the bytes of an operation really took. */
struct weft_path {
	size_t size;
	char provider[64];    /* libfabric's full name; "" when nothing moved */
	char way[16];         /* "eager", "pull", "view", "staged", "direct" or "none" */
	uint64_t bytes;       /* bytes of the body */
	unsigned copies;      /* copies of the body by this side */
	unsigned registered;  /* 1: memory was registered for this operation */
	char device[64];      /* NIC, interface or domain; "" when nothing moved */
	unsigned chunks;      /* reads or frames that carried the body */
	unsigned retries;     /* chunks read again; of a send: offers made again */
	char checksum[16];    /* checksum of the body: "xxh3" or "none" */
	/* Times in nanoseconds since the operation began; 0: this side does not know. */
	uint64_t queued_ns;     /* the link had the record, or the channel the receive */
	uint64_t matched_ns;    /* a receive met its tensor, a call its reply */
	uint64_t first_byte_ns; /* the first chunk or frame was there, or had left */
	uint64_t last_byte_ns;  /* the last chunk or frame was there, or had left */
	uint64_t done_ns;       /* the outcome was known */
	unsigned helped;        /* chunks that the node's helper thread read */
	unsigned rails;         /* rails that carried the body; of a send: offered it */
	char cipher[24];        /* cipher of the body on its way: "AES-128-GCM" or "none", say */
};
#define WEFT_PATH_INIT WEFT_SIZED_INIT(struct weft_path)

/*
 * Describe the path that @op took; set ->size first.  -EAGAIN: @op has not ended.  -EINVAL: ->size
 * is not set.  Threads: any, callback.
 */
WEFT_API int weft_op_path(const struct weft_op *op, struct weft_path *path);

/*
 * Drive a manual node: do the work that is there, else wait for at most @timeout_ns.  Returns the
 * number of operations that ended, or a negative code: -EINVAL for a threaded node, -EDEADLK
 * inside a callback.  Threads: owner.
 */
WEFT_API int weft_poll(struct weft_node *node, uint64_t timeout_ns);

/*
 * Returns a manual node's descriptor for an event loop, to poll for reading, with or without
 * EPOLLET; it lives as long as the node.  -EINVAL for a threaded node.  -EDEADLK inside a
 * callback.  Threads: owner.
 */
WEFT_API int weft_fd(struct weft_node *node);

/*
 * Prepare a manual node for the sleep of an event loop, which calls weft_arm() before each sleep
 * and weft_poll() after it.  0: the descriptor is not ready, and will be after *@timeout_ns
 * (output only; may be NULL) at the latest.  -EAGAIN: call weft_poll() now.  -EINVAL for a
 * threaded node.  -EDEADLK inside a callback.  Threads: owner.
 */
WEFT_API int weft_arm(struct weft_node *node, uint64_t *timeout_ns);

/* Totals of a node since it was opened, but for members that say "now". */
struct weft_counters {
	size_t size;
	uint64_t frames_sent, frames_received, frames_replayed, frames_refused;
	uint64_t bytes_eager, bytes_pulled;
	uint64_t peers_lost, links_resumed;
	/* Pool: bytes now, bytes in use now, and waits of operations for memory. */
	uint64_t pool_bytes, pool_bytes_used, pool_waits;
	uint64_t registered_bytes; /* bytes registered with providers now */
	uint64_t late_dropped;
	uint64_t bytes_viewed;
	uint64_t registrations, registration_hits, registration_evictions;
	uint64_t calls, served;   /* calls that run now: of this node, and of its peers */
	uint64_t message_bytes;   /* packed bytes of messages that the library holds now */
	uint64_t unpack_failures; /* messages that were not of their type */
	uint64_t calls_waiting;   /* calls of peers that wait now for a limit of their service */
	uint64_t calls_refused;   /* refused calls of peers: too many, or the node drains */
	/* Calls that are over, by enum weft_status: of this node, and of its peers. */
	uint64_t calls_ended[WEFT_UNAUTHENTICATED + 1], served_ended[WEFT_UNAUTHENTICATED + 1];
	uint64_t calls_repeated;  /* attempts of calls after the first */
	uint64_t served_repeated; /* attempts of peers that got what an earlier one has begun */
	/* Bytes kept on behalf of peers now, beside pool memory: see WEFT_PEER_BYTES. */
	uint64_t kept_bytes;
	/* Records refused for want of room in their peer's account: they come again. */
	uint64_t records_refused;
	uint64_t aborts_ignored;  /* aborts of steps by peers that take no part in them */
	/*
	 * Bytes of registered_bytes now, by what is registered: memory of the program's, for an
	 * operation or by weft_register(); of the pool, frames and receive slots; of devices; and
	 * of the program's, kept for the next operation.
	 */
	uint64_t registered_user, registered_pool, registered_device, registered_cached;
	uint64_t pinned_bytes;    /* bytes of the pool pinned now for CUDA devices */
	uint64_t rights_refused;  /* acts of peers that WEFT_ALLOW does not allow */
	uint64_t links_rekeyed;   /* links that this node dialled, and that got keys of new files */
};
#define WEFT_COUNTERS_INIT WEFT_SIZED_INIT(struct weft_counters)

/*
 * Read the counters of a node; set ->size first.  -EINVAL: ->size is not set.
 * Threads: any, callback.
 */
WEFT_API int weft_node_counters(struct weft_node *node, struct weft_counters *counters);

/*
 * Print what the node holds, which operation waits for whom, and what happened last.  The dump is
 * made from outside, and has less, when the node's thread gets no further for a second.
 * Threads: any, callback.
 */
WEFT_API int weft_dump(struct weft_node *node, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
