/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs of several processes on this host, with the environment of each launcher made by hand. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include <weft/weft.h>
#include "../examples/process.h"
#include "group/bootstrap.pb-c.h"

#define RANKS 4
#define VARIABLES_MAX 10
#define VARIABLE_BYTES 300

static struct process members[RANKS + 1];

/* The environment of a process of a job. */
struct environment {
	char text[VARIABLES_MAX][VARIABLE_BYTES];
	const char *list[VARIABLES_MAX + 1];
	unsigned count;
};

__attribute__((format(printf, 2, 3)))
static void add(struct environment *e, const char *format, ...)
{
	va_list args;

	assert_true(e->count < VARIABLES_MAX);
	va_start(args, format);
	vsnprintf(e->text[e->count], VARIABLE_BYTES, format, args);
	va_end(args);
	e->list[e->count] = e->text[e->count];
	e->count++;
}

static void start(unsigned which, const struct environment *e, const char *const *arguments)
{
	char path[512];
	const char *argv[12] = { process_path("tests/group/member", path) };

	for (unsigned i = 0; arguments && arguments[i] && i < 10; i++)
		argv[i + 1] = arguments[i];
	process_start(&members[which], e->list, argv);
}

static void add_place(struct environment *e, unsigned rank, unsigned size, unsigned port)
{
	add(e, "WEFT_BOOTSTRAP=127.0.0.1:%u", port);
	add(e, "WEFT_RANK=%u", rank);
	add(e, "WEFT_SIZE=%u", size);
}

/* Start rank @rank of @size, by hand, where rank 0 is at @port. */
static void start_by_hand(unsigned which, unsigned rank, unsigned size, unsigned port,
			  const char *timeout, const char *const *arguments)
{
	struct environment e = { 0 };

	add_place(&e, rank, size, port);
	if (timeout)
		add(&e, "WEFT_JOIN_TIMEOUT=%s", timeout);
	start(which, &e, arguments);
}

/* A port with free ones after it. */
static unsigned a_port(void)
{
	unsigned short port;

	process_ports(&port, 1);
	return port;
}

static void ends_well(unsigned which)
{
	if (!process_wait(&members[which], PROCESS_LIMIT_MS) || members[which].status)
		fail_msg("process %u: %s", which, process_err(&members[which]));
}

static void fails_with(unsigned which, const char *sentence)
{
	assert_true(process_wait(&members[which], PROCESS_LIMIT_MS));
	if (!members[which].status || !strstr(process_err(&members[which]), sentence))
		fail_msg("process %u: expected \"%s\": %s", which, sentence,
			 process_err(&members[which]));
}

/* All of @size processes have joined and met, as @launcher's. */
static void all_met(unsigned size, const char *launcher)
{
	char line[128];

	for (unsigned i = 0; i < size; i++) {
		ends_well(i);
		snprintf(line, sizeof(line), "rank %u of %u, local %u of %u, by %s\nmet all\n", i, size,
			 i, size, launcher);
		assert_string_equal(process_out(&members[i]), line);
	}
}

static int stop_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= RANKS; i++)
		process_stop(&members[i]);
	return 0;
}

/* Launchers. */

static void processes_meet_at_an_address_given_by_hand(void **state)
{
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 0; i < RANKS; i++)
		start_by_hand(i, i, RANKS, port, NULL, NULL);
	all_met(RANKS, "address");
}

static void processes_of_torchrun_meet_beside_its_own_port(void **state)
{
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		struct environment e = { 0 };

		add(&e, "RANK=%u", i);
		add(&e, "WORLD_SIZE=%u", RANKS);
		add(&e, "MASTER_ADDR=localhost");
		add(&e, "MASTER_PORT=%u", port);
		add(&e, "TORCHELASTIC_RUN_ID=run");
		start(i, &e, NULL);
	}
	all_met(RANKS, "torchrun");
}

/* Workers of one agent have failed, and both agents have started theirs anew. */
static void processes_of_agents_that_count_other_restarts_meet(void **state)
{
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		struct environment e = { 0 };

		add(&e, "RANK=%u", i);
		add(&e, "WORLD_SIZE=%u", RANKS);
		add(&e, "MASTER_ADDR=localhost");
		add(&e, "MASTER_PORT=%u", port);
		add(&e, "GROUP_WORLD_SIZE=2");
		add(&e, "TORCHELASTIC_RUN_ID=run");
		add(&e, "TORCHELASTIC_RESTART_COUNT=%u", i < 2 ? 1 : 0);
		add(&e, "WEFT_JOIN_TIMEOUT=30s");
		start(i, &e, NULL);
	}
	all_met(RANKS, "torchrun");
}

static void processes_of_srun_meet_without_pmix(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		struct environment e = { 0 };

		add(&e, "SLURM_PROCID=%u", i);
		add(&e, "SLURM_STEP_NUM_TASKS=%u", RANKS);
		add(&e, "SLURM_JOB_ID=%u", (unsigned)getpid());
		add(&e, "SLURM_STEP_ID=0");
		add(&e, "SLURM_STEP_NUM_NODES=1");
		add(&e, "SLURM_STEP_NODELIST=nobody[3-4]");
		start(i, &e, NULL);
	}
	all_met(RANKS, "slurm");
}

static void processes_of_a_tensorflow_cluster_are_ranked_by_job_and_index(void **state)
{
	static const struct {
		const char *type;
		unsigned index;
	} tasks[RANKS] = { { "chief", 0 }, { "worker", 0 }, { "worker", 1 }, { "ps", 0 } };
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		struct environment e = { 0 };

		add(&e,
		    "TF_CONFIG={\"cluster\":{\"ps\":[\"h:1\"],\"worker\":[\"h:2\",\"h:3\"],"
		    "\"chief\":[\"127.0.0.1:%u\"]},\"task\":{\"type\":\"%s\",\"index\":%u}}", port,
		    tasks[i].type, tasks[i].index);
		start(i, &e, NULL);
	}
	all_met(RANKS, "tf_config");
}

/* Listen at a port of the kernel's choice, and never answer. */
static int listen_silently(unsigned *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, bytes) && !listen(fd, 16) &&
		    !getsockname(fd, (struct sockaddr *)&at, &bytes));
	*port = ntohs(at.sin_port);
	return fd;
}

static void processes_meet_by_a_file(void **state)
{
	char path[] = "/tmp/weft-group-XXXXXX";
	int fd = mkstemp(path), silent;
	unsigned port;

	(void)state;
	/* An earlier job has left an address there at which nobody answers. */
	silent = listen_silently(&port);
	assert_true(fd >= 0 && dprintf(fd, "127.0.0.1:%u\n", port) > 0);
	close(fd);
	for (unsigned i = RANKS; i--;) {
		struct environment e = { 0 };

		add(&e, "WEFT_BOOTSTRAP=file:%s", path);
		add(&e, "WEFT_CONNECT_TIMEOUT=3600s");
		add(&e, "OMPI_COMM_WORLD_RANK=%u", i);
		add(&e, "OMPI_COMM_WORLD_SIZE=%u", RANKS);
		start(i, &e, NULL);
	}
	all_met(RANKS, "file");
	/* Rank 0 removes what it has written. */
	assert_int_not_equal(access(path, F_OK), 0);
	unlink(path);
	close(silent);
}

static void a_process_that_nobody_launched_is_alone(void **state)
{
	struct environment e = { 0 };

	(void)state;
	start(0, &e, NULL);
	all_met(1, "none");
}

static void a_launcher_asked_for_by_name_must_have_started_the_process(void **state)
{
	struct environment e = { 0 };

	(void)state;
	add(&e, "WEFT_BOOTSTRAP=torchrun");
	start(0, &e, NULL);
	fails_with(0, "torchrun has not started this process");
}

/* How groups are joined. */

static void manual_nodes_join(void **state)
{
	static const char *const manual[] = { "--manual", NULL };
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 0; i < RANKS; i++)
		start_by_hand(i, i, RANKS, port, NULL, manual);
	all_met(RANKS, "address");
}

/* Make the file @key with a key in a folder of its own, the path of which is @folder's. */
static void make_key(char *folder, char key[64])
{
	char tool[512];
	const char *const make[] = { process_path("weft", tool), "key", "new", key, NULL };

	assert_non_null(mkdtemp(folder));
	snprintf(key, 64, "%s/key", folder);
	process_start(&members[0], NULL, make);
	ends_well(0);
	process_stop(&members[0]);
}

static void nodes_join_with_the_security_that_their_programs_ask_for(void **state)
{
	static const char *const keyed[] = { "--keyed", NULL };
	char folder[] = "/tmp/weft-test-join-XXXXXX", key[64];
	unsigned port = a_port();

	(void)state;
	make_key(folder, key);
	for (unsigned i = 0; i < RANKS; i++) {
		struct environment e = { 0 };

		add(&e, "WEFT_KEY_FILE=%s", key);
		add_place(&e, i, RANKS, port);
		start(i, &e, keyed);
	}
	all_met(RANKS, "address");
	assert_int_equal(unlink(key) || rmdir(folder), 0);
}

/* A key, and what peers who prove it may do. */
struct rights {
	char folder[40], key[64], list[64];
	unsigned port; /* of rank 0 */
};

static void make_rights(struct rights *r, const char *lines)
{
	FILE *file;

	snprintf(r->folder, sizeof(r->folder), "/tmp/weft-test-join-XXXXXX");
	make_key(r->folder, r->key);
	snprintf(r->list, sizeof(r->list), "%s/list", r->folder);
	file = fopen(r->list, "w");
	assert_true(file && fputs(lines, file) >= 0 && !fclose(file));
	r->port = a_port();
}

static void remove_rights(const struct rights *r)
{
	assert_int_equal(unlink(r->key) || unlink(r->list) || rmdir(r->folder), 0);
}

/* Start @rank of two with the key and the rights @r. */
static void start_with_rights(const struct rights *r, unsigned rank, const char *timeout)
{
	struct environment e = { 0 };

	add(&e, "WEFT_KEY_FILE=%s", r->key);
	add(&e, "WEFT_ALLOW=%s", r->list);
	add(&e, "WEFT_JOIN_TIMEOUT=%s", timeout);
	add_place(&e, rank, 2, r->port);
	start(rank, &e, NULL);
}

static void processes_join_and_sum_with_the_rights_that_weft_group_names(void **state)
{
	struct rights r;

	(void)state;
	make_rights(&r, "allow key:* calls weft.group.Bootstrap/Join\n"
			"allow key:* tensors *\n"
			"allow key:* abort\n");
	start_with_rights(&r, 0, "60s");
	start_with_rights(&r, 1, "60s");
	all_met(2, "address");
	remove_rights(&r);
}

/* The refusal must come within the time of the join, which is longer where the host is slow. */
static void a_process_that_may_not_join_hears_so(void **state)
{
	static const char *const timeouts[] = { "2s", "8s", "32s" };
	struct rights r;

	(void)state;
	make_rights(&r, "allow key:* tensors *\nallow key:* abort\n");
	start_with_rights(&r, 0, "600s");
	for (unsigned i = 0; i < 3; i++) {
		process_stop(&members[1]);
		start_with_rights(&r, 1, timeouts[i]);
		assert_true(process_wait(&members[1], PROCESS_LIMIT_MS));
		if (strstr(process_err(&members[1]), "weft.group.Bootstrap/Join"))
			break;
	}
	fails_with(1, "weft.group.Bootstrap/Join");
	remove_rights(&r);
}

/* Join one group after the other, as @arguments say. */
static void join_groups(const char *const *arguments)
{
	unsigned port = a_port();

	for (unsigned i = 0; i < RANKS; i++)
		start_by_hand(i, i, RANKS, port, NULL, arguments);
	for (unsigned i = 0; i < RANKS; i++)
		ends_well(i);
}

/* More groups than rank 0 has ports: its server leaves when all have heard. */
static void processes_join_several_groups_by_their_names(void **state)
{
	static const char *const there[] = { "--name", "a", "--name", "b", "--name", "c", "--name", "d",
					     "--name", "e", NULL };

	(void)state;
	join_groups(there);
}

static void rank_0_passes_over_a_port_that_is_taken(void **state)
{
	unsigned port;
	int fd = listen_silently(&port);

	(void)state;
	for (unsigned i = 0; i < RANKS; i++)
		start_by_hand(i, i, RANKS, port, NULL, NULL);
	all_met(RANKS, "address");
	close(fd);
}

static void rank_0_is_met_on_loopback_where_the_name_of_its_host_leads_elsewhere(void **state)
{
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		struct environment e = { 0 };

		/* Rank 0 listens at 127.0.0.1 alone. */
		add(&e, "WEFT_BOOTSTRAP=127.0.0.2:%u", port);
		add(&e, "WEFT_RANK=%u", i);
		add(&e, "WEFT_SIZE=%u", RANKS);
		start(i, &e, NULL);
	}
	all_met(RANKS, "address");
}

static bool somebody_listens(unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool does = !connect(fd, (struct sockaddr *)&at, sizeof(at));

	close(fd);
	return does;
}

static void a_member_whose_own_node_is_at_one_of_the_ports_goes_on(void **state)
{
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 2; i--;) {
		struct environment e = { 0 };

		add(&e, "WEFT_BOOTSTRAP=127.0.0.1:%u", port);
		add(&e, "WEFT_RANK=%u", i);
		add(&e, "WEFT_SIZE=2");
		if (i)
			add(&e, "WEFT_LISTEN=127.0.0.1:%u", port);
		start(i, &e, NULL);
		/* The first to come has the port before rank 0 looks for one, and dials itself. */
		while (i && !somebody_listens(port))
			assert_false(process_wait(&members[i], 10));
	}
	all_met(2, "address");
}

static void jobs_at_one_port_do_not_mix(void **state)
{
	unsigned port = a_port();

	(void)state;
	for (unsigned i = RANKS + 1; i--;) {
		struct environment e = { 0 };

		/* The last is rank 0 of a job whose other process does not come. */
		add(&e, "RANK=%u", i % RANKS);
		add(&e, "WORLD_SIZE=%u", RANKS);
		add(&e, "MASTER_ADDR=127.0.0.1");
		add(&e, "MASTER_PORT=%u", port);
		add(&e, "TORCHELASTIC_RUN_ID=%s", i == RANKS ? "other" : "run");
		start(i, &e, NULL);
	}
	all_met(RANKS, "torchrun");
	assert_false(process_wait(&members[RANKS], 0));
}

/* Each job tries several ports, and some of them are the other's, too. */
static void jobs_at_neighbouring_ports_do_not_mix(void **state)
{
	unsigned port = a_port();

	(void)state;
	start_by_hand(RANKS, 0, RANKS, port + 1, NULL, NULL);
	for (unsigned i = RANKS; i--;)
		start_by_hand(i, i, RANKS, port, NULL, NULL);
	all_met(RANKS, "address");
	assert_false(process_wait(&members[RANKS], 0));
}

static void a_rank_that_died_before_all_were_there_may_come_again(void **state)
{
	unsigned port = a_port();

	(void)state;
	for (unsigned i = 0; i + 1 < RANKS; i++)
		start_by_hand(i, i, RANKS, port, NULL, NULL);
	start_by_hand(RANKS, 1, RANKS, port, "2s", NULL);
	process_stop(&members[1]);
	fails_with(RANKS, "(Connection timed out)");
	start_by_hand(1, 1, RANKS, port, NULL, NULL);
	start_by_hand(RANKS - 1, RANKS - 1, RANKS, port, NULL, NULL);
	all_met(RANKS, "address");
}

/* Start rank @rank of @size, by hand, which is patient with what has died or is about to. */
static void start_patient(unsigned which, unsigned rank, unsigned size, unsigned port)
{
	struct environment e = { 0 };

	add_place(&e, rank, size, port);
	add(&e, "WEFT_LOST=60s");
	start(which, &e, NULL);
}

/* Wait until rank 1 of the four at @port has joined: rank 3 comes, and hears who is missing. */
static void wait_for_rank_1(unsigned port)
{
	bool joined = false;

	while (!joined) {
		start_by_hand(3, 3, 4, port, "500ms", NULL);
		fails_with(3, "(Connection timed out)");
		joined = strstr(process_err(&members[3]), "did not join within 0.5 s: rank 2");
		process_stop(&members[3]);
	}
}

/* Wait until process @which says in its log that it has lost the process @pid. */
static void wait_until_lost(unsigned which, pid_t pid)
{
	char text[64];

	snprintf(text, sizeof(text), ".%d is gone", (int)pid);
	while (!strstr(process_err(&members[which]), text))
		assert_false(process_wait(&members[which], 10));
}

/* The claim of a stopped process stands, as does for a while that of one killed on another host. */
static void a_process_waits_for_the_claim_of_the_one_whose_place_it_takes(void **state)
{
	struct environment e = { 0 };
	unsigned port = a_port();
	pid_t first;

	(void)state;
	add_place(&e, 0, 4, port);
	add(&e, "WEFT_LOG=stderr:2");
	start(0, &e, NULL);
	start_by_hand(4, 1, 4, port, NULL, NULL);
	wait_for_rank_1(port);
	first = members[4].pid;
	process_signal(&members[4], SIGSTOP);
	start_patient(1, 1, 4, port);
	/* The newcomer has heard of the claim by then, or never hears of it. */
	assert_false(process_wait(&members[1], 1000));
	process_stop(&members[4]);
	wait_until_lost(0, first);
	wait_for_rank_1(port);
	for (unsigned i = 2; i < 4; i++)
		start_by_hand(i, i, 4, port, NULL, NULL);
	all_met(4, "address");
}

static void a_member_waits_for_rank_0_of_another_size_to_leave(void **state)
{
	unsigned port = a_port();

	(void)state;
	start_by_hand(0, 0, 3, port, NULL, NULL);
	while (!somebody_listens(port))
		assert_false(process_wait(&members[0], 10));
	start_patient(1, 1, 2, port);
	/* The member has heard of the other size by then, or never hears of it. */
	assert_false(process_wait(&members[1], 1000));
	process_stop(&members[0]);
	start_by_hand(0, 0, 2, port, NULL, NULL);
	all_met(2, "address");
}

/* A member that has heard of all may join again before the others have. */
static void processes_join_groups_of_one_name_one_after_the_other(void **state)
{
	static const char *const there[] = { "--name", "a", "--name", "a", "--name", "a", "--name", "a",
					     "--name", "a", NULL };

	(void)state;
	join_groups(there);
}

/* Rank 0's list of all is for the others to read, and the one that is stopped does not. */
static void a_program_gives_a_join_up_while_others_have_not_heard_of_all(void **state)
{
	static const char *const arguments[] = { "--give-up", "--manual", NULL };
	unsigned port = a_port();
	struct environment e = { 0 };

	(void)state;
	add_place(&e, 0, 4, port);
	add(&e, "WEFT_LOST=60s");
	add(&e, "WEFT_EAGER_BYTES=1");
	start(0, &e, arguments);
	start_by_hand(1, 1, 4, port, NULL, NULL);
	wait_for_rank_1(port);
	process_signal(&members[1], SIGSTOP);
	for (unsigned i = 2; i < 4; i++)
		start_by_hand(i, i, 4, port, NULL, NULL);
	for (unsigned i = 2; i < 4; i++)
		assert_true(process_says(&members[i], "of 4", PROCESS_LIMIT_MS));
	process_signal(&members[0], SIGUSR1);
	fails_with(0, "the join of 4 processes (address) was given up by this one");
}

/* Begin a call of Join. */
static struct weft_op *begin_call(struct weft_stub *stub, struct weft_stream **stream)
{
	struct weft_op *call;

	assert_int_equal(weft_stream_open(stub, "Join", NULL, stream, &call), 0);
	return call;
}

/* Wait until @call ends with @expected. */
static void call_ends_with(struct weft_op *call, enum weft_status expected, const char *sentence)
{
	enum weft_status status;

	assert_int_equal(weft_finish(call, &status), 0);
	assert_int_equal(status, expected);
	if (!strstr(weft_error(), sentence))
		fail_msg("expected \"%s\": %s", sentence, weft_error());
}

static void calls_of_those_who_never_say_who_they_are_hold_nobody_up(void **state)
{
	Weft__Group__Member other = WEFT__GROUP__MEMBER__INIT;
	struct weft_stream *silent_stream, *other_stream;
	struct weft_op *silent, *told;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *stub;
	unsigned port = a_port();
	char address[32];

	(void)state;
	start_by_hand(0, 0, 2, port, NULL, NULL);
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	assert_int_equal(weft_node_open(NULL, &node), 0);
	assert_int_equal(weft_peer_open(node, address, &peer), 0);
	assert_int_equal(weft_stub_open(peer, &weft__group__bootstrap__descriptor, &stub), 0);
	silent = begin_call(stub, &silent_stream);
	/* The server has the silent call once it has answered the one behind. */
	told = begin_call(stub, &other_stream);
	assert_int_equal(weft_stream_write(other_stream, &other.base, NULL, NULL), 0);
	call_ends_with(told, WEFT_NOT_FOUND, "meets here, and not \"\"");
	start_by_hand(1, 1, 2, port, NULL, NULL);
	call_ends_with(silent, WEFT_UNAVAILABLE, "rank 0 takes no more members");
	all_met(2, "address");
	weft_stream_close(silent_stream);
	weft_stream_close(other_stream);
	weft_stub_close(stub);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(node), 0);
}

/* Missing ranks, and processes that differ. */

/* Rank 3 must have joined before rank 0 gives up, which is later where the host is slow. */
static void all_hear_which_ranks_are_missing(void **state)
{
	char sentences[2][96];

	(void)state;
	for (unsigned seconds = 2; seconds <= 32; seconds *= 4) {
		unsigned port = a_port();

		/* Rank 3 has more time: its call runs still when rank 0 gives up. */
		for (unsigned i = 0; i < 2; i++) {
			char timeout[16];

			snprintf(timeout, sizeof(timeout), "%us", seconds << i);
			snprintf(sentences[i], sizeof(sentences[i]), "3 of 5 processes (address) "
				 "did not join within %u s: ranks 1, 2 and 4", seconds << i);
			process_stop(&members[i]);
			start_by_hand(i, 3 * i, 5, port, timeout, NULL);
		}
		assert_true(process_wait(&members[1], 2 * PROCESS_LIMIT_MS));
		if (strstr(process_err(&members[1]), "then rank 0 left"))
			break;
	}
	fails_with(0, sentences[0]);
	fails_with(1, sentences[1]);
	assert_non_null(strstr(process_err(&members[0]), "(Connection timed out)"));
}

static void a_program_gives_a_join_up(void **state)
{
	static const char *const threaded[] = { "--give-up", NULL };
	static const char *const manual[] = { "--give-up", "--manual", NULL };

	(void)state;
	for (unsigned rank = 0; rank < 2; rank++) {
		start_by_hand(2 * rank, rank, 3, a_port(), NULL, threaded);
		start_by_hand(2 * rank + 1, rank, 3, a_port(), NULL, manual);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(process_says(&members[i], "joins", PROCESS_LIMIT_MS));
	for (unsigned i = 0; i < 4; i++)
		process_signal(&members[i], SIGUSR1);
	for (unsigned i = 0; i < 4; i++)
		fails_with(i, "the join of 3 processes (address) was given up by this one");
}

static void others_hear_that_rank_0_is_missing(void **state)
{
	(void)state;
	start_by_hand(0, 1, 2, a_port(), "1s", NULL);
	fails_with(0, "rank 0 of 2 processes (address) was not met at 127.0.0.1:");
	assert_non_null(strstr(process_err(&members[0]), "other hosts, if the job has any, do not reach "
							 "this node"));
}

static void others_hear_that_rank_0_is_on_loopback_elsewhere(void **state)
{
	char path[] = "/tmp/weft-group-XXXXXX";
	int fd = mkstemp(path);
	struct environment e = { 0 };

	(void)state;
	assert_true(fd >= 0 && dprintf(fd, "127.0.0.1:5000 another host\n") > 0);
	close(fd);
	add(&e, "WEFT_BOOTSTRAP=file:%s", path);
	add(&e, "WEFT_RANK=1");
	add(&e, "WEFT_SIZE=2");
	add(&e, "WEFT_JOIN_TIMEOUT=1s");
	start(0, &e, NULL);
	fails_with(0, "rank 0 is on another host, at 127.0.0.1:5000");
	unlink(path);
}

static void nodes_on_loopback_do_not_wait_for_a_job_of_several_hosts(void **state)
{
	struct environment e = { 0 };

	(void)state;
	add(&e, "RANK=0");
	add(&e, "WORLD_SIZE=4");
	add(&e, "LOCAL_WORLD_SIZE=2");
	add(&e, "MASTER_ADDR=127.0.0.1");
	add(&e, "MASTER_PORT=%u", a_port());
	start(0, &e, NULL);
	fails_with(0, "the job has several hosts (torchrun), and this node is at 127.0.0.1:");
}

static void two_processes_of_one_rank_are_told_apart(void **state)
{
	unsigned port = a_port();

	(void)state;
	start_by_hand(0, 0, 3, port, NULL, NULL);
	start_by_hand(1, 1, 3, port, NULL, NULL);
	start_by_hand(2, 1, 3, port, NULL, NULL);
	while (!members[1].ended && !members[2].ended) {
		process_wait(&members[1], 10);
		process_wait(&members[2], 10);
	}
	fails_with(members[1].ended ? 1 : 2, "another process has joined as rank 1");
}

static void processes_that_differ_about_the_size_are_told(void **state)
{
	unsigned port = a_port();

	(void)state;
	start_by_hand(0, 0, 3, port, NULL, NULL);
	start_by_hand(1, 1, 2, port, NULL, NULL);
	fails_with(1, "rank 1 says that the job has 2 processes, and rank 0 that there are 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(processes_meet_at_an_address_given_by_hand, stop_all),
		cmocka_unit_test_teardown(processes_of_torchrun_meet_beside_its_own_port, stop_all),
		cmocka_unit_test_teardown(processes_of_agents_that_count_other_restarts_meet, stop_all),
		cmocka_unit_test_teardown(processes_of_srun_meet_without_pmix, stop_all),
		cmocka_unit_test_teardown(
			processes_of_a_tensorflow_cluster_are_ranked_by_job_and_index, stop_all),
		cmocka_unit_test_teardown(processes_meet_by_a_file, stop_all),
		cmocka_unit_test_teardown(a_process_that_nobody_launched_is_alone, stop_all),
		cmocka_unit_test_teardown(
			a_launcher_asked_for_by_name_must_have_started_the_process, stop_all),
		cmocka_unit_test_teardown(manual_nodes_join, stop_all),
		cmocka_unit_test_teardown(nodes_join_with_the_security_that_their_programs_ask_for,
					  stop_all),
		cmocka_unit_test_teardown(
			processes_join_and_sum_with_the_rights_that_weft_group_names, stop_all),
		cmocka_unit_test_teardown(a_process_that_may_not_join_hears_so, stop_all),
		cmocka_unit_test_teardown(processes_join_several_groups_by_their_names, stop_all),
		cmocka_unit_test_teardown(rank_0_passes_over_a_port_that_is_taken, stop_all),
		cmocka_unit_test_teardown(
			rank_0_is_met_on_loopback_where_the_name_of_its_host_leads_elsewhere, stop_all),
		cmocka_unit_test_teardown(
			a_member_whose_own_node_is_at_one_of_the_ports_goes_on, stop_all),
		cmocka_unit_test_teardown(jobs_at_one_port_do_not_mix, stop_all),
		cmocka_unit_test_teardown(jobs_at_neighbouring_ports_do_not_mix, stop_all),
		cmocka_unit_test_teardown(a_rank_that_died_before_all_were_there_may_come_again,
					  stop_all),
		cmocka_unit_test_teardown(
			a_process_waits_for_the_claim_of_the_one_whose_place_it_takes,
			stop_all),
		cmocka_unit_test_teardown(a_member_waits_for_rank_0_of_another_size_to_leave, stop_all),
		cmocka_unit_test_teardown(processes_join_groups_of_one_name_one_after_the_other,
					  stop_all),
		cmocka_unit_test_teardown(
			a_program_gives_a_join_up_while_others_have_not_heard_of_all, stop_all),
		cmocka_unit_test_teardown(
			calls_of_those_who_never_say_who_they_are_hold_nobody_up, stop_all),
		cmocka_unit_test_teardown(all_hear_which_ranks_are_missing, stop_all),
		cmocka_unit_test_teardown(a_program_gives_a_join_up, stop_all),
		cmocka_unit_test_teardown(others_hear_that_rank_0_is_missing, stop_all),
		cmocka_unit_test_teardown(others_hear_that_rank_0_is_on_loopback_elsewhere, stop_all),
		cmocka_unit_test_teardown(
			nodes_on_loopback_do_not_wait_for_a_job_of_several_hosts, stop_all),
		cmocka_unit_test_teardown(two_processes_of_one_rank_are_told_apart, stop_all),
		cmocka_unit_test_teardown(processes_that_differ_about_the_size_are_told, stop_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
