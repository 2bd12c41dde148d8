/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Launcher: one that starts the processes of a job, and how each of these learns its rank.  Each is
 * a row, in a file of its own; job.c has them in the order in which they are looked for.
 *
 * Threads: any.
 */
#ifndef WF_GROUP_LAUNCHER_H
#define WF_GROUP_LAUNCHER_H

#include "group/job.h"

/* Port where nobody names one: near torch's, 29400 and 29500, which are taken. */
#define WF_LAUNCHER_PORT 29600

struct wf_launcher {
	const char *name;
	/* Does the environment say that this launcher has started the process? */
	bool (*here)(void);
	/*
	 * Fill @job, which is zero but for ->launcher and ->name.  @argument is what stood after "NAME:", "" for
	 * nothing.  -ENOENT: the launcher has not started this process.
	 */
	int (*read)(const struct wf_options *options, const char *argument, struct wf_job *job,
		    struct wf_error *e);
};

extern const struct wf_launcher wf_address_launcher, wf_board_file_launcher,
	wf_kubernetes_launcher, wf_pmix_launcher, wf_slurm_launcher, wf_tf_config_launcher,
	wf_torchrun_launcher;

/* Read the number from 0 to @most that variable @name holds.  -ENOENT: not set; -EINVAL. */
int wf_launcher_number(const char *name, uint64_t most, uint64_t *value, struct wf_error *e);

/* Read rank and size from two variables; both must be set.  -ENOENT, -EINVAL. */
int wf_launcher_rank(const char *rank_name, const char *size_name, struct wf_job *job,
		     struct wf_error *e);

/*
 * Read rank and size from weft's own variables, WEFT_RANK and WEFT_SIZE, else from those of any
 * launcher that numbers its processes.  -ENOENT: there are none; -EINVAL.
 */
int wf_launcher_any_rank(const struct wf_options *options, struct wf_job *job,
			 struct wf_error *e);

/*
 * Returns the first of WF_JOB_PORTS ports from 20000 to 32000 for a job with this @number: below the
 * kernel's own range, which begins at 32768.
 */
uint16_t wf_launcher_port_of(uint64_t number);

/* Set @job->port to what @argument says, or to @preset if that is "".  -EINVAL. */
int wf_launcher_port(const char *argument, uint16_t preset, struct wf_job *job,
		     struct wf_error *e);

/* Copy @host to @job->host.  -EINVAL: too long. */
int wf_launcher_host(const char *host, struct wf_job *job, struct wf_error *e);

#endif
