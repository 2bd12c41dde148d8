/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of launchers, read from an environment made by hand. */
#include "group/launcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "group/join.h"
#include "group/kubernetes.h"
#include "group/slurm.h"
#include "group/tf_config.h"

static struct wf_options options;
static struct wf_job job;
static struct wf_error error;

/* Variables of all launchers, none of which may come from outside. */
static const char *const variables[] = {
	"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
	"TORCHELASTIC_RESTART_COUNT", "PMIX_NAMESPACE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
	"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
	"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_NODES",
	"JOB_COMPLETION_INDEX", "TF_CONFIG", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE",
};

static int forget(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(variables); i++)
		unsetenv(variables[i]);
	memset(&options, 0, sizeof(options));
	wf_job_fini(&job);
	return 0;
}

static int find(const char *bootstrap)
{
	return wf_job_find(&options, bootstrap, "", &job, &error);
}

static void set_torchrun(void)
{
	setenv("RANK", "2", 1);
	setenv("WORLD_SIZE", "4", 1);
	setenv("MASTER_ADDR", "first", 1);
	setenv("MASTER_PORT", "29500", 1);
}

static void set_slurm(void)
{
	setenv("SLURM_PROCID", "1", 1);
	setenv("SLURM_STEP_NUM_TASKS", "6", 1);
	setenv("SLURM_JOB_ID", "77", 1);
	setenv("SLURM_STEP_ID", "3", 1);
	setenv("SLURM_STEP_NODELIST", "gpu[07-09,12],login", 1);
	setenv("SLURM_STEP_NUM_NODES", "5", 1);
}

static void torchrun_says_where_rank_0_is(void **state)
{
	(void)state;
	set_torchrun();
	setenv("TORCHELASTIC_RUN_ID", "run", 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "3", 1);
	setenv("GROUP_WORLD_SIZE", "1", 1);
	assert_int_equal(find(""), 0);
	assert_string_equal(job.launcher, "torchrun");
	assert_int_equal(job.rank, 2);
	assert_int_equal(job.size, 4);
	assert_string_equal(job.host, "first");
	assert_int_equal(job.port, 29501);
	assert_int_equal(job.ports, WF_JOB_PORTS);
	assert_string_equal(job.key, "run.3");
}

/* Agents count restarts each for itself. */
static void counts_of_restarts_of_several_agents_tell_no_runs_apart(void **state)
{
	(void)state;
	set_torchrun();
	setenv("TORCHELASTIC_RUN_ID", "run", 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "3", 1);
	setenv("GROUP_WORLD_SIZE", "2", 1);
	assert_int_equal(find(""), 0);
	assert_string_equal(job.key, "run");
	unsetenv("GROUP_WORLD_SIZE");
	assert_int_equal(find(""), 0);
	assert_string_equal(job.key, "run");
}

static void the_launcher_started_last_is_believed(void **state)
{
	(void)state;
	setenv("TF_CONFIG", "{", 1);
	set_slurm();
	assert_int_equal(find(""), 0);
	assert_string_equal(job.launcher, "slurm");
	set_torchrun();
	assert_int_equal(find(""), 0);
	assert_string_equal(job.launcher, "torchrun");
	assert_int_equal(find("slurm"), 0);
	assert_string_equal(job.launcher, "slurm");
}

static void launchers_that_know_tell_of_several_hosts(void **state)
{
	(void)state;
	set_torchrun();
	assert_int_equal(find(""), 0);
	assert_false(job.many_hosts);
	setenv("LOCAL_WORLD_SIZE", "4", 1);
	assert_int_equal(find(""), 0);
	assert_false(job.many_hosts);
	setenv("LOCAL_WORLD_SIZE", "2", 1);
	assert_int_equal(find(""), 0);
	assert_true(job.many_hosts);
	set_slurm();
	assert_int_equal(find("slurm"), 0);
	assert_true(job.many_hosts);
	setenv("SLURM_STEP_NUM_NODES", "1", 1);
	assert_int_equal(find("slurm"), 0);
	assert_false(job.many_hosts);
}

static void a_launcher_may_be_given_a_port(void **state)
{
	(void)state;
	set_slurm();
	assert_int_equal(find("slurm:4000"), 0);
	assert_int_equal(job.port, 4000);
	assert_int_equal(find("slurm:65534"), 0);
	assert_int_equal(job.ports, 2);
	assert_int_equal(find("slurm:0"), -EINVAL);
	assert_int_equal(find("slurm:65536"), -EINVAL);
	assert_int_equal(find("slurm:x"), -EINVAL);
}

static void steps_of_a_slurm_job_meet_at_different_ports(void **state)
{
	uint16_t port;

	(void)state;
	set_slurm();
	assert_int_equal(find(""), 0);
	assert_string_equal(job.host, "gpu07");
	assert_string_equal(job.key, "77.3");
	port = job.port;
	setenv("SLURM_STEP_ID", "4", 1);
	assert_int_equal(find(""), 0);
	assert_true(job.port >= port + WF_JOB_PORTS);
}

static void the_first_host_of_a_list_of_slurms_is_found(void **state)
{
	static const struct {
		const char *list, *first;
	} rows[] = {
		{ "alone", "alone" },
		{ "a,b", "a" },
		{ "gpu[07-09,12],login", "gpu07" },
		{ "gpu[3,5]", "gpu3" },
		{ "rack[1-2]n[30-34]", "rack1n30" },
		{ "a[1-2]-ib,b", "a1-ib" },
		{ "", NULL },
		{ ",b", NULL },
		{ "a[1-2", NULL },
		{ "a[]", NULL },
		{ "longer-than-the-room", NULL },
		{ "longer[-than", NULL },
	};
	char host[16];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		int err = wf_slurm_first_host(rows[i].list, host, sizeof(host));

		assert_int_equal(err, rows[i].first ? 0 : -EINVAL);
		if (rows[i].first)
			assert_string_equal(host, rows[i].first);
	}
}

static void the_first_pod_has_the_name_of_the_others(void **state)
{
	char first[40];

	(void)state;
	assert_int_equal(wf_kubernetes_first_pod("train-12", 12, first, sizeof(first)), 0);
	assert_string_equal(first, "train-0");
	assert_int_equal(wf_kubernetes_first_pod("a-b-3.svc.ns.svc.cluster", 3, first, sizeof(first)), 0);
	assert_string_equal(first, "a-b-0.svc.ns.svc.cluster");
	assert_int_equal(wf_kubernetes_first_pod("train-12", 2, first, sizeof(first)), -EINVAL);
	assert_int_equal(wf_kubernetes_first_pod("-3", 3, first, sizeof(first)), -EINVAL);
	assert_int_equal(wf_kubernetes_first_pod("train.x-3", 3, first, sizeof(first)), -EINVAL);
	assert_int_equal(wf_kubernetes_first_pod("train-3", 3, first, 7), -EINVAL);
}

static void kubernetes_does_not_say_how_many_there_are(void **state)
{
	(void)state;
	setenv("JOB_COMPLETION_INDEX", "3", 1);
	assert_int_equal(find(""), -EINVAL);
	assert_non_null(strstr(error.text, "WEFT_SIZE is not set"));
	options.job_size = 3;
	assert_int_equal(find(""), -EINVAL);
	assert_non_null(strstr(error.text, "no rank of WEFT_SIZE=3"));
}

static void a_size_without_a_rank_takes_the_launchers_rank(void **state)
{
	(void)state;
	options.job_size = 4;
	assert_int_equal(find("first:5000"), 0);
	assert_int_equal(job.rank, 0);
	setenv("JOB_COMPLETION_INDEX", "3", 1);
	assert_int_equal(find("first:5000"), 0);
	assert_int_equal(job.rank, 3);
	setenv("OMPI_COMM_WORLD_RANK", "2", 1);
	assert_int_equal(find("first:5000"), 0);
	assert_int_equal(job.rank, 2);
	assert_int_equal(job.size, 4);
	options.job_size = 2;
	assert_int_equal(find("first:5000"), -EINVAL);
	assert_non_null(strstr(error.text, "OMPI_COMM_WORLD_RANK=2 is no rank of WEFT_SIZE=2"));
}

static void tasks_of_tensorflow_are_counted_chief_first(void **state)
{
	static const struct {
		const char *task;
		unsigned rank;
	} rows[] = {
		{ "{\"type\":\"chief\",\"index\":0}", 0 },	{ "{\"type\":\"worker\",\"index\":1}", 2 },
		{ "{\"type\":\"ps\",\"index\":0}", 3 },		{ "{\"type\":\"evaluator\",\"index\":0}", 4 },
	};
	char text[300];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		snprintf(text, sizeof(text),
			 "{\"cluster\":{\"evaluator\":[\"e:1\"],\"ps\":[\"p:1\"],"
			 "\"worker\":[\"w:1\",\"w:2\"],\"chief\":[\"c:55\"]},\"task\":%s}",
			 rows[i].task);
		assert_int_equal(wf_tf_config_read(text, &job, &error), 0);
		assert_int_equal(job.rank, rows[i].rank);
		assert_int_equal(job.size, 5);
		assert_string_equal(job.host, "c");
		/* Not its own port, which TensorFlow's server has. */
		assert_int_equal(job.port, 20220);
	}
}

static void tasks_of_tensorflow_meet_at_the_port_that_is_asked_for(void **state)
{
	(void)state;
	setenv("TF_CONFIG", "{\"cluster\":{\"worker\":[\"w:1\",\"w:2\"]},"
			    "\"task\":{\"type\":\"worker\",\"index\":1}}", 1);
	assert_int_equal(find("tf_config"), 0);
	assert_int_not_equal(job.port, 5000);
	assert_int_equal(find("tf_config:5000"), 0);
	assert_int_equal(job.port, 5000);
	assert_int_equal(find("tf_config:x"), -EINVAL);
}

static void a_tf_config_that_makes_no_sense_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "{", "[]", "{}", "{\"cluster\":{},\"task\":{\"type\":\"w\",\"index\":0}}",
		"{\"cluster\":{\"w\":[\"a:1\"]}}", "{\"cluster\":{\"w\":[\"a:1\"]},\"task\":{\"type\":\"w\"}}",
		"{\"cluster\":{\"w\":[\"a:1\"]},\"task\":{\"type\":\"w\",\"index\":1}}",
		"{\"cluster\":{\"w\":[\"a:1\"]},\"task\":{\"type\":\"w\",\"index\":0.5}}",
		"{\"cluster\":{\"w\":[1]},\"task\":{\"type\":\"w\",\"index\":0}}",
		"{\"cluster\":{\"w\":\"a:1\"},\"task\":{\"type\":\"w\",\"index\":0}}",
		"{\"cluster\":{\"w\":[\"a\"]},\"task\":{\"type\":\"w\",\"index\":0}}",
		"{\"cluster\":{\"w\":[\"a:0\"]},\"task\":{\"type\":\"w\",\"index\":0}}",
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(texts); i++)
		assert_int_equal(wf_tf_config_read(texts[i], &job, &error), -EINVAL);
}

static void ranks_and_sizes_must_be_numbers_that_fit(void **state)
{
	(void)state;
	set_torchrun();
	setenv("RANK", "4", 1);
	assert_int_equal(find(""), -EINVAL);
	assert_string_equal(error.text, "RANK=4 is no rank of WORLD_SIZE=4 processes");
	setenv("RANK", "-1", 1);
	assert_int_equal(find(""), -EINVAL);
	setenv("RANK", "", 1);
	assert_int_equal(find(""), -EINVAL);
	setenv("RANK", "0", 1);
	setenv("WORLD_SIZE", "99999999999999999999", 1);
	assert_int_equal(find(""), -EINVAL);
	setenv("WORLD_SIZE", "2", 1);
	setenv("MASTER_PORT", "65535", 1);
	assert_int_equal(find(""), -EINVAL);
}

static void an_address_takes_the_rank_of_any_launcher(void **state)
{
	(void)state;
	assert_int_equal(find("host:7"), -ENOENT);
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
	assert_int_equal(find("host:7"), 0);
	assert_int_equal(job.rank, 1);
	assert_string_equal(job.host, "host");
	assert_int_equal(job.port, 7);
	options.job_rank = 2;
	options.job_size = 3;
	assert_int_equal(find("[::1]:7"), 0);
	assert_int_equal(job.rank, 2);
	assert_string_equal(job.host, "::1");
	assert_int_equal(find("host:0"), -EINVAL);
	assert_int_equal(find("srun"), -EINVAL);
	assert_int_equal(find("file:"), -EINVAL);
}

static void a_process_alone_has_rank_0_of_1(void **state)
{
	(void)state;
	assert_int_equal(find(""), 0);
	assert_string_equal(job.launcher, "none");
	assert_int_equal(job.rank, 0);
	assert_int_equal(job.size, 1);
}

static void a_variable_named_as_a_launchers_says_nothing_by_itself(void **state)
{
	(void)state;
	setenv("RANK", "captain", 1);
	assert_int_equal(find(""), 0);
	assert_string_equal(job.launcher, "none");
	assert_int_equal(job.size, 1);
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
	assert_int_equal(find("host:7"), 0);
	assert_int_equal(job.rank, 1);
	setenv("WORLD_SIZE", "2", 1);
	assert_int_equal(find("host:7"), -EINVAL);
	assert_non_null(strstr(error.text, "RANK=captain"));
}

static void a_rank_among_others_without_a_place_to_meet_is_an_error(void **state)
{
	static const char *const pairs[][2] = {
		{ "PMI_RANK", "PMI_SIZE" },
		{ "RANK", "WORLD_SIZE" },
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	};

	for (size_t i = 0; i < WF_COUNT(pairs); i++) {
		setenv(pairs[i][0], "1", 1);
		setenv(pairs[i][1], "2", 1);
		assert_int_equal(find(""), -EINVAL);
		assert_string_equal(error.text, "this process is rank 1 of 2, and nothing says where they "
						"meet: set WEFT_BOOTSTRAP=HOST:PORT, of rank 0's host, or "
						"file:PATH");
		forget(state);
	}
	options.job_size = 2;
	assert_int_equal(find(""), -EINVAL);
	options.job_size = 1;
	assert_int_equal(find(""), 0);
	assert_int_equal(job.size, 1);
}

static void a_file_that_another_job_has_written_stays(void **state)
{
	char path[] = "/tmp/weft-board-XXXXXX", bootstrap[40], line[WF_JOB_POST_BYTES];
	FILE *file = fdopen(mkstemp(path), "w");

	(void)state;
	options.job_size = 2;
	snprintf(bootstrap, sizeof(bootstrap), "file:%s", path);
	assert_int_equal(find(bootstrap), 0);
	assert_int_equal(job.board->post(job.board, "first:1", &error), 0);
	fclose(file);
	file = fopen(path, "w");
	fputs("second:2\n", file);
	fclose(file);
	wf_job_fini(&job);
	assert_int_equal(find(bootstrap), 0);
	assert_int_equal(job.board->find(job.board, line, &error), 0);
	assert_string_equal(line, "second:2");
	assert_int_equal(job.board->post(job.board, "third:3", &error), 0);
	wf_job_fini(&job);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* -ENOENT would say that the launcher has not started this process. */
static void a_file_in_a_folder_that_there_is_not_is_no_word_of_the_launcher(void **state)
{
	char folder[] = "/tmp/weft-board-XXXXXX", bootstrap[60];

	(void)state;
	assert_non_null(mkdtemp(folder));
	options.job_size = 2;
	snprintf(bootstrap, sizeof(bootstrap), "file:%s/none/board", folder);
	assert_int_equal(find(bootstrap), 0);
	assert_int_equal(job.board->post(job.board, "first:1", &error), -ENOTDIR);
	assert_non_null(strstr(error.text, "No such file or directory"));
	assert_int_equal(rmdir(folder), 0);
}

static void ranks_that_are_missing_are_named_as_far_as_they_are_known(void **state)
{
	static const uint32_t ranks[] = { 2, 5, 7 };
	char text[40];

	(void)state;
	wf_join_ranks(ranks, 1, 1, text, sizeof(text));
	assert_string_equal(text, "rank 2");
	wf_join_ranks(ranks, 2, 2, text, sizeof(text));
	assert_string_equal(text, "ranks 2 and 5");
	wf_join_ranks(ranks, 3, 3, text, sizeof(text));
	assert_string_equal(text, "ranks 2, 5 and 7");
	wf_join_ranks(ranks, 3, 40, text, sizeof(text));
	assert_string_equal(text, "ranks 2, 5, 7 and 37 more");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, forget, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(torchrun_says_where_rank_0_is),
		TEST(counts_of_restarts_of_several_agents_tell_no_runs_apart),
		TEST(the_launcher_started_last_is_believed),
		TEST(launchers_that_know_tell_of_several_hosts),
		TEST(a_launcher_may_be_given_a_port),
		TEST(steps_of_a_slurm_job_meet_at_different_ports),
		TEST(the_first_host_of_a_list_of_slurms_is_found),
		TEST(the_first_pod_has_the_name_of_the_others),
		TEST(kubernetes_does_not_say_how_many_there_are),
		TEST(tasks_of_tensorflow_are_counted_chief_first),
		TEST(a_tf_config_that_makes_no_sense_is_refused),
		TEST(a_file_that_another_job_has_written_stays),
		TEST(a_file_in_a_folder_that_there_is_not_is_no_word_of_the_launcher),
		TEST(tasks_of_tensorflow_meet_at_the_port_that_is_asked_for),
		TEST(a_size_without_a_rank_takes_the_launchers_rank),
		TEST(ranks_and_sizes_must_be_numbers_that_fit),
		TEST(an_address_takes_the_rank_of_any_launcher),
		TEST(a_process_alone_has_rank_0_of_1),
		TEST(a_variable_named_as_a_launchers_says_nothing_by_itself),
		TEST(a_rank_among_others_without_a_place_to_meet_is_an_error),
		TEST(ranks_that_are_missing_are_named_as_far_as_they_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
