/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups: the processes of a job that a launcher has started, numbered from 0.
 *
 * mpirun, srun, torchrun, Kubernetes and `weft run` start the processes of a job and tell each its
 * rank; weft_join() lets their nodes find each other.  weft_group(3) has the launchers, and what
 * each must say.
 */
#ifndef WEFT_GROUP_H
#define WEFT_GROUP_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_group;

/* Options of weft_join(); copied.  NULL stands for all zero. */
struct weft_join_options {
	size_t size;
	const char *bootstrap; /* where rank and size are from, as WEFT_BOOTSTRAP; NULL: as it says */
	const char *name;      /* tells several groups of a job apart; up to 63 bytes; NULL: "" */
	uint64_t timeout_ns;   /* time for all processes to come; 0: WEFT_JOIN_TIMEOUT */
	/*
	 * Asked about ten times a second while weft_join() waits, in the thread that has called it:
	 * not 0 gives the join up.  NULL: nothing does.
	 */
	int (*give_up)(void *arg);
	void *arg;             /* for @give_up */
};
#define WEFT_JOIN_OPTIONS_INIT WEFT_SIZED_INIT(struct weft_join_options)

/*
 * Join the job of this process: wait until all its processes have joined, and learn the address of
 * each one's node.  A process that no launcher has started is a group of its own.  Returns @group
 * owned: free it with weft_group_close(), before @node closes.
 * -ETIMEDOUT: some did not come, and the sentence names their ranks.  -ECANCELED: the program gave
 * the join up.  -EINVAL: what the launcher says can't be read, or differs between processes.
 * -EEXIST: another process has joined with this rank.  -EADDRNOTAVAIL: the job has several hosts,
 * and a node listens on loopback.  -ENOENT: the launcher that was asked for has not started this
 * process.  -EADDRINUSE: all ports of rank 0's server are taken.  -EIO: PMIx failed.  -ENOTDIR: the
 * folder of "file:PATH" is missing; the system's own code where PATH can't be read or written, and
 * that of weft_node_open() for rank 0's server.  -EPROTO: rank 0 lists other members than there
 * are.  -ENOMEM.  -EDEADLK inside a callback.  Threads: any but @node's callbacks; in a manual node
 * the owner.
 */
WEFT_API int weft_join(struct weft_node *node, const struct weft_join_options *options,
		       struct weft_group **group);

/*
 * Open a group of nodes that have found each other by other means: @node is @rank of @size, and
 * @addresses has those of all, by rank; copied.  @number identifies the group, as a communicator's
 * id: the same for all of this group, and of no other group that any of them has, ever.  It is the
 * step of the group's collectives, and the program's own tensors have other steps.  Nothing is sent
 * for it.  Processes of one host are those whose addresses have one host.  Returns @group owned, as
 * weft_join() does.  -EINVAL: there is no such rank, an address is none, or @number is 0.
 * Threads: any, callback.
 */
WEFT_API int weft_group_open(struct weft_node *node, uint32_t rank, uint32_t size,
			     const char *const *addresses, uint64_t number,
			     struct weft_group **group);

/*
 * Close a group; accepts NULL.  Its peers are closed, but for those that the program has opened,
 * too.  -EDEADLK inside a callback: nothing was done.
 * Threads: any but the callbacks of the group's node.
 */
WEFT_API int weft_group_close(struct weft_group *group);

/* Returns the number of this process in the group, from 0.  Threads: any, callback. */
WEFT_API uint32_t weft_group_rank(const struct weft_group *group);

/* Returns the number of processes in the group.  Threads: any, callback. */
WEFT_API uint32_t weft_group_size(const struct weft_group *group);

/*
 * Returns the number of this process among those of the group on its host, from 0: which GPU it
 * takes, say.  Threads: any, callback.
 */
WEFT_API uint32_t weft_group_local_rank(const struct weft_group *group);

/* Returns the number of processes of the group on this host.  Threads: any, callback. */
WEFT_API uint32_t weft_group_local_size(const struct weft_group *group);

/*
 * Returns the word for what told the rank: "pmix", "torchrun", "slurm", "kubernetes", "tf_config",
 * "file", "address", "none", or "program" of weft_group_open().  Threads: any, callback.
 */
WEFT_API const char *weft_group_launcher(const struct weft_group *group);

/*
 * Returns the address of the node of @rank, for as long as @group lives; NULL: there is no such
 * rank.  Threads: any, callback.
 */
WEFT_API const char *weft_group_address(const struct weft_group *group, uint32_t rank);

/*
 * Find the node of @rank, which is not this process's own, as a peer of the group's node.  The peer
 * is the group's: do not close it.  -EINVAL: there is no such rank.  Threads: any, callback.
 */
WEFT_API int weft_group_peer(struct weft_group *group, uint32_t rank, struct weft_peer **peer);

#ifdef __cplusplus
}
#endif
#endif
