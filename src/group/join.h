/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Join: how a process finds rank 0's bootstrap server, and hears who is in the group.
 *
 * A server may stand at one of several ports, and may not be there yet, or be another job's: all
 * are asked, again and again, until one knows the group or the time is over.  A server that knows
 * the group may refuse a process: what may pass is final only once it has not, for WEFT_LOST and a
 * bit more.
 *
 * Threads: one that may wait; in a manual node the owner.
 */
#ifndef WF_GROUP_JOIN_H
#define WF_GROUP_JOIN_H

#include <weft/weft.h>
#include "group/job.h"

struct wf_bootstrap;

/* How long a join waits for others. */
struct wf_join_limit {
	uint64_t until_ns;
	uint64_t ns;               /* from the beginning to @until_ns, as the sentence says */
	int (*give_up)(void *arg); /* see struct weft_join_options */
	void *arg;
};

/* Members of a group, by rank. */
struct wf_join_members {
	uint32_t size;
	uint64_t step; /* step of the group's collectives: a number that no other has */
	char **addresses;
	uint32_t *hosts; /* the lowest rank on the same host */
};

/*
 * Join the group of @job with @node within @limit.  -ETIMEDOUT, -ECANCELED, -EINVAL, -EEXIST,
 * -EADDRNOTAVAIL, -ENOMEM.
 */
int wf_join(struct weft_node *node, const struct wf_job *job, const struct wf_join_limit *limit,
	    struct wf_join_members *members, struct wf_error *e);

/*
 * Join as rank 0, whose server is @b, which takes no more members then; else as wf_join().  Returns
 * once the others have heard, or at most a second after @limit.
 */
int wf_join_as_root(struct weft_node *node, const struct wf_job *job, struct wf_bootstrap *b,
		    const struct wf_join_limit *limit, struct wf_join_members *members,
		    struct wf_error *e);

#define WF_JOIN_HOST_BYTES 128

/* Write a text that is the same for all processes of one host and network namespace. */
void wf_join_host(char host[WF_JOIN_HOST_BYTES]);

/* Make lists for @size members, of whom nothing is known yet.  -ENOMEM, with @members zeroed. */
int wf_join_members_init(struct wf_join_members *members, uint32_t size);

/* Note the address of @rank, which is copied, and the lowest rank on its host.  -ENOMEM. */
int wf_join_members_set(struct wf_join_members *members, uint32_t rank, const char *address,
			uint32_t host);

/* Free what wf_join() has set; zeroed @members are accepted. */
void wf_join_members_fini(struct wf_join_members *members);

/*
 * Write "rank 2", "ranks 2, 5 and 7" or "ranks 2, 5 and 40 more" to @text, for @count of the @total
 * ranks that are meant.
 */
void wf_join_ranks(const uint32_t *ranks, size_t count, uint32_t total, char *text, size_t bytes);

#endif
