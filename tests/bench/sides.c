/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/sides.h"

#include "tests/bench/mirror.h"
#include "tests/bench/must.h"

static struct weft_node *nodes[2];
static struct weft_peer *peer;
static void (*take_stream)(struct weft_stream *stream);

static void pass_stream(struct weft_stream *stream, void *arg)
{
	(void)arg;
	take_stream(stream);
}

void sides_open(const char *provider)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;

	options.mode = WEFT_MANUAL;
	options.provider = provider;
	for (unsigned i = HERE; i <= THERE; i++)
		must(weft_node_open(&options, &nodes[i]), "weft_node_open");
	must(weft_peer_open(nodes[HERE], weft_node_address(nodes[THERE]), &peer), "weft_peer_open");
	mirror_serve_streams(nodes[THERE], pass_stream);
}

struct weft_node *sides_node(enum sides side)
{
	return nodes[side];
}

struct weft_peer *sides_peer(void)
{
	return peer;
}

void sides_poll(enum sides side)
{
	(void)weft_poll(nodes[side], 0);
}

void sides_sleep(enum sides side)
{
	(void)weft_poll(nodes[side], 1000000);
}

void sides_on_stream(void (*handle)(struct weft_stream *stream))
{
	take_stream = handle;
}
