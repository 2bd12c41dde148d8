/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kubernetes: names of the pods of an indexed job, "NAME-3.SERVICE.SPACE.svc.cluster.local".
 *
 * Threads: any.
 */
#ifndef WF_GROUP_KUBERNETES_H
#define WF_GROUP_KUBERNETES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Write to @first the name of the pod of index 0, given the @name of the pod of @index.
 * -EINVAL: the first part of @name does not end with "-INDEX", or @first has too little room.
 */
int wf_kubernetes_first_pod(const char *name, uint32_t index, char *first, size_t bytes);

#endif
