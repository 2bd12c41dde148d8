/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/lookup.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/thread.h"

struct wf_lookup {
	atomic_int holders; /* the thread and the owner; the last holder frees */
	atomic_bool done;   /* set after list and code */
	int event_fd;
	int code, system_code; /* result of getaddrinfo, and errno */
	struct addrinfo *list;
	char port[6];
	char host[]; /* the name, as long as it is */
};

static int resolve(const char *host, const char *port, int flags, struct addrinfo **list)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags | AI_NUMERICSERV };

	return getaddrinfo(host, port, &hints, list);
}

int wf_lookup_number(const char *host, uint16_t port, struct addrinfo **list)
{
	char text[6];
	int code;

	(void)snprintf(text, sizeof(text), "%u", (unsigned)port);
	code = resolve(host, text, AI_NUMERICHOST, list);
	return !code ? 0 : code == EAI_MEMORY ? -ENOMEM : -EAGAIN;
}

static void drop(struct wf_lookup *l)
{
	if (atomic_fetch_sub(&l->holders, 1) > 1)
		return;
	if (l->list)
		freeaddrinfo(l->list);
	(void)close(l->event_fd);
	free(l);
}

static void *run(void *arg)
{
	struct wf_lookup *l = arg;
	uint64_t one = 1;

	l->code = resolve(l->host, l->port, 0, &l->list);
	l->system_code = errno;
	atomic_store(&l->done, true);
	/* The write can't fail: no other thread writes to it. */
	while (write(l->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	drop(l);
	return NULL;
}

static int start(struct wf_lookup *l)
{
	pthread_t thread;
	int err = wf_thread_start(&thread, "weft lookup", run, l);

	if (!err)
		(void)pthread_detach(thread);
	return err;
}

int wf_lookup_open(const char *host, uint16_t port, struct wf_lookup **lookup, struct wf_error *e)
{
	size_t host_bytes = strlen(host) + 1;
	struct wf_lookup *l = calloc(1, sizeof(*l) + host_bytes);
	int err;

	if (!l)
		return wf_error_set(e, -ENOMEM, "look up %.200s: out of memory", host);
	memcpy(l->host, host, host_bytes);
	(void)snprintf(l->port, sizeof(l->port), "%u", (unsigned)port);
	atomic_init(&l->holders, 2);
	l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->event_fd < 0) {
		err = wf_error_set(e, -errno, "look up %.200s: no event descriptor: %s", host,
				   wf_error_name(-errno));
		goto free_lookup;
	}
	err = start(l);
	if (err) {
		(void)wf_error_set(e, err, "look up %.200s: no thread: %s", host,
				   wf_error_name(err));
		goto close_fd;
	}

	*lookup = l;
	return 0;

close_fd:
	(void)close(l->event_fd);
free_lookup:
	free(l);
	return err;
}

int wf_lookup_fd(const struct wf_lookup *lookup)
{
	return lookup->event_fd;
}

int wf_lookup_take(struct wf_lookup *l, struct addrinfo **list, struct wf_error *e)
{
	if (!atomic_load(&l->done))
		return -EAGAIN;
	if (l->code)
		return wf_error_set(e, -EHOSTUNREACH, "look up %.200s: %s", l->host,
				    l->code == EAI_SYSTEM ? wf_error_name(-l->system_code) :
							    gai_strerror(l->code));
	*list = l->list;
	l->list = NULL;
	return 0;
}

void wf_lookup_close(struct wf_lookup *lookup)
{
	if (lookup)
		drop(lookup);
}
