/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/lease.h"
#include "link/sidedoor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOOK_NS WF_NS_PER_S /* between two looks at chunks that peers still hold */
#define FILES_SHARE 4       /* every fourth descriptor of the process may be the pool's */

struct lease {
	uint64_t offer; /* 0: the place is free */
	void *chunk;
	bool over;      /* the offer is over, and yet a peer looks at the chunk */
};

struct wf_shm_export {
	struct wf_engine *engine;
	struct wf_sealed shared;
	struct wf_lease_page *page;
	struct wf_timer timer;
	uint32_t free_count;
	_Atomic uint32_t held_count;
	struct lease leases[WF_LEASES_MAX];
	uint16_t free[WF_LEASES_MAX]; /* places, a stack */
};

/*
 * Find how many slabs may be files: none where the system promises no more memory than it has.
 * There memory of a file is refused only when it is touched, by killing the process; other memory
 * is refused before.
 */
static int find_files_max(size_t *count)
{
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	struct rlimit limit;
	char mode = '0';

	if (fd < 0)
		return -errno;
	(void)!read(fd, &mode, 1);
	(void)close(fd);
	if (mode == '2' || getrlimit(RLIMIT_NOFILE, &limit))
		*count = 0;
	else
		*count = limit.rlim_cur / FILES_SHARE;
	return 0;
}

int wf_shm_export_open(struct wf_engine *engine, struct wf_shm_export **shm_export,
		       struct wf_error *e)
{
	struct wf_shm_export *l = calloc(1, sizeof(*l));
	size_t files_max = 0;
	int err;

	if (!l)
		return wf_error_set(e, -ENOMEM, "leases: out of memory");
	err = find_files_max(&files_max);
	if (err) {
		(void)wf_error_set(e, err, "leases: /proc does not tell: %s", wf_error_name(err));
		goto free_export;
	}
	err = wf_sealed_open(&l->shared, "weft-leases", sizeof(*l->page), WF_SEALED_OWNER);
	if (err) {
		(void)wf_error_set(e, err, "leases: no shared page: %s", wf_error_name(err));
		goto free_export;
	}
	l->engine = engine;
	l->page = l->shared.base;
	l->free_count = WF_LEASES_MAX;
	for (uint32_t i = 0; i < WF_LEASES_MAX; i++)
		l->free[i] = (uint16_t)(WF_LEASES_MAX - 1 - i);
	wf_pool_open_to_others(&engine->pool, files_max, &l->page->retired);
	*shm_export = l;
	return 0;

free_export:
	free(l);
	return err;
}

void wf_shm_export_close(struct wf_shm_export *shm_export)
{
	if (!shm_export)
		return;
	wf_pool_open_to_others(&shm_export->engine->pool, 0, NULL);
	wf_timer_stop(&shm_export->engine->loop.timers, &shm_export->timer);
	wf_sealed_close(&shm_export->shared);
	free(shm_export);
}

int wf_shm_export_fd(const struct wf_shm_export *shm_export)
{
	return shm_export->shared.fd;
}

int wf_shm_export_lend(struct wf_shm_export *shm_export, struct wf_link *link, uint64_t offer,
		       const void *at, struct wf_body *body)
{
	struct wf_pool *pool = &shm_export->engine->pool;
	struct wf_pool_place where;
	struct lease *lease;
	uint32_t place;
	int err;

	if (!shm_export->free_count)
		return -ENOSPC;
	err = wf_pool_find(pool, at, &where);
	if (!err)
		err = wf_sidedoor_give_slab(link, where.number, where.fd);
	if (err)
		return err;
	place = shm_export->free[shm_export->free_count - 1];
	lease = &shm_export->leases[place];
	err = wf_pool_share(pool, at, body->bytes, &lease->chunk);
	if (err)
		return err;
	shm_export->free_count--;
	lease->offer = offer;
	atomic_store(&shm_export->page->offers[place], offer);
	body->file = where.number;
	body->offset = where.offset;
	body->place = place;
	return 0;
}

static bool is_looked_at(const struct wf_shm_export *l, uint32_t place)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			      .l_start = wf_lease_byte(place), .l_len = 1 };

	return fcntl(l->shared.fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

static void look(struct wf_timer *timer)
{
	wf_shm_export_look(WF_CONTAINER(timer, struct wf_shm_export, timer));
}

/* Free @place, whose offer is over, unless an importer still looks. */
static void settle(struct wf_shm_export *l, uint32_t place)
{
	struct lease *lease = &l->leases[place];
	bool looked_at = is_looked_at(l, place);

	if (looked_at && !lease->over) {
		l->held_count++;
		if (!l->timer.armed)
			wf_loop_timer(&l->engine->loop, &l->timer,
				      l->engine->loop.now_ns + LOOK_NS, look);
	} else if (!looked_at && lease->over) {
		l->held_count--;
	}
	lease->over = looked_at;
	if (looked_at)
		return;
	wf_pool_give(&l->engine->pool, lease->chunk);
	*lease = (struct lease){ 0 };
	l->free[l->free_count++] = (uint16_t)place;
}

void wf_shm_export_end(struct wf_shm_export *shm_export, uint32_t place)
{
	/*
	 * The offer goes before the question: an importer that locks after it finds nothing to look
	 * at.
	 */
	atomic_store(&shm_export->page->offers[place], 0);
	settle(shm_export, place);
}

void wf_shm_export_released(struct wf_shm_export *shm_export, uint64_t offer, uint32_t place)
{
	if (place < WF_LEASES_MAX && shm_export->leases[place].over &&
	    shm_export->leases[place].offer == offer)
		settle(shm_export, place);
}

void wf_shm_export_look(struct wf_shm_export *shm_export)
{
	for (uint32_t i = 0; shm_export->held_count && i < WF_LEASES_MAX; i++)
		if (shm_export->leases[i].over)
			settle(shm_export, i);
	if (shm_export->held_count)
		wf_loop_timer(&shm_export->engine->loop, &shm_export->timer,
			      shm_export->engine->loop.now_ns + LOOK_NS, look);
}

uint32_t wf_shm_export_held(const struct wf_shm_export *shm_export)
{
	return shm_export->held_count;
}

void wf_shm_export_forked(struct wf_shm_export *shm_export)
{
	wf_sealed_forked(&shm_export->shared);
}
