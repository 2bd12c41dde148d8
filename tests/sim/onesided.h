/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The windows of a simulated run, and the gets and puts of other nodes, with notes or without:
 * planned from chance, begun as time comes, and held to account.
 *
 * A window has a pattern, of which each word says its place, and each put a pattern of its own.
 * So it shows of each word of a window, or of what a get read, which put wrote it.  The checks:
 * each operation ends once and in time; a get has nothing but words that were in the window while
 * it ran; a put that ended well is in the window, and one that failed changes nothing afterwards;
 * no byte beside the blocks changes; a note comes once, after its bytes and after the notes of
 * operations that had ended before its own began; and a closed window's memory stays as it is.
 */
#ifndef WF_SIM_ONESIDED_H
#define WF_SIM_ONESIDED_H

#include "tests/sim/traffic.h"

struct wf_checker_config;

#define WF_ONESIDED_NEXTS 3 /* operations of a window that wait for notes */

struct wf_onesided_window {
	/* the plan */
	unsigned owner;
	uint64_t open_ns, close_ns; /* @close_ns 0: when all is over */
	size_t bytes;
	uint64_t seed;              /* seed of the window's own pattern */
	bool written;               /* there are puts */
	bool registered;            /* its memory is registered while it is open */

	/* the run */
	bool opened, refused;       /* refused: the window could not be opened */
	bool closed;                /* closed by its owner, or with its node */
	unsigned life;              /* life of its owner then */
	struct weft_window *window;
	struct weft_region *region; /* NULL: its memory is not registered */
	uint8_t *memory;
	uint8_t *copy;              /* memory as it was when the window had closed; NULL: before */
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t descriptor_bytes;
	struct weft_remote *remotes[WF_WORLD_NODES_MAX]; /* the window as each node knows it */
	unsigned remote_lives[WF_WORLD_NODES_MAX];
	struct wf_flight nexts[WF_ONESIDED_NEXTS];
	bool next_busy[WF_ONESIDED_NEXTS];
};

/* A get or put. */
struct wf_onesided_access {
	/* the plan */
	bool puts;
	struct wf_onesided_window *window;
	unsigned node;
	uint64_t begin_ns, limit_ns;
	uint64_t cancel_ns;         /* 0: never */
	uint64_t seed;              /* seed of a put's pattern */
	unsigned count;
	struct weft_block *blocks;
	size_t buffer_bytes;
	bool noted, summed, detached;
	bool registered;            /* its memory is registered, from its begin to its end */
	bool gives_up_window;       /* the remote window is closed as soon as the operation began */
	size_t note_bytes;

	/* the run */
	bool begun, refused;        /* refused: there was no memory, or no window, to begin */
	unsigned life;              /* life of its node, when the operation began */
	uint64_t bereft_ns;         /* when the owner died, to which there was a link; 0: it has not */
	struct wf_flight flight;
	bool hit_deadline, cancelled, seen;
	enum weft_executed executed;
	uint8_t *buffer;
	struct weft_region *region; /* NULL: it is not registered */
	uint8_t *landed;            /* bits of a failed put: words that were in the window at its end */
	unsigned taken;             /* times that its note was taken */
};

/* Plan windows, in some runs: drawn after all else. */
void wf_onesided_plan(const struct wf_traffic_config *config, const struct wf_checker_config *checks);

/* Do what is due.  Returns when the next thing is.  Time passes while a window closes. */
uint64_t wf_onesided_run(uint64_t now);

/* Is nothing left to begin, or to end? */
bool wf_onesided_is_over(void);

/* Check the operations that have ended since the last look. */
void wf_onesided_look(void);

/* Close all windows and remote windows that are left, and check them. */
void wf_onesided_close(void);

/* Check the windows as a whole, and count operations in the tally, when nothing runs any more. */
void wf_onesided_finish(void);

/* Note that node @number is about to die, as wf_traffic_bereave(). */
void wf_onesided_bereave(unsigned number);

struct wf_onesided_access *wf_onesided_accesses(unsigned *count);

/* Does @a run: begun in the present life of its node, and not ended? */
bool wf_onesided_is_live(const struct wf_onesided_access *a);

/* Give up the handles, before the nodes close. */
void wf_onesided_release(void);
/* Free the buffers, after the nodes have closed. */
void wf_onesided_free(void);

#endif
