/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public functions of weft/group.h.  All that they are made of is public, too, but for options
 * and sentences: a program could have joined its job by itself.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/node.h"
#include "group/bootstrap.h"
#include "group/join.h"
#include "util/clock.h"

#define NAME_BYTES 64

struct weft_group {
	struct weft_node *node;
	char name[NAME_BYTES];
	struct wf_job job;
	struct wf_bootstrap *bootstrap; /* NULL: this is not rank 0 */
	struct wf_join_members members;
	uint32_t local_rank, local_size;
	pthread_mutex_t lock;
	struct weft_peer **peers; /* by rank; NULL: not opened yet; under the lock */
};

static void free_group(struct weft_group *g)
{
	for (uint32_t i = 0; g->peers && i < g->job.size; i++)
		weft_peer_close(g->peers[i]);
	free(g->peers);
	wf_join_members_fini(&g->members);
	wf_bootstrap_close(g->bootstrap);
	wf_job_fini(&g->job);
	pthread_mutex_destroy(&g->lock);
	free(g);
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
static int join_alone(struct weft_group *g)
{
	g->members.size = 1;
	g->members.addresses = calloc(1, sizeof(*g->members.addresses));
	g->members.hosts = calloc(1, sizeof(*g->members.hosts));
	if (!g->members.addresses || !g->members.hosts)
		return -ENOMEM;
	g->members.addresses[0] = strdup(weft_node_address(g->node));
	return g->members.addresses[0] ? 0 : -ENOMEM;
}

static int join(struct weft_group *g, const char *bootstrap, uint64_t limit_ns)
{
	const struct wf_options *options = &g->node->workers[0].engine.options;
	uint64_t limit = limit_ns ? limit_ns : options->join_ns;
	uint64_t until = wf_clock_after(wf_clock_now(), limit);
	struct wf_error e;
	int err = wf_job_find(options, bootstrap ? bootstrap : options->bootstrap, g->name, &g->job, &e);

	if (!err && g->job.size > 1 && !g->job.rank)
		err = wf_bootstrap_open(g->node, &g->job, &g->bootstrap, &e);
	if (!err && g->job.size > 1)
		err = wf_join(g->node, &g->job, until, limit, &g->members, &e);
	else if (!err && join_alone(g))
		err = wf_error_set(&e, -ENOMEM, "no memory for a group");
	if (err)
		return wf_last_copy(&e);
	g->peers = calloc(g->job.size, sizeof(*g->peers));
	if (!g->peers)
		return wf_last_set(-ENOMEM, "no memory for the peers of a group");
	count_local(g);
	return 0;
}

int weft_join(struct weft_node *node, const struct weft_join_options *options,
	      struct weft_group **group)
{
	struct weft_join_options given;
	struct weft_group *fresh;
	int err = wf_check_node(node);

	if (!err)
		err = wf_check_options(options, &given, sizeof(given));
	if (err || WF_NEED(group))
		return err ? err : -EINVAL;
	if (given.name && strlen(given.name) >= NAME_BYTES)
		return wf_last_set(-EINVAL, "a group's name of more than %d bytes", NAME_BYTES - 1);
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "inside a callback nobody waits for others to join");
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a group");
	fresh->node = node;
	pthread_mutex_init(&fresh->lock, NULL);
	if (given.name)
		strcpy(fresh->name, given.name);
	err = join(fresh, given.bootstrap, given.timeout_ns);
	if (err) {
		free_group(fresh);
		return err;
	}
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
		free_group(group);
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
	return WF_NEED(group) ? "" : wf_job_launcher(&group->job);
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
