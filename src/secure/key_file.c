/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/random.h"

/* Is the open file one that nobody but its owner, who runs this process, can read or change? */
static int check_file(int fd, const char *path, struct wf_error *e)
{
	struct stat file;

	if (fstat(fd, &file))
		return wf_error_set(e, -errno, "key file %.300s: %s", path, wf_error_name(-errno));
	if (!S_ISREG(file.st_mode) || file.st_size != WF_KEY_FILE_BYTES)
		return wf_error_set(e, -EINVAL, "key file %.300s: expected a file of %d bytes, as "
				    "`weft key new FILE` makes it", path, WF_KEY_FILE_BYTES);
	if (file.st_uid != geteuid())
		return wf_error_set(e, -EACCES, "key file %.300s belongs to user %u, and this "
				    "process runs as user %u", path, file.st_uid, geteuid());
	if (file.st_mode & (S_IRWXG | S_IRWXO))
		return wf_error_set(e, -EACCES, "key file %.300s has mode %03o: others must have "
				    "no right to it (chmod 400)", path, file.st_mode & 0777);
	return 0;
}

int wf_key_file_read(const char *path, uint8_t key[WF_KEY_FILE_BYTES], struct wf_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t got;
	int err;

	if (fd < 0)
		return wf_error_set(e, -errno, "key file %.300s: %s", path, wf_error_name(-errno));
	err = check_file(fd, path, e);
	if (!err) {
		got = read(fd, key, WF_KEY_FILE_BYTES);
		if (got != WF_KEY_FILE_BYTES)
			err = wf_error_set(e, got < 0 ? -errno : -EINVAL,
					   "key file %.300s can't be read whole", path);
	}
	(void)close(fd);
	return err;
}

int wf_key_file_make(const char *path, struct wf_error *e)
{
	uint8_t key[WF_KEY_FILE_BYTES];
	ssize_t put;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	int err = 0;

	if (fd < 0)
		return wf_error_set(e, -errno, "key file %.300s: %s", path, wf_error_name(-errno));
	wf_random_fill(key, sizeof(key));
	put = write(fd, key, sizeof(key));
	if (put != (ssize_t)sizeof(key))
		err = put < 0 ? -errno : -EIO;
	else if (fsync(fd) && errno != EINVAL)
		err = -errno;
	explicit_bzero(key, sizeof(key));
	if (close(fd) && !err)
		err = -errno;
	if (!err)
		return 0;
	(void)unlink(path);
	return wf_error_set(e, err, "key file %.300s: %s", path, wf_error_name(err));
}
