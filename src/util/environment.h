/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables of the environment, as far as they may be trusted: a program that runs with more
 * rights than its caller has (AT_SECURE: set-user-ID, or capabilities of its file) obeys no
 * variable that weft or libfabric reads.
 *
 * Who sets or unsets variables holds forks off meanwhile (util/fork.h), and so does who reads them
 * here: the threads of a program may open nodes at once.  The program itself must not read them
 * while its first node is opened.
 *
 * Threads: any.
 */
#ifndef WF_ENVIRONMENT_H
#define WF_ENVIRONMENT_H

#include "util/base.h"

/* Return whether the author of the environment has all the rights of this process. */
bool wf_environment_trusted(void);

/*
 * Return the value of @name, which stays where it is until somebody changes that variable.  NULL:
 * it is not set, or the environment is not trusted.  Not under wf_fork_hold().
 */
const char *wf_environment_get(const char *name);

/*
 * Unset all variables whose names begin with one of @prefixes, which ends with NULL, for code
 * that reads the environment by itself.  Returns how many were unset.  Under wf_fork_hold().
 */
unsigned wf_environment_forget(const char *const *prefixes);

#endif
