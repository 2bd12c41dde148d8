/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/lease.h"
#include "link/sidedoor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/fork.h"

#define SLABS_MAX 64        /* slabs of one peer; not tuned yet */
#define LOOK_NS WF_NS_PER_S /* time until memory that the peer has given up is given up here, too */

struct wf_shm_imported {
	struct wf_list node; /* place in importer->slabs, the slab used last at the end */
	struct wf_sealed file;
	uint32_t holds;
};

struct wf_shm_import {
	struct wf_list node; /* place in engine->shm_imports */
	struct wf_engine *engine;
	struct wf_link *link; /* NULL: the link is over */
	unsigned refs;       /* by the link while the peer lives, and by each hold */
	int lock_fd;
	uint16_t looks[WF_LEASES_MAX]; /* looks at each place: one lock serves all of them */
	struct wf_sealed shared;
	const struct wf_lease_page *page;
	uint64_t retired;    /* the page's count of retired files, as last seen */
	struct wf_list slabs;
	uint32_t slab_count;
	struct wf_timer timer;
};

/*
 * Open the file of @fd anew.  Locks belong to a description, and @fd is a copy of the peer's own.
 */
static int open_again(int fd)
{
	char path[32];
	int again;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

static int open_page(struct wf_shm_import *b, struct wf_link *link)
{
	int fd = wf_sidedoor_take_leases(link), err;

	if (fd < 0)
		return fd;
	b->lock_fd = open_again(fd);
	if (b->lock_fd < 0) {
		(void)close(fd);
		return b->lock_fd;
	}
	err = wf_sealed_map(&b->shared, fd, sizeof(*b->page), WF_SEALED_OWNER);
	if (err) {
		(void)close(b->lock_fd);
		return err;
	}
	b->page = b->shared.base;
	return 0;
}

/* Find the importer of @link; opened when it is first asked for. */
static int find_import(struct wf_link *link, struct wf_shm_import **shm_import)
{
	struct wf_shm_import *b;
	int err;

	if (link->side.shm_import) {
		*shm_import = link->side.shm_import;
		return 0;
	}
	if (!link->side.gate_open)
		return -ENOENT;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	err = open_page(b, link);
	if (err) {
		free(b);
		return err;
	}
	b->engine = link->engine;
	b->link = link;
	b->refs = 1;
	b->retired = atomic_load(&b->page->retired);
	wf_list_init(&b->slabs);
	wf_fork_hold();
	wf_list_append(&b->engine->shm_imports, &b->node);
	wf_fork_let();
	link->side.shm_import = b;
	*shm_import = b;
	return 0;
}

static void drop_slab(struct wf_shm_import *b, struct wf_shm_imported *slab)
{
	wf_list_remove(&slab->node);
	b->slab_count--;
	wf_sealed_close(&slab->file);
	free(slab);
}

static void put(struct wf_shm_import *shm_import)
{
	struct wf_list *node;

	if (--shm_import->refs)
		return;
	while ((node = wf_list_first(&shm_import->slabs)))
		drop_slab(shm_import, WF_CONTAINER(node, struct wf_shm_imported, node));
	wf_timer_stop(&shm_import->engine->loop.timers, &shm_import->timer);
	wf_fork_hold();
	wf_list_remove(&shm_import->node);
	wf_fork_let();
	if (shm_import->lock_fd >= 0)
		(void)close(shm_import->lock_fd);
	wf_sealed_close(&shm_import->shared);
	free(shm_import);
}

void wf_shm_import_part(struct wf_shm_import *shm_import)
{
	if (!shm_import)
		return;
	shm_import->link = NULL;
	put(shm_import);
}

/*
 * Give up @slab; the peer sends it again when it next lends of it.  False: the peer can't be told,
 * so the slab stays.
 */
static bool give_up_slab(struct wf_shm_import *b, struct wf_shm_imported *slab)
{
	if (b->link && wf_sidedoor_drop_slab(b->link, slab->file.number))
		return false;
	drop_slab(b, slab);
	return true;
}

/*
 * Drop slabs if the peer has retired any.  It does not say which: a slab that is still there is
 * soon mapped again.
 */
static void drop_retired(struct wf_shm_import *b)
{
	uint64_t retired = atomic_load(&b->page->retired);

	if (retired == b->retired)
		return;
	b->retired = retired;
	WF_LIST_EACH(node, &b->slabs) {
		struct wf_shm_imported *slab = WF_CONTAINER(node, struct wf_shm_imported, node);

		if (!slab->holds)
			(void)give_up_slab(b, slab);
	}
}

static void look(struct wf_timer *timer)
{
	struct wf_shm_import *b = WF_CONTAINER(timer, struct wf_shm_import, timer);

	drop_retired(b);
	if (b->slab_count)
		wf_loop_timer(&b->engine->loop, timer, b->engine->loop.now_ns + LOOK_NS, look);
}

/* Make room for another slab.  -ENOSPC: all are looked at. */
static int make_room(struct wf_shm_import *b)
{
	if (b->slab_count < SLABS_MAX)
		return 0;
	WF_LIST_EACH(node, &b->slabs) {
		struct wf_shm_imported *slab = WF_CONTAINER(node, struct wf_shm_imported, node);

		if (!slab->holds && give_up_slab(b, slab))
			return 0;
	}
	return -ENOSPC;
}

static int map_slab(struct wf_shm_import *b, struct wf_link *link, const struct wf_body *body,
		    struct wf_shm_imported **slab)
{
	struct wf_shm_imported *fresh;
	int fd, err = make_room(b);

	if (err)
		return err;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	fd = wf_sidedoor_take_slab(link, body->file);
	err = fd < 0 ? fd : wf_sealed_map(&fresh->file, fd, body->offset + body->bytes,
					  WF_SEALED_OWNER);
	if (!err && fresh->file.number != body->file) {
		wf_sealed_close(&fresh->file);
		err = -EBADMSG;
	}
	if (err) {
		free(fresh);
		return err;
	}
	wf_list_append(&b->slabs, &fresh->node);
	b->slab_count++;
	if (!b->timer.armed)
		wf_loop_timer(&b->engine->loop, &b->timer, b->engine->loop.now_ns + LOOK_NS, look);
	*slab = fresh;
	return 0;
}

static int find_slab(struct wf_shm_import *b, struct wf_link *link, const struct wf_body *body,
		     struct wf_shm_imported **slab)
{
	WF_LIST_EACH(node, &b->slabs) {
		struct wf_shm_imported *known = WF_CONTAINER(node, struct wf_shm_imported, node);

		if (known->file.number != body->file)
			continue;
		if (body->offset + body->bytes > known->file.bytes)
			return -EBADMSG;
		wf_list_remove(&known->node);
		wf_list_append(&b->slabs, &known->node);
		*slab = known;
		return 0;
	}
	return map_slab(b, link, body, slab);
}

/* Set the lock to @type, F_RDLCK or F_UNLCK. */
static int set_lock(const struct wf_shm_import *b, uint32_t place, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET,
			      .l_start = wf_lease_byte(place), .l_len = 1 };

	return fcntl(b->lock_fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

/*
 * Lock @place.  An offer may be looked at twice: by a receive that gives its tensor back, and by
 * the next that gets it.
 */
static int begin_look(struct wf_shm_import *b, uint32_t place)
{
	int err = b->looks[place] ? 0 : set_lock(b, place, F_RDLCK);

	b->looks[place] += !err;
	return err;
}

static void end_look(struct wf_shm_import *b, uint32_t place)
{
	if (!--b->looks[place])
		(void)set_lock(b, place, F_UNLCK);
}

int wf_shm_import_hold(struct wf_link *link, const struct wf_body *body, struct wf_lease_hold *hold)
{
	struct wf_shm_imported *slab;
	struct wf_shm_import *b;
	int err = find_import(link, &b);

	if (err)
		return err;
	if (body->place >= WF_LEASES_MAX)
		return -EBADMSG;
	drop_retired(b);
	err = begin_look(b, body->place);
	if (err)
		return err;
	/* The check follows the lock: from now on the exporter sees that we look. */
	err = atomic_load(&b->page->offers[body->place]) == body->offer ? 0 : -ESTALE;
	if (!err)
		err = find_slab(b, link, body, &slab);
	if (err) {
		end_look(b, body->place);
		return err;
	}
	b->refs++;
	slab->holds++;
	*hold = (struct wf_lease_hold){ b, slab, body->place,
					(char *)slab->file.base + body->offset };
	return 0;
}

void wf_shm_import_let(struct wf_lease_hold *hold)
{
	hold->slab->holds--;
	end_look(hold->shm_import, hold->place);
	put(hold->shm_import);
	*hold = (struct wf_lease_hold){ 0 };
}

bool wf_shm_import_is_of(const struct wf_lease_hold *hold, const struct wf_link *link)
{
	return hold->shm_import == link->side.shm_import;
}

void wf_shm_imports_forked(struct wf_list *shm_imports)
{
	WF_LIST_EACH(node, shm_imports) {
		struct wf_shm_import *b = WF_CONTAINER(node, struct wf_shm_import, node);

		(void)close(b->lock_fd);
		b->lock_fd = -1;
	}
}
