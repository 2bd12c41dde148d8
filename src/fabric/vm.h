/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading another process's memory by process_vm_readv, as a same-host provider
 * does for a read, but without the locks that the provider holds meanwhile.
 *
 * Threads: any.
 */
#ifndef WF_VM_H
#define WF_VM_H

#include "util/span.h"

/* Copy @count bytes at @address of process @pid.  -ESRCH: @pid is gone; -EFAULT; -EPERM. */
int wf_vm_read(uint32_t pid, void *into, size_t count, uint64_t address);

/* Copy @spans, one after another, until one fails.  Codes as wf_vm_read(). */
int wf_vm_read_spans(uint32_t pid, const struct wf_span *spans, uint32_t span_count);

#endif
