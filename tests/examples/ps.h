/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the two halves of the parameter server example: the settings of
 * this process, and how variables are named and spread.
 */
#ifndef PS_H
#define PS_H

#include <weft/weft.h>

#include "cluster.h"
#include "model.h"
#include "train.h"

#define PS_KEY_BYTES 32  /* "grad/W1/63" and room */
#define PS_NAME_BYTES (CLUSTER_HOST_BYTES + 24)
#define PS_WATCH_STEP UINT64_MAX /* a step that no training reaches */

struct ps {
	struct train train;
	struct cluster cluster;
	const char *data; /* folder of MNIST's files, or NULL */
	bool verify;
	int device; /* CUDA device where tensors that travel lie; -1: none */
	uint64_t progress; /* steps between two lines about progress */
	uint64_t timeout_ns;
	char settings[160]; /* settings that must be the same in every process */
};

/* Do this process's part.  0, or a negative code and @why says what failed. */
int server_run(const struct ps *ps, struct sentence *why);
int worker_run(const struct ps *ps, struct sentence *why);

/* Open this process's node, at the address that the cluster gives it. */
int ps_open_node(const struct ps *ps, struct weft_node **node,
		 struct sentence *why);

/* Write a name like "worker 1 (127.0.0.1:2223)". */
void ps_name(const struct ps *ps, enum cluster_job job, unsigned task,
	     char name[PS_NAME_BYTES]);

/* The server that holds variable @v: round-robin, as TensorFlow does it. */
static inline unsigned ps_holder(const struct ps *ps, unsigned v)
{
	return v % ps->cluster.hosts[CLUSTER_PS].count;
}

/* The key under which a worker's gradient travels.  Returns its length. */
size_t ps_gradient_key(unsigned v, unsigned worker, char key[PS_KEY_BYTES]);

/*
 * Begin a receive that nobody sends for, which ends when its peer is gone: so a
 * peer that has nothing else to do is watched, too.
 */
int ps_watch(struct weft_node *node, struct weft_peer *peer,
	     struct weft_op_options op, struct weft_op **watch);

#endif
