/* SPDX-License-Identifier: BSD-2-Clause */
#include "member.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "traffic.h"

#define LINE_BYTES 512
#define TURN_NS MS           /* between two looks at the traffic */
#define BACK_MOST_NS (3 * SECOND) /* until shared memory is in its pool again; promised are 1.1 s */
#define END_MOST_NS (30 * SECOND) /* nothing that has a deadline takes as long */

static struct {
	struct weft_node *node;
	struct weft_node_options options;
	char provider[32];
	uint64_t bound_ns;
	unsigned fds; /* open before the first node, with libfabric loaded */
	struct traffic *traffic;
	struct weft_counters counters; /* when the traffic had ended; others may have left since */
	char line[LINE_BYTES];
	size_t length;
	char reply[LINE_BYTES];
} me;

static void give_up(const char *what)
{
	fprintf(stderr, "member %d: %s: %s\n", getpid(), what, weft_error());
	_exit(3);
}

/* Which connection, and how much of it was not read. */
static void print_socket(int fd)
{
	struct sockaddr_in here = { 0 }, there = { 0 };
	socklen_t bytes = sizeof(here);
	int unread = 0;

	if (getsockname(fd, (struct sockaddr *)&here, &bytes))
		return;
	bytes = sizeof(there);
	(void)getpeername(fd, (struct sockaddr *)&there, &bytes);
	(void)ioctl(fd, FIONREAD, &unread);
	fprintf(stderr, "   port %u to %u, %d bytes unread\n", ntohs(here.sin_port),
		ntohs(there.sin_port), unread);
}

static unsigned count_fds(bool print)
{
	DIR *fds = opendir("/proc/self/fd");
	char target[64];
	struct dirent *entry;
	unsigned count = 0;
	ssize_t length;

	if (!fds)
		give_up("/proc/self/fd");
	for (; (entry = readdir(fds)); count++) {
		length = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target));
		if (!print || length <= 0)
			continue;
		fprintf(stderr, "%s: %.*s\n", entry->d_name, (int)length, target);
		print_socket(atoi(entry->d_name));
	}
	closedir(fds);
	return count;
}

/* How long beyond its deadline an operation may take, as weft_wait(3) has it. */
static uint64_t ask_bound(void)
{
	struct weft_info *info;
	uint64_t bound_ns = SECOND / 2;

	if (weft_info_open(&me.options, &info))
		give_up(me.provider);
	for (size_t i = 0; i < weft_info_count(info); i++) {
		struct weft_fabric fabric = { .size = sizeof(fabric) };

		if (!weft_info_get(info, i, &fabric) && fabric.used &&
		    !strcmp(fabric.shape, "shared"))
			bound_ns = 2 * SECOND;
	}
	weft_info_close(info);
	return bound_ns;
}

static void log_line(void *arg, int level, const char *line)
{
	fprintf(stderr, "%.3f %s %d: %s\n", (double)now_ns() / SECOND, (char *)arg, level, line);
}

static void prepare(unsigned beat_ms, unsigned lost_ms)
{
	char beat[24], lost[24];

	snprintf(beat, sizeof(beat), "%ums", beat_ms);
	snprintf(lost, sizeof(lost), "%ums", lost_ms);
	setenv("WEFT_HEARTBEAT", beat, 1);
	setenv("WEFT_LOST", lost, 1);
	me.bound_ns = ask_bound();
	if (!me.fds)
		me.fds = count_fds(false);
}

static void do_open(const char *arguments)
{
	static char addresses[TRAFFIC_PEERS_MAX][64];
	struct traffic_config config = { .reports_fd = MEMBER_REPORTS_FD };
	unsigned beat_ms, lost_ms;
	char mode[16];
	int taken;

	if (sscanf(arguments, "%31s %15s %u %u %" SCNu64 " %u %u%n", me.provider, mode, &beat_ms,
		   &lost_ms, &config.seed, &config.gap_us, &config.self, &taken) != 7)
		give_up(arguments);
	for (arguments += taken; config.count < TRAFFIC_PEERS_MAX &&
	     sscanf(arguments, "%63s%n", addresses[config.count], &taken) == 1;
	     arguments += taken) {
		config.addresses[config.count] = addresses[config.count];
		config.count++;
	}
	me.options = (struct weft_node_options){
		.size = sizeof(me.options),
		.mode = strcmp(mode, "manual") ? WEFT_THREADED : WEFT_MANUAL,
		.security = getenv("WEFT_KEY_FILE") || getenv("WEFT_CERT") ?
				    WEFT_SECURITY_SEALED : WEFT_SECURITY_OPEN,
		.provider = me.provider,
		.listen = addresses[config.self],
		.log = getenv("CHAOS_LOG") ? log_line : NULL,
		.log_arg = addresses[config.self],
	};
	prepare(beat_ms, lost_ms);
	config.options = &me.options;
	config.bound_ns = me.bound_ns;
	me.traffic = traffic_open(&config);
	if (!me.traffic)
		give_up("traffic");
	me.node = traffic_node(me.traffic);
}

static void do_go(const char *arguments)
{
	(void)arguments;
	traffic_go(me.traffic);
}

/*
 * Reset the connection of @fd if it leads to the port @port: what a firewall
 * that has forgotten it does, to both ends.  Done on a copy: the worker may
 * close its own at any time, and the number then means something else.
 */
static unsigned reset_one(int fd, in_port_t port)
{
	struct sockaddr_in to = { 0 };
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	socklen_t bytes = sizeof(to);
	int copy = dup(fd), type = 0;
	socklen_t type_bytes = sizeof(type);
	unsigned done = 0;

	if (copy < 0)
		return 0;
	if (!getpeername(copy, (struct sockaddr *)&to, &bytes) && to.sin_family == AF_INET &&
	    to.sin_port == port &&
	    !getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &type_bytes) && type == SOCK_STREAM)
		done = !connect(copy, &nowhere, sizeof(nowhere));
	close(copy);
	return done;
}

static void do_reset(const char *arguments)
{
	const char *port = strrchr(arguments, ':');
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned count = 0;

	if (!fds || !port)
		give_up(arguments);
	while ((entry = readdir(fds)))
		count += reset_one(atoi(entry->d_name), htons((uint16_t)atoi(port + 1)));
	closedir(fds);
	snprintf(me.reply, sizeof(me.reply), "%u", count);
}

static void *burn(void *arg)
{
	volatile uint64_t x = 0;

	(void)arg;
	for (;;)
		x++;
	return NULL;
}

static void do_burn(const char *arguments)
{
	pthread_t thread;

	for (int i = atoi(arguments); i > 0; i--)
		if (pthread_create(&thread, NULL, burn, NULL))
			give_up("a thread");
}

static void turn(uint64_t ns)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	bool manual = me.node && me.options.mode == WEFT_MANUAL;

	if (me.traffic)
		traffic_turn(me.traffic);
	if (manual && weft_poll(me.node, ns) < 0)
		give_up("poll");
	if (!manual)
		poll(&input, 1, me.traffic ? (int)(ns / MS) : -1);
}

static void turn_until(bool (*done)(struct traffic *t), const char *what)
{
	uint64_t until = now_ns() + END_MOST_NS;

	while (!done(me.traffic)) {
		turn(TURN_NS);
		if (now_ns() < until)
			continue;
		fprintf(stderr, "member %d: %s does not end\n", getpid(), what);
		weft_dump(me.node, stderr);
		_exit(4);
	}
}

static void do_meet(const char *arguments)
{
	(void)arguments;
	turn_until(traffic_has_met_all, "meet");
}

static void do_drain(const char *arguments)
{
	(void)arguments;
	traffic_drain(me.traffic);
	turn_until(traffic_is_idle, "drain");
}

static void do_hush(const char *arguments)
{
	(void)arguments;
	traffic_hush(me.traffic);
	turn_until(traffic_is_idle, "hush");
	me.counters = (struct weft_counters){ .size = sizeof(me.counters) };
	if (weft_node_counters(me.node, &me.counters))
		give_up("counters");
}

static void do_close(const char *arguments)
{
	struct weft_counters counters = { .size = sizeof(counters) };
	struct traffic_totals totals;
	uint64_t until = now_ns() + BACK_MOST_NS;
	int fds;

	(void)arguments;
	traffic_totals(me.traffic, &totals);
	/* What others have looked at comes back, be it from the dead. */
	do {
		turn(TURN_NS);
		if (weft_node_counters(me.node, &counters))
			give_up("counters");
	} while (counters.pool_bytes_used && now_ns() < until);
	traffic_stop(me.traffic);
	if (weft_node_close(me.node))
		give_up("close");
	traffic_close(me.traffic);
	me.traffic = NULL;
	me.node = NULL;
	fds = (int)count_fds(false) - (int)me.fds;
	if (fds)
		count_fds(true); /* for whoever looks for the leak */
	snprintf(me.reply, sizeof(me.reply),
		 "ended %" PRIu64 " failed %" PRIu64 " bytes %" PRIu64 " lost %" PRIu64
		 " resumed %" PRIu64 " pool %" PRIu64 " heap %zu fds %d",
		 totals.ended, totals.failed, totals.bytes, me.counters.peers_lost,
		 me.counters.links_resumed, counters.pool_bytes_used, mallinfo2().uordblks, fds);
}

static const struct command {
	const char *name;
	void (*run)(const char *arguments);
} commands[] = {
	{ "open", do_open },   { "go", do_go },       { "meet", do_meet },   { "reset", do_reset },
	{ "burn", do_burn },   { "drain", do_drain }, { "hush", do_hush },   { "close", do_close },
};

static void obey(char *line)
{
	char *arguments = line + strcspn(line, " ");

	if (*arguments)
		*arguments++ = '\0';
	me.reply[0] = '\0';
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, line))
			continue;
		commands[i].run(arguments);
		dprintf(STDOUT_FILENO, "ok %s\n", me.reply);
		return;
	}
	give_up(line);
}

/* Commands come one at a time, so what is read ends with one.  False: no more will come. */
static bool hear(void)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	ssize_t got;

	if (poll(&input, 1, 0) != 1)
		return true;
	got = read(STDIN_FILENO, me.line + me.length, sizeof(me.line) - me.length);
	if (got <= 0)
		return false;
	me.length += (size_t)got;
	if (me.line[me.length - 1] != '\n' && me.length < sizeof(me.line))
		return true;
	me.line[me.length - 1] = '\0';
	me.length = 0;
	obey(me.line);
	return true;
}

int member_run(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (hear())
		turn(TURN_NS);
	return 0;
}
