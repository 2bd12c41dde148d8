/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/environment.h"
#include "util/fork.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define NAME_BYTES 256 /* longer names are ignored: no known variable has one */

bool wf_environment_trusted(void)
{
	return !getauxval(AT_SECURE);
}

const char *wf_environment_get(const char *name)
{
	const char *value;

	if (!wf_environment_trusted())
		return NULL;
	wf_fork_hold();
	value = getenv(name);
	wf_fork_let();
	return value;
}

/* Copy the name in @entry ("NAME=value") to @name if it begins with one of @prefixes. */
static bool begins_with(const char *entry, const char *const *prefixes, char name[NAME_BYTES])
{
	size_t length = strcspn(entry, "=");

	if (!length || length >= NAME_BYTES)
		return false;
	for (; *prefixes; prefixes++) {
		if (strncmp(entry, *prefixes, strlen(*prefixes)))
			continue;
		memcpy(name, entry, length);
		name[length] = '\0';
		return true;
	}
	return false;
}

unsigned wf_environment_forget(const char *const *prefixes)
{
	char name[NAME_BYTES];
	unsigned count = 0;
	char **at = environ;

	while (at && *at) {
		if (begins_with(*at, prefixes, name) && !unsetenv(name)) {
			count++;
			at = environ; /* unsetenv() moves the entries behind the removed one */
		} else {
			at++;
		}
	}
	return count;
}
