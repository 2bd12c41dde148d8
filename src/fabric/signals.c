/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/signals.h"
#include "fabric/libfabric.h"
#include "util/fork.h"

#include <signal.h>
#include <unistd.h>

/*
 * The snapshot of the process, under the lock of util/fork.  One thread's libfabric
 * may already have changed a handler when another thread comes, so the first thread's
 * look counts for all, until no user is left.
 */
static struct {
	struct sigaction saved[NSIG];
	unsigned users;
	pid_t pid; /* process that saved; a forked child begins anew */
} signals;

void wf_signals_save(void)
{
	wf_fork_hold();
	if (signals.pid != getpid())
		signals.users = 0;
	signals.pid = getpid();
	/* A signal that can't be asked about has the zeros of the default. */
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
