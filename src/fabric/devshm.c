/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/devshm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SHM "/dev/shm"

/* Bytes free in /dev/shm; UINT64_MAX: the kernel does not say, or sets no limit. */
static uint64_t room(void)
{
	struct statvfs fs;

	if (statvfs(SHM, &fs) || !fs.f_blocks)
		return UINT64_MAX;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

int wf_devshm_check(size_t bytes, struct wf_error *e)
{
	uint64_t free_bytes = room();

	if (free_bytes >= bytes)
		return 0;
	return wf_error_set(e, -ENOSPC, SHM " has %llu KiB left, %llu too few",
			    (unsigned long long)(free_bytes / KIB),
			    (unsigned long long)((bytes - free_bytes + KIB - 1) / KIB));
}

int wf_devshm_fill(const char *name, struct wf_error *e)
{
	char path[NAME_MAX + sizeof(SHM "/")];
	struct stat st;
	int fd, err;

	snprintf(path, sizeof(path), SHM "/%s", name);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	err = fd < 0 || fstat(fd, &st) ? errno : posix_fallocate(fd, 0, st.st_size);
	if (fd >= 0)
		(void)close(fd);
	return err ? wf_error_set(e, -err, "no memory for %s: %s", path, wf_error_name(-err)) : 0;
}
