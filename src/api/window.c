/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "core/rma.h"
#include "core/check.h"
#include "core/node.h"
#include "core/node_window.h"
#include "core/note.h"
#include "core/op.h"
#include "core/publish.h"
#include "core/tensor.h"
#include "util/clock.h"

static int check(const struct weft_window *window)
{
	return WF_NEED(window) ? -EINVAL : wf_check_node(window->owner);
}

static int check_outside(const struct weft_window *window)
{
	int err = check(window);

	if (!err && wf_node_inside(window->owner))
		err = wf_last_set(-EDEADLK, "inside a callback nobody waits");
	return err;
}

static int check_remote(const struct weft_remote *remote)
{
	return WF_NEED(remote) ? -EINVAL : wf_check_node(remote->peer->owner);
}

int weft_window_open(struct weft_node *node, void *memory, size_t bytes, unsigned rights,
		     struct weft_window **window)
{
	struct wf_kind_body *device;
	int err = wf_check_node(node);
	struct wf_error e;

	if (err || WF_NEED(memory) || WF_NEED(window))
		return err ? err : -EINVAL;
	if (!bytes || bytes > UINTPTR_MAX - (uintptr_t)memory)
		return wf_last_set(-EINVAL, "a window of %zu bytes", bytes);
	if (!rights || rights & ~(unsigned)(WEFT_WINDOW_READ | WEFT_WINDOW_WRITE))
		return wf_last_set(-EINVAL, "rights %#x are not for a window", rights);
	err = wf_kind_discover(memory, bytes, node->workers[0].engine.options.cuda, &device, &e);
	return err ? wf_last_copy(&e)
		   : wf_node_window_open(node, memory, bytes, rights, device, window);
}

int weft_window_describe(const struct weft_window *window, void *descriptor, size_t *bytes)
{
	int err = check(window);

	if (err || WF_NEED(descriptor) || WF_NEED(bytes))
		return err ? err : -EINVAL;
	if (*bytes < WF_ACCESS_DESCRIPTOR_BYTES)
		return wf_last_set(-ENOSPC, "the descriptor has %d bytes, and there is room for %zu",
				   WF_ACCESS_DESCRIPTOR_BYTES, *bytes);
	wf_node_window_describe(window, descriptor);
	*bytes = WF_ACCESS_DESCRIPTOR_BYTES;
	return 0;
}

int weft_window_publish(struct weft_window *window, const void *key, size_t key_bytes)
{
	int err = check_outside(window);

	if (!err)
		err = wf_tensor_check_key(key, key_bytes);
	return err ? err : wf_publish_add(window, key, key_bytes);
}

int weft_window_close(struct weft_window *window)
{
	int err;

	if (!window)
		return 0;
	err = check_outside(window);
	return err ? err : wf_node_window_close(window);
}

uint64_t weft_window_puts(const struct weft_window *window)
{
	return WF_NEED(window) ? 0 : atomic_load(&window->puts);
}

int weft_window_wait(struct weft_window *window, uint64_t count, uint64_t timeout_ns)
{
	int err = check_outside(window);

	return err ? err
		   : wf_node_window_wait(window, count,
					 wf_clock_after(wf_clock_now(), timeout_ns));
}

int weft_window_next(struct weft_window *window, const struct weft_op_options *options,
		     struct weft_op **op)
{
	int err = check(window);

	return err ? err : wf_note_next(window, options, op);
}

const struct weft_note *weft_op_note(const struct weft_op *op)
{
	if (WF_NEED(op) || op->class->kind != WF_OP_NOTE || wf_op_status(op) != WEFT_OK)
		return NULL;
	return &op->note.note;
}

int weft_window_import(struct weft_peer *peer, const void *descriptor, size_t bytes,
		       struct weft_remote **remote)
{
	int err = WF_NEED(peer) ? -EINVAL : wf_check_node(peer->owner);

	if (err || WF_NEED(descriptor) || WF_NEED(remote))
		return err ? err : -EINVAL;
	return wf_rma_import(peer, descriptor, bytes, remote);
}

int weft_window_find(struct weft_peer *peer, const void *key, size_t key_bytes,
		     const struct weft_op_options *options, struct weft_op **op)
{
	int err;

	if (WF_NEED(peer) || WF_NEED(op))
		return -EINVAL;
	err = wf_check_node(peer->owner);
	if (!err)
		err = wf_tensor_check_key(key, key_bytes);
	return err ? err : wf_publish_find(peer, key, key_bytes, options, op);
}

int weft_op_remote(const struct weft_op *op, struct weft_remote **remote)
{
	int err;

	if (WF_NEED(op) || WF_NEED(remote))
		return -EINVAL;
	if (!op->owner)
		return wf_last_set(-ECANCELED, "the operation's node has closed");
	err = wf_check_node(op->owner);
	if (!err && !wf_op_ended(op))
		err = wf_last_set(-EINVAL, "the operation has not ended");
	return err ? err : wf_publish_found(op, remote);
}

void weft_remote_close(struct weft_remote *remote)
{
	if (remote && !check_remote(remote))
		wf_rma_close(remote);
}

uint64_t weft_remote_bytes(const struct weft_remote *remote)
{
	return WF_NEED(remote) ? 0 : remote->remote.bytes;
}

unsigned weft_remote_rights(const struct weft_remote *remote)
{
	return WF_NEED(remote) ? 0 : remote->rights;
}

int weft_get(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
	     const struct weft_access_options *options, struct weft_op **op)
{
	int err = check_remote(remote);

	if (err || (count && WF_NEED(blocks)))
		return err ? err : -EINVAL;
	return wf_rma_get(remote, blocks, count, options, op);
}

int weft_put(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
	     const struct weft_access_options *options, struct weft_op **op)
{
	int err = check_remote(remote);

	if (err || (count && WF_NEED(blocks)))
		return err ? err : -EINVAL;
	return wf_rma_put(remote, blocks, count, options, op);
}
