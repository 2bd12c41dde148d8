/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proof: what a node proves itself by, what it demands of peers, and what these may do, as its
 * options name the files.
 *
 * The first worker looks every second whether a file has changed, and then all workers take what is
 * new: peers that are met prove themselves again at once where certificates have changed, and after
 * the grace of the key before where a key file has.
 */
#ifndef WF_CORE_PROOF_H
#define WF_CORE_PROOF_H

#include <pthread.h>
#include <sys/stat.h>

#include "loop/timer.h"
#include "secure/acl.h"
#include "secure/credentials.h"
#include "util/options.h"

struct weft_node;

#define WF_PROOF_FILES 5

struct wf_proof {
	pthread_mutex_t lock;      /* one renews at a time */
	bool named;                /* there are files; else nothing here is of use */
	struct wf_options options; /* a copy: their paths, and the grace */
	struct stat files[WF_PROOF_FILES]; /* as they were when they were last looked at */
	unsigned due;              /* bits of those that have changed, and could not be used yet */
	uint64_t grace_until_ns;   /* end of the grace of the key before; 0: there is none */
	struct wf_timer timer;     /* the next look; a timer of the first worker */
	/* under the node's lock; references, NULL: none */
	uint64_t reading;          /* number of the last reading */
	struct wf_credentials *credentials;
	struct wf_acl *acl;
};

/*
 * Read the files that @options name; nothing else will do then.  -EINVAL, -EACCES, -ENOENT, ...:
 * recorded.  Threads: setup.
 */
int wf_proof_open(struct wf_proof *proof, const struct wf_options *options);

/* Look after the files from now on.  Threads: setup. */
void wf_proof_watch(struct weft_node *node);

/*
 * Read the files anew, and wait until all workers have what is new, but inside a callback.  An
 * error, recorded: what there was stays.  -ENOENT: none is named.  -ETIMEDOUT: a worker is busy,
 * and takes what is new later.  Threads: any, callback.
 */
int wf_proof_renew(struct weft_node *node);

/* Give up what was read.  Threads: setup. */
void wf_proof_close(struct wf_proof *proof);

#endif
