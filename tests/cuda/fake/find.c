/* SPDX-License-Identifier: BSD-2-Clause */
/* How the functions of the software driver are found: an old driver lacks this. */
#include "tests/cuda/fake/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
			int *status)
{
	char newest[64];
	Dl_info self;
	void *library;

	(void)version;
	(void)flags;
	*function = NULL;
	if (strcmp(name, fake_settings.without) && dladdr((void *)cuGetProcAddress_v2, &self)) {
		library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
		snprintf(newest, sizeof(newest), "%s_v2", name);
		*function = dlsym(library, newest);
		if (!*function)
			*function = dlsym(library, name);
		dlclose(library);
	}
	*status = *function ? 0 : 1;
	return *function ? CU_OK : CU_NOT_FOUND;
}
