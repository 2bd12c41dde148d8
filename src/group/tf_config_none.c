/* SPDX-License-Identifier: BSD-2-Clause */
/* TF_CONFIG where weft was built without cJSON, which reads it. */
#include "group/tf_config.h"

#include <errno.h>

#include "group/launcher.h"
#include "util/environment.h"

static bool here(void)
{
	return wf_environment_get("TF_CONFIG");
}

static int read_environment(const struct wf_options *options, const char *argument,
			    struct wf_job *job, struct wf_error *e)
{
	(void)options;
	(void)argument;
	(void)job;
	return wf_error_set(e, -ENOENT, "TF_CONFIG can't be read: weft was built without cJSON");
}

const struct wf_launcher wf_tf_config_launcher = {
	.name = "tf_config",
	.here = here,
	.read = read_environment,
};
