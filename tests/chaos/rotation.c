/* SPDX-License-Identifier: BSD-2-Clause */
#include "rotation.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#include "crew.h"

#define GRACE "2s" /* members look every second */

static struct {
	const char *path;
	unsigned every_ms;
	atomic_uint count;
} rotation;

static void *rotate(void *arg)
{
	const struct timespec pause = { rotation.every_ms / 1000,
					rotation.every_ms % 1000 * 1000000L };
	char fresh[512];

	(void)arg;
	snprintf(fresh, sizeof(fresh), "%s.new", rotation.path);
	for (;;) {
		nanosleep(&pause, NULL);
		unlink(fresh);
		if (weft_key_new(fresh))
			crew_give_up("%s", weft_error());
		if (rename(fresh, rotation.path))
			crew_give_up("%s can't be renamed", fresh);
		rotation.count++;
	}
	return NULL;
}

void rotation_begin(const char *path, unsigned every_ms)
{
	pthread_t thread;

	rotation.path = path;
	rotation.every_ms = every_ms;
	setenv("WEFT_KEY_GRACE", GRACE, 1);
	if (pthread_create(&thread, NULL, rotate, NULL) || pthread_detach(thread))
		crew_give_up("no thread for the rotation of keys");
}

unsigned rotation_count(void)
{
	return rotation.count;
}
