/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int wf_wait_open(struct wf_rail *rail, struct wf_error *e)
{
	struct wf_waitset *w = &rail->wait;
	int err;

	*w = (struct wf_waitset){ .epoll = -1, .edge = rail->caps.wait == WF_WAIT_EDGE };
	if (rail->caps.wait != WF_WAIT_EDGE && rail->caps.wait != WF_WAIT_LEVEL)
		return 0;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll >= 0)
		return 0;
	/* Never without: who sleeps on such a rail would not be woken. */
	err = -errno;
	return wf_error_set(e, err, "no descriptor to wait on %s: %s", rail->caps.provider,
			    wf_error_name(err));
}

void wf_wait_close(struct wf_rail *rail)
{
	struct wf_waitset *w = &rail->wait;

	if (w->epoll >= 0)
		close(w->epoll);
	free(w->fids);
	*w = (struct wf_waitset){ .epoll = -1 };
}

/* A provider whose queues have no descriptors after all is polled. */
static void do_without(struct wf_rail *rail)
{
	wf_wait_close(rail);
	rail->caps.wait = WF_WAIT_NONE;
}

int wf_wait_add(struct wf_rail *rail, struct fid *queue, struct wf_error *e)
{
	struct wf_waitset *w = &rail->wait;
	struct epoll_event event = { .events = EPOLLIN | (w->edge ? EPOLLET : 0) };
	struct fid **fids;
	int fd;

	if (w->epoll < 0)
		return 0;
	if (fi_control(queue, FI_GETWAIT, &fd)) {
		do_without(rail);
		return 0;
	}
	if (w->count == w->size) {
		fids = realloc(w->fids, (w->size * 2 + 8) * sizeof(*fids));
		if (!fids)
			return wf_error_set(e, -ENOMEM, "no memory for a wait set");
		w->fids = fids;
		w->size = w->size * 2 + 8;
	}
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event))
		return wf_error_set(e, -errno, "cannot wait on %s: %s", rail->caps.provider,
				    wf_error_name(-errno));
	w->fids[w->count++] = queue;
	return 0;
}

void wf_wait_remove(struct wf_rail *rail, struct fid *queue)
{
	struct wf_waitset *w = &rail->wait;
	size_t i;
	int fd;

	for (i = 0; i < w->count; i++) {
		if (w->fids[i] != queue)
			continue;
		w->fids[i] = w->fids[--w->count];
		if (!fi_control(queue, FI_GETWAIT, &fd))
			epoll_ctl(w->epoll, EPOLL_CTL_DEL, fd, NULL);
		return;
	}
}

/* Edge-triggered descriptors need no asking: whoever drained them will hear. */
int wf_wait_try(struct wf_rail *rail)
{
	struct wf_waitset *w = &rail->wait;

	if (w->epoll < 0 || w->edge)
		return 0;
	return WF_RAIL_CALL(rail, fi_trywait, rail->fabric, w->fids, (int)w->count) ? -EAGAIN : 0;
}

/* Take the edges, so that the outer descriptor is quiet until there are new ones. */
void wf_wait_consume(struct wf_rail *rail)
{
	struct epoll_event events[16];

	if (rail->wait.epoll < 0 || !rail->wait.edge)
		return;
	while (epoll_wait(rail->wait.epoll, events, WF_COUNT(events), 0) == WF_COUNT(events))
		;
}
