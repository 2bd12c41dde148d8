/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fabrics, CUDA and settings of this host: what there is, what weft would choose, and why.
 *
 * Threads: any; an info belongs to one thread at a time.
 */
#ifndef WEFT_INFO_H
#define WEFT_INFO_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_info;

/* A provider and domain that libfabric offers.  Strings live as long as the info. */
struct weft_fabric {
	size_t size;
	const char *provider; /* libfabric's full name */
	const char *domain;   /* NIC, interface or domain name */
	/* "connected": an endpoint for each peer (FI_EP_MSG); "shared": one for all (FI_EP_RDM). */
	const char *shape;
	const char *wait;     /* "level", "edge", "pollfd", "doorbell" or "none" */
	const char *row;      /* weft's profile of such providers, see weft_providers(7) */
	const char *reason;   /* why a node would open this entry or not, one phrase */
	int used;             /* not 0: a node would open this entry */
	int tested;           /* not 0: weft's tests have run over providers of this row */
	unsigned rank;        /* entries of lower rank are preferred */
	size_t frame_bytes;   /* largest message */
	size_t inject_bytes;  /* longest message sent without keeping its buffer */
	size_t chunk_bytes;   /* bytes of each read of a large body */
	unsigned depth;       /* reads of a body that are under way at once */
	int registration_is_cheap; /* not 0: a body gets a key of its own */
	int hmem;             /* not 0: libfabric has FI_HMEM, so the NIC may reach device memory */
	/* Stand-in hardware of the tests, as "Soft-RoCE in virtual machines"; "": none. */
	const char *tested_over;
	/*
	 * Whether memory of the program's stays registered, where registering is expensive: "yes",
	 * or "no: " and the reason; "" where it is cheap.
	 */
	const char *cached;
	size_t eager_bytes;   /* bodies up to here go in frames, longer ones are pulled */
};
#define WEFT_FABRIC_INIT WEFT_SIZED_INIT(struct weft_fabric)

/*
 * Ask libfabric, under FI_PROVIDER, WEFT_PROVIDER and WEFT_DEVICE and what @options narrow further
 * (NULL: nothing).  Returns @info owned: free it with weft_info_close().
 * -ELIBACC: libfabric can't be loaded; -ELIBBAD: libfabric is not the one weft was built for.
 * -ENODATA: nothing fits; weft_error() says what was asked for and what there is.
 * -EINVAL: an option is wrong.
 */
WEFT_API int weft_info_open(const struct weft_node_options *options,
			    struct weft_info **info);

/*
 * Ask as weft_info_open() does, but succeed also where a node would open nothing: each entry says
 * why.  -ENODATA: libfabric offers nothing at all.
 */
WEFT_API int weft_info_look(const struct weft_node_options *options,
			    struct weft_info **info);

/* Free @info; accepts NULL. */
WEFT_API void weft_info_close(struct weft_info *info);

/* Returns the number of entries, which are in order, the best first. */
WEFT_API size_t weft_info_count(const struct weft_info *info);

/* Describe entry @index; set ->size first.  -EINVAL: there is no such entry. */
WEFT_API int weft_info_get(const struct weft_info *info, size_t index,
			   struct weft_fabric *fabric);

/*
 * Returns the running libfabric's version, as "1.17"; "none": libfabric can't be loaded.  Valid
 * until the next call in this thread.
 */
WEFT_API const char *weft_info_libfabric(void);

/* Security of a node that opened now: weft_security(7).  Strings live as long as the info. */
struct weft_info_secure {
	size_t size;
	const char *mode;     /* "open", "keyed" or "sealed"; "": no node would open */
	const char *identity; /* as peers see it; "": the node proves nothing, or has no name */
	const char *sentence; /* the mode in words for people, or why no node would open */
};
#define WEFT_INFO_SECURE_INIT WEFT_SIZED_INIT(struct weft_info_secure)

/*
 * Read the files that WEFT_KEY_FILE and its like name, as a node would; set ->size first.
 * -EINVAL: ->size is not set.
 */
WEFT_API int weft_info_security(struct weft_info *info, struct weft_info_secure *secure);

/* CUDA, as weft and libfabric find it.  Strings live as long as the info. */
struct weft_cuda {
	size_t size;
	/*
	 * "ready", "off", "no driver", "too old", "incomplete", "failed", "no device" or "forked"
	 */
	const char *state;
	const char *sentence; /* the state in words for people, with the reason */
	int version;          /* version of the driver, as 13000 for 13.0; 0: unknown */
	size_t device_count;
	const char *fabric;   /* CUDA support of libfabric itself, one sentence */
};
#define WEFT_CUDA_INIT WEFT_SIZED_INIT(struct weft_cuda)

/* A CUDA device. */
struct weft_cuda_device {
	size_t size;
	char name[96];
	char pci[16];   /* PCI address, as "0000:3b:00.0"; "": unknown */
	uint64_t bytes; /* memory of the device */
	int numa_node;  /* NUMA node of the host nearest to the device; -1: unknown */
	int dma_buf;    /* not 0: the device gives cards its memory by dma-buf */
};
#define WEFT_CUDA_DEVICE_INIT WEFT_SIZED_INIT(struct weft_cuda_device)

/*
 * Describe CUDA on this host; set ->size first.  Loads the driver, as WEFT_CUDA says, and may
 * block for a second.  -EINVAL: ->size is not set.
 */
WEFT_API int weft_info_cuda(struct weft_info *info, struct weft_cuda *cuda);

/* Describe device @index; set ->size first.  -EINVAL: there is no such device. */
WEFT_API int weft_info_cuda_device(const struct weft_info *info, size_t index,
				   struct weft_cuda_device *device);

/* Place of a body: memory of the user's own, or of the node's pool. */
enum weft_place { WEFT_PLACE_USER = 0, WEFT_PLACE_POOL = 1 };

/*
 * Write into @text how a body of @bytes would go by entry @index, as one line that gives way,
 * chunk, depth and reason, cut at @text_bytes.  Transfers run the same code.
 * -EINVAL: there is no such entry.
 */
WEFT_API int weft_info_plan(const struct weft_info *info, size_t index, uint64_t bytes,
			    enum weft_place source, enum weft_place destination,
			    char *text, size_t text_bytes);

/* A setting of weft.  Strings live for ever. */
struct weft_option {
	size_t size;
	const char *name;    /* environment variable */
	const char *alias;   /* other name of the variable, or "" */
	const char *unit;    /* "bytes", "ns", "text", "count", "yes/no" */
	const char *preset;  /* the default, as text; always allowed */
	const char *least;   /* lower limit, as text; "": none */
	const char *most;    /* upper limit, as text; "": none */
	const char *when;    /* when to change the setting */
};

#define WEFT_OPTION_INIT WEFT_SIZED_INIT(struct weft_option)

/* Returns the number of settings. */
WEFT_API size_t weft_option_count(void);

/* Describe setting @index; set ->size first.  -EINVAL: there is no such setting. */
WEFT_API int weft_option_get(size_t index, struct weft_option *option);

#ifdef __cplusplus
}
#endif
#endif
