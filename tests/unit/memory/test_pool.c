/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct wf_pool pool;

static void *take(size_t bytes)
{
	void *chunk = NULL;

	assert_int_equal(wf_pool_take(&pool, bytes, &chunk), 0);
	assert_non_null(chunk);
	return chunk;
}

static void chunks_are_aligned_writable_and_apart(void **state)
{
	static const size_t sizes[] = { 0,	 1,	  255,	       256,	  257,
					4096,	 65537,	  MIB,	       MIB + 1,	  3 * MIB };
	unsigned char *chunks[WF_COUNT(sizes)];

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		chunks[i] = take(sizes[i]);
		assert_int_equal((uintptr_t)chunks[i] % 64, 0);
		memset(chunks[i], (int)i + 1, sizes[i]);
	}
	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		for (size_t at = 0; at < sizes[i]; at++)
			if (chunks[i][at] != i + 1)
				fail_msg("byte %zu of chunk %zu was overwritten", at, i);
		assert_int_equal(wf_pool_give(&pool, chunks[i]), 0);
	}
	assert_int_equal(pool.used_bytes, 0);
	wf_pool_fini(&pool);
}

static void small_chunks_share_a_slab_until_it_is_full(void **state)
{
	void *chunks[4];

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	/* A slab of 2 MiB has room for two of 1 MiB. */
	chunks[0] = take(MIB);
	chunks[1] = take(MIB - 1);
	assert_int_equal(pool.slab_bytes, 2 * MIB);
	assert_int_equal(pool.used_bytes, 2 * MIB);
	chunks[2] = take(MIB / 2 + 1);
	chunks[3] = take(MIB);
	assert_int_equal(pool.slab_bytes, 4 * MIB);
	assert_int_equal(pool.used_bytes, 4 * MIB);
	assert_true(chunks[2] != chunks[3]);

	/* A full slab has a place again. */
	assert_int_equal(wf_pool_give(&pool, chunks[0]), 0);
	assert_ptr_equal(take(MIB), chunks[0]);
	assert_int_equal(pool.slab_bytes, 4 * MIB);
	wf_pool_fini(&pool);
}

static void a_spent_budget_and_one_too_small_are_told_apart(void **state)
{
	void *chunk, *other = &pool;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 4 * MIB), 0);
	assert_int_equal(wf_pool_take(&pool, 4 * MIB + 1, &other), -ENOBUFS);
	assert_int_equal(wf_pool_take(&pool, SIZE_MAX, &other), -ENOBUFS);
	assert_true(wf_pool_fits(&pool, 4 * MIB));
	assert_false(wf_pool_fits(&pool, 4 * MIB + 1));
	assert_false(wf_pool_fits(&pool, SIZE_MAX));
	chunk = take(3 * MIB);
	assert_int_equal(wf_pool_take(&pool, 2 * MIB, &other), -EAGAIN);
	assert_int_equal(wf_pool_take(&pool, 100, &other), -EAGAIN);
	/* Refusals change nothing. */
	assert_ptr_equal(other, &pool);
	assert_int_equal(pool.slab_bytes, 3 * MIB);
	assert_int_equal(pool.used_bytes, 3 * MIB);

	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	take(2 * MIB);
	wf_pool_fini(&pool);
}

static void a_budget_below_a_slab_serves_no_small_chunk(void **state)
{
	void *chunk;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, MIB), 0);
	assert_int_equal(wf_pool_take(&pool, 100, &chunk), -ENOBUFS);
	wf_pool_fini(&pool);
}

static void a_large_slab_is_kept_for_the_next_of_about_its_size(void **state)
{
	void *chunk;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	chunk = take(8 * MIB);
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	assert_int_equal(pool.slab_bytes, 8 * MIB);

	/* 4 MiB waste half of it, which is allowed, and less would waste more. */
	assert_ptr_not_equal(take(3 * MIB), chunk);
	assert_int_equal(pool.slab_bytes, 11 * MIB);
	assert_ptr_equal(take(4 * MIB), chunk);
	assert_int_equal(pool.slab_bytes, 11 * MIB);
	wf_pool_fini(&pool);
}

static void memory_that_nobody_uses_goes_back_when_the_pool_shrinks(void **state)
{
	void *small[3], *large;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	large = take(4 * MIB);
	for (unsigned i = 0; i < 3; i++)
		small[i] = take(MIB);
	assert_int_equal(pool.slab_bytes, 8 * MIB);
	wf_pool_shrink(&pool);
	assert_int_equal(pool.slab_bytes, 8 * MIB);
	wf_pool_give(&pool, large);
	wf_pool_give(&pool, small[0]);
	wf_pool_give(&pool, small[2]);
	wf_pool_shrink(&pool);
	/* The slab of the first two has one in use. */
	assert_int_equal(pool.slab_bytes, 2 * MIB);
	assert_int_equal(pool.used_bytes, MIB);
	assert_ptr_equal(take(MIB), small[0]);
	assert_int_equal(pool.slab_bytes, 2 * MIB);
	take(MIB);
	assert_int_equal(pool.slab_bytes, 4 * MIB);
	wf_pool_fini(&pool);
}

static void memory_that_nobody_uses_serves_any_size(void **state)
{
	void *chunk, *small[2];

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 4 * MIB), 0);
	chunk = take(4 * MIB);
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	/* The idle large slab makes room for two of small chunks... */
	small[0] = take(256);
	small[1] = take(MIB);
	assert_int_equal(pool.slab_bytes, 4 * MIB);
	assert_int_equal(wf_pool_give(&pool, small[0]), 0);
	/* ...but only what is wholly free is given back... */
	assert_int_equal(wf_pool_take(&pool, 3 * MIB, &chunk), -EAGAIN);
	assert_int_equal(wf_pool_give(&pool, small[1]), 0);
	/* ...and then for a large one again. */
	take(4 * MIB);
	assert_int_equal(pool.slab_bytes, 4 * MIB);
	wf_pool_fini(&pool);
}

static void memory_that_is_no_chunk_is_not_taken_back(void **state)
{
	char *chunk, *large;
	int local;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	chunk = take(1000);
	large = take(2 * MIB);
	assert_int_equal(wf_pool_give(&pool, NULL), 0);
	assert_int_equal(wf_pool_give(&pool, &local), -EINVAL);
	assert_int_equal(wf_pool_give(&pool, chunk + 8), -EINVAL);
	assert_int_equal(wf_pool_give(&pool, large + 64), -EINVAL);
	assert_int_equal(pool.used_bytes, 1024 + 2 * MIB);

	assert_int_equal(wf_pool_give(&pool, large), 0);
	assert_int_equal(wf_pool_give(&pool, large), -EINVAL);
	assert_int_equal(pool.used_bytes, 1024);
	wf_pool_fini(&pool);
}

static void a_region_is_the_whole_slab_of_a_range(void **state)
{
	struct wf_region *region;
	char *chunk;
	int local;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	chunk = take(5000);
	region = wf_pool_region(&pool, chunk + 100, 4900);
	assert_non_null(region);
	assert_int_equal(region->bytes, 2 * MIB);
	assert_true((char *)region->base <= chunk);
	assert_ptr_equal(wf_pool_region(&pool, region->base, region->bytes), region);
	assert_null(wf_pool_region(&pool, (char *)region->base + 1, region->bytes));
	assert_null(wf_pool_region(&pool, &local, 1));
	wf_pool_fini(&pool);
}

static void peers_may_read_the_taken_chunk_alone(void **state)
{
	struct wf_region *shown, *neighbour;
	char *chunk, *next;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	chunk = take(5000);
	next = take(5000);
	shown = wf_pool_shown(&pool, chunk + 100, 8092);
	assert_ptr_equal(shown->base, chunk);
	assert_int_equal(shown->bytes, 8192);
	assert_int_equal(shown->access, WF_ACCESS_REMOTE_READ);
	assert_int_equal(wf_pool_region(&pool, chunk, 1)->access, WF_ACCESS_LOCAL);
	assert_null(wf_pool_shown(&pool, chunk + 100, 8093));
	assert_ptr_equal(wf_pool_shown(&pool, chunk, 1), shown);
	neighbour = wf_pool_shown(&pool, next, 1);
	assert_ptr_equal(neighbour->base, next);
	assert_int_equal(wf_pool_give(&pool, next), 0);
	assert_null(wf_pool_shown(&pool, next, 1));
	wf_pool_fini(&pool);
}

static void a_chunk_that_peers_may_read_is_nobody_s_before_its_keys_are_closed(void **state)
{
	char *chunk, *again;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	chunk = take(5000);
	assert_non_null(wf_pool_shown(&pool, chunk, 5000));
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	assert_int_equal(wf_pool_give(&pool, chunk), -EINVAL);
	again = take(5000);
	assert_ptr_not_equal(again, chunk);
	wf_pool_run(&pool);
	assert_ptr_equal(take(5000), chunk);
	assert_int_equal(wf_pool_give(&pool, again), 0);
	assert_ptr_equal(take(5000), again); /* nobody could read that one */
	wf_pool_fini(&pool);
}

/* Memory from elsewhere. */
struct visitor {
	struct wf_pool_guest guest;
	unsigned left, forked;
};

static void leave(struct wf_pool_guest *guest)
{
	WF_CONTAINER(guest, struct visitor, guest)->left++;
}

static void fork_off(struct wf_pool_guest *guest)
{
	WF_CONTAINER(guest, struct visitor, guest)->forked++;
}

static _Alignas(64) char elsewhere[4096];

static void a_guest_is_as_a_chunk_and_leaves_with_its_last_share(void **state)
{
	struct visitor v = { .guest = { leave, fork_off } };
	const struct wf_sealed no_file = { .fd = -1 };
	struct wf_pool_place place;
	struct wf_region *region;
	void *chunk;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, MIB), 0); /* which is too little for any slab */
	assert_int_equal(wf_pool_admit(&pool, elsewhere, sizeof(elsewhere), &no_file, &v.guest), 0);
	assert_int_equal(pool.slab_bytes + pool.used_bytes, 0);
	region = wf_pool_region(&pool, elsewhere + 100, 3996);
	assert_ptr_equal(region->base, elsewhere);
	assert_ptr_equal(wf_pool_shown(&pool, elsewhere, 4096)->base, elsewhere);
	assert_null(wf_pool_region(&pool, elsewhere + 100, 3997));
	assert_int_equal(wf_pool_find(&pool, elsewhere, &place), -ENOENT);
	assert_int_equal(wf_pool_share(&pool, elsewhere + 7, 4089, &chunk), 0);
	assert_ptr_equal(chunk, elsewhere);
	assert_int_equal(wf_pool_share(&pool, elsewhere + 7, 4090, &chunk), -EINVAL);
	wf_pool_forked(&pool);
	assert_int_equal(v.forked, 1);

	assert_int_equal(wf_pool_give(&pool, elsewhere), 0);
	wf_pool_run(&pool);
	assert_int_equal(v.left, 0);
	assert_int_equal(wf_pool_give(&pool, elsewhere), 0);
	/* From now on it is nobody's, though its registrations are closed by the owner only. */
	assert_int_equal(wf_pool_give(&pool, elsewhere), -EINVAL);
	assert_int_equal(wf_pool_share(&pool, elsewhere, 1, &chunk), -EINVAL);
	assert_int_equal(v.left, 0);
	wf_pool_run(&pool);
	assert_int_equal(v.left, 1);
	assert_null(wf_pool_region(&pool, elsewhere, 1));
	wf_pool_fini(&pool);
	assert_int_equal(v.left, 1);
}

static void a_guest_makes_no_room_for_others_and_goes_with_the_pool(void **state)
{
	struct visitor gone = { .guest = { leave, fork_off } }, stays = gone;
	const struct wf_sealed no_file = { .fd = -1 };
	_Atomic uint64_t retired = 0;
	void *chunk;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 2 * MIB), 0);
	wf_pool_open_to_others(&pool, 0, &retired);
	assert_int_equal(wf_pool_admit(&pool, elsewhere, 64, &no_file, &gone.guest), 0);
	assert_int_equal(wf_pool_admit(&pool, elsewhere + 64, 64, &no_file, &stays.guest), 0);
	chunk = take(100);
	assert_int_equal(wf_pool_give(&pool, elsewhere), 0);
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	/* The idle slab is trimmed for it, and the guest that is leaving is not. */
	chunk = take(2 * MIB);
	assert_int_equal(gone.left, 0);
	wf_pool_dismiss(&pool);
	assert_int_equal(gone.left, 1);
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	wf_pool_fini(&pool);
	assert_int_equal(stays.left, 1);
	assert_int_equal(retired, 0); /* nobody could look at them */
}

/* A waiter that wants bytes, and waits again while there are none. */
struct want {
	struct wf_pool_waiter waiter;
	size_t bytes;
	unsigned told;
	void *got;
	struct wf_pool_waiter *rival; /* to be stopped when told */
};

static void retry(struct wf_pool_waiter *waiter)
{
	struct want *w = WF_CONTAINER(waiter, struct want, waiter);

	w->told++;
	if (w->rival)
		wf_pool_unwait(&pool, w->rival);
	if (wf_pool_take(&pool, w->bytes, &w->got) == -EAGAIN)
		wf_pool_wait(&pool, waiter);
}

static void waiters_are_told_in_order_when_memory_comes_back(void **state)
{
	struct want a = { .waiter.retry = retry, .bytes = 4 * MIB };
	struct want b = { .waiter.retry = retry, .bytes = 4 * MIB };
	void *chunk;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 4 * MIB), 0);
	chunk = take(4 * MIB);
	wf_pool_wait(&pool, &a.waiter);
	wf_pool_wait(&pool, &b.waiter);
	assert_int_equal(pool.wait_count, 2);
	wf_pool_run(&pool);
	assert_int_equal(a.told + b.told, 0);

	/* The first takes it; the second is told too, and waits on. */
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	wf_pool_run(&pool);
	assert_ptr_equal(a.got, chunk);
	assert_int_equal(b.told, 1);
	assert_null(b.got);
	wf_pool_run(&pool);
	assert_int_equal(b.told, 1);

	assert_int_equal(wf_pool_give(&pool, a.got), 0);
	wf_pool_run(&pool);
	assert_ptr_equal(b.got, chunk);
	assert_int_equal(a.told, 1);
	wf_pool_fini(&pool);
}

static void memory_that_came_back_before_the_wait_is_told(void **state)
{
	struct want want = { .waiter.retry = retry, .bytes = 4 * MIB };
	void *chunk;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 4 * MIB), 0);
	chunk = take(4 * MIB);
	assert_int_equal(wf_pool_take(&pool, want.bytes, &want.got), -EAGAIN);
	assert_int_equal(wf_pool_give(&pool, chunk), 0); /* by another thread */
	assert_false(pool.freed); /* nobody waits: no turn looks */
	wf_pool_wait(&pool, &want.waiter);
	wf_pool_run(&pool);
	assert_ptr_equal(want.got, chunk);
	assert_int_equal(want.told, 1);
	wf_pool_fini(&pool);
}

static void a_waiter_gets_what_unused_slabs_keep_registered(void **state)
{
	struct want want = { .waiter.retry = retry, .bytes = MIB };
	struct wf_region *region;
	void *other;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 4 * MIB), 0);
	other = take(4 * MIB);
	region = wf_pool_region(&pool, other, 1);
	region->entries[region->count++].mr = NULL; /* as if it were registered */
	assert_int_equal(wf_pool_give(&pool, other), 0);
	wf_pool_run(&pool);

	assert_int_equal(wf_pool_take(&pool, want.bytes, &want.got), -EAGAIN);
	wf_pool_wait(&pool, &want.waiter);
	wf_pool_run(&pool);
	assert_non_null(want.got);
	wf_pool_fini(&pool);
}

static void a_waiter_gets_what_peers_could_read(void **state)
{
	struct want want = { .waiter.retry = retry, .bytes = 3 * MIB };
	void *other;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 4 * MIB), 0);
	other = take(4 * MIB);
	assert_non_null(wf_pool_shown(&pool, other, 4 * MIB));
	assert_int_equal(wf_pool_give(&pool, other), 0);
	assert_int_equal(wf_pool_take(&pool, want.bytes, &want.got), -EAGAIN);
	wf_pool_wait(&pool, &want.waiter);
	wf_pool_run(&pool);
	assert_non_null(want.got);
	wf_pool_fini(&pool);
}

static void a_waiter_may_stop_another_while_it_is_told(void **state)
{
	struct want b = { .waiter.retry = retry, .bytes = MIB };
	struct want a = { .waiter.retry = retry, .bytes = MIB, .rival = &b.waiter };
	void *chunk;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 4 * MIB), 0);
	chunk = take(4 * MIB);
	wf_pool_wait(&pool, &a.waiter);
	wf_pool_wait(&pool, &b.waiter);
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	wf_pool_run(&pool);
	assert_non_null(a.got);
	assert_int_equal(b.told, 0);
	/* Nor is it told later. */
	assert_int_equal(wf_pool_give(&pool, a.got), 0);
	wf_pool_run(&pool);
	assert_int_equal(b.told, 0);
	wf_pool_fini(&pool);
}

#define ROUNDS 2000

/* Take chunks of many sizes, fill them, and find them untouched. */
static void *churn(void *arg)
{
	unsigned char mark = *(unsigned char *)arg;
	unsigned char *held[8] = { 0 };
	size_t sizes[8] = { 0 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned at = i % WF_COUNT(held);
		size_t bytes = (i * 7919u) % (i % 50 ? 20000 : 2 * MIB) + 1;

		for (size_t b = 0; held[at] && b < sizes[at]; b += 97)
			if (held[at][b] != mark)
				return "a chunk was overwritten";
		if (held[at] && wf_pool_give(&pool, held[at]))
			return "a chunk was not taken back";
		held[at] = NULL;
		if (wf_pool_take(&pool, bytes, (void **)&held[at]))
			continue; /* the budget is spent, now and then */
		sizes[at] = bytes;
		memset(held[at], mark, bytes);
	}
	for (size_t i = 0; i < WF_COUNT(held); i++)
		if (wf_pool_give(&pool, held[i]))
			return "a chunk was not taken back";
	return NULL;
}

static void threads_may_take_and_give_at_once(void **state)
{
	unsigned char marks[3] = { 1, 2, 3 };
	pthread_t threads[WF_COUNT(marks)];
	void *wrong;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 24 * MIB), 0);
	for (size_t i = 0; i < WF_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, &marks[i]), 0);
	for (size_t i = 0; i < WF_COUNT(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		if (wrong)
			fail_msg("%s", (char *)wrong);
	}
	assert_int_equal(pool.used_bytes, 0);
	assert_in_range(pool.slab_bytes, 1, 24 * MIB);
	wf_pool_fini(&pool);
}

static void the_last_share_of_a_chunk_frees_it(void **state)
{
	char *chunk, *other;
	void *shared = NULL;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	chunk = take(4096);
	assert_int_equal(wf_pool_share(&pool, chunk + 1000, 3096, &shared), 0);
	assert_ptr_equal(shared, chunk);
	assert_int_equal(wf_pool_share(&pool, chunk + 1000, 3097, &shared), -EINVAL);
	assert_int_equal(wf_pool_share(&pool, &pool, 1, &shared), -EINVAL);
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	assert_int_equal(pool.used_bytes, 4096);
	other = take(4096);
	assert_ptr_not_equal(other, chunk);
	assert_int_equal(wf_pool_give(&pool, chunk), 0);
	assert_int_equal(pool.used_bytes, 4096);

	/* It is nobody's now. */
	assert_int_equal(wf_pool_give(&pool, chunk), -EINVAL);
	assert_int_equal(wf_pool_share(&pool, chunk, 1, &shared), -EINVAL);
	assert_int_equal(wf_pool_give(&pool, other), 0);
	wf_pool_fini(&pool);
}

static void importers_find_chunks_in_as_many_slabs_as_there_are_descriptors_for(void **state)
{
	_Atomic uint64_t retired = 0;
	struct wf_pool_place place, same;
	struct wf_sealed seen;
	char *first, *second;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 8 * MIB), 0);
	wf_pool_open_to_others(&pool, 1, &retired);
	first = take(3 * MIB);
	second = take(3 * MIB);
	assert_int_equal(wf_pool_find(&pool, first + 5, &place), 0);
	assert_int_equal(place.offset, 5);
	assert_int_equal(wf_pool_find(&pool, second, &same), -ENOENT);
	assert_int_equal(wf_pool_find(&pool, &pool, &same), -ENOENT);

	/* They see what is written, write nothing, and keep it. */
	assert_int_equal(wf_sealed_map(&seen, dup(place.fd), 3 * MIB, WF_SEALED_OWNER), 0);
	assert_int_equal(seen.number, place.number);
	strcpy(first + 5, "weft");
	assert_string_equal((char *)seen.base + 5, "weft");
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, place.fd, 0),
			 MAP_FAILED);
	assert_int_equal(wf_pool_give(&pool, first), 0);
	assert_int_equal(wf_pool_give(&pool, second), 0);
	assert_int_equal(retired, 0);
	assert_int_equal(wf_pool_give(&pool, take(8 * MIB)), 0);
	assert_int_equal(retired, 1);
	assert_string_equal((char *)seen.base + 5, "weft");
	wf_sealed_close(&seen);
	wf_pool_fini(&pool);
}

static void a_file_that_might_shrink_is_not_mapped(void **state)
{
	struct wf_sealed s = { 0 };
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(wf_sealed_map(&s, dup(fd), 4096, WF_SEALED_OWNER), -EBADMSG);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(wf_sealed_map(&s, dup(fd), 8193, WF_SEALED_OWNER), -EBADMSG);
	assert_int_equal(wf_sealed_map(&s, eventfd(0, 0), 1, WF_SEALED_OWNER), -EBADMSG);
	assert_null(s.base);
	assert_int_equal(wf_sealed_map(&s, fd, 8192, WF_SEALED_OWNER), 0);
	wf_sealed_close(&s);
}

static void a_limit_of_files_is_kept_and_does_not_kill(void **state)
{
	struct rlimit limit, before;
	_Atomic uint64_t retired = 0;
	struct wf_pool_place place;
	struct wf_sealed s;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = MIB;
	assert_int_equal(wf_pool_init(&pool, 8 * MIB), 0);
	wf_pool_open_to_others(&pool, 4, &retired);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(wf_sealed_open(&s, "test", MIB + 1, WF_SEALED_OWNER), -EFBIG);
	assert_int_equal(wf_pool_find(&pool, take(4096), &place), -ENOENT);
	assert_int_equal(wf_sealed_open(&s, "test", MIB, WF_SEALED_OWNER), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	wf_sealed_close(&s);
	assert_int_equal(wf_pool_find(&pool, take(3 * MIB), &place), 0);
	wf_pool_fini(&pool);
}

static void a_node_that_is_not_there_is_no_place(void **state)
{
	static const char *const wrong[] = { "x", "-1", "63", "64", "0,1" };
	struct wf_placement p = { .node = 7 };
	struct wf_error e;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wrong); i++) {
		assert_int_equal(wf_placement_open(&p, wrong[i], false, "", &e), -EINVAL);
		assert_non_null(strstr(e.text, "WEFT_POOL_NUMA="));
		assert_int_equal(p.node, 7);
	}
	assert_int_equal(wf_placement_open(&p, "", true, "", &e), 0);
	assert_false(p.placed);
	assert_true(p.huge);
	assert_int_equal(wf_placement_open(&p, "0", false, "/nowhere", &e), 0);
	assert_true(p.placed);
	assert_int_equal(p.node, 0);
}

/* The kernel's own word on where a page lies, and in how long pages. */
static bool says(const void *at, const char *what)
{
	FILE *maps = fopen("/proc/self/numa_maps", "re");
	char start[32], line[1024];
	bool found = false;

	snprintf(start, sizeof(start), "%lx ", (unsigned long)at);
	while (maps && !found && fgets(line, sizeof(line), maps))
		found = !strncmp(line, start, strlen(start)) && strstr(line, what);
	if (maps)
		(void)fclose(maps);
	return found;
}

static void memory_lies_where_it_is_to_be_placed(void **state)
{
	void *chunk;

	(void)state;
	if (access("/proc/self/numa_maps", R_OK)) {
		print_message("skip: this kernel says nothing of NUMA nodes\n");
		skip();
	}
	assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
	pool.placement.placed = true;
	chunk = take(3 * MIB);
	if (pool.placement.refused)
		print_message("this system places memory as it likes\n");
	else
		assert_true(says(chunk, "prefer"));
	wf_pool_fini(&pool);
}

/* Where huge pages were set aside; elsewhere the pages are ordinary ones. */
static void memory_has_huge_pages_as_far_as_there_are_any(void **state)
{
	_Atomic uint64_t retired = 0;

	for (size_t files_max = 0; files_max < 2; files_max++) {
		char *chunk;

		assert_int_equal(wf_pool_init(&pool, 64 * MIB), 0);
		wf_pool_open_to_others(&pool, files_max, &retired);
		pool.placement.huge = true;
		chunk = take(3 * MIB);
		memset(chunk, 1, 3 * MIB);
		assert_int_equal(pool.slab_bytes, 4 * MIB);
		if (pool.huge_bytes) {
			assert_int_equal(pool.huge_bytes, 4 * MIB);
			assert_true(says(chunk, "kernelpagesize_kB=2048"));
		} else {
			print_message("without huge pages, of which none is free\n");
		}
		assert_int_equal(wf_pool_give(&pool, chunk), 0);
		wf_pool_shrink(&pool);
		assert_int_equal(pool.huge_bytes, 0);
		assert_int_equal(pool.slab_bytes, 0);
		wf_pool_fini(&pool);
	}
	(void)state;
}

static void a_forked_child_writes_to_a_copy(void **state)
{
	_Atomic uint64_t retired = 0;
	char *chunk;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(wf_pool_init(&pool, 8 * MIB), 0);
	wf_pool_open_to_others(&pool, 4, &retired);
	chunk = take(4096);
	strcpy(chunk, "parent");
	child = fork();
	if (!child) {
		wf_pool_forked(&pool);
		if (strcmp(chunk, "parent"))
			_exit(1);
		strcpy(chunk, "child");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_string_equal(chunk, "parent");
	wf_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_are_aligned_writable_and_apart),
		cmocka_unit_test(small_chunks_share_a_slab_until_it_is_full),
		cmocka_unit_test(a_spent_budget_and_one_too_small_are_told_apart),
		cmocka_unit_test(a_budget_below_a_slab_serves_no_small_chunk),
		cmocka_unit_test(a_large_slab_is_kept_for_the_next_of_about_its_size),
		cmocka_unit_test(memory_that_nobody_uses_goes_back_when_the_pool_shrinks),
		cmocka_unit_test(memory_that_nobody_uses_serves_any_size),
		cmocka_unit_test(memory_that_is_no_chunk_is_not_taken_back),
		cmocka_unit_test(a_region_is_the_whole_slab_of_a_range),
		cmocka_unit_test(peers_may_read_the_taken_chunk_alone),
		cmocka_unit_test(
			a_chunk_that_peers_may_read_is_nobody_s_before_its_keys_are_closed),
		cmocka_unit_test(a_waiter_gets_what_peers_could_read),
		cmocka_unit_test(a_guest_is_as_a_chunk_and_leaves_with_its_last_share),
		cmocka_unit_test(a_guest_makes_no_room_for_others_and_goes_with_the_pool),
		cmocka_unit_test(waiters_are_told_in_order_when_memory_comes_back),
		cmocka_unit_test(memory_that_came_back_before_the_wait_is_told),
		cmocka_unit_test(a_waiter_gets_what_unused_slabs_keep_registered),
		cmocka_unit_test(a_waiter_may_stop_another_while_it_is_told),
		cmocka_unit_test(threads_may_take_and_give_at_once),
		cmocka_unit_test(the_last_share_of_a_chunk_frees_it),
		cmocka_unit_test(
			importers_find_chunks_in_as_many_slabs_as_there_are_descriptors_for),
		cmocka_unit_test(a_file_that_might_shrink_is_not_mapped),
		cmocka_unit_test(a_limit_of_files_is_kept_and_does_not_kill),
		cmocka_unit_test(a_node_that_is_not_there_is_no_place),
		cmocka_unit_test(memory_lies_where_it_is_to_be_placed),
		cmocka_unit_test(memory_has_huge_pages_as_far_as_there_are_any),
		cmocka_unit_test(a_forked_child_writes_to_a_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
