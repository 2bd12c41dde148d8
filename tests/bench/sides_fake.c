/* SPDX-License-Identifier: BSD-2-Clause */
/* Sides over the fake fabric: nodes of a simulated world, with a perfect network and no time. */
#include "tests/bench/sides.h"

#include <stdlib.h>

#include "tests/bench/must.h"
#include "tests/sim/world.h"

void sides_open(const char *provider)
{
	const struct wf_fake perfect = { 0 };

	(void)provider;
	must(setenv("WEFT_FRAME_BYTES", "1M", 1), "setenv"); /* the provider's own, not the world's */
	wf_world_open(WF_WORLD_CONNECTED, 2, &perfect);
	wf_world_connect(HERE, THERE);
}

struct weft_node *sides_node(enum sides side)
{
	return wf_world_node(side);
}

struct weft_peer *sides_peer(void)
{
	return wf_world_peer(HERE, THERE);
}

void sides_poll(enum sides side)
{
	wf_world_poll(side);
}

void sides_sleep(enum sides side)
{
	bench_die("the time of side %d stands still: it can't sleep", side);
}

static void (*take_stream)(struct weft_stream *stream);

static void pass_stream(unsigned number, struct weft_stream *stream)
{
	(void)number;
	take_stream(stream);
}

void sides_on_stream(void (*handle)(struct weft_stream *stream))
{
	take_stream = handle;
	wf_world_on_stream(pass_stream);
}
