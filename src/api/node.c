/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "core/await.h"
#include "core/check.h"
#include "core/dump.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/turn.h"
#include "util/clock.h"

int weft_node_open(const struct weft_node_options *options, struct weft_node **node)
{
	struct weft_node_options given;
	struct wf_options o;
	int err;

	if (WF_NEED(node))
		return -EINVAL;
	err = wf_check_options(options, &given, sizeof(given));
	if (!err)
		err = wf_node_settings(&given, &o);
	if (err)
		return err;
	if (given.mode == WEFT_MANUAL && given.workers > 1)
		return wf_last_set(-EINVAL, "a manual node has one worker: the caller's thread");
	return wf_node_open(&given, &o, given.mode == WEFT_MANUAL ? 1 : (unsigned)o.workers, node);
}

int weft_node_close(struct weft_node *node)
{
	if (!node)
		return 0;
	if (wf_check_node(node))
		return -EOWNERDEAD;
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "a node can't be closed inside its own callback");
	wf_node_close(node);
	return 0;
}

const char *weft_node_address(const struct weft_node *node)
{
	return WF_NEED(node) ? "" : node->workers[0].engine.address;
}

/* Peers. */

int weft_peer_open(struct weft_node *node, const char *address, struct weft_peer **peer)
{
	char host[WF_SOCKET_ADDRESS_BYTES];
	struct wf_error e;
	uint16_t port;
	int err = wf_check_node(node);

	if (err || WF_NEED(address) || WF_NEED(peer))
		return err ? err : -EINVAL;
	if (strlen(address) >= WF_SOCKET_ADDRESS_BYTES)
		return wf_last_set(-EINVAL, "an address of more than %d bytes",
				   WF_SOCKET_ADDRESS_BYTES - 1);
	if (wf_socket_split(address, host, sizeof(host), &port, &e))
		return wf_last_copy(&e);
	if (!port)
		return wf_last_set(-EINVAL, "\"%s\": port 0 is no address of a peer", address);
	return wf_peer_open(node, address, peer);
}

void weft_peer_close(struct weft_peer *peer)
{
	if (peer && !wf_check_node(peer->owner))
		wf_peer_close(peer);
}

int weft_peer_on_change(struct weft_peer *peer,
			void (*changed)(struct weft_peer *peer, enum weft_peer_state state,
					const char *why, void *arg),
			void *arg)
{
	const struct wf_peer_change_listener listener = { changed, arg };

	return WF_NEED(peer) ? -EINVAL : wf_peer_change_listen(peer, listener);
}

const char *weft_peer_name(const struct weft_peer *peer)
{
	if (WF_NEED(peer))
		return "";
	/* In a forked child the lock may be held for ever. */
	return wf_check_node(peer->owner) ? peer->address : wf_peer_name(peer);
}

int weft_ping(struct weft_peer *peer, const struct weft_op_options *options, struct weft_op **op)
{
	struct weft_op *fresh;
	int err = WF_NEED(peer) ? -EINVAL
				: wf_op_new(peer->owner, peer, &wf_ping_class, options, &fresh);

	if (err)
		return err;
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}

/* Operations. */

/*
 * Check that the caller may wait for @op, which *@running says; -EDEADLK: @op runs, and the caller
 * is a callback of its node.
 */
static int check_wait(const struct weft_op *op, bool *running)
{
	int err = op->owner ? wf_check_node(op->owner) : 0;

	*running = atomic_load(&op->state) != WF_OP_ENDED;
	if (err || !*running)
		return err;
	if (!op->owner)
		return wf_last_set(-EINVAL, "the operation's node has closed");
	if (wf_node_inside(op->owner))
		return wf_last_set(-EDEADLK, "waiting inside a callback would wait for itself");
	return 0;
}

static int wait_until(struct weft_op *op, uint64_t until_ns)
{
	bool running;
	int err = check_wait(op, &running);

	return err || !running ? err : wf_await(op, until_ns);
}

int weft_wait(struct weft_op *op, uint64_t timeout_ns)
{
	bool running;
	int err;

	if (WF_NEED(op))
		return -EINVAL;
	err = check_wait(op, &running);
	/* The clock is not read for an operation that has ended, as most of many have. */
	return err || !running ? err : wf_await(op, wf_clock_after(wf_clock_now(), timeout_ns));
}

int weft_wait_any(struct weft_op *const *ops, size_t count, uint64_t timeout_ns, size_t *index)
{
	const struct weft_op *first = NULL;
	bool running = true;
	int err = 0;

	if (WF_NEED(ops) || WF_NEED(index))
		return -EINVAL;
	for (size_t i = 0; i < count && !err; i++) {
		if (!ops[i])
			continue;
		err = check_wait(ops[i], &running);
		if (!err && !running) {
			*index = i;
			return 0;
		}
		if (!err && first && ops[i]->owner != first->owner)
			err = wf_last_set(-EINVAL, "operation %zu is of another node", i);
		first = ops[i];
	}
	if (!err && !first)
		err = wf_last_set(-EINVAL, "there is no operation to wait for");
	return err ? err : wf_await_any(ops, count, wf_clock_after(wf_clock_now(), timeout_ns), index);
}

int weft_wait_all(struct weft_op *const *ops, size_t count, uint64_t timeout_ns)
{
	uint64_t until_ns = wf_clock_after(wf_clock_now(), timeout_ns);
	int err = 0;

	if (WF_NEED(ops))
		return -EINVAL;
	for (size_t i = 0; i < count && !err; i++)
		err = ops[i] ? wait_until(ops[i], until_ns) : 0;
	return err;
}

int weft_finish(struct weft_op *op, enum weft_status *status)
{
	int err;

	if (WF_NEED(op) || WF_NEED(status))
		return -EINVAL;
	err = wait_until(op, UINT64_MAX);
	if (err)
		return err;
	*status = wf_op_status(op);
	if (*status != WEFT_OK)
		wf_last_set(op->outcome.error.code, "%s", wf_op_message(op));
	weft_op_free(op);
	return 0;
}

void *weft_op_arg(const struct weft_op *op)
{
	return WF_NEED(op) ? NULL : op->told.arg;
}

int weft_op_ended(const struct weft_op *op)
{
	return WF_NEED(op) ? -EINVAL : wf_op_ended(op);
}

static bool has_outcome(const struct weft_op *op)
{
	return wf_op_ended(op) || wf_rpc_replies(op);
}

enum weft_status weft_op_status(const struct weft_op *op)
{
	if (WF_NEED(op))
		return WEFT_INVALID_ARGUMENT;
	return has_outcome(op) ? wf_status_of(op->outcome.error.code) : WEFT_UNKNOWN;
}

const char *weft_op_message(const struct weft_op *op)
{
	if (WF_NEED(op))
		return weft_error();
	return has_outcome(op) ? wf_reason_text(&op->outcome.error) : "";
}

enum weft_executed weft_op_executed(const struct weft_op *op)
{
	if (WF_NEED(op))
		return WEFT_EXECUTED_NO;
	return has_outcome(op) ? op->outcome.executed : WEFT_EXECUTED_MAYBE;
}

void weft_cancel(struct weft_op *op)
{
	if (!WF_NEED(op) && op->owner && !wf_check_node(op->owner))
		wf_op_cancel(op);
}

void weft_op_free(struct weft_op *op)
{
	int err = 0;

	if (!op)
		return;
	/* The node of an operation that names a queue may close meanwhile; the queue stays. */
	if (wf_op_queue(op))
		err = wf_completion_queue_check(wf_op_queue(op));
	else if (op->owner)
		err = wf_check_node(op->owner);
	if (!err)
		wf_op_free(op);
}

int weft_op_path(const struct weft_op *op, struct weft_path *path)
{
	int err;

	if (WF_NEED(op) || WF_NEED_SIZED(path))
		return -EINVAL;
	err = op->owner ? wf_check_node(op->owner) : 0;
	if (err)
		return err;
	if (!wf_op_ended(op))
		return wf_last_set(-EAGAIN, "the operation has not ended yet");
	wf_op_path(op, path);
	return 0;
}

/* Driving a manual node. */

static int check_manual(struct weft_node *node, const char *what)
{
	struct wf_worker *worker;
	int err = wf_check_node(node);

	if (err)
		return err;
	worker = &node->workers[0];
	if (!node->manual)
		return wf_last_set(-EINVAL, "%s is for manual nodes", what);
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "%s inside a callback", what);
	/* Written only if it changes, as other threads may be reading it. */
	if (!pthread_equal(worker->thread, pthread_self()))
		worker->thread = pthread_self();
	return 0;
}

int weft_poll(struct weft_node *node, uint64_t timeout_ns)
{
	int err = check_manual(node, "weft_poll");
	uint64_t until_ns;

	if (err)
		return err;
	node->workers[0].ended_count = 0;
	/* A poll that does not wait needs no time but that of its turn. */
	until_ns = timeout_ns ? wf_clock_after(wf_clock_now(), timeout_ns) : 0;
	wf_turn_until(&node->workers[0], until_ns);
	err = wf_check_node(node);
	return err ? err : (int)node->workers[0].ended_count;
}

int weft_fd(struct weft_node *node)
{
	int err = check_manual(node, "weft_fd");

	return err ? err : wf_loop_fd(&node->workers[0].engine.loop);
}

int weft_arm(struct weft_node *node, uint64_t *timeout_ns)
{
	struct wf_worker *worker;
	uint64_t until, now;
	int err = check_manual(node, "weft_arm");

	if (err)
		return err;
	worker = &node->workers[0];
	wf_turn_enter(worker);
	wf_loop_tick(&worker->engine.loop);
	err = wf_loop_arm_fd(&worker->engine.loop, &until);
	wf_turn_leave(worker);
	if (err == -EAGAIN)
		return wf_last_set(err, "there is work: call weft_poll");
	if (err)
		return wf_last_set(err, "the timer of a node can't be set: %s", wf_error_name(err));
	now = wf_clock_now();
	if (timeout_ns)
		*timeout_ns = until > now ? until - now : 0;
	return 0;
}

/* Counters and dumps. */

int weft_node_counters(struct weft_node *node, struct weft_counters *counters)
{
	int err = wf_check_node(node);

	if (err || WF_NEED_SIZED(counters))
		return err ? err : -EINVAL;
	wf_node_counters(node, counters);
	return 0;
}

int weft_dump(struct weft_node *node, FILE *out)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(out))
		return err ? err : -EINVAL;
	return wf_dump(node, out);
}
