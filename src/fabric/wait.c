/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Whoever sleeps between two hears of fewer completions; not tuned. */
#define HEARD_MAX 4

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

static int watch(const struct wf_waitset *w, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | (w->edge ? EPOLLET : 0) };

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int wf_wait_add(struct wf_rail *rail, struct fid *queue, struct wf_error *e)
{
	struct wf_waitset *w = &rail->wait;
	struct fid **fids;
	int fd, err;

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
	err = watch(w, fd);
	if (err)
		return wf_error_set(e, err, "cannot wait on %s: %s", rail->caps.provider,
				    wf_error_name(err));
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

/*
 * @count completions were found in @cq without a sleep.  A queue that is read all the time need
 * not be watched: every packet for it wakes who watches it, which takes a twentieth of the time
 * of who sends a long body within this host.
 */
void wf_wait_heard(struct wf_rail *rail, struct wf_cq *cq, int count)
{
	int fd;

	if (rail->wait.epoll < 0 || cq->unwatched || !count)
		return;
	cq->heard += (uint32_t)count;
	if (cq->heard >= HEARD_MAX && !fi_control(&cq->fid->fid, FI_GETWAIT, &fd))
		cq->unwatched = !epoll_ctl(rail->wait.epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Before a sleep: watch every queue.  -errno: one can't be now. */
int wf_wait_again(struct wf_rail *rail)
{
	WF_LIST_EACH(node, &rail->cqs) {
		struct wf_cq *cq = WF_CONTAINER(node, struct wf_cq, node);
		int fd, err;

		cq->heard = 0;
		if (!cq->unwatched)
			continue;
		err = fi_control(&cq->fid->fid, FI_GETWAIT, &fd);
		if (!err)
			err = watch(&rail->wait, fd);
		if (err)
			return err;
		cq->unwatched = false;
	}
	return 0;
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
