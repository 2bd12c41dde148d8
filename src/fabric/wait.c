/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * News of a rail's queues: the descriptors of all queues are in one epoll.
 *
 * A queue with much traffic is warm: it is read all the time, and is not even watched until the
 * next sleep.  A queue in which several looks in a row have found nothing is cold, if all its
 * descriptors are known, and is read again only after a descriptor has news.  The more queues are
 * warm the fewer looks those are: each look reads all of them, by a system call for each.
 */
#include "fabric/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Completions without a sleep after which a queue is not watched; not tuned. */
#define HEARD_MAX 4

/* Reads of warm queues that find nothing, of all of them, until a queue is cold; not tuned. */
#define EMPTY_MAX 256

#define QUEUES_MAX (1u << 20)

int wf_wait_open(struct wf_rail *rail, struct wf_error *e)
{
	struct wf_wait_set *w = &rail->wait;
	enum wf_provider_wait how = rail->caps.wait;
	int err;

	*w = (struct wf_wait_set){
		.epoll = -1,
		.eq_fd = -1,
		.edge = how == WF_WAIT_EDGE || how == WF_WAIT_POLLFD,
		.pollfd = how == WF_WAIT_POLLFD,
	};
	wf_table_init(&w->queues, QUEUES_MAX);
	if (!w->edge && how != WF_WAIT_LEVEL)
		return 0;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll >= 0)
		return 0;
	/* Without the descriptor the rail is not opened: a sleep on it would have no end. */
	err = -errno;
	return wf_error_set(e, err, "no descriptor to wait on %s: %s", rail->caps.provider,
			    wf_error_name(err));
}

void wf_wait_close(struct wf_rail *rail)
{
	struct wf_wait_set *w = &rail->wait;

	if (w->epoll >= 0)
		close(w->epoll);
	wf_table_fini(&w->queues);
	free(w->fids);
	*w = (struct wf_wait_set){ .epoll = -1, .eq_fd = -1 };
}

/* A provider whose queues have no descriptors after all is polled. */
static void do_without(struct wf_rail *rail)
{
	wf_wait_close(rail);
	rail->caps.wait = WF_WAIT_NONE;
	WF_LIST_EACH(node, &rail->queues.all) {
		struct wf_cq *cq = WF_CONTAINER(node, struct wf_cq, node);

		cq->id = 0;
		wf_cq_warm(rail, cq);
	}
}

static int watch(const struct wf_wait_set *w, int fd, uint64_t id)
{
	/* EPOLLOUT: the edge of a socket that was full.  A new socket has it at once: no harm. */
	struct epoll_event event = {
		.events = EPOLLIN | (w->edge ? EPOLLET : 0) | (w->pollfd ? EPOLLOUT : 0),
		.data.u64 = id,
	};

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) && errno != EEXIST ? -errno : 0;
}

/* Note @queue for fi_trywait. */
static int note(struct wf_wait_set *w, struct fid *queue, struct wf_error *e)
{
	struct fid **fids;

	if (w->edge)
		return 0;
	if (w->count == w->size) {
		fids = realloc(w->fids, (w->size * 2 + 8) * sizeof(*fids));
		if (!fids)
			return wf_error_set(e, -ENOMEM, "no memory for a wait set");
		w->fids = fids;
		w->size = w->size * 2 + 8;
	}
	w->fids[w->count++] = queue;
	return 0;
}

static void forget(struct wf_wait_set *w, const struct fid *queue)
{
	for (size_t i = 0; i < w->count; i++) {
		if (w->fids[i] != queue)
			continue;
		w->fids[i] = w->fids[--w->count];
		return;
	}
}

static int cannot_wait(const struct wf_rail *rail, int err, struct wf_error *e)
{
	return wf_error_set(e, err, "cannot wait on %s: %s", rail->caps.provider,
			    wf_error_name(err));
}

int wf_wait_add_eq(struct wf_rail *rail, struct wf_error *e)
{
	int fd, err;

	if (rail->wait.epoll < 0)
		return 0;
	if (fi_control(&rail->conns.eq->fid, FI_GETWAIT, &fd)) {
		do_without(rail);
		return 0;
	}
	err = watch(&rail->wait, fd, 0);
	rail->wait.eq_fd = err ? -1 : fd;
	return err ? cannot_wait(rail, err, e) : note(&rail->wait, &rail->conns.eq->fid, e);
}

/* Make room for @count descriptors of @cq. */
static int make_room(struct wf_cq *cq, size_t count)
{
	struct pollfd *fds = realloc(cq->fds.fd, count * sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	cq->fds.fd = fds;
	cq->fds_size = count;
	return 0;
}

/* Ask for the descriptors of @cq.  @changed: they are not the ones of before. */
static int ask(const struct wf_wait_set *w, struct wf_cq *cq, bool *changed)
{
	struct fi_wait_pollfd now;
	int rc;

	*changed = false;
	if (!w->pollfd) {
		if (!cq->fds_size && make_room(cq, 1))
			return -ENOMEM;
		cq->fds.nfds = 1;
		return fi_control(&cq->fid->fid, FI_GETWAIT, &cq->fds.fd->fd);
	}
	for (;;) {
		now = (struct fi_wait_pollfd){ .nfds = cq->fds_size, .fd = cq->fds.fd };
		rc = fi_control(&cq->fid->fid, FI_GETWAIT, &now);
		if (rc != -FI_ETOOSMALL && now.nfds <= cq->fds_size)
			break;
		if (make_room(cq, now.nfds))
			return -ENOMEM;
	}
	if (rc)
		return rc;
	*changed = now.change_index != cq->fds.change_index || now.nfds != cq->fds.nfds;
	cq->fds = now;
	return 0;
}

static int watch_all(const struct wf_wait_set *w, const struct wf_cq *cq)
{
	int err = 0;

	for (size_t i = 0; i < cq->fds.nfds && !err; i++)
		err = watch(w, cq->fds.fd[i].fd, cq->id);
	return err;
}

static void unwatch_all(const struct wf_wait_set *w, const struct wf_cq *cq)
{
	for (size_t i = 0; i < cq->fds.nfds; i++)
		(void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, cq->fds.fd[i].fd, NULL);
}

int wf_wait_add(struct wf_rail *rail, struct wf_cq *cq, struct wf_error *e)
{
	struct wf_wait_set *w = &rail->wait;
	bool changed;
	int err;

	if (w->epoll < 0)
		return 0;
	err = ask(w, cq, &changed);
	if (err && err != -ENOMEM) {
		do_without(rail);
		return 0;
	}
	if (!err)
		err = wf_table_add(&w->queues, cq, &cq->id);
	if (!err)
		err = watch_all(w, cq);
	if (err)
		return cannot_wait(rail, err, e);
	return note(w, &cq->fid->fid, e);
}

void wf_wait_remove(struct wf_rail *rail, struct wf_cq *cq)
{
	struct wf_wait_set *w = &rail->wait;
	bool changed;

	if (w->epoll >= 0 && cq->id) {
		/* A descriptor that the provider dropped goes, too: a forked child may hold it. */
		unwatch_all(w, cq);
		if (!ask(w, cq, &changed))
			unwatch_all(w, cq);
		wf_table_remove(&w->queues, cq->id);
		forget(w, &cq->fid->fid);
		cq->id = 0;
	}
	free(cq->fds.fd);
	cq->fds = (struct fi_wait_pollfd){ 0 };
	cq->fds_size = 0;
}

/*
 * Count completions that were found in @cq without a sleep.  A queue that is read all the time
 * need not be watched: every packet wakes its watcher, which takes a twentieth of the time of a
 * sender of a long body within this host.
 */
void wf_wait_heard(struct wf_rail *rail, struct wf_cq *cq, int count)
{
	bool changed;

	if (!cq->id || cq->unwatched)
		return;
	cq->heard += (uint32_t)count;
	if (cq->heard < HEARD_MAX || ask(&rail->wait, cq, &changed))
		return;
	unwatch_all(&rail->wait, cq);
	cq->unwatched = true;
}

/* Watch @cq, with all descriptors that it has by now: a connection brings one more. */
static int watch_again(struct wf_rail *rail, struct wf_cq *cq)
{
	bool changed;
	int err;

	cq->heard = 0;
	if (!cq->id)
		return 0;
	err = ask(&rail->wait, cq, &changed);
	cq->unwatched |= changed;
	if (!err && cq->unwatched)
		err = watch_all(&rail->wait, cq);
	if (!err)
		cq->unwatched = false;
	return err;
}

/* Watch every queue before a sleep.  -errno: a queue can't be watched now. */
int wf_wait_again(struct wf_rail *rail)
{
	WF_LIST_EACH(node, &rail->queues.warm) {
		int err = watch_again(rail, WF_CONTAINER(node, struct wf_cq, warm_node));

		if (err)
			return err;
	}
	return 0;
}

/*
 * Has the last look left bytes in the sockets of @cq?  tcp reads ahead, and says that its queue is
 * empty once it has dealt with all that it has read ahead: with 225 requests for reads, or in the
 * middle of a read into several spans.  The socket does not ring for the rest.  As many bytes as
 * before wait for something else: a slot.
 */
static bool holds(struct wf_cq *cq)
{
	uint64_t before = cq->unread;
	int count;

	cq->unread = 0;
	for (size_t i = 0; i < cq->fds.nfds; i++)
		if (!ioctl(cq->fds.fd[i].fd, FIONREAD, &count))
			cq->unread += (uint64_t)count;
	return cq->unread && cq->unread != before;
}

bool wf_wait_holds(struct wf_rail *rail)
{
	bool any = false;

	if (!rail->wait.pollfd)
		return false;
	WF_LIST_EACH(node, &rail->queues.warm)
		any |= holds(WF_CONTAINER(node, struct wf_cq, warm_node));
	rail->queues.empty &= !any;
	return any;
}

/* Count a look at @cq that has found nothing; a queue that rarely has anything cools. */
void wf_wait_unheard(struct wf_rail *rail, struct wf_cq *cq)
{
	/* The only warm queue costs less to read than to be told about. */
	if (rail->queues.warm_count == 1 || ++cq->empty < EMPTY_MAX / rail->queues.warm_count)
		return;
	if (rail->wait.pollfd && !watch_again(rail, cq) && !holds(cq))
		wf_cq_cool(rail, cq);
}

/* Edge-triggered descriptors need no asking: once drained, they ring. */
int wf_wait_try(struct wf_rail *rail)
{
	struct wf_wait_set *w = &rail->wait;

	if (w->epoll < 0 || w->edge)
		return 0;
	return WF_RAIL_CALL(rail, fi_trywait, rail->fabric, w->fids, (int)w->count) ? -EAGAIN : 0;
}

bool wf_wait_eq_ready(const struct wf_rail *rail)
{
	struct pollfd eq = { .fd = rail->wait.eq_fd, .events = POLLIN };

	return eq.fd >= 0 && poll(&eq, 1, 0) > 0;
}

bool wf_wait_has_eq(const struct wf_rail *rail)
{
	return rail->wait.edge && rail->wait.eq_fd >= 0;
}

void wf_wait_hear(struct wf_rail *rail)
{
	struct wf_wait_set *w = &rail->wait;
	struct epoll_event events[16];
	int n;

	if (w->epoll < 0 || !w->edge)
		return;
	do {
		n = epoll_wait(w->epoll, events, WF_COUNT(events), 0);
		for (int i = 0; i < n; i++) {
			struct wf_cq *cq = wf_table_get(&w->queues, events[i].data.u64);

			if (cq)
				wf_cq_warm(rail, cq);
			w->eq_rang |= !events[i].data.u64;
		}
	} while (n == WF_COUNT(events));
}

void wf_wait_cool(struct wf_rail *rail)
{
	WF_LIST_EACH(node, &rail->queues.warm)
		wf_cq_cool(rail, WF_CONTAINER(node, struct wf_cq, warm_node));
}
