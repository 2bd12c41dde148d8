/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two nodes of the program `instructions`, both manual: over a provider of libfabric's
 * (sides.c), or over the fake fabric (sides_fake.c), where nothing but weft's own work is left.
 */
#ifndef BENCH_SIDES_H
#define BENCH_SIDES_H

#include <weft/weft.h>

enum sides { HERE, THERE };

/* Open both nodes, over @provider; THERE serves Mirror (tests/sim/mirror.proto). */
void sides_open(const char *provider);

struct weft_node *sides_node(enum sides side);

/* Returns THERE as HERE knows it. */
struct weft_peer *sides_peer(void);

/* Let the node of @side have a turn. */
void sides_poll(enum sides side);

/* Let the node of @side, which has nothing to do, sleep for 1 ms; none of the fake fabric can. */
void sides_sleep(enum sides side);

/* Let THERE serve Talk by @handle from now on, which gets each new stream. */
void sides_on_stream(void (*handle)(struct weft_stream *stream));

#endif
