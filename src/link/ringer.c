/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/pidfd.h"
#include "util/sealed.h"

struct wf_ringer {
	struct wf_sealed shared;
	const struct wf_doorbell_page *page;
	int bell_fd;
};

/* Is @fd an eventfd on which a write returns at once? */
static bool is_bell(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], kind[sizeof(want)];
	ssize_t length;
	int flags = fcntl(fd, F_GETFL);

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, kind, sizeof(kind));
	return length == (ssize_t)strlen(want) && !memcmp(kind, want, (size_t)length) &&
	       flags >= 0 && (flags & O_NONBLOCK);
}

static int take_page(int pid_fd, int theirs, struct wf_ringer *r)
{
	int fd = wf_pidfd_take(pid_fd, theirs), err;

	if (fd < 0)
		return fd;
	err = wf_sealed_map(&r->shared, fd, WF_DOORBELL_PAGE_BYTES, WF_SEALED_OWNER);
	if (!err)
		r->page = r->shared.base;
	return err;
}

static int take_both(int pid_fd, const struct wf_greet_host *theirs, struct wf_ringer *r)
{
	int err;

	r->bell_fd = wf_pidfd_take(pid_fd, theirs->bell_fd);
	if (r->bell_fd < 0)
		return r->bell_fd;
	err = is_bell(r->bell_fd) ? take_page(pid_fd, theirs->page_fd, r) : -EBADMSG;
	if (err)
		(void)close(r->bell_fd);
	return err;
}

int wf_ringer_open(const struct wf_greet_host *theirs, struct wf_ringer **ringer)
{
	struct wf_ringer *r;
	int err, pid_fd;

	if (theirs->bell_fd < 0 || theirs->page_fd < 0)
		return -ENOENT;
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	pid_fd = wf_pidfd_open(theirs->pid);
	if (pid_fd < 0) {
		err = pid_fd;
		goto free_ringer;
	}
	err = take_both(pid_fd, theirs, r);
	(void)close(pid_fd);
	if (err)
		goto free_ringer;

	*ringer = r;
	return 0;

free_ringer:
	free(r);
	return err;
}

void wf_ringer_close(struct wf_ringer *ringer)
{
	if (!ringer)
		return;
	wf_sealed_close(&ringer->shared);
	(void)close(ringer->bell_fd);
	free(ringer);
}

void wf_ringer_ring(struct wf_ringer *ringer)
{
	uint64_t one = 1;

	/* After what was posted: pairs with the fence of wf_doorbell_sleep. */
	atomic_thread_fence(memory_order_seq_cst);
	/* The peer's word, used for nothing but this question. */
	if (!atomic_load_explicit(&ringer->page->sleeping, memory_order_relaxed))
		return;
	/* -EAGAIN: it has been rung 2^64 times, which will do. */
	(void)!write(ringer->bell_fd, &one, sizeof(one));
}
