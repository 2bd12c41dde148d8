/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/secret_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE_BYTES ((size_t)sysconf(_SC_PAGESIZE))
#define PAGE_SECRETS (PAGE_BYTES / WF_SECRET_BYTES)
#define MANY 5000

static const struct wf_secret zeros;

/* Has the mapping that holds @at the flag @flag, as the kernel abbreviates it? */
static bool has_flag(const void *at, const char *flag)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	bool inside = false, has = false;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (unsigned long)at >= from && (unsigned long)at < to;
		if (inside && !strncmp(line, "VmFlags:", 8))
			has = strstr(line, flag);
	}
	(void)fclose(maps);
	return has;
}

/* Is the page of @at mapped? */
static bool is_mapped(const void *at)
{
	unsigned char in_core;

	return !mincore((void *)((uintptr_t)at & ~(PAGE_BYTES - 1)), 1, &in_core);
}

static void a_secret_has_zeros_also_where_another_was(void **state)
{
	struct wf_secret *first = wf_secret_heap_take(), *kept = wf_secret_heap_take(), *again;

	(void)state;
	assert_memory_equal(first, &zeros, sizeof(zeros));
	memset(first, 0xa5, sizeof(*first));
	wf_secret_heap_give(first);
	assert_memory_equal(first, &zeros, sizeof(zeros));

	again = wf_secret_heap_take();
	assert_ptr_equal(again, first);
	assert_memory_equal(again, &zeros, sizeof(zeros));
	wf_secret_heap_give(again);
	wf_secret_heap_give(kept);
}

static void nothing_is_given_back_without_harm(void **state)
{
	(void)state;
	wf_secret_heap_give(NULL);
}

static void many_secrets_share_pages_and_no_bytes(void **state)
{
	static struct wf_secret *secrets[MANY];

	(void)state;
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < MANY; i++) {
			secrets[i] = wf_secret_heap_take();
			memset(secrets[i], (int)(i % 255 + 1), sizeof(*secrets[i]));
		}
		/* Others take the place of every third. */
		for (size_t i = 0; i < MANY; i += 3)
			wf_secret_heap_give(secrets[i]);
		for (size_t i = 0; i < MANY; i += 3) {
			secrets[i] = wf_secret_heap_take();
			memset(secrets[i], (int)(i % 255 + 1), sizeof(*secrets[i]));
		}
		for (size_t i = 0; i < MANY; i++) {
			uint8_t expected[WF_SECRET_BYTES];

			memset(expected, (int)(i % 255 + 1), sizeof(expected));
			assert_memory_equal(secrets[i], expected, sizeof(expected));
		}
		for (size_t i = 0; i < MANY; i++)
			wf_secret_heap_give(secrets[round == 1 ? MANY - 1 - i : i]);
		for (size_t i = 0; i < MANY; i++)
			assert_false(is_mapped(secrets[i]));
	}
}

static void a_page_holds_as_many_secrets_as_fit(void **state)
{
	struct wf_secret **secrets = test_calloc(PAGE_SECRETS + 1, sizeof(*secrets));
	uintptr_t first;

	(void)state;
	for (size_t i = 0; i <= PAGE_SECRETS; i++)
		secrets[i] = wf_secret_heap_take();
	first = (uintptr_t)secrets[0] / PAGE_BYTES;
	for (size_t i = 0; i < PAGE_SECRETS; i++)
		assert_int_equal((uintptr_t)secrets[i] / PAGE_BYTES, first);
	assert_int_not_equal((uintptr_t)secrets[PAGE_SECRETS] / PAGE_BYTES, first);
	for (size_t i = 0; i <= PAGE_SECRETS; i++)
		wf_secret_heap_give(secrets[i]);
	test_free(secrets);
}

static void pages_of_secrets_are_left_out_of_core_files_and_of_children(void **state)
{
	struct wf_secret *secret = wf_secret_heap_take();

	(void)state;
	assert_true(has_flag(secret, " dd"));
	assert_true(has_flag(secret, " wf"));
	assert_false(has_flag(&secret, " dd"));
	wf_secret_heap_give(secret);
}

/* A child tells by its exit status which of these did not hold. */
static int look_in_child(struct wf_secret *secret)
{
	struct wf_secret *own;

	if (memcmp(secret, &zeros, sizeof(zeros)))
		return 1;
	own = wf_secret_heap_take();
	if (!own || own == secret || memcmp(own, &zeros, sizeof(zeros)))
		return 2;
	memset(own, 0x5a, sizeof(*own));
	wf_secret_heap_give(own);
	if (memcmp(own, &zeros, sizeof(zeros)))
		return 3;
	wf_secret_heap_give(secret);
	return is_mapped(secret) ? 4 : 0;
}

static void a_forked_child_has_zeros_and_secrets_of_its_own(void **state)
{
	struct wf_secret *secret = wf_secret_heap_take(), copy;
	pid_t child;
	int status;

	(void)state;
	memset(secret, 0xa5, sizeof(*secret));
	copy = *secret;
	child = fork();
	if (!child)
		_exit(look_in_child(secret));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_memory_equal(secret, &copy, sizeof(copy));
	wf_secret_heap_give(secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_has_zeros_also_where_another_was),
		cmocka_unit_test(nothing_is_given_back_without_harm),
		cmocka_unit_test(many_secrets_share_pages_and_no_bytes),
		cmocka_unit_test(a_page_holds_as_many_secrets_as_fit),
		cmocka_unit_test(pages_of_secrets_are_left_out_of_core_files_and_of_children),
		cmocka_unit_test(a_forked_child_has_zeros_and_secrets_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
