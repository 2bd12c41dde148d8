/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft perf --tune` as its users meet it.  Which value wins is the machine's business, and how
 * many are tried in a short time, too: the form of the answer, and that no process is left, are
 * what is tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_CJSON
#include <cJSON.h>
#endif

#include "../examples/process.h"

#define LIMIT_MS (3 * PROCESS_LIMIT_MS) /* several processes one after another, under load */

/* A time that no test waits for. */
#define LONG "1000"

static struct process tune;

/* Processes that lose their parent become this one's children, and show. */
static int begin(void **state)
{
	(void)state;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int end(void **state)
{
	(void)state;
	process_stop(&tune);
	return 0;
}

static void start(const char *const *variables, const char *word, const char *value,
		  const char *last)
{
	char weft[512];

	process_start(&tune, variables,
		      (const char *const[]){ process_path("weft", weft), "perf", "--tune", word,
					     value, last, NULL });
}

static void ends_with(int status)
{
	if (!process_wait(&tune, LIMIT_MS))
		fail_msg("weft perf does not end: %s", process_out(&tune));
	if (tune.status != status)
		fail_msg("weft perf ended with %d, not %d: %s", tune.status, status,
			 process_err(&tune));
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in: %s", part, text);
}

#ifdef HAVE_CJSON

static double number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItem(object, name);

	if (!cJSON_IsNumber(item))
		fail_msg("no number %s", name);
	return item->valuedouble;
}

static const char *text(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItem(object, name);

	if (!cJSON_IsString(item))
		fail_msg("no text %s", name);
	return item->valuestring;
}

static cJSON *array(const cJSON *object, const char *name)
{
	cJSON *item = cJSON_GetObjectItem(object, name);

	if (!cJSON_IsArray(item))
		fail_msg("no array %s", name);
	return item;
}

static void is_measured(const cJSON *body, const char *measure)
{
	const cJSON *numbers = cJSON_GetObjectItem(body, measure);

	assert_true(number(numbers, "value") > 0 && number(numbers, "present") > 0);
	assert_true(number(numbers, "ratio") > 0);
}

/* Check a value: skipped for a reason, or measured. */
static void is_value(const cJSON *value)
{
	const cJSON *body;

	assert_true(number(value, "value") >= 1);
	if (cJSON_GetObjectItem(value, "skipped")) {
		assert_string_not_equal(text(value, "skipped"), "");
		assert_null(cJSON_GetObjectItem(value, "bodies"));
		return;
	}
	assert_true(number(value, "rounds") >= number(value, "rounds_better"));
	assert_true(number(value, "rounds") >= 1 && number(value, "ratio") > 0);
	(void)text(value, "keep");
	assert_true(cJSON_GetArraySize(array(value, "bodies")) > 0);
	cJSON_ArrayForEach(body, array(value, "bodies")) {
		assert_true(number(body, "bytes") >= 4096);
		is_measured(body, "latency_us");
		is_measured(body, "bytes_per_s");
	}
}

/* Check a setting, and that what was chosen is the present value or one found better. */
static void is_setting(const cJSON *setting, const char *name)
{
	bool found = number(setting, "chosen") == number(setting, "present");
	const cJSON *value;

	assert_string_equal(text(setting, "name"), name);
	cJSON_ArrayForEach(value, array(setting, "values")) {
		is_value(value);
		assert_true(number(value, "value") != number(setting, "present"));
		if (number(value, "value") == number(setting, "chosen"))
			found = !strcmp(text(value, "keep"), "");
	}
	assert_true(found);
}

static void the_answer_as_json_has_every_setting_and_its_values(void **state)
{
	static const char *const names[] = { "WEFT_FRAME_BYTES", "WEFT_EAGER_BYTES",
					     "WEFT_CHUNK_BYTES", "WEFT_DEPTH" };
	const char *const variables[] = { "FI_PROVIDER=tcp", "WEFT_STALL=0",
					  "WEFT_CHUNK_BYTES=512K", NULL };
	int changed = 0;
	cJSON *json;

	(void)state;
	start(variables, "--time", "6", "--json");
	ends_with(0);
	assert_string_equal(process_err(&tune), "");

	json = cJSON_Parse(process_out(&tune));
	assert_non_null(json);
	assert_string_equal(text(json, "provider"), "tcp");
	assert_int_equal(strlen(text(json, "date")), strlen("2026-11-30"));
	assert_string_not_equal(text(json, "libfabric"), "");
	assert_string_not_equal(text(json, "weft"), "");
	assert_int_equal(cJSON_GetArraySize(array(json, "settings")), 4);
	for (int i = 0; i < 4; i++) {
		const cJSON *setting = cJSON_GetArrayItem(array(json, "settings"), i);

		is_setting(setting, names[i]);
		changed += number(setting, "chosen") != number(setting, "present");
		/* There may have been no time to look at the last two. */
		if (i == 2 && number(setting, "present") != 0)
			assert_int_equal((int)number(setting, "present"), 512 * 1024);
	}
	assert_int_equal(cJSON_GetArraySize(array(json, "environment")), changed);
	cJSON_Delete(json);
}

#endif

static void the_answer_ends_with_the_environment_to_set(void **state)
{
	const char *const variables[] = { "FI_PROVIDER=tcp", "WEFT_STALL=0", NULL };
	const char *at;

	(void)state;
	start(variables, "--time", "1", NULL);
	ends_with(0);
	assert_string_equal(process_err(&tune), "");
	says(process_out(&tune), "over tcp; each value runs beside the present one");
	says(process_out(&tune), "\nWEFT_DEPTH: ");
	at = strstr(process_out(&tune), "\n# 2");
	assert_non_null(at);
	says(at, ", weft perf --tune over tcp, libfabric ");
}

static void an_address_is_refused_for_both_sides_must_have_the_values(void **state)
{
	(void)state;
	start(NULL, "127.0.0.1:1", NULL, NULL);
	ends_with(2);
	says(process_err(&tune), "weft perf: 127.0.0.1:1: with --tune there is no address, ");
	assert_string_equal(process_out(&tune), "");
}

static void wrong_arguments_are_named(void **state)
{
	(void)state;
	start(NULL, "--time", "x", NULL);
	ends_with(2);
	says(process_err(&tune), "'x' is not a number of seconds");
	process_stop(&tune);
	start(NULL, "--sizes", "8", NULL);
	ends_with(2);
	says(process_err(&tune), "there is no option --sizes");
}

static void a_provider_that_is_not_there_is_a_failure(void **state)
{
	(void)state;
	start(NULL, "--provider", "nosuch", NULL);
	ends_with(1);
	says(process_err(&tune), "weft perf: ");
	assert_null(strchr(strchr(process_err(&tune), '\n') + 1, '\n'));
}

/* Start what takes long, and let it come to its trials. */
static void start_long(void)
{
	const char *const variables[] = { "FI_PROVIDER=tcp", "WEFT_STALL=0", NULL };

	start(variables, "--time", LONG, NULL);
	assert_true(process_says(&tune, "over tcp; ", LIMIT_MS));
}

static void an_interrupt_ends_it_with_all_its_processes(void **state)
{
	(void)state;
	start_long();
	process_signal(&tune, SIGINT);
	ends_with(130);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void no_process_outlives_a_kill(void **state)
{
	unsigned long until_ms = process_now_ms() + LIMIT_MS;

	(void)state;
	start_long();
	process_signal(&tune, SIGKILL);
	ends_with(-SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		assert_true(process_now_ms() < until_ms);
		usleep(10000);
	}
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef HAVE_CJSON
		cmocka_unit_test_setup_teardown(the_answer_as_json_has_every_setting_and_its_values,
						begin, end),
#endif
		cmocka_unit_test_setup_teardown(the_answer_ends_with_the_environment_to_set, begin,
						end),
		cmocka_unit_test_setup_teardown(
			an_address_is_refused_for_both_sides_must_have_the_values, begin, end),
		cmocka_unit_test_setup_teardown(wrong_arguments_are_named, begin, end),
		cmocka_unit_test_setup_teardown(a_provider_that_is_not_there_is_a_failure, begin,
						end),
		cmocka_unit_test_setup_teardown(an_interrupt_ends_it_with_all_its_processes, begin,
						end),
		cmocka_unit_test_setup_teardown(no_process_outlives_a_kill, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
