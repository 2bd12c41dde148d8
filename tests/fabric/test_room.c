/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Little room in /dev/shm, or none: a node does without shm and says why, and one that has it
 * goes on when somebody else takes what is left.  In a mount namespace with a /dev/shm of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pair.h"

#define MIB ((size_t)1024 * 1024)
#define FILL "/dev/shm/fill"

/* A /dev/shm of @size, as tmpfs takes it, for this process and those that it starts. */
static void mount_shm(const char *size)
{
	char options[32];

	/* A process of the test before has the /dev/shm of that. */
	need(!pair_group_teardown(NULL));
	snprintf(options, sizeof(options), "size=%s", size);
	if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("tmpfs", "/dev/shm", "tmpfs", 0, options))
		return;
	print_message("skip: no mount namespace can be had here\n");
	skip();
}

/* Is shm the provider to try?  Whatever else there is, tcp is. */
static void need_shm(void)
{
	bool found = false;

	for (const char *at = pair_first(); at; at = pair_next())
		found |= !strcmp(at, "shm");
	if (found)
		return;
	print_message("skip: libfabric does not offer shm\n");
	skip();
}

/* Take all the room that there is, but @left bytes. */
static void fill_shm(size_t left)
{
	static const char zeros[64 * 1024];
	int fd = open(FILL, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	off_t bytes = 0;
	ssize_t n;

	need(fd >= 0);
	while ((n = write(fd, zeros, sizeof(zeros))) > 0)
		bytes += n;
	need(!ftruncate(fd, bytes > (off_t)left ? bytes - (off_t)left : 0));
	close(fd);
}

static void keep_line(void *arg, int level, const char *line)
{
	(void)level;
	if (strstr(line, "shm is not used"))
		snprintf(arg, 256, "%s", line);
}

static void where_shm_has_no_room_tcp_serves_and_the_log_says_why(void **state)
{
	struct weft_node_options options = pair_options("shm,tcp");
	struct weft_info *info;
	struct pair pair;
	char line[256] = "";
	bool told = false;

	(void)state;
	need_shm();
	mount_shm("8m");
	options.log = keep_line;
	options.log_arg = line;

	pair_open(&pair, "shm,tcp", &options);
	pair_exchange(&pair, &pair.other);

	assert_non_null(strstr(line, "shm is not used: /dev/shm has"));
	assert_int_equal(weft_info_open(&options, &info), 0);
	for (size_t i = 0; i < weft_info_count(info); i++) {
		struct weft_fabric fabric = { .size = sizeof(fabric) };

		need(!weft_info_get(info, i, &fabric));
		told |= !fabric.used && !strcmp(fabric.provider, "shm") &&
			strstr(fabric.reason, "too few");
	}
	weft_info_close(info);
	assert_true(told);
	pair_close(&pair);
}

/* A file that is longer gets its process killed. */
static void where_no_file_may_be_so_long_tcp_serves_and_the_log_says_why(void **state)
{
	struct weft_node_options options = pair_options("shm,tcp");
	struct rlimit before, limit;
	char line[256] = "";
	struct pair pair;

	(void)state;
	need_shm();
	mount_shm("64m");
	need(!getrlimit(RLIMIT_FSIZE, &before));
	limit = before;
	limit.rlim_cur = MIB;
	need(!setrlimit(RLIMIT_FSIZE, &limit));
	options.log = keep_line;
	options.log_arg = line;

	pair_open(&pair, "shm,tcp", &options);
	pair_exchange(&pair, &pair.other);

	assert_non_null(strstr(line, "RLIMIT_FSIZE"));
	pair_close(&pair);
	need(!setrlimit(RLIMIT_FSIZE, &before));
}

/* Send a body, and check that it goes over shm. */
static void send_over_shm(struct pair *pair)
{
	struct weft_path path = WEFT_PATH_INIT;
	struct pair_send send;

	pair_do(&pair->other, "recv 6 body 300000 1");
	send = pair_send(pair->peer, 6, "body", 300000, 1);
	pair_ended(send.op, WEFT_OK);
	need(!weft_op_path(send.op, &path));
	assert_string_equal(path.provider, "shm");
	pair_sent(&send);
	pair_do(&pair->other, "finish");
}

static void shm_that_fills_beside_traffic_harms_nobody(void **state)
{
	struct pair_other late;
	struct pair pair;

	(void)state;
	need_shm();
	mount_shm("64m");
	pair_open(&pair, "shm,tcp", NULL);
	send_over_shm(&pair);
	fill_shm(16 * 1024); /* for the names of other nodes */
	for (unsigned i = 0; i < 20; i++)
		pair_exchange(&pair, &pair.other);
	/* Small ones, many at once: they lie in the rings that libfabric has there. */
	for (unsigned i = 0; i < 20; i++) {
		struct pair_send sends[64];

		for (unsigned k = 0; k < PAIR_COUNT(sends); k++) {
			char key[16];

			snprintf(key, sizeof(key), "%u.%u", i, k);
			pair_do(&pair.other, "recv 7 %s %u %u", key, 3000, k);
			sends[k] = pair_send(pair.peer, 7, key, 3000, k);
		}
		for (unsigned k = 0; k < PAIR_COUNT(sends); k++)
			pair_sent(&sends[k]);
		pair_do(&pair.other, "finish");
	}
	send_over_shm(&pair);
	/* And who comes now is served over what there is. */
	pair_start(&late, "shm,tcp", NULL, pair.node);
	pair_exchange(&pair, &late);
	need(!unlink(FILL));
	pair_end(&late);
	pair_close(&pair);
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(where_shm_has_no_room_tcp_serves_and_the_log_says_why),
		TEST(where_no_file_may_be_so_long_tcp_serves_and_the_log_says_why),
		TEST(shm_that_fills_beside_traffic_harms_nobody),
	};

	if (pair_is_other(argc, argv, (const struct pair_command[]){ { NULL, NULL } }))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
