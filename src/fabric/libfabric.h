/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libfabric, loaded at its first use instead of being linked.
 *
 * A linked library is loaded, with all that it needs, before any code of weft's
 * runs: a missing library keeps the program from starting, and the signal handlers
 * that its parts install (psm's, with 1.17) are over the program's own.  Loaded
 * here, a missing library is an error sentence, and the handlers are put back.
 *
 * weft calls five functions of libfabric by name; everything else is called
 * through tables in what the five return.  libfabric.c defines the five, under
 * libfabric's own names and hidden in this library, and passes each call on. So
 * <rdma/fabric.h> and its inlines are used as they are, and a test with a
 * fabric of its own defines the five, and the functions below, in place of this
 * object. Of the five only fi_version may be called before libfabric is loaded,
 * and returns 0 then.
 *
 * libfabric is never unloaded: threads and handlers of it may still be there.
 * When the process exits, the destructors of libfabric run before those of an
 * object that was loaded after it and needs weft; a node that is closed there
 * ends well with 1.17 and 2.1.
 *
 * Threads: any.
 */
#ifndef WF_LIBFABRIC_H
#define WF_LIBFABRIC_H

#include "util/base.h"
#include "util/error.h"

/*
 * Load libfabric, unless that is done.  -ELIBACC: libfabric can't be loaded; -ELIBBAD:
 * libfabric lacks a function, or has it only as an older or newer version.  A later
 * call tries again.
 */
int wf_libfabric_load(struct wf_error *e);

/* The file that libfabric was loaded from; NULL: libfabric is not loaded. */
const char *wf_libfabric_file(void);

/* Did @code come with libfabric: does @code lie there, or in an object that was
 * loaded later? */
bool wf_libfabric_brought(const void *code);

#endif
