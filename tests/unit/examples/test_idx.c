/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/examples/idx.h"

#define COUNT 3
#define IMAGES_BYTES (16 + COUNT * IMAGE_PIXELS)
#define LABELS_BYTES (8 + COUNT)

/* A folder with MNIST's two files, of three images. */
struct folder {
	char path[64];
	char images[128], labels[128];
	uint8_t image_bytes[IMAGES_BYTES + 1];
	uint8_t label_bytes[LABELS_BYTES + 1];
};

static void write_file(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
	static const uint8_t images[] = { 0, 0, 8, 3, 0, 0, 0, COUNT,
					  0, 0, 0, 28, 0, 0, 0, 28 };
	static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, COUNT, 7, 0, 9 };
	struct folder *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	snprintf(f->path, sizeof(f->path), "/tmp/test_idx.XXXXXX");
	if (!mkdtemp(f->path)) {
		free(f);
		return -1;
	}
	snprintf(f->images, sizeof(f->images), "%s/t10k-images-idx3-ubyte",
		 f->path);
	snprintf(f->labels, sizeof(f->labels), "%s/t10k-labels-idx1-ubyte",
		 f->path);
	memcpy(f->image_bytes, images, sizeof(images));
	for (size_t i = sizeof(images); i < IMAGES_BYTES; i++)
		f->image_bytes[i] = (uint8_t)(i * 7);
	memcpy(f->label_bytes, labels, sizeof(labels));
	write_file(f->images, f->image_bytes, IMAGES_BYTES);
	write_file(f->labels, f->label_bytes, LABELS_BYTES);
	*state = f;
	return 0;
}

static int remove_folder(void **state)
{
	struct folder *f = *state;

	unlink(f->images);
	unlink(f->labels);
	rmdir(f->path);
	free(f);
	return 0;
}

/* The file is wrong: an error, with a sentence that has @says and its name. */
static void expect_refusal(const struct folder *f, int err, const char *file,
			   const char *says)
{
	struct images set = { .count = 77 };
	struct sentence why = { 0 };

	assert_int_equal(idx_read(f->path, "t10k", &set, &why), err);
	assert_non_null(strstr(why.text, file));
	assert_non_null(strstr(why.text, says));
	assert_int_equal(set.count, 77);
}

static void good_files_are_read_to_the_byte(void **state)
{
	struct folder *f = *state;
	struct images set;
	struct sentence why = { 0 };

	assert_int_equal(idx_read(f->path, "t10k", &set, &why), 0);
	assert_int_equal(set.count, COUNT);
	assert_memory_equal(set.pixels, f->image_bytes + 16,
			    COUNT * IMAGE_PIXELS);
	assert_memory_equal(set.labels, "\7\0\11", COUNT);
	images_fini(&set);
}

static void every_shorter_file_is_refused(void **state)
{
	struct folder *f = *state;

	for (size_t bytes = 0; bytes < LABELS_BYTES; bytes++) {
		write_file(f->labels, f->label_bytes, bytes);
		expect_refusal(f, -EBADMSG, f->labels,
			       bytes < 8 ? "within its header" : "cut off");
	}
	write_file(f->labels, f->label_bytes, LABELS_BYTES);
	for (size_t bytes = 0; bytes < IMAGES_BYTES; bytes += bytes < 16 ? 1 : 97) {
		write_file(f->images, f->image_bytes, bytes);
		expect_refusal(f, -EBADMSG, f->images,
			       bytes < 16 ? "within its header" : "cut off");
	}
}

static void a_longer_file_is_refused(void **state)
{
	struct folder *f = *state;

	write_file(f->images, f->image_bytes, IMAGES_BYTES + 1);
	expect_refusal(f, -EBADMSG, f->images, "goes on");
}

static void a_wrong_header_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *says;
	} rows[] = {
		{ 3, 1, "magic" },   { 0, 0x1f, "magic" }, /* as gzip begins */
		{ 7, 0, "0 images" }, { 4, 0xff, "images, not" },
		{ 11, 27, "height" }, { 15, 29, "width" },
	};
	struct folder *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t bytes[IMAGES_BYTES];

		memcpy(bytes, f->image_bytes, sizeof(bytes));
		bytes[rows[i].at] = rows[i].value;
		write_file(f->images, bytes, sizeof(bytes));
		expect_refusal(f, -EBADMSG, f->images, rows[i].says);
	}
}

static void a_label_above_nine_is_refused(void **state)
{
	struct folder *f = *state;

	f->label_bytes[9] = 10;
	write_file(f->labels, f->label_bytes, LABELS_BYTES);
	expect_refusal(f, -EBADMSG, f->labels, "label 1 is 10");
}

static void a_missing_file_is_named(void **state)
{
	struct folder *f = *state;

	unlink(f->labels);
	expect_refusal(f, -ENOENT, f->labels, "cannot open");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(good_files_are_read_to_the_byte),
		TEST(every_shorter_file_is_refused),
		TEST(a_longer_file_is_refused),
		TEST(a_wrong_header_is_refused),
		TEST(a_label_above_nine_is_refused),
		TEST(a_missing_file_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
