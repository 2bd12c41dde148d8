/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A monitor without the kernel: memory changes when the test says so.  Linking this file replaces
 * memory/monitor.
 */
#include "memory/monitor.h"

#include <errno.h>

#include "tests/fake/internal.h"

static struct wf_list watches = { &watches, &watches };
static uint64_t changes;

int wf_monitor_open(struct wf_error *e)
{
	(void)e;
	return 0;
}

void wf_monitor_close(void)
{
}

int wf_monitor_watch(struct wf_monitor_watch *watch, const void *at, size_t bytes)
{
	*watch = (struct wf_monitor_watch){ .from = (uintptr_t)at, .to = (uintptr_t)at + bytes };
	wf_list_append(&watches, &watch->node);
	return 0;
}

void wf_monitor_unwatch(struct wf_monitor_watch *watch)
{
	wf_list_remove(&watch->node);
}

int wf_monitor_check(struct wf_monitor_watch *watch)
{
	return atomic_load(&watch->changed) ? -ESTALE : 0;
}

uint64_t wf_monitor_changes(void)
{
	return changes;
}

void wf_monitor_forked(void)
{
}

void wf_fake_changed(const void *at, size_t bytes)
{
	uintptr_t from = (uintptr_t)at;

	WF_LIST_EACH(node, &watches) {
		struct wf_monitor_watch *watch = WF_CONTAINER(node, struct wf_monitor_watch, node);

		if (from >= watch->to || from + bytes <= watch->from)
			continue;
		atomic_store(&watch->changed, true);
		changes++;
	}
}
