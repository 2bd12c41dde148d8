/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of a training, and this one among them: from the flags or the
 * TF_CONFIG that TensorFlow's users know.
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "sentence.h"

#define CLUSTER_HOSTS_MAX 64 /* hosts of each kind; not tuned, ample for one machine */
#define CLUSTER_HOST_BYTES 264 /* a DNS name, a colon, a port */

enum cluster_job { CLUSTER_PS, CLUSTER_WORKER };

struct cluster_hosts {
	unsigned count;
	char address[CLUSTER_HOSTS_MAX][CLUSTER_HOST_BYTES]; /* "host:port" */
};

struct cluster {
	struct cluster_hosts hosts[2]; /* by enum cluster_job */
	enum cluster_job job;
	unsigned task; /* index of this process among the hosts of its job */
};

/* Returns "ps" or "worker". */
const char *cluster_job_name(enum cluster_job job);

/*
 * Read flags: two lists with commas, "ps" or "worker", a number.  NULL stands
 * for a flag that was not given.  -EINVAL: @why tells which is wrong.
 */
int cluster_from_flags(const char *ps_hosts, const char *worker_hosts,
		       const char *job_name, const char *task_index,
		       struct cluster *cluster, struct sentence *why);

/*
 * Read TF_CONFIG.  A "chief" counts as the first worker.  -EINVAL: @why tells
 * what is wrong with it.
 */
int cluster_from_json(const char *json, struct cluster *cluster,
		      struct sentence *why);

#endif
