/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/host.h"
#include "link/socket.h"
#include "util/file.h"
#include "util/random.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHM "/dev/shm"
#define MARKER_STEM "weft."
#define MARKER_DIGITS 16
/* The first line of a marker, so that another program's file is none. */
#define MARKER_HEAD "weft marker\n"
#define MARKER_HEAD_BYTES (sizeof(MARKER_HEAD) - 1)
/*
 * A marker lies within one page, so that a node killed while writing leaves all of it or nothing.
 */
#define MARKER_BYTES_MAX 4096

struct wf_host {
	uint64_t number; /* random: two nodes never draw the same */
	int marker_fd;
	size_t marker_bytes;
};

struct wf_host_peer {
	uint64_t number;
	int pid_fd;
};

static void name_marker(char name[32], uint64_t number)
{
	(void)snprintf(name, 32, MARKER_STEM "%016" PRIx64, number);
}

/* Is @name that of a marker?  Only lower case: the one form that name_marker() makes. */
static bool is_marker(const char *name, uint64_t *number)
{
	const char *digits = name + strlen(MARKER_STEM);

	if (strncmp(name, MARKER_STEM, strlen(MARKER_STEM)) != 0 ||
	    strspn(digits, "0123456789abcdef") != MARKER_DIGITS || digits[MARKER_DIGITS])
		return false;
	*number = strtoull(digits, NULL, 16);
	return true;
}

/*
 * Is @name that of a plain file that a provider might have made, and of nothing outside /dev/shm?
 */
static bool is_file_name(const char *name, size_t length)
{
	static const char allowed[] = "0123456789:._-abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return length && name[0] != '.' && strspn(name, allowed) >= length;
}

/* Open /dev/shm.  Returns a descriptor, or a negative code. */
static int open_shm(void)
{
	int fd = open(SHM, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Write the first line and @names, over the text before. */
static int write_marker(struct wf_host *h, const char *names)
{
	char text[MARKER_BYTES_MAX];
	size_t names_bytes = strlen(names), bytes = MARKER_HEAD_BYTES + names_bytes;
	size_t cover = WF_MAX(bytes, h->marker_bytes);

	if (bytes > sizeof(text))
		return -EMSGSIZE;
	if (!wf_file_may_have(cover))
		return -EFBIG;
	/*
	 * Empty lines cover a longer text, so that no half of an old name is ever there to be
	 * read.
	 */
	memset(text, '\n', sizeof(text));
	memcpy(text, MARKER_HEAD, MARKER_HEAD_BYTES);
	memcpy(text + MARKER_HEAD_BYTES, names, names_bytes);
	if (pwrite(h->marker_fd, text, cover, 0) != (ssize_t)cover ||
	    ftruncate(h->marker_fd, (off_t)bytes))
		return -EIO;
	h->marker_bytes = bytes;
	return 0;
}

/*
 * Make a marker, which gets its name when it is locked and whole: a sweeper never sees it
 * otherwise.
 */
static int make_marker(struct wf_host *h, int shm_fd)
{
	char from[32], name[32];
	int err;

	h->marker_fd = open(SHM, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (h->marker_fd < 0)
		return -errno;
	name_marker(name, h->number);
	err = write_marker(h, "");
	if (!err && flock(h->marker_fd, LOCK_EX | LOCK_NB))
		err = -errno;
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", h->marker_fd);
	if (!err && linkat(AT_FDCWD, from, shm_fd, name, AT_SYMLINK_FOLLOW))
		err = -errno;
	if (err)
		(void)close(h->marker_fd);
	return err;
}

int wf_host_open(struct wf_host **host, struct wf_error *e)
{
	struct wf_host *h = calloc(1, sizeof(*h));
	int err, shm_fd;

	if (!h)
		return wf_error_set(e, -ENOMEM, "a marker in " SHM ": out of memory");
	/* The number is never 0, which stands for none. */
	h->number = wf_random_u64() | 1;
	if (access("/proc/self/fd", X_OK)) {
		err = wf_error_set(e, -errno, "a marker in " SHM " needs /proc: %s",
				   wf_error_name(-errno));
		goto free_host;
	}
	shm_fd = open_shm();
	err = shm_fd < 0 ? shm_fd : make_marker(h, shm_fd);
	if (shm_fd >= 0)
		(void)close(shm_fd);
	if (err) {
		(void)wf_error_set(e, err, "a marker in " SHM ": %s", wf_error_name(err));
		goto free_host;
	}

	*host = h;
	return 0;

free_host:
	free(h);
	return err;
}

uint64_t wf_host_number(const struct wf_host *host)
{
	return host->number;
}

void wf_host_close(struct wf_host *host)
{
	char name[32];
	int shm_fd;

	if (!host)
		return;
	shm_fd = open_shm();
	if (shm_fd >= 0) {
		name_marker(name, host->number);
		(void)unlinkat(shm_fd, name, 0);
		(void)close(shm_fd);
	}
	(void)close(host->marker_fd);
	free(host);
}

void wf_host_forked(struct wf_host *host)
{
	(void)close(host->marker_fd);
}

int wf_host_files(struct wf_host *host, const char *names)
{
	for (const char *at = names; *at;) {
		size_t length = strcspn(at, "\n");

		if (length && !is_file_name(at, length))
			return -EINVAL;
		at += length + (at[length] == '\n');
	}
	return write_marker(host, names);
}

/* Open the marker @name, a regular file of this user.  Returns a descriptor, or a negative code. */
static int open_marker(int shm_fd, const char *name)
{
	struct stat st;
	int fd;

	/* O_NONBLOCK: the name may have been put on a fifo. */
	fd = openat(shm_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		(void)close(fd);
		return -EPERM;
	}
	return fd;
}

/* Read the names that marker @marker_fd lists.  False: the file is no marker. */
static bool read_marker(int marker_fd, char names[MARKER_BYTES_MAX + 1])
{
	ssize_t got = pread(marker_fd, names, MARKER_BYTES_MAX, 0);

	if (got < (ssize_t)MARKER_HEAD_BYTES || memcmp(names, MARKER_HEAD, MARKER_HEAD_BYTES) != 0)
		return false;
	names[got] = '\0';
	memmove(names, names + MARKER_HEAD_BYTES, (size_t)got - MARKER_HEAD_BYTES + 1);
	return true;
}

int wf_host_probe(uint64_t pid, uint64_t address, const uint8_t *nonce, size_t count)
{
	uint8_t bytes[64];
	struct iovec here = { bytes, count };
	struct iovec there = { (void *)(uintptr_t)address, count };
	ssize_t got;

	assert(count <= sizeof(bytes));
	got = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);
	if (got < 0)
		return -errno;
	return got != (ssize_t)count || memcmp(bytes, nonce, count) != 0 ? -EBADMSG : 0;
}

bool wf_host_is_this(uint64_t pid)
{
	return pid == (uint64_t)getpid();
}

int wf_host_peer_open(int pid_fd, uint64_t number, struct wf_host_peer **peer)
{
	struct wf_host_peer *p = malloc(sizeof(*p));

	if (!p) {
		(void)close(pid_fd);
		return -ENOMEM;
	}
	*p = (struct wf_host_peer){ number, pid_fd };
	*peer = p;
	return 0;
}

void wf_host_peer_close(struct wf_host_peer *peer)
{
	if (!peer)
		return;
	(void)close(peer->pid_fd);
	free(peer);
}

int wf_host_peer_fd(const struct wf_host_peer *peer)
{
	return peer->pid_fd;
}

bool wf_host_peer_dead(const struct wf_host_peer *peer)
{
	struct pollfd fd = { .fd = peer->pid_fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/*
 * Is @name a file of this user, and as old as the marker of @told at least?  A younger file
 * belongs to a process that got the dead one's number, of which providers make their names.
 */
static bool is_leftover(int shm_fd, const char *name, const struct statx *told)
{
	struct statx st;

	if (statx(shm_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) ||
	    !S_ISREG(st.stx_mode) || st.stx_uid != geteuid())
		return false;
	if (!(st.stx_mask & STATX_BTIME))
		return true; /* an old kernel can't tell */
	if (st.stx_btime.tv_sec != told->stx_mtime.tv_sec)
		return st.stx_btime.tv_sec < told->stx_mtime.tv_sec;
	return st.stx_btime.tv_nsec <= told->stx_mtime.tv_nsec;
}

static void remove_listed(int shm_fd, char *names, const struct statx *told)
{
	char *next;

	for (char *name = names; name; name = next) {
		next = strchr(name, '\n');
		if (next)
			*next++ = '\0';
		if (is_file_name(name, strlen(name)) && is_leftover(shm_fd, name, told))
			(void)unlinkat(shm_fd, name, 0);
	}
}

/* Remove marker @number and the files of its owner, if that is dead. */
static void sweep(int shm_fd, uint64_t number)
{
	char names[MARKER_BYTES_MAX + 1], marker[32];
	struct statx told;
	int fd;

	name_marker(marker, number);
	fd = open_marker(shm_fd, marker);
	if (fd < 0)
		return;
	/* The holder of the lock sweeps alone; the lock falls with the descriptor. */
	if (!flock(fd, LOCK_EX | LOCK_NB) && read_marker(fd, names) &&
	    !statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &told)) {
		remove_listed(shm_fd, names, &told);
		wf_socket_sweep_beside(number);
		(void)unlinkat(shm_fd, marker, 0);
	}
	(void)close(fd);
}

void wf_host_peer_sweep(const struct wf_host_peer *peer)
{
	int shm_fd = open_shm();

	if (shm_fd < 0)
		return;
	sweep(shm_fd, peer->number);
	(void)close(shm_fd);
}

void wf_host_sweep(void)
{
	DIR *shm = opendir(SHM);
	struct dirent *entry;
	uint64_t number;

	if (!shm)
		return;
	while ((entry = readdir(shm)))
		if (is_marker(entry->d_name, &number))
			sweep(dirfd(shm), number);
	(void)closedir(shm);
}
