/* SPDX-License-Identifier: BSD-2-Clause */
#include "crew.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "member.h"
#include "tests/hosts/hosts.h"

#define HEAR_MOST_NS (60 * SECOND) /* beyond what any command takes, a member's own limits included */
#define LINE_BYTES 512
/* Below the ports that the system gives out, so that nobody gets one while its owner is dead. */
#define PORT_FIRST 20000
#define PORTS 12000
#define HOST_PORT 4000 /* of the first member on a host of its own; the next has the next */
#define SHM "/dev/shm/"

void crew_give_up(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static void need(bool met, const char *what)
{
	if (!met)
		crew_give_up("%s: %s", what, strerror(errno));
}

void crew_sleep_until(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / SECOND), (long)(ns % SECOND) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Members. */

/* A port of loopback that nobody has. */
static void draw_address(char address[64])
{
	static unsigned next;
	const int on = 1;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd, err;

	if (!next)
		next = (unsigned)getpid() * 16;
	do {
		at.sin_port = htons((uint16_t)(PORT_FIRST + next++ % PORTS));
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		need(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)),
		     "a socket");
		err = bind(fd, (struct sockaddr *)&at, sizeof(at));
		close(fd);
	} while (err);
	snprintf(address, 64, "127.0.0.1:%u", ntohs(at.sin_port));
}

void crew_init(struct crew *crew, unsigned count)
{
	memset(crew, 0, sizeof(*crew));
	crew->count = count;
	crew->beat_ms = 1000;
	crew->lost_ms = 3000;
	crew->reports_fd = memfd_create("reports", MFD_CLOEXEC);
	need(crew->reports_fd >= 0 && !fcntl(crew->reports_fd, F_SETFL, O_APPEND), "a memfd");
	for (unsigned i = 0; i < count; i++) {
		char *address = crew->members[i].address;

		if (hosts_count())
			snprintf(address, sizeof(crew->members[i].address), "%s:%u",
				 hosts_address(i, 0), HOST_PORT + i);
		else
			draw_address(address);
	}
}

static void let_go(struct member *m)
{
	close(m->to);
	close(m->from);
	m->pid = 0;
	m->stopped = false;
}

void crew_fini(struct crew *crew)
{
	for (unsigned i = 0; i < crew->count; i++) {
		struct member *m = &crew->members[i];
		int status;

		if (!m->pid)
			continue;
		let_go(&(struct member){ .to = m->to, .from = m->from });
		need(waitpid(m->pid, &status, 0) == m->pid, "waitpid");
		if (status)
			crew_give_up("member %u ended with wait status %x", i, (unsigned)status);
		m->pid = 0;
	}
	close(crew->reports_fd);
}

static void become_member(unsigned i, int in, int out, int reports)
{
	char *const argv[] = { "chaos", "--member", NULL };

	if (hosts_count())
		hosts_enter(i);
	/* Up first, so that none is overwritten; these copies live on, all others close. */
	in = fcntl(in, F_DUPFD, 16);
	out = fcntl(out, F_DUPFD, 16);
	reports = fcntl(reports, F_DUPFD, 16);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(reports, MEMBER_REPORTS_FD);
	close(in);
	close(out);
	close(reports);
	execv("/proc/self/exe", argv);
	_exit(127);
}

void crew_start(struct crew *crew, unsigned i)
{
	struct member *m = &crew->members[i];
	int to[2], from[2];

	need(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC), "a pipe");
	fflush(NULL);
	m->pid = fork();
	need(m->pid >= 0, "fork");
	if (!m->pid)
		become_member(i, to[0], from[1], crew->reports_fd);
	close(to[0]);
	close(from[1]);
	m->to = to[1];
	m->from = from[0];
	m->stopped = false;
	m->rounds = 0;
	m->heap_bytes = 0;
}

void crew_say(struct crew *crew, unsigned i, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof(line) - 1)
		crew_give_up("a command is too long: %s", line);
	line[length++] = '\n';
	if (write(crew->members[i].to, line, (size_t)length) != length)
		crew_hear(crew, i); /* says why */
}

static void say_how_it_ended(const struct crew *crew, unsigned i)
{
	int status = 0;

	if (waitpid(crew->members[i].pid, &status, 0) < 0)
		status = -1;
	if (WIFSIGNALED(status))
		crew_give_up("%s: member %u was ended by signal %d (%s)", crew->provider, i,
			     WTERMSIG(status), strsignal(WTERMSIG(status)));
	crew_give_up("%s: member %u has ended with status %d", crew->provider, i,
		     WEXITSTATUS(status));
}

const char *crew_hear(struct crew *crew, unsigned i)
{
	static char line[LINE_BYTES];
	struct pollfd input = { crew->members[i].from, POLLIN, 0 };
	uint64_t until = now_ns() + HEAR_MOST_NS;

	for (size_t n = 0; n < sizeof(line); n++) {
		uint64_t now = now_ns();

		if (now >= until || poll(&input, 1, (int)((until - now) / MS)) <= 0)
			crew_give_up("%s: member %u (process %d) does not answer", crew->provider,
				     i, crew->members[i].pid);
		if (read(input.fd, line + n, 1) != 1)
			say_how_it_ended(crew, i);
		if (line[n] != '\n')
			continue;
		line[n] = '\0';
		return line + 3; /* behind "ok " */
	}
	crew_give_up("member %u says too much", i);
}

void crew_open(struct crew *crew, unsigned i, bool manual, uint64_t seed, unsigned gap_us)
{
	char addresses[LINE_BYTES / 2] = "";

	for (unsigned j = 0; j < crew->count; j++)
		snprintf(addresses + strlen(addresses), sizeof(addresses) - strlen(addresses),
			 " %s", crew->members[j].address);
	crew_say(crew, i, "open %s %s %u %u %" PRIu64 " %u %u%s", crew->provider,
		 manual ? "manual" : "threaded", crew->beat_ms, crew->lost_ms, seed, gap_us, i,
		 addresses);
}

void crew_hear_closing(struct crew *crew, unsigned i, struct closing *c)
{
	if (sscanf(crew_hear(crew, i),
		   "ended %" SCNu64 " failed %" SCNu64 " bytes %" SCNu64 " lost %" SCNu64
		   " resumed %" SCNu64 " pool %" SCNu64 " heap %" SCNu64 " fds %d",
		   &c->ended, &c->failed, &c->bytes, &c->lost, &c->resumed, &c->pool_bytes,
		   &c->heap_bytes, &c->fds) != 8)
		crew_give_up("member %u closes strangely", i);
}

void crew_tell_all(struct crew *crew, const char *command)
{
	for (unsigned i = 0; i < crew->count; i++)
		if (crew->members[i].pid)
			crew_say(crew, i, "%s", command);
	for (unsigned i = 0; i < crew->count; i++)
		if (crew->members[i].pid)
			crew_hear(crew, i);
}

/* Harm. */

static struct harm *note(struct crew *crew, enum harm_kind kind, unsigned i)
{
	struct harm *harm = &crew->harms[crew->harm_count++];

	if (crew->harm_count > CREW_HARMS_MAX)
		crew_give_up("too much harm for one round");
	*harm = (struct harm){ kind, i, i, now_ns(), UINT64_MAX };
	return harm;
}

static void end_harm(struct crew *crew, enum harm_kind kind, unsigned i)
{
	for (unsigned h = 0; h < crew->harm_count; h++)
		if (crew->harms[h].kind == kind && crew->harms[h].member == i &&
		    crew->harms[h].until_ns == UINT64_MAX)
			crew->harms[h].until_ns = now_ns();
}

void crew_kill(struct crew *crew, unsigned i)
{
	struct member *m = &crew->members[i];

	note(crew, HARM_KILL, i);
	need(!kill(m->pid, SIGKILL) && waitpid(m->pid, NULL, 0) == m->pid, "kill");
	let_go(m);
}

void crew_is_back(struct crew *crew, unsigned i)
{
	end_harm(crew, HARM_KILL, i);
}

void crew_stop(struct crew *crew, unsigned i)
{
	note(crew, HARM_STOP, i);
	need(!kill(crew->members[i].pid, SIGSTOP), "stop");
	crew->members[i].stopped = true;
}

void crew_thaw(struct crew *crew, unsigned i)
{
	need(!kill(crew->members[i].pid, SIGCONT), "thaw");
	crew->members[i].stopped = false;
	end_harm(crew, HARM_STOP, i);
}

bool crew_reset(struct crew *crew, unsigned i, unsigned other)
{
	/* Who of the two has dialled knows the other's door. */
	for (unsigned side = 0; side < 2; side++) {
		unsigned at = side ? other : i, to = side ? i : other;
		struct harm *harm = note(crew, HARM_RESET, at);

		crew_say(crew, at, "reset %s", crew->members[to].address);
		harm->other = to;
		if (atoi(crew_hear(crew, at))) {
			harm->until_ns = now_ns();
			return true;
		}
		crew->harm_count--;
	}
	return false;
}

void crew_forget_harms(struct crew *crew)
{
	crew->harm_count = 0;
}

/* Files. */

static void add(struct files *files, unsigned i, const char *path)
{
	char seen[96];

	if (strncmp(path, SHM, strlen(SHM)) || strstr(path, " (deleted)"))
		return;
	snprintf(seen, sizeof(seen), "%s/%s", hosts_count() ? hosts_shm(i) : "/dev/shm",
		 path + strlen(SHM));
	for (size_t n = 0; n < files->count; n++)
		if (!strcmp(files->names[n], seen))
			return;
	if (files->count == CREW_FILES_MAX)
		crew_give_up("too many files in " SHM);
	snprintf(files->names[files->count++], sizeof(files->names[0]), "%s", seen);
}

void crew_files(const struct crew *crew, unsigned i, struct files *files)
{
	char path[300], line[512], target[300];
	pid_t pid = crew->members[i].pid;
	struct dirent *entry;
	ssize_t length;
	FILE *maps;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	need(maps != NULL, path);
	while (fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (strchr(line, '/'))
			add(files, i, strchr(line, '/'));
	}
	fclose(maps);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	need(fds != NULL, path);
	while ((entry = readdir(fds))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = '\0';
		add(files, i, target);
	}
	closedir(fds);
}

size_t crew_files_left(const struct files *files, char name[96])
{
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++) {
		if (access(files->names[i], F_OK))
			continue;
		if (!count++)
			snprintf(name, 96, "%s", files->names[i]);
	}
	return count;
}
