/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landings of traffic, at their owner: a calm one that stays and a wild one that closes and opens
 * again, each shared by all peers and published by a key.
 *
 * A tensor is held against what it says of itself as soon as it is taken, and again when its slot
 * is given back, some time later: nobody may write there meanwhile.  When a landing has closed, its
 * memory is watched for a while.
 *
 * Threads: the one that drives the member; tensors come on the worker.
 */
#ifndef LANDINGS_H
#define LANDINGS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/weft.h>

#include "content.h"
#include "traffic.h"

#define LANDINGS_CALM_BYTES ((size_t)64 * 1024) /* of a slot */
#define LANDINGS_WILD_BYTES ((size_t)1024 * 1024)

struct landings_hold;

struct landing {
	struct traffic *traffic;
	bool calm;
	size_t slot_bytes, slots;
	unsigned char *memory; /* guarded */
	struct weft_landing *landing;
	uint64_t turn_ns;      /* when a wild one closes or opens again */
	pthread_mutex_t lock;  /* guards what follows */
	bool is_open;
	struct landings_hold *holds; /* tensors that were taken */
	struct content_seen landed[TRAFFIC_PEERS_MAX];
};

/* Returns the key of a member's landing. */
const char *landings_key(bool calm);

/* Open the landings of @t's node.  A negative code: the reason is in weft_error(). */
int landings_open(struct traffic *t);

/* Give slots back, and close, or open again, the wild landing, where the time has come. */
void landings_turn(struct traffic *t);

/* Close both, and see that their memory stays as it is. */
void landings_close(struct traffic *t);

/* Free what they had, after the node has closed. */
void landings_fini(struct traffic *t);

#endif
