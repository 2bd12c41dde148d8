/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libfabric made of ops tables: one network in this process, with as many
 * nodes as a test likes, on virtual time.
 *
 * Linking this file instead of libfabric replaces it.  Things happen when
 * somebody polls a queue after their time has come (wf_clock_now); the same
 * seed and the same calls give the same run.
 *
 * It is as bad as real providers are where the knobs say so, and as strict as
 * the manual everywhere: a wrong call stops the test with a line that says why.
 */
#ifndef WF_FAKE_FABRIC_H
#define WF_FAKE_FABRIC_H

#include <rdma/fabric.h>

#include "util/base.h"

/* What was done to somebody, as the knobs say. */
enum wf_fake_fault {
	WF_FAKE_EAGAIN, WF_FAKE_FAIL, WF_FAKE_LOSE, WF_FAKE_AGAIN, WF_FAKE_STICK, WF_FAKE_TWICE,
	WF_FAKE_NOBODY, WF_FAKE_SHUFFLE, WF_FAKE_REORDER, WF_FAKE_SLOW, WF_FAKE_REFUSE, WF_FAKE_FLIP,
	WF_FAKE_HOLD, WF_FAKE_BREAK, WF_FAKE_FAULTS
};

/* Chances are out of 1000.  All zero: a perfect network without delay. */
struct wf_fake {
	uint64_t seed;
	uint32_t version;     /* of libfabric; 0: 1.17 */
	uint64_t mr_mode;     /* demanded: FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY ... */
	size_t inject_bytes;  /* 0: 64 */
	size_t slots_max;     /* receives that can be posted on one context; 0: 1024 */
	uint64_t delay_min_ns, delay_max_ns; /* one way, of everything */
	uint64_t send_ns;     /* until a send completes, and its message leaves */
	unsigned eagain;      /* a post is refused */
	unsigned fail;        /* an operation ends with an error; a connection dies of it */
	unsigned lose;        /* a message completes at its sender and never arrives */
	unsigned again;       /* a message arrives, and ends with an error at its sender */
	unsigned slow;        /* a message takes @slow_ns more */
	uint64_t slow_ns;
	unsigned refuse;      /* a registration fails */
	unsigned flip;        /* a read brings one wrong byte */
	unsigned stick;       /* a read never ends */
	unsigned twice;       /* a completion comes twice */
	unsigned nobody;      /* a completion with a NULL context comes besides */
	unsigned flip_end;    /* the last byte of a message of more than 128 is: of an eager body, if it ends so */
	const void *flip_at;  /* this byte of somebody's memory is another whenever it is read */
	bool shuffle;         /* completions in any order, but receives of a connection in theirs */
	bool reorder;         /* on a shared endpoint messages overtake each other */
	/* Asked first by every call that can fail: 0, or what it returns.  NULL: none does. */
	int (*veto)(const char *call);
	/*
	 * The NIC's window to the @bytes at @at of a device, from mmap and the fabric's from
	 * then on: 0, or why it can't have one.  NULL: no NIC reaches devices.
	 */
	int (*window)(const void *at, size_t bytes, void **window);
	bool reads_alone;     /* a read needs no progress of the one that is read */
	/* Told of each fault, and between which nodes (one and the same: none else has a part). */
	void (*fault)(enum wf_fake_fault fault, unsigned node, unsigned other);
};

/* Start a network.  The knobs may be turned later through wf_fake_knobs. */
void wf_fake_open(const struct wf_fake *fake);
struct wf_fake *wf_fake_knobs(void);

/* End it; how many libfabric objects were never closed. */
size_t wf_fake_close(void);

/*
 * What fi_getinfo offers.  At the start: "tcp" on lo (connected, 127.0.0.1)
 * and "efa" on fake0 (shared, no IP).  @ip may be NULL.
 */
void wf_fake_offer(enum fi_ep_type type, const char *provider, const char *domain, const char *ip);
void wf_fake_offer_nothing(void);

/* The last one is of the NIC with that bus and slot, function 0, of domain 0. */
void wf_fake_offer_at(uint8_t bus, uint8_t slot);

/* The last one's NIC reaches devices: it has FI_HMEM for those who ask. */
void wf_fake_offer_device(void);

/* Whatever is opened from here on belongs to @node (at most 1023; 0 at the start). */
void wf_fake_enter(unsigned node);

/* As SIGKILL does: what it had sent still arrives, what it holds is the test's to free. */
void wf_fake_kill(unsigned node);

/* As SIGSTOP and SIGCONT do; the test must not poll it meanwhile. */
void wf_fake_freeze(unsigned node, bool frozen);

/* Between @a and @b nothing passes any more, and nobody is told. */
void wf_fake_cut(unsigned a, unsigned b, bool cut);

/* Is there a key by which others may read of that memory; does a living node read of it now? */
bool wf_fake_is_open(const void *at, size_t bytes);
bool wf_fake_is_read(const void *at, size_t bytes);

/* The same for all that goes over @domain, whoever it is between.  One at a time; NULL: none. */
void wf_fake_cut_domain(const char *domain);

/* The connections over @domain break, as if its cable had been pulled where that is noticed. */
void wf_fake_break_domain(const char *domain);

/* What goes from @from to @to waits until the hold is let go. */
void wf_fake_hold(unsigned from, unsigned to, bool hold);

/* What is between @a and @b fails, and nothing new works until it is mended. */
void wf_fake_break(unsigned a, unsigned b, bool broken);

/* The next time at which something happens; UINT64_MAX: never, as things stand. */
uint64_t wf_fake_next_ns(void);

/* What was handed to the network and what arrived. */
uint64_t wf_fake_sent(void);
uint64_t wf_fake_arrived(void);

/* Connections that were asked for. */
uint64_t wf_fake_dialled(void);

/* Messages that came where no receive was posted, and had to wait for one. */
uint64_t wf_fake_overrun(void);

#endif
