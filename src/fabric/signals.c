/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/signals.h"
#include "providers/provider.h"

#include <dlfcn.h>
#include <string.h>

/* The signals that psm, psm2 and shm of libfabric 1.17 take. */
static const int signals[WF_SIGNALS_COUNT] = {
	SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT, SIGTERM,
};

void wf_signals_save(struct wf_signals *s)
{
	size_t i;

	for (i = 0; i < WF_SIGNALS_COUNT; i++)
		sigaction(signals[i], NULL, &s->saved[i]);
}

void wf_signals_restore(const struct wf_signals *s)
{
	struct sigaction now;
	size_t i;

	for (i = 0; i < WF_SIGNALS_COUNT; i++) {
		sigaction(signals[i], NULL, &now);
		if (now.sa_handler != s->saved[i].sa_handler)
			sigaction(signals[i], &s->saved[i], NULL);
	}
}

static bool is_foreign(const struct sigaction *action)
{
	Dl_info where;
	size_t i;

	if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN)
		return false;
	if (!dladdr((void *)action->sa_handler, &where) || !where.dli_fname)
		return false;
	for (i = 0; wf_provider_handlers[i]; i++)
		if (strstr(where.dli_fname, wf_provider_handlers[i]))
			return true;
	return false;
}

void wf_signals_clear(void)
{
	const struct sigaction preset = { .sa_handler = SIG_DFL };
	struct sigaction now;
	size_t i;

	for (i = 0; i < WF_SIGNALS_COUNT; i++) {
		sigaction(signals[i], NULL, &now);
		if (is_foreign(&now))
			sigaction(signals[i], &preset, NULL);
	}
}
