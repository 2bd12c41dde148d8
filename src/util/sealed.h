/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed memory: a file of memory that stays as long as it is, and that other
 * processes can map.  Nobody who has mapped it can be crashed by its owner, and
 * where the owner alone writes nobody else can change what is there.
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
	int fd;     /* -1: it is somebody else's, or not open here */
	uint64_t number; /* of the file: no other of this host has it as long as anybody uses this one */
};

/* Memory of our own, all zero; @name is for people.  -EMFILE, -ENOMEM, -EFBIG (RLIMIT_FSIZE), ... */
int wf_sealed_open(struct wf_sealed *s, const char *name, size_t bytes,
		   enum wf_sealed_writers writers);

/*
 * That of somebody else, by a descriptor, which is closed in any case; to read, or where
 * all write to write, too.  -EBADMSG: it is something else, shorter than @bytes, or might
 * become so.
 */
int wf_sealed_map(struct wf_sealed *s, int fd, size_t bytes, enum wf_sealed_writers writers);

/* Accepts a zeroed one. */
void wf_sealed_close(struct wf_sealed *s);

/* In a forked child: our own memory there is a copy from now on, and the file is not open. */
void wf_sealed_forked(struct wf_sealed *s);

#endif
