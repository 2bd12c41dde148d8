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

void mirror_serve(struct weft_node *node)
{
	static Sim__Mirror_Service service = SIM__MIRROR__INIT();

	service.reflect = reflect;
	service.talk = talk;
	must(weft_serve(node, (ProtobufCService *)&service), "weft_serve");
}
