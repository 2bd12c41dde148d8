/* SPDX-License-Identifier: BSD-2-Clause */
#include "call.h"

NB_MODULE(_weft, m)
{
	m.doc() = "weft's library, for the package weft";
	/* Objects in a program's last frame are alive at the end, which is no news for its user. */
	nb::set_leak_warnings(false);
	bind_operation(m);
	bind_tensor(m);

	auto node = bind_node(m);
	auto peer = bind_peer(m);

	bind_window(m, node, peer);
	bind_group(m, node);
	bind_call(m);
	bind_serve(m, node);
	m.def("version", [] { return nb::str(weft_version()); }, "The version of the library that is running.");
}
