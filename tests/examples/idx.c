/* SPDX-License-Identifier: BSD-2-Clause */
#include "idx.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define IMAGES_MAGIC 0x803 /* unsigned bytes, three dimensions */
#define LABELS_MAGIC 0x801 /* unsigned bytes, one dimension */
#define COUNT_MAX 10000000 /* 8 GB of images: what is more is a broken header */

struct idx {
	FILE *file;
	char path[PATH_MAX];
	struct sentence *why;
};

static int idx_open(struct idx *f, const char *directory, const char *stem,
		    const char *kind, struct sentence *why)
{
	int length = snprintf(f->path, sizeof(f->path), "%s/%s-%s-ubyte",
			      directory, stem, kind);

	f->why = why;
	if (length < 0 || (size_t)length >= sizeof(f->path))
		return sentence_set(why, -ENAMETOOLONG, "--data: name too long");
	f->file = fopen(f->path, "rb");
	if (!f->file)
		return sentence_set(why, -errno, "cannot open %s: %s", f->path,
				    strerror(errno));
	return 0;
}

static void idx_close(struct idx *f)
{
	if (f->file)
		fclose(f->file);
}

/* One number of the header: 32 bits, the highest byte first. */
static int read_number(struct idx *f, uint32_t *number)
{
	uint8_t b[4];

	if (fread(b, 1, sizeof(b), f->file) != sizeof(b))
		return sentence_set(f->why, -EBADMSG,
				    "%s ends within its header", f->path);
	*number = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
		  (uint32_t)b[2] << 8 | b[3];
	return 0;
}

/* One number that can have only one value. */
static int expect_number(struct idx *f, uint32_t wanted, const char *what)
{
	uint32_t number;
	int err = read_number(f, &number);

	if (err)
		return err;
	if (number != wanted)
		return sentence_set(f->why, -EBADMSG,
				    "%s: %s is %u instead of %u", f->path, what,
				    number, wanted);
	return 0;
}

/* The rest of the file, which must be @count items of @item_bytes. */
static int read_items(struct idx *f, uint32_t count, uint32_t item_bytes,
		      uint8_t **items)
{
	size_t bytes = (size_t)count * item_bytes, got;
	uint8_t *memory = malloc(bytes);
	int err;

	if (!memory)
		return sentence_set(f->why, -ENOMEM, "no memory for %s", f->path);

	got = fread(memory, 1, bytes, f->file);
	if (got < bytes) {
		err = sentence_set(f->why, -EBADMSG,
				   "%s is cut off: its header says %u items of "
				   "%u bytes, and %zu bytes follow",
				   f->path, count, item_bytes, got);
		goto free_memory;
	}
	if (fgetc(f->file) != EOF) {
		err = sentence_set(f->why, -EBADMSG,
				   "%s goes on after the %u items of its header",
				   f->path, count);
		goto free_memory;
	}

	*items = memory;
	return 0;

free_memory:
	free(memory);
	return err;
}

static int read_images(struct idx *f, struct images *set)
{
	int err = expect_number(f, IMAGES_MAGIC, "the magic number");

	if (!err)
		err = read_number(f, &set->count);
	if (!err && (set->count == 0 || set->count > COUNT_MAX))
		err = sentence_set(f->why, -EBADMSG, "%s: %u images, not 1 to %u",
				   f->path, set->count, COUNT_MAX);
	if (!err)
		err = expect_number(f, IMAGE_SIDE, "the height of an image");
	if (!err)
		err = expect_number(f, IMAGE_SIDE, "the width of an image");
	if (!err)
		err = read_items(f, set->count, IMAGE_PIXELS, &set->pixels);
	return err;
}

static int read_labels(struct idx *f, struct images *set)
{
	int err = expect_number(f, LABELS_MAGIC, "the magic number");

	if (!err)
		err = expect_number(f, set->count, "the number of labels");
	if (!err)
		err = read_items(f, set->count, 1, &set->labels);
	if (err)
		return err;

	for (uint32_t i = 0; i < set->count; i++) {
		if (set->labels[i] >= IMAGE_LABELS)
			return sentence_set(f->why, -EBADMSG,
					    "%s: label %u is %u, and 9 is the "
					    "highest", f->path, i,
					    set->labels[i]);
	}
	return 0;
}

int idx_read(const char *directory, const char *stem, struct images *set,
	     struct sentence *why)
{
	struct idx images = { 0 }, labels = { 0 };
	struct images got = { 0 };
	int err = idx_open(&images, directory, stem, "images-idx3", why);

	if (!err)
		err = idx_open(&labels, directory, stem, "labels-idx1", why);
	if (!err)
		err = read_images(&images, &got);
	if (!err)
		err = read_labels(&labels, &got);

	idx_close(&labels);
	idx_close(&images);
	if (err) {
		images_fini(&got);
		return err;
	}
	*set = got;
	return 0;
}
