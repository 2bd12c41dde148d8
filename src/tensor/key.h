/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of a key for people.  Keys are bytes: most are names, some are numbers or hashes.
 *
 * Threads: any.
 */
#ifndef WF_KEY_H
#define WF_KEY_H

#include "util/base.h"

#define WF_KEY_SHOWN 64 /* bytes of a name; of other keys half as many */
#define WF_KEY_TEXT_BYTES (WF_KEY_SHOWN + 8)

/* Write "name" in its quotes, or 0x and digits; dots behind a key that is cut. */
void wf_key_text(const void *key, size_t bytes, char text[WF_KEY_TEXT_BYTES]);

#endif
