/* SPDX-License-Identifier: BSD-2-Clause */
#include "group/job.h"

#include <errno.h>
#include <string.h>

#include "group/launcher.h"

/* A process that nobody started with others is a group of its own. */
static bool here(void)
{
	return true;
}

/* One that has a rank among others, and no word of where they meet, is none. */
static int read_nothing(const struct wf_options *options, const char *argument,
			struct wf_job *job, struct wf_error *e)
{
	int err = wf_launcher_any_rank(options, job, e);

	(void)argument;
	if (!err && job->size > 1)
		return wf_error_set(e, -EINVAL,
				    "this process is rank %u of %u, and nothing says where they meet: set "
				    "WEFT_BOOTSTRAP=HOST:PORT, of rank 0's host, or file:PATH", job->rank,
				    job->size);
	job->size = 1;
	return err == -ENOENT ? 0 : err;
}

static const struct wf_launcher none = { .name = "none", .here = here, .read = read_nothing };

/*
 * The order in which launchers are looked for: innermost first.  torchrun is started by srun or
 * mpirun, once for each host, and these by Kubernetes; hardly ever the other way round.
 */
static const struct wf_launcher *const launchers[] = {
	&wf_torchrun_launcher,   &wf_pmix_launcher,	  &wf_slurm_launcher,
	&wf_kubernetes_launcher, &wf_tf_config_launcher, &wf_board_file_launcher,
	&wf_address_launcher,	 &none,
};

/* The launcher whose name @text begins with; *@argument: what stands after the colon. */
static const struct wf_launcher *named(const char *text, const char **argument)
{
	size_t bytes = strcspn(text, ":");

	for (size_t i = 0; i < WF_COUNT(launchers); i++) {
		const char *name = launchers[i]->name;

		if (strlen(name) == bytes && !memcmp(name, text, bytes)) {
			*argument = text[bytes] ? text + bytes + 1 : "";
			return launchers[i];
		}
	}
	/* Any other text is an address. */
	*argument = text;
	return &wf_address_launcher;
}

static const struct wf_launcher *present(void)
{
	size_t i = 0;

	while (!launchers[i]->here())
		i++;
	return launchers[i];
}

int wf_job_find(const struct wf_options *options, const char *bootstrap, const char *name,
		struct wf_job *job, struct wf_error *e)
{
	const char *argument = "";
	const struct wf_launcher *launcher = *bootstrap ? named(bootstrap, &argument) : present();

	int err;

	*job = (struct wf_job){ .launcher = launcher->name, .name = name };
	err = launcher->read(options, argument, job, e);
	if (err)
		wf_job_fini(job);
	return err;
}

void wf_job_fini(struct wf_job *job)
{
	if (job->board)
		job->board->close(job->board);
	job->board = NULL;
}
