/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/file.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Size, map and seal the file @s->fd. */
static int make(struct wf_sealed *s, size_t bytes, enum wf_sealed_writers writers)
{
	int seals = SEALS | (writers == WF_SEALED_OWNER ? F_SEAL_FUTURE_WRITE : 0);
	struct stat st;
	void *base;
	int err;

	if (ftruncate(s->fd, (off_t)bytes) || fstat(s->fd, &st))
		return -errno;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	/* Seal after our own map, which F_SEAL_FUTURE_WRITE leaves writable. */
	if (fcntl(s->fd, F_ADD_SEALS, seals)) {
		err = -errno;
		(void)munmap(base, bytes);
		return err;
	}
	s->base = base;
	s->bytes = bytes;
	s->number = st.st_ino;
	return 0;
}

static int open_by(struct wf_sealed *s, const char *name, size_t bytes,
		   enum wf_sealed_writers writers, unsigned pages)
{
	struct wf_sealed fresh = { .fd = -1 };
	int err;

	if (!wf_file_may_have(bytes))
		return -EFBIG;
	fresh.fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | pages);
	if (fresh.fd < 0)
		return -errno;
	err = make(&fresh, bytes, writers);
	if (err) {
		(void)close(fresh.fd);
		return err;
	}
	*s = fresh;
	return 0;
}

int wf_sealed_open(struct wf_sealed *s, const char *name, size_t bytes,
		   enum wf_sealed_writers writers)
{
	return open_by(s, name, bytes, writers, 0);
}

int wf_sealed_open_huge(struct wf_sealed *s, const char *name, size_t bytes,
			enum wf_sealed_writers writers)
{
	return open_by(s, name, bytes, writers, MFD_HUGETLB | MFD_HUGE_2MB);
}

int wf_sealed_map(struct wf_sealed *s, int fd, size_t bytes, enum wf_sealed_writers writers)
{
	int rights = PROT_READ | (writers == WF_SEALED_ALL ? PROT_WRITE : 0);
	int seals = fcntl(fd, F_GET_SEALS), err = 0;
	void *base = MAP_FAILED;
	struct stat st;

	/* Only a file that can't shrink may be touched without fear of SIGBUS. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) || st.st_size <= 0 ||
	    (uint64_t)st.st_size < bytes)
		err = -EBADMSG;
	if (!err)
		base = mmap(NULL, (size_t)st.st_size, rights, MAP_SHARED, fd, 0);
	if (!err && base == MAP_FAILED)
		err = -errno;
	(void)close(fd);
	if (err)
		return err;
	*s = (struct wf_sealed){ base, (size_t)st.st_size, -1, st.st_ino };
	return 0;
}

void wf_sealed_close(struct wf_sealed *s)
{
	if (!s->base)
		return;
	(void)munmap(s->base, s->bytes);
	if (s->fd >= 0)
		(void)close(s->fd);
	*s = (struct wf_sealed){ .fd = -1 };
}

void wf_sealed_forked(struct wf_sealed *s)
{
	if (!s->base || s->fd < 0)
		return;
	/*
	 * A private map keeps the bytes, and the parent does not see what the child writes.  Huge pages
	 * for that are taken when it writes: the map itself must not fail for want of them.
	 */
	(void)mmap(s->base, s->bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, s->fd, 0);
	(void)close(s->fd);
	s->fd = -1;
}
