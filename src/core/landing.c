/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/landing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/node_window.h"
#include "core/op.h"
#include "core/publish.h"
#include "core/serve.h"
#include "core/streaming.h"
#include "rpc/landings.pb-c.h"
#include "rpc/reply.h"
#include "tensor/shape.h"
#include "wire/landed.h"

#define REQUEST_BYTES_MAX 256 /* a request is the name of a window, which is shorter */

/* A peer that slots are announced to.  Owned by its worker. */
struct sender {
	struct wf_share share;        /* once landing is set, until over */
	struct weft_landing *landing; /* a reference; NULL: the request has not been read */
	struct wf_worker *worker;
	struct weft_stream *stream;   /* until over */
	struct wf_loop_task task;
	bool woken;                   /* under the lock of the shares: task is on its way */
	bool greeted;                 /* something was written, so that the peer knows it is heard */
	bool writing, over;
};

void wf_landing_get(struct weft_landing *landing)
{
	atomic_fetch_add(&landing->refs, 1);
}

void wf_landing_put(struct weft_landing *landing)
{
	if (atomic_fetch_sub(&landing->refs, 1) != 1)
		return;
	wf_shares_fini(&landing->shares);
	free(landing);
}

/* Senders */

static struct sender *sender_of(struct wf_share *share)
{
	return WF_CONTAINER(share, struct sender, share);
}

static bool is_woken(struct sender *s)
{
	bool woken;

	if (!s->landing)
		return false;
	pthread_mutex_lock(&s->landing->shares.lock);
	woken = s->woken;
	pthread_mutex_unlock(&s->landing->shares.lock);
	return woken;
}

/* Free @s, if it is over and nothing of it is under way. */
static void settle(struct sender *s)
{
	if (!s->over || s->writing || is_woken(s))
		return;
	if (s->landing)
		wf_landing_put(s->landing);
	free(s);
}

static void end(struct sender *s, enum weft_status status, const char *text)
{
	if (!s->over) {
		s->over = true;
		if (s->landing)
			wf_shares_leave(&s->landing->shares, &s->share);
		wf_reply_submit(s->stream->served, status, text, NULL);
	}
	settle(s);
}

static void update(struct sender *s);

static void written(struct weft_op *op, void *arg)
{
	struct sender *s = arg;
	bool good = wf_op_status(op) == WEFT_OK;

	wf_op_free(op);
	s->writing = false;
	if (good && !s->over)
		update(s);
	else
		end(s, WEFT_CANCELLED, "the sender has gone");
}

/* Returns why @s is to end; NULL: it is not. */
static const char *why_over(const struct sender *s, enum weft_status *status)
{
	bool closed;

	pthread_mutex_lock(&s->landing->shares.lock);
	closed = s->landing->closed;
	pthread_mutex_unlock(&s->landing->shares.lock);
	*status = closed ? WEFT_NOT_FOUND : WEFT_UNAVAILABLE;
	if (closed)
		return "the landing is closed";
	return atomic_load(&s->worker->node->draining) ? "the node is draining" : NULL;
}

/* Write what there is to tell, if no write runs. */
static void update(struct sender *s)
{
	struct weft_op_options options = { .size = sizeof(options), .done = written, .arg = s };
	Weft__Landings__Slots slots = WEFT__LANDINGS__SLOTS__INIT;
	struct wf_shares_told told;
	enum weft_status status;
	const char *why = why_over(s, &status);
	struct weft_op *op;

	if (why) {
		end(s, status, why);
		return;
	}
	if (s->writing)
		return;
	wf_shares_tell(&s->landing->shares, &s->share, &told);
	if (!told.count && !told.withdrawn_count && s->greeted)
		return;
	s->greeted = true;
	slots.slot_bytes = s->landing->slot_bytes;
	slots.n_numbers = slots.n_serials = told.count;
	slots.numbers = told.numbers;
	slots.serials = told.serials;
	slots.n_withdrawn = told.withdrawn_count;
	slots.withdrawn = told.withdrawn;
	s->writing = !wf_streaming_write(s->stream, &slots.base, &options, &op);
	if (!s->writing)
		end(s, WEFT_RESOURCE_EXHAUSTED, wf_last_text());
}

static void look(struct wf_loop_task *task)
{
	struct sender *s = WF_CONTAINER(task, struct sender, task);

	pthread_mutex_lock(&s->landing->shares.lock);
	s->woken = false;
	pthread_mutex_unlock(&s->landing->shares.lock);
	if (s->over)
		settle(s);
	else
		update(s);
}

static void wake(struct wf_share *share)
{
	struct sender *s = sender_of(share);

	if (s->woken)
		return;
	s->woken = true;
	wf_loop_submit(&s->worker->engine.loop, &s->task);
}

static void gone(void *arg)
{
	end(arg, WEFT_CANCELLED, "the sender has gone");
}

/* The link of a put, or of a sender, at a worker. */
struct place {
	const struct wf_worker *worker;
	struct wf_link *link;
};

/* Does @share belong to the peer at @ctx?  Links are looked at by their own worker alone. */
static bool is_of(const struct wf_share *share, const void *ctx)
{
	const struct sender *s = WF_CONTAINER(share, const struct sender, share);
	const struct place *place = ctx;

	return s->worker == place->worker &&
	       wf_link_real(s->stream->served->link) == wf_link_real(place->link);
}

/* Returns the landing that @request names, with a reference; NULL: there is none. */
static struct weft_landing *find(struct weft_node *node, const Weft__Landings__Landing *request)
{
	struct weft_landing *found = NULL;

	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->landings.all) {
		struct weft_landing *landing = WF_CONTAINER(at, struct weft_landing, node);
		const struct wf_access_name *name = &landing->window->window.name;

		if (name->id == request->id && request->token.len == sizeof(name->token) &&
		    !memcmp(name->token, request->token.data, sizeof(name->token)))
			found = landing;
	}
	if (found)
		wf_landing_get(found);
	pthread_mutex_unlock(&node->lock);
	return found;
}

static void subscribe(struct sender *s, const Weft__Landings__Landing *request)
{
	const struct place place = { s->worker, s->stream->served->link };
	struct weft_landing *landing = find(s->worker->node, request);
	int err;

	if (!landing) {
		end(s, WEFT_NOT_FOUND, "there is no such landing");
		return;
	}
	wf_server_call_charge(s->stream->served, sizeof(*s));
	err = wf_shares_join(&landing->shares, &s->share, is_of, &place);
	if (err) {
		wf_landing_put(landing);
		end(s, WEFT_RESOURCE_EXHAUSTED,
		    err == -EEXIST ? "this peer pushes into the landing by too many weft_remote"
				   : "the landing has too many senders");
		return;
	}
	s->landing = landing;
	wf_server_call_on_cancel(s->stream->served, gone, s);
	update(s);
}

static void asked(struct weft_op *op, void *arg)
{
	const Weft__Landings__Landing *request = (const void *)op->read.message;
	struct sender *s = arg;

	if (request)
		subscribe(s, request);
	else if (wf_op_status(op) == WEFT_OK)
		end(s, WEFT_INVALID_ARGUMENT, "there is no request");
	else
		end(s, wf_op_status(op), wf_op_message(op));
	wf_op_free(op);
}

static void handle_subscribe(struct weft_stream *stream, void *arg)
{
	struct sender *s = calloc(1, sizeof(*s));
	struct weft_op_options options = { .size = sizeof(options), .done = asked, .arg = s };
	struct weft_op *op;

	(void)arg;
	if (!s) {
		wf_reply_submit(stream->served, WEFT_RESOURCE_EXHAUSTED, "no memory for a sender",
				NULL);
		return;
	}
	s->worker = wf_worker_of(stream->served);
	s->stream = stream;
	s->task.run = look;
	if (wf_streaming_read(stream, &options, &op))
		end(s, WEFT_RESOURCE_EXHAUSTED, wf_last_text());
}

static int serve(struct weft_node *node)
{
	static Weft__Landings__Landings_Service handlers = {
		.base = WEFT__LANDINGS__LANDINGS__BASE_INIT,
	};
	const struct weft_stream_method method = { .name = "Subscribe", .handle = handle_subscribe };
	const struct weft_serve_options options = { .methods = &method, .method_count = 1,
						    .message_bytes_max = REQUEST_BYTES_MAX };

	return wf_serve_own(node, &handlers.base, &options, &node->landings.serves);
}

static void wake_all(struct weft_landing *landing)
{
	pthread_mutex_lock(&landing->shares.lock);
	WF_LIST_EACH(at, &landing->shares.all)
		wake(WF_CONTAINER(at, struct wf_share, node));
	pthread_mutex_unlock(&landing->shares.lock);
}

void wf_landing_drain(struct weft_node *node)
{
	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->landings.all)
		wake_all(WF_CONTAINER(at, struct weft_landing, node));
	pthread_mutex_unlock(&node->lock);
}

/* Puts */

/* Does @push bring a tensor, whole, to the place of a slot?  @landed gets what its note says. */
static bool is_sound(const struct weft_landing *landing, const struct wf_access_push *push,
		     struct wf_landed *landed)
{
	uint64_t bytes = push->body.way == WF_BODY_NONE ? 0 : push->body.bytes, want;
	int64_t shape[WEFT_RANK_MAX];

	if (push->flags != (WF_ACCESS_PUSH_LAST | WF_ACCESS_PUSH_NOTED) ||
	    wf_landed_get(push->note, push->note_bytes, landed))
		return false;
	for (unsigned i = 0; i < landed->rank; i++)
		shape[i] = wf_landed_dim(landed, i);
	if (wf_shape_bytes(landed->dtype, landed->rank, shape, &want) || want != bytes ||
	    bytes > landing->slot_bytes || push->number >= landing->shares.count)
		return false;
	return push->body.way == WF_BODY_NONE || push->at == push->number * landing->slot_bytes;
}

static bool admits(void *ctx, struct wf_windows *at, struct wf_link *link,
		   const struct wf_access_push *push)
{
	struct weft_landing *landing = ctx;
	const struct place place = { WF_CONTAINER(at, struct wf_worker, windows), link };
	struct wf_landed landed;

	return is_sound(landing, push, &landed) &&
	       wf_shares_take(&landing->shares, push->number, landed.serial, is_of, &place);
}

/*
 * The record of a push without a body may come again, as it was not answered.  The body of any
 * other was read in part, and its slot goes to whoever is next.
 */
static void lost(void *ctx, const struct wf_window_note *note)
{
	struct weft_landing *landing = ctx;

	if (note->has_body)
		wf_shares_give(&landing->shares, note->number);
	else
		wf_shares_untake(&landing->shares, note->number);
}

/* Opening and closing */

int wf_landing_open(struct weft_node *node, void *memory, size_t slot_bytes, size_t slots,
		    struct weft_landing **landing)
{
	struct weft_landing *fresh;
	int err = serve(node);

	if (err)
		return err;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a landing");
	err = wf_shares_init(&fresh->shares, (uint32_t)slots, wake);
	if (err) {
		wf_last_set(err, "no memory for a landing");
		goto free_landing;
	}
	fresh->owner = node;
	fresh->memory = memory;
	fresh->slot_bytes = slot_bytes;
	atomic_init(&fresh->refs, 1);
	err = wf_node_window_open(node, memory, slot_bytes * slots,
				  WEFT_WINDOW_WRITE | WEFT_WINDOW_LAND, NULL, &fresh->window);
	if (err)
		goto fini_shares;
	/* Nobody knows the window's name yet. */
	fresh->window->filter = (struct wf_node_window_filter){ admits, lost, fresh };
	pthread_mutex_lock(&node->lock);
	wf_list_append(&node->landings.all, &fresh->node);
	pthread_mutex_unlock(&node->lock);
	*landing = fresh;
	return 0;

fini_shares:
	wf_shares_fini(&fresh->shares);
free_landing:
	free(fresh);
	return err;
}

int wf_landing_close(struct weft_landing *landing)
{
	struct weft_node *node = landing->owner;
	int err;

	pthread_mutex_lock(&node->lock);
	wf_list_remove(&landing->node);
	pthread_mutex_unlock(&node->lock);
	pthread_mutex_lock(&landing->shares.lock);
	landing->closed = true;
	pthread_mutex_unlock(&landing->shares.lock);
	wake_all(landing);
	err = wf_node_window_close(landing->window);
	if (!err)
		wf_landing_put(landing);
	return err;
}

void wf_landing_forget(struct weft_node *node)
{
	struct wf_list *at;

	while ((at = wf_list_pop(&node->landings.all))) {
		struct weft_landing *landing = WF_CONTAINER(at, struct weft_landing, node);

		WF_LIST_EACH(share, &landing->shares.all) {
			free(sender_of(WF_CONTAINER(share, struct wf_share, node)));
			wf_landing_put(landing);
		}
		wf_landing_put(landing);
	}
}
