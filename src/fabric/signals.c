/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/signals.h"
#include "fabric/libfabric.h"
#include "util/fork.h"

#include <signal.h>
#include <unistd.h>

/*
 * This snapshot is the process's, under the lock of util/fork.  One thread's
 * libfabric may already have changed a handler when another comes, so the first
 * one's look counts for all, until nobody is left.
 */
static struct {
	struct sigaction saved[NSIG];
	unsigned users;
	pid_t pid; /* of the process; a forked child begins anew */
} signals;

void wf_signals_save(void)
{
	wf_fork_hold();
	if (signals.pid != getpid())
		signals.users = 0;
	signals.pid = getpid();
	/* A number that can't be asked about has the zeros of the default. */
	for (int i = 1; i < NSIG && !signals.users; i++)
		(void)sigaction(i, NULL, &signals.saved[i]);
	signals.users++;
	wf_fork_let();
}

static bool is_libfabrics(const struct sigaction *action)
{
	return action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN ||
	       wf_libfabric_brought((const void *)action->sa_handler);
}

void wf_signals_restore(void)
{
	struct sigaction now;

	wf_fork_hold();
	for (int i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &now) &&
		    now.sa_handler != signals.saved[i].sa_handler &&
		    is_libfabrics(&now))
			(void)sigaction(i, &signals.saved[i], NULL);
	if (signals.users)
		signals.users--;
	wf_fork_let();
}
