/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed memory: a file of memory (memfd) of fixed length that other processes can map.  Its
 * owner can't crash a process that has mapped it, and where the owner alone writes no other
 * process can change its bytes.
 *
 * Threads: any.
 */
#ifndef WF_SEALED_H
#define WF_SEALED_H

#include "util/base.h"

enum wf_sealed_writers { WF_SEALED_OWNER, WF_SEALED_ALL };

struct wf_sealed {
	void *base; /* NULL: not open */
	size_t bytes;
	int fd;     /* -1: another process's memory, or not open here */
	uint64_t number; /* inode, unique on this host as long as the file is in use */
};

/*
 * Make memory of our own, all zero; @name is for people.  -EMFILE, -ENOMEM, -EFBIG
 * (RLIMIT_FSIZE), ...
 */
int wf_sealed_open(struct wf_sealed *s, const char *name, size_t bytes,
		   enum wf_sealed_writers writers);

/* Make memory of our own in huge pages of 2 MiB.  Codes as above; -ENOMEM: there are too few. */
int wf_sealed_open_huge(struct wf_sealed *s, const char *name, size_t bytes,
			enum wf_sealed_writers writers);

/*
 * Map another process's memory by its descriptor, which is closed in any case; for reading,
 * with WF_SEALED_ALL for writing too.  -EBADMSG: @fd is not sealed memory, or is or might
 * become shorter than @bytes.
 */
int wf_sealed_map(struct wf_sealed *s, int fd, size_t bytes, enum wf_sealed_writers writers);

/* Unmap and close the memory.  Accepts a zeroed struct. */
void wf_sealed_close(struct wf_sealed *s);

/* Make our own memory a copy in a forked child, and close its file there. */
void wf_sealed_forked(struct wf_sealed *s);

#endif
