/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft inside a program that was built with a sanitizer: a crash is the
 * sanitizer's to report, which installed its handlers before any other code
 * ran.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../examples/process.h"

/* It asks for the version first, so libfabric is loaded with all the handlers
 * of its parts. */
static const char program[] =
	"#include <weft/weft.h>\n"
	"#include <stdio.h>\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	volatile int *nothing = argc > 9 ? (int *)argv : NULL;\n"
	"	struct weft_node *node;\n"
	"	puts(weft_info_libfabric());\n"
	"	if (weft_node_open(NULL, &node))\n"
	"		return 3;\n"
	"	puts(\"open\");\n"
	"	fflush(stdout);\n"
	"	return *nothing;\n"
	"}\n";

static bool sanitizers_mix(void)
{
#ifdef __SANITIZE_THREAD__
	print_message(
		"skip: the library here is built with another sanitizer\n");
	return false;
#endif
	return true;
}

/* Compile @text with the sanitizer and @options into @path. */
static bool compile(const char *text, const char *options, const char *path)
{
	const char *cc = getenv("CC");
	char command[2048];
	FILE *compiler;

	snprintf(command, sizeof(command),
		 "%s -g -fsanitize=address -o %s -xc - -xnone %s 2>&1",
		 cc ? cc : "cc", path, options);
	compiler = popen(command, "w");
	assert_non_null(compiler);
	fputs(text, compiler);
	return !pclose(compiler);
}

static bool has_sanitizer(const char *path)
{
	if (compile("int main(void) { return 0; }\n", "", path))
		return true;
	print_message("skip: the compiler here has no address sanitizer\n");
	return false;
}

static void make_program(const char *path)
{
	const char *source = getenv("top_srcdir");
	char options[1600], library[512];

	process_path(".libs", library);
	snprintf(options, sizeof(options),
		 "-I%s/include %s/libweft.so -Wl,-rpath,%s",
		 source ? source : ".", library, library);
	assert_true(compile(program, options, path));
}

static void a_crash_of_a_program_with_a_node_is_reported(void **state)
{
	static const char *const variables[] = {
		"ASAN_OPTIONS=exitcode=57:symbolize=0:detect_leaks=0",
		NULL,
	};
	char path[] = "/tmp/weft-test-sanitizer-XXXXXX";
	const char *run[] = { path, NULL };
	int fd = mkstemp(path);
	struct process p;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	if (!sanitizers_mix() || !has_sanitizer(path)) {
		unlink(path);
		skip();
	}
	make_program(path);
	process_start(&p, variables, run);
	assert_true(process_wait(&p, PROCESS_LIMIT_MS));
	unlink(path);
	print_message("%s", process_err(&p));
	assert_non_null(strstr(process_err(&p),
			       "AddressSanitizer: SEGV on unknown address"));
	assert_non_null(strstr(process_out(&p), "\nopen\n"));
	assert_int_equal(p.status, 57);
	process_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crash_of_a_program_with_a_node_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
