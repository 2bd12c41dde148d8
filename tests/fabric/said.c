/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fabric/said.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

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

void said_forget(void)
{
	pthread_mutex_lock(&lock);
	said[0] = '\0';
	pthread_mutex_unlock(&lock);
}
