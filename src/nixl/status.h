/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statuses: outcomes of weft as NIXL's.
 *
 * REMOTE_DISCONNECT makes NIXL forget the other agent, which its program then has to load again: it
 * is said of a peer that is dead or can't be reached, and of nothing else.
 *
 * Threads: any.
 */
#ifndef WEFT_NIXL_STATUS_H
#define WEFT_NIXL_STATUS_H

#include <weft/base.h>

#include "nixl.h"

namespace weft_nixl {

/* Returns the status of NIXL for the outcome of an operation. */
Status status_of(enum weft_status outcome);

/* Returns the status for @err of a function of weft that has just failed in this thread, and logs
 * its sentence as the reason of @what. */
Status status_of_error(int err, const char *what);

/* Run @work, in which memory may be short: that is BACKEND_ERROR, and no exception for NIXL. */
template <class Work> Status status_guard(Work work) noexcept
{
	try {
		return work();
	} catch (...) {
		return BACKEND_ERROR;
	}
}

}  // namespace weft_nixl

#endif
