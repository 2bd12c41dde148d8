/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void wf_imports_init(struct wf_imports *imports)
{
	wf_list_init(&imports->list);
	imports->count = 0;
}

static void unmap(struct wf_imports *imports, struct wf_import *import)
{
	wf_cuda_drop_import(import->device, import->start);
	wf_list_remove(&import->node);
	imports->count--;
	free(import);
}

void wf_imports_fini(struct wf_imports *imports)
{
	while (!wf_list_empty(&imports->list))
		unmap(imports, WF_CONTAINER(imports->list.next, struct wf_import, node));
}

static struct wf_import *find(const struct wf_imports *imports, int ordinal,
			      const struct wf_cuda_driver_ipc_handle *handle, uint64_t number)
{
	WF_LIST_EACH(node, &imports->list) {
		struct wf_import *import = WF_CONTAINER(node, struct wf_import, node);

		if (import->device == ordinal && import->number == number &&
		    !memcmp(&import->handle, handle, sizeof(*handle)))
			return import;
	}
	return NULL;
}

static int map(struct wf_import *import, struct wf_error *e)
{
	struct wf_cuda_memory m;
	int err = wf_cuda_import(import->device, &import->handle, &import->start, e);

	if (err)
		return err;
	err = wf_cuda_find(import->start, &m, e);
	if (err) {
		wf_cuda_drop_import(import->device, import->start);
		return err;
	}
	import->bytes = m.bytes;
	return 0;
}

int wf_imports_take(struct wf_imports *imports, int ordinal,
		    const struct wf_cuda_driver_ipc_handle *handle, uint64_t number,
		    struct wf_import **import, struct wf_error *e)
{
	struct wf_import *found = find(imports, ordinal, handle, number);
	int err;

	if (!found) {
		found = calloc(1, sizeof(*found));
		if (!found)
			return wf_error_set(e, -ENOMEM, "no memory for a mapping");
		found->device = ordinal;
		found->handle = *handle;
		found->number = number;
		err = map(found, e);
		if (err) {
			free(found);
			return err;
		}
		wf_list_append(&imports->list, &found->node);
		imports->count++;
	}
	found->users++;
	*import = found;
	return 0;
}

void wf_imports_give(struct wf_imports *imports, struct wf_import *import, uint64_t now_ns)
{
	if (--import->users)
		return;
	import->unused_ns = now_ns;
	if (imports->count > WF_IMPORTS_MAX)
		unmap(imports, import);
}

uint64_t wf_imports_trim(struct wf_imports *imports, uint64_t now_ns)
{
	struct wf_list *node = imports->list.next;
	uint64_t again_ns = 0;

	while (node != &imports->list) {
		struct wf_import *import = WF_CONTAINER(node, struct wf_import, node);
		uint64_t until_ns = import->unused_ns + WF_IMPORT_KEPT_NS;

		node = node->next;
		if (import->users)
			continue;
		if (until_ns <= now_ns)
			unmap(imports, import);
		else if (!again_ns || until_ns < again_ns)
			again_ns = until_ns;
	}
	return again_ns;
}
