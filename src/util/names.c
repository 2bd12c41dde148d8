/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/names.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/*
 * The table has no lock, which a fork might leave held: a place is filled before it is ready,
 * and stays.
 */
static struct {
	struct wf_names names;
	atomic_bool ready;
} places[WF_NAMES_MAX];
static atomic_uint taken;

static unsigned taken_count(void)
{
	return WF_MIN(atomic_load(&taken), WF_NAMES_MAX);
}

const struct wf_names *wf_names_of(const char *provider, const char *device)
{
	struct wf_names wanted = { 0 };
	unsigned place, count = taken_count();

	(void)snprintf(wanted.provider, sizeof(wanted.provider), "%s", provider);
	(void)snprintf(wanted.device, sizeof(wanted.device), "%s", device);
	for (unsigned i = 0; i < count; i++)
		if (atomic_load(&places[i].ready) &&
		    !memcmp(&places[i].names, &wanted, sizeof(wanted)))
			return &places[i].names;
	if (count == WF_NAMES_MAX)
		return NULL;
	/* Two threads may add the same names at once: either place serves. */
	place = atomic_fetch_add(&taken, 1);
	if (place >= WF_NAMES_MAX)
		return NULL;
	places[place].names = wanted;
	atomic_store(&places[place].ready, true);
	return &places[place].names;
}
