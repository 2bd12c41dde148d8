/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of members to the conductor about one operation: that it failed, or
 * that it broke a promise.  Times are of CLOCK_MONOTONIC, which all processes
 * of a host share, so that they can be held against the harms.
 *
 * Reports are written to a file that outlives its writer.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdint.h>
#include <time.h>

#include <weft/weft.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

enum report_kind {
	REPORT_SEND,
	REPORT_RECV,
	REPORT_CALL,
	REPORT_PING,
	REPORT_STAY, /* a receive that stays, or one of its tensors */
	REPORT_FIND, /* of a peer's window */
	REPORT_GET,
	REPORT_PUT,
	REPORT_WINDOW, /* at its owner */
	REPORT_SEEK, /* of a peer's landing */
	REPORT_PUSH,
	REPORT_LANDING, /* at its owner */
	REPORT_KINDS
};

enum report_fault {
	REPORT_FAILED,   /* operation ended, but not well; the conductor knows if for a reason */
	REPORT_LATE,     /* operation ended after its deadline and the bound, or not by then */
	REPORT_TWICE,    /* operation ended again, or was delivered again */
	REPORT_WRONG,    /* operation gave other bytes than were sent */
	REPORT_TOUCHED,  /* a byte beyond its buffer changed, or one within after its end */
	REPORT_LOST,     /* something that was told to have come has not */
	REPORT_LEAKED,   /* the node left something behind */
	REPORT_FAULTS
};

struct report {
	uint32_t member;    /* the reporter */
	uint32_t peer;      /* the other end; the reporter itself when there is none */
	uint32_t kind;      /* enum report_kind */
	uint32_t fault;     /* enum report_fault */
	uint32_t status;    /* enum weft_status */
	uint32_t is_calm;   /* neither end cancels, and there is time enough */
	uint64_t begun_ns;
	uint64_t due_ns;    /* the deadline, or when it was cancelled; without the bound */
	uint64_t cancelled_ns; /* 0: not cancelled */
	uint64_t ended_ns;
	char text[192];
};

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Time beyond weft's own bound: two busy cores, and other programs on them. */
#define SLACK_NS (1 * SECOND)

#endif
