/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/sealed.h"

struct wf_remote_doorbell {
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

int wf_remote_doorbell_open(int bell_fd, int page_fd, struct wf_remote_doorbell **remote_doorbell)
{
	struct wf_remote_doorbell *r = malloc(sizeof(*r));
	int err = r ? 0 : -ENOMEM;

	if (!err && !is_bell(bell_fd))
		err = -EBADMSG;
	if (err) {
		(void)close(page_fd);
		goto close_bell;
	}
	err = wf_sealed_map(&r->shared, page_fd, WF_DOORBELL_PAGE_BYTES, WF_SEALED_OWNER);
	if (err)
		goto close_bell;
	r->page = r->shared.base;
	r->bell_fd = bell_fd;

	*remote_doorbell = r;
	return 0;

close_bell:
	(void)close(bell_fd);
	free(r);
	return err;
}

void wf_remote_doorbell_close(struct wf_remote_doorbell *remote_doorbell)
{
	if (!remote_doorbell)
		return;
	wf_sealed_close(&remote_doorbell->shared);
	(void)close(remote_doorbell->bell_fd);
	free(remote_doorbell);
}

void wf_remote_doorbell_ring(struct wf_remote_doorbell *remote_doorbell)
{
	uint64_t one = 1;

	/* The fence comes after the post; it pairs with that of wf_doorbell_sleep(). */
	atomic_thread_fence(memory_order_seq_cst);
	/* The flag is the peer's word, used for nothing but this question. */
	if (!atomic_load_explicit(&remote_doorbell->page->sleeping, memory_order_relaxed))
		return;
	/* -EAGAIN: the bell has been rung 2^64 times, which will do. */
	(void)!write(remote_doorbell->bell_fd, &one, sizeof(one));
}
