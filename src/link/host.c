/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/host.h"
#include "util/pidfd.h"
#include "util/random.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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
#define MARKER_RANDOM_BYTES 8 /* two nodes never draw the same name */
#define NONCE_BYTES 16
#define NONCE_LINE_BYTES (2 * NONCE_BYTES + 1)
/* Within one page, so that a node killed in the middle of a write leaves all or nothing of it. */
#define MARKER_BYTES_MAX 4096

struct wf_host {
	struct wf_greet_host facts; /* facts.nonce is the one that peers read */
	int marker_fd;
	size_t marker_bytes;
};

struct wf_host_peer {
	int pid_fd;
};

static void put_hex(char *text, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* Only lower case: the one form that put_hex makes. */
static bool is_hex(const char *text)
{
	return *text && !text[strspn(text, "0123456789abcdef")];
}

static bool is_marker(const char *name)
{
	const size_t stem = strlen(MARKER_STEM);

	return !strncmp(name, MARKER_STEM, stem) && is_hex(name + stem);
}

/* The name of a plain file that a provider might have made, and of nothing outside /dev/shm. */
static bool is_file_name(const char *name, size_t length)
{
	static const char allowed[] = "0123456789:._-abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return length && name[0] != '.' && strspn(name, allowed) >= length;
}

/* A descriptor, or a negative code. */
static int open_shm(void)
{
	int fd = open(SHM, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A small text file of /proc. */
static int read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	int err;

	if (fd < 0)
		return -errno;
	got = read(fd, text, bytes - 1);
	err = got < 0 ? -errno : 0;
	(void)close(fd);
	if (err)
		return err;
	text[got] = '\0';
	return 0;
}

static int read_boot_id(uint8_t id[16])
{
	char text[64];
	size_t digits = 0;
	int err = read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text));

	if (err)
		return err;
	for (const char *at = text; *at && digits < 32; at++) {
		unsigned value;

		if (!isxdigit((unsigned char)*at))
			continue;
		value = (unsigned)(isdigit((unsigned char)*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
		id[digits / 2] = (uint8_t)(digits % 2 ? id[digits / 2] << 4 | value : value);
		digits++;
	}
	return digits == 32 ? 0 : -EIO;
}

/* When process @pid began, in ticks since boot: field 22 of its stat. */
static int read_start(const char *pid, uint64_t *start)
{
	char path[64], text[1024];
	const char *at;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	err = read_text(path, text, sizeof(text));
	if (err)
		return err;
	/* Field 2 is a name in brackets that may hold anything, so count from its end. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -EIO;
	*start = strtoull(at + 1, NULL, 10);
	return 0;
}

static int read_namespace(const char *path, uint64_t *inode)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	*inode = st.st_ino;
	return 0;
}

static int read_facts(struct wf_greet_host *facts)
{
	int err = read_boot_id(facts->boot_id);

	if (!err)
		err = read_namespace("/proc/self/ns/net", &facts->net_ns);
	if (!err)
		err = read_namespace("/proc/self/ns/pid", &facts->pid_ns);
	if (!err)
		err = read_start("self", &facts->pid_start);
	if (err)
		return err;
	facts->uid = geteuid();
	facts->pid = (uint64_t)getpid();
	facts->bell_fd = -1;
	facts->page_fd = -1;
	facts->lend_fd = -1;
	return 0;
}

/* Write nonce and @names, over whatever stood there. */
static int write_marker(struct wf_host *h, const char *names)
{
	char text[MARKER_BYTES_MAX];
	size_t names_bytes = strlen(names), bytes = NONCE_LINE_BYTES + names_bytes;
	size_t cover = WF_MAX(bytes, h->marker_bytes);

	if (bytes > sizeof(text))
		return -EMSGSIZE;
	/* Empty lines over a longer text, so that no half of an old name is ever there to be read. */
	memset(text, '\n', sizeof(text));
	put_hex(text, h->facts.nonce, NONCE_BYTES);
	text[NONCE_LINE_BYTES - 1] = '\n';
	memcpy(text + NONCE_LINE_BYTES, names, names_bytes);
	if (pwrite(h->marker_fd, text, cover, 0) != (ssize_t)cover ||
	    ftruncate(h->marker_fd, (off_t)bytes))
		return -EIO;
	h->marker_bytes = bytes;
	return 0;
}

/* The marker gets its name when it is locked and whole: a sweeper never sees it otherwise. */
static int make_marker(struct wf_host *h, int shm_fd)
{
	uint8_t random[MARKER_RANDOM_BYTES];
	char from[32];
	int err;

	h->marker_fd = open(SHM, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (h->marker_fd < 0)
		return -errno;
	wf_random_fill(h->facts.nonce, NONCE_BYTES);
	wf_random_fill(random, sizeof(random));
	strcpy(h->facts.shm_file, MARKER_STEM);
	put_hex(h->facts.shm_file + strlen(MARKER_STEM), random, sizeof(random));
	err = write_marker(h, "");
	if (!err && flock(h->marker_fd, LOCK_EX | LOCK_NB))
		err = -errno;
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", h->marker_fd);
	if (!err && linkat(AT_FDCWD, from, shm_fd, h->facts.shm_file, AT_SYMLINK_FOLLOW))
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
		return wf_error_set(e, -ENOMEM, "same-host facts: out of memory");
	err = read_facts(&h->facts);
	if (err) {
		(void)wf_error_set(e, err, "same-host facts: /proc does not tell: %s",
				   wf_error_name(err));
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
	h->facts.nonce_address = (uintptr_t)h->facts.nonce;

	*host = h;
	return 0;

free_host:
	free(h);
	return err;
}

void wf_host_close(struct wf_host *host)
{
	int shm_fd;

	if (!host)
		return;
	shm_fd = open_shm();
	if (shm_fd >= 0) {
		(void)unlinkat(shm_fd, host->facts.shm_file, 0);
		(void)close(shm_fd);
	}
	(void)close(host->marker_fd);
	free(host);
}

void wf_host_forked(struct wf_host *host)
{
	(void)close(host->marker_fd);
}

void wf_host_describe(const struct wf_host *host, struct wf_greet_host *facts)
{
	*facts = host->facts;
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

/* Open the marker @name, a regular file of this user: its descriptor, or a negative code. */
static int open_marker(int shm_fd, const char *name)
{
	struct stat st;
	int fd;

	if (!is_marker(name))
		return -EINVAL;
	/* Not blocking: the name may have been put on a fifo. */
	fd = openat(shm_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		(void)close(fd);
		return -EPERM;
	}
	return fd;
}

/* The whole text.  -EBADMSG: it is not a marker's, or not that of @nonce (NULL: any). */
static int read_marker(int marker_fd, const uint8_t *nonce, char text[MARKER_BYTES_MAX + 1])
{
	ssize_t got = pread(marker_fd, text, MARKER_BYTES_MAX, 0);
	char want[NONCE_LINE_BYTES];

	if (got < NONCE_LINE_BYTES)
		return -EBADMSG;
	text[got] = '\0';
	if (text[NONCE_LINE_BYTES - 1] != '\n')
		return -EBADMSG;
	text[NONCE_LINE_BYTES - 1] = '\0';
	if (!is_hex(text) || strlen(text) != NONCE_LINE_BYTES - 1)
		return -EBADMSG;
	if (!nonce)
		return 0;
	put_hex(want, nonce, NONCE_BYTES);
	return memcmp(text, want, NONCE_LINE_BYTES - 1) ? -EBADMSG : 0;
}

/* Do we see the peer's marker, and does it hold its nonce? */
static int see_marker(const struct wf_greet_host *theirs)
{
	char text[MARKER_BYTES_MAX + 1];
	int shm_fd = open_shm(), fd, err;

	if (shm_fd < 0)
		return shm_fd;
	fd = open_marker(shm_fd, theirs->shm_file);
	(void)close(shm_fd);
	if (fd < 0)
		return fd;
	err = read_marker(fd, theirs->nonce, text);
	(void)close(fd);
	return err;
}

/* Can we read the peer's memory, and is it the peer's? */
static int see_memory(const struct wf_greet_host *theirs)
{
	uint8_t nonce[NONCE_BYTES];
	struct iovec here = { nonce, sizeof(nonce) };
	struct iovec there = { (void *)(uintptr_t)theirs->nonce_address, sizeof(nonce) };
	ssize_t got;

	if (!theirs->pid || theirs->pid > INT_MAX)
		return -EBADMSG;
	got = process_vm_readv((pid_t)theirs->pid, &here, 1, &there, 1, 0);
	if (got < 0)
		return -errno;
	if (got != (ssize_t)sizeof(nonce) || memcmp(nonce, theirs->nonce, sizeof(nonce)))
		return -EBADMSG;
	return 0;
}

static const char *reason(int err)
{
	return err == -EBADMSG ? "it holds another nonce" : wf_error_name(err);
}

int wf_host_gate(const struct wf_greet_host *mine, const struct wf_greet_host *theirs,
		 struct wf_error *why)
{
	int err;

	if (memcmp(mine->boot_id, theirs->boot_id, sizeof(mine->boot_id)))
		return wf_error_set(why, -EXDEV, "it runs on another host");
	if (mine->uid != theirs->uid)
		return wf_error_set(why, -EXDEV, "it runs as uid %" PRIu64 ", this node as %" PRIu64,
				    theirs->uid, mine->uid);
	if (mine->pid_ns != theirs->pid_ns)
		return wf_error_set(why, -EXDEV, "it runs in another pid namespace");
	err = see_marker(theirs);
	if (err)
		return wf_error_set(why, err, "its marker " SHM "/%s can't be used: %s",
				    theirs->shm_file, reason(err));
	err = see_memory(theirs);
	if (err)
		return wf_error_set(why, err, "the memory of its process %" PRIu64
				    " can't be read: %s", theirs->pid, reason(err));
	return 0;
}

int wf_host_peer_open(const struct wf_greet_host *mine, const struct wf_greet_host *theirs,
		      struct wf_host_peer **peer)
{
	struct wf_host_peer *p;
	char pid[24];
	uint64_t start;
	int err;

	if (memcmp(mine->boot_id, theirs->boot_id, sizeof(mine->boot_id)) ||
	    mine->pid_ns != theirs->pid_ns)
		return -EXDEV;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pid_fd = wf_pidfd_open(theirs->pid);
	if (p->pid_fd < 0) {
		err = p->pid_fd;
		goto free_peer;
	}
	/* After opening: a number that changes hands in between shows a younger process here. */
	(void)snprintf(pid, sizeof(pid), "%" PRIu64, theirs->pid);
	err = read_start(pid, &start);
	if (err || start != theirs->pid_start) {
		err = -ESRCH;
		goto close_fd;
	}

	*peer = p;
	return 0;

close_fd:
	(void)close(p->pid_fd);
free_peer:
	free(p);
	return err;
}

void wf_host_peer_close(struct wf_host_peer *peer)
{
	if (!peer)
		return;
	(void)close(peer->pid_fd);
	free(peer);
}

int wf_host_peer_take(const struct wf_host_peer *peer, int fd)
{
	return wf_pidfd_take(peer->pid_fd, fd);
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
 * Is @name a file of this user, and as old as the marker of @told at least?  A
 * younger one belongs to a process that got the dead one's number, of which
 * providers make their names.
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

/* Remove the marker @name and what it lists, if its owner is dead (and has @nonce, unless NULL). */
static void sweep(int shm_fd, const char *name, const uint8_t *nonce)
{
	char text[MARKER_BYTES_MAX + 1];
	struct statx told;
	int fd = open_marker(shm_fd, name);

	if (fd < 0)
		return;
	/* Who holds the lock sweeps alone; it falls with the descriptor. */
	if (!flock(fd, LOCK_EX | LOCK_NB) && !read_marker(fd, nonce, text) &&
	    !statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &told)) {
		remove_listed(shm_fd, text + NONCE_LINE_BYTES, &told);
		(void)unlinkat(shm_fd, name, 0);
	}
	(void)close(fd);
}

void wf_host_peer_sweep(const struct wf_greet_host *theirs)
{
	int shm_fd = open_shm();

	if (shm_fd < 0)
		return;
	sweep(shm_fd, theirs->shm_file, theirs->nonce);
	(void)close(shm_fd);
}

void wf_host_sweep(void)
{
	DIR *shm = opendir(SHM);
	struct dirent *entry;

	if (!shm)
		return;
	while ((entry = readdir(shm)))
		if (is_marker(entry->d_name))
			sweep(dirfd(shm), entry->d_name, NULL);
	(void)closedir(shm);
}
