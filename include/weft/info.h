/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this host offers, what weft would choose, and why.
 *
 * Threads: any; one info belongs to one thread at a time.
 */
#ifndef WEFT_INFO_H
#define WEFT_INFO_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_info;

/* One way that libfabric offers to reach others.  Strings live as long as the info. */
struct weft_fabric {
	size_t size;
	const char *provider; /* libfabric's full name */
	const char *domain;   /* NIC, interface or domain name */
	const char *shape;    /* "connected" or "shared" */
	const char *wait;     /* "level", "edge", "pollfd", "doorbell" or "none" */
	const char *row;      /* the row of weft's table that describes it */
	const char *reason;   /* why it is used or not, one phrase */
	int used;             /* would a node open it? */
	int tested;           /* has this row been run by weft's tests? */
	unsigned rank;        /* lower is preferred */
	size_t frame_bytes;
	size_t inject_bytes;
	size_t chunk_bytes;
	unsigned depth;
	int registration_is_cheap;
	int hmem;             /* libfabric has FI_HMEM for it: its NIC may reach the memory of devices */
	const char *tested_over; /* tested there alone, as "Soft-RoCE in virtual machines"; "": on what it is for */
};

/*
 * Ask libfabric, under FI_PROVIDER, WEFT_PROVIDER and WEFT_DEVICE and what
 * @options narrow further (NULL: nothing).
 * -ELIBACC: there is no libfabric; -ELIBBAD: it is not the one weft was built for.
 * -ENODATA: nothing fits; weft_error() says what was asked for and what there is.
 */
WEFT_API int weft_info_open(const struct weft_node_options *options,
			    struct weft_info **info);

/*
 * The same for who only looks: where nothing is left that a node would open,
 * each entry says why.  -ENODATA: libfabric offers nothing at all.
 */
WEFT_API int weft_info_look(const struct weft_node_options *options,
			    struct weft_info **info);
WEFT_API void weft_info_close(struct weft_info *info);

WEFT_API size_t weft_info_count(const struct weft_info *info);

/* Describe entry @index; set ->size first.  -EINVAL: no such entry. */
WEFT_API int weft_info_get(const struct weft_info *info, size_t index,
			   struct weft_fabric *fabric);

/* The running libfabric's version, as "1.17"; "none": it can't be loaded. */
WEFT_API const char *weft_info_libfabric(void);

/* CUDA, as weft and libfabric find it.  Strings live as long as the info. */
struct weft_cuda {
	size_t size;
	const char *state;    /* "ready", "off", "no driver", "too old", "incomplete", "failed", "no device" or "forked" */
	const char *sentence; /* the same for people, with the reason */
	int version;          /* of the driver, as 13000 for 13.0; 0: unknown */
	size_t device_count;
	const char *fabric;   /* what libfabric itself has of CUDA, one sentence */
};

/* A CUDA device. */
struct weft_cuda_device {
	size_t size;
	char name[96];
	char pci[16];   /* its address, as "0000:3b:00.0"; "": unknown */
	uint64_t bytes; /* of its memory */
	int numa_node;  /* of the host, nearest to it; -1: unknown */
	int dma_buf;    /* does it give cards its memory that way? */
};

/*
 * What CUDA there is; set ->size first.  Loads the driver, as WEFT_CUDA says,
 * and may block for a second.  -EINVAL: ->size is not set.
 */
WEFT_API int weft_info_cuda(struct weft_info *info, struct weft_cuda *cuda);

/* Describe device @index; set ->size first.  -EINVAL: no such device. */
WEFT_API int weft_info_cuda_device(const struct weft_info *info, size_t index,
				   struct weft_cuda_device *device);

/* Where a body lies. */
enum weft_place { WEFT_PLACE_USER = 0, WEFT_PLACE_POOL = 1 };

/*
 * How a body of @bytes would go by entry @index, as one line of text
 * that gives way, chunk, depth and reason.  The same code as transfers run.
 */
WEFT_API int weft_info_plan(const struct weft_info *info, size_t index, uint64_t bytes,
			    enum weft_place source, enum weft_place destination,
			    char *text, size_t text_bytes);

/* One setting of weft.  Lives for ever. */
struct weft_option {
	const char *name;    /* environment variable */
	const char *alias;   /* another name for it, or "" */
	const char *unit;    /* "bytes", "ns", "text", "count", "yes/no" */
	const char *preset;  /* the default, as text; always allowed */
	const char *least;   /* the limits, as text; "" where there are none */
	const char *most;
	const char *when;    /* when to change it */
};

/* All settings, @count of them. */
WEFT_API const struct weft_option *weft_options(size_t *count);

#ifdef __cplusplus
}
#endif
#endif
