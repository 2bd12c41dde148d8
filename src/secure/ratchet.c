/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/ratchet.h"

#include <errno.h>
#include <string.h>

#include "secure/secret_heap.h"

/* Make the key of a generation from @secret, and the secret of the next generation. */
static int make_key(const struct wf_ratchet *r, const struct wf_secret *secret,
		    struct wf_seal **seal, struct wf_secret *next)
{
	int err = wf_seal_new(r->cipher, secret, r->seals, seal);

	if (err)
		return err;
	err = wf_secret_derive(secret, "next", 0, 0, next);
	if (err) {
		wf_seal_free(*seal);
		*seal = NULL;
	}
	return err;
}

int wf_ratchet_begin(struct wf_ratchet *r, enum wf_seal_cipher cipher,
		     const struct wf_secret *secret, bool seals)
{
	int err;

	*r = (struct wf_ratchet){ .cipher = cipher, .seals = seals };
	r->next = wf_secret_heap_take();
	if (!r->next)
		return -ENOMEM;
	err = make_key(r, secret, &r->seal, r->next);
	if (err)
		wf_ratchet_end(r);
	return err;
}

void wf_ratchet_end(struct wf_ratchet *r)
{
	wf_seal_free(r->seal);
	wf_seal_free(r->last);
	wf_secret_heap_give(r->next);
	*r = (struct wf_ratchet){ 0 };
}

/* Put @seal, of the next generation, in the place of the key in use. */
static void advance(struct wf_ratchet *r, struct wf_seal *seal, struct wf_secret *next)
{
	wf_seal_free(r->last);
	r->last = r->seal;
	r->seal = seal;
	*r->next = *next;
	r->generation++;
	wf_secret_wipe(next);
}

int wf_ratchet_seal(struct wf_ratchet *r, const void *clear, size_t clear_count, const void *from,
		    void *to, size_t count, uint8_t tag[WF_SEAL_TAG_BYTES])
{
	struct wf_secret next;
	struct wf_seal *seal;
	int err;

	if (r->number >= WF_RATCHET_NUMBER_MAX)
		return -EOVERFLOW;
	if (r->number / WF_RATCHET_COUNT != r->generation) {
		err = make_key(r, r->next, &seal, &next);
		if (err)
			return err;
		advance(r, seal, &next);
		wf_seal_free(r->last);
		r->last = NULL;
	}
	/* A number is spent even when sealing fails: none is ever used twice. */
	return wf_seal_close(r->seal, r->number++, clear, clear_count, from, to, count, tag);
}

static bool was_seen(const struct wf_ratchet *r, uint64_t number)
{
	uint64_t bit = number % WF_RATCHET_WINDOW;

	if (number >= r->number)
		return false;
	return r->number - number > WF_RATCHET_WINDOW || (r->seen[bit / 64] >> bit % 64 & 1);
}

static void mark_seen(struct wf_ratchet *r, uint64_t number)
{
	uint64_t bit = number % WF_RATCHET_WINDOW;

	if (number >= r->number + WF_RATCHET_WINDOW)
		memset(r->seen, 0, sizeof(r->seen));
	else
		for (uint64_t n = r->number; n < number; n++)
			r->seen[n % WF_RATCHET_WINDOW / 64] &= ~(UINT64_C(1) << n % 64);
	r->seen[bit / 64] |= UINT64_C(1) << bit % 64;
	if (number >= r->number)
		r->number = number + 1;
}

int wf_ratchet_open(struct wf_ratchet *r, uint64_t number, const void *clear, size_t clear_count,
		    const void *from, void *to, size_t count,
		    const uint8_t tag[WF_SEAL_TAG_BYTES])
{
	uint64_t generation = number / WF_RATCHET_COUNT;
	bool ahead = generation == r->generation + 1;
	struct wf_seal *seal = NULL;
	struct wf_secret next;
	int err;

	if (was_seen(r, number))
		return -EALREADY;
	if (generation == r->generation)
		seal = r->seal;
	else if (generation + 1 == r->generation)
		seal = r->last;
	else if (ahead && (err = make_key(r, r->next, &seal, &next)))
		return err;
	if (!seal)
		return -EBADMSG;
	err = wf_seal_open(seal, number, clear, clear_count, from, to, count, tag);
	/* The key does not change by a message that was not sealed with it. */
	if (ahead && err) {
		wf_seal_free(seal);
		wf_secret_wipe(&next);
	} else if (ahead) {
		advance(r, seal, &next);
	}
	if (!err)
		mark_seen(r, number);
	return err;
}
