/* SPDX-License-Identifier: BSD-2-Clause */
/* weft run: a job of several processes on this host, whose nodes find each other by weft_join(). */
#include "tool/tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX 1024 /* processes; more than any laptop can run */

/* Time between the request to end and the end by force: a node's goodbye takes some 10 ms. */
#define END_SECONDS 5

#define NS_PER_S 1000000000ull

struct job {
	const struct tool_command *command;
	char **program;
	char bootstrap[64];
	uint64_t count, running;
	pid_t *pids;     /* by rank; 0: the process has ended */
	sigset_t watched, before; /* signals waited for, and those blocked before */
	struct sigaction child_before; /* disposition of SIGCHLD before */
	int status;      /* the first failure's */
	bool ending;     /* all have been asked to end */
	bool signalled;  /* a signal has asked for the end */
	bool killed;     /* all have been killed */
	uint64_t kill_ns; /* time of that, once @ending */
};

/* Find a port that nobody has; rank 0 takes it, or one of the next. */
static int choose_port(struct job *job)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, bytes) ||
	    getsockname(fd, (struct sockaddr *)&at, &bytes))
		err = -errno;
	if (fd >= 0)
		close(fd);
	snprintf(job->bootstrap, sizeof(job->bootstrap), "127.0.0.1:%u", ntohs(at.sin_port));
	return err;
}

/* Become rank @rank, in the forked process. */
static void become(const struct job *job, uint64_t rank, pid_t parent)
{
	char text[32];

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) /* the parent died before prctl() */
		_exit(127);
	setenv("WEFT_BOOTSTRAP", job->bootstrap, 1);
	snprintf(text, sizeof(text), "%" PRIu64, rank);
	setenv("WEFT_RANK", text, 1);
	snprintf(text, sizeof(text), "%" PRIu64, job->count);
	setenv("WEFT_SIZE", text, 1);
	sigaction(SIGCHLD, &job->child_before, NULL);
	sigprocmask(SIG_SETMASK, &job->before, NULL);
	execvp(job->program[0], job->program);
	tool_fail(job->command, "%s: %s", job->program[0], strerror(errno));
	_exit(127);
}

static void signal_all(const struct job *job, int signal)
{
	for (uint64_t i = 0; i < job->count; i++)
		if (job->pids[i])
			kill(job->pids[i], signal);
}

/* Ask all to end; by signal 0 nobody is asked.  The time for it begins with the first request. */
static void ask_all(struct job *job, int signal)
{
	signal_all(job, signal);
	if (!job->ending)
		job->kill_ns = tool_now_ns() + END_SECONDS * NS_PER_S;
	job->ending = true;
}

static void kill_all(struct job *job, const char *why)
{
	if (!job->killed)
		tool_fail(job->command, "%" PRIu64 " process%s killed: %s", job->running,
			  job->running == 1 ? " was" : "es were", why);
	job->killed = true;
	signal_all(job, SIGKILL);
}

static int start_all(struct job *job)
{
	pid_t self = getpid();

	for (uint64_t i = 0; i < job->count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			become(job, i, self);
		if (pid < 0)
			return tool_fail(job->command, "process %" PRIu64 " can't be started: %s", i,
					 strerror(errno));
		job->pids[i] = pid;
		job->running++;
	}
	return TOOL_OK;
}

/* Say how @rank ended, unless it was asked to.  The first failure ends the job. */
static void ended(struct job *job, uint64_t rank, int status)
{
	job->pids[rank] = 0;
	job->running--;
	if (job->ending || (WIFEXITED(status) && !WEXITSTATUS(status)))
		return;
	if (WIFSIGNALED(status)) {
		tool_fail(job->command, "rank %" PRIu64 " was killed by signal %d (%s)", rank,
			  WTERMSIG(status), strsignal(WTERMSIG(status)));
		job->status = 128 + WTERMSIG(status);
	} else {
		tool_fail(job->command, "rank %" PRIu64 " ended with status %d", rank,
			  WEXITSTATUS(status));
		job->status = WEXITSTATUS(status);
	}
	ask_all(job, SIGTERM);
}

static void reap(struct job *job)
{
	int status;

	for (uint64_t i = 0; i < job->count; i++)
		if (job->pids[i] && waitpid(job->pids[i], &status, WNOHANG) == job->pids[i])
			ended(job, i, status);
}

/*
 * Pass on a signal that ends this process, and so the job, unless it is an interrupt that the
 * terminal has sent to all by itself.  The second one has no patience.
 */
static void interrupted(struct job *job, const siginfo_t *signalled)
{
	int signal = signalled->si_signo;

	if (!job->status)
		job->status = 128 + signal;
	if (job->signalled)
		kill_all(job, "a second signal came");
	else
		ask_all(job, signal == SIGINT && signalled->si_code == SI_KERNEL ? 0 : signal);
	job->signalled = true;
}

/* Wait for the next signal, while there is time to end.  Returns -1: there is none any more. */
static int next_signal(const struct job *job, siginfo_t *signalled)
{
	uint64_t now = tool_now_ns();
	uint64_t left_ns = job->kill_ns > now ? job->kill_ns - now : 0;
	struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S),
				 .tv_nsec = (long)(left_ns % NS_PER_S) };

	if (!job->ending || job->killed)
		return sigwaitinfo(&job->watched, signalled);
	return sigtimedwait(&job->watched, signalled, &left);
}

static void wait_for_all(struct job *job)
{
	while (job->running) {
		siginfo_t signalled;
		int signal = next_signal(job, &signalled);

		if (signal == SIGCHLD)
			reap(job);
		else if (signal > 0)
			interrupted(job, &signalled);
		else if (errno == EAGAIN)
			kill_all(job, "the time to end is over");
	}
}

/* Watch for signals from here on: before the first process is there, whose end might be missed. */
static void watch(struct job *job)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGTERM };

	sigemptyset(&job->watched);
	sigaddset(&job->watched, SIGCHLD);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!tool_is_ignored(ends[i]))
			sigaddset(&job->watched, ends[i]);
	sigprocmask(SIG_BLOCK, &job->watched, &job->before);
	tool_await_children(&job->child_before);
}

static int run_job(struct job *job)
{
	int err = choose_port(job), status;

	if (err)
		return tool_fail(job->command, "there is no port for rank 0: %s", strerror(-err));
	job->pids = calloc(job->count, sizeof(*job->pids));
	if (!job->pids)
		return tool_fail(job->command, "no memory");
	watch(job);
	fflush(NULL);
	status = start_all(job);
	if (status)
		ask_all(job, SIGTERM);
	wait_for_all(job);
	free(job->pids);
	return status ? status : job->status;
}

static int run_run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ "count", required_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	struct job job = { .command = self };
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:hn:", options, NULL)) != -1) {
		switch (option) {
		case 'h':
			return tool_help(self);
		case 'V':
			printf("weft %s\n", weft_version());
			return TOOL_OK;
		case 'n':
			if (tool_count(optarg, 1, COUNT_MAX, &job.count))
				return tool_misused(self, "-n %s: expected a number from 1 to %d",
						    optarg, COUNT_MAX);
			break;
		default:
			return tool_bad_option(self, option, argv);
		}
	}
	if (!job.count)
		return tool_misused(self, "how many processes? -n COUNT says");
	if (optind == argc)
		return tool_misused(self, "there is no program to run");
	job.program = argv + optind;
	return run_job(&job);
}

const struct tool_command run_command = {
	.name = "run",
	.arguments = "-n COUNT PROGRAM [ARGUMENT...]",
	.does = "run a program as several processes that find each other by weft_join()",
	.options = "  -n, --count COUNT   so many processes, on this host: ranks 0 to COUNT - 1\n"
		   "  PROGRAM             each has WEFT_RANK, WEFT_SIZE and WEFT_BOOTSTRAP; the first\n"
		   "                      that fails ends the others, and its status is weft's\n",
	.passes_on = true,
	.run = run_run,
};
