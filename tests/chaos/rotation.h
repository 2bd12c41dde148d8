/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rotation of what all members prove themselves by, while they go on: each sees by itself that its
 * files have changed.
 *
 * A key file gets another key; the key before does for two seconds more.  Certificates are of an
 * authority, of which another takes the place in three steps: both are trusted, then members have
 * another certificate, then the authority before goes.
 *
 * Threads: the one that conducts.
 */
#ifndef ROTATION_H
#define ROTATION_H

#include <stdbool.h>

/* Replace the key in the file at @path every @every_ms from now on. */
void rotation_of_key(const char *path, unsigned every_ms);

/* Give members certificates, in a folder of their own, and take a step every @every_ms. */
void rotation_of_certificates(unsigned every_ms);

/*
 * Is a node that has what members began with refused at @address, within five seconds?  Prints what
 * happened.  True also without a rotation, or before there was a whole one.
 */
bool rotation_ends_the_first(const char *provider, const char *address);

/* Stop, remove the files, and print how often something was replaced. */
void rotation_end(void);

#endif
