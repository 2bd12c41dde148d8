/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64];
static char path[128]; /* of the key file of the test that runs */

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/weft-key-file.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/cluster.key", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	(void)remove(path);
	return rmdir(folder);
}

static void make_key(void)
{
	struct wf_error e = { 0 };

	if (wf_key_file_make(path, &e))
		fail_msg("%s", e.text);
}

/* Write a file of @count bytes that its owner alone may read. */
static void write_file(size_t count)
{
	uint8_t bytes[2 * WF_KEY_FILE_BYTES] = { 1 };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), count);
	close(fd);
}

/* Reading fails with @code, leaves the key as it is, and says which file it is and @says. */
static void expect_refused(int code, const char *says)
{
	uint8_t key[WF_KEY_FILE_BYTES], before[WF_KEY_FILE_BYTES];
	struct wf_error e = { 0 };

	memset(key, 0x5a, sizeof(key));
	memcpy(before, key, sizeof(key));
	assert_int_equal(wf_key_file_read(path, key, &e), code);
	assert_int_equal(e.code, code);
	if (!strstr(e.text, path) || !strstr(e.text, says))
		fail_msg("'%s' lacks '%s' or '%s'", e.text, path, says);
	assert_memory_equal(key, before, sizeof(key));
}

static void a_key_that_was_made_is_read(void **state)
{
	uint8_t key[WF_KEY_FILE_BYTES] = { 0 }, again[WF_KEY_FILE_BYTES] = { 0 };
	uint8_t in_file[WF_KEY_FILE_BYTES + 1];
	struct wf_error e = { 0 };
	FILE *file;

	(void)state;
	make_key();
	assert_int_equal(wf_key_file_read(path, key, &e), 0);
	assert_int_equal(wf_key_file_read(path, again, &e), 0);
	assert_memory_equal(key, again, sizeof(key));
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fread(in_file, 1, sizeof(in_file), file), sizeof(key));
	assert_int_equal(fclose(file), 0);
	assert_memory_equal(key, in_file, sizeof(key));
}

static void two_keys_that_were_made_differ(void **state)
{
	uint8_t key[WF_KEY_FILE_BYTES] = { 0 }, other[WF_KEY_FILE_BYTES] = { 0 };
	struct wf_error e = { 0 };

	(void)state;
	make_key();
	assert_int_equal(wf_key_file_read(path, key, &e), 0);
	assert_int_equal(unlink(path), 0);
	make_key();
	assert_int_equal(wf_key_file_read(path, other, &e), 0);
	assert_memory_not_equal(key, other, sizeof(key));
}

static void a_new_key_is_readable_by_its_owner_alone(void **state)
{
	mode_t mask = umask(0); /* not even without a mask */
	struct stat file;

	(void)state;
	make_key();
	umask(mask);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0400);
}

static void make_never_overwrites_a_file(void **state)
{
	uint8_t key[WF_KEY_FILE_BYTES] = { 0 }, after[WF_KEY_FILE_BYTES] = { 0 };
	struct wf_error e = { 0 };

	(void)state;
	make_key();
	assert_int_equal(wf_key_file_read(path, key, &e), 0);
	assert_int_equal(wf_key_file_make(path, &e), -EEXIST);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(wf_key_file_read(path, after, &e), 0);
	assert_memory_equal(key, after, sizeof(key));
}

static void make_names_a_folder_that_is_missing(void **state)
{
	struct wf_error e = { 0 };
	char missing[160];

	(void)state;
	(void)snprintf(missing, sizeof(missing), "%s/no/cluster.key", folder);
	assert_int_equal(wf_key_file_make(missing, &e), -ENOENT);
	assert_non_null(strstr(e.text, missing));
}

static void a_key_is_refused_to_which_others_have_any_right(void **state)
{
	static const mode_t modes[] = { 0440, 0404, 0420, 0402, 0410, 0401, 0644, 0660, 0777 };
	char says[16];

	(void)state;
	make_key();
	for (size_t i = 0; i < WF_COUNT(modes); i++) {
		(void)snprintf(says, sizeof(says), "mode %03o", modes[i]);
		assert_int_equal(chmod(path, modes[i]), 0);
		expect_refused(-EACCES, says);
	}
}

static void a_key_may_be_writable_by_its_owner(void **state)
{
	uint8_t key[WF_KEY_FILE_BYTES];
	struct wf_error e = { 0 };

	(void)state;
	make_key();
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(wf_key_file_read(path, key, &e), 0);
}

static void a_file_of_another_length_is_refused(void **state)
{
	static const size_t counts[] = { 0, 1, WF_KEY_FILE_BYTES - 1, WF_KEY_FILE_BYTES + 1, 64 };

	(void)state;
	for (size_t i = 0; i < WF_COUNT(counts); i++) {
		write_file(counts[i]);
		expect_refused(-EINVAL, "expected a file of 32 bytes");
	}
}

static void a_key_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid())
		skip(); /* root alone can give a file away */
	make_key();
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	expect_refused(-EACCES, "belongs to user 12345");
}

static void a_folder_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	expect_refused(-EINVAL, "expected a file");
}

/* Opening a FIFO for reading blocks until somebody writes, if nothing is done about it. */
static void a_fifo_is_refused_at_once(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refused(-EINVAL, "expected a file");
}

static void a_missing_file_is_named(void **state)
{
	(void)state;
	expect_refused(-ENOENT, "No such file");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(a_key_that_was_made_is_read),
		WITH_FOLDER(two_keys_that_were_made_differ),
		WITH_FOLDER(a_new_key_is_readable_by_its_owner_alone),
		WITH_FOLDER(make_never_overwrites_a_file),
		WITH_FOLDER(make_names_a_folder_that_is_missing),
		WITH_FOLDER(a_key_is_refused_to_which_others_have_any_right),
		WITH_FOLDER(a_key_may_be_writable_by_its_owner),
		WITH_FOLDER(a_file_of_another_length_is_refused),
		WITH_FOLDER(a_key_of_another_user_is_refused),
		WITH_FOLDER(a_folder_is_refused),
		WITH_FOLDER(a_fifo_is_refused_at_once),
		WITH_FOLDER(a_missing_file_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
