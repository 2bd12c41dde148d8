/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool wf_sysfs_path(char path[WF_SYSFS_PATH_BYTES], const char *root, const char *format, ...)
{
	int used = snprintf(path, WF_SYSFS_PATH_BYTES, "%s/", root), more;
	va_list args;

	if (used >= WF_SYSFS_PATH_BYTES)
		return false;
	va_start(args, format);
	more = vsnprintf(path + used, (size_t)(WF_SYSFS_PATH_BYTES - used), format, args);
	va_end(args);
	return more < WF_SYSFS_PATH_BYTES - used;
}

int wf_sysfs_text(const char *path, char *text, size_t text_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	ssize_t count;

	if (fd < 0)
		return -errno;
	count = read(fd, text, text_bytes - 1);
	if (count < 0)
		err = -errno;
	(void)close(fd);
	if (err)
		return err;
	if (count && text[count - 1] == '\n')
		count--;
	text[count] = '\0';
	return 0;
}

int wf_sysfs_number(const char *path, uint64_t *value)
{
	char text[32], *end;
	int err = wf_sysfs_text(path, text, sizeof(text));

	if (err)
		return err;
	if (*text < '0' || *text > '9') /* strtoull() accepts signs and blanks */
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno || *end ? -EINVAL : 0;
}

int wf_sysfs_node(const char *folder)
{
	char path[WF_SYSFS_PATH_BYTES];
	uint64_t node;

	/* wf_sysfs_number() refuses "-1", the kernel's word for no node. */
	if (!wf_sysfs_path(path, folder, "numa_node") || wf_sysfs_number(path, &node) ||
	    node > INT_MAX)
		return -1;
	return (int)node;
}

bool wf_sysfs_lists(const char *list, unsigned number)
{
	unsigned first, last;
	int used;

	while (sscanf(list, "%u%n", &first, &used) == 1) {
		list += used;
		last = first;
		if (sscanf(list, "-%u%n", &last, &used) == 1)
			list += used;
		if (number >= first && number <= last)
			return true;
		if (*list++ != ',')
			break;
	}
	return false;
}
