/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with more rights than its caller: what the caller wrote into the
 * environment has no effect on it, neither on weft nor on libfabric.
 *
 * The program is a copy of this one, run by another user; it tells what it
 * found by its exit status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#define CALLER 65534 /* a user without rights; needs no name */

/* What the copy found, as bits of its exit status. */
enum found {
	FOUND_RIGHTS = 1,    /* it has more rights than its caller */
	FOUND_INTRUDER = 2,  /* a library that the environment names was loaded */
	FOUND_VARIABLES = 4, /* variables of libfabric's were left */
	FOUND_REFUSAL = 8,   /* no node could be opened */
};

static char folder[] = "/tmp/weft-privileges-XXXXXX";
static char program[64], library[64];

/* The copy's part. */

static int look_around(void)
{
	struct weft_node_options options = { .size = sizeof(options), .mode = WEFT_MANUAL };
	struct weft_node *node;
	struct weft_cuda cuda = { .size = sizeof(cuda) };
	struct weft_info *info;
	int found = getauxval(AT_SECURE) ? FOUND_RIGHTS : 0;

	if (weft_node_open(&options, &node)) {
		fprintf(stderr, "%s\n", weft_error());
		found |= FOUND_REFUSAL;
	} else {
		weft_node_close(node);
	}
	if (!weft_info_open(NULL, &info)) {
		weft_info_cuda(info, &cuda); /* loads the driver */
		weft_info_close(info);
	}
	if (getenv("INTRUDED"))
		found |= FOUND_INTRUDER;
	if (getenv("FI_PROVIDER_PATH") || getenv("FI_PROVIDER"))
		found |= FOUND_VARIABLES;
	return found;
}

/* The test's part. */

static void copy(const char *from, const char *to, mode_t mode)
{
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	char bytes[65536];
	size_t got;

	assert_non_null(in);
	assert_non_null(out);
	while ((got = fread(bytes, 1, sizeof(bytes), in)))
		assert_int_equal(fwrite(bytes, 1, got, out), got);
	assert_int_equal(fclose(out), 0);
	fclose(in);
	assert_int_equal(chmod(to, mode), 0);
}

/* Run the copy, with rights of this process if @privileged, as the caller, who sets @variables. */
static int found_with(bool privileged, const char *const *variables)
{
	char *const argv[] = { program, "inside", NULL };
	int status;
	pid_t child;

	assert_int_equal(chmod(program, privileged ? 04755 : 0755), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (setresgid(CALLER, CALLER, CALLER) || setresuid(CALLER, CALLER, CALLER))
			_exit(127);
		execve(program, argv, (char *const *)(uintptr_t)variables);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_program_of_its_callers_rights_obeys_the_environment(void **state)
{
	char path[96], cuda[96];
	const char *const all[] = { path, "FI_PROVIDER=none-such", NULL };
	const char *const of_weft[] = { "WEFT_PROVIDER=none-such", NULL };
	const char *const of_cuda[] = { cuda, NULL };

	(void)state;
	snprintf(path, sizeof(path), "FI_PROVIDER_PATH=%s", folder);
	snprintf(cuda, sizeof(cuda), "WEFT_CUDA=%s", library);

	assert_int_equal(found_with(false, of_weft), FOUND_REFUSAL);
	assert_int_equal(found_with(false, of_cuda), FOUND_INTRUDER);
	/* A libfabric that loads no providers from files has no intruder to show. */
	assert_int_equal(found_with(false, all) & ~FOUND_INTRUDER, FOUND_VARIABLES | FOUND_REFUSAL);
}

static void a_program_with_more_rights_than_its_caller_does_not(void **state)
{
	char path[96], cuda[96];
	const char *const all[] = { path, cuda, "FI_PROVIDER=none-such", "WEFT_PROVIDER=none-such",
				    "WEFT_POOL_BYTES=nonsense", NULL };

	(void)state;
	snprintf(path, sizeof(path), "FI_PROVIDER_PATH=%s", folder);
	snprintf(cuda, sizeof(cuda), "WEFT_CUDA=%s", library);

	assert_int_equal(found_with(true, all), FOUND_RIGHTS);
}

/* Why the test can't be made here; NULL: it can. */
static const char *prepare(void)
{
	const char *const none[] = { NULL };
	char built[4096];
	struct statvfs v;

	if (geteuid())
		return "only root can make a program that has more rights than its caller";
	if (!mkdtemp(folder) || chmod(folder, 0755))
		return "no temporary folder";
	snprintf(program, sizeof(program), "%s/program", folder);
	snprintf(library, sizeof(library), "%s/libintruder-fi.so", folder);
	if (statvfs(folder, &v) || v.f_flag & (ST_NOSUID | ST_NOEXEC))
		return "the temporary folder is mounted without set-user-ID programs";
	snprintf(built, sizeof(built), "%s/tests/fabric/.libs/libintruder-fi.so",
		 getenv("top_builddir"));
	copy(built, library, 0755);
	copy("/proc/self/exe", program, 0755);
	if (!(found_with(true, none) & FOUND_RIGHTS))
		return "this system gives set-user-ID programs no more rights";
	return NULL;
}

static void tidy_up(void)
{
	unlink(program);
	unlink(library);
	rmdir(folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_of_its_callers_rights_obeys_the_environment),
		cmocka_unit_test(a_program_with_more_rights_than_its_caller_does_not),
	};
	const char *why_not;
	int failed;

	if (argc == 2 && !strcmp(argv[1], "inside"))
		return look_around();
	why_not = prepare();
	if (why_not) {
		printf("skipped: %s\n", why_not);
		tidy_up();
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tidy_up();
	return failed;
}
