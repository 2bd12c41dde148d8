/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How libfabric is loaded: which file and which functions, what a program hears
 * of one that will not do, and what becomes of its signal handlers.
 *
 * A process loads it but once, so each test runs this program again, with a
 * folder before all others in which libfabric is looked for.  What lies there
 * is made by the compiler that made this program, of stand_in.c.
 */
#include <weft/weft.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../examples/process.h"

#define THREADS 8

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *function, *version;
} versions[] = {
	{ "fi_getinfo", WF_FI_GETINFO_VERSION },
	{ "fi_freeinfo", WF_FI_FREEINFO_VERSION },
	{ "fi_dupinfo", WF_FI_DUPINFO_VERSION },
	{ "fi_fabric", WF_FI_FABRIC_VERSION },
	{ "fi_version", WF_FI_VERSION_VERSION },
};

/* The program that each test runs. */

static void mine(int number)
{
	(void)number;
}

static void of_another_thread(int number)
{
	(void)number;
}

static void (*wanted(int number))(int)
{
	return number % 3 == 0 ? SIG_DFL : number % 3 == 1 ? SIG_IGN : mine;
}

static void install_meanwhile(void)
{
	signal(SIGTERM, of_another_thread);
}

static int open_node(void)
{
	struct weft_node *node = NULL;
	int err = weft_node_open(NULL, &node);

	printf("%s: %s\n", err ? weft_strerror(err) : "opened",
	       err ? weft_error() : "");
	weft_node_close(node);
	return err;
}

static void *open_one(void *arg)
{
	(void)arg;
	(void)open_node();
	return NULL;
}

/*
 * How many handlers are not those that stood there before @count threads opened
 * a node each?
 */
static int count_changed(unsigned count)
{
	pthread_t threads[THREADS];
	int changed = 0;

	for (int i = 1; i < NSIG; i++)
		signal(i, wanted(i));
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, open_one, NULL))
			return 1;
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < NSIG; i++) {
		struct sigaction now;

		/* Some can't be had: SIGKILL, or libc's own. */
		if (sigaction(i, NULL, &now) || i == SIGKILL || i == SIGSTOP)
			continue;
		if (now.sa_handler != wanted(i)) {
			printf("signal %d has changed\n", i);
			changed++;
		}
	}
	return changed;
}

static int keep_another_threads(void)
{
	struct sigaction now;
	char at[32];

	snprintf(at, sizeof(at), "%llx",
		 (unsigned long long)(uintptr_t)install_meanwhile);
	setenv("MEANWHILE", at, 1);
	(void)open_node();
	sigaction(SIGTERM, NULL, &now);
	return now.sa_handler != of_another_thread;
}

/* @folder's libfabric is taken away after the first try. */
static int try_twice(const char *folder)
{
	char path[512];
	int err = open_node();

	printf("%s\n", weft_info_libfabric());
	snprintf(path, sizeof(path), "%s/" WF_LIBFABRIC_FILE, folder);
	unlink(path);
	return err != -ELIBACC || open_node() ||
	       !strcmp(weft_info_libfabric(), "none");
}

/* The tests. */

static int make_folder(void **state)
{
	char path[] = "/tmp/weft-test-libfabric-XXXXXX";

	*state = mkdtemp(path) ? strdup(path) : NULL;
	return !*state;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { WF_LIBFABRIC_FILE, "map" };
	char path[512];

	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", (char *)*state, names[i]);
		unlink(path);
	}
	rmdir(*state);
	free(*state);
	return 0;
}

static FILE *create(const char *folder, const char *name)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	return file;
}

/* Which version each function of the stand-in has; @getinfo: fi_getinfo's, if
 * not the usual. */
static void write_map(const char *folder, const char *getinfo)
{
	FILE *map = create(folder, "map");

	for (size_t i = 0; i < COUNT(versions); i++) {
		bool seen = false;

		for (size_t j = 0; j < i; j++)
			seen |= !strcmp(versions[i].version,
					versions[j].version);
		if (seen || !*versions[i].version)
			continue;
		fprintf(map, "%s {\n", versions[i].version);
		for (size_t j = i; j < COUNT(versions); j++)
			if (!strcmp(versions[i].version, versions[j].version) &&
			    (j || !getinfo))
				fprintf(map, "%s;\n", versions[j].function);
		fprintf(map, "};\n");
	}
	if (getinfo)
		fprintf(map, "%s { fi_getinfo; };\n", getinfo);
	fclose(map);
}

/* Compile the stand-in into @folder, by the map there. */
static void make_stand_in(const char *folder, const char *flags)
{
	const char *source = getenv("top_srcdir"), *cc = getenv("CC");
	char command[2048];

	snprintf(command, sizeof(command),
		 "%s -shared -fPIC -o %s/" WF_LIBFABRIC_FILE
		 " -Wl,-soname," WF_LIBFABRIC_FILE
		 " -Wl,--version-script=%s/map "
		 "-DWF_FI_GETINFO_VERSION='\"" WF_FI_GETINFO_VERSION
		 "\"' %s " LIBFABRIC_CFLAGS " %s/tests/unit/fabric/stand_in.c",
		 cc ? cc : "cc", folder, folder, flags, source ? source : ".");
	assert_int_equal(system(command), 0);
}

/* Run @argv to its end, where @folder's libfabric is found first. */
static void run(struct process *p, const char *folder, const char *const *argv)
{
	const char *there = getenv("LD_LIBRARY_PATH");
	char path[2048];
	const char *variables[] = { path, NULL };

	snprintf(path, sizeof(path), "LD_LIBRARY_PATH=%s:%s", folder,
		 there ? there : "");
	process_start(p, variables, argv);
	assert_true(process_wait(p, PROCESS_LIMIT_MS));
}

static void run_self(struct process *p, const char *folder, const char *what)
{
	const char *argv[] = { "/proc/self/exe", what, folder, NULL };

	run(p, folder, argv);
	print_message("%s", process_out(p));
}

static void no_handler_changes_when_a_node_is_opened(void **state)
{
	struct process p;

	write_map(*state, NULL);
	make_stand_in(*state, "");
	run_self(&p, *state, "changed");
	assert_int_equal(p.status, 0);
	assert_non_null(strstr(process_out(&p),
			       "libfabric 1.17 offers no provider here"));
	process_stop(&p);
}

static void no_handler_changes_when_threads_open_nodes_at_once(void **state)
{
	struct process p;

	write_map(*state, NULL);
	make_stand_in(*state, "");
	run_self(&p, *state, "crowd");
	assert_int_equal(p.status, 0);
	process_stop(&p);
}

static void a_handler_that_another_thread_installs_meanwhile_stays(void **state)
{
	struct process p;

	write_map(*state, NULL);
	make_stand_in(*state, "");
	run_self(&p, *state, "meanwhile");
	assert_int_equal(p.status, 0);
	process_stop(&p);
}

static void a_libfabric_that_does_not_load_is_named(void **state)
{
	struct process p;

	fclose(create(*state, WF_LIBFABRIC_FILE));
	run_self(&p, *state, "open");
	assert_int_equal(p.status, ELIBACC);
	assert_non_null(
		strstr(process_out(&p), ": libfabric can't be loaded: "));
	assert_non_null(strstr(process_out(&p), *state));
	process_stop(&p);
}

static void the_tool_names_a_libfabric_that_does_not_load(void **state)
{
	char weft[512];
	const char *info[] = { process_path("weft", weft), "info", NULL };
	const char *version[] = { weft, "--version", NULL };
	const char *options[] = { weft, "info", "--options", NULL };
	struct process p;

	fclose(create(*state, WF_LIBFABRIC_FILE));
	run(&p, *state, info);
	assert_int_equal(p.status, 1);
	assert_string_equal(process_out(&p), "");
	assert_ptr_equal(strstr(process_err(&p),
				"weft info: libfabric can't be loaded: "),
			 process_err(&p));
	process_stop(&p);
	/* What needs none of libfabric works. */
	run(&p, *state, version);
	assert_int_equal(p.status, 0);
	process_stop(&p);
	run(&p, *state, options);
	assert_int_equal(p.status, 0);
	process_stop(&p);
}

static void a_libfabric_that_is_there_later_serves(void **state)
{
	struct process p;

	fclose(create(*state, WF_LIBFABRIC_FILE));
	run_self(&p, *state, "twice");
	assert_int_equal(p.status, 0);
	assert_non_null(strstr(process_out(&p), "\nnone\n"));
	process_stop(&p);
}

static void a_function_that_libfabric_lacks_is_named(void **state)
{
	struct process p;

	if (!*WF_FI_GETINFO_VERSION) {
		print_message("skip: the libfabric here has no versions of "
			      "functions\n");
		skip();
	}
	write_map(*state, "FABRIC_0.9");
	make_stand_in(*state, "");
	run_self(&p, *state, "open");
	assert_int_equal(p.status, ELIBBAD);
	assert_non_null(
		strstr(process_out(&p),
		       "/" WF_LIBFABRIC_FILE
		       " is not the libfabric that weft was built for: it has "
		       "no fi_getinfo of version " WF_FI_GETINFO_VERSION));
	process_stop(&p);
}

static void a_later_version_of_a_function_is_not_called(void **state)
{
	struct process p;

	if (!*WF_FI_GETINFO_VERSION) {
		print_message("skip: the libfabric here has no versions of "
			      "functions\n");
		skip();
	}
	write_map(*state, "FABRIC_99.0");
	make_stand_in(*state, "-DLATER");
	run_self(&p, *state, "open");
	assert_int_equal(p.status, ENODATA);
	assert_non_null(strstr(process_out(&p),
			       "libfabric 1.17 offers no provider here"));
	process_stop(&p);
}

static int run_as(const char *what, const char *folder)
{
	if (!strcmp(what, "changed"))
		return count_changed(1);
	if (!strcmp(what, "crowd"))
		return count_changed(THREADS);
	if (!strcmp(what, "meanwhile"))
		return keep_another_threads();
	if (!strcmp(what, "twice"))
		return try_twice(folder);
	return -open_node();
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(no_handler_changes_when_a_node_is_opened),
		TEST(no_handler_changes_when_threads_open_nodes_at_once),
		TEST(a_handler_that_another_thread_installs_meanwhile_stays),
		TEST(a_libfabric_that_does_not_load_is_named),
		TEST(the_tool_names_a_libfabric_that_does_not_load),
		TEST(a_libfabric_that_is_there_later_serves),
		TEST(a_function_that_libfabric_lacks_is_named),
		TEST(a_later_version_of_a_function_is_not_called),
	};

	if (argc == 3)
		return run_as(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
