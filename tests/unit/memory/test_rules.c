/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/machine.h"

static struct wf_topology t;
static struct wf_rules rules;

static int open_machine(void **state)
{
	(void)state;
	return wf_topology_open(&t, machine_make(MACHINE_DUAL));
}

static int close_machine(void **state)
{
	(void)state;
	wf_topology_close(&t);
	machine_remove();
	return 0;
}

static int close_rules(void **state)
{
	(void)state;
	wf_rules_close(&rules);
	return 0;
}

static void read_rules(const char *text)
{
	struct wf_error e;

	if (wf_rules_open(&rules, text, &e))
		fail_msg("%s", e.text);
}

static void a_rule_says_verb_publishers_and_conditions(void **state)
{
	const struct wf_rule *r;

	(void)state;
	read_rules("deny cuda, p2pmem:0000:3b:00.0 for mlx5_0 where class > phb");
	assert_int_equal(rules.count, 1);
	r = &rules.all[0];
	assert_int_equal(r->verb, WF_RULE_DENY);
	assert_int_equal(r->who.count, 2);
	assert_string_equal(r->who.names[0], "cuda");
	assert_string_equal(r->who.names[1], "p2pmem:0000:3b:00.0");
	assert_string_equal(r->client, "mlx5_0");
	assert_int_equal(r->class, WF_NEAR_PHB);
	assert_true(!r->below && !r->at && r->above);
}

static void sizes_are_bytes_or_a_part(void **state)
{
	(void)state;
	read_rules("limit host 64M; reserve host:0 25%; reserve any 1G; publish software:01:00.0 1048576");
	assert_int_equal(rules.count, 4);
	assert_int_equal(rules.all[0].bytes, 64 * MIB);
	assert_int_equal(rules.all[1].percent, 25);
	assert_int_equal(rules.all[2].bytes, GIB);
	assert_int_equal(rules.all[3].bytes, MIB);
	assert_int_equal(rules.all[3].verb, WF_RULE_PUBLISH);
}

static void lines_and_semicolons_end_rules_and_comments_lines(void **state)
{
	(void)state;
	read_rules("\n# nothing; deny any\n deny huge ;; allow any # deny host; \n\tprefer host , cuda\r\n");
	assert_int_equal(rules.count, 3);
	assert_string_equal(rules.all[0].text, "deny huge");
	assert_string_equal(rules.all[1].text, "allow any");
	assert_string_equal(rules.all[2].text, "prefer host , cuda");
	assert_int_equal(rules.all[2].who.count, 2);
}

static void an_error_names_line_and_word(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "forbid cuda", "line 1: 'forbid' stands where allow, deny," },
		{ "\n\ndeny", "line 3: it ends where a publisher is expected" },
		{ "deny gpu", "line 1: 'gpu' is no publisher" },
		{ "deny host,,cuda", "line 1: '' is no publisher" },
		{ "deny host:", "line 1: 'host:' is no publisher" },
		{ "deny any:1", "line 1: 'any:1' is no publisher" },
		{ "deny host, ", "line 1: it ends where a publisher" },
		{ "deny host\nallow cuda wher class>phb", "line 2: 'wher' stands where 'for', 'where'" },
		{ "deny cuda where phb", "line 1: 'phb' stands where 'class' is expected" },
		{ "deny cuda where class phb", "line 1: 'phb' stands where one of < <= = >= >" },
		{ "deny cuda where class => phb", "line 1: '=>' stands where" },
		{ "deny cuda where class > far", "line 1: 'far' stands where one of X PIX" },
		{ "deny cuda where class >", "line 1: it ends where one of X PIX" },
		{ "deny cuda where class > phb for eth0", "line 1: 'for' stands where" },
		{ "deny cuda for", "line 1: it ends where a client is expected" },
		{ "prefer host where class > phb", "line 1: 'where' stands where 'for' or its end" },
		{ "limit host", "line 1: it ends where a number of bytes" },
		{ "limit host 25%", "line 1: '25%' stands where a number of bytes, as 64M, is" },
		{ "limit host 64M for eth0", "line 1: 'for' stands where its end" },
		{ "limit host -1", "line 1: '-1' stands where" },
		{ "reserve host 101%", "line 1: '101%' stands where" },
		{ "reserve host 0%", "line 1: '0%' stands where" },
		{ "reserve host %", "line 1: '%' stands where" },
		{ "publish host 64M", "stands where software:ADDRESS is expected" },
		{ "publish software:1,software:2 64M", "where software:ADDRESS is expected" },
		{ "deny host,host,host,host,host,host,host,host,host", "line 1: more than 8 publishers" },
		{ "deny aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg",
		  "'aaaaaaaaaabbbbbbbbbb...' is longer than 63 bytes" },
		{ "allow host,host,host,host,host,host,host for "
		  "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff where class>= phb"
		  "                                                            x", "is longer than 159 bytes" },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		struct wf_error e = { 0 };

		assert_int_equal(wf_rules_open(&rules, rows[i].text, &e), -EINVAL);
		if (!strstr(e.text, rows[i].says))
			fail_msg("%s: %s", rows[i].text, e.text);
		assert_int_equal(wf_rules_open(&rules, rows[i].text, NULL), -EINVAL);
	}
}

/* What decides about @name for @client at that class: its text, "" if nothing does. */
static const char *access_of(const char *kind, const char *name, const char *client,
			     enum wf_topology_near class)
{
	const struct wf_rule *r;
	struct wf_topology_place place;

	assert_int_equal(wf_topology_find(&t, client, &place), 0);
	r = wf_rules_access(&rules, kind, name, &place, class);
	return r ? r->text : "";
}

static void the_first_that_matches_decides(void **state)
{
	(void)state;
	read_rules("limit any 1G; allow cuda:1; deny cuda where class>phb; allow cuda; deny p2pmem for eth0");
	assert_string_equal(access_of("cuda", "cuda:1", "eth0", WF_NEAR_SYS), "allow cuda:1");
	assert_string_equal(access_of("cuda", "cuda:0", "eth0", WF_NEAR_SYS),
			    "deny cuda where class>phb");
	assert_string_equal(access_of("cuda", "cuda:0", "eth0", WF_NEAR_PHB), "allow cuda");
	assert_string_equal(access_of("host", "host:0", "eth0", WF_NEAR_PHB), "");
	/* It is the same card by any of its names, and no other. */
	assert_string_equal(access_of("p2pmem", "p2pmem:41:00.0", "mlx5_0", WF_NEAR_PHB),
			    "deny p2pmem for eth0");
	assert_string_equal(access_of("p2pmem", "p2pmem:41:00.0", "eth1", WF_NEAR_PHB), "");
	assert_string_equal(access_of("p2pmem", "p2pmem:41:00.0", "node0", WF_NEAR_PHB), "");
}

static void a_class_is_compared_as_it_says(void **state)
{
	static const struct {
		const char *rule;
		bool at[WF_NEAR_SYS + 1];
	} rows[] = {
		{ "deny any where class<phb", { 1, 1, 1, 0, 0, 0 } },
		{ "deny any where class<=PHB", { 1, 1, 1, 1, 0, 0 } },
		{ "deny any where class = phb", { 0, 0, 0, 1, 0, 0 } },
		{ "deny any where class >=phb", { 0, 0, 0, 1, 1, 1 } },
		{ "deny any where class>phb", { 0, 0, 0, 0, 1, 1 } },
		{ "deny any", { 1, 1, 1, 1, 1, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		read_rules(rows[i].rule);
		for (int near = 0; near <= WF_NEAR_SYS; near++)
			assert_int_equal(*access_of("host", "host:0", "eth0", near) != '\0',
					 rows[i].at[near]);
		wf_rules_close(&rules);
	}
}

static void an_order_may_be_for_one_client(void **state)
{
	struct wf_topology_place eth0, eth1;

	(void)state;
	assert_int_equal(wf_topology_find(&t, "eth0", &eth0), 0);
	assert_int_equal(wf_topology_find(&t, "eth1", &eth1), 0);
	read_rules("deny huge; prefer p2pmem:41:00.0,host for 01:00.0; prefer cuda,host");
	assert_int_equal(wf_rules_order(&rules, &eth0)->who.count, 2);
	assert_string_equal(wf_rules_order(&rules, &eth1)->text, "prefer cuda,host");
	assert_int_equal(wf_rules_place(&wf_rules_order(&rules, &eth1)->who, "host", "host:1"), 1);
	assert_int_equal(wf_rules_place(&wf_rules_order(&rules, &eth1)->who, "p2pmem", "p2pmem:1"), -1);
	assert_int_equal(wf_rules_place(&wf_rules_order(&rules, &eth0)->who, "p2pmem",
					"p2pmem:41:00.0"), 0);
}

static void a_path_names_a_file_of_rules(void **state)
{
	char path[300];
	struct wf_error e;

	(void)state;
	machine_say("rules", "# of this host\nlimit host 1G\ndeny gpu");
	snprintf(path, sizeof(path), "%s/rules", t.root);
	assert_int_equal(wf_rules_open(&rules, path, &e), -EINVAL);
	assert_non_null(strstr(e.text, "line 3: 'gpu'"));
	machine_say("rules", "# of this host\nlimit host 1G");
	read_rules(path);
	assert_int_equal(rules.count, 1);
	wf_rules_close(&rules);

	machine_say("rules", "%0*d", (int)WF_RULES_FILE_BYTES, 0);
	assert_int_equal(wf_rules_open(&rules, path, &e), -EFBIG);
	assert_int_equal(wf_rules_open(&rules, "/nonexistent/rules", &e), -ENOENT);
	assert_non_null(strstr(e.text, "/nonexistent/rules"));
}

#define TEST(name) cmocka_unit_test_teardown(name, close_rules)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rule_says_verb_publishers_and_conditions),
		TEST(sizes_are_bytes_or_a_part),
		TEST(lines_and_semicolons_end_rules_and_comments_lines),
		TEST(an_error_names_line_and_word),
		TEST(the_first_that_matches_decides),
		TEST(a_class_is_compared_as_it_says),
		TEST(an_order_may_be_for_one_client),
		TEST(a_path_names_a_file_of_rules),
	};

	return cmocka_run_group_tests(tests, open_machine, close_machine);
}
