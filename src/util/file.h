/* SPDX-License-Identifier: BSD-2-Clause */
/* File: what a process may do with files.  Threads: any. */
#ifndef WF_FILE_H
#define WF_FILE_H

#include "util/base.h"

/* May a file have @bytes?  One longer than RLIMIT_FSIZE gets its process killed by SIGXFSZ. */
bool wf_file_may_have(size_t bytes);

#endif
