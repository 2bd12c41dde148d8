/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fabric/said.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAITS 20000 /* of a millisecond each, for what takes milliseconds on an idle machine */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char said[4000];

void said_line(void *arg, int level, const char *line)
{
	size_t used;

	(void)arg;
	(void)level;
	pthread_mutex_lock(&lock);
	used = strlen(said);
	(void)snprintf(said + used, sizeof(said) - used, "%s\n", line);
	pthread_mutex_unlock(&lock);
}

bool said_has(const char *what)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = strstr(said, what);
	pthread_mutex_unlock(&lock);
	return has;
}

bool said_comes(const char *what)
{
	for (unsigned i = 0; i < WAITS && !said_has(what); i++)
		(void)usleep(1000);
	return said_has(what);
}

void said_forget(void)
{
	pthread_mutex_lock(&lock);
	said[0] = '\0';
	pthread_mutex_unlock(&lock);
}
