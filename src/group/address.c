/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of rank 0, given by hand or by `weft run`: WEFT_BOOTSTRAP=HOST:PORT, with WEFT_RANK
 * and WEFT_SIZE or the rank of any launcher.
 */
#include "group/launcher.h"

#include <errno.h>

static bool here(void)
{
	return false;
}

static int read_address(const struct wf_options *options, const char *argument,
			struct wf_job *job, struct wf_error *e)
{
	uint16_t port;
	int err = wf_socket_split(argument, job->host, sizeof(job->host), &port, e);

	if (!err)
		err = wf_launcher_port("", port, job, e);
	if (!err && !port)
		err = wf_error_set(e, -EINVAL, "WEFT_BOOTSTRAP=%.100s: port 0", argument);
	return err ? err : wf_launcher_any_rank(options, job, e);
}

const struct wf_launcher wf_address_launcher = {
	.name = "address",
	.here = here,
	.read = read_address,
};
