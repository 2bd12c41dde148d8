/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the public types; for src/api only.
 *
 * A call from any thread makes an operation and hands it to the worker; what
 * it needs from then on belongs to the operation.
 */
#ifndef WF_API_INTERNAL_H
#define WF_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <weft/weft.h>
#include "rpc/call.h"
#include "rpc/service.h"
#include "rpc/stream.h"
#include "tensor/bundle.h"
#include "tensor/ending.h"
#include "transfer/echo.h"
#include "util/reason.h"
#include "util/spare.h"
#include "util/status.h"

struct wf_desk;
struct wf_health;
struct wf_orchestrator;

/* The watchdog of a desk: see watch.c. */
struct wf_watch {
	struct wf_timer timer;
	uint64_t second_ns;       /* when the lines below began to be counted */
	unsigned lines, unsaid;
	_Atomic uint64_t stuck_told_ns; /* when it was last said that the worker is stuck */
};

enum wf_op_kind { WF_OP_PING, WF_OP_SEND, WF_OP_RECV, WF_OP_CALL, WF_OP_WRITE, WF_OP_READ };
#define WF_OP_KINDS (WF_OP_READ + 1)

/*
 * A kind of operation: what one of it does that others do not.  Functions run on the worker
 * that runs the operation, except where it is said; one that is NULL has nothing to do.
 */
struct wf_op_class {
	enum wf_op_kind kind;
	enum wf_recorder_kind recorded; /* in the flight recorder, when one begins */
	size_t bytes;   /* of a struct weft_op of this kind, whose union ends with what it needs */
	size_t zero_to; /* of these, the first ones are zero when it is made */

	/* Begin.  It may end at once. */
	void (*start)(struct weft_op *op);
	/* Begin at other desks than op->desk, too.  Threads: the one that submits it. */
	void (*fan_out)(struct weft_op *op, uint64_t now_ns);
	/* It was to start, but its node has closed: end it.  NULL: it holds nothing yet. */
	void (*refuse)(struct weft_op *op, const struct wf_error *e);
	/* End it early, because of @e; one that has begun. */
	void (*stop)(struct weft_op *op, const struct wf_error *e);
	/* As if it had not begun.  Another code than 0: it is too late for that, and it ends by itself. */
	int (*take_back)(struct weft_op *op);
	/* The node closes: stop what at @desk waits for what will not come any more. */
	void (*starve)(struct weft_op *op, struct wf_desk *desk, const struct wf_error *e);
	/* The desk that it is to run at.  NULL: that of its peer.  It runs at @to from now on. */
	struct wf_desk *(*place)(const struct weft_op *op);
	void (*moved)(struct weft_op *op, struct wf_desk *to);
	/* Its outcome is told: before its callback runs. */
	void (*tell)(struct weft_op *op);
	/* Nobody has it any more: free what it holds.  op->owner NULL: its node has closed.  Threads: any. */
	void (*free)(struct weft_op *op);
	/* Was it submitted?  NULL: always, for it is when it is made. */
	bool (*begun)(const struct weft_op *op);
	/* Its node has closed, and a user may hold it still.  Threads: setup. */
	void (*let_go)(struct weft_op *op);

	/* Bytes of the pool that it waits for; 0: it does not. */
	uint64_t (*missing_bytes)(const struct weft_op *op);
	/* Another number once it has come further. */
	uint64_t (*progress)(struct weft_op *op);
	/* Bytes that its peer may be reading just now, without a word. */
	uint64_t (*offered_bytes)(const struct weft_op *op);
	/* Where its body comes from, if that is known and is not its peer's link. */
	const struct wf_link *(*source)(const struct weft_op *op);
	/* Of a tensor. */
	uint64_t (*step)(const struct weft_op *op);

	/* For people: what it is, added to @text, from what stands since it was submitted. */
	void (*describe)(const struct weft_op *op, char *text);
	/* What it waits for. */
	void (*describe_wait)(const struct weft_op *op, char *text, size_t bytes);
	/* What @who, or whoever it names itself, has not done before the deadline. */
	void (*late)(const struct weft_op *op, const char *who, struct wf_error *e);
};

extern const struct wf_op_class wf_ping_class, wf_send_class, wf_recv_class, wf_rpc_class,
	wf_stream_write_class, wf_stream_read_class;

/*
 * A desk: a worker, the thread that owns it, and what the floors above keep for
 * its links.
 */
struct wf_desk {
	struct weft_node *node;
	struct wf_worker worker;
	struct wf_transfer transfer;
	struct wf_arrivals arrivals;
	struct wf_channels channels;
	struct wf_bundles bundles;
	struct wf_sendings attachments; /* on their way out */
	struct wf_echoes echoes;
	struct wf_streams streams;
	struct wf_calls calls;
	struct wf_serving serving;
	struct wf_watch watch;
	struct wf_task drain_task;
	atomic_bool drains;       /* it takes no more calls */
	struct wf_task stop_task;
	bool stop;                /* worker only */
	pthread_t thread;         /* of the worker, or whoever polled last */
	bool polling;             /* inside a turn of the loop */
	unsigned ended_count;     /* operations that ended in this turn */
};

struct weft_node {
	struct wf_list node;      /* in the list of all nodes, for fork */
	struct wf_directory directory;
	struct wf_services services;
	struct wf_terms terms;    /* of every operation */
	bool manual;
	atomic_bool forked;       /* this process is a child: nothing may be touched */
	bool closing;             /* nothing new is begun */
	atomic_bool draining;     /* its desks have been told to take no more calls */

	pthread_mutex_t log_lock; /* one line at a time */
	pthread_mutex_t lock;     /* the rest */
	pthread_cond_t ended;     /* an operation has */
	atomic_uint waiting;      /* threads that wait for that */
	struct wf_list ops;       /* every operation there is */
	uint64_t op_count;        /* ever made */
	struct wf_spare spare_ops[WF_OP_KINDS];
	struct wf_list peers;
	struct wf_list streams;
	struct wf_list served;    /* struct wf_pb_service */
	struct weft_interceptor *interceptors; /* as many, in the order of asking */
	unsigned interceptor_count;
	void *reflection;         /* the library's own, served if it is asked for; freed by free() */
	struct wf_health *health; /* likewise; under the lock, as is: */
	void (*health_changed)(struct weft_node *node); /* NULL: nobody is told */
	struct wf_orchestrator *orchestrator; /* likewise */
	struct wf_list nears;     /* all memory of weft_alloc_near; under the lock */
	unsigned desk_count;
	struct wf_desk desks[];   /* the first one's door listens; alone, it is the node's worker */
};

struct weft_peer {
	struct wf_list node;
	struct weft_node *owner;
	struct wf_desk *desk;     /* where its operations come in, in their order */
	struct wf_home home;      /* only if its address is given */
	char *moved_address;      /* of who had come by himself, and has another desk now */
	struct wf_desk *_Atomic at; /* whose links it is reached by: another only after wf_peer_move */
	unsigned refs;            /* of users */
	bool keep;                /* handed out by weft_op_peer: stays */
	uint64_t request_id;      /* of the next call that may be made again; 0: there was none; under the lock */
	atomic_uint compressions; /* that it understands; 0: not met yet */
	char address[WF_SOCKET_ADDRESS_BYTES]; /* "": it dialled us */
	char name[WF_GREET_NAME_BYTES];
	struct wf_link *link;     /* worker only; a reference; NULL: not used yet */
};

/* What a send has besides that is an attachment: it begins with its message. */
struct wf_attached {
	struct weft_op *op;
	struct wf_list node;      /* in the list of its message; worker only from the beginning */
	bool dropped;             /* the peer knows that the message is over */
	bool lost;                /* it has ended, and that is what is sent in its place, by a reference */
	struct weft_op *call;     /* it goes with the request of this one, which waits for it; NULL: not */
	struct weft_stream *stream; /* it goes with a message of this one; a reference; NULL: not */
	uint8_t key[WF_ATTACHMENT_KEY_BYTES];
};

struct wf_op_send {
	struct wf_attached *attached; /* NULL: it is no attachment */
	struct wf_sending sending; /* the last: see wf_op_init */
};

struct wf_op_recv {
	struct weft_tensor into;
	struct weft_peer *from;   /* it came from */
	struct wf_ask *asks;      /* one for each desk; NULL: one desk alone gets it */
	struct wf_ask *_Atomic winner; /* of them: it gets the tensor, or ends without */
	struct wf_receiving receiving; /* the last; of an attachment with a reference to the bundle */
};

/* What an answer had besides, as it is shown: pairs of metadata, or bytes. */
struct wf_call_notes {
	void *what[WF_CALL_DETAILS + 1]; /* NULL: there was none */
	size_t counts[WF_CALL_DETAILS + 1];
};

/* A stream, of a caller or of a server. */
struct weft_stream {
	struct wf_list node;      /* in owner->streams */
	struct weft_node *owner;  /* NULL: it has closed */
	struct wf_desk *first;    /* where reads and writes come in, in their order */
	struct wf_desk *_Atomic desk; /* where its call runs: another only before that has begun */
	atomic_uint refs;         /* the caller's, the floor below's, and one for each read and write */
	const ProtobufCMessageDescriptor *reads, *writes;
	struct weft_op *call;     /* a caller's; a reference */
	struct wf_served *served; /* a server's, until it has finished */
	enum weft_compression compression; /* of what is written */
	atomic_bool half_closed;
	atomic_bool wrote;        /* so that the initial metadata is settled */
	struct wf_task close_task;
	struct wf_desk *close_desk; /* where that was said */
	struct wf_list attached;  /* to the next message, so many: */
	unsigned attachments;
	struct wf_list moving;    /* attachments of messages that have been written; worker only */
	struct wf_stream stream;
};

struct wf_op_write {
	struct weft_stream *stream; /* a reference */
	struct wf_list attached;  /* beside its message */
	struct wf_write write;    /* the last */
};

struct wf_op_read {
	struct weft_stream *stream; /* a reference */
	ProtobufCMessage *message;
	struct wf_path path;      /* how long it was, packed */
	bool compressed;          /* it was */
	struct wf_bundle *bundle; /* of what has come beside it; NULL: nothing */
	struct wf_reading reading;
};

/* Of a call that is made again when it fails; see retry.c. */
struct wf_retry {
	struct weft_op *op;
	struct weft_retry policy;
	unsigned failed;          /* attempts that have */
	bool waiting;             /* for the next one: */
	bool quiet;               /* what the last one held is free */
	struct wf_timer timer;
	struct wf_error last;     /* why it failed */
	uint32_t metadata_bytes;  /* of the call's own */
	uint8_t incarnation[WF_INCARNATION_BYTES]; /* of the server, if it may have handled the call */
};

struct wf_op_call {
	bool packed;              /* the request is in it */
	bool running;             /* until it ends */
	size_t request_bytes;
	const char *service_name, *method_name; /* the descriptor's */
	const ProtobufCMessageDescriptor *output;
	ProtobufCClosure closure;
	void *closure_data;
	ProtobufCMessage *reply;  /* from the end to the closure */
	enum weft_compression compression; /* of the request */
	bool reply_compressed;    /* it was */
	ProtobufCService service; /* of weft_call_open: one invocation */
	bool begun;
	bool detached;            /* opened for nobody who waits for it: freed when it is invoked */
	unsigned asked;           /* interceptors, that are to hear of its end */
	uint64_t invoked_ns;      /* when they were */
	bool beginning;           /* they are being asked */
	struct weft_stream *stream; /* NULL: it has none; its floor's reference keeps it */
	uint8_t *metadata;        /* for the server */
	struct wf_list attached;  /* beside the request */
	bool waits;               /* its outcome is known, and it is told when those have ended */
	struct wf_bundle *bundle; /* of what has come beside the reply; NULL: nothing */
	bool is_child;            /* of a call that is served: */
	struct wf_list child_node; /* in its children; under the node's lock */
	struct wf_served *parent; /* while it is there; under the same */
	struct wf_call_notes *_Atomic notes; /* NULL: it had none */
	struct wf_path path;      /* of request and reply */
	struct wf_retry *retry;   /* NULL: it has one attempt; freed by free() */
	struct wf_call call;      /* the last; holds a reference while it needs this memory */
};

#define WF_OP_FLAGS ((unsigned)(WEFT_CHECKSUM | WEFT_STRICT_NO_STAGING | WEFT_STRICT_NO_FALLBACK))

/* Names up to this need no memory of their own: a short key, and two dimensions. */
#define WF_OP_NAMES_BYTES 64

/* Told: its callback runs.  Ended: that has returned too. */
enum wf_op_state { WF_OP_RUNNING, WF_OP_TOLD, WF_OP_ENDED };

struct weft_op {
	_Alignas(int64_t) char names[WF_OP_NAMES_BYTES]; /* key, shape and strides, if they fit here */

	/* From here on all is zero when it is made, up to what its kind sets up by itself. */
	struct wf_list node;      /* in owner->ops */
	struct weft_node *owner;  /* NULL: the node has closed */
	struct wf_desk *_Atomic desk; /* that runs it */
	uint64_t number;          /* for people: the first of a node is 1 */
	const struct wf_op_class *class;
	atomic_uint refs;         /* user's and library's */
	_Atomic enum wf_op_state state;
	enum weft_executed executed;
	/* Small ones side by side; but for the first two worker only, and from copies on until it has ended. */
	atomic_bool submitted;    /* the call that began it is over: its callback may run */
	atomic_bool cancel_asked;
	bool timed;               /* its options name a time limit */
	bool started;
	bool moves;               /* taken back, to be begun at another desk */
	bool finished;            /* the outcome is set: executed, and from error on */
	uint8_t copies;
	uint8_t way;              /* of its path: enum wf_body_way */
	uint8_t sum_kind;         /* enum wf_body_sum */
	void (*done)(struct weft_op *op, void *arg); /* its options': NULL: nobody is told */
	void *arg;
	uint64_t made_ns, deadline_ns;
	struct wf_terms terms;

	/* worker only, until it has ended */
	struct weft_peer *peer;   /* NULL: a receive from any */
	struct wf_task start_task, cancel_task;
	struct wf_desk *cancel_desk; /* where that was said */
	struct wf_timer timer;
	struct wf_notice notice;
	uint64_t progress;        /* as the watchdog last saw it: */
	uint64_t moved_ns;        /* since when it is that */
	uint64_t told_ns;         /* and when that was last said */

	struct wf_reason error;   /* none: it went well */
	const struct wf_names *over; /* of the rail; NULL: nothing moved */
	const struct wf_path *path; /* the rest, in what its kind has; NULL: there is no more to tell */
	uint64_t done_ns;         /* the outcome was known */

	void *memory;             /* names that did not fit */
	union {
		struct wf_echo echo;
		struct wf_op_send send;
		struct wf_op_recv recv;
		struct wf_op_call call;
		struct wf_op_write write;
		struct wf_op_read read;
	};
};

/* node.c */
/* As weft_node_open, with so many workers, whatever drives them. */
int wf_node_open(const struct weft_node_options *given, const struct wf_options *options,
		 unsigned workers, struct weft_node **node);
int wf_node_settings(const struct weft_node_options *given, struct wf_options *o);

/* desk.c */
/* Make @desk ready for services and operations of @node; fini undoes that.  A negative code: no lock. */
int wf_desk_init(struct wf_desk *desk, struct weft_node *node);
void wf_desk_fini(struct wf_desk *desk);

/* Of a call that is served. */
static inline struct wf_desk *wf_desk_of(const struct wf_served *served)
{
	return WF_CONTAINER(served->serving, struct wf_desk, serving);
}

/* Open its worker, which gets the desk's own sink.  Threads: setup. */
int wf_desk_open(struct wf_desk *desk, struct wf_worker_config *config, struct wf_error *e);

/* The thread that drives a desk, unless its node is manual. */
int wf_desk_start(struct wf_desk *desk);
void wf_desk_stop(struct wf_desk *desk);

/*
 * Closing, by a thread that drives all desks of the node from now on.  First each ends what
 * needs nobody else; then offers are taken back, and all live on, for what ends may be another's,
 * until each says that it has none, or for the bound of a shared rail.
 */
void wf_desk_end(struct wf_desk *desk);
bool wf_desk_recall(struct wf_desk *desk);
void wf_desk_live_on(struct wf_desk *desk);

/* Is this a callback of the desk? */
static inline bool wf_desk_inside(const struct wf_desk *desk)
{
	return pthread_equal(desk->thread, pthread_self()) &&
	       (!desk->node->manual || desk->polling);
}

/* Is this a callback of the node? */
static inline bool wf_node_inside(const struct weft_node *node)
{
	for (unsigned i = 0; i < node->desk_count; i++)
		if (wf_desk_inside(&node->desks[i]))
			return true;
	return false;
}

/* What is said of a service's health may be another now.  Not under the lock.  Threads: any, callback. */
static inline void wf_node_health_changed(struct weft_node *node)
{
	void (*changed)(struct weft_node *node);

	pthread_mutex_lock(&node->lock);
	changed = node->health_changed;
	pthread_mutex_unlock(&node->lock);
	if (changed)
		changed(node);
}

/* turn.c: who turns the loop of a desk */
/*
 * Run @task on the worker: at once if this is its thread and it does nothing else, else by
 * the inbox.  @now_ns: the clock has just been looked at.  Threads: any, callback.
 */
void wf_turn_run(struct wf_desk *desk, struct wf_task *task, uint64_t now_ns);

/* One turn of a manual desk's loop, or a wait for it. */
void wf_turn_until(struct wf_desk *desk, uint64_t until_ns);

/* check.c: arguments; codes are recorded */
/* -EINVAL: NULL.  -EOWNERDEAD: this process is a forked child. */
int wf_check_node(const struct weft_node *node);

/*
 * The @known bytes of @options that this library knows, from a struct that may
 * be shorter or longer and begins with its size.  NULL: all zero.
 */
int wf_check_options(const void *options, void *given, size_t known);

/* peer.c */
/* It is in no list any more.  Threads: setup. */
void wf_peer_free(struct weft_peer *peer);

/* The link by which @peer is reached from @desk, made if there is none.  Threads: owner. */
int wf_peer_link(struct weft_peer *peer, struct wf_desk *desk, struct wf_link **link,
		 struct wf_error *e);

/*
 * Whoever is at the other end of @link, which was never greeted, is reached from desk @to:
 * peers and what was begun with them go there.  Threads: owner of @link.
 */
void wf_peer_move(struct wf_desk *from, const struct wf_link *link, struct wf_desk *to);

/*
 * The peer that stands for @link, made if nobody has opened it.  NULL: no memory;
 * not any more once a tensor or call has come over it.
 */
struct weft_peer *wf_peer_of(struct wf_desk *desk, struct wf_link *link);

/* @peer, if any, stands for @link from now on: one that a user opened by its address rather than one we made. */
void wf_peer_stand_for(struct weft_peer *peer, struct wf_link *link);

/* The peer that stands for @link has said its name. */
void wf_peer_met(const struct wf_desk *desk, const struct wf_link *link);

/* ask.c: a receive from any peer, where each desk may get it */
/* An ask for each desk, when all else of the receive is set.  -ENOMEM. */
int wf_ask_open(struct weft_op *op);

/* Begin those of other desks, so that no later receive is there first.  Threads: any, callback. */
void wf_ask_submit(struct weft_op *op, uint64_t now_ns); /* as wf_turn_run */

/* Begin that of the operation's desk, also one of a node that closes.  Threads: owner. */
void wf_ask_start(struct weft_op *op);
void wf_ask_stop(struct weft_op *op, const struct wf_error *e);

/* As the class's. */
void wf_ask_starve(struct weft_op *op, struct wf_desk *desk, const struct wf_error *e);
void wf_ask_describe(const struct weft_op *op, char *text, size_t bytes);
uint64_t wf_ask_progress(struct weft_op *op);

/* recv.c: a receive has ended at @desk.  Who sent the tensor that it got, or NULL. */
struct weft_peer *wf_recv_got(struct wf_receiving *r, struct wf_desk *desk,
			      const struct wf_error *e);

/*
 * A receive that is not submitted; all but its step, and where it meets its other half.
 * Recorded.
 */
int wf_recv_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *into,
		const struct weft_recv_options *options, struct weft_op **op);

/* send.c: likewise */
int wf_send_new(struct weft_node *node, struct weft_peer *peer, const void *key,
		size_t key_bytes, const struct weft_tensor *tensor,
		const struct weft_send_options *options, struct weft_op **op);

/* Begin one that is an attachment: its message is posted over @link. */
void wf_send_start_attached(struct weft_op *op, struct wf_desk *desk, struct wf_link *link);

/* tensor.c: what the arguments of sends and receives have in common; codes are recorded */
int wf_tensor_check(const struct weft_tensor *t, uint64_t *bytes);
int wf_tensor_check_key(const void *key, size_t key_bytes);

/* Where the @bytes of @t lie, if no CPU and no rail reaches them there. */
int wf_tensor_find_device(const struct weft_op *op, const struct weft_tensor *t, uint64_t bytes,
			  void *stream, struct wf_kind_body **device);

/* Key, shape and behind it the strides belong to the operation from now on.  @t may be NULL. */
int wf_tensor_copy_names(struct weft_op *op, const void *key, size_t key_bytes,
			 const struct weft_tensor *t, const int64_t **shape, const void **key_copy);

/* attachment.c: lists of sends that go beside a message */
/* It is to be posted: from now on they can end.  Threads: owner, as the next ones. */
void wf_attachments_await(struct wf_list *attached, struct wf_desk *desk);

/* For the watchdog: how far those on their way are, and how much of them is offered.  Threads: owner. */
uint64_t wf_attachments_sent_progress(const struct wf_list *attached);
uint64_t wf_attachments_offered_bytes(const struct wf_list *attached);

/* It is posted, as what @key says: so are they. */
void wf_attachments_begin(struct wf_list *attached, struct wf_desk *desk, struct wf_link *link,
			  uint64_t call, struct wf_attachment_key key);

/* It is over, and its peer knows: they end, those that have not begun at @desk.  @e NULL: well. */
void wf_attachments_stop(struct wf_list *attached, struct wf_desk *desk, const struct wf_error *e);

/* It failed after it was posted, and may have come all the same: whoever has it is told. */
void wf_attachments_lose(struct wf_list *attached, struct wf_desk *desk, const struct wf_error *e);

/* It was taken back: as if they had not begun. */
void wf_attachments_take_back(struct wf_list *attached);

/* It was never posted, and will not be.  Threads: any, callback. */
void wf_attachments_forget(struct wf_list *attached);

/* End one that can, early; one of them has ended; what went in place of one has left, or is not needed. */
void wf_attachment_stop(struct weft_op *op, const struct wf_error *e);
void wf_attachment_ended(struct weft_op *op, const struct wf_error *e);
void wf_attachment_over(struct weft_op *op);

/* What the rpc floor asks of a desk: see struct wf_beside. */
int wf_attachments_expect(void *ctx, struct wf_link *link, uint64_t call, bool reply,
			  uint64_t number, uint16_t count, void (*whole)(void *owner),
			  void *owner, void **bundle);
void wf_attachments_drop(void *bundle);
uint64_t wf_attachments_progress(const void *bundle);

/* @op, which had @bundle, maybe NULL, goes.  Threads: any, callback. */
void wf_attachments_free(struct weft_op *op, struct wf_bundle *bundle);

/* memory.c: chunks of whichever desk's pool */
int wf_memory_take(struct weft_node *node, struct wf_desk *first, size_t bytes, void **chunk);
int wf_memory_share(struct weft_node *node, const void *at, size_t bytes, void **chunk);
/* -EINVAL: it is of no pool of this node. */
int wf_memory_give(struct weft_node *node, void *chunk);

/* near.c: memory near to what uses it */
/* What options say of it is sound.  Codes as wf_rules_open: recorded. */
int wf_near_check(const struct wf_options *options);

/* Every desk has closed, and no copy is under way: what there is still of such memory is given back. */
void wf_near_fini(struct weft_node *node);

/* Memory that is in no pool has one user more, or one less.  -EINVAL: it is no such memory. */
int wf_near_share(struct weft_node *node, const void *memory);
int wf_near_give(struct weft_node *node, const void *memory);

/* step.c: a peer of @desk has aborted @step, and the other desks hear of it.  -ENOMEM. */
int wf_step_relay(void *desk, const struct wf_step *step);

/* server_call.c: a call that is served */
/* Calls that were begun for one that is served: it is given up, and so are they; or it goes, and they stand alone. */
void wf_server_call_given_up(struct wf_served *served);
void wf_server_call_gone(struct wf_served *served);

/* Its reply is posted: what goes beside that begins. */
void wf_server_call_answered(struct wf_served *served);

/* notes.c: what the answer of a call has besides */
int wf_notes_add(struct wf_call *call, enum wf_call_note what, const uint8_t *bytes, uint32_t count);
void wf_notes_forget(struct weft_op *op);

/* rpc.c: an operation for a call, which has taken what @options say.  Recorded. */
int wf_rpc_new(struct weft_stub *stub, const struct weft_call_options *options,
	       struct weft_op **op);

/* serve.c */
/* Serve @service, @options as this version knows them.  -EEXIST, -EINVAL, -ENOENT, -ENOMEM: recorded. */
int wf_serve_add(struct weft_node *node, ProtobufCService *service,
		 const struct weft_serve_options *options);

/* It is served no more: the node has closed. */
void wf_serve_forget(struct wf_pb_service *service);

/* drain.c */
/* @link has come up, and may have to be told that this node drains; has said so itself. */
void wf_drain_up(struct wf_desk *desk, struct wf_link *link);
int wf_drain_record(struct wf_link *link, const struct wf_record *record); /* -EBADMSG */

/* -ESHUTDOWN: the peer takes no more calls. */
int wf_drain_check(const struct wf_link *link, struct wf_error *e);

/* A call that was served at @desk is no more. */
void wf_drain_gone(struct wf_desk *desk);

/* health.c */
/* Accepts NULL.  Threads: setup. */
void wf_health_close(struct wf_health *health);

/* retry.c */
/* @op, a call, is made again as @given says.  -EINVAL, -ENOMEM: recorded. */
int wf_retry_open(struct weft_op *op, const struct weft_retry *given);

/*
 * An attempt begins; it has failed with @e: is there to be another?; what it held is free; what
 * comes next is ended early by @e.  Each harmless for a call without.  Threads: owner.
 */
void wf_retry_begin(struct weft_op *op);
bool wf_retry_again(struct weft_op *op, const struct wf_error *e, enum weft_executed executed);
void wf_retry_quiet(struct weft_op *op);
void wf_retry_stop(struct weft_op *op, const struct wf_error *e);

/* Is it between two attempts?  And, for people, before which. */
bool wf_retry_waits(const struct weft_op *op);
void wf_retry_describe(const struct weft_op *op, char *text, size_t bytes);

/* intercept.c */
/* Copy those that are @given; freed with the node, also after a failure.  -EINVAL, -ENOMEM: recorded. */
int wf_intercept_open(struct weft_node *node, const struct weft_interceptor *const *given);

/* A call of this node begins, its service and method known: the error of @op is set if it is refused. */
void wf_intercept_begin(struct weft_op *op);
void wf_intercept_ended(struct weft_op *op);

/* As the rpc floor wants them. */
enum weft_status wf_intercept_admit(struct wf_served *served, const char **message);
void wf_intercept_served(struct wf_served *served, enum weft_status status);

/* compression.c */
/* -EINVAL: recorded. */
int wf_compression_check(enum weft_compression compression);

/* metadata.c */
/* A block of @pairs, allocated; NULL: there are none.  -EINVAL, -EMSGSIZE, -ENOMEM: recorded. */
int wf_metadata_pack(const struct weft_metadata *pairs, size_t count, uint8_t **block,
		     uint32_t *bytes);
/*
 * The block of @op, a call, is the first @own_bytes that it has, and @more_bytes that are to be
 * filled at *@more.  -EMSGSIZE, -ENOMEM: recorded, and it is as it was.
 */
int wf_metadata_grow(struct weft_op *op, uint32_t own_bytes, uint32_t more_bytes, uint8_t **more);
/* The pairs of a block that was checked, allocated in one piece.  NULL: none, or no memory. */
struct weft_metadata *wf_metadata_unpack(const uint8_t *block, size_t bytes, size_t *count);

/* stream.c */
/* What the rpc floor asks of a service whose methods have streams. */
struct wf_stream *wf_stream_serve(struct wf_service *service, int method,
				  struct wf_served *served);
void wf_stream_handle(struct wf_service *service, int method, struct wf_served *served);

void wf_stream_put(struct weft_stream *stream);

/* Has anything been written to it? */
bool wf_stream_wrote(const struct wf_stream *stream);

/* The call that is served is given up, or is over: so are attachments under way, or not begun. */
void wf_stream_given_up(struct wf_stream *stream, struct wf_desk *desk);
void wf_stream_gone(struct wf_stream *stream, struct wf_desk *desk);

/* Its node closes: users may still hold it. */
void wf_stream_let_go(struct weft_stream *stream);

/* op.c */
/* Submit @fresh for a caller who wants it in *@op, or who does not wait, @op NULL.  Threads: any, callback. */
void wf_op_launch(struct weft_op *fresh, uint64_t now_ns, struct weft_op **op);

/* For the node: what it keeps of and for operations, of @classes, one for each kind. */
void wf_op_init(struct weft_node *node, const struct wf_options *options,
		const struct wf_op_class *const classes[WF_OP_KINDS]);
void wf_op_fini(struct weft_node *node);
/*
 * The options of an operation inside others, where they need not say anything: then NULL.
 * -EINVAL: they do, and not their size.
 */
int wf_op_nested(const struct weft_op_options *given, const struct weft_op_options **options);

/* An operation with @peer; NULL: with any of @node. */
int wf_op_new(struct weft_node *node, struct weft_peer *peer, const struct wf_op_class *class,
	      const struct weft_op_options *options, struct weft_op **op);
/* One that will not be submitted: nobody else knows it. */
void wf_op_drop(struct weft_op *op);
void wf_op_submit(struct weft_op *op, uint64_t now_ns); /* as wf_turn_run */
void wf_op_begin(struct weft_op *op); /* at its desk: from now on it can end */
void wf_op_stop(struct weft_op *op, const struct wf_error *e); /* harmless unless it runs */
/* Begin it again from the start, when nothing of it runs.  Threads: owner. */
void wf_op_again(struct weft_op *op);
void wf_op_finish(struct weft_op *op, const struct wf_error *e, enum weft_executed executed);
/* With the outcome that is set already. */
void wf_op_finish_kept(struct weft_op *op);
void wf_op_put(struct weft_op *op);
/*
 * Take @op back, unless it is about to end: as if it had not begun, before its peer was met.
 * Then, if it was, begin it again at desk @to.  Threads: owner.
 */
void wf_op_take_back(struct weft_op *op);
void wf_op_move(struct weft_op *op, struct wf_desk *to);

/* The node closes: what waits for memory of the pool would wait for ever, for nobody gives any back. */
void wf_op_starve(struct wf_desk *desk);
/* Borrows @path until @op is freed. */
void wf_op_path_set(struct weft_op *op, const struct wf_path *path, unsigned copies);

/* describe.c: operations in words */
#define WF_DESCRIBE_BYTES 1000
/* Add to @text; what does not fit is left out. */
void wf_describe_add(char text[WF_DESCRIBE_BYTES], const char *format, ...) WF_PRINTF(2, 3);
void wf_describe_channel(uint64_t step, const void *key, size_t key_bytes,
			 char text[WF_DESCRIBE_BYTES]);
void wf_describe_peer(const struct weft_op *op, char text[WF_DESCRIBE_BYTES]);
void wf_describe_op(const struct weft_op *op, char text[WF_DESCRIBE_BYTES]);
void wf_describe_wait(const struct weft_op *op, char text[WF_DESCRIBE_BYTES]);
uint64_t wf_describe_progress(struct weft_op *op);
uint64_t wf_describe_offered_bytes(const struct weft_op *op);

/* watch.c: who waits for whom, in the log */
void wf_watch_begin(struct weft_op *op);
void wf_watch_late(struct weft_op *op);
void wf_watch_dying(struct wf_desk *desk, const struct wf_link *link, const struct wf_error *e);
void wf_watch_worker(struct wf_desk *desk);
#define WF_WATCH_WHERE_BYTES 200
void wf_watch_where(const struct wf_desk *desk, char text[WF_WATCH_WHERE_BYTES]);

/* last.c: the sentence of this thread's last failure */
int wf_last_set(int code, const char *format, ...) WF_PRINTF(2, 3);
int wf_last_copy(const struct wf_error *e);
int wf_last_null(const char *what);

/* An argument that a function can't do without: 0, or -EINVAL and a sentence that names it. */
#define WF_NEED(argument) ((argument) ? 0 : wf_last_null(#argument))

#endif
