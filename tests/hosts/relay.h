/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cable made by a process: a frame that goes in at one end comes out of the other, later.
 */
#ifndef RELAY_H
#define RELAY_H

#include "tamper.h"

/*
 * Make an interface of this name here, whose far end relay_run() is to serve.  Returns the
 * descriptor that keeps the interface; -1: errno says why not.
 */
int relay_end(const char *name);

/*
 * Carry frames from @near to @far @delay_ms later, tampered with by @tamper unless it is NULL,
 * and back at once, until killed.
 */
void relay_run(int near, int far, unsigned delay_ms, struct tamper *tamper)
	__attribute__((noreturn));

#endif
