/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of the environment, read while another thread changes others. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/environment.h"
#include "util/fork.h"

#define ROUNDS 1000
#define VARIABLES 200 /* each makes the environment longer, so that libc moves it */

static atomic_bool all_changed;

/* Returns how many were set or unset. */
static void *change_others(void *arg)
{
	static const char *const prefixes[] = { "WEFT_TEST_", NULL };
	uintptr_t changed = 0;
	char name[32];

	(void)arg;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < VARIABLES; i++) {
			(void)snprintf(name, sizeof(name), "WEFT_TEST_%d_%d", round, i);
			wf_fork_hold();
			changed += !setenv(name, "set", 1);
			wf_fork_let();
		}
		wf_fork_hold();
		changed += wf_environment_forget(prefixes);
		wf_fork_let();
	}
	atomic_store(&all_changed, true);
	return (void *)changed;
}

static void a_variable_is_read_while_another_thread_changes_others(void **state)
{
	pthread_t other;
	void *changed;

	(void)state;
	assert_int_equal(setenv("WEFT_STAYS", "yes", 1), 0);
	assert_int_equal(pthread_create(&other, NULL, change_others, NULL), 0);
	while (!atomic_load(&all_changed)) {
		assert_string_equal(wf_environment_get("WEFT_STAYS"), "yes");
		/* One that is not there is looked for among all. */
		assert_null(wf_environment_get("WEFT_STAYS_NOT"));
	}
	pthread_join(other, &changed);
	assert_int_equal((uintptr_t)changed, 2 * ROUNDS * VARIABLES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_variable_is_read_while_another_thread_changes_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
