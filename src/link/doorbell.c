/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

struct wf_doorbell {
	struct wf_doorbell_page *page;
	int bell_fd, page_fd;
};

/* One page that nobody else can write to or cut short. */
static int open_page(struct wf_doorbell *b)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	void *page;
	int fd = memfd_create("weft-doorbell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, WF_DOORBELL_PAGE_BYTES)) {
		err = -errno;
		goto close_fd;
	}
	page = mmap(NULL, WF_DOORBELL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		err = -errno;
		goto close_fd;
	}
	/* After our own map, which future-write leaves alone. */
	if (fcntl(fd, F_ADD_SEALS, seals)) {
		err = -errno;
		goto unmap_page;
	}

	b->page = page;
	b->page_fd = fd;
	return 0;

unmap_page:
	(void)munmap(page, WF_DOORBELL_PAGE_BYTES);
close_fd:
	(void)close(fd);
	return err;
}

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
	err = open_page(b);
	if (err) {
		(void)wf_error_set(e, err, "doorbell: no shared page: %s", wf_error_name(err));
		goto close_bell;
	}

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
	(void)munmap(bell->page, WF_DOORBELL_PAGE_BYTES);
	(void)close(bell->page_fd);
	(void)close(bell->bell_fd);
	free(bell);
}

void wf_doorbell_describe(const struct wf_doorbell *bell, struct wf_greet_host *facts)
{
	facts->bell_fd = bell->bell_fd;
	facts->page_fd = bell->page_fd;
}

int wf_doorbell_fd(const struct wf_doorbell *bell)
{
	return bell->bell_fd;
}

void wf_doorbell_sleep(struct wf_doorbell *bell)
{
	atomic_store_explicit(&bell->page->sleeping, 1, memory_order_relaxed);
	/* Before the last look at the rail: pairs with the fence of wf_ringer_ring. */
	atomic_thread_fence(memory_order_seq_cst);
}

void wf_doorbell_wake(struct wf_doorbell *bell)
{
	uint64_t rung;

	atomic_store_explicit(&bell->page->sleeping, 0, memory_order_relaxed);
	/* One who rings after this wakes the next sleep for nothing, which is harmless. */
	(void)!read(bell->bell_fd, &rung, sizeof(rung));
}

void wf_doorbell_forked(struct wf_doorbell *bell)
{
	(void)close(bell->page_fd);
	(void)close(bell->bell_fd);
}
