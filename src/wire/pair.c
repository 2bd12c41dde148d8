/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pair.h"

#include <errno.h>
#include <string.h>

#define FIXED_BYTES 6 /* u16 key_bytes, u32 value_bytes, before each pair */

static bool good_in_key(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.';
}

static bool is_binary(const struct wf_pair *pair)
{
	static const char end[] = { '-', 'b', 'i', 'n' };

	return pair->key_bytes >= sizeof(end) &&
	       !memcmp(pair->key + pair->key_bytes - sizeof(end), end, sizeof(end));
}

bool wf_pair_good(const struct wf_pair *pair)
{
	if (!pair->key_bytes)
		return false;
	for (unsigned i = 0; i < pair->key_bytes; i++)
		if (!good_in_key(pair->key[i]))
			return false;
	for (uint32_t i = 0; i < pair->value_bytes && !is_binary(pair); i++)
		if (pair->value[i] < ' ' || pair->value[i] > '~')
			return false;
	return true;
}

size_t wf_pair_bytes(const struct wf_pair *pair)
{
	return FIXED_BYTES + pair->key_bytes + pair->value_bytes;
}

void wf_pair_put(struct wf_bytes_writer *w, const struct wf_pair *pair)
{
	wf_bytes_put_u16(w, pair->key_bytes);
	wf_bytes_put_u32(w, pair->value_bytes);
	wf_bytes_put(w, pair->key, pair->key_bytes);
	wf_bytes_put(w, pair->value, pair->value_bytes);
}

int wf_pair_get(struct wf_bytes_reader *r, struct wf_pair *pair)
{
	if (!r->bad && !wf_bytes_reader_left(r))
		return 0;
	pair->key_bytes = wf_bytes_get_u16(r);
	pair->value_bytes = wf_bytes_get_u32(r);
	pair->key = wf_bytes_view(r, pair->key_bytes);
	pair->value = wf_bytes_view(r, pair->value_bytes);
	return r->bad || !wf_pair_good(pair) ? -EBADMSG : 1;
}

int wf_pairs_check(const uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_pair pair;
	int pairs = 0, rc;

	if (count > WF_PAIRS_BYTES_MAX)
		return -EBADMSG;
	while ((rc = wf_pair_get(&r, &pair)) > 0)
		pairs++;
	return rc ? rc : pairs;
}
