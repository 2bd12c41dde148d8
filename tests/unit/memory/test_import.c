/* SPDX-License-Identifier: BSD-2-Clause */
/* Mappings of other processes' device memory; the software driver lets a process map its own. */
#include "memory/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cuda/gpu.h"

#define NOW_NS (5 * WF_NS_PER_S)

static struct wf_imports imports;
static struct wf_cuda_export export;
static struct wf_error e;
static void *memory;

static int begin(void **state)
{
	(void)state;
	memory = gpu_take(0, MIB);
	assert_int_equal(wf_cuda_export(memory, &export, &e), 0);
	wf_imports_init(&imports);
	return 0;
}

static int end(void **state)
{
	(void)state;
	wf_imports_fini(&imports);
	gpu_give(0, memory);
	assert_int_equal(gpu.fake_cuda_left(), 0);
	return 0;
}

static struct wf_import *take(uint64_t number)
{
	struct wf_import *import;

	assert_int_equal(wf_imports_take(&imports, 0, &export.handle, number, &import, &e), 0);
	return import;
}

static unsigned maps(void)
{
	return gpu.fake_cuda_calls("cuIpcOpenMemHandle");
}

static unsigned unmaps(void)
{
	return gpu.fake_cuda_calls("cuIpcCloseMemHandle");
}

static void an_allocation_in_use_is_mapped_once_and_as_large_as_it_is(void **state)
{
	unsigned before = maps();
	struct wf_import *one = take(export.number), *other = take(export.number);

	(void)state;
	assert_ptr_equal(one, other);
	assert_int_equal(maps() - before, 1);
	assert_int_equal(one->bytes, MIB);
	gpu_fill(0, memory, MIB, 3);
	assert_true(gpu_holds(0, one->start, MIB, 3));
	wf_imports_give(&imports, one, NOW_NS);
	assert_int_equal(wf_imports_trim(&imports, NOW_NS + WF_IMPORT_KEPT_NS), 0);
	assert_true(gpu_holds(0, other->start, MIB, 3));
	wf_imports_give(&imports, other, NOW_NS);
}

static void a_mapping_is_kept_for_a_while_and_used_again(void **state)
{
	unsigned before = maps(), closed = unmaps();

	(void)state;
	wf_imports_give(&imports, take(export.number), NOW_NS);
	assert_int_equal(wf_imports_trim(&imports, NOW_NS + WF_IMPORT_KEPT_NS - 1),
			 NOW_NS + WF_IMPORT_KEPT_NS);
	wf_imports_give(&imports, take(export.number), NOW_NS + 5);
	assert_int_equal(wf_imports_trim(&imports, NOW_NS + WF_IMPORT_KEPT_NS),
			 NOW_NS + WF_IMPORT_KEPT_NS + 5);
	assert_int_equal(maps() - before, 1);
	assert_int_equal(unmaps(), closed);
	assert_int_equal(wf_imports_trim(&imports, NOW_NS + WF_IMPORT_KEPT_NS + 5), 0);
	assert_int_equal(unmaps() - closed, 1);
}

static void an_allocation_in_the_place_of_another_is_mapped_anew(void **state)
{
	unsigned before = maps();

	(void)state;
	wf_imports_give(&imports, take(export.number), NOW_NS);
	wf_imports_give(&imports, take(export.number + 1), NOW_NS);
	assert_int_equal(maps() - before, 2);
}

static void beyond_a_number_no_mapping_is_kept(void **state)
{
	struct wf_import *used[WF_IMPORTS_MAX + 2];
	unsigned closed = unmaps();

	(void)state;
	for (uint64_t i = 0; i < WF_COUNT(used); i++)
		used[i] = take(i);
	for (uint64_t i = 0; i < WF_COUNT(used); i++)
		wf_imports_give(&imports, used[i], NOW_NS);
	assert_int_equal(unmaps() - closed, 2);
	assert_int_equal(imports.count, WF_IMPORTS_MAX);
}

static void memory_that_can_not_be_mapped_leaves_nothing(void **state)
{
	struct wf_cuda_driver_ipc_handle wrong = { { 0 } };
	struct wf_import *import;

	(void)state;
	assert_int_not_equal(wf_imports_take(&imports, 0, &wrong, 1, &import, &e), 0);
	assert_non_null(strstr(e.text, "opening another process's memory on CUDA device 0"));
	gpu.fake_cuda_fail("cuPointerGetAttributes", 1, CU_INVALID_VALUE);
	assert_int_not_equal(wf_imports_take(&imports, 0, &export.handle, 1, &import, &e), 0);
	assert_int_equal(imports.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(an_allocation_in_use_is_mapped_once_and_as_large_as_it_is),
		TEST(a_mapping_is_kept_for_a_while_and_used_again),
		TEST(an_allocation_in_the_place_of_another_is_mapped_anew),
		TEST(beyond_a_number_no_mapping_is_kept),
		TEST(memory_that_can_not_be_mapped_leaves_nothing),
	};
	int status;

	setenv("FAKE_CUDA", "own-ipc", 1);
	status = gpu_begin(false);
	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
