/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of loading the CUDA driver.  It is loaded once in a process, so each
 * question is asked in a process of its own.
 */
#include "memory/kind.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <weft/weft.h>
#include "tests/cuda/gpu.h"

struct outcome {
	enum wf_cuda_driver_state state;
	struct wf_error said;
	int version, devices, need; /* @need: what a function that needs the driver says */
	char text[WF_ERROR_BYTES];  /* and its sentence */
};

/* What @look finds in a process with FAKE_CUDA=@fake, that it is asked of. */
static void ask(const char *fake, void (*look)(const char *setting, struct outcome *o),
		const char *setting, struct outcome *o)
{
	int ends[2], status;
	pid_t child;

	memset(o, 0, sizeof(*o));
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		setenv("FAKE_CUDA", fake, 1);
		look(setting, o);
		_exit(write(ends[1], o, sizeof(*o)) != sizeof(*o));
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], o, sizeof(*o)), sizeof(*o));
	close(ends[0]);
}

static void load(const char *setting, struct outcome *o)
{
	struct wf_cuda_memory m;
	struct wf_error e = { 0 };

	o->state = wf_cuda_driver_load(setting, &o->said);
	o->version = wf_cuda_driver_version();
	o->devices = wf_cuda_driver_device_count();
	o->need = wf_cuda_find(o, &m, &e);
	strcpy(o->text, e.text);
}

static void expect(const struct outcome *o, enum wf_cuda_driver_state state, const char *sentence)
{
	print_message("%s: %s\n", wf_cuda_driver_word(o->state), o->said.text);
	assert_string_equal(wf_cuda_driver_word(o->state), wf_cuda_driver_word(state));
	assert_non_null(strstr(o->said.text, sentence));
	if (state != WF_CUDA_READY)
		assert_int_equal(o->said.code, -ENODEV);
	assert_int_equal(o->need, state == WF_CUDA_READY ? 0 : -ENODEV);
	assert_int_equal(o->devices, state == WF_CUDA_READY ? 2 : 0);
}

static void a_driver_that_is_ready_says_its_version_and_devices(void **state)
{
	struct outcome o;

	(void)state;
	ask("", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_READY, "libcuda.so.1, CUDA 13.0, 2 devices");
	assert_int_equal(o.version, 13000);
	assert_int_equal(o.said.code, 0);
}

static void a_driver_too_old_to_be_asked_for_functions_has_them_all_the_same(void **state)
{
	char file[600];
	struct outcome o;

	(void)state;
	snprintf(file, sizeof(file), "%s", gpu_fake_file());
	strcpy(strstr(file, "libcuda.so.1"), "libcuda_old.so");
	ask("version=11020", load, file, &o);
	expect(&o, WF_CUDA_READY, "CUDA 11.2");
}

static void no_driver_names_the_file_that_is_missing(void **state)
{
	struct outcome o;

	(void)state;
	ask("", load, "/nowhere/libcuda.so.1", &o);
	expect(&o, WF_CUDA_NO_DRIVER, "no CUDA driver: /nowhere/libcuda.so.1");
}

static void a_setting_keeps_the_driver_from_being_looked_for(void **state)
{
	struct outcome o;

	(void)state;
	ask("", load, "no", &o);
	assert_int_equal(o.state, WF_CUDA_OFF);
	assert_string_equal(o.said.text, "CUDA is not looked for: WEFT_CUDA=no");
	assert_int_equal(o.need, -ENODEV);
	assert_string_equal(o.text, "the CUDA driver was not loaded");
}

static void a_driver_without_devices_says_what_hides_them(void **state)
{
	struct outcome o;

	(void)state;
	unsetenv("CUDA_VISIBLE_DEVICES");
	ask("devices=0", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_NO_DEVICE, "libcuda.so.1 finds no device");
	assert_null(strstr(o.said.text, "VISIBLE"));
	setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
	ask("devices=0", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_NO_DEVICE, "finds no device; CUDA_VISIBLE_DEVICES=-1");
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static void a_driver_that_is_too_old_is_told_from_one_that_lacks_something(void **state)
{
	struct outcome o;

	(void)state;
	ask("version=10020,without=cuIpcOpenMemHandle", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_TOO_OLD, "is of CUDA 10.2, and weft needs 11.0");
	ask("without=cuEventQuery", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_INCOMPLETE, "libcuda.so.1 has no cuEventQuery");
}

static void functions_of_newer_drivers_are_not_needed(void **state)
{
	struct outcome o;

	(void)state;
	ask("without=cuMemGetHandleForAddressRange", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_READY, "2 devices");
}

static void a_driver_that_does_not_start_says_why(void **state)
{
	struct outcome o;

	(void)state;
	ask("init=999", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_FAILED, "does not start: no name (999)");
	ask("init=34", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_FAILED, "CUDA_ERROR_STUB_LIBRARY (34); it is a toolkit's stub");
	ask("fail=cuDeviceGetCount:1:2", load, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_FAILED, "does not count its devices: CUDA_ERROR_OUT_OF_MEMORY (2)");
}

static void a_library_that_is_no_cuda_driver_is_incomplete(void **state)
{
	char file[600];
	struct outcome o;

	(void)state;
	/* Any library will do, and this one is there. */
	snprintf(file, sizeof(file), "%s/.libs/libweft.so", getenv("top_builddir"));
	ask("", load, file, &o);
	expect(&o, WF_CUDA_INCOMPLETE, "libweft.so has no cuInit");
}

static void load_and_fork(const char *setting, struct outcome *o)
{
	int ends[2], status;

	load(setting, o);
	if (o->state != WF_CUDA_READY || pipe(ends))
		_exit(1);
	/* The driver aborts if it is called here. */
	if (!fork()) {
		struct wf_queue *queue = NULL;

		load(setting, o);
		if (wf_queue_open(0, &queue, NULL) != -EOWNERDEAD || o->devices)
			_exit(1);
		_exit(write(ends[1], o, sizeof(*o)) != sizeof(*o));
	}
	wait(&status);
	if (status || read(ends[0], o, sizeof(*o)) != sizeof(*o))
		_exit(1);
}

static void a_forked_child_never_calls_its_parents_driver(void **state)
{
	struct outcome o;

	(void)state;
	ask("", load_and_fork, gpu_fake_file(), &o);
	assert_int_equal(o.state, WF_CUDA_FORKED);
	assert_int_equal(o.said.code, -EOWNERDEAD);
	assert_int_equal(o.need, -EOWNERDEAD);
	assert_string_equal(o.text, "this process is a forked child: the CUDA driver is its parent's");
}

static void turn_off_and_fork(const char *setting, struct outcome *o)
{
	int ends[2], status;

	if (wf_cuda_driver_load("no", NULL) != WF_CUDA_OFF || pipe(ends))
		_exit(1);
	if (!fork()) {
		load(setting, o);
		_exit(write(ends[1], o, sizeof(*o)) != sizeof(*o));
	}
	wait(&status);
	if (status || read(ends[0], o, sizeof(*o)) != sizeof(*o))
		_exit(1);
}

static void a_child_of_a_process_that_had_not_loaded_it_may(void **state)
{
	struct outcome o;

	(void)state;
	ask("", turn_off_and_fork, gpu_fake_file(), &o);
	expect(&o, WF_CUDA_READY, "2 devices");
}

struct loader {
	const char *setting;
	enum wf_cuda_driver_state state;
	struct wf_error said;
};

static void *load_in_thread(void *arg)
{
	struct loader *l = arg;

	l->state = wf_cuda_driver_load(l->setting, &l->said);
	return NULL;
}

static void load_at_once(const char *setting, struct outcome *o)
{
	struct loader each[8];
	pthread_t threads[WF_COUNT(each)];

	for (size_t i = 0; i < WF_COUNT(each); i++) {
		each[i] = (struct loader){ .setting = setting };
		pthread_create(&threads[i], NULL, load_in_thread, &each[i]);
	}
	for (size_t i = 0; i < WF_COUNT(each); i++)
		pthread_join(threads[i], NULL);
	load(setting, o);
	for (size_t i = 0; i < WF_COUNT(each); i++)
		if (each[i].state != o->state || strcmp(each[i].said.text, o->said.text))
			_exit(1);
	if (gpu_open(false))
		_exit(2);
	o->need = (int)gpu.fake_cuda_calls("cuInit");
}

static void threads_that_ask_at_once_load_it_once(void **state)
{
	struct outcome o;

	(void)state;
	ask("", load_at_once, gpu_fake_file(), &o);
	assert_int_equal(o.state, WF_CUDA_READY);
	assert_int_equal(o.need, 1);
}

static bool is_loaded(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];
	bool found = false;

	while (fgets(line, sizeof(line), maps))
		found = found || strstr(line, "libcuda");
	fclose(maps);
	return found;
}

static void open_a_node(const char *setting, struct outcome *o)
{
	struct weft_node *node;
	struct wf_kind_place place;

	setenv("WEFT_CUDA", setting, 1);
	setenv("WEFT_PROVIDER", "tcp", 1);
	unsetenv("FI_PROVIDER");
	if (weft_node_open(NULL, &node) || is_loaded())
		_exit(1);
	weft_node_close(node);
	/* The host's memory is what the program says it is. */
	if (wf_kind_find(1, 0, o, 1, setting, &place, NULL) || is_loaded())
		_exit(2);
	if (wf_kind_find(2, 0, o, 1, setting, &place, &o->said) != -EINVAL || !is_loaded())
		_exit(3);
}

static void nothing_is_loaded_before_memory_of_a_device_comes(void **state)
{
	struct outcome o;

	(void)state;
	ask("", open_a_node, gpu_fake_file(), &o);
	assert_non_null(strstr(o.said.text, "is memory of the host, not of CUDA device 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_driver_that_is_ready_says_its_version_and_devices),
		cmocka_unit_test(a_driver_too_old_to_be_asked_for_functions_has_them_all_the_same),
		cmocka_unit_test(no_driver_names_the_file_that_is_missing),
		cmocka_unit_test(a_setting_keeps_the_driver_from_being_looked_for),
		cmocka_unit_test(a_driver_without_devices_says_what_hides_them),
		cmocka_unit_test(a_driver_that_is_too_old_is_told_from_one_that_lacks_something),
		cmocka_unit_test(functions_of_newer_drivers_are_not_needed),
		cmocka_unit_test(a_driver_that_does_not_start_says_why),
		cmocka_unit_test(a_library_that_is_no_cuda_driver_is_incomplete),
		cmocka_unit_test(a_forked_child_never_calls_its_parents_driver),
		cmocka_unit_test(a_child_of_a_process_that_had_not_loaded_it_may),
		cmocka_unit_test(threads_that_ask_at_once_load_it_once),
		cmocka_unit_test(nothing_is_loaded_before_memory_of_a_device_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
