/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/nonces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "secure/one_time.h"
#include "secure/seal.h"

#define LIVE_MAX 4096

/*
 * A key that has sealed; one that was freed and made again goes on.  The table is not the library's
 * wf_map, which would take of the run's chance and of the memory that is made to fail.
 */
struct key {
	struct wf_secret secret;
	bool taken;    /* this place of the table */
	uint64_t next; /* numbers below were used, or passed over */
};

static struct {
	struct key *keys; /* table by the first bytes of the secret, which are random */
	size_t count, room;
	struct {
		const struct wf_seal *seal;
		struct wf_secret secret;
	} live[LIVE_MAX];
	size_t live_count;
	uint64_t used;
} nonces;

int __real_wf_seal_new(enum wf_seal_cipher cipher, const struct wf_secret *secret, bool seals,
		       struct wf_seal **seal);
int __wrap_wf_seal_new(enum wf_seal_cipher cipher, const struct wf_secret *secret, bool seals,
		       struct wf_seal **seal);
void __real_wf_seal_free(struct wf_seal *seal);
void __wrap_wf_seal_free(struct wf_seal *seal);
int __real_wf_seal_close(struct wf_seal *seal, uint64_t number, const void *clear,
			 size_t clear_count, const void *from, void *to, size_t count,
			 uint8_t tag[WF_SEAL_TAG_BYTES]);
int __wrap_wf_seal_close(struct wf_seal *seal, uint64_t number, const void *clear,
			 size_t clear_count, const void *from, void *to, size_t count,
			 uint8_t tag[WF_SEAL_TAG_BYTES]);
int __real_wf_one_time_seal(struct wf_one_time *once, enum wf_seal_cipher cipher,
			    const struct iovec *from, unsigned count, void *to,
			    struct wf_one_time_key *key);
int __wrap_wf_one_time_seal(struct wf_one_time *once, enum wf_seal_cipher cipher,
			    const struct iovec *from, unsigned count, void *to,
			    struct wf_one_time_key *key);

void wf_nonces_reset(void)
{
	free(nonces.keys);
	nonces.keys = NULL;
	nonces.count = nonces.room = nonces.live_count = 0;
	nonces.used = 0;
}

uint64_t wf_nonces_used(void)
{
	return nonces.used;
}

/* Get the place of @secret, in a table that has room: its own, or an empty one. */
static struct key *place_of(const struct wf_secret *secret)
{
	uint64_t at;

	memcpy(&at, secret->bytes, sizeof(at));
	for (;; at++) {
		struct key *key = &nonces.keys[at % nonces.room];

		if (!key->taken || !memcmp(&key->secret, secret, sizeof(*secret)))
			return key;
	}
}

static void grow(void)
{
	struct key *before = nonces.keys;
	size_t room = nonces.room;

	nonces.room = room ? 2 * room : 1024;
	nonces.keys = calloc(nonces.room, sizeof(*nonces.keys));
	assert_non_null(nonces.keys);
	for (size_t i = 0; i < room; i++)
		if (before[i].taken)
			*place_of(&before[i].secret) = before[i];
	free(before);
}

static void use(const struct wf_secret *secret, uint64_t number)
{
	struct key *key;

	if (2 * nonces.count >= nonces.room)
		grow();
	key = place_of(secret);
	nonces.count += !key->taken;
	key->taken = true;
	key->secret = *secret;
	if (number < key->next)
		fail_msg("number %llu is used again with one key: the next is %llu",
			 (unsigned long long)number, (unsigned long long)key->next);
	key->next = number + 1;
	nonces.used++;
}

static size_t live_at(const struct wf_seal *seal)
{
	size_t i = 0;

	while (i < nonces.live_count && nonces.live[i].seal != seal)
		i++;
	return i;
}

int __wrap_wf_seal_new(enum wf_seal_cipher cipher, const struct wf_secret *secret, bool seals,
		       struct wf_seal **seal)
{
	int err = __real_wf_seal_new(cipher, secret, seals, seal);

	if (err || !seals)
		return err;
	assert_in_range(nonces.live_count, 0, LIVE_MAX - 1);
	nonces.live[nonces.live_count].seal = *seal;
	nonces.live[nonces.live_count++].secret = *secret;
	return 0;
}

void __wrap_wf_seal_free(struct wf_seal *seal)
{
	size_t i = live_at(seal);

	if (i < nonces.live_count)
		nonces.live[i] = nonces.live[--nonces.live_count];
	__real_wf_seal_free(seal);
}

int __wrap_wf_seal_close(struct wf_seal *seal, uint64_t number, const void *clear,
			 size_t clear_count, const void *from, void *to, size_t count,
			 uint8_t tag[WF_SEAL_TAG_BYTES])
{
	size_t i = live_at(seal);

	assert_in_range(i, 0, nonces.live_count - 1);
	use(&nonces.live[i].secret, number);
	return __real_wf_seal_close(seal, number, clear, clear_count, from, to, count, tag);
}

int __wrap_wf_one_time_seal(struct wf_one_time *once, enum wf_seal_cipher cipher,
			    const struct iovec *from, unsigned count, void *to,
			    struct wf_one_time_key *key)
{
	int err = __real_wf_one_time_seal(once, cipher, from, count, to, key);

	use(&key->secret, 0);
	return err;
}
