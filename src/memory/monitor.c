/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/thread.h"

#define LOOKS 3 /* at the list of mappings, which may lack one while another thread maps memory */

/*
 * EXACT_ADDRESS is only a proof of Linux 5.18, which does not move pinned pages away from the
 * parent at a fork, as kernels before 5.12 did.
 */
#define FEATURES                                                                           \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | \
	 UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EXACT_ADDRESS)

#define EVENTS_MAX 16 /* events of one read */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER; /* held while opening and closing */
static unsigned users;
static pthread_t thread;
static int stop_fd = -1;
static _Atomic uint64_t changes;

/*
 * Under @lock nothing may be unmapped or freed: the caller would wait for the monitor's thread, and
 * that for the lock.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_list watches;
static int fd = -1;
static void *page; /* a page of our own that is watched, for settled() */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int add_range(uintptr_t from, uintptr_t to)
{
	struct uffdio_register r = {
		.range = { from, to - from },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &r) ? -errno : 0;
}

static void remove_range(uintptr_t from, uintptr_t to)
{
	struct uffdio_range range = { from, to - from };

	/* Memory that is gone, or another's by now, need not be removed. */
	(void)ioctl(fd, UFFDIO_UNREGISTER, &range);
}

/* Remove what no watch covers of a range. */
static void let_go(uintptr_t from, uintptr_t to)
{
	while (from < to) {
		uintptr_t end = to, covered = 0;

		WF_LIST_EACH(at, &watches) {
			const struct wf_monitor_watch *w =
				WF_CONTAINER(at, struct wf_monitor_watch, node);

			if (w->from <= from && from < w->to)
				covered = WF_MAX(covered, w->to);
			else if (w->from > from)
				end = WF_MIN(end, w->from);
		}
		if (!covered)
			remove_range(from, end);
		from = covered ? covered : end;
	}
}

/*
 * Has every change that began before this call been read?  The kernel counts changes from before
 * an address becomes free until their event has been read, and meanwhile refuses this call.
 */
static bool is_settled(void)
{
	struct uffdio_writeprotect none = { .range = { (uintptr_t)page, page_bytes() }, .mode = 0 };

	return !ioctl(fd, UFFDIO_WRITEPROTECT, &none);
}

static void mark(uintptr_t from, uintptr_t to, bool unmapped)
{
	WF_LIST_EACH(at, &watches) {
		struct wf_monitor_watch *w = WF_CONTAINER(at, struct wf_monitor_watch, node);

		if (from >= w->to || to <= w->from)
			continue;
		if (unmapped) {
			w->gone_from = WF_MIN(w->gone_from, WF_MAX(from, w->from));
			w->gone_to = WF_MAX(w->gone_to, WF_MIN(to, w->to));
		}
		atomic_store(&w->changed, true);
		atomic_fetch_add(&changes, 1);
	}
}

static void take_event(const struct uffd_msg *m)
{
	switch (m->event) {
	case UFFD_EVENT_UNMAP:
		mark(m->arg.remove.start, m->arg.remove.end, true);
		break;
	case UFFD_EVENT_REMOVE:
		mark(m->arg.remove.start, m->arg.remove.end, false);
		break;
	case UFFD_EVENT_REMAP:
		mark(m->arg.remap.from, m->arg.remap.from + m->arg.remap.len, true);
		remove_range(m->arg.remap.to, m->arg.remap.to + m->arg.remap.len);
		break;
	}
}

/* Read and mark under one hold of the lock: a change that counts as read is marked. */
static void take_events(void)
{
	struct uffd_msg all[EVENTS_MAX];
	ssize_t count;

	pthread_mutex_lock(&lock);
	while ((count = read(fd, all, sizeof(all))) > 0)
		for (size_t i = 0; i < (size_t)count / sizeof(all[0]); i++)
			take_event(&all[i]);
	pthread_mutex_unlock(&lock);
}

static void *run(void *arg)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };

	while (!fds[1].revents)
		if (poll(fds, WF_COUNT(fds), -1) > 0 && fds[0].revents)
			take_events();
	return arg;
}

/* Open the descriptor: a program without rights may have one that takes no faults of the kernel. */
static int open_fd(struct wf_error *e)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	int err;

	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return wf_error_set(e, -errno, "the system gives no userfaultfd: %s",
				    wf_error_name(-errno));
	if (!ioctl(fd, UFFDIO_API, &api))
		return 0;
	err = -errno;
	(void)close(fd);
	fd = -1;
	return wf_error_set(e, err, "userfaultfd does not tell of changes here, as that of Linux 5.18 "
			    "does: %s", wf_error_name(err));
}

static int open_page(struct wf_error *e)
{
	int err;

	page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return wf_error_set(e, -ENOMEM, "no memory for a monitor");
	err = add_range((uintptr_t)page, (uintptr_t)page + page_bytes());
	if (!err && is_settled())
		return 0;
	/* A page that is watched can't be unmapped while nobody reads the event. */
	remove_range((uintptr_t)page, (uintptr_t)page + page_bytes());
	(void)munmap(page, page_bytes());
	return wf_error_set(e, err ? err : -ENOSYS, "userfaultfd can't write-protect memory here");
}

static int start(struct wf_error *e)
{
	int err = open_fd(e);

	if (err)
		return err;
	err = open_page(e);
	if (err)
		goto close_fd;
	stop_fd = eventfd(0, EFD_CLOEXEC);
	err = stop_fd < 0 ? -errno : 0;
	if (err)
		goto unmap_page;
	err = wf_thread_start(&thread, "weft monitor", run, NULL);
	if (!err)
		return 0;
	(void)close(stop_fd);
unmap_page:
	wf_error_set(e, err, "no thread for a monitor: %s", wf_error_name(err));
	remove_range((uintptr_t)page, (uintptr_t)page + page_bytes());
	(void)munmap(page, page_bytes());
close_fd:
	(void)close(fd);
	fd = stop_fd = -1;
	return err;
}

int wf_monitor_open(struct wf_error *e)
{
	int err = 0;

	pthread_mutex_lock(&open_lock);
	if (!users) {
		wf_list_init(&watches);
		err = start(e);
	}
	users += !err;
	pthread_mutex_unlock(&open_lock);
	return err;
}

void wf_monitor_close(void)
{
	pthread_mutex_lock(&open_lock);
	if (!--users) {
		(void)eventfd_write(stop_fd, 1);
		pthread_join(thread, NULL);
		remove_range((uintptr_t)page, (uintptr_t)page + page_bytes());
		/* Threads that still wait for an event to be read go on when this closes. */
		(void)close(fd);
		(void)close(stop_fd);
		(void)munmap(page, page_bytes());
		fd = stop_fd = -1;
	}
	pthread_mutex_unlock(&open_lock);
}

/* Is all of a range private anonymous memory, of no file? */
static bool is_plain(uintptr_t from, uintptr_t to)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t start, end;
	uint64_t inode;
	char rights[5], *line = NULL;
	size_t room = 0;

	while (maps && from < to && getline(&line, &room, maps) > 0) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %" SCNu64, &start, &end, rights,
			   &inode) != 4)
			break;
		if (end <= from)
			continue;
		if (start > from || rights[3] != 'p' || inode)
			break;
		from = end;
	}
	free(line);
	if (maps)
		(void)fclose(maps);
	return from >= to;
}

int wf_monitor_watch(struct wf_monitor_watch *watch, const void *at, size_t bytes)
{
	uintptr_t mask = page_bytes() - 1;
	bool plain = false;
	int err;

	*watch = (struct wf_monitor_watch){
		.from = (uintptr_t)at & ~mask,
		.to = ((uintptr_t)at + bytes + mask) & ~mask,
	};
	watch->gone_from = watch->to;
	watch->gone_to = watch->from;
	wf_list_init(&watch->node);
	for (int i = 0; i < LOOKS && !plain; i++)
		plain = bytes && is_plain(watch->from, watch->to);
	if (!plain)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&lock);
	/* Listed first, so that the first change is marked. */
	wf_list_append(&watches, &watch->node);
	err = add_range(watch->from, watch->to);
	/* A change from before could be of an earlier mapping, and the pages not be there yet. */
	if (!err && !is_settled())
		err = -EAGAIN;
	if (err) {
		wf_list_remove(&watch->node);
		/* Nothing was begun of a range that another watches; Linux to 6.16 would end that here. */
		if (err != -EBUSY)
			let_go(watch->from, watch->to);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void wf_monitor_unwatch(struct wf_monitor_watch *watch)
{
	pthread_mutex_lock(&lock);
	wf_list_remove(&watch->node);
	/* Memory that was unmapped may be the program's own to watch by now. */
	let_go(watch->from, watch->gone_from);
	if (watch->gone_from < watch->gone_to)
		let_go(watch->gone_to, watch->to);
	pthread_mutex_unlock(&lock);
}

int wf_monitor_check(struct wf_monitor_watch *watch)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!is_settled())
		err = -EAGAIN;
	if (atomic_load(&watch->changed))
		err = -ESTALE;
	pthread_mutex_unlock(&lock);
	return err;
}

uint64_t wf_monitor_changes(void)
{
	return atomic_load_explicit(&changes, memory_order_relaxed);
}

void wf_monitor_forked(void)
{
	/* Another thread of the parent may have had them, while there was no user yet or any more. */
	pthread_mutex_init(&open_lock, NULL);
	pthread_mutex_init(&lock, NULL);
	if (!users)
		return;
	users = 0;
	(void)close(fd);
	(void)close(stop_fd);
	fd = stop_fd = -1;
}
