/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Job: what a launcher tells each process that it starts: its rank, how many there are, and where
 * rank 0 is to be met.
 *
 * Threads: any.
 */
#ifndef WF_GROUP_JOB_H
#define WF_GROUP_JOB_H

#include "link/socket.h"
#include "util/options.h"

#define WF_JOB_SIZE_MAX (1u << 20) /* ranks; ten times what the largest jobs have */
#define WF_JOB_KEY_BYTES 320       /* PMIx's namespaces have 255 bytes */
#define WF_JOB_PORTS 4             /* ports that rank 0 tries: one of them is hardly taken */
#define WF_JOB_POST_BYTES (WF_SOCKET_ADDRESS_BYTES + 128) /* an address, and the host it is on */

struct wf_job_board;

struct wf_job {
	const char *launcher;       /* the word for it */
	const char *name;           /* the group's, by which a job may have several; borrowed */
	uint32_t rank, size;
	bool many_hosts;            /* the launcher says that there are two hosts or more */
	char key[WF_JOB_KEY_BYTES]; /* tells apart jobs that meet at one address; "": no word on it */
	/*
	 * Where rank 0 is met: @host at one of @ports from @port on.  "": on the board, where
	 * rank 0 posts where it is.
	 */
	char host[WF_SOCKET_ADDRESS_BYTES];
	uint16_t port;
	unsigned ports;
	struct wf_job_board *board; /* NULL: none; owned */
};

/* A place where rank 0 posts a line, and the others find it. */
struct wf_job_board {
	/* Post @line, of less than WF_JOB_POST_BYTES.  Failures are in @e. */
	int (*post)(struct wf_job_board *board, const char *line, struct wf_error *e);
	/*
	 * Find what rank 0 has posted.  -EAGAIN: nothing yet, try again in a while.  Blocks, but
	 * for a tenth of a second at most.
	 */
	int (*find)(struct wf_job_board *board, char line[WF_JOB_POST_BYTES], struct wf_error *e);
	/* Take down what was posted, and free the board. */
	void (*close)(struct wf_job_board *board);
};

/*
 * Find the job of this process, as @bootstrap says or, if that is "", the environment, for its
 * group @name, which is borrowed.  The caller ends @job by wf_job_fini().  -EINVAL, -ENOENT,
 * -ENOMEM; -EIO: PMIx fails.
 */
int wf_job_find(const struct wf_options *options, const char *bootstrap, const char *name,
		struct wf_job *job, struct wf_error *e);
void wf_job_fini(struct wf_job *job);

#endif
