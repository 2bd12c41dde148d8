/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The object behind struct weft_group.
 */
#ifndef WF_GROUP_INTERNAL_H
#define WF_GROUP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <weft/weft.h>
#include "group/join.h"

#define WF_GROUP_NAME_BYTES 64

struct weft_group {
	struct weft_node *node;
	char name[WF_GROUP_NAME_BYTES];
	struct wf_job job;
	struct wf_join_members members;
	uint32_t local_rank, local_size;
	atomic_uint refs;         /* the user's, and one of each exchange */
	pthread_mutex_t lock;
	struct weft_peer **peers; /* by rank; NULL: not opened yet; under the lock */
	uint32_t exchanges;       /* collectives begun; under the lock, as is what follows */
	unsigned char *spare;     /* memory of an exchange that is over, for the next; NULL: none */
	size_t spare_bytes;
	struct wf_error failure;  /* the first collective's that failed; code 0: none */
};

/* Give up a reference; the last frees the group. */
void wf_group_put(struct weft_group *group);

#endif
