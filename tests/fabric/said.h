/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of a test's nodes, kept as one text.  Threads: any. */
#ifndef WF_TESTS_SAID_H
#define WF_TESTS_SAID_H

#include <stdbool.h>

/* A node's log, as weft_node_options.log: adds @line, as far as there is room. */
void said_line(void *arg, int level, const char *line);

/* Do the lines since said_forget() have @what? */
bool said_has(const char *what);

/* Wait until they have it.  False: they lack it after 20 s. */
bool said_comes(const char *what);

void said_forget(void);

#endif
