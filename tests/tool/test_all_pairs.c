/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft perf --all-pairs` as its users meet it: over providers, with a rank that dies or stands
 * still, and with arguments that are wrong.
 *
 * With the argument --die or --stop this program is a rank of such a job: it joins, and kills or
 * stops itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_CJSON
#include <cJSON.h>
#endif
#include <weft/weft.h>

#include "../examples/process.h"
#include "xml.h"

#define RANKS_MAX 3
#define LIMIT_MS  (3 * PROCESS_LIMIT_MS) /* several limits of the command one after another */

/* No host's memory is as fast. */
#define MEMORY_BYTES_PER_S 1e14

static char folder[] = "/tmp/weft-pairs-XXXXXX", board[64], json_path[64], svg_path[64];

/* Ranks that are started one by one, or a whole job as the first. */
static struct process ranks[RANKS_MAX];

static int begin(void **state)
{
	(void)state;
	strcpy(strrchr(folder, '-') + 1, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(board, sizeof(board), "%s/board", folder);
	snprintf(json_path, sizeof(json_path), "%s/json", folder);
	snprintf(svg_path, sizeof(svg_path), "%s/svg", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RANKS_MAX; i++)
		process_stop(&ranks[i]);
	unlink(board);
	unlink(json_path);
	unlink(svg_path);
	return rmdir(folder);
}

/* Start rank @rank of @size, which find each other by a file. */
static void rank_start(unsigned rank, unsigned size, const char *const *argv)
{
	char bootstrap[96], rank_is[32], size_is[32];
	const char *const variables[] = { bootstrap, rank_is, size_is, "FI_PROVIDER=tcp",
					  "WEFT_STALL=0", NULL };

	snprintf(bootstrap, sizeof(bootstrap), "WEFT_BOOTSTRAP=file:%s", board);
	snprintf(rank_is, sizeof(rank_is), "WEFT_RANK=%u", rank);
	snprintf(size_is, sizeof(size_is), "WEFT_SIZE=%u", size);
	process_start(&ranks[rank], variables, argv);
}

static void perf_start(unsigned rank, unsigned size, const char *seconds)
{
	char weft[512];

	rank_start(rank, size,
		   (const char *const[]){ process_path("weft", weft), "perf", "--all-pairs", "--bytes",
					  "64K", "--seconds", seconds, NULL });
}

static void self_start(unsigned rank, unsigned size, const char *word)
{
	rank_start(rank, size, (const char *const[]){ "/proc/self/exe", word, NULL });
}

static void ends_with(unsigned rank, int status)
{
	struct process *p = &ranks[rank];

	if (!process_wait(p, LIMIT_MS))
		fail_msg("rank %u does not end: %s", rank, process_out(p));
	if (p->status != status) {
		print_error("%s", process_out(p));
		fail_msg("rank %u ended with %d, not %d: %s", rank, p->status, status,
			 process_err(p));
	}
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in: %s", part, text);
}

static void read_file(const char *path, char *text, size_t room)
{
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, room - 1, file)] = '\0';
	assert_int_equal(fclose(file), 0);
}

/* Check that @text is JSON with each ordered pair of three ranks, measured over @provider. */
static void has_all_pairs(const char *text, const char *provider)
{
#ifdef HAVE_CJSON
	cJSON *json = cJSON_Parse(text), *pairs = cJSON_GetObjectItem(json, "pairs"), *pair;
	unsigned met[RANKS_MAX][RANKS_MAX] = { 0 };

	assert_non_null(json);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "ranks")), 3);
	assert_int_equal(cJSON_GetArraySize(pairs), 6);
	cJSON_ArrayForEach(pair, pairs) {
		const cJSON *path = cJSON_GetObjectItem(pair, "path");
		const cJSON *latency = cJSON_GetObjectItem(pair, "latency_us");
		double bytes_per_s = cJSON_GetObjectItem(pair, "bytes_per_s")->valuedouble;
		int from = cJSON_GetObjectItem(pair, "from")->valueint;
		int to = cJSON_GetObjectItem(pair, "to")->valueint;

		assert_null(cJSON_GetObjectItem(pair, "failed"));
		assert_true(from >= 0 && from < 3 && to >= 0 && to < 3 && from != to);
		met[from][to]++;
		assert_int_equal(met[from][to], 1);
		assert_true(cJSON_GetObjectItem(latency, "p50")->valuedouble > 0);
		assert_true(bytes_per_s > 0 && bytes_per_s < MEMORY_BYTES_PER_S);
		assert_string_equal(cJSON_GetObjectItem(path, "provider")->valuestring, provider);
	}
	cJSON_Delete(json);
#else
	says(text, "\"from\":2,\"to\":1,\"latency_us\"");
	says(text, provider);
#endif
}

static void measures_all_over(const char *provider)
{
	char weft[512], again[512], text[65536], legend[32];
	const char *const argv[] = { process_path("weft", weft), "run", "-n", "3",
				     process_path("weft", again), "perf", "--all-pairs",
				     "--provider", provider, "--bytes", "64K", "--seconds", "0.05",
				     "--json", json_path, "--svg", svg_path, NULL };
	const char *wrong;

	if (!process_finds(provider))
		skip();
	process_start(&ranks[0], (const char *const[]){ "WEFT_STALL=0", NULL }, argv);
	ends_with(0, 0);
	says(process_out(&ranks[0]), "3 processes, by address: 3 rounds of disjoint pairs");
	says(process_out(&ranks[0]), "latency: median round trip of 8 bytes, us\nfrom\\to ");
	says(process_out(&ranks[0]), "bandwidth: bodies of 65536 bytes one way, MB/s\nfrom\\to ");
	snprintf(legend, sizeof(legend), "\na: %s, ", provider);
	says(process_out(&ranks[0]), legend);
	assert_null(strstr(process_out(&ranks[0]), "failed"));
	assert_string_equal(process_err(&ranks[0]), "");

	read_file(json_path, text, sizeof(text));
	has_all_pairs(text, provider);
	read_file(svg_path, text, sizeof(text));
	wrong = xml_wrong(text, "svg");
	if (wrong)
		fail_msg("the picture is wrong at %.60s", wrong);
	says(text, "<title>2 to 1: ");
}

static void every_pair_is_measured_over_shm(void **state)
{
	(void)state;
	measures_all_over("shm");
}

static void every_pair_is_measured_over_tcp(void **state)
{
	(void)state;
	measures_all_over("tcp");
}

/* Measure three ranks over tcp for @seconds, with the result as JSON on standard output. */
static void print_json(const char *seconds)
{
	char weft[512], again[512];

	process_start(&ranks[0], (const char *const[]){ "WEFT_STALL=0", NULL },
		      (const char *const[]){ process_path("weft", weft), "run", "-n", "3",
					     process_path("weft", again), "perf", "--all-pairs",
					     "--provider", "tcp", "--bytes", "8", "--seconds", seconds,
					     "--json", "-", NULL });
	ends_with(0, 0);
	assert_int_equal(process_out(&ranks[0])[0], '{');
	has_all_pairs(process_out(&ranks[0]), "tcp");
}

static void json_takes_the_place_of_text(void **state)
{
	(void)state;
	print_json("0.02");
}

/* One batch is measured, however short the time. */
static void a_time_of_a_nanosecond_measures_each_pair(void **state)
{
	(void)state;
	print_json("0.000000001");
}

static void a_rank_that_dies_costs_its_own_pairs_alone(void **state)
{
	(void)state;
	perf_start(0, 3, "0.05");
	perf_start(1, 3, "0.05");
	self_start(2, 3, "--die");
	ends_with(0, 1);
	ends_with(1, 0);
	ends_with(2, -SIGKILL);
	says(process_err(&ranks[0]), "weft perf: 4 of 6 pairs failed\n");
	says(process_out(&ranks[0]), "\n0 to 2 failed: ");
	says(process_out(&ranks[0]), "\n1 to 2 failed: ");
	says(process_out(&ranks[0]), "\n2 to 0 failed: rank 2 is gone: ");
	says(process_out(&ranks[0]), "\n2 to 1 failed: rank 2 is gone: ");
	assert_null(strstr(process_out(&ranks[0]), "\n0 to 1 failed"));
	assert_null(strstr(process_out(&ranks[0]), "\n1 to 0 failed"));
}

static void a_rank_that_stands_still_is_given_up(void **state)
{
	(void)state;
	perf_start(0, 2, "0.05");
	self_start(1, 2, "--stop");
	ends_with(0, 1);
	says(process_err(&ranks[0]), "weft perf: 2 of 2 pairs failed\n");
	says(process_out(&ranks[0]), "\n1 to 0 failed: rank 1 is gone: ");
}

/* A pair takes so long that the death of one of the two comes in the middle. */
#define LONG "1000"

static void the_death_of_a_rank_in_the_middle_ends_the_job(void **state)
{
	(void)state;
	perf_start(0, 2, LONG);
	perf_start(1, 2, LONG);
	assert_true(process_says(&ranks[0], "2 processes, by file: 1 round of", LIMIT_MS));
	process_signal(&ranks[1], SIGKILL);
	ends_with(0, 1);
	says(process_out(&ranks[0]), "\n0 to 1 failed: ");
	says(process_out(&ranks[0]), "\n1 to 0 failed: rank 1 is gone: ");
}

static void the_death_of_rank_0_ends_the_others(void **state)
{
	(void)state;
	perf_start(0, 2, LONG);
	perf_start(1, 2, LONG);
	assert_true(process_says(&ranks[0], "2 processes, by file: 1 round of", LIMIT_MS));
	process_signal(&ranks[0], SIGKILL);
	ends_with(1, 1);
	says(process_err(&ranks[1]), "rank 0: ");
}

static void an_interrupt_ends_every_rank(void **state)
{
	(void)state;
	perf_start(0, 2, LONG);
	perf_start(1, 2, LONG);
	assert_true(process_says(&ranks[0], "2 processes, by file: 1 round of", LIMIT_MS));
	/* Neither hears of the other's end before its own signal. */
	process_signal(&ranks[0], SIGSTOP);
	process_signal(&ranks[0], SIGTERM);
	process_signal(&ranks[1], SIGTERM);
	process_signal(&ranks[0], SIGCONT);
	ends_with(0, 130);
	ends_with(1, 130);
}

/* Run one process by itself with up to three more words. */
static void alone(int status, const char *sentence, const char *const words[3])
{
	char weft[512];
	const char *const argv[] = { process_path("weft", weft), "perf", "--all-pairs", words[0],
				     words[1], words[2], NULL };

	process_start(&ranks[0], (const char *const[]){ "WEFT_BOOTSTRAP=none", NULL }, argv);
	ends_with(0, status);
	says(process_err(&ranks[0]), sentence);
	process_stop(&ranks[0]);
}

static void wrong_arguments_are_named(void **state)
{
	(void)state;
	alone(2, "'0' is not a size from 1 to 1G", (const char *const[]){ "--bytes", "0", NULL });
	alone(2, "'2G' is not a size from 1 to 1G", (const char *const[]){ "--bytes", "2G", NULL });
	alone(2, "'x' is not a number of seconds", (const char *const[]){ "--seconds", "x", NULL });
	alone(2, "127.0.0.1:1: with --all-pairs there is no address",
	      (const char *const[]){ "127.0.0.1:1", NULL, NULL });
	alone(2, "--json needs a value", (const char *const[]){ "--json", NULL, NULL });
	alone(2, "--svg needs the name of a file", (const char *const[]){ "--svg", "-", NULL });
	alone(2, "there is no option --window", (const char *const[]){ "--window", "2", NULL });
}

static void a_process_alone_has_no_pairs(void **state)
{
	(void)state;
	alone(1, "this process is alone", (const char *const[]){ NULL, NULL, NULL });
}

static void a_file_that_cannot_be_written_ends_all_before_anything_is_measured(void **state)
{
	char weft[512];

	(void)state;
	for (unsigned rank = 0; rank < 2; rank++)
		rank_start(rank, 2,
			   (const char *const[]){ process_path("weft", weft), "perf", "--all-pairs",
						  "--seconds", LONG, "--svg", "/nowhere/picture",
						  NULL });
	ends_with(0, 1);
	says(process_err(&ranks[0]), "weft perf: /nowhere/picture: No such file or directory\n");
	ends_with(1, 0);
}

static int be_a_rank(int signal)
{
	struct weft_group *group;
	struct weft_node *node;

	if (weft_node_open(NULL, &node) || weft_join(node, NULL, &group))
		return 1;
	return raise(signal);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_pair_is_measured_over_shm, begin, end),
		cmocka_unit_test_setup_teardown(every_pair_is_measured_over_tcp, begin, end),
		cmocka_unit_test_setup_teardown(json_takes_the_place_of_text, begin, end),
		cmocka_unit_test_setup_teardown(a_time_of_a_nanosecond_measures_each_pair, begin,
						end),
		cmocka_unit_test_setup_teardown(a_rank_that_dies_costs_its_own_pairs_alone, begin, end),
		cmocka_unit_test_setup_teardown(a_rank_that_stands_still_is_given_up, begin, end),
		cmocka_unit_test_setup_teardown(the_death_of_a_rank_in_the_middle_ends_the_job, begin,
						end),
		cmocka_unit_test_setup_teardown(the_death_of_rank_0_ends_the_others, begin, end),
		cmocka_unit_test_setup_teardown(an_interrupt_ends_every_rank, begin, end),
		cmocka_unit_test_setup_teardown(wrong_arguments_are_named, begin, end),
		cmocka_unit_test_setup_teardown(a_process_alone_has_no_pairs, begin, end),
		cmocka_unit_test_setup_teardown(
			a_file_that_cannot_be_written_ends_all_before_anything_is_measured, begin,
			end),
	};

	if (argc > 1 && !strcmp(argv[1], "--die"))
		return be_a_rank(SIGKILL);
	if (argc > 1 && !strcmp(argv[1], "--stop"))
		return be_a_rank(SIGSTOP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
