/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/metadata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/op.h"
#include "wire/pair.h"

static bool begins(const char *key, const char *with)
{
	return !strncmp(key, with, strlen(with));
}

static int too_long(void)
{
	return wf_last_set(-EMSGSIZE, "metadata of more than %zu bytes",
			   (size_t)WF_PAIRS_BYTES_MAX);
}

/* Convert @m, whose lengths fit. */
static struct wf_pair pair_of(const struct weft_metadata *m)
{
	return (struct wf_pair){
		.key = (const uint8_t *)m->key,
		.key_bytes = (uint16_t)(m->key ? strlen(m->key) : 0),
		.value = m->value,
		.value_bytes = (uint32_t)m->bytes,
	};
}

/* Check @m and convert it to @pair.  -EINVAL, -EMSGSIZE: recorded. */
static int check(const struct weft_metadata *m, struct wf_pair *pair)
{
	if (m->bytes > WF_PAIRS_BYTES_MAX || (m->key && strlen(m->key) >= WF_PAIRS_BYTES_MAX))
		return too_long();
	*pair = pair_of(m);
	if ((m->bytes && !m->value) || !wf_pair_good(pair))
		return wf_last_set(-EINVAL,
				   "metadata %.80s: keys are of 0-9 a-z - _ . and values printable, but of keys that end in -bin",
				   m->key ? m->key : "without a key");
	if (begins(m->key, "weft-") || begins(m->key, "grpc-"))
		return wf_last_set(-EINVAL, "metadata %.80s: such keys are the library's", m->key);
	return 0;
}

int wf_metadata_pack(const struct weft_metadata *pairs, size_t count, uint8_t **block,
		     uint32_t *bytes)
{
	struct wf_pair pair;
	struct wf_bytes_writer w;
	size_t sum = 0;
	int err;

	*block = NULL;
	*bytes = 0;
	if (count && WF_NEED(pairs))
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		err = check(&pairs[i], &pair);
		if (err)
			return err;
		sum += wf_pair_bytes(&pair);
		if (sum > WF_PAIRS_BYTES_MAX)
			return too_long();
	}
	if (!sum)
		return 0;
	*block = malloc(sum);
	if (!*block)
		return wf_last_set(-ENOMEM, "no memory for metadata");
	*bytes = (uint32_t)sum;
	w = wf_bytes_writer(*block, sum);
	for (size_t i = 0; i < count; i++) {
		pair = pair_of(&pairs[i]);
		wf_pair_put(&w, &pair);
	}
	return 0;
}

int wf_metadata_grow(struct weft_op *op, uint32_t own_bytes, uint32_t more_bytes, uint8_t **more)
{
	struct wf_call *call = &op->call.call;
	uint8_t *block;

	if (own_bytes + more_bytes > WF_PAIRS_BYTES_MAX)
		return too_long();
	block = realloc(op->call.metadata, own_bytes + more_bytes);
	if (!block)
		return wf_last_set(-ENOMEM, "no memory for metadata");
	op->call.metadata = block;
	call->metadata = block;
	call->metadata_bytes = own_bytes + more_bytes;
	*more = block + own_bytes;
	return 0;
}

static char *copy(char **at, const uint8_t *bytes, size_t count)
{
	char *to = *at;

	if (count)
		memcpy(to, bytes, count);
	to[count] = '\0';
	*at += count + 1;
	return to;
}

/* A single allocation holds the array, and behind it the strings. */
struct weft_metadata *wf_metadata_unpack(const uint8_t *block, size_t bytes, size_t *count)
{
	struct wf_bytes_reader r = wf_bytes_reader(block, bytes);
	int pairs = bytes ? wf_pairs_check(block, bytes) : 0;
	struct weft_metadata *all, *next;
	struct wf_pair pair;
	char *at;

	*count = 0;
	if (pairs <= 0)
		return NULL;
	all = malloc((size_t)pairs * (sizeof(*all) + 2) + bytes);
	if (!all)
		return NULL;
	at = (char *)(all + pairs);
	for (next = all; wf_pair_get(&r, &pair) > 0; next++) {
		next->key = copy(&at, pair.key, pair.key_bytes);
		next->value = copy(&at, pair.value, pair.value_bytes);
		next->bytes = pair.value_bytes;
	}
	*count = (size_t)pairs;
	return all;
}

int wf_metadata_add(struct weft_op *op, const struct weft_metadata *pairs, size_t count)
{
	uint8_t *more, *at;
	uint32_t bytes;
	int err;

	if (op->class->kind != WF_OP_CALL || !op->call.intercepted.asking)
		return wf_last_set(-EALREADY, "metadata is added where a call begins");
	err = wf_metadata_pack(pairs, count, &more, &bytes);
	if (err || !bytes)
		return err;
	err = wf_metadata_grow(op, op->call.call.metadata_bytes, bytes, &at);
	if (!err)
		memcpy(at, more, bytes);
	free(more);
	return err;
}
