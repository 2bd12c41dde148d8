/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/doorbell.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/sealed.h"

struct wf_doorbell {
	struct wf_sealed shared; /* a page that no other process can write to or cut short */
	struct wf_doorbell_page *page;
	int bell_fd;
};

int wf_doorbell_open(struct wf_doorbell **bell, struct wf_error *e)
{
	struct wf_doorbell *b = malloc(sizeof(*b));
	int err;

	if (!b)
		return wf_error_set(e, -ENOMEM, "doorbell: out of memory");
	b->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->bell_fd < 0) {
		err = wf_error_set(e, -errno, "doorbell: no event descriptor: %s",
				   wf_error_name(-errno));
		goto free_bell;
	}
	err = wf_sealed_open(&b->shared, "weft-doorbell", WF_DOORBELL_PAGE_BYTES,
			     WF_SEALED_OWNER);
	if (err) {
		(void)wf_error_set(e, err, "doorbell: no shared page: %s", wf_error_name(err));
		goto close_bell;
	}
	b->page = b->shared.base;

	*bell = b;
	return 0;

close_bell:
	(void)close(b->bell_fd);
free_bell:
	free(b);
	return err;
}

void wf_doorbell_close(struct wf_doorbell *bell)
{
	if (!bell)
		return;
	wf_sealed_close(&bell->shared);
	(void)close(bell->bell_fd);
	free(bell);
}

void wf_doorbell_fds(const struct wf_doorbell *bell, int fds[2])
{
	fds[0] = bell->bell_fd;
	fds[1] = bell->shared.fd;
}

int wf_doorbell_fd(const struct wf_doorbell *bell)
{
	return bell->bell_fd;
}

void wf_doorbell_sleep(struct wf_doorbell *bell)
{
	atomic_store_explicit(&bell->page->sleeping, 1, memory_order_relaxed);
	/*
	 * The fence comes before the last look at the rail; it pairs with that of
	 * wf_remote_doorbell_ring().
	 */
	atomic_thread_fence(memory_order_seq_cst);
}

void wf_doorbell_wake(struct wf_doorbell *bell)
{
	uint64_t rung;

	atomic_store_explicit(&bell->page->sleeping, 0, memory_order_relaxed);
	/* A ring after this store wakes the next sleep for nothing, which is harmless. */
	(void)!read(bell->bell_fd, &rung, sizeof(rung));
}

void wf_doorbell_forked(struct wf_doorbell *bell)
{
	wf_sealed_forked(&bell->shared);
	(void)close(bell->bell_fd);
}
