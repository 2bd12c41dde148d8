/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public functions of weft/group.h.  All that they are made of is public, too, but for options
 * and sentences: a program could have joined its job by itself.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/node.h"
#include "group/bootstrap.h"
#include "group/internal.h"
#include "util/clock.h"
#include "util/random.h"

void wf_group_put(struct weft_group *g)
{
	if (atomic_fetch_sub(&g->refs, 1) > 1)
		return;
	for (uint32_t i = 0; g->peers && i < g->job.size; i++)
		weft_peer_close(g->peers[i]);
	free(g->peers);
	free(g->spare);
	wf_join_members_fini(&g->members);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* Close what only the thread of a user may close, and give up that user's reference. */
static void close_group(struct weft_group *g)
{
	wf_job_fini(&g->job);
	wf_group_put(g);
}

static void count_local(struct weft_group *g)
{
	const uint32_t *hosts = g->members.hosts;

	for (uint32_t i = 0; i < g->job.size; i++) {
		if (hosts[i] != hosts[g->job.rank])
			continue;
		g->local_size++;
		g->local_rank += i < g->job.rank;
	}
}

/* One process needs nobody to meet. */
static int join_alone(struct weft_group *g, struct wf_error *e)
{
	int err = wf_join_members_init(&g->members, 1);

	g->members.step = wf_random_u64();
	if (!err)
		err = wf_join_members_set(&g->members, 0, weft_node_address(g->node), 0);
	return err ? wf_error_set(e, err, "no memory for a group") : 0;
}

static int join_as_root(struct weft_group *g, const struct wf_join_limit *limit, struct wf_error *e)
{
	struct wf_bootstrap *b;
	char host[WF_JOIN_HOST_BYTES];
	int err;

	wf_join_host(host);
	err = wf_bootstrap_open(g->node, host, &g->job, &b, e);
	if (err)
		return err;
	err = wf_join_as_root(g->node, &g->job, b, limit, &g->members, e);
	wf_bootstrap_close(b);
	return err;
}

/* A node on loopback is met by nobody of another host. */
static int check_reach(const struct weft_group *g, struct wf_error *e)
{
	const char *own = weft_node_address(g->node);

	if (!g->job.many_hosts || !wf_socket_leads_to_loopback(own))
		return 0;
	return wf_error_set(e, -EADDRNOTAVAIL,
			    "the job has several hosts (%s), and this node is at %s, which other hosts do "
			    "not reach: set WEFT_LISTEN, and WEFT_KEY_FILE or WEFT_SECURITY=open",
			    g->job.launcher, own);
}

/* Make what every group needs that knows its members. */
static int make_peers(struct weft_group *g, struct wf_error *e)
{
	g->peers = calloc(g->job.size, sizeof(*g->peers));
	if (!g->peers)
		return wf_error_set(e, -ENOMEM, "no memory for the peers of a group");
	count_local(g);
	return 0;
}

static int join(struct weft_group *g, const struct weft_join_options *given, struct wf_error *e)
{
	const struct wf_options *options = &g->node->workers[0].engine.options;
	const char *bootstrap = given->bootstrap ? given->bootstrap : options->bootstrap;
	struct wf_join_limit limit = {
		.ns = given->timeout_ns ? given->timeout_ns : options->join_ns,
		.give_up = given->give_up,
		.arg = given->arg,
	};
	int err;

	limit.until_ns = wf_clock_after(wf_clock_now(), limit.ns);
	err = wf_job_find(options, bootstrap, g->name, &g->job, e);
	if (!err)
		err = check_reach(g, e);
	if (!err && g->job.size == 1)
		err = join_alone(g, e);
	else if (!err && g->job.rank)
		err = wf_join(g->node, &g->job, &limit, &g->members, e);
	else if (!err)
		err = join_as_root(g, &limit, e);
	return err ? err : make_peers(g, e);
}

static struct weft_group *new_group(struct weft_node *node)
{
	struct weft_group *fresh = calloc(1, sizeof(*fresh));

	if (!fresh || pthread_mutex_init(&fresh->lock, NULL)) {
		free(fresh);
		wf_last_set(-ENOMEM, "no memory for a group");
		return NULL;
	}
	fresh->node = node;
	atomic_init(&fresh->refs, 1);
	return fresh;
}

int weft_join(struct weft_node *node, const struct weft_join_options *options,
	      struct weft_group **group)
{
	struct weft_join_options given;
	struct weft_group *fresh;
	struct wf_error e;
	int err = wf_check_node(node);

	if (!err)
		err = wf_check_options(options, &given, sizeof(given));
	if (err || WF_NEED(group))
		return err ? err : -EINVAL;
	if (given.name && strlen(given.name) >= WF_GROUP_NAME_BYTES)
		return wf_last_set(-EINVAL, "a group's name of more than %d bytes", WF_GROUP_NAME_BYTES - 1);
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "inside a callback nobody waits for others to join");
	fresh = new_group(node);
	if (!fresh)
		return -ENOMEM;
	if (given.name)
		strcpy(fresh->name, given.name);
	err = join(fresh, &given, &e);
	if (err) {
		close_group(fresh);
		return wf_last_copy(&e);
	}
	*group = fresh;
	return 0;
}

/* Returns the lowest rank whose address has the host that the address of @rank has. */
static uint32_t lowest_on_host(const char *const *addresses, uint32_t rank)
{
	size_t bytes = (size_t)(strrchr(addresses[rank], ':') - addresses[rank]) + 1;
	uint32_t lowest = 0;

	while (strncmp(addresses[lowest], addresses[rank], bytes))
		lowest++;
	return lowest;
}

/* Fill in @g as the program says.  -EINVAL, -ENOMEM. */
static int take_addresses(struct weft_group *g, const char *const *addresses, struct wf_error *e)
{
	char host[WF_SOCKET_ADDRESS_BYTES];
	uint16_t port;
	int err = wf_join_members_init(&g->members, g->job.size);

	for (uint32_t i = 0; i < g->job.size && !err; i++) {
		if (!addresses[i])
			return wf_error_set(e, -EINVAL, "the address of rank %u is NULL", i);
		if (wf_socket_split(addresses[i], host, sizeof(host), &port, e))
			return e->code;
		err = wf_join_members_set(&g->members, i, addresses[i], lowest_on_host(addresses, i));
	}
	return err ? wf_error_set(e, err, "no memory for a group") : make_peers(g, e);
}

int weft_group_open(struct weft_node *node, uint32_t rank, uint32_t size,
		    const char *const *addresses, uint64_t number, struct weft_group **group)
{
	struct weft_group *fresh;
	struct wf_error e;
	int err = wf_check_node(node);

	if (err || WF_NEED(addresses) || WF_NEED(group))
		return err ? err : -EINVAL;
	if (rank >= size || size > WF_JOB_SIZE_MAX || !number)
		return wf_last_set(-EINVAL, "rank %u of a group of %u with the number %llu", rank, size,
				   (unsigned long long)number);
	fresh = new_group(node);
	if (!fresh)
		return -ENOMEM;
	fresh->job = (struct wf_job){ .launcher = "program", .rank = rank, .size = size };
	err = take_addresses(fresh, addresses, &e);
	if (err) {
		close_group(fresh);
		return wf_last_copy(&e);
	}
	fresh->members.step = number;
	*group = fresh;
	return 0;
}

int weft_group_close(struct weft_group *group)
{
	int err;

	if (!group)
		return 0;
	err = wf_check_node(group->node);
	if (!err && wf_node_inside(group->node))
		err = wf_last_set(-EDEADLK, "a group can't be closed inside a callback of its node");
	if (!err)
		close_group(group);
	return err;
}

uint32_t weft_group_rank(const struct weft_group *group)
{
	return WF_NEED(group) ? 0 : group->job.rank;
}

uint32_t weft_group_size(const struct weft_group *group)
{
	return WF_NEED(group) ? 0 : group->job.size;
}

uint32_t weft_group_local_rank(const struct weft_group *group)
{
	return WF_NEED(group) ? 0 : group->local_rank;
}

uint32_t weft_group_local_size(const struct weft_group *group)
{
	return WF_NEED(group) ? 0 : group->local_size;
}

const char *weft_group_launcher(const struct weft_group *group)
{
	return WF_NEED(group) ? "" : group->job.launcher;
}

const char *weft_group_address(const struct weft_group *group, uint32_t rank)
{
	return WF_NEED(group) || rank >= group->job.size ? NULL : group->members.addresses[rank];
}

int weft_group_peer(struct weft_group *group, uint32_t rank, struct weft_peer **peer)
{
	int err = WF_NEED(group) ? -EINVAL : wf_check_node(group->node);

	if (err || WF_NEED(peer))
		return err ? err : -EINVAL;
	if (rank >= group->job.size || rank == group->job.rank)
		return wf_last_set(-EINVAL, "rank %u of a group of %u, as rank %u sees it", rank,
				   group->job.size, group->job.rank);
	pthread_mutex_lock(&group->lock);
	if (!group->peers[rank])
		err = weft_peer_open(group->node, group->members.addresses[rank],
				     &group->peers[rank]);
	if (!err)
		*peer = group->peers[rank];
	pthread_mutex_unlock(&group->lock);
	return err;
}
