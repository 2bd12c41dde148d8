/* SPDX-License-Identifier: BSD-2-Clause */
#include "rotation.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "secure/key_file.h"

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
		struct wf_error e;

		nanosleep(&pause, NULL);
		unlink(fresh);
		if (wf_key_file_make(fresh, &e) || rename(fresh, rotation.path)) {
			perror(fresh);
			_exit(1);
		}
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
	if (pthread_create(&thread, NULL, rotate, NULL) || pthread_detach(thread)) {
		perror("rotation");
		_exit(1);
	}
}

unsigned rotation_count(void)
{
	return rotation.count;
}
