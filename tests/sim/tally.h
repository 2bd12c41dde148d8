/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of a number of simulated runs: counts that processes add up in
 * memory they share, and the tables that are printed of them.
 */
#ifndef WF_SIM_TALLY_H
#define WF_SIM_TALLY_H

#include "util/base.h"

/* Faults of a run.  The last are done to single operations, or those of a step. */
enum wf_fault {
	WF_FAULT_DELAY,     /* messages take much longer than others */
	WF_FAULT_ORDER,     /* completions, and messages on shared endpoints, out of order */
	WF_FAULT_AGAIN,     /* posts are refused with -FI_EAGAIN */
	WF_FAULT_ERROR,     /* operations end with an error */
	WF_FAULT_LOSS,      /* sends end well and never arrive */
	WF_FAULT_DUPLICATE, /* sends arrive and end with an error: the replay comes twice */
	WF_FAULT_TWICE,     /* completions come twice */
	WF_FAULT_STRAY,     /* completions with a NULL context */
	WF_FAULT_CREDIT,    /* one way is held back: credits and acknowledgements come late */
	WF_FAULT_REGISTER,  /* a registration fails */
	WF_FAULT_POOL,      /* the pool has no memory */
	WF_FAULT_FLIP,      /* a read brings a wrong byte; only where there are checksums */
	WF_FAULT_STUCK,     /* reads never end */
	WF_FAULT_RAIL,      /* a rail dies and comes back */
	WF_FAULT_DOOR,      /* the door's connection is reset */
	WF_FAULT_PART,      /* two nodes hear nothing of each other */
	WF_FAULT_KILL,      /* a node dies */
	WF_FAULT_RESTART,   /* a node dies and starts anew at its address */
	WF_FAULT_FREEZE,    /* a node stands still for less than makes it lost */
	WF_FAULT_STALL,     /* a node stands still for longer */
	WF_FAULT_LEAVE,     /* a node closes in mid-traffic */
	WF_FAULT_MEMORY,    /* allocations fail */
	WF_FAULT_DRAIN,     /* a node takes no more calls */
	WF_FAULT_LANE,      /* a network of two falls silent, or its connections break */
	WF_FAULT_REKEY,     /* the nodes get another key, one after the other */
	WF_FAULT_TAMPER,    /* messages come with a wrong bit; only where frames are sealed */
	WF_FAULT_ABORT,     /* a step is aborted */
	WF_FAULT_END,       /* a step is ended, in the middle of it */
	WF_FAULT_CANCEL,
	WF_FAULT_DEADLINE,
	WF_FAULTS
};

/* The state of something when a fault came. */
enum wf_state {
	WF_STATE_SEND_WAITING, WF_STATE_SEND_QUEUED, WF_STATE_SEND_OFFERED, WF_STATE_SEND_PULLED,
	WF_STATE_SEND_WITHDRAWING,
	WF_STATE_RECEIVE_WAITING, WF_STATE_RECEIVE_MEMORY, WF_STATE_RECEIVE_PULLING,
	WF_STATE_RECEIVE_STOPPING, WF_STATE_RECEIVE_RELAYING, WF_STATE_RECEIVE_SERVING,
	WF_STATE_STAYING_WAITING, WF_STATE_STAYING_FULL,
	WF_STATE_CALL_WAITING, WF_STATE_CALL_QUEUED, WF_STATE_CALL_OFFERED,
	WF_STATE_CALL_DELIVERED, WF_STATE_CALL_REPLY, WF_STATE_CALL_BUFFERS,
	WF_STATE_SERVED_REQUEST, WF_STATE_SERVED_HANDLING, WF_STATE_SERVED_REPLYING,
	WF_STATE_STREAM_WAITING, WF_STATE_STREAM_QUEUED, WF_STATE_STREAM_OFFERED,
	WF_STATE_STREAM_FULL, WF_STATE_STREAM_READING, WF_STATE_STREAM_UNREAD,
	WF_STATE_STREAM_PULLING,
	WF_STATE_ATTACHMENT_WAITING, WF_STATE_ATTACHMENT_MEMORY, WF_STATE_ATTACHMENT_QUEUED,
	WF_STATE_ATTACHMENT_OFFERED, WF_STATE_ATTACHMENT_WITHDRAWING,
	WF_STATE_ATTACHMENTS_COMING, WF_STATE_ATTACHMENTS_KEPT,
	WF_STATE_ATTACHMENTS_MEMORY, WF_STATE_ATTACHMENTS_PULLING, WF_STATE_ATTACHMENTS_STOPPING,
	WF_STATE_GET_WAITING, WF_STATE_GET_ASKING, WF_STATE_GET_READING, WF_STATE_GET_STOPPING,
	WF_STATE_GET_TELLING,
	WF_STATE_PUT_WAITING, WF_STATE_PUT_QUEUED, WF_STATE_PUT_OFFERED, WF_STATE_PUT_WITHDRAWING,
	WF_STATE_PING,
	WF_STATE_LINK_IDLE, WF_STATE_LINK_DIALLING, WF_STATE_LINK_TRYING, WF_STATE_LINK_UP,
	WF_STATE_LINK_REDIALLING,
	WF_STATES
};

struct wf_tally {
	uint64_t runs, failures, operations;
	uint64_t ended_well, replayed, views;
	uint64_t children, orphans;  /* calls made by handlers; those that ended with a parent */
	uint64_t attached, received; /* operations of attachments that were begun */
	uint64_t gets, puts, notes;  /* operations that were begun; notes that were taken */
	uint64_t staying, told;      /* receives that stay and were begun; tensors that they told */
	uint64_t probed;             /* probes that found a tensor */
	uint64_t pushes, landed; /* pushes that were begun; tensors that were taken */
	uint64_t broadcasts, broadcasts_well; /* broadcasts that were begun; that ended well */
	uint64_t sets, fused, fused_well; /* sets of receives; items that were told; that were OK */
	uint64_t injected[WF_FAULTS];
	uint64_t seeds[WF_FAULTS];            /* runs in which the fault came */
	uint64_t pairs[WF_FAULTS][WF_FAULTS]; /* runs in which the two came */
	uint64_t hits[WF_STATES][WF_FAULTS];
};

extern const char *const wf_tally_faults[WF_FAULTS];
extern const char *const wf_tally_states[WF_STATES];

/* Add the results of a run; pairs and seeds follow from its faults.  Threads: any. */
void wf_tally_add(struct wf_tally *sum, const struct wf_tally *run);

/* Print all counts; @tables: with each pair and each state. */
void wf_tally_print(const struct wf_tally *t, bool tables);

/* Why @state can't be hit by @fault; NULL: it can. */
const char *wf_tally_why_not(enum wf_state state, enum wf_fault fault);

#endif
