/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/services.h"

#include <errno.h>
#include <string.h>

struct wf_service *wf_services_find(const struct wf_services *services, const char *name,
				    size_t bytes)
{
	struct wf_service *at = atomic_load(&services->first);

	while (at && (at->name_bytes != bytes || memcmp(at->name, name, bytes)))
		at = at->next;
	return at;
}

int wf_services_add(struct wf_services *services, struct wf_service *service)
{
	service->name_bytes = strlen(service->name);
	if (wf_services_find(services, service->name, service->name_bytes))
		return -EEXIST;
	service->next = atomic_load(&services->first);
	atomic_store(&services->first, service);
	return 0;
}
