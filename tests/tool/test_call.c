/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft services` and `weft call` as their users meet them: against `weft serve`, the
 * server of gRPC's interoperability tests, and a program that does not say what it serves.
 */
#define _GNU_SOURCE /* pipe2 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../examples/process.h"

#define WORDS_MAX 12

#define TEST "grpc.testing.TestService/"
#define LIST "weft.reflect.Reflection/List"

#ifdef HAVE_CJSON
#define NEEDS_CJSON() ((void)0)
#else
#define NEEDS_CJSON() skip()
#endif

static const char *const variables[] = { "FI_PROVIDER=tcp", "WEFT_STALL=0", NULL };

/* A node at ->address. */
struct node {
	struct process process;
	char address[128];
};

static void node_start(struct node *n, const char *program, const char *word)
{
	char path[512];
	const char *argv[] = { process_path(program, path), word, NULL };

	process_start(&n->process, variables, argv);
	process_address(&n->process, n->address);
}

static void weft_serve(struct node *n)
{
	node_start(n, "weft", "serve");
}

static void test_server(struct node *n)
{
	node_start(n, "tests/conformance/grpc/server", NULL);
}

/* Words up to a NULL, which follow "weft"; the address of @n stands for "@". */
static void begin(struct process *p, const struct node *n, const char *const *words)
{
	char path[512];
	const char *argv[WORDS_MAX] = { process_path("weft", path) };

	for (int i = 1; *words; i++, words++) {
		assert_true(i + 1 < WORDS_MAX);
		argv[i] = strcmp(*words, "@") ? *words : n->address;
	}
	process_start(p, variables, argv);
}

/* Its exit status. */
static int end(struct process *p)
{
	if (!process_wait(p, PROCESS_LIMIT_MS))
		fail_msg("weft did not end");
	return p->status;
}

#define BEGIN(p, n, ...) begin(p, n, (const char *const[]){ __VA_ARGS__, NULL })
#define RUN(p, n, ...) (BEGIN(p, n, __VA_ARGS__), end(p))

static void assert_says(struct process *p, const char *text)
{
	if (!strstr(process_out(p), text))
		fail_msg("no '%s' in: %s", text, process_out(p));
}

/* One sentence, which is this. */
static void assert_complains(struct process *p, const char *sentence)
{
	assert_string_equal(process_out(p), "");
	if (strcmp(process_err(p), sentence))
		fail_msg("not '%s' but: %s", sentence, process_err(p));
}

static void services_lists_what_a_node_serves(void **state)
{
	static struct node n;
	static struct process p;

	(void)state;
	weft_serve(&n);
	assert_int_equal(RUN(&p, &n, "services", "@"), 0);
	assert_says(&p, "weft.perf.Perf\n");
	assert_says(&p, "weft.reflect.Reflection\n"
			"    List (weft.reflect.Nothing) returns (weft.reflect.Names)\n"
			"    Describe (weft.reflect.Name) returns (weft.reflect.Description)\n");
	assert_says(&p, "grpc.health.v1.Health\n"
			"    Check (grpc.health.v1.HealthCheckRequest) returns (grpc.health.v1.HealthCheckResponse)\n"
			"    Watch (grpc.health.v1.HealthCheckRequest) returns (grpc.health.v1.HealthCheckResponse), by stream\n");
	assert_null(strstr(process_out(&p), "message"));
	assert_string_equal(process_err(&p), "");
	process_stop(&p);

	process_signal(&n.process, SIGINT);
	assert_int_equal(end(&n.process), 0);
	assert_string_equal(process_err(&n.process), "");
	process_stop(&n.process);
}

static void services_shows_one_with_the_types_that_it_needs(void **state)
{
	static struct node n;
	static struct process p;

	(void)state;
	weft_serve(&n);
	assert_int_equal(RUN(&p, &n, "services", "@", "weft.reflect.Reflection"), 0);
	assert_null(strstr(process_out(&p), "weft.perf"));
	assert_says(&p, "    message weft.reflect.Name\n"
			"        string name = 1\n");
	assert_says(&p, "    message weft.reflect.Type\n"
			"        string name = 1\n"
			"        repeated weft.reflect.Field fields = 2\n"
			"        repeated weft.reflect.Value values = 3\n"
			"        bool is_enum = 4\n");
	process_stop(&p);
	process_stop(&n.process);

	test_server(&n);
	assert_int_equal(RUN(&p, &n, "services", "@", "grpc.testing.TestService"), 0);
	assert_says(&p, "    FullDuplexCall (grpc.testing.StreamingOutputCallRequest) returns "
			"(grpc.testing.StreamingOutputCallResponse), by stream\n");
	assert_says(&p, "    message grpc.testing.Payload\n"
			"        grpc.testing.PayloadType type = 1\n"
			"        bytes body = 2\n");
	assert_says(&p, "    enum grpc.testing.PayloadType\n"
			"        COMPRESSABLE = 0\n");
	process_stop(&p);
	process_stop(&n.process);
}

static void a_missing_service_is_one_sentence(void **state)
{
	static struct node n;
	static struct process p;
	char sentence[300];

	(void)state;
	weft_serve(&n);
	assert_int_equal(RUN(&p, &n, "services", "@", "no.Such"), 1);
	snprintf(sentence, sizeof(sentence),
		 "weft services: %s: NOT_FOUND: no service no.Such is served here\n", n.address);
	assert_complains(&p, sentence);
	process_stop(&p);
	process_stop(&n.process);

	/* It serves, but does not say what. */
	node_start(&n, "tests/examples/hello", NULL);
	assert_int_equal(RUN(&p, &n, "services", "@"), 1);
	snprintf(sentence, sizeof(sentence),
		 "weft services: %s: UNIMPLEMENTED: no service weft.reflect.Reflection is served here\n",
		 n.address);
	assert_complains(&p, sentence);
	process_stop(&p);
	process_stop(&n.process);

	assert_int_equal(RUN(&p, &n, "services", "nowhere"), 2);
	assert_complains(&p, "weft services: \"nowhere\": expected host:port or [v6]:port\n"
			     "usage: weft services ADDRESS [SERVICE]\n");
	process_stop(&p);
}

static void a_wrong_call_of_services_gives_2(void **state)
{
	static struct process p;

	(void)state;
	assert_int_equal(RUN(&p, NULL, "services"), 2);
	assert_non_null(strstr(process_err(&p), "\nusage: weft services ADDRESS [SERVICE]\n"));
	process_stop(&p);
	assert_int_equal(RUN(&p, NULL, "services", "127.0.0.1:1", "a", "b"), 2);
	process_stop(&p);
	assert_int_equal(RUN(&p, NULL, "services", "--nosuch", "127.0.0.1:1"), 2);
	process_stop(&p);
}

static void call_prints_the_reply_as_json(void **state)
{
	static struct node n;
	static struct process p;

	(void)state;
	NEEDS_CJSON();
	weft_serve(&n);
	assert_int_equal(RUN(&p, &n, "call", "@", LIST), 0);
	assert_says(&p, "{\n\t\"names\":\t[");
	assert_says(&p, "\"weft.perf.Perf\"");
	assert_says(&p, "\"weft.reflect.Reflection\"");
	assert_string_equal(process_err(&p), "");
	process_stop(&p);

	assert_int_equal(RUN(&p, &n, "call", "@", "weft.reflect.Reflection/Describe",
			     " {\"name\": \"weft.reflect.Reflection\"}\n"),
			 0);
	assert_says(&p, "\"input\":\t\"weft.reflect.Nothing\"");
	process_stop(&p);

	assert_int_equal(RUN(&p, &n, "call", "@", "grpc.health.v1.Health/Check"), 0);
	assert_string_equal(process_out(&p), "{\n\t\"status\":\t\"SERVING\"\n}\n");
	process_stop(&p);
	process_stop(&n.process);

	test_server(&n);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "UnaryCall",
			     "{\"response_size\":\"2\",\"payload\":{\"body\":\"_w\"}}"),
			 0);
	assert_string_equal(process_out(&p), "{\n\t\"payload\":\t{\n\t\t\"type\":\t\"COMPRESSABLE\",\n"
					     "\t\t\"body\":\t\"AAA=\"\n\t}\n}\n");
	process_stop(&p);
	process_stop(&n.process);
}

/* Where each of the @count texts is found, after the one before. */
static void assert_in_order(const char *text, const char *const *each, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		text = strstr(text, each[i]);
		if (!text)
			fail_msg("no %s, or too soon", each[i]);
		text += strlen(each[i]);
	}
}

static void a_body_comes_from_a_file_or_standard_input(void **state)
{
	static const char body[] = "{\"response_status\":{\"code\":7,\"message\":\"as filed\"}}\n";
	char file[] = "/tmp/weft-body-XXXXXX", word[64];
	static struct node n;
	static struct process p;
	int fd = mkstemp(file), saved;

	(void)state;
	NEEDS_CJSON();
	assert_true(fd >= 0);
	assert_int_equal(write(fd, body, strlen(body)), strlen(body));
	test_server(&n);
	snprintf(word, sizeof(word), "@%s", file);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "UnaryCall", word), 1);
	assert_complains(&p, "weft call: " TEST "UnaryCall: PERMISSION_DENIED: as filed\n");
	process_stop(&p);

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	saved = dup(STDIN_FILENO);
	assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	BEGIN(&p, &n, "call", "@", TEST "UnaryCall", "-");
	assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(end(&p), 1);
	assert_complains(&p, "weft call: " TEST "UnaryCall: PERMISSION_DENIED: as filed\n");
	process_stop(&p);
	close(saved);
	close(fd);

	assert_int_equal(unlink(file), 0);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "UnaryCall", word), 1);
	assert_non_null(strstr(process_err(&p), "can't read /tmp/weft-body-"));
	process_stop(&p);
	process_stop(&n.process);
}

static void a_stream_takes_and_gives_several_messages(void **state)
{
	static const char *const bodies[] = { "\"AA==\"", "\"AAA=\"", "\"AAAA\"" };
	static struct node n;
	static struct process p;

	(void)state;
	NEEDS_CJSON();
	test_server(&n);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "FullDuplexCall",
			     "{\"response_parameters\":[{\"size\":1},{\"size\":2}]}\n"
			     "{\"response_parameters\":[{\"size\":3}]}"),
			 0);
	assert_in_order(process_out(&p), bodies, 3);
	assert_string_equal(process_err(&p), "");
	process_stop(&p);

	assert_int_equal(RUN(&p, &n, "call", "@", TEST "StreamingInputCall",
			     "{\"payload\":{\"body\":\"AAAA\"}}{\"payload\":{\"body\":\"AA==\"}} {} "),
			 0);
	assert_string_equal(process_out(&p), "{\n\t\"aggregated_payload_size\":\t4\n}\n");
	process_stop(&p);

	/* None at all is a stream as well. */
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "StreamingInputCall", ""), 0);
	assert_string_equal(process_out(&p), "{\n\t\"aggregated_payload_size\":\t0\n}\n");
	process_stop(&p);
	process_stop(&n.process);
}

static void metadata_goes_out_and_is_shown_on_demand(void **state)
{
	static const char initial[] = "x-grpc-test-echo-initial: to and fro";
	static const char trailing[] = "x-grpc-test-echo-trailing-bin:a\x01\xff";
	static struct node n;
	static struct process p;

	(void)state;
	NEEDS_CJSON();
	test_server(&n);
	for (int streams = 0; streams < 2; streams++) {
		const char *method = streams ? TEST "FullDuplexCall" : TEST "UnaryCall";
		const char *body = streams ? "{\"response_parameters\":[{\"size\":1}]}" : "{}";

		assert_int_equal(RUN(&p, &n, "call", "-v", "-H", initial, "--header", trailing, "@",
				     method, body),
				 0);
		assert_string_equal(process_err(&p),
				    "initial x-grpc-test-echo-initial: to and fro\n"
				    "trailing x-grpc-test-echo-trailing-bin: a\\x01\\xff\n");
		process_stop(&p);
		assert_int_equal(RUN(&p, &n, "call", "-H", initial, "@", method, body), 0);
		assert_string_equal(process_err(&p), "");
		process_stop(&p);
	}
	assert_int_equal(RUN(&p, &n, "call", "-H", "Upper: case", "@", TEST "EmptyCall"), 1);
	assert_non_null(strstr(process_err(&p), "metadata Upper: keys are of"));
	process_stop(&p);
	process_stop(&n.process);
}

static void a_failure_has_its_status_and_message(void **state)
{
	static const char body[] = "{\"response_status\":{\"code\":7,\"message\":\"not you\"}}";
	static struct node n;
	static struct process p;
	char sentence[300];

	(void)state;
	NEEDS_CJSON();
	test_server(&n);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "UnaryCall", body), 1);
	assert_complains(&p, "weft call: " TEST "UnaryCall: PERMISSION_DENIED: not you\n");
	process_stop(&p);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "FullDuplexCall", body), 1);
	assert_complains(&p, "weft call: " TEST "FullDuplexCall: PERMISSION_DENIED: not you\n");
	process_stop(&p);

	/* What steers a terminal is shown, not obeyed. */
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "UnaryCall",
			     "{\"response_status\":{\"code\":7,\"message\":\"\\u001b[2J\\nweft\\u009b\"}}"),
			 1);
	assert_complains(&p, "weft call: " TEST "UnaryCall: PERMISSION_DENIED: "
			     "\\x1b[2J\\x0aweft\\x9b\n");
	process_stop(&p);

	assert_int_equal(RUN(&p, &n, "call", "@", TEST "NoSuch"), 1);
	assert_complains(&p, "weft call: service grpc.testing.TestService has no method NoSuch\n");
	process_stop(&p);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "UnimplementedCall"), 1);
	assert_complains(&p, "weft call: " TEST "UnimplementedCall: UNIMPLEMENTED: service "
			     "grpc.testing.TestService has no method UnimplementedCall\n");
	process_stop(&p);
	assert_int_equal(RUN(&p, &n, "call", "@", "no.Such/Method"), 1);
	snprintf(sentence, sizeof(sentence),
		 "weft call: %s: NOT_FOUND: no service no.Such is served here\n", n.address);
	assert_complains(&p, sentence);
	process_stop(&p);
	process_stop(&n.process);

	node_start(&n, "tests/examples/hello", NULL);
	assert_int_equal(RUN(&p, &n, "call", "@", "hello.Greeter/Greet"), 1);
	assert_non_null(strstr(process_err(&p),
			       "UNIMPLEMENTED: no service weft.reflect.Reflection is served here"));
	process_stop(&p);
	process_stop(&n.process);
}

static void a_body_that_does_not_fit_gives_2(void **state)
{
	static const struct row {
		const char *method, *body, *sentence;
	} rows[] = {
		{ TEST "UnaryCall", "size=3", "the body is no JSON from here on: size=3" },
		{ TEST "UnaryCall", "{\"response_size\":3", "the body is no JSON from here on: " },
		{ TEST "UnaryCall", " ", "the body has no message" },
		{ TEST "UnaryCall", "{} {}",
		  TEST "UnaryCall takes one message, and the body goes on:  {}" },
		{ TEST "UnaryCall", "{}x", TEST "UnaryCall takes one message, and the body goes on: x" },
		{ TEST "UnaryCall", "[]",
		  "the body: a grpc.testing.SimpleRequest is an object in braces" },
		{ TEST "UnaryCall", "{\"response_size\":\"big\"}",
		  "the body: response_size is not a whole number that fits, in quotes if it is long" },
		{ TEST "UnaryCall", "{\"payload\":{\"body\":\"?\"}}",
		  "the body: body is not bytes in base64" },
		{ TEST "UnaryCall", "{\"nosuch\":1}",
		  "the body: a grpc.testing.SimpleRequest has no field nosuch" },
		{ TEST "UnaryCall", "{\"response_size\":1,\"response_size\":2}",
		  "the body: response_size is not there only once" },
		{ TEST "FullDuplexCall", "{} {\"nosuch\":1}",
		  "the body: a grpc.testing.StreamingOutputCallRequest has no field nosuch" },
		{ TEST "FullDuplexCall", "{}]", "the body is no JSON from here on: ]" },
		{ "UnaryCall", "{}", "'UnaryCall' is not a Service/Method" },
	};
	static struct node n;
	static struct process p;
	char error[600];

	(void)state;
	NEEDS_CJSON();
	test_server(&n);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int status = RUN(&p, &n, "call", "@", rows[i].method, rows[i].body);

		snprintf(error, sizeof(error), "weft call: %s\nusage: weft call ", rows[i].sentence);
		if (status != 2 || strncmp(process_err(&p), error, strlen(error)))
			fail_msg("%s %s: status %d: %s", rows[i].method, rows[i].body, status,
				 process_err(&p));
		assert_string_equal(process_out(&p), "");
		process_stop(&p);
	}
	process_stop(&n.process);
}

static void a_wrong_call_of_call_gives_2(void **state)
{
	static const char *const rows[][7] = {
		{ "call" },
		{ "call", "127.0.0.1:1" },
		{ "call", "127.0.0.1:1", LIST, "{}", "{}" },
		{ "call", "--nosuch", "127.0.0.1:1", LIST },
		{ "call", "-H", "no colon", "127.0.0.1:1", LIST },
		{ "call", "127.0.0.1:1", LIST, "-H" },
		{ "call", "-t", "soon", "127.0.0.1:1", LIST },
		{ "call", "-t", "0", "127.0.0.1:1", LIST },
		{ "call", "-t", "-1", "127.0.0.1:1", LIST },
	};
	static struct process p;

	(void)state;
	NEEDS_CJSON();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		begin(&p, NULL, rows[i]);
		if (end(&p) != 2 || !strstr(process_err(&p), "\nusage: weft call "))
			fail_msg("row %zu: status %d: %s", i, p.status, process_err(&p));
		process_stop(&p);
	}
}

static void a_reply_that_does_not_come_in_time_is_a_failure(void **state)
{
	static struct node n;
	static struct process p;

	(void)state;
	NEEDS_CJSON();
	test_server(&n);
	assert_int_equal(RUN(&p, &n, "call", "-t", "0.5", "@", TEST "StreamingOutputCall",
			     "{\"response_parameters\":[{\"size\":1,\"interval_us\":20000000}]}"),
			 1);
	assert_non_null(strstr(process_err(&p), "weft call: " TEST
						"StreamingOutputCall: DEADLINE_EXCEEDED: "));
	process_stop(&p);

	process_signal(&n.process, SIGSTOP);
	assert_int_equal(RUN(&p, &n, "call", "-t", "0.2", "@", TEST "EmptyCall"), 1);
	assert_non_null(strstr(process_err(&p), ": DEADLINE_EXCEEDED: "));
	assert_non_null(strstr(process_err(&p), n.address));
	process_stop(&p);
	process_signal(&n.process, SIGCONT);
	assert_int_equal(RUN(&p, &n, "call", "@", TEST "EmptyCall"), 0);
	assert_string_equal(process_out(&p), "{\n}\n");
	process_stop(&p);
	process_stop(&n.process);
}

static void an_interrupt_ends_call(void **state)
{
	static struct node n;
	static struct process p;

	(void)state;
	NEEDS_CJSON();
	test_server(&n);
	BEGIN(&p, &n, "call", "-t", "600", "@", TEST "StreamingOutputCall",
	      "{\"response_parameters\":[{\"size\":1},{\"size\":1,\"interval_us\":300000000}]}");
	assert_true(process_says(&p, "AA==", PROCESS_LIMIT_MS)); /* the first is printed as it comes */
	process_signal(&p, SIGINT);
	assert_int_equal(end(&p), 130);
	assert_string_equal(process_err(&p), "");
	process_stop(&p);
	process_stop(&n.process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(services_lists_what_a_node_serves),
		cmocka_unit_test(services_shows_one_with_the_types_that_it_needs),
		cmocka_unit_test(a_missing_service_is_one_sentence),
		cmocka_unit_test(a_wrong_call_of_services_gives_2),
		cmocka_unit_test(call_prints_the_reply_as_json),
		cmocka_unit_test(a_body_comes_from_a_file_or_standard_input),
		cmocka_unit_test(a_stream_takes_and_gives_several_messages),
		cmocka_unit_test(metadata_goes_out_and_is_shown_on_demand),
		cmocka_unit_test(a_failure_has_its_status_and_message),
		cmocka_unit_test(a_body_that_does_not_fit_gives_2),
		cmocka_unit_test(a_wrong_call_of_call_gives_2),
		cmocka_unit_test(a_reply_that_does_not_come_in_time_is_a_failure),
		cmocka_unit_test(an_interrupt_ends_call),
	};
	int ends[2];

	/* The server of gRPC's tests serves until its input ends: with this process. */
	if (pipe2(ends, O_CLOEXEC) || dup2(ends[0], STDIN_FILENO) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
