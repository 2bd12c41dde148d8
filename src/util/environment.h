/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables of the environment, as far as they may be trusted: a program that runs with more
 * rights than its caller has (AT_SECURE: set-user-ID, or capabilities of its file) obeys no
 * variable that weft or libfabric reads.
 *
 * Threads: any; wf_environment_forget changes the environment of the process, which no other
 * thread may read meanwhile.
 */
#ifndef WF_ENVIRONMENT_H
#define WF_ENVIRONMENT_H

#include "util/base.h"

/* Return whether the author of the environment has all the rights of this process. */
bool wf_environment_trusted(void);

/* Return the value of @name.  NULL: the variable is not set, or the environment is not trusted. */
const char *wf_environment_get(const char *name);

/*
 * Unset all variables whose names begin with one of @prefixes, which ends with NULL, for code
 * that reads the environment by itself.  Returns how many were unset.
 */
unsigned wf_environment_forget(const char *const *prefixes);

#endif
