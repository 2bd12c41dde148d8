/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rotation of the key of all members, while they go on: each sees by itself that its file has
 * changed, and the key before does for two seconds more.
 */
#ifndef ROTATION_H
#define ROTATION_H

/* Put a new key into the file at @path every @every_ms from now on, until this process ends. */
void rotation_begin(const char *path, unsigned every_ms);

/* New keys so far. */
unsigned rotation_count(void);

#endif
