/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/check.h"

#include <errno.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "memory/kind.h"

int wf_check_node(const struct weft_node *node)
{
	if (WF_NEED(node))
		return -EINVAL;
	if (atomic_load(&node->forked))
		return wf_last_set(-EOWNERDEAD,
				   "this process is a forked child: the node is its parent's");
	return 0;
}

int wf_check_host(const struct weft_node *node, void *memory, const char *what)
{
	const char *setting = node->workers[0].engine.options.cuda;
	struct wf_kind_body *body;
	struct wf_error e;
	int err = wf_kind_discover(memory, 1, setting, &body, &e); /* the first byte tells */

	if (err)
		return wf_last_copy(&e);
	if (body)
		err = wf_last_set(-ENOTSUP, "%s in memory of CUDA device %d: it must be the host's",
				  what, body->place.device);
	wf_kind_close(body);
	return err;
}

int wf_check_sized(const void *out, const char *name)
{
	size_t size;

	if (!out)
		return wf_last_null(name);
	memcpy(&size, out, sizeof(size));
	return size < sizeof(size) ? wf_last_set(-EINVAL, "%s->size is not set", name) : 0;
}

int wf_check_sized_options(const void *options, void *given, size_t known)
{
	size_t size;

	memset(given, 0, known);
	memcpy(&size, options, sizeof(size));
	if (size < sizeof(size))
		return wf_last_set(-EINVAL, "options->size is not set");
	for (size_t i = known; i < size; i++)
		if (((const unsigned char *)options)[i])
			return wf_last_set(-EINVAL,
					   "options has a field that this version does not know");
	memcpy(given, options, WF_MIN(size, known));
	return 0;
}
