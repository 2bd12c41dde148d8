/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint of plain libfabric, joined to one in the second process: notes
 * of a fixed size, and one body that the peer may write.
 *
 *   -e msg  a connected endpoint (FI_EP_MSG)
 *   -e rdm  a shared endpoint (FI_EP_RDM)
 *
 * Both sides spin on one completion queue.  Shares no code with weft.
 */
#ifndef BENCH_FABRIC_H
#define BENCH_FABRIC_H

#include <rdma/fabric.h>

#include "tests/bench/bench.h"

/*
 * Open an endpoint and join it to the other side's, which does the same.  Notes
 * have @note_bytes; the body has the options' bytes, and none if @body is 0.
 */
void fabric_open(int to, int server, const struct bench_options *o, size_t note_bytes, int body);
void fabric_close(void);

/* Offers of the provider to reach @node, or to serve there; the caller's to free. */
struct fi_info *fabric_look(const struct bench_options *o, int passive, const char *node);

/* Our end of the body. */
char *fabric_body(void);

/* Write the whole body to the peer's, and wait for the completion. */
void fabric_write_body(void);

/* Read the whole body of the peer, and wait for the completion. */
void fabric_read_body(void);

/* Let the provider do what a peer wants of it. */
void fabric_progress(void);

/*
 * Send a note that begins with @word: injected where the provider can, as that
 * costs least; else with a wait for the completion.
 */
void fabric_send_note(char word);

/* Wait for the next note, and return its first byte. */
char fabric_hear_note(void);

#endif
