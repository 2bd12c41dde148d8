/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small files in which the kernel describes devices, below /sys or another root that looks like
 * it, so that a test can make any machine.
 *
 * Threads: any.
 */
#ifndef WF_SYSFS_H
#define WF_SYSFS_H

#include "util/base.h"

#define WF_SYSFS_ROOT "/sys"
#define WF_SYSFS_PATH_BYTES 1024 /* the longest path that is followed; a switch tree has some 200 */
#define WF_SYSFS_TEXT_BYTES 8192 /* the longest text that is read: two pages */

/* Write the path @format below @root to @path.  Returns false if it is too long. */
bool wf_sysfs_path(char path[WF_SYSFS_PATH_BYTES], const char *root, const char *format, ...)
	WF_PRINTF(3, 4);

/*
 * Read the text of a file, without the end of its last line, cut if too long.  Returns 0 or a
 * negative errno.
 */
int wf_sysfs_text(const char *path, char *text, size_t text_bytes);

/* Read the number in a file, decimal or with 0x.  -EINVAL: the text is no number. */
int wf_sysfs_number(const char *path, uint64_t *value);

/* Return the NUMA node of the device at @folder; -1: the kernel does not say. */
int wf_sysfs_node(const char *folder);

/* Return whether CPU or node @number is in a list such as "0-3,8". */
bool wf_sysfs_lists(const char *list, unsigned number);

#endif
