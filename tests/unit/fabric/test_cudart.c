/* SPDX-License-Identifier: BSD-2-Clause */
/* What is told of a libfabric by what stands in its file. */
#include "fabric/cudart.h"
#include "fabric/libfabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char text[WF_CUDART_TEXT_BYTES];

/* Of a file with these bytes. */
static enum wf_cudart_state look(const char *bytes, size_t count)
{
	char file[] = "/tmp/weft-test-cudart-XXXXXX";
	int fd = mkstemp(file);
	enum wf_cudart_state state;

	assert_int_equal(write(fd, bytes, count), count);
	state = wf_cudart_look(file, text);
	print_message("%s\n", text);
	close(fd);
	unlink(file);
	return state;
}

#define LOOK(bytes) look(bytes, sizeof(bytes))

static void the_one_in_use_is_looked_at(void **state)
{
	(void)state;
	assert_int_equal(wf_libfabric_load(NULL), 0);
	assert_int_not_equal(wf_cudart_look(NULL, text), WF_CUDART_UNKNOWN);
	print_message("%s\n", text);
	assert_non_null(strstr(text, "libfabric"));
}

static void a_program_that_names_no_cuda_library_was_built_without(void **state)
{
	(void)state;
	assert_int_equal(LOOK("nothing\0here"), WF_CUDART_ABSENT);
	assert_non_null(strstr(text, " was built without CUDA"));
	/* Neither a sentence nor another library's name is one. */
	assert_int_equal(LOOK("x\0Failed to dlopen libcudart.so\n\0"), WF_CUDART_ABSENT);
	assert_int_equal(LOOK("x\0libcudart.so is missing\0libcudart.so-like\0"), WF_CUDART_ABSENT);
	/* Nor what the file ends in. */
	assert_int_equal(look("x\0libcudart.so", 14), WF_CUDART_ABSENT);
}

static void a_library_that_is_missing_is_named(void **state)
{
	(void)state;
	assert_int_equal(LOOK("x\0Failed: libcudart.so\n\0libcudart.so.999\0libcuda.so.1\0"),
			 WF_CUDART_MISSING);
	assert_non_null(strstr(text, "it asks for libcudart.so.999, of just this name"));
	assert_int_equal(LOOK("x\0libcuda.so.998\0"), WF_CUDART_MISSING);
	assert_non_null(strstr(text, "it asks for libcuda.so.998,"));
}

static void libraries_that_are_there_are_named(void **state)
{
	(void)state;
	/* The software driver is both. */
	assert_int_equal(LOOK("x\0libcudart.so\0libcuda.so.1\0"), WF_CUDART_FOUND);
	assert_non_null(strstr(text, "finds libcudart.so and libcuda.so.1"));
	assert_int_equal(LOOK("x\0libcuda.so\0"), WF_CUDART_FOUND);
	assert_non_null(strstr(text, "finds libcuda.so"));
}

static void a_file_that_cannot_be_read_says_so(void **state)
{
	(void)state;
	assert_int_equal(wf_cudart_look("/nowhere/libfabric.so.1", text), WF_CUDART_UNKNOWN);
	assert_string_equal(text, "/nowhere/libfabric.so.1 can't be read, so nobody knows if it "
				  "was built with CUDA");
	assert_int_equal(look("", 0), WF_CUDART_UNKNOWN);
}

/* Begin again where the software driver is found by its name. */
static void begin_again(char **argv)
{
	const char *build = getenv("top_builddir");
	const char *there = getenv("LD_LIBRARY_PATH");
	char path[1200];

	snprintf(path, sizeof(path), "%s/tests/cuda/fake/.libs:%s", build ? build : ".",
		 there ? there : "");
	/* Where libraries are looked for is settled when a program begins. */
	if (there && strstr(there, "cuda/fake/.libs"))
		return;
	setenv("LD_LIBRARY_PATH", path, 1);
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_in_use_is_looked_at),
		cmocka_unit_test(a_program_that_names_no_cuda_library_was_built_without),
		cmocka_unit_test(a_library_that_is_missing_is_named),
		cmocka_unit_test(libraries_that_are_there_are_named),
		cmocka_unit_test(a_file_that_cannot_be_read_says_so),
	};

	(void)argc;
	begin_again(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
