/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that all processes see, where rank 0 writes where it is: WEFT_BOOTSTRAP=file:PATH, with
 * WEFT_RANK and WEFT_SIZE or the rank of any launcher.
 *
 * A file that an earlier job has left does no harm: nobody answers there, or somebody who does not
 * know this job, and the file is read again meanwhile.
 */
#include "group/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/random.h"

struct board_file {
	struct wf_job_board board;
	char posted[WF_JOB_POST_BYTES]; /* the line in the file; "": none */
	char path[];
};

static struct board_file *file_of(struct wf_job_board *board)
{
	return WF_CONTAINER(board, struct board_file, board);
}

/* Write the whole file under a name of its own: readers see the old one or the new one. */
static int write_file(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%s\n", line) < 0 || fsync(fd))
		err = -errno;
	close(fd);
	return err;
}

static int post(struct wf_job_board *board, const char *line, struct wf_error *e)
{
	struct board_file *file = file_of(board);
	char fresh[PATH_MAX];
	int err = 0;

	/* Two groups may post at once. */
	snprintf(fresh, sizeof(fresh), "%s.%" PRIx64 ".new", file->path, wf_random_u64());
	err = write_file(fresh, line);
	if (!err && rename(fresh, file->path))
		err = -errno;
	if (err) {
		unlink(fresh);
		/* -ENOENT is the word for a launcher that has not started this process. */
		return wf_error_set(e, err == -ENOENT ? -ENOTDIR : err,
				    "the address of rank 0 can't be written to %.200s: %s",
				    file->path, wf_error_name(err));
	}
	snprintf(file->posted, sizeof(file->posted), "%s", line);
	return 0;
}

static int find(struct wf_job_board *board, char line[WF_JOB_POST_BYTES], struct wf_error *e)
{
	const struct board_file *file = file_of(board);
	int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	ssize_t count;

	if (fd < 0 && errno == ENOENT)
		return wf_error_set(e, -EAGAIN, "rank 0 has not written %.200s yet", file->path);
	if (fd < 0)
		return wf_error_set(e, -errno, "%.200s: %s", file->path, strerror(errno));
	count = read(fd, line, WF_JOB_POST_BYTES - 1);
	close(fd);
	line[count > 0 ? count : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	return *line ? 0 : wf_error_set(e, -EAGAIN, "%.200s is empty", file->path);
}

/* Take the line down, unless another job has posted its own there by now. */
static void close_board(struct wf_job_board *board)
{
	struct board_file *file = file_of(board);
	char line[WF_JOB_POST_BYTES];
	struct wf_error e;

	if (*file->posted && !find(board, line, &e) && !strcmp(line, file->posted))
		unlink(file->path);
	free(file);
}

static bool here(void)
{
	return false;
}

static int read_path(const struct wf_options *options, const char *argument, struct wf_job *job,
		     struct wf_error *e)
{
	struct board_file *file;
	size_t bytes;
	int err = wf_launcher_any_rank(options, job, e);

	if (err)
		return err;
	if (!*argument || strlen(argument) > PATH_MAX / 2)
		return wf_error_set(e, -EINVAL, "WEFT_BOOTSTRAP=file:%.100s: no path of a file", argument);
	bytes = strlen(argument) + 1 + strlen(job->name) + 1;
	file = calloc(1, sizeof(*file) + bytes);
	if (!file)
		return wf_error_set(e, -ENOMEM, "no memory for a group");
	file->board = (struct wf_job_board){ post, find, close_board };
	snprintf(file->path, bytes, "%s%s%s", argument, *job->name ? "." : "", job->name);
	job->board = &file->board;
	return 0;
}

const struct wf_launcher wf_board_file_launcher = {
	.name = "file",
	.here = here,
	.read = read_path,
};
