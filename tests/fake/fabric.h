/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libfabric made of ops tables: one network in this process, with as many
 * nodes as a test likes, on virtual time.
 *
 * Linking this file instead of libfabric replaces libfabric.  Things happen when
 * somebody polls a queue after their time has come (wf_clock_now); the same
 * seed and the same calls give the same run.
 *
 * The fake is as bad as real providers where the knobs say so, and as strict as
 * the manual everywhere: a wrong call stops the test with a line that says why.
 */
#ifndef WF_FAKE_FABRIC_H
#define WF_FAKE_FABRIC_H

#include <rdma/fabric.h>

#include "util/base.h"

/* Faults that the knobs order. */
enum wf_fake_fault {
	WF_FAKE_EAGAIN, WF_FAKE_FAIL, WF_FAKE_LOSE, WF_FAKE_AGAIN, WF_FAKE_STICK, WF_FAKE_TWICE,
	WF_FAKE_NOBODY, WF_FAKE_SHUFFLE, WF_FAKE_REORDER, WF_FAKE_SLOW, WF_FAKE_REFUSE, WF_FAKE_FLIP,
	WF_FAKE_HOLD, WF_FAKE_BREAK, WF_FAKE_TAMPER, WF_FAKE_FAULTS
};

/* Chances are out of 1000.  All zero: a perfect network without delay. */
struct wf_fake {
	uint64_t seed;
	uint32_t version;     /* version of libfabric; 0: 1.17 */
	uint64_t mr_mode;     /* demanded: FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY ... */
	size_t inject_bytes;  /* 0: 64 */
	size_t slots_max;     /* receives that can be posted on one context; 0: 1024 */
	uint64_t delay_min_ns, delay_max_ns; /* one way, for everything */
	uint64_t send_ns;     /* time until a send completes, and its message leaves */
	unsigned eagain;      /* a post is refused */
	unsigned fail;        /* an operation ends with an error; a connection dies of it */
	unsigned lose;        /* a message completes at its sender and never arrives */
	unsigned again;       /* a message arrives, and ends with an error at its sender */
	unsigned slow;        /* a message takes @slow_ns more */
	uint64_t slow_ns;
	unsigned refuse;      /* a registration fails */
	uint64_t mr_bytes_max; /* bytes that a domain may register; 0: any number */
	unsigned flip;        /* a read brings one wrong byte */
	unsigned stick;       /* a read never ends */
	unsigned twice;       /* a completion comes twice */
	unsigned nobody;      /* a completion with a NULL context comes besides */
	unsigned tamper;      /* a message comes with one wrong bit */
	unsigned flip_end;    /* the last byte of a message of more than 128 bytes is wrong */
	const void *flip_at;  /* a byte that is wrong whenever a peer reads it */
	bool shuffle;         /* completions in any order, but receives of a connection in order */
	bool reorder;         /* on a shared endpoint messages overtake each other */
	/* Asked first by every call that can fail: 0, or the call's code.  NULL: no call fails. */
	int (*veto)(const char *call);
	/*
	 * Open the NIC's window to the @bytes at @at of a device, by mmap, and the fabric's from
	 * then on.  0, or a code: no window.  NULL: no NIC reaches devices.
	 */
	int (*window)(const void *at, size_t bytes, void **window);
	bool reads_alone;     /* a read needs no progress at the owner of the memory */
	/* Told of each fault, and of its two nodes (equal: no other node has a part). */
	void (*fault)(enum wf_fake_fault fault, unsigned node, unsigned other);
	/* Told of each message that leaves.  NULL: nobody is. */
	void (*sent)(const void *bytes, size_t count);
};

/* Start a network.  The knobs may be turned later through wf_fake_knobs. */
void wf_fake_open(const struct wf_fake *fake);
struct wf_fake *wf_fake_knobs(void);

/*
 * Say that the program's memory was mapped anew, to those that keep registrations of it: the
 * monitor of the kernel's is left out.
 */
void wf_fake_changed(const void *at, size_t bytes);

/* End the network.  Returns how many libfabric objects were never closed. */
size_t wf_fake_close(void);

/*
 * Add an offer of fi_getinfo.  At the start: "tcp" on lo (connected, 127.0.0.1)
 * and "efa" on fake0 (shared, no IP).  @ip may be NULL.
 */
void wf_fake_offer(enum fi_ep_type type, const char *provider, const char *domain, const char *ip);
void wf_fake_offer_nothing(void);

/* Times that a queue had more entries than it was opened for; those of an adapter can't. */
uint64_t wf_fake_queue_overruns(void);

/* Give the last offer the NIC with that bus and slot, function 0, of domain 0. */
void wf_fake_offer_at(uint8_t bus, uint8_t slot);

/* Let the NIC of the last offer reach devices: FI_HMEM for callers that ask. */
void wf_fake_offer_device(void);

/* Let all that is opened from now on belong to @node (at most 1023; 0 at the start). */
void wf_fake_enter(unsigned node);

/* Kill @node as SIGKILL does: messages already sent still arrive; its objects are the test's. */
void wf_fake_kill(unsigned node);

/* Stop @node as SIGSTOP does, or go on as SIGCONT does; the test must not poll it meanwhile. */
void wf_fake_freeze(unsigned node, bool frozen);

/* Cut @a from @b: nothing passes any more, and nobody is told. */
void wf_fake_cut(unsigned a, unsigned b, bool cut);

/* Is there a key by which others may read of that memory? */
bool wf_fake_is_open(const void *at, size_t bytes);
/* Does a living node read of that memory now? */
bool wf_fake_is_read(const void *at, size_t bytes);

/* Cut all that goes over @domain, between any nodes.  One domain at a time; NULL: none. */
void wf_fake_cut_domain(const char *domain);

/* Break the connections over @domain, as if its cable had been pulled where that is noticed. */
void wf_fake_break_domain(const char *domain);

/* Hold all that goes from @from to @to until the hold is let go. */
void wf_fake_hold(unsigned from, unsigned to, bool hold);

/* Fail all that is between @a and @b; nothing new works until that is mended. */
void wf_fake_break(unsigned a, unsigned b, bool broken);

/* The next time at which something happens; UINT64_MAX: never, as things stand. */
uint64_t wf_fake_next_ns(void);

/* Messages that were handed to the network, and messages that arrived. */
uint64_t wf_fake_sent(void);
uint64_t wf_fake_arrived(void);

/* Connections that were asked for. */
uint64_t wf_fake_dialled(void);

/* Messages that came where no receive was posted, and had to wait for one. */
uint64_t wf_fake_overrun(void);

#endif
