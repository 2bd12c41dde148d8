/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/devshm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "util/file.h"

#define SHM "/dev/shm"
#define FILL_BYTES MIB /* memory that a file is given at a time */

/* Give @bytes of @fd their memory.  Returns an errno. */
static int fill(int fd, off_t bytes)
{
	int err = 0;

	/* Before Linux 6.11 a signal takes back all of one call, and may come more often than that. */
	for (off_t at = 0; !err && at < bytes; at += FILL_BYTES)
		do
			err = posix_fallocate(fd, at, WF_MIN((off_t)FILL_BYTES, bytes - at));
		while (err == EINTR);
	return err;
}

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

	if (!wf_file_may_have(bytes))
		return wf_error_set(e, -EFBIG, "this process may make no files of %zu KiB in " SHM
				    " (RLIMIT_FSIZE, ulimit -f)", bytes / KIB);
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
	err = fd < 0 || fstat(fd, &st) ? errno : fill(fd, st.st_size);
	if (fd >= 0)
		(void)close(fd);
	return err ? wf_error_set(e, -err, "no memory for %s: %s", path, wf_error_name(-err)) : 0;
}
