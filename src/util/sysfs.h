/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel says of devices: small files below /sys, or below another
 * root that looks like it, so that a test can make any machine.
 *
 * Threads: any.
 */
#ifndef WF_SYSFS_H
#define WF_SYSFS_H

#include "util/base.h"

#define WF_SYSFS_ROOT "/sys"
#define WF_SYSFS_PATH_BYTES 1024 /* the longest path that is followed; a switch tree has some 200 */
#define WF_SYSFS_TEXT_BYTES 8192 /* the longest text that is read; a page of the kernel's and a half */

/* The path as it is given, below @root; false: it is too long. */
bool wf_sysfs_path(char path[WF_SYSFS_PATH_BYTES], const char *root, const char *format, ...)
	WF_PRINTF(3, 4);

/* The text of a file, without the end of its last line, cut if too long.  A negative errno. */
int wf_sysfs_text(const char *path, char *text, size_t text_bytes);

/* Its number, decimal or with 0x.  -EINVAL: it is none. */
int wf_sysfs_number(const char *path, uint64_t *value);

/* The NUMA node that the device of this folder belongs to; -1: the kernel does not say. */
int wf_sysfs_node(const char *folder);

/* Is CPU or node @number in a list as "0-3,8"? */
bool wf_sysfs_lists(const char *list, unsigned number);

#endif
