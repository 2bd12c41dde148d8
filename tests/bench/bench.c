/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/bench.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static size_t bytes_of(const char *text)
{
	char *end;
	size_t value = strtoull(text, &end, 10);

	if (*end == 'K')
		return value << 10;
	if (*end == 'M')
		return value << 20;
	if (*end == 'G')
		return value << 30;
	return value;
}

void bench_options(struct bench_options *o, int argc, char **argv, const char *usage)
{
	int c;

	while ((c = getopt(argc, argv, "n:p:e:s:t:w:")) != -1)
		switch (c) {
		case 'n':
			o->servers = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			o->provider = optarg;
			break;
		case 'e':
			o->endpoint = optarg;
			break;
		case 's':
			o->bytes = bytes_of(optarg);
			break;
		case 't':
			o->seconds = strtod(optarg, NULL);
			break;
		case 'w':
			o->window = (unsigned)strtoul(optarg, NULL, 10);
			break;
		default:
			fprintf(stderr, "usage: %s\n", usage);
			exit(2);
		}
	if (optind != argc || !o->bytes || !o->window || !(o->seconds > 0)) {
		fprintf(stderr, "usage: %s\n", usage);
		exit(2);
	}
}

void bench_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void bench_spin(void)
{
	/* Some 50 us of empty polls, so that nothing shows where processors are idle. */
	static unsigned empty;

	if (++empty % 256 == 0)
		sched_yield();
}

void *bench_memory(size_t bytes)
{
	size_t room = (bytes / 4096 + 1) * 4096;
	void *memory = aligned_alloc(4096, room);

	if (!memory)
		bench_die("no memory for %zu bytes", bytes);
	return memset(memory, 1, room);
}

double bench_private_bytes(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	double kib = 0;

	if (!f)
		bench_die("no /proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), f))
		(void)sscanf(line, "Private_Dirty: %lf", &kib);
	fclose(f);
	return kib * 1024;
}

double bench_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	double count = -3; /* ".", ".." and the one that looks */

	if (!dir)
		bench_die("no /proc/self/fd");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

uint64_t bench_sum(const void *memory, size_t bytes)
{
	const uint64_t *words = memory;
	uint64_t total = 0;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		total += words[i];
	return total;
}

/* To the processor at @place among those that we may use, if there are so many. */
static void pin(unsigned place)
{
	cpu_set_t all, one;

	if (getenv("BENCH_FREE") || sched_getaffinity(0, sizeof(all), &all))
		return;
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && place-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			sched_setaffinity(0, sizeof(one), &one);
			return;
		}
}

pid_t bench_fork(int *end)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		bench_die("no socket pair");
	pid = fork();
	if (pid < 0)
		bench_die("no other process");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	*end = ends[pid == 0];
	close(ends[pid != 0]);
	return pid;
}

int bench_pair(int (*server)(int to, const struct bench_options *o),
	       const struct bench_options *o, pid_t *pid)
{
	int end;

	*pid = bench_fork(&end);
	pin(*pid == 0);
	if (*pid == 0)
		exit(server(end, o));
	return end;
}

void bench_pair_end(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("the second process failed");
}

void bench_tell(int to, const void *data, size_t bytes)
{
	if (send(to, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		bench_die("the other process has gone");
}

void bench_hear(int from, void *data, size_t bytes)
{
	if (recv(from, data, bytes, MSG_WAITALL) != (ssize_t)bytes)
		bench_die("the other process has gone");
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void bench_print(const char *test, const struct bench_options *o, double *us, size_t us_count,
		 uint64_t count, double seconds)
{
	double last = (double)us_count - 1;

	qsort(us, us_count, sizeof(*us), by_value);
	printf("{\"test\":\"%s\",\"provider\":\"%s\",\"endpoint\":\"%s\",\"bytes\":%zu,"
	       "\"count\":%llu,\"seconds\":%.6f,"
	       "\"latency_us\":{\"p50\":%.2f,\"p99\":%.2f,\"p999\":%.2f,\"max\":%.2f},"
	       "\"bytes_per_s\":%.0f,\"messages_per_s\":%.1f}\n",
	       test, o->provider, o->endpoint, o->bytes, (unsigned long long)count, seconds,
	       us[(size_t)(0.5 * last)], us[(size_t)(0.99 * last)], us[(size_t)(0.999 * last)],
	       us[us_count - 1], (double)count * (double)o->bytes / seconds,
	       (double)count / seconds);
}
