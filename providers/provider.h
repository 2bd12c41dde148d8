/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row per libfabric provider: what libfabric does not report, or reports wrongly.  Limits,
 * modes and ordering, which libfabric does report, are read from it and stand in no row.
 *
 * Threads: any; rows are constant.
 */
#ifndef WF_PROVIDER_H
#define WF_PROVIDER_H

#include "util/base.h"

/* connected: FI_EP_MSG, one endpoint a link.  shared: FI_EP_RDM, one for all. */
enum wf_provider_shape { WF_SHAPE_CONNECTED, WF_SHAPE_SHARED };

/* How a sleeping worker learns of work. */
enum wf_provider_wait {
	WF_WAIT_NONE,     /* no way: poll at short intervals */
	WF_WAIT_LEVEL,    /* descriptor and fi_trywait */
	WF_WAIT_EDGE,     /* descriptor, edge-triggered, drained first */
	WF_WAIT_POLLFD,   /* edge-triggered, on all descriptors behind a queue: WF_QUIRK_SLOW_FD */
	WF_WAIT_DOORBELL  /* the peer rings weft's own doorbell */
};

/* Does closing a key stop a read in progress? */
enum wf_provider_revoke { WF_REVOKE_NONE, WF_REVOKE_KEY };

enum wf_provider_quirk_kind {
	WF_QUIRK_NONE,
	WF_QUIRK_CQ_PER_EP,    /* every endpoint needs its own completion queue */
	WF_QUIRK_SLOW_FD,      /* a queue's descriptor slows each packet: take those behind it */
	WF_QUIRK_FREES_TWICE,  /* frees a read twice if its endpoint closes before it ends */
	WF_QUIRK_SHM_FILES,    /* a killed process leaves files in /dev/shm */
	WF_QUIRK_HALF_OPEN,    /* keeps a still silent connection when its listener closes */
	WF_QUIRK_ORPHANS,      /* keeps a silent connection, with its descriptor, for ever */
	WF_QUIRK_LOCAL_NICS,   /* offers interfaces that reach no other host */
	WF_QUIRK_SYNC_READ,    /* a read moves its bytes inside the call */
	WF_QUIRK_READ_LOCKS,   /* a read holds a lock of the peer's: weft reads by itself */
	WF_QUIRK_SHARED_LOCK,  /* a process killed inside a call hangs the others: one at a time */
	WF_QUIRK_UNIQUE_NAME,  /* endpoint names must be made unique by us */
	WF_QUIRK_LIVE_NAME,    /* even a name that the peer has just sent is bad without its file */
	WF_QUIRK_HALF_MET,     /* the entry of a peer that went before it answered spoils the next */
	WF_QUIRK_ONE_REGION,   /* endpoints of a process share regions: the first close ends them */
	WF_QUIRK_NEVER_CLOSE   /* closing an endpoint under traffic crashes */
};

struct wf_provider_quirk {
	enum wf_provider_quirk_kind kind;
	unsigned since;  /* only from libfabric FI_VERSION(...) on */
	unsigned before; /* only for libfabric older than FI_VERSION(...), 0: all */
	const char *why;
	const char *test; /* the test that would fail without the quirk */
};

struct wf_provider {
	const char *name;  /* libfabric's provider name, or NULL: matches any */
	const char *label; /* name that `weft info` prints */
	unsigned rank;     /* lower is preferred */
	enum wf_provider_shape shape;
	enum wf_provider_wait wait;
	enum wf_provider_revoke revoke;
	bool by_name;      /* serves only when named */
	bool same_host;    /* reaches this host only */
	bool rdma;         /* TF_RDMA_ENABLED=false excludes it */
	bool by_ip;        /* addresses are IP addresses and ports */
	bool reg_cheap;    /* registering costs under a microsecond: keys are made per offer */
	bool not_forked;   /* children forked after a process asked for the provider can't use it */
	bool device;       /* the NIC reaches a device's memory, where libfabric offers FI_HMEM */
	bool tested;       /* weft's own tests have run on the provider */
	const char *tested_over; /* stand-in for the hardware in the tests; NULL: none */
	const char *refused; /* why the provider is never used, or NULL */
	size_t frame_bytes;  /* the largest message: below the provider's own rendezvous */
	size_t eager_bytes;  /* bodies up to this go in frames */
	size_t chunk_bytes;  /* bytes of a read of a pull */
	unsigned depth;      /* reads in flight */
	size_t helper_bytes; /* bodies from here up are read by two threads; 0: none */
	unsigned ping_ms;    /* how long a ping may take before another rail is tried; 0: 500 */
	size_t devshm_bytes; /* bytes of /dev/shm that an endpoint takes; 0: none */
	unsigned peers_max;  /* entries of the address vector; 0: no limit known */
	const struct wf_provider_quirk *quirks; /* ends with WF_QUIRK_NONE */
};

/* A variable that libfabric reads at its first use; weft sets it when it is unset. */
struct wf_provider_setting {
	const char *name;
	const char *value;
	const char *why;
	const char *provider; /* set only if this provider is named; NULL: always */
	unsigned before;      /* only for libfabric older than FI_VERSION(...), 0: all */
};

/* All settings; ends with a NULL name. */
extern const struct wf_provider_setting wf_provider_settings[];

/*
 * Prefixes of the variables that libfabric and its providers read; ends with NULL.  Some of
 * these variables name files to load or to write.
 */
extern const char *const wf_provider_variables[];

/* Every row, best first, the generic one last; ends with NULL. */
extern const struct wf_provider *const wf_providers[];

/* Return the row for libfabric's @name; the generic row if none has it. */
const struct wf_provider *wf_provider_find(const char *name);

/* Return whether @row has @kind with the libfabric of version @version. */
bool wf_provider_has(const struct wf_provider *row, enum wf_provider_quirk_kind kind,
		     unsigned version);

#endif
