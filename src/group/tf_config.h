/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TF_CONFIG: TensorFlow's word about a cluster and this process's part in it.
 *
 * Threads: any.
 */
#ifndef WF_GROUP_TF_CONFIG_H
#define WF_GROUP_TF_CONFIG_H

#include "group/job.h"

/*
 * Fill @job with what @text says: ranks are chief or master first, then worker, then ps, then other
 * jobs in the text's order; rank 0 is met at its own address there.  -EINVAL.
 */
int wf_tf_config_read(const char *text, struct wf_job *job, struct wf_error *e);

#endif
