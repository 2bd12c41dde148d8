/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "secure/key_file.h"

/* A process of its own needs a file of its own: its parent may remove the parent's. */
static struct {
	char path[64];
	pid_t owner;
} key;

static void remove_file(void)
{
	if (key.owner == getpid())
		(void)unlink(key.path);
}

static void make_file(void)
{
	if (key.owner == getpid())
		return;
	key.owner = getpid();
	(void)snprintf(key.path, sizeof(key.path), "/tmp/weft-sim-key.%ld", (long)key.owner);
	(void)unlink(key.path);
	assert_int_equal(wf_key_file_make(key.path, NULL), 0);
	(void)atexit(remove_file);
}

void wf_keys_replace(void)
{
	char fresh[sizeof(key.path) + 4];

	(void)snprintf(fresh, sizeof(fresh), "%s.new", key.path);
	(void)unlink(fresh);
	assert_int_equal(wf_key_file_make(fresh, NULL), 0);
	assert_int_equal(rename(fresh, key.path), 0);
}

void wf_keys_use(const char *security)
{
	if (!security) {
		assert_int_equal(unsetenv("WEFT_SECURITY") || unsetenv("WEFT_KEY_FILE"), 0);
		return;
	}
	make_file();
	/* Longer than a new key takes to all nodes, and shorter than a run. */
	assert_int_equal(setenv("WEFT_KEY_GRACE", "200ms", 1), 0);
	assert_int_equal(setenv("WEFT_SECURITY", security, 1) ||
			 setenv("WEFT_KEY_FILE", key.path, 1), 0);
}
