/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces that a test enters with its process: by itself where it is root, else by way of a
 * namespace of users in which it is.
 *
 * Threads: the only one of the process.
 */
#ifndef NAMESPACES_H
#define NAMESPACES_H

#include <stdbool.h>

/* Enter a network of this process's own, and new namespaces of the kinds @more, as unshare(2) has. */
bool namespaces_enter(int more);

/* Write @text to the file at @path, which is made if it is not there. */
bool namespaces_write(const char *path, const char *text);

#endif
