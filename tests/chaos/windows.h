/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows of traffic, at their owner: two for each peer, a calm one that stays and a wild one that
 * closes and opens again.  Each is published by a key, and has
 *
 *   marks        a number for each slot for puts: of the last put that its note has told of, plus 1
 *   gets         slots with bodies that are there to be read
 *   puts         slots into which its peer puts bodies, each put with a note
 *
 * A note is held against the bytes in the slot as soon as it comes.  When a window has closed, its
 * memory is watched for a while: nobody may write there.
 *
 * Threads: the one that drives the member; notes come on the worker.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/weft.h>

#include "content.h"

#define WINDOWS_SLOTS 8
#define WINDOWS_CALM_BYTES ((size_t)64 * 1024) /* of a slot */
#define WINDOWS_WILD_BYTES ((size_t)1024 * 1024)
#define WINDOWS_MARKS_BYTES (WINDOWS_SLOTS * sizeof(uint64_t))
#define WINDOWS_KEY_BYTES 32

struct traffic;

struct window {
	struct traffic *traffic;
	uint32_t peer;
	bool calm;
	size_t slot_bytes;
	unsigned char *memory; /* guarded */
	struct weft_window *window;
	uint64_t turn_ns;      /* when a wild one closes or opens again */
	uint64_t openings;
	pthread_mutex_t lock;  /* guards what follows */
	bool is_open;
	struct content_seen noted;
};

/* Content of a note, about its put. */
struct windows_note {
	struct content what;
	uint64_t slot, bytes;
};

/* Write the key of the window that its owner has for @peer.  Returns its length. */
size_t windows_key(char key[WINDOWS_KEY_BYTES], uint32_t peer, bool calm);

/* The place of a slot to get from, or to put into, in a window with slots of @slot_bytes. */
uint64_t windows_get_place(size_t slot, size_t slot_bytes);
uint64_t windows_put_place(size_t slot, size_t slot_bytes);

/* Open the windows of @t's node.  A negative code: the reason is in weft_error(). */
int windows_open(struct traffic *t);

/* Close, or open again, wild windows whose time has come. */
void windows_turn(struct traffic *t);

/* Close all windows, and see that their memory stays as it is. */
void windows_close(struct traffic *t);

/* Free what they had, after the node has closed: the last notes may be told after windows close. */
void windows_fini(struct traffic *t);

#endif
