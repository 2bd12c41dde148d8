/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/directory.h"

#include <stdio.h>
#include <string.h>

#include "link/socket.h"
#include "util/random.h"

int wf_directory_init(struct wf_directory *d)
{
	*d = (struct wf_directory){ 0 };
	wf_random_fill(d->incarnation, sizeof(d->incarnation));
	wf_list_init(&d->homes);
	return -pthread_mutex_init(&d->lock, NULL);
}

void wf_directory_fini(struct wf_directory *d)
{
	pthread_mutex_destroy(&d->lock);
}

void wf_directory_join(struct wf_directory *d, struct wf_engine *engine)
{
	d->workers[d->worker_count++] = engine;
}

void wf_directory_enter(struct wf_directory *d, struct wf_directory_home *home,
			struct wf_engine *engine, const char *address)
{
	*home = (struct wf_directory_home){ .engine = engine, .address = address };
	pthread_mutex_lock(&d->lock);
	wf_list_append(&d->homes, &home->node);
	pthread_mutex_unlock(&d->lock);
}

void wf_directory_leave(struct wf_directory *d, struct wf_directory_home *home)
{
	pthread_mutex_lock(&d->lock);
	wf_list_remove(&home->node);
	pthread_mutex_unlock(&d->lock);
}

void wf_directory_address(struct wf_directory *d, char *to, const char *address)
{
	pthread_mutex_lock(&d->lock);
	snprintf(to, WF_SOCKET_ADDRESS_BYTES, "%s", address);
	pthread_mutex_unlock(&d->lock);
}

static void claim(struct wf_directory_home *home, const uint8_t *incarnation)
{
	home->claimed = true;
	memcpy(home->incarnation, incarnation, sizeof(home->incarnation));
}

static struct wf_engine *find(const struct wf_directory *d, const uint8_t *incarnation)
{
	WF_LIST_EACH(node, &d->homes) {
		const struct wf_directory_home *home =
			WF_CONTAINER(node, struct wf_directory_home, node);

		if (home->claimed &&
		    !memcmp(home->incarnation, incarnation, WF_INCARNATION_BYTES))
			return home->engine;
	}
	return NULL;
}

struct wf_engine *wf_directory_claim(struct wf_directory *d, struct wf_directory_home *home,
				     const uint8_t *incarnation)
{
	struct wf_engine *has;

	pthread_mutex_lock(&d->lock);
	has = find(d, incarnation);
	if (!has)
		has = home->engine;
	if (has == home->engine)
		claim(home, incarnation);
	pthread_mutex_unlock(&d->lock);
	return has;
}

void wf_directory_disclaim(struct wf_directory *d, struct wf_directory_home *home)
{
	pthread_mutex_lock(&d->lock);
	home->claimed = false;
	pthread_mutex_unlock(&d->lock);
}

struct wf_engine *wf_directory_find(struct wf_directory *d, const uint8_t *incarnation)
{
	struct wf_engine *has;

	pthread_mutex_lock(&d->lock);
	has = find(d, incarnation);
	pthread_mutex_unlock(&d->lock);
	return has;
}

static struct wf_engine *find_address(const struct wf_directory *d, const char *address)
{
	WF_LIST_EACH(node, &d->homes) {
		const struct wf_directory_home *home =
			WF_CONTAINER(node, struct wf_directory_home, node);

		if (address[0] && !strcmp(home->address, address))
			return home->engine;
	}
	return NULL;
}

/* Pick the worker with the fewest links; of equals the next in turn, for links are made later. */
static struct wf_engine *pick(struct wf_directory *d)
{
	uint32_t counts[WF_WORKERS_MAX] = { 0 };
	uint32_t best;

	WF_LIST_EACH(node, &d->homes) {
		const struct wf_directory_home *home =
			WF_CONTAINER(node, struct wf_directory_home, node);

		for (uint32_t i = 0; i < d->worker_count; i++)
			counts[i] += d->workers[i] == home->engine;
	}
	best = (d->last + 1) % d->worker_count;
	for (uint32_t i = 1; i < d->worker_count; i++) {
		uint32_t next = (d->last + 1 + i) % d->worker_count;

		if (counts[next] < counts[best])
			best = next;
	}
	d->last = best;
	return d->workers[best];
}

void wf_directory_place(struct wf_directory *d, struct wf_directory_home *home, const char *address,
			const uint8_t *incarnation)
{
	struct wf_engine *engine = NULL;

	pthread_mutex_lock(&d->lock);
	if (incarnation)
		engine = find(d, incarnation);
	if (!engine)
		engine = find_address(d, address);
	if (!engine)
		engine = pick(d);
	*home = (struct wf_directory_home){ .engine = engine,
					    .address = incarnation ? "" : address };
	if (incarnation)
		claim(home, incarnation);
	wf_list_append(&d->homes, &home->node);
	pthread_mutex_unlock(&d->lock);
}
