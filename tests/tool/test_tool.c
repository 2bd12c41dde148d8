/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The `weft` command as its users meet it: run as a program, over every
 * provider found here, judged by output, errors and exit status.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/machine.h"

/* Nothing here takes long; only a machine that does much else needs this much. */
#define LIMIT_S 60.0

/* The kernel tells of a death at once, long before WEFT_LOST; a busy machine needs much of it. */
#define REPORT_LIMIT_S 30.0
#define LOST "WEFT_LOST=120s"

#define WORDS_MAX  16
#define SHARED_MAX 64
#define TEXT_BYTES 65536

static const char *const providers[] = { "shm", "tcp", "net", "sockets" };

#define PROVIDER_COUNT (sizeof(providers) / sizeof(*providers))

static char weft_path[4096];

/* A run of the tool.  Its output goes to files, so it never waits for us. */
struct process {
	pid_t pid;
	int out, err;
	int status; /* exit status; 128 + the signal that ended it */
	char text[TEXT_BYTES], error[TEXT_BYTES];
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(void)
{
	const struct timespec t = { .tv_nsec = 5000000 };

	nanosleep(&t, NULL);
}

static int scratch(void)
{
	FILE *f = tmpfile();
	int fd;

	assert_non_null(f);
	fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);
	fclose(f);
	assert_true(fd >= 0);
	return fd;
}

/* @environment is "NAME=VALUE" or NULL; @line is words with blanks between them. */
static void start(struct process *p, const char *environment, const char *line)
{
	char words[1024], *argv[WORDS_MAX + 1] = { weft_path }, *rest = words, *word;
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	while ((word = strsep(&rest, " "))) {
		assert_true(argc < WORDS_MAX);
		argv[argc++] = word;
	}
	*p = (struct process){ .out = scratch(), .err = scratch() };
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (environment)
		putenv(strdup(environment));
	dup2(p->out, STDOUT_FILENO);
	dup2(p->err, STDERR_FILENO);
	execv(weft_path, argv);
	_exit(127);
}

static void read_back(int fd, char *text)
{
	ssize_t got = pread(fd, text, TEXT_BYTES - 1, 0);

	assert_true(got >= 0);
	text[got] = '\0';
}

/* Wait for its end.  Returns its exit status; what it wrote is in ->text and ->error. */
static int finish(struct process *p)
{
	double until = now() + LIMIT_S;
	int status;

	while (waitpid(p->pid, &status, WNOHANG) == 0) {
		if (now() > until) {
			kill(p->pid, SIGKILL);
			waitpid(p->pid, &status, 0);
			fail_msg("weft did not end");
		}
		nap();
	}
	read_back(p->out, p->text);
	read_back(p->err, p->error);
	close(p->out);
	close(p->err);
	p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return p->status;
}

static int run(struct process *p, const char *environment, const char *line)
{
	start(p, environment, line);
	return finish(p);
}

/* Wait until it has written a whole line. */
static void first_line(struct process *p)
{
	double until = now() + LIMIT_S;
	siginfo_t end;

	do {
		nap();
		read_back(p->out, p->text);
		end.si_pid = 0;
		assert_int_equal(waitid(P_PID, (id_t)p->pid, &end, WEXITED | WNOHANG | WNOWAIT), 0);
		if (end.si_pid || now() > until) {
			read_back(p->err, p->error);
			fail_msg("weft wrote no line, but: %s", p->error);
		}
	} while (!strchr(p->text, '\n'));
}

static unsigned lines(const char *text)
{
	unsigned count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Is it one line, beginning like this? */
static void assert_one_sentence(const char *error, const char *with)
{
	assert_int_equal(lines(error), 1);
	assert_true(begins(error, with));
}

static bool is_here(const char *provider)
{
	static struct process p;
	char environment[64];

	snprintf(environment, sizeof(environment), "WEFT_PROVIDER=%s", provider);
	return run(&p, environment, "info") == 0;
}

/*
 * Is there a JSON value at *@at?  Moves *@at behind it.  Strict enough for
 * what a program could choke on: commas, quotes, brackets, numbers.
 */
static bool json_value(const char **at);

static bool json_word(const char **at, const char *word)
{
	if (!begins(*at, word))
		return false;
	*at += strlen(word);
	return true;
}

static bool json_string(const char **at)
{
	if (!json_word(at, "\""))
		return false;
	for (; **at != '"'; (*at)++) {
		if ((unsigned char)**at < 0x20)
			return false;
		if (**at == '\\' && !*++*at)
			return false;
	}
	return json_word(at, "\"");
}

static bool json_number(const char **at)
{
	size_t length = strspn(*at, "-0123456789.eE+");
	char *end;

	strtod(*at, &end);
	if (!length || end != *at + length)
		return false;
	*at = end;
	return true;
}

static bool json_list(const char **at, const char *end, bool named)
{
	if (json_word(at, end))
		return true;
	do {
		if (named && !(json_string(at) && json_word(at, ":")))
			return false;
		if (!json_value(at))
			return false;
	} while (json_word(at, ","));
	return json_word(at, end);
}

static bool json_value(const char **at)
{
	if (json_word(at, "{"))
		return json_list(at, "}", true);
	if (json_word(at, "["))
		return json_list(at, "]", false);
	if (**at == '"')
		return json_string(at);
	return json_word(at, "true") || json_word(at, "false") || json_word(at, "null") ||
	       json_number(at);
}

/* Is @text nothing but @count lines, each one JSON object? */
static void assert_json_lines(const char *text, unsigned count)
{
	assert_int_equal(lines(text), count);
	while (*text) {
		assert_int_equal(*text, '{');
		assert_true(json_value(&text));
		assert_int_equal(*text, '\n');
		text++;
	}
}

static pid_t child_of(pid_t parent)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	assert_non_null(dir);
	while (!found && (entry = readdir(dir))) {
		char path[300], stat[512] = "", *after;
		pid_t pid = (pid_t)atoi(entry->d_name);
		int fd, parent_pid = 0;

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		if (read(fd, stat, sizeof(stat) - 1) > 0 && (after = strrchr(stat, ')')) &&
		    sscanf(after, ") %*c %d", &parent_pid) == 1 && parent_pid == parent)
			found = pid;
		close(fd);
	}
	closedir(dir);
	return found;
}

/* Names in /dev/shm that a process uses. */
struct shared {
	char names[SHARED_MAX][256];
	unsigned count;
};

static void note_shared(struct shared *s, const char *path)
{
	const char *stem = "/dev/shm/", *at = strstr(path, stem);

	if (!at)
		return;
	assert_true(s->count < SHARED_MAX);
	at += strlen(stem);
	snprintf(s->names[s->count++], sizeof(s->names[0]), "%.*s", (int)strcspn(at, "\n"), at);
}

/* Add what @pid has mapped or open. */
static void find_shared(struct shared *s, pid_t pid)
{
	char path[64], line[4096];
	struct dirent *entry;
	FILE *maps;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		note_shared(s, line);
	fclose(maps);

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, line, sizeof(line) - 1);

		line[length < 0 ? 0 : length] = '\0';
		note_shared(s, line);
	}
	closedir(dir);
}

static void assert_all_gone(const struct shared *s)
{
	char path[300];

	for (unsigned i = 0; i < s->count; i++) {
		snprintf(path, sizeof(path), "/dev/shm/%s", s->names[i]);
		if (access(path, F_OK) == 0)
			fail_msg("%s is left", path);
	}
}

static void info_shows_only_what_FI_PROVIDER_names(void **state)
{
	static struct process p;
	const char *at;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=tcp", "info --json"), 0);
	assert_json_lines(p.text, 1);
	assert_non_null(strstr(p.text, "\"provider\":\"tcp\""));
	for (at = p.text; (at = strstr(at, "\"provider\":\"")); at++)
		assert_true(begins(at, "\"provider\":\"tcp\""));
}

static void info_shows_the_eager_limit_that_is_set(void **state)
{
	static struct process p;

	(void)state;
	setenv("FI_PROVIDER", "tcp", 1);
	assert_int_equal(run(&p, "WEFT_EAGER_BYTES=20K", "info --json"), 0);
	unsetenv("FI_PROVIDER");
	assert_non_null(strstr(p.text, "\"eager_bytes\":20480,"));
}

/* Run it with FAKE_CUDA=@fake, on the software driver. */
static int run_with_driver(struct process *p, const char *fake, const char *line)
{
	const char *build = getenv("top_builddir");
	char setting[600];

	snprintf(setting, sizeof(setting), "WEFT_CUDA=%s/tests/cuda/fake/.libs/libcuda.so.1",
		 build ? build : ".");
	setenv("FI_PROVIDER", "tcp", 1);
	setenv("FAKE_CUDA", fake, 1);
	(void)run(p, setting, line);
	unsetenv("FI_PROVIDER");
	unsetenv("FAKE_CUDA");
	return p->status;
}

static void info_tells_what_became_of_cuda(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "WEFT_CUDA=no", "info"), 0);
	assert_non_null(strstr(p.text, "\ncuda         CUDA is not looked for: WEFT_CUDA=no\n"));
	assert_int_equal(run(&p, "WEFT_CUDA=/nowhere/libcuda.so.1", "info"), 0);
	assert_non_null(strstr(p.text, "\ncuda         no CUDA driver: /nowhere/libcuda.so.1: "));
	assert_int_equal(run_with_driver(&p, "version=9000", "info"), 0);
	assert_non_null(strstr(p.text, "is of CUDA 9.0, and weft needs 11.0\n"));
	assert_int_equal(run(&p, "WEFT_CUDA=perhaps", "info"), 1);
	assert_one_sentence(p.error, "weft info: ");
	assert_non_null(strstr(p.error, "WEFT_CUDA=perhaps: expected"));
}

static void info_shows_the_devices_of_a_driver_that_is_ready(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run_with_driver(&p, "", "info"), 0);
	assert_non_null(strstr(p.text, "libcuda.so.1, CUDA 13.0, 2 devices\n"));
	assert_non_null(strstr(p.text, "\n  cuda:1     Software GPU 1, 0000:af:00.0, 17408 MiB, "
				       "NUMA node 1\n"));
	assert_non_null(strstr(p.text, "\n  libfabric  /"));
	assert_int_equal(run_with_driver(&p, "dma-buf", "info --json"), 0);
	assert_json_lines(p.text, 1);
	assert_non_null(strstr(p.text, "\"cuda\":{\"state\":\"ready\",\"sentence\":\""));
	assert_non_null(strstr(p.text, "{\"name\":\"Software GPU 0\",\"pci\":\"0000:3b:00.0\","
				       "\"bytes\":17179869184,\"numa_node\":0,\"dma_buf\":true}"));
}

static void a_provider_that_does_not_exist_is_one_sentence(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=nosuch", "info"), 1);
	assert_one_sentence(p.error, "weft info: ");
	assert_non_null(strstr(p.error, "nosuch"));
	assert_string_equal(p.text, "");
	assert_int_equal(run(&p, NULL, "perf --provider nosuch"), 1);
	assert_one_sentence(p.error, "weft perf: ");
	assert_non_null(strstr(p.error, "nosuch"));
}

static void an_empty_FI_PROVIDER_is_one_sentence(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=", "info"), 1);
	assert_one_sentence(p.error, "weft info: ");
	assert_non_null(strstr(p.error, "FI_PROVIDER"));
}

static void info_lists_settings_and_plans(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, NULL, "info --options --json"), 0);
	assert_json_lines(p.text, 1);
	assert_non_null(strstr(p.text, "\"WEFT_PROVIDER\""));
	assert_int_equal(run(&p, "FI_PROVIDER=tcp", "info --plan 8M user pool --json"), 0);
	assert_json_lines(p.text, 1);
	assert_non_null(strstr(p.text, "pull"));
	assert_int_equal(run(&p, "FI_PROVIDER=tcp", "info --plan 8 user pool"), 0);
	assert_non_null(strstr(p.text, "eager"));
}

static void info_shows_whose_memory_is_near_to_whom(void **state)
{
	static const char *const lines[] = {
		"publisher            gpu0    mlx5_0  gpu1    nvme0   mlx5_1  node         bytes    available\n",
		"host:0               PHB*    PHB*    PHB*    PHB*    SYS     0          8.0 GiB      6.0 GiB\n",
		"host:1               SYS     SYS     SYS     SYS     PHB*    1          8.0 GiB      6.0 GiB\n",
		"huge:1               (SYS)   (SYS)   (SYS)   (SYS)   (PHB)   1          1.0 GiB    512.0 MiB\n",
		"p2pmem:0000:1f:00.0  PXB     PXB     PIX     X       (SYS)   0         64.0 MiB     64.0 MiB\n",
		"\nmlx5_0: nic 0000:1b:00.0, NUMA node 0\n",
		"  from host:0: PHB to mlx5_0\n",
		"  not from huge:1: 'deny huge': it is SYS to mlx5_0\n",
	};
	static struct process p;

	(void)state;
	setenv("WEFT_SYSFS", machine_make(MACHINE_SWITCH), 1);
	assert_int_equal(run(&p, NULL, "info --topology"), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (!strstr(p.text, lines[i]))
			fail_msg("there is no '%s' in\n%s", lines[i], p.text);
	assert_int_equal(run(&p, "WEFT_RULES=allow p2pmem where class<=pxb", "info --topology"), 0);
	assert_non_null(strstr(p.text, "\np2pmem:0000:1f:00.0  PXB*    PXB*    PIX*    X*      (SYS) "));
	assert_non_null(strstr(p.text, "  from p2pmem:0000:1f:00.0: PXB to mlx5_0\n"));
	assert_int_equal(run(&p, "WEFT_RULES=prefer host; deny host for gpu1", "info --topology"), 0);
	assert_non_null(strstr(p.text, "  from host:0: 'prefer host'; PHB to mlx5_0\n"));
	assert_non_null(strstr(p.text, "  not from host:0: 'deny host for gpu1': it is PHB to gpu1\n"));

	assert_int_equal(run(&p, NULL, "info --topology --json"), 0);
	assert_json_lines(p.text, 1);
	assert_non_null(strstr(p.text, "\"name\":\"huge:1\",\"path\":\"PHB\",\"distance\":302,"
				       "\"allowed\":false,\"chosen\":false,\"why\":\"'deny huge': "
				       "it is PHB to mlx5_1\""));
	assert_int_equal(run(&p, "WEFT_RULES=deny gpu", "info --topology"), 1);
	assert_one_sentence(p.error, "weft info: rules, line 1: 'gpu'");

	machine_drop(MACHINE_P2PMEM "allocate");
	assert_int_equal(run(&p, NULL, "info --topology"), 0);
	assert_non_null(strstr(p.text, "64.0 MiB     64.0 MiB  not published: its memory can't be opened: "
				       "No such file or directory, as before Linux 6.2\n"));
	assert_null(strstr(p.text, "  from p2pmem"));
	setenv("WEFT_CUDA", "no", 1);
	assert_int_equal(run(&p, "WEFT_RULES=allow pinned", "info --topology"), 0);
	assert_non_null(strstr(p.text, "\npinned:1             SYS     SYS     SYS     SYS     PHB     1 "));
	assert_non_null(strstr(p.text, "  not published: CUDA is not looked for: WEFT_CUDA=no\n"));
	assert_int_equal(run(&p, "WEFT_RULES=allow pinned", "info --topology --json"), 0);
	assert_non_null(strstr(p.text, "\"allowed\":true,\"chosen\":false,\"why\":\"it is not "
				       "published: CUDA is not looked for: WEFT_CUDA=no\""));
	unsetenv("WEFT_CUDA");
	unsetenv("WEFT_SYSFS");
	machine_remove();
}

static void info_shows_how_near_the_memory_of_cuda_devices_is(void **state)
{
	static const char *const lines[] = {
		"publisher gpu0    mlx5_0  gpu1    mlx5_1  node         bytes    available\n",
		"host:0    PHB*    PHB*    SYS     SYS     0          8.0 GiB      6.0 GiB\n",
		"cuda:0    X       PIX     SYS     SYS     0         16.0 GiB     16.0 GiB\n",
		"cuda:1    (SYS)   (SYS)   X       PIX     1         17.0 GiB     17.0 GiB\n",
		"  not from cuda:1: 'deny cuda:1 where class>pix': it is SYS to gpu0\n",
	};
	static struct process p;

	(void)state;
	setenv("WEFT_SYSFS", machine_make(MACHINE_GPUS), 1);
	setenv("WEFT_RULES", "deny cuda:1 where class>pix; allow cuda", 1);
	assert_int_equal(run_with_driver(&p, "", "info --topology"), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (!strstr(p.text, lines[i]))
			fail_msg("there is no '%s' in\n%s", lines[i], p.text);
	assert_int_equal(run_with_driver(&p, "", "info --topology --json"), 0);
	assert_json_lines(p.text, 1);
	assert_non_null(strstr(p.text, "\"name\":\"cuda:1\",\"kind\":\"cuda\","
				       "\"address\":\"0000:af:00.0\",\"numa_node\":1,"));

	/* Why there is none is said. */
	assert_int_equal(run_with_driver(&p, "devices=0", "info --topology"), 0);
	assert_non_null(strstr(p.text, "\ncuda:0    SYS     SYS     SYS     SYS     - "));
	assert_non_null(strstr(p.text, "libcuda.so.1 finds no device\n"));
	unsetenv("WEFT_RULES");
	unsetenv("WEFT_SYSFS");
	machine_remove();
}

static void a_wrong_call_shows_the_usage_and_gives_2(void **state)
{
	static const char *const wrong[] = {
		"nosuch",
		"info --nosuch",
		"info extra",
		"info --plan 8M user",
		"info --plan 8M user nowhere",
		"info --plan many user pool",
		"info --topology --options",
		"info --topology extra",
		"ping",
		"ping -c few 127.0.0.1:1",
		"serve extra",
		"serve --listen",
		"serve --callers 0",
		"perf --test nosuch",
		"perf --sizes 8,,9",
		"perf --sizes 2G",
		"perf --sizes -1",
		"perf --sizes 1G --window 64",
		"perf --time 0",
		"perf --time soon",
		"perf --time .0000000001", /* less than a nanosecond */
		"perf --count 0",
		"perf --window 1025",
		"perf --rate 0",
		"perf --rate -1",
		"perf --rate often",
		"perf --rate 0.5",
		"perf --rate 10000001",
		"perf --rate",
		"perf --all-pairs --rate 1000",
		"perf --test call --tensors 8,8",
		"perf --tensors 1G,1G",
		"perf --memory nosuch",
		"perf --device 0",
		"perf --device cuda:64",
		"perf --device cuda:0 --memory pool",
		"perf --device cuda:0 --test call",
		"perf --metadata 60001",
		"perf --idle-streams 0",
		"ping nowhere",
		"ping 127.0.0.1:0",
		"serve --listen nowhere",
		"perf nowhere",
		"services",
		"services nowhere",
		"services 127.0.0.1:1 --nosuch",
		"call nowhere a/b",
		"help nosuch",
		"help info extra",
	};
	static struct process p;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		if (run(&p, NULL, wrong[i]) != 2 || !strstr(p.error, "usage: weft"))
			fail_msg("weft %s: status %d: %s", wrong[i], p.status, p.error);
		assert_string_equal(p.text, "");
	}
}

static const char *const commands[] = { "info", "ping", "serve", "perf", "services", "call" };

static void help_is_no_error(void **state)
{
	static const char *const overviews[] = { "help", "--help", "-h" };
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, NULL, "help perf"), 0);
	assert_non_null(strstr(p.text, "--no-validate"));
	for (size_t i = 0; i < sizeof(overviews) / sizeof(*overviews); i++) {
		assert_int_equal(run(&p, NULL, overviews[i]), 0);
		assert_true(begins(p.text, "usage: weft COMMAND"));
		assert_string_equal(p.error, "");
	}
}

static void every_command_has_help_and_a_version(void **state)
{
	static struct process p;
	char line[64], usage[64];

	(void)state;
	assert_int_equal(run(&p, NULL, "--version"), 0);
	assert_true(begins(p.text, "weft "));
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		snprintf(usage, sizeof(usage), "usage: weft %s ", commands[i]);
		for (int k = 0; k < 2; k++) {
			snprintf(line, sizeof(line), "%s %s", commands[i], k ? "-h" : "--help");
			assert_int_equal(run(&p, NULL, line), 0);
			assert_true(begins(p.text, usage));
			assert_string_equal(p.error, "");
		}
		snprintf(line, sizeof(line), "%s --version", commands[i]);
		assert_int_equal(run(&p, NULL, line), 0);
		assert_true(begins(p.text, "weft "));
	}
}

static void an_output_that_can_not_be_written_is_an_error(void **state)
{
	static const char *const lines[] = {
		"--version", "--help", "help info", "ping -h", "info", "info --json",
		"info --options", "info --topology", "info --plan 1M user pool", "serve",
		"perf --sizes 8 --count 1",
	};
	char command[4096 + 128];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		int status;

		snprintf(command, sizeof(command),
			 "err=$('%s' %s 2>&1 >/dev/full); status=$?; "
			 "[ $status = 1 ] && [ \"${err#*write the output: }\" != \"$err\" ]",
			 weft_path, lines[i]);
		status = system(command);
		if (status)
			fail_msg("weft %s >/dev/full is no error", lines[i]);
	}
}

static void info_shows_all_when_nothing_is_left(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "WEFT_PROVIDER=nosuch", "info"), 1);
	assert_non_null(strstr(p.text, "WEFT_PROVIDER names others"));
	assert_null(strstr(p.text, "\nyes "));
	assert_one_sentence(p.error, "weft info: ");
	assert_int_equal(run(&p, "WEFT_PROVIDER=nosuch", "info --json"), 1);
	assert_json_lines(p.text, 1);
	assert_int_equal(run(&p, "TF_RDMA_DEV_NAME=mlx5_0", "info"), 1);
	assert_non_null(strstr(p.text, "TF_RDMA_DEV_NAME names others"));
}

static void serve_answers_pings_until_it_is_interrupted(void **state)
{
	static struct process serve, ping;
	char line[256];

	(void)state;
	start(&serve, "FI_PROVIDER=tcp", "serve");
	first_line(&serve);
	snprintf(line, sizeof(line), "ping -c 3 %.*s", (int)strcspn(serve.text, "\n"),
		 serve.text);

	assert_int_equal(run(&ping, "FI_PROVIDER=tcp", line), 0);
	assert_non_null(strstr(ping.text, "3 sent, 3 answered"));
	assert_string_equal(ping.error, "");

	kill(serve.pid, SIGINT);
	assert_int_equal(finish(&serve), 0);
	assert_string_equal(serve.error, "");
}

static void a_signal_asks_serve_for_a_dump(void **state)
{
	static struct process serve, ping;
	double until = now() + LIMIT_S;
	char line[256];

	(void)state;
	start(&serve, "FI_PROVIDER=tcp", "serve");
	first_line(&serve);
	snprintf(line, sizeof(line), "ping -c 1 %.*s", (int)strcspn(serve.text, "\n"),
		 serve.text);
	assert_int_equal(run(&ping, "FI_PROVIDER=tcp", line), 0);

	kill(serve.pid, SIGUSR1);
	/* One of the events, which come last. */
	do {
		assert_true(now() < until);
		nap();
		read_back(serve.err, serve.error);
	} while (!strstr(serve.error, "link 1: is up on rail 0, epoch 1\n"));
	kill(serve.pid, SIGTERM);
	assert_int_equal(finish(&serve), 0);
	assert_true(begins(serve.error, "node "));
	assert_non_null(strstr(serve.error, "\nrail 0: tcp on "));
	assert_non_null(strstr(serve.error, "\npool: "));
}

static void a_ping_that_nobody_answers_fails(void **state)
{
	static struct process p;

	(void)state;
	/* Port 1 of loopback: nobody listens there. */
	assert_int_equal(run(&p, NULL, "ping 127.0.0.1:1"), 1);
	assert_one_sentence(p.error, "weft ping: 127.0.0.1:1: ");
}

/* A host that takes the connection of a dial, and says no word. */
static int open_mute(uint16_t *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t bytes = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &bytes), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static void perf_gives_up_a_mute_server_as_soon_as_ping_does(void **state)
{
	static struct process p;
	char line[64];
	uint16_t port;
	int fd = open_mute(&port);
	double began = now();

	(void)state;
	snprintf(line, sizeof(line), "perf 127.0.0.1:%u", port);
	assert_int_equal(run(&p, NULL, line), 1);
	assert_one_sentence(p.error, "weft perf: 127.0.0.1:");
	/* It was a minute: less than that tells them apart on the slowest machine. */
	assert_true(now() - began < 30);
	close(fd);
}

static void perf_validates_and_prints_json_over_every_provider(void **state)
{
	static const char *const tests[] = { "tensor", "call", "message", "stream", "attachment" };
	static struct process p;
	unsigned found = 0;

	(void)state;
	for (size_t i = 0; i < PROVIDER_COUNT; i++) {
		char line[128];

		if (!is_here(providers[i]))
			continue;
		found++;
		for (size_t k = 0; k < sizeof(tests) / sizeof(*tests); k++) {
			const char *at;
			unsigned validated = 0;

			snprintf(line, sizeof(line),
				 "perf --json --test %s --sizes 0,8,20000,1M --count 20 --provider %s",
				 tests[k], providers[i]);
			if (run(&p, NULL, line))
				fail_msg("weft %s: %s", line, p.error);
			assert_string_equal(p.error, "");
			assert_json_lines(p.text, 4);
			for (at = p.text; (at = strstr(at, "\"validated\":true")); at++)
				validated++;
			assert_int_equal(validated, 4);
			assert_non_null(strstr(p.text, "\"count\":20,"));
			assert_non_null(strstr(p.text, providers[i]));
		}
	}
	assert_true(found > 0);
}

static void perf_measures_calls_beside_metadata_and_idle_streams(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --test call --sizes 0,1M --count 10 --metadata 60000 --idle-streams 100"),
			 0);
	assert_json_lines(p.text, 2);
	assert_non_null(strstr(p.text, "\"validated\":true"));
}

static void perf_begins_bodies_at_a_rate(void **state)
{
	static const char *const tests[] = { "tensor", "call", "message", "stream", "attachment" };
	static struct process p;
	char line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		snprintf(line, sizeof(line),
			 "perf --json --test %s --sizes 0,1M --count 50 --rate 2000 --window 3",
			 tests[i]);
		if (run(&p, "FI_PROVIDER=tcp", line))
			fail_msg("weft %s: %s", line, p.error);
		assert_string_equal(p.error, "");
		assert_json_lines(p.text, 2);
		assert_non_null(strstr(p.text, "\"rate\":{\"asked\":2000,\"achieved\":"));
	}
	assert_int_equal(run(&p, "FI_PROVIDER=tcp", "perf --json --sizes 8 --count 50"), 0);
	assert_null(strstr(p.text, "\"rate\""));
}

/* Returns the number behind @name in the JSON of @p. */
static double number_of(const struct process *p, const char *name)
{
	const char *at = strstr(p->text, name);

	assert_non_null(at);
	return strtod(at + strlen(name), NULL);
}

static void a_body_that_waits_for_room_is_timed_from_when_it_was_due(void **state)
{
	static struct process p;

	(void)state;
	/* Ten million calls in a second are more than any processor makes one by one. */
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --test call --sizes 0 --count 1000 --window 1 "
			     "--rate 10000000"),
			 0);

	/* Nearly all are due at once: half of them wait for 500 others, the last for nearly all. */
	double took_us = 1000 / number_of(&p, "\"achieved\":") * 1e6;
	double half_us = number_of(&p, "\"p50\":");

	/* A call alone takes a thousandth of the whole. */
	assert_true(half_us > took_us / 20);
	assert_true(half_us < took_us);
	assert_true(number_of(&p, "\"max\":") > took_us / 2);
}

static void a_rate_that_is_too_high_ends_after_twice_the_time(void **state)
{
	static struct process p;
	double began = now();

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --test call --sizes 0 --time 0.4 --window 2 "
			     "--rate 10000000"),
			 0);
	assert_true(now() - began < LIMIT_S);
	assert_true(number_of(&p, "\"achieved\":") < 10000000);
}

static void perf_measures_several_tensors_beside_a_call(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --test attachment --tensors 0,8,1M --count 10"),
			 0);
	assert_json_lines(p.text, 1);
	assert_non_null(strstr(p.text, "\"tensors\":3,"));
	assert_non_null(strstr(p.text, "\"validated\":true"));
}

static void perf_says_so_where_the_pool_has_no_room(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "WEFT_POOL_BYTES=16M", "perf --memory pool --sizes 16M"), 1);
	assert_one_sentence(p.error, "weft perf: no memory for a buffer of 16777216 bytes");
}

static void perf_measures_memory_of_the_pool_too(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --memory pool --sizes 1M --count 10"),
			 0);
	assert_non_null(strstr(p.text, "\"validated\":true"));
}

static void perf_measures_the_memory_of_a_cuda_device(void **state)
{
	static const char *const tests[] = { "tensor", "message", "attachment" };
	static struct process p;
	char line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		unsigned device = i % 2;
		const char *at;
		unsigned lines = 0;

		snprintf(line, sizeof(line),
			 "perf --json --test %s --device cuda:%u --sizes 0,8,64K,3M --count 10",
			 tests[i], device);
		if (run_with_driver(&p, "", line))
			fail_msg("weft %s: %s", line, p.error);
		assert_json_lines(p.text, 4);
		snprintf(line, sizeof(line), "\"memory\":\"cuda:%u\"", device);
		for (at = p.text; (at = strstr(at, line)); at++)
			lines++;
		assert_int_equal(lines, 4);
		assert_null(strstr(p.text, "\"validated\":false"));
		/* One copy from a device, and one to a device. */
		assert_non_null(strstr(p.text, "\"way\":\"staged\",\"copies\":2"));
	}
}

static void perf_says_why_it_has_no_memory_of_a_device(void **state)
{
	static const char *const sentences[][2] = {
		{ "perf --device cuda:2", "weft perf: CUDA device 2 can't be used: CUDA_ERROR_INVALID_DEVICE\n" },
		{ "perf --device cuda:0 --sizes 8", "weft perf: CUDA device 0 can't be used: CUDA_ERROR_NO_DEVICE\n" },
	};
	static struct process p, serve;
	char line[128];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(run_with_driver(&p, i ? "devices=0" : "", sentences[i][0]), 1);
		assert_string_equal(p.error, sentences[i][1]);
	}
	assert_int_equal(run(&p, "WEFT_CUDA=no", "perf --device cuda:0"), 1);
	assert_string_equal(p.error, "weft perf: CUDA is not looked for: WEFT_CUDA=no\n");
	assert_int_equal(run(&p, "WEFT_CUDA=/nowhere/libcuda.so.1", "perf --device cuda:0"), 1);
	assert_one_sentence(p.error, "weft perf: /nowhere/libcuda.so.1: ");

	/* Nor has a server that has no driver. */
	start(&serve, "WEFT_CUDA=no", "serve");
	first_line(&serve);
	snprintf(line, sizeof(line), "perf --device cuda:0 --sizes 8 %.*s",
		 (int)strcspn(serve.text, "\n"), serve.text);
	assert_int_equal(run_with_driver(&p, "", line), 1);
	assert_one_sentence(p.error, "weft perf: ");
	assert_non_null(strstr(p.error, "CUDA is not looked for: WEFT_CUDA=no"));
	kill(serve.pid, SIGTERM);
	(void)finish(&serve);
}

static void perf_can_have_a_checksum_over_every_body(void **state)
{
	static struct process p;
	const char *at = NULL;
	unsigned sums = 0;

	(void)state;
	/* Eager, of one piece, and of several. */
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --checksum --sizes 8,1M,3M --count 10"),
			 0);
	assert_json_lines(p.text, 3);
	for (at = p.text; (at = strstr(at, "\"checksum\":\"xxh3\"")); at++)
		sums++;
	assert_int_equal(sums, 3);
	assert_null(strstr(p.text, "\"validated\":false"));

	assert_int_equal(run(&p, "FI_PROVIDER=tcp", "perf --json --sizes 8 --count 10"), 0);
	assert_non_null(strstr(p.text, "\"checksum\":\"none\""));
}

static void perf_makes_a_key_for_its_two_processes(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --security sealed --sizes 8,3M --count 10"), 0);
	assert_json_lines(p.text, 2);
	assert_null(strstr(p.text, "\"cipher\":\"none\""));
	assert_null(strstr(p.text, "\"validated\":false"));

	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --security open --sizes 8,3M --count 10"), 0);
	assert_non_null(strstr(p.text, "\"cipher\":\"none\""));
	assert_int_equal(run(&p, "", "perf --security closed --sizes 8 --count 1"), 1);
	assert_non_null(strstr(p.error, "WEFT_SECURITY=closed"));
}

static void bytes_that_were_not_compared_are_not_called_validated(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "FI_PROVIDER=tcp",
			     "perf --json --no-validate --sizes 8 --count 10"),
			 0);
	assert_non_null(strstr(p.text, "\"validated\":false"));
}

static void perf_listens_at_any_port_of_the_host_that_is_given(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(run(&p, "WEFT_LISTEN=127.0.0.2:1", "perf --json --sizes 8 --count 10"), 0);
	assert_json_lines(p.text, 1);
	assert_int_equal(run(&p, "WEFT_LISTEN=192.0.2.1:1", "perf --json --sizes 8 --count 10"), 1);
	assert_non_null(strstr(p.error, "192.0.2.1:0"));
}

static void perf_measures_against_a_server_that_stays(void **state)
{
	static struct process serve, perf;
	char line[256];

	(void)state;
	start(&serve, "FI_PROVIDER=tcp", "serve");
	first_line(&serve);
	snprintf(line, sizeof(line), "perf --json --sizes 8,64K --count 20 %.*s",
		 (int)strcspn(serve.text, "\n"), serve.text);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(run(&perf, "FI_PROVIDER=tcp", line), 0);
		assert_json_lines(perf.text, 2);
	}

	kill(serve.pid, SIGTERM);
	assert_int_equal(finish(&serve), 0);
	assert_string_equal(serve.error, "");
}

static void a_body_of_several_tensors_goes_to_every_server(void **state)
{
	static struct process serve[2], perf;
	char line[256];

	(void)state;
	for (int i = 0; i < 2; i++) {
		start(&serve[i], "FI_PROVIDER=tcp", "serve");
		first_line(&serve[i]);
	}
	snprintf(line, sizeof(line),
		 "perf --json --tensors 8,1M,20000,0 --count 11 --window 3 %.*s %.*s",
		 (int)strcspn(serve[0].text, "\n"), serve[0].text,
		 (int)strcspn(serve[1].text, "\n"), serve[1].text);

	assert_int_equal(run(&perf, "FI_PROVIDER=tcp", line), 0);
	assert_json_lines(perf.text, 1);
	assert_non_null(strstr(perf.text, "\"bytes\":1068584,\"tensors\":4,\"servers\":2,"
					  "\"count\":11,"));
	assert_non_null(strstr(perf.text, "\"validated\":true"));

	for (int i = 0; i < 2; i++) {
		kill(serve[i].pid, SIGTERM);
		assert_int_equal(finish(&serve[i]), 0);
		assert_string_equal(serve[i].error, "");
	}
}

static void callers_begin_when_all_of_them_have_come(void **state)
{
	static struct process serve, perf[2];
	char line[256];

	(void)state;
	start(&serve, "FI_PROVIDER=tcp", "serve --callers 2");
	first_line(&serve);
	snprintf(line, sizeof(line), "perf --json --sizes 8 --count 10 %.*s",
		 (int)strcspn(serve.text, "\n"), serve.text);

	start(&perf[0], "FI_PROVIDER=tcp", line);
	for (int i = 0; i < 100; i++)
		nap();
	assert_int_equal(waitpid(perf[0].pid, NULL, WNOHANG), 0);
	assert_int_equal(run(&perf[1], "FI_PROVIDER=tcp", line), 0);
	assert_int_equal(finish(&perf[0]), 0);
	assert_json_lines(perf[0].text, 1);

	kill(serve.pid, SIGTERM);
	assert_int_equal(finish(&serve), 0);
	assert_string_equal(serve.error, "");
}

/* A measurement that goes on for half a minute, its second process, and both at work. */
static pid_t start_long(struct process *perf, const char *provider)
{
	char line[512];
	pid_t second;

	snprintf(line, sizeof(line), "perf --json --time 0.4 --provider %s --sizes 64K", provider);
	for (int i = 0; i < 60; i++)
		strcat(line, ",1M");
	start(perf, LOST, line);
	first_line(perf);
	second = child_of(perf->pid);
	assert_true(second > 0);
	return second;
}

static void the_first_process_reports_the_death_of_the_second(void **state)
{
	static struct process perf;

	(void)state;
	for (size_t i = 0; i < PROVIDER_COUNT; i++) {
		struct shared shared = { .count = 0 };
		double killed;
		pid_t second;

		if (!is_here(providers[i]))
			continue;
		second = start_long(&perf, providers[i]);
		find_shared(&shared, second);
		find_shared(&shared, perf.pid);
		killed = now();
		kill(second, SIGKILL);
		assert_int_equal(finish(&perf), 1);
		assert_true(now() - killed < REPORT_LIMIT_S);
		assert_true(begins(perf.error, "weft perf: "));
		assert_non_null(strstr(perf.error, "UNAVAILABLE"));
		assert_all_gone(&shared);
	}
}

/* Is @pid dead, be it waited for or not? */
static bool is_dead(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "r");
	if (!stat)
		return true;
	(void)fscanf(stat, "%*d (%*[^)]) %c", &state);
	fclose(stat);
	return state == 'Z';
}

static void perf_tells_how_the_second_ended_where_the_end_of_children_is_ignored(void **state)
{
	static struct process perf;
	double until;
	pid_t second;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	second = start_long(&perf, "tcp");
	signal(SIGCHLD, SIG_DFL);

	/* The first must not look for the end of the second before that is dead. */
	kill(perf.pid, SIGSTOP);
	assert_int_equal(waitpid(perf.pid, NULL, WUNTRACED), perf.pid);
	kill(second, SIGKILL);
	for (until = now() + LIMIT_S; !is_dead(second); nap())
		assert_true(now() < until);
	kill(perf.pid, SIGCONT);
	assert_int_equal(finish(&perf), 1);
	assert_non_null(strstr(perf.error, "the second process was killed by signal 9"));
}

static void the_second_process_reports_the_death_of_the_first(void **state)
{
	static struct process perf, second;

	(void)state;
	/* The second becomes ours when the first is dead. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	for (size_t i = 0; i < PROVIDER_COUNT; i++) {
		struct shared shared = { .count = 0 };
		double killed;

		if (!is_here(providers[i]))
			continue;
		second = (struct process){ .pid = start_long(&perf, providers[i]) };
		second.err = dup(perf.err); /* it writes where the first did */
		second.out = dup(perf.out);
		find_shared(&shared, second.pid);
		find_shared(&shared, perf.pid);
		killed = now();
		kill(perf.pid, SIGKILL);
		assert_int_equal(finish(&perf), 128 + SIGKILL);
		assert_int_equal(finish(&second), 1);
		assert_true(now() - killed < REPORT_LIMIT_S);
		assert_true(begins(second.error, "weft serve: "));
		assert_all_gone(&shared);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void an_interrupt_ends_perf_and_its_second_process(void **state)
{
	static struct process perf;
	pid_t second;

	(void)state;
	second = start_long(&perf, "tcp");
	kill(perf.pid, SIGINT);
	assert_int_equal(finish(&perf), 130);
	assert_string_equal(perf.error, "");
	/* It was reaped: there is no process of that number, or it is another's. */
	assert_true(kill(second, 0) != 0 && errno == ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info_shows_only_what_FI_PROVIDER_names),
		cmocka_unit_test(info_shows_the_eager_limit_that_is_set),
		cmocka_unit_test(info_tells_what_became_of_cuda),
		cmocka_unit_test(info_shows_the_devices_of_a_driver_that_is_ready),
		cmocka_unit_test(a_provider_that_does_not_exist_is_one_sentence),
		cmocka_unit_test(an_empty_FI_PROVIDER_is_one_sentence),
		cmocka_unit_test(info_lists_settings_and_plans),
		cmocka_unit_test(info_shows_whose_memory_is_near_to_whom),
		cmocka_unit_test(info_shows_how_near_the_memory_of_cuda_devices_is),
		cmocka_unit_test(a_wrong_call_shows_the_usage_and_gives_2),
		cmocka_unit_test(help_is_no_error),
		cmocka_unit_test(every_command_has_help_and_a_version),
		cmocka_unit_test(an_output_that_can_not_be_written_is_an_error),
		cmocka_unit_test(info_shows_all_when_nothing_is_left),
		cmocka_unit_test(perf_gives_up_a_mute_server_as_soon_as_ping_does),
		cmocka_unit_test(serve_answers_pings_until_it_is_interrupted),
		cmocka_unit_test(a_signal_asks_serve_for_a_dump),
		cmocka_unit_test(a_ping_that_nobody_answers_fails),
		cmocka_unit_test(perf_validates_and_prints_json_over_every_provider),
		cmocka_unit_test(perf_measures_calls_beside_metadata_and_idle_streams),
		cmocka_unit_test(perf_begins_bodies_at_a_rate),
		cmocka_unit_test(a_body_that_waits_for_room_is_timed_from_when_it_was_due),
		cmocka_unit_test(a_rate_that_is_too_high_ends_after_twice_the_time),
		cmocka_unit_test(perf_measures_several_tensors_beside_a_call),
		cmocka_unit_test(perf_says_so_where_the_pool_has_no_room),
		cmocka_unit_test(perf_measures_memory_of_the_pool_too),
		cmocka_unit_test(perf_measures_the_memory_of_a_cuda_device),
		cmocka_unit_test(perf_says_why_it_has_no_memory_of_a_device),
		cmocka_unit_test(perf_can_have_a_checksum_over_every_body),
		cmocka_unit_test(perf_makes_a_key_for_its_two_processes),
		cmocka_unit_test(perf_listens_at_any_port_of_the_host_that_is_given),
		cmocka_unit_test(bytes_that_were_not_compared_are_not_called_validated),
		cmocka_unit_test(perf_measures_against_a_server_that_stays),
		cmocka_unit_test(a_body_of_several_tensors_goes_to_every_server),
		cmocka_unit_test(callers_begin_when_all_of_them_have_come),
		cmocka_unit_test(the_first_process_reports_the_death_of_the_second),
		cmocka_unit_test(
			perf_tells_how_the_second_ended_where_the_end_of_children_is_ignored),
		cmocka_unit_test(the_second_process_reports_the_death_of_the_first),
		cmocka_unit_test(an_interrupt_ends_perf_and_its_second_process),
	};
	const char *build = getenv("top_builddir");

	snprintf(weft_path, sizeof(weft_path), "%s/weft", build ? build : ".");
	/* What the environment narrows would be tested otherwise than meant. */
	unsetenv("FI_PROVIDER");
	unsetenv("WEFT_PROVIDER");
	unsetenv("WEFT_DEVICE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
