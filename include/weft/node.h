/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes, peers and operations.
 *
 * A node is this process's end of everything.  A peer is another node, named
 * by the host:port of its door.  An operation is what a caller waits for: it
 * has one deadline and ends exactly once.
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

/* Who drives a node. */
enum weft_mode {
	WEFT_THREADED = 0, /* a thread of the library's */
	WEFT_MANUAL = 1    /* the caller's thread, by weft_poll and weft_wait */
};

/* What is claimed about peers.  Only WEFT_SECURITY_OPEN exists so far. */
enum weft_security {
	WEFT_SECURITY_NONE = 0, /* loopback only */
	WEFT_SECURITY_OPEN = 1  /* nothing is claimed, and every address allowed */
};

/*
 * Options of a node.  Zero means "as the environment says, else the default";
 * weft_options(7) lists both.  @size is sizeof(struct weft_node_options).
 */
struct weft_node_options {
	size_t size;
	enum weft_mode mode;
	enum weft_security security;
	const char *listen;      /* "host:port"; port 0: any; NULL: 127.0.0.1:0 */
	const char *advertise;   /* the address others should use; NULL: listen */
	const char *name;        /* for people, up to 63 bytes; NULL: host.pid */
	const char *provider;    /* narrows further than FI_PROVIDER does */
	const char *device;      /* NIC, interface or domain name */
	uint64_t timeout_ns;     /* deadline of operations that name none */
	uint64_t pool_bytes;     /* registered memory the pool may hold */
	/* Warnings and notes, one line each; never called concurrently. */
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;
	uint64_t flags;          /* enum weft_op_flag, for every operation */
	/*
	 * Ended by NULL: served as weft_serve does, but before the first call can come, so
	 * that a server that restarts answers none with UNIMPLEMENTED.  Handlers may run
	 * before weft_node_open has returned.  NULL: none.
	 */
	struct ProtobufCService *const *services;
	/*
	 * Threads that share the peers of a threaded node, each with its own connections and
	 * part of the pool: up to 16, 0 as WEFT_WORKERS says.  What concerns one peer happens on
	 * one of them.  Callbacks and handlers of different peers may run at the same time, and
	 * so may those of receives from any peer.
	 */
	unsigned workers;
	/* Ended by NULL: who is asked and told about calls, see intercept.h; copied.  NULL: nobody. */
	const struct weft_interceptor *const *interceptors;
	const char *rules;       /* whose memory weft_alloc_near may give, as WEFT_RULES */
};

/*
 * Open a node.  Its door listens when this returns.
 * -EINVAL: an option is wrong.  -ENODATA: no provider fits.  -EACCES: an
 * address beyond loopback without WEFT_SECURITY=open.  -EADDRINUSE.  -EEXIST: two
 * services of one name.
 * Threads: any.
 */
WEFT_API int weft_node_open(const struct weft_node_options *options,
			    struct weft_node **node);

/*
 * Say goodbye to every peer and free the node.  What is pending ends with
 * CANCELLED first.  Accepts NULL.  -EDEADLK inside a callback: nothing done.
 * Every operation of the node must be freed afterwards or have been freed
 * before; its results in pool memory go with the node.  Threads: any but its callbacks.
 */
WEFT_API int weft_node_close(struct weft_node *node);

/* The address to give to others, "host:port".  Lives as long as the node. */
WEFT_API const char *weft_node_address(const struct weft_node *node);

/*
 * A peer by the address of its door; nothing is sent until it is used.
 * The same address gives the same peer.  Close what you open.
 * -EINVAL: not host:port.  Threads: any, callback.
 */
WEFT_API int weft_peer_open(struct weft_node *node, const char *address,
			    struct weft_peer **peer);

/* Accepts NULL.  What is pending goes on.  Threads: any, callback. */
WEFT_API void weft_peer_close(struct weft_peer *peer);

/* The peer's name as its hello gave it, else its address. Threads: any, callback. */
WEFT_API const char *weft_peer_name(const struct weft_peer *peer);

/* What an operation, or every one of a node, asks for: it fails where it can't have it. */
enum weft_op_flag {
	WEFT_CHECKSUM = 1 << 16,           /* its body, and a call's reply, is verified at the other end */
	WEFT_STRICT_NO_STAGING = 1 << 17,  /* bodies are not copied into the pool first */
	WEFT_STRICT_NO_FALLBACK = 1 << 18  /* the rail is the best that both nodes have */
};

/*
 * Options of one operation; NULL means all zero.  @done runs on the worker,
 * exactly once, never before the call that started the operation returned.
 */
struct weft_op_options {
	size_t size;
	uint64_t timeout_ns; /* 0: the node's */
	void (*done)(struct weft_op *op, void *arg);
	void *arg;
	uint32_t flags;       /* enum weft_op_flag */
	uint32_t rails_min;   /* strict: that the link runs over at least */
	const char *provider; /* strict: of the rail, libfabric's full name; copied; NULL: any */
	uint64_t reserved[2]; /* zero: so that it can grow inside other options */
};

/* Send a ping over the fabric and wait for its answer.  Connects if needed. */
WEFT_API int weft_ping(struct weft_peer *peer, const struct weft_op_options *options,
		       struct weft_op **op);

/*
 * Wait until @op has ended, for at most @timeout_ns.  0: it has; its outcome
 * is in weft_op_status().  -ETIMEDOUT: it has not, and still owns its buffer.
 * -EDEADLK inside a callback.  Threads: any; in a manual node the owner, who drives the node by it.
 */
WEFT_API int weft_wait(struct weft_op *op, uint64_t timeout_ns);

/* Has it ended?  Threads: any, callback. */
WEFT_API int weft_op_ended(const struct weft_op *op);

/* The outcome; WEFT_UNKNOWN while it runs.  Threads: any, callback. */
WEFT_API enum weft_status weft_op_status(const struct weft_op *op);

/* One sentence about the outcome, "" when it is WEFT_OK.  Lives as long as @op. */
WEFT_API const char *weft_op_message(const struct weft_op *op);

/* Did the other side act on it?  Threads: any, callback. */
WEFT_API enum weft_executed weft_op_executed(const struct weft_op *op);

/* Ask for an early end.  The outcome may still be success.  Threads: any, callback. */
WEFT_API void weft_cancel(struct weft_op *op);

/*
 * Give up the handle; accepts NULL.  A running operation goes on detached, and
 * its buffer stays borrowed until it ends.  Threads: any, callback.
 */
WEFT_API void weft_op_free(struct weft_op *op);

/* How the bytes of an operation really went. */
struct weft_path {
	size_t size;
	char provider[64];    /* libfabric's full name; "" when nothing moved */
	char way[16];         /* "eager", "pull", "view", "staged", "direct" or "none" */
	uint64_t bytes;       /* of the body */
	unsigned copies;      /* by this side, of the body */
	unsigned registered;  /* 1: memory was registered for this operation */
	char device[64];      /* NIC, interface or domain; "" when nothing moved */
	unsigned chunks;      /* reads or frames that carried the body */
	unsigned retries;     /* chunks read again; of a send: offers made again */
	char checksum[16];    /* of the body: "xxh3" or "none" */
	/* Nanoseconds since the operation was begun; 0: this side does not know. */
	uint64_t queued_ns;     /* handed to the link, or a receive to its channel */
	uint64_t matched_ns;    /* met its other half */
	uint64_t first_byte_ns; /* the first chunk or frame was there, or had left */
	uint64_t last_byte_ns;  /* the last one */
	uint64_t done_ns;       /* the outcome was known */
	unsigned helped;        /* of the chunks: read by the node's helper thread */
	unsigned rails;         /* that carried the body; of a send: on which it was offered */
};

/* The path @op took; set ->size first.  -EAGAIN: it has not ended.  Threads: any, callback. */
WEFT_API int weft_op_path(const struct weft_op *op, struct weft_path *path);

/*
 * Drive a manual node: do what there is to do, else wait for at most
 * @timeout_ns.  Returns the number of operations that ended, or a negative
 * code: -EINVAL for a threaded node, -EDEADLK inside a callback.  Threads: owner.
 */
WEFT_API int weft_poll(struct weft_node *node, uint64_t timeout_ns);

/*
 * For event loops of a manual node: a descriptor to poll for reading, with or
 * without EPOLLET.  Before each sleep call weft_arm, and weft_poll after it: 0
 * means that the descriptor is not ready, and will be after *@timeout_ns (output
 * only; may be NULL) at the latest; -EAGAIN means call weft_poll now.  Threads: owner.
 */
WEFT_API int weft_fd(struct weft_node *node);
WEFT_API int weft_arm(struct weft_node *node, uint64_t *timeout_ns);

/* Running totals of a node since it was opened. */
struct weft_counters {
	size_t size;
	uint64_t frames_sent, frames_received, frames_replayed, frames_refused;
	uint64_t bytes_eager, bytes_pulled;
	uint64_t peers_lost, links_resumed;
	uint64_t pool_bytes, pool_bytes_used, pool_waits;
	uint64_t registered_bytes;
	uint64_t late_dropped;
	uint64_t bytes_viewed;
	uint64_t registrations, registration_hits, registration_evictions;
	uint64_t calls, served;   /* that run now: of this node, and of its peers */
	uint64_t message_bytes;   /* of calls and streams that the library holds now, packed */
	uint64_t unpack_failures; /* messages that were not of their type */
	uint64_t calls_waiting;   /* of peers now, for a limit of their service: of those served */
	uint64_t calls_refused;   /* of peers, because too many ran and waited, or it drains */
	/* By enum weft_status: of this node, and of its peers. */
	uint64_t calls_ended[WEFT_UNAUTHENTICATED + 1], served_ended[WEFT_UNAUTHENTICATED + 1];
	uint64_t calls_repeated;  /* attempts after the first */
	uint64_t served_repeated; /* attempts of peers that got what an earlier one has begun */
	uint64_t kept_bytes;      /* on behalf of peers now, beside pool memory: see WEFT_PEER_BYTES */
	uint64_t records_refused; /* for want of room in their peer's account: they come again */
	uint64_t aborts_ignored;  /* of steps, by peers that take no part in them */
};
WEFT_API int weft_node_counters(struct weft_node *node, struct weft_counters *counters);

/*
 * Print what the node holds, who waits for whom, and what happened last.  From outside, and
 * less of it, when the node's thread does not answer within a second.  Threads: any, callback.
 */
WEFT_API int weft_dump(struct weft_node *node, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
