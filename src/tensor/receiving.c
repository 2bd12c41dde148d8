/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/receiving.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/channel.h"
#include "tensor/shape.h"

int wf_receiving_note(struct wf_receiving *r, struct wf_link *link,
		      const struct wf_tensor_record *t, struct wf_error *e)
{
	int64_t *shape = r->shape;

	if (t->rank > WF_COUNT(r->shape)) {
		shape = r->long_shape = malloc(t->rank * sizeof(*shape));
		if (!shape)
			return wf_error_set(e, -ENOMEM, "no memory for a shape");
	}
	for (unsigned i = 0; i < t->rank; i++)
		shape[i] = wf_tensor_record_dim(t, i);
	r->got = (struct weft_tensor){
		.device = { WEFT_CPU, 0 },
		.ndim = t->rank,
		.dtype = t->dtype,
		.shape = shape,
	};
	r->got_flags = t->flags;
	r->got_bytes = t->body.bytes;
	r->got_from = link;
	wf_link_get(link);
	return 0;
}

static bool same_shape(const struct weft_tensor *a, const struct weft_tensor *b)
{
	return a->ndim == b->ndim &&
	       (!a->ndim || !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(a->shape[0])));
}

int wf_receiving_check(const struct wf_receiving *r, struct wf_error *e)
{
	char have[WF_SHAPE_TEXT_BYTES], want[WF_SHAPE_TEXT_BYTES];
	const struct weft_tensor *into = r->into;
	uint64_t capacity = 0;
	bool fits;

	fits = !memcmp(&into->dtype, &r->got.dtype, sizeof(into->dtype));
	wf_shape_bytes(into->dtype, into->ndim, into->shape, &capacity);
	if (r->flags & WEFT_ANY_SHAPE)
		fits = fits && r->got_bytes <= capacity;
	else
		fits = fits && same_shape(into, &r->got);
	if (fits)
		return 0;
	wf_shape_text(into->dtype, into->ndim, into->shape, want);
	wf_shape_text(r->got.dtype, r->got.ndim, r->got.shape, have);
	return wf_error_set(e, -EBADFD,
			    "the receive brought a buffer of %llu bytes for %s%s, and %s sent %s of %llu bytes",
			    (unsigned long long)capacity, want,
			    r->flags & WEFT_ANY_SHAPE ? " or less" : "",
			    wf_link_label(r->got_from), have, (unsigned long long)r->got_bytes);
}

int wf_receiving_find_view(struct wf_receiving *r, struct wf_link *link,
			   const struct wf_body *body)
{
	const struct wf_caps *caps = wf_link_caps(link);
	int err;

	/* The path is to say over which rail it came. */
	if (body->way != WF_BODY_VIEW || r->into || r->alloc || !caps || !caps->same_host)
		return -ENOENT;
	err = wf_view_open(&r->channels->transfer->views, link, body, &r->view);
	/* Whether it is over, and why, is the owner's to say: it was cancelled, or has given us up. */
	r->pull.doubted = err == -ESTALE;
	if (err)
		return -ENOENT;
	r->got.data = r->chunk = (void *)(uintptr_t)r->view->hold.at;
	r->readonly = true;
	return 0;
}

int wf_receiving_find_memory(struct wf_receiving *r, struct wf_error *e)
{
	struct wf_pool *pool = &r->channels->worker->pool;
	int err;

	if (r->into) {
		r->got.data = (char *)r->into->data + r->into->byte_offset;
		return 0;
	}
	if (r->alloc) {
		r->got.data = r->alloc(r->alloc_arg, &r->got, r->got_bytes);
		return r->got.data ? 0
				   : wf_error_set(e, -ENOBUFS,
						  "the receive's allocation callback gave no memory for %llu bytes",
						  (unsigned long long)r->got_bytes);
	}
	err = wf_pool_take(pool, r->got_bytes, &r->chunk);
	if (err == -EAGAIN)
		return err;
	if (err)
		return wf_error_set(e, -ENOBUFS,
				    "a tensor of %llu bytes does not fit the pool of %llu (WEFT_POOL_BYTES)",
				    (unsigned long long)r->got_bytes,
				    (unsigned long long)pool->budget_bytes);
	r->got.data = r->chunk;
	return 0;
}

void wf_receiving_release(struct wf_receiving *r)
{
	free(r->long_shape);
	r->got.shape = r->long_shape = NULL;
	r->got.data = NULL;
	if (r->view)
		wf_view_close(r->view);
	else
		wf_pool_give(&r->channels->worker->pool, r->chunk);
	r->view = NULL;
	r->chunk = NULL;
	if (r->got_from)
		wf_link_put(r->got_from);
	r->got_from = NULL;
}

static void describe_wait(const struct wf_receiving *r, char *text, size_t bytes)
{
	size_t others = r->channels->arrival_count;
	int used;

	if (r->from)
		used = snprintf(text, bytes, "%s has not sent it",
				wf_link_label(wf_link_real(r->from)));
	else
		used = snprintf(text, bytes, "no peer has sent it");

	/* A wrong step or key shows by that. */
	if (others && used > 0 && (size_t)used < bytes)
		(void)snprintf(text + used, bytes - (size_t)used,
			       ", while %zu tensors that came are not received", others);
}

void wf_receiving_describe(const struct wf_receiving *r, char *text, size_t bytes)
{
	char wait[WF_POOL_TEXT_BYTES];

	switch (r->state) {
	case WF_RECEIVING_ENDED:
		(void)snprintf(text, bytes, "it has come");
		break;
	case WF_RECEIVING_WAITING:
		describe_wait(r, text, bytes);
		break;
	case WF_RECEIVING_MEMORY:
		wf_pool_describe(&r->channels->worker->pool, r->got_bytes, wait);
		(void)snprintf(text, bytes, "%s has sent it, and %s",
			       wf_link_label(wf_link_real(r->got_from)), wait);
		break;
	case WF_RECEIVING_PULLING:
		wf_pull_describe(&r->pull, text, bytes);
		break;
	}
}

uint64_t wf_receiving_progress(const struct wf_receiving *r)
{
	uint64_t got_bytes = r->state == WF_RECEIVING_PULLING ? r->pull.got_bytes : 0;

	return (uint64_t)r->state << 56 | got_bytes;
}
