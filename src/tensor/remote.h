/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote windows: windows of peers, as a node that knows their names uses them.
 *
 * A get reads the peer's memory by itself.  The first get of a window has it lent, as a whole and
 * until either end is done with it; later ones begin at once.  A get that wants a checksum has its
 * range lent alone, and so has one of a window that its owner does not lend as a whole: that of a
 * device, which is staged there.  A put (putting.h) needs no loan.
 *
 * Threads: owner.
 */
#ifndef WF_REMOTE_H
#define WF_REMOTE_H

#include "transfer/outgoing.h"
#include "transfer/pull.h"
#include "wire/access.h"

/* Remote windows of a worker. */
struct wf_remotes {
	struct wf_transfer *transfer;
	struct wf_freelist *pulls; /* spare struct wf_pull */
	struct wf_table asks;      /* struct wf_remote_ask */
};

/* A question to the owner of a window: an ASK for a range, or a PUSH without a body. */
struct wf_remote_ask {
	struct wf_remotes *remotes;
	uint64_t id;           /* in remotes->asks; 0: nothing is asked for */
	struct wf_link *link;  /* a reference, while asked */
	struct wf_list node;   /* in link->work, while asked */
	bool noted;            /* NOTED is the answer to a PUSH; else LEND is that to an ASK */
	/* The range is lent by @body, and @answer is taken; or a PUSH was taken; or @e says why not. */
	void (*answered)(struct wf_remote_ask *ask, const struct wf_body *body,
			 struct wf_answer *answer, const struct wf_error *e);
};

/*
 *   NONE ------> ASKED      a get needs the window
 *   ASKED -----> HELD       LEND has brought the offer
 *   ASKED -----> NONE       LEND has brought a refusal, or the peer is dead
 *   HELD ------> WITHDRAWN  the owner takes the offer back: gets stop, and ask again once
 *   HELD ------> NONE       the peer is dead, or the loan was given back, as to make room
 *   WITHDRAWN -> NONE       no get reads any more, and none waits
 *   WITHDRAWN -> ASKED      no get reads any more
 */
enum wf_remote_state {
	WF_REMOTE_NONE,
	WF_REMOTE_ASKED,
	WF_REMOTE_HELD,
	WF_REMOTE_WITHDRAWN /* the owner is told as soon as nothing reads */
};

struct wf_remote {
	/* set by the owner */
	struct wf_access_name name;
	uint64_t bytes;
	/* each block is lent alone: the window may not be filled yet, or is never lent as a whole */
	bool in_pieces;

	/* private to remote.c: the loan of the window for all gets that want no checksum */
	enum wf_remote_state state;
	struct wf_remote_ask ask;
	bool made_room;           /* another loan was given back for this one, and it is asked again */
	struct wf_body body;      /* the offer, while HELD */
	struct wf_answer *answer; /* the answer to the offer; NULL: there is none */
	struct wf_list waiting;   /* gets that wait for the loan */
	struct wf_list reading;   /* gets that read what is lent */
};

enum wf_remote_get_state {
	WF_REMOTE_GET_ENDED,
	WF_REMOTE_GET_WAITING, /* waits for a rail */
	WF_REMOTE_GET_ASKING,  /* waits for a loan */
	WF_REMOTE_GET_READING
};

/* A get: blocks of a remote window that are read, as one operation. */
struct wf_remote_get {
	/* set by the owner; all but the path is borrowed until done */
	struct wf_remote *remote;
	const struct wf_pull_block *blocks; /* one or more; @from is the place in the window */
	uint32_t count;
	void *span;          /* all blocks lie within @span_bytes from here */
	uint64_t span_bytes;
	const struct wf_kind_body *device; /* device that has all blocks here; NULL: the host */
	const struct wf_terms *terms;
	void (*done)(struct wf_remote_get *g, const struct wf_error *e);

	/* read by the owner, after the end too */
	struct wf_path path;
	bool refused; /* the owner of the window has refused: nothing was read */

	/* private to remote.c */
	enum wf_remote_get_state state;
	struct wf_remotes *remotes;
	struct wf_link *link;  /* a reference, until the end */
	struct wf_list node;   /* in link->work, or in a list of the remote window */
	bool alone;            /* blocks are lent one by one, to this get */
	int stopped;           /* why this node has given the get up while it reads; 0: it has not */
	uint32_t next;         /* the block that is asked for, or read, if @alone */
	struct wf_remote_ask ask; /* if @alone */
	struct wf_pull *pull;  /* NULL: none yet */
	struct wf_stage *stage; /* the pull's stage, if the memory here is a device's */
	bool anew;             /* a loan was taken back, and asked for again */
	bool taken_back;       /* the owner has taken back what the get reads, or read */
};

/* Set @r up.  Borrows what it is given. */
void wf_remotes_init(struct wf_remotes *r, struct wf_transfer *t, struct wf_freelist *pulls);
void wf_remotes_fini(struct wf_remotes *r);

/* Set @remote up, whose owner has set the name. */
void wf_remote_init(struct wf_remote *remote);

/* Give the loan of @remote back, which no get uses.  Harmless without one. */
void wf_remote_close(struct wf_remote *remote);

/* Begin @g over @link.  done may be called inside. */
void wf_remote_get(struct wf_remotes *r, struct wf_link *link, struct wf_remote_get *g);

/* End @g early with @e; done follows, maybe inside.  Harmless after the end. */
void wf_remote_stop(struct wf_remote_get *g, const struct wf_error *e);

/* Undo wf_remote_get() before @g had a rail: it may begin again.  -EALREADY. */
int wf_remote_take_back(struct wf_remote_get *g);

/* Say for people what @g waits for. */
void wf_remote_describe(const struct wf_remote_get *g, char *text, size_t bytes);

/* Returns a number that differs once @g has come further. */
uint64_t wf_remote_progress(const struct wf_remote_get *g);

/* Take LEND and NOTED records.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_remote_lend(struct wf_remotes *r, struct wf_link *link, const struct wf_record *record);
int wf_remote_noted(struct wf_remotes *r, struct wf_link *link, const struct wf_record *record);

/*
 * Expect an answer to @ask from the peer of @link; ask->id is what the answer repeats.  -ENOMEM,
 * -ENOSPC.
 */
int wf_remote_expect(struct wf_remotes *r, struct wf_link *link, struct wf_remote_ask *ask);

/* Stop waiting for the answer to @ask.  Harmless without one. */
void wf_remote_unask(struct wf_remote_ask *ask);

/* Events of @link: see struct wf_engine_sink. */
void wf_remote_up(struct wf_link *link);
void wf_remote_down(struct wf_link *link, const struct wf_error *e);

/*
 * Set @e to why the owner of a remote window refused, with @status; @peer: its name, for people.
 */
void wf_remote_why(struct wf_error *e, enum weft_status status, const char *peer);

#endif
