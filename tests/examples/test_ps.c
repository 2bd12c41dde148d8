/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parameter server example as its users run it: processes, flags, exit
 * statuses and what they print, over each provider that is there.
 */
#define _GNU_SOURCE /* unshare */
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <cmocka.h>

#include "process.h"

#define PS_MAX 2
#define WORKERS_MAX 3
#define FLAGS_MAX 8
#define TRAIN_MS 240000 /* for what takes a few seconds, and with sanitizers beside other tests a minute */

/*
 * From the death of one process to the end of all others, beside any load: the kernel tells of it, as
 * silence is noticed after LOST alone.
 */
#define NOTICE_MS 30000
#define LOST "120s"

static const char *const providers[] = { "shm", "tcp", "net", "sockets" };

/* One training: its processes and what they are started with. */
struct training {
	unsigned ps_count, workers_count;
	struct process ps[PS_MAX], workers[WORKERS_MAX];
	char program[512];
	char variable[64]; /* "FI_PROVIDER=..." */
	char cuda[600];	   /* "WEFT_CUDA=..." of the software driver */
	char ps_hosts[128], worker_hosts[128];
	char worker_address[WORKERS_MAX][32];
	char ps_address[PS_MAX][32];
};

static int make_training(void **state)
{
	*state = calloc(1, sizeof(struct training));
	return *state ? 0 : -1;
}

static int stop_training(void **state)
{
	struct training *t = *state;

	for (unsigned i = 0; i < PS_MAX; i++)
		process_stop(&t->ps[i]);
	for (unsigned i = 0; i < WORKERS_MAX; i++)
		process_stop(&t->workers[i]);
	free(t);
	return 0;
}

/* Choose addresses; @provider NULL leaves the choice to weft. */
static void prepare(struct training *t, unsigned ps_count,
		    unsigned workers_count, const char *provider)
{
	unsigned short ports[PS_MAX + WORKERS_MAX];
	char driver[512];
	size_t used = 0;

	for (unsigned i = 0; i < PS_MAX; i++)
		process_stop(&t->ps[i]);
	for (unsigned i = 0; i < WORKERS_MAX; i++)
		process_stop(&t->workers[i]);

	process_path("tests/examples/ps", t->program);
	snprintf(t->cuda, sizeof(t->cuda), "WEFT_CUDA=%s",
		 process_path("tests/cuda/fake/.libs/libcuda.so.1", driver));
	process_ports(ports, ps_count + workers_count);
	t->ps_count = ps_count;
	t->workers_count = workers_count;
	t->variable[0] = '\0';
	if (provider)
		snprintf(t->variable, sizeof(t->variable), "FI_PROVIDER=%s",
			 provider);

	for (unsigned i = 0; i < ps_count; i++) {
		snprintf(t->ps_address[i], sizeof(t->ps_address[i]),
			 "127.0.0.1:%u", ports[i]);
		used += (size_t)snprintf(t->ps_hosts + used,
					 sizeof(t->ps_hosts) - used, "%s%s",
					 i ? "," : "--ps_hosts=",
					 t->ps_address[i]);
	}
	used = 0;
	for (unsigned i = 0; i < workers_count; i++) {
		snprintf(t->worker_address[i], sizeof(t->worker_address[i]),
			 "127.0.0.1:%u", ports[ps_count + i]);
		used += (size_t)snprintf(t->worker_hosts + used,
					 sizeof(t->worker_hosts) - used, "%s%s",
					 i ? "," : "--worker_hosts=",
					 t->worker_address[i]);
	}
}

/* Start one process; @flags, which may be NULL, ends with NULL. */
static void start(struct training *t, bool worker, unsigned task,
		  const char *const *flags)
{
	const char *variables[] = { t->cuda, t->variable[0] ? t->variable : NULL, NULL };
	const char *argv[6 + FLAGS_MAX] = { t->program, t->ps_hosts,
					    t->worker_hosts };
	char index[32];
	unsigned count = 5;

	snprintf(index, sizeof(index), "--task_index=%u", task);
	argv[3] = worker ? "--job_name=worker" : "--job_name=ps";
	argv[4] = index;
	for (; flags && *flags; flags++)
		argv[count++] = *flags;
	process_start(worker ? &t->workers[task] : &t->ps[task], variables, argv);
}

static void start_all(struct training *t, const char *const *flags)
{
	for (unsigned i = 0; i < t->ps_count; i++)
		start(t, false, i, flags);
	for (unsigned i = 0; i < t->workers_count; i++)
		start(t, true, i, flags);
}

/* The process must end well, with nothing on stderr. */
static void expect_success(struct process *p)
{
	assert_true(process_wait(p, TRAIN_MS));
	assert_string_equal(process_err(p), "");
	assert_int_equal(p->status, 0);
}

static void expect_success_of_all(struct training *t)
{
	for (unsigned i = 0; i < t->workers_count; i++)
		expect_success(&t->workers[i]);
	for (unsigned i = 0; i < t->ps_count; i++)
		expect_success(&t->ps[i]);
}

/* The process must end with status 1 and one line on stderr that has @says. */
static void expect_failure(struct process *p, unsigned limit_ms,
			   const char *says)
{
	const char *line, *end;

	if (!process_wait(p, limit_ms))
		fail_msg("still running after %u ms; expected '%s'", limit_ms,
			 says);
	line = process_err(p);
	if (!strstr(line, says))
		fail_msg("expected '%s' in '%s'", says, line);
	end = strchr(line, '\n');
	assert_non_null(end);
	assert_string_equal(end, "\n");
	assert_int_equal(p->status, 1);
}

/*
 * A /dev/shm of our own shows what our processes leave there, whatever else
 * runs on this machine.  It needs root; false: there is none.
 */
static bool own_shared_memory;

static bool open_shared_memory(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0;
}

static void expect_no_shared_memory(void)
{
	DIR *folder;
	struct dirent *entry;

	if (!own_shared_memory) {
		print_message("not root: left files are not looked for\n");
		return;
	}
	folder = opendir("/dev/shm");
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] != '.')
			fail_msg("/dev/shm/%s was left", entry->d_name);
	}
	closedir(folder);
}

static double accuracy(struct process *chief)
{
	const char *found = strstr(process_out(chief), "accuracy=");

	assert_non_null(found);
	return atof(found + strlen("accuracy="));
}

/*
 * Run @one over each provider that is there; tcp is everywhere, so finding
 * none is a failure.
 */
static void over_each_provider(struct training *t,
			       void (*one)(struct training *t,
					   const char *provider))
{
	unsigned count = 0;

	for (size_t i = 0; i < sizeof(providers) / sizeof(*providers); i++) {
		if (!process_finds(providers[i]))
			continue;
		print_message("over %s\n", providers[i]);
		one(t, providers[i]);
		count++;
	}
	assert_true(count > 0);
}

static void train_and_verify(struct training *t, const char *provider)
{
	const char *const flags[] = { "--verify", "--steps=100", NULL };
	char carried[64];

	prepare(t, 1, 2, provider);
	start_all(t, flags);
	expect_success_of_all(t);

	assert_non_null(strstr(process_out(&t->workers[0]), "verify=identical"));
	assert_true(accuracy(&t->workers[0]) > .9);
	/* What carried the bytes is what was asked for, on both sides. */
	snprintf(carried, sizeof(carried), "carried_by=%s/", provider);
	assert_non_null(strstr(process_out(&t->workers[0]), carried));
	assert_non_null(strstr(process_out(&t->ps[0]), carried));
}

static void synchronous_training_gives_the_bits_of_one_process(void **state)
{
	over_each_provider(*state, train_and_verify);
}

static void variables_spread_over_servers_that_start_last(void **state)
{
	const char *const flags[] = { "--verify", "--steps=100", NULL };
	struct training *t = *state;

	prepare(t, 2, 3, NULL);
	start(t, true, 2, flags);
	start(t, true, 0, flags);
	start(t, false, 1, flags);
	start(t, true, 1, flags);
	start(t, false, 0, flags);
	expect_success_of_all(t);

	assert_non_null(strstr(process_out(&t->workers[0]), "verify=identical"));
	for (unsigned i = 0; i < 2; i++)
		assert_non_null(strstr(process_out(&t->ps[i]), "updates=100"));
}

static void asynchronous_training_learns(void **state)
{
	const char *const flags[] = { "--async", NULL };
	struct training *t = *state;

	prepare(t, 1, 2, NULL);
	start_all(t, flags);
	expect_success_of_all(t);

	assert_true(accuracy(&t->workers[0]) > .9);
	/* Every gradient of both workers is one update. */
	assert_non_null(strstr(process_out(&t->ps[0]), "updates=600"));
}

/* The driver's memory faults when the CPU touches it: what is there was sent from there. */
static void train_on_devices(struct training *t, const char *provider)
{
	static const char *const on[] = { "--device=cuda:0", "--device=cuda:1", NULL };
	char carried[64];

	prepare(t, 1, 3, provider);
	for (unsigned i = 0; i < 4; i++) {
		const char *flags[] = { "--verify", "--steps=50", on[i % 3], NULL };

		start(t, i > 0, i ? i - 1 : 0, flags);
	}
	expect_success_of_all(t);

	assert_non_null(strstr(process_out(&t->workers[0]), "verify=identical"));
	/* Shared memory has what goes from device to device copied by the device. */
	snprintf(carried, sizeof(carried), "%s/%s:", provider,
		 strcmp(provider, "shm") ? "staged" : "direct");
	assert_non_null(strstr(process_out(&t->workers[0]), carried));
	assert_non_null(strstr(process_out(&t->workers[2]), carried));
	/* The second has none, but what comes to it was staged by its server. */
	snprintf(carried, sizeof(carried), "%s/staged:", provider);
	assert_non_null(strstr(process_out(&t->workers[1]), carried));
	assert_non_null(strstr(process_out(&t->ps[0]), carried));
}

static void models_on_devices_give_the_bits_of_one_process(void **state)
{
	over_each_provider(*state, train_on_devices);
}

static void a_device_that_is_not_there_is_named(void **state)
{
	static const struct {
		const char *flag, *says;
	} cases[] = {
		{ "--device=cuda:7", "--device=cuda:7: CUDA device 7 can't be used: " },
		{ "--device=cuda:64", "'cuda:64' is not cuda:0 to cuda:63" },
		{ "--device=gpu", "'gpu' is not cuda:N" },
	};
	struct training *t = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *const flags[] = { cases[i].flag, NULL };

		prepare(t, 1, 1, NULL);
		start(t, true, 0, flags);
		expect_failure(&t->workers[0], PROCESS_LIMIT_MS, cases[i].says);
	}
}

static void a_server_on_a_device_takes_steps_in_common(void **state)
{
	const char *const flags[] = { "--async", "--device=cuda:0", NULL };
	struct training *t = *state;

	prepare(t, 1, 1, NULL);
	start(t, false, 0, flags);
	expect_failure(&t->ps[0], PROCESS_LIMIT_MS, "needs --sync");
}

static void tf_config_serves_instead_of_flags(void **state)
{
	static const struct {
		const char *type;
		unsigned index;
	} tasks[] = { { "ps", 0 }, { "chief", 0 }, { "worker", 0 } };
	struct training *t = *state;
	struct process *processes[] = { &t->ps[0], &t->workers[0],
					&t->workers[1] };

	prepare(t, 1, 2, NULL);
	for (unsigned i = 0; i < 3; i++) {
		char json[512];
		const char *variables[] = { json, NULL };
		const char *argv[] = { t->program, "--verify", "--steps=50",
				       NULL };

		snprintf(json, sizeof(json),
			 "TF_CONFIG={\"cluster\": {\"ps\": [\"%s\"], \"chief\": "
			 "[\"%s\"], \"worker\": [\"%s\"]}, \"task\": {\"type\": "
			 "\"%s\", \"index\": %u}}", t->ps_address[0],
			 t->worker_address[0], t->worker_address[1],
			 tasks[i].type, tasks[i].index);
		process_start(processes[i], variables, argv);
	}
	expect_success_of_all(t);
	assert_non_null(strstr(process_out(&t->workers[0]), "verify=identical"));
}

/* Start a training that would take hours, and wait until it is well under way. */
static void start_long(struct training *t, const char *provider)
{
	const char *const flags[] = { "--steps=1000000", "--progress=20", NULL };

	prepare(t, 1, 2, provider);
	setenv("WEFT_LOST", LOST, 1);
	start_all(t, flags);
	unsetenv("WEFT_LOST");
	for (unsigned i = 0; i < 2; i++)
		assert_true(process_says(&t->workers[i], "step 20 of",
					 TRAIN_MS));
}

static void kill_worker(struct training *t, const char *provider)
{
	unsigned long killed_ms;
	char says[64];

	start_long(t, provider);
	process_signal(&t->workers[1], SIGKILL);
	killed_ms = process_now_ms();

	snprintf(says, sizeof(says), "lost worker 1 (%s)",
		 t->worker_address[1]);
	expect_failure(&t->ps[0], PROCESS_LIMIT_MS, says);
	expect_failure(&t->workers[0], PROCESS_LIMIT_MS, says);
	assert_in_range(process_now_ms() - killed_ms, 0, NOTICE_MS);
	expect_no_shared_memory();
}

static void a_killed_worker_ends_all_and_is_named(void **state)
{
	over_each_provider(*state, kill_worker);
}

static void kill_server(struct training *t, const char *provider)
{
	unsigned long killed_ms;
	char says[64];

	start_long(t, provider);
	process_signal(&t->ps[0], SIGKILL);
	killed_ms = process_now_ms();

	snprintf(says, sizeof(says), "lost ps 0 (%s)", t->ps_address[0]);
	expect_failure(&t->workers[0], PROCESS_LIMIT_MS, says);
	expect_failure(&t->workers[1], PROCESS_LIMIT_MS, says);
	assert_in_range(process_now_ms() - killed_ms, 0, NOTICE_MS);
	expect_no_shared_memory();
}

static void a_killed_server_ends_its_workers_and_is_named(void **state)
{
	over_each_provider(*state, kill_server);
}

/* The other server has nothing to do with the dead one: a worker tells it. */
static void one_of_two_servers_killed_ends_the_other(void **state)
{
	const char *const flags[] = { "--steps=1000000", "--progress=20", NULL };
	struct training *t = *state;
	char says[64];

	prepare(t, 2, 1, NULL);
	start_all(t, flags);
	assert_true(process_says(&t->workers[0], "step 20 of", TRAIN_MS));
	process_signal(&t->ps[1], SIGKILL);

	snprintf(says, sizeof(says), "lost ps 1 (%s)", t->ps_address[1]);
	expect_failure(&t->workers[0], PROCESS_LIMIT_MS, says);
	expect_failure(&t->ps[0], PROCESS_LIMIT_MS, says);
}

static void a_worker_with_other_settings_is_refused_and_another_taken(void **state)
{
	const char *const one[] = { "--seed=1", "--steps=10", NULL };
	const char *const another[] = { "--seed=2", "--steps=10", NULL };
	struct training *t = *state;

	prepare(t, 1, 1, NULL);
	start(t, false, 0, one);
	start(t, true, 0, another);
	expect_failure(&t->workers[0], PROCESS_LIMIT_MS, "--seed=2");
	process_stop(&t->workers[0]);
	start(t, true, 0, one);
	expect_success_of_all(t);
}

static void a_server_without_its_workers_gives_up(void **state)
{
	const char *const flags[] = { "--timeout=1", NULL };
	struct training *t = *state;

	prepare(t, 1, 1, NULL);
	start(t, false, 0, flags);
	expect_failure(&t->ps[0], PROCESS_LIMIT_MS, "did not join within 1");
}

static void a_worker_without_a_server_gives_up(void **state)
{
	const char *const flags[] = { "--timeout=1", NULL };
	struct training *t = *state;

	prepare(t, 1, 1, NULL);
	start(t, true, 0, flags);
	expect_failure(&t->workers[0], PROCESS_LIMIT_MS,
		       "did not answer within 1");
}

static void bad_data_is_named_before_anything_starts(void **state)
{
	const char *const flags[] = { "--data=/nonexistent", NULL };
	struct training *t = *state;

	prepare(t, 1, 1, NULL);
	start(t, true, 0, flags);
	expect_failure(&t->workers[0], PROCESS_LIMIT_MS,
		       "/nonexistent/train-images-idx3-ubyte");
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_training, stop_training)
	const struct CMUnitTest tests[] = {
		TEST(synchronous_training_gives_the_bits_of_one_process),
		TEST(variables_spread_over_servers_that_start_last),
		TEST(asynchronous_training_learns),
		TEST(models_on_devices_give_the_bits_of_one_process),
		TEST(a_device_that_is_not_there_is_named),
		TEST(a_server_on_a_device_takes_steps_in_common),
		TEST(tf_config_serves_instead_of_flags),
		TEST(a_killed_worker_ends_all_and_is_named),
		TEST(a_killed_server_ends_its_workers_and_is_named),
		TEST(one_of_two_servers_killed_ends_the_other),
		TEST(a_worker_with_other_settings_is_refused_and_another_taken),
		TEST(a_server_without_its_workers_gives_up),
		TEST(a_worker_without_a_server_gives_up),
		TEST(bad_data_is_named_before_anything_starts),
	};

	(void)argc;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	own_shared_memory = open_shared_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
