/* SPDX-License-Identifier: BSD-2-Clause */
/* p2pmem: memory that a PCI device's driver offers to other devices, as an NVMe controller's. */
#include "memory/publisher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int find(struct wf_publisher_list *list, const struct wf_topology *t,
		const struct wf_rules *rules, struct wf_error *e)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	int err = 0;

	(void)rules;
	for (size_t i = 0; !err && i < t->device_count; i++) {
		const struct wf_topology_device *d = &t->devices[i];
		struct wf_topology_place place = { d, d->node };

		if (d->p2pmem)
			err = wf_publisher_add(list, &wf_publish_p2pmem, d->address, &place, t,
					       page_bytes, e);
	}
	return err;
}

/* The file by which programs get the memory; kernels before 6.2 have none. */
static bool allocate_path(const struct wf_publisher *p, char path[WF_SYSFS_PATH_BYTES])
{
	return wf_sysfs_path(path, p->place.device->path, "p2pmem/allocate");
}

static uint64_t number_of(const struct wf_publisher *p, const char *what)
{
	char path[WF_SYSFS_PATH_BYTES];
	uint64_t number;

	if (!wf_sysfs_path(path, p->place.device->path, "p2pmem/%s", what) ||
	    wf_sysfs_number(path, &number))
		return 0;
	return number;
}

/*
 * Look at the device's files.  A driver that has gone leaves none, which says the same as not
 * published.  The published memory is for other drivers; programs get it by a file of its own.
 */
static void look(struct wf_publisher *p)
{
	char path[WF_SYSFS_PATH_BYTES];

	p->bytes = number_of(p, "size");
	p->available_bytes = number_of(p, "available");
	p->why_not[0] = '\0';
	if (!number_of(p, "published") || !allocate_path(p, path))
		return;
	p->published = !faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS);
	if (!p->published)
		snprintf(p->why_not, sizeof(p->why_not), "its memory can't be opened: %s%s",
			 wf_error_name(-errno), errno == ENOENT ? ", as before Linux 6.2" : "");
}

/*
 * Each map of "allocate" is a piece of its own, until it is unmapped.  A forked child would keep
 * the device's memory from being given back.
 */
static int take(const struct wf_publisher *p, size_t bytes, struct wf_publisher_piece *piece,
		struct wf_error *e)
{
	struct wf_publisher_piece fresh = { .bytes = bytes, .file.fd = -1 };
	char path[WF_SYSFS_PATH_BYTES];
	int fd, err;

	if (!allocate_path(p, path))
		return wf_error_set(e, -ENAMETOOLONG, "%s: its path is too long", p->name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return wf_error_set(e, -errno, "%s: its memory can't be opened: %s", p->name,
				    wf_error_name(-errno));
	fresh.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = -errno;
	(void)close(fd);
	if (fresh.base == MAP_FAILED)
		return wf_error_set(e, err, "%s: its memory can't be mapped: %s", p->name,
				    wf_error_name(err));
	(void)madvise(fresh.base, bytes, MADV_DONTFORK);
	*piece = fresh;
	return 0;
}

static void forked(struct wf_publisher_piece *piece)
{
	(void)piece;
}

const struct wf_publisher_ops wf_publish_p2pmem = {
	.kind = "p2pmem",
	.rights = WF_PUBLISHER_CPU,
	.find = find,
	.look = look,
	.take = take,
	.give = wf_publisher_unmap,
	.forked = forked,
};
