/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/examples/cluster.h"

#define LENGTH(rows) (sizeof(rows) / sizeof(*(rows)))

static struct cluster cluster; /* some 34 KB */

static void flags_name_hosts_job_and_task(void **state)
{
	struct sentence why = { 0 };

	(void)state;
	assert_int_equal(cluster_from_flags("a:1,[::1]:2", "c:3", "ps", "1",
					    &cluster, &why), 0);
	assert_int_equal(cluster.job, CLUSTER_PS);
	assert_int_equal(cluster.task, 1);
	assert_int_equal(cluster.hosts[CLUSTER_PS].count, 2);
	assert_string_equal(cluster.hosts[CLUSTER_PS].address[1], "[::1]:2");
	assert_int_equal(cluster.hosts[CLUSTER_WORKER].count, 1);
	assert_string_equal(cluster.hosts[CLUSTER_WORKER].address[0], "c:3");
}

static void wrong_flags_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *ps, *workers, *job, *task, *says;
	} rows[] = {
		{ "a:1", "b:1", "ps", NULL, "go together" },
		{ "a:1", "b:1", "chief", "0", "neither ps nor worker" },
		{ "a:1", "b:1", "ps", "1", "no ps 1, the last is 0" },
		{ "a:1", "b:1", "ps", "-1", "not a number" },
		{ "a:1", "b:1", "ps", "", "not a number" },
		{ "a:1", "b:1", "ps", "0x", "not a number" },
		{ "a:1", "b:1", "ps", "99999999999999999999", "not a number" },
		{ "", "b:1", "worker", "0", "no ps named" },
		{ "a:1", "b", "worker", "0", "'b' is not host:port" },
		{ "a:1", "b:", "worker", "0", "'b:' is not host:port" },
		{ "a:1", ":1", "worker", "0", "':1' is not host:port" },
		{ "a:1", "b:1,,c:1", "worker", "0", "'' is not host:port" },
		{ "a:1", "b:1,a:1", "worker", "0", "a:1 is named twice" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct sentence why = { 0 };

		assert_int_equal(cluster_from_flags(rows[i].ps, rows[i].workers,
						    rows[i].job, rows[i].task,
						    &cluster, &why), -EINVAL);
		assert_non_null(strstr(why.text, rows[i].says));
	}
}

static void a_list_and_a_name_too_long_are_refused(void **state)
{
	static char list[(CLUSTER_HOSTS_MAX + 1) * 16], name[400];
	struct sentence why = { 0 }, again = { 0 };

	(void)state;
	for (int i = 0; i <= CLUSTER_HOSTS_MAX; i++)
		snprintf(list + strlen(list), 16, "a:%d,", i);
	assert_int_equal(cluster_from_flags("p:1", list, "ps", "0", &cluster,
					    &why), -EINVAL);
	assert_non_null(strstr(why.text, "more than"));

	memset(name, 'a', sizeof(name) - 3);
	strcat(name, ":1");
	assert_int_equal(cluster_from_flags("p:1", name, "ps", "0", &cluster,
					    &again), -EINVAL);
	assert_non_null(strstr(again.text, "not host:port"));
}

static void tf_config_is_understood(void **state)
{
	static const char json[] =
		"{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"]},"
		" \"task\": {\"type\": \"worker\", \"index\": 1},"
		" \"environment\": \"cloud\"}";
	struct sentence why = { 0 };

	(void)state;
	assert_int_equal(cluster_from_json(json, &cluster, &why), 0);
	assert_int_equal(cluster.job, CLUSTER_WORKER);
	assert_int_equal(cluster.task, 1);
	assert_string_equal(cluster.hosts[CLUSTER_PS].address[0], "a:1");
	assert_string_equal(cluster.hosts[CLUSTER_WORKER].address[1], "c:1");
}

static void a_chief_is_the_first_worker(void **state)
{
	static const char chief[] =
		"{\"cluster\": {\"chief\": [\"x:1\"], \"ps\": [\"a:1\"],"
		" \"worker\": [\"b:1\"]},"
		" \"task\": {\"type\": \"chief\", \"index\": 0}}";
	static const char worker[] =
		"{\"cluster\": {\"chief\": [\"x:1\"], \"ps\": [\"a:1\"],"
		" \"worker\": [\"b:1\"]},"
		" \"task\": {\"type\": \"worker\", \"index\": 0}}";
	struct sentence why = { 0 };

	(void)state;
	assert_int_equal(cluster_from_json(chief, &cluster, &why), 0);
	assert_int_equal(cluster.task, 0);
	assert_string_equal(cluster.hosts[CLUSTER_WORKER].address[0], "x:1");

	assert_int_equal(cluster_from_json(worker, &cluster, &why), 0);
	assert_int_equal(cluster.task, 1);
	assert_string_equal(cluster.hosts[CLUSTER_WORKER].address[1], "b:1");
}

static void a_wrong_tf_config_is_refused_with_the_reason(void **state)
{
#define HOSTS "{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:1\"]}, "
	static const struct {
		const char *json, *says;
	} rows[] = {
		{ "", "not valid JSON" },
		{ HOSTS, "not valid JSON" },
		{ HOSTS "\"task\": {\"type\": \"ps\", \"index\": 0}} {}",
		  "not valid JSON" },
		{ "[]", "no \"cluster\"" },
		{ "{\"cluster\": 3}", "no \"cluster\"" },
		{ "{\"cluster\": {\"ps\": \"a:1\"}}", "\"ps\" is not a list" },
		{ "{\"cluster\": {\"worker\": [1]}}", "not a string" },
		{ "{\"cluster\": {\"worker\": [\"b\"]}}", "not host:port" },
		{ HOSTS "\"task\": {\"type\": \"ps\"}}", "lacks" },
		{ HOSTS "\"task\": {\"type\": 1, \"index\": 0}}", "lacks" },
		{ HOSTS "\"task\": {\"type\": \"ps\", \"index\": -1}}",
		  "no index" },
		{ HOSTS "\"task\": {\"type\": \"ps\", \"index\": 0.5}}",
		  "no index" },
		{ HOSTS "\"task\": {\"type\": \"ps\", \"index\": 1e300}}",
		  "no index" },
		{ HOSTS "\"task\": {\"type\": \"ps\", \"index\": 1}}",
		  "no ps 1" },
		{ HOSTS "\"task\": {\"type\": \"chief\", \"index\": 0}}",
		  "no task chief 0" },
		{ HOSTS "\"task\": {\"type\": \"evaluator\", \"index\": 0}}",
		  "no task evaluator 0" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct sentence why = { 0 };

		assert_int_equal(cluster_from_json(rows[i].json, &cluster, &why),
				 -EINVAL);
		assert_non_null(strstr(why.text, rows[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_name_hosts_job_and_task),
		cmocka_unit_test(wrong_flags_are_refused_with_the_reason),
		cmocka_unit_test(a_list_and_a_name_too_long_are_refused),
		cmocka_unit_test(tf_config_is_understood),
		cmocka_unit_test(a_chief_is_the_first_worker),
		cmocka_unit_test(a_wrong_tf_config_is_refused_with_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
