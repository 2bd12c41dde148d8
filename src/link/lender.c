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

struct wf_lender {
	struct wf_worker *worker;
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

int wf_lender_open(struct wf_worker *w, struct wf_lender **lender, struct wf_error *e)
{
	struct wf_lender *l = calloc(1, sizeof(*l));
	size_t files_max = 0;
	int err;

	if (!l)
		return wf_error_set(e, -ENOMEM, "leases: out of memory");
	err = find_files_max(&files_max);
	if (err) {
		(void)wf_error_set(e, err, "leases: /proc does not tell: %s", wf_error_name(err));
		goto free_lender;
	}
	err = wf_sealed_open(&l->shared, "weft-leases", sizeof(*l->page), WF_SEALED_OWNER);
	if (err) {
		(void)wf_error_set(e, err, "leases: no shared page: %s", wf_error_name(err));
		goto free_lender;
	}
	l->worker = w;
	l->page = l->shared.base;
	l->free_count = WF_LEASES_MAX;
	for (uint32_t i = 0; i < WF_LEASES_MAX; i++)
		l->free[i] = (uint16_t)(WF_LEASES_MAX - 1 - i);
	wf_pool_open_to_others(&w->pool, files_max, &l->page->retired);
	*lender = l;
	return 0;

free_lender:
	free(l);
	return err;
}

void wf_lender_close(struct wf_lender *lender)
{
	if (!lender)
		return;
	wf_pool_open_to_others(&lender->worker->pool, 0, NULL);
	wf_timer_stop(&lender->worker->loop.timers, &lender->timer);
	wf_sealed_close(&lender->shared);
	free(lender);
}

int wf_lender_fd(const struct wf_lender *lender)
{
	return lender->shared.fd;
}

int wf_lender_lend(struct wf_lender *lender, struct wf_link *link, uint64_t offer, const void *at,
		   struct wf_body *body)
{
	struct wf_pool *pool = &lender->worker->pool;
	struct wf_pool_place where;
	struct lease *lease;
	uint32_t place;
	int err;

	if (!lender->free_count)
		return -ENOSPC;
	err = wf_pool_find(pool, at, &where);
	if (!err)
		err = wf_sidedoor_give_slab(link, where.number, where.fd);
	if (err)
		return err;
	place = lender->free[lender->free_count - 1];
	lease = &lender->leases[place];
	err = wf_pool_share(pool, at, body->bytes, &lease->chunk);
	if (err)
		return err;
	lender->free_count--;
	lease->offer = offer;
	atomic_store(&lender->page->offers[place], offer);
	body->file = where.number;
	body->offset = where.offset;
	body->place = place;
	return 0;
}

static bool is_looked_at(const struct wf_lender *l, uint32_t place)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			      .l_start = wf_lease_byte(place), .l_len = 1 };

	return fcntl(l->shared.fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

static void look(struct wf_timer *timer)
{
	wf_lender_look(WF_CONTAINER(timer, struct wf_lender, timer));
}

/* Free @place, whose offer is over, unless a borrower still looks. */
static void settle(struct wf_lender *l, uint32_t place)
{
	struct lease *lease = &l->leases[place];
	bool looked_at = is_looked_at(l, place);

	if (looked_at && !lease->over) {
		l->held_count++;
		if (!l->timer.armed)
			wf_loop_timer(&l->worker->loop, &l->timer, l->worker->loop.now_ns + LOOK_NS, look);
	} else if (!looked_at && lease->over) {
		l->held_count--;
	}
	lease->over = looked_at;
	if (looked_at)
		return;
	wf_pool_give(&l->worker->pool, lease->chunk);
	*lease = (struct lease){ 0 };
	l->free[l->free_count++] = (uint16_t)place;
}

void wf_lender_end(struct wf_lender *lender, uint32_t place)
{
	/*
	 * The offer goes before the question: a borrower that locks after it finds nothing to look
	 * at.
	 */
	atomic_store(&lender->page->offers[place], 0);
	settle(lender, place);
}

void wf_lender_released(struct wf_lender *lender, uint64_t offer, uint32_t place)
{
	if (place < WF_LEASES_MAX && lender->leases[place].over &&
	    lender->leases[place].offer == offer)
		settle(lender, place);
}

void wf_lender_look(struct wf_lender *lender)
{
	for (uint32_t i = 0; lender->held_count && i < WF_LEASES_MAX; i++)
		if (lender->leases[i].over)
			settle(lender, i);
	if (lender->held_count)
		wf_loop_timer(&lender->worker->loop, &lender->timer, lender->worker->loop.now_ns + LOOK_NS,
				look);
}

uint32_t wf_lender_held(const struct wf_lender *lender)
{
	return lender->held_count;
}

void wf_lender_forked(struct wf_lender *lender)
{
	wf_sealed_forked(&lender->shared);
}
