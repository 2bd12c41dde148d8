/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/sides.h"

#include "tests/bench/mirror.h"
#include "tests/bench/must.h"

static struct weft_node *nodes[2];
static struct weft_peer *peer;

void sides_open(const char *provider)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;

	options.mode = WEFT_MANUAL;
	options.provider = provider;
	for (unsigned i = HERE; i <= THERE; i++)
		must(weft_node_open(&options, &nodes[i]), "weft_node_open");
	must(weft_peer_open(nodes[HERE], weft_node_address(nodes[THERE]), &peer), "weft_peer_open");
	mirror_serve(nodes[THERE]);
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
