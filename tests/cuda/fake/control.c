/* SPDX-License-Identifier: BSD-2-Clause */
/* The software driver's lock, its settings, its failures and its log. */
#include "tests/cuda/fake/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS_MAX 128
#define LOG_MAX 65536

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct fake_settings fake_settings = { .devices = 2, .version = 13000, .delay = 2 };
bool fake_started;

/* What is known of a function: how often it was called, and which call fails. */
static struct call {
	char name[48];
	unsigned count, fails_at;
	int code;
} calls[CALLS_MAX];

static struct fake_cuda_entry entries[LOG_MAX];
static size_t entry_count;
static pid_t owner; /* who has started the driver */

static struct call *call_of(const char *name)
{
	for (size_t i = 0; i < CALLS_MAX; i++) {
		if (!*calls[i].name)
			snprintf(calls[i].name, sizeof(calls[i].name), "%s", name);
		if (!strcmp(calls[i].name, name))
			return &calls[i];
	}
	abort();
}

/* Of those that are here, what a capture forbids by the words of the real one's manual, or so. */
static bool is_unsafe(const char *name)
{
	static const char *const unsafe[] = {
		"cuCtxSynchronize",   "cuEventQuery",	    "cuEventSynchronize",
		"cuIpcCloseMemHandle", "cuIpcOpenMemHandle", "cuMemAlloc",
		"cuMemAllocManaged",  "cuMemFree",	    "cuMemFreeHost",
		"cuMemHostAlloc",     "cuMemHostRegister",  "cuMemHostUnregister",
		"cuMemcpyDtoH",	      "cuMemcpyHtoD",	    "cuStreamQuery",
		"cuStreamSynchronize",
	};

	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
		if (!strcmp(unsafe[i], name))
			return true;
	return false;
}

int fake_begin(const char *name)
{
	struct call *call;

	if (owner && owner != getpid()) {
		fprintf(stderr, "fake cuda: %s in a forked child\n", name);
		abort();
	}
	pthread_mutex_lock(&fake_lock);
	call = call_of(name);
	if (++call->count == call->fails_at) {
		if (call->code != FAKE_STOPS)
			return call->code;
		raise(SIGSTOP);
	}
	if (is_unsafe(name) && fake_is_captured())
		return CU_CAPTURE_UNSUPPORTED;
	return fake_started ? CU_OK : CU_NOT_INITIALIZED;
}

int fake_end(int code)
{
	pthread_mutex_unlock(&fake_lock);
	return code;
}

void fake_start(void)
{
	owner = getpid();
	fake_started = true;
}

static void fail(const char *name, unsigned nth, int code)
{
	struct call *call = call_of(name);

	call->fails_at = call->count + nth;
	call->code = code;
}

/* The value of "@name=value" if @word is that, else NULL. */
static const char *value_of(const char *word, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(word, name, length) && word[length] == '=' ? word + length + 1 : NULL;
}

static void obey(const char *word)
{
	struct fake_settings *s = &fake_settings;
	const char *value;
	unsigned nth;
	char name[48];
	int code;

	if ((value = value_of(word, "devices")))
		s->devices = atoi(value);
	else if ((value = value_of(word, "version")))
		s->version = atoi(value);
	else if ((value = value_of(word, "init")))
		s->init_code = atoi(value);
	else if ((value = value_of(word, "delay")))
		s->delay = (unsigned)atoi(value);
	else if ((value = value_of(word, "without")))
		snprintf(s->without, sizeof(s->without), "%s", value);
	else if ((value = value_of(word, "fail")) &&
		 sscanf(value, "%47[^:]:%u:%d", name, &nth, &code) == 3)
		fail(name, nth, code);
	else if (!strcmp(word, "no-ipc"))
		s->no_ipc = true;
	else if (!strcmp(word, "own-ipc"))
		s->own_ipc = true;
	else if (!strcmp(word, "dma-buf"))
		s->dma_buf = true;
	else if (*word) {
		fprintf(stderr, "fake cuda: FAKE_CUDA has '%s'\n", word);
		abort();
	}
}

/* Before anybody calls it: what cuDriverGetVersion says is asked for first. */
__attribute__((constructor)) static void read_settings(void)
{
	const char *set = getenv("FAKE_CUDA");
	char *words = strdup(set ? set : ""), *rest = words, *word;

	while ((word = strsep(&rest, ",")))
		obey(word);
	free(words);
	if (fake_settings.devices > FAKE_DEVICES_MAX)
		abort();
}

void fake_cuda_fail(const char *name, unsigned nth, int code)
{
	pthread_mutex_lock(&fake_lock);
	fail(name, nth, code);
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_delay(unsigned questions)
{
	pthread_mutex_lock(&fake_lock);
	fake_settings.delay = questions;
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_hold(bool hold)
{
	pthread_mutex_lock(&fake_lock);
	fake_settings.hold = hold;
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_cuda_calls(const char *name)
{
	unsigned count;

	pthread_mutex_lock(&fake_lock);
	count = call_of(name)->count;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

void fake_write_log(const struct fake_cuda_entry *entry)
{
	if (entry_count < LOG_MAX)
		entries[entry_count++] = *entry;
}

size_t fake_cuda_log(struct fake_cuda_entry *to, size_t most)
{
	size_t count;

	pthread_mutex_lock(&fake_lock);
	count = entry_count;
	memcpy(to, entries, (count < most ? count : most) * sizeof(*to));
	pthread_mutex_unlock(&fake_lock);
	return count;
}

void fake_cuda_log_clear(void)
{
	pthread_mutex_lock(&fake_lock);
	entry_count = 0;
	pthread_mutex_unlock(&fake_lock);
}

void fake_cuda_note(uint64_t note)
{
	pthread_mutex_lock(&fake_lock);
	fake_write_log(&(struct fake_cuda_entry){ .what = FAKE_NOTE, .note = note });
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_cuda_left(void)
{
	unsigned count;

	pthread_mutex_lock(&fake_lock);
	count = fake_memory_left() + fake_queues_left();
	pthread_mutex_unlock(&fake_lock);
	return count;
}
