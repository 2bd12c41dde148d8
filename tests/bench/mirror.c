/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/mirror.h"

static void reflect(Sim__Mirror_Service *service, const Sim__Bytes *input,
		    Sim__Bytes_Closure closure, void *arg)
{
	(void)service;
	closure(input, arg);
}

static void talk(Sim__Mirror_Service *service, const Sim__Bytes *input,
		 Sim__Bytes_Closure closure, void *arg)
{
	(void)service;
	(void)input;
	closure(NULL, arg);
}

static ProtobufCService *mirror(void)
{
	static Sim__Mirror_Service service = SIM__MIRROR__INIT();

	service.reflect = reflect;
	service.talk = talk;
	return (ProtobufCService *)&service;
}

void mirror_serve(struct weft_node *node)
{
	must(weft_serve(node, mirror()), "weft_serve");
}

void mirror_serve_streams(struct weft_node *node,
			  void (*handle)(struct weft_stream *stream, void *arg))
{
	const struct weft_stream_method method = { "Talk", handle, NULL };

	must(weft_serve_streams(node, mirror(), &method, 1), "weft_serve_streams");
}
