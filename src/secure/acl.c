/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/acl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/pattern.h"

#define BLANKS " \t\r"

/* A word of the text that was read. */
struct word {
	const char *at;
	size_t bytes;
};

/* One pattern of one line; a line without patterns has one that matches any name. */
struct entry {
	struct word identity, name;
	unsigned acts; /* 1 << enum wf_acl_act */
};

struct wf_acl {
	atomic_uint refs;
	char *text; /* owned; words lie in it */
	struct entry *entries;
	size_t count, room;
};

/* Where the reading of a file stands. */
struct reading {
	const char *path;
	struct wf_acl *acl;
	unsigned line;
	const char *at; /* the rest of the line */
	struct wf_error *e;
};

static const struct {
	const char *word;
	unsigned acts;
	bool named; /* patterns follow */
} kinds[] = {
	{ "calls", 1 << WF_ACL_CALL, true },
	{ "tensors", 1 << WF_ACL_TENSOR, true },
	{ "windows", 1 << WF_ACL_WINDOW, true },
	{ "abort", 1 << WF_ACL_ABORT, false },
	{ "drain", 1 << WF_ACL_DRAIN, false },
	{ "all", (1 << WF_ACL_ACTS) - 1, false },
};

static const struct word any = { "*", 1 };

static int refuse(struct reading *r, const char *what, struct word word)
{
	return wf_error_set(r->e, -EINVAL, "%.300s:%u: %s%s%.*s", r->path, r->line, what,
			    word.bytes ? ": " : "", (int)WF_MIN(word.bytes, (size_t)100), word.at);
}

static bool is(struct word word, const char *text)
{
	return word.bytes == strlen(text) && !memcmp(word.at, text, word.bytes);
}

/* Take the next word of the line, of no bytes at its end. */
static struct word next(struct reading *r)
{
	struct word word;

	r->at += strspn(r->at, BLANKS);
	word = (struct word){ r->at, *r->at == '#' ? 0 : strcspn(r->at, BLANKS) };
	r->at += word.bytes;
	return word;
}

static int add(struct reading *r, const struct entry *entry)
{
	struct wf_acl *acl = r->acl;
	struct entry *grown;

	if (acl->count == acl->room) {
		size_t room = 2 * acl->room + 16;

		grown = realloc(acl->entries, room * sizeof(*grown));
		if (!grown)
			return wf_error_set(r->e, -ENOMEM, "%.300s: out of memory", r->path);
		acl->entries = grown;
		acl->room = room;
	}
	acl->entries[acl->count++] = *entry;
	return 0;
}

/* Take the patterns that follow a kind; at least one. */
static int take_names(struct reading *r, struct entry *entry)
{
	bool windows = entry->acts == 1 << WF_ACL_WINDOW;
	int err = 0;

	entry->name = next(r);
	if (!entry->name.bytes)
		return refuse(r, windows ? "expected get or put, at the end of the line" :
			      "expected a pattern, at the end of the line", entry->name);
	for (; entry->name.bytes && !err; entry->name = next(r)) {
		if (windows && !is(entry->name, "get") && !is(entry->name, "put"))
			return refuse(r, "expected get or put", entry->name);
		err = add(r, entry);
	}
	return err;
}

static int take_line(struct reading *r)
{
	struct entry entry = { .name = any };
	struct word word = next(r);

	if (!word.bytes)
		return 0;
	if (!is(word, "allow"))
		return refuse(r, "expected allow", word);
	entry.identity = next(r);
	if (!entry.identity.bytes)
		return refuse(r, "expected an identity, at the end of the line", entry.identity);
	word = next(r);
	for (size_t i = 0; i < WF_COUNT(kinds); i++) {
		if (!is(word, kinds[i].word))
			continue;
		entry.acts = kinds[i].acts;
		if (kinds[i].named)
			return take_names(r, &entry);
		word = next(r);
		return word.bytes ? refuse(r, "nothing more was expected", word) : add(r, &entry);
	}
	return refuse(r, "expected calls, tensors, windows, abort, drain or all", word);
}

static int take_text(struct reading *r)
{
	char *end = r->acl->text;
	int err = 0;

	while (end && !err) {
		char *line = end;

		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		r->at = line;
		r->line++;
		err = take_line(r);
	}
	return err;
}

/* Read the file into @text, owned, which a zero ends. */
static int read_file(const char *path, char **text, struct wf_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat file;
	ssize_t got = -1;
	size_t size;
	int err = 0;

	if (fd < 0)
		return wf_error_set(e, -errno, "%.300s: %s", path, wf_error_name(-errno));
	if (fstat(fd, &file) || !S_ISREG(file.st_mode) ||
	    file.st_size > (off_t)WF_ACL_FILE_BYTES_MAX)
		err = wf_error_set(e, -EINVAL, "%.300s: expected a file of 1 MiB at most", path);
	else if (file.st_mode & (S_IWGRP | S_IWOTH) || (file.st_uid && file.st_uid != geteuid()))
		err = wf_error_set(e, -EACCES, "%.300s: others than this user and root can write "
				   "to it", path);
	if (err) {
		(void)close(fd);
		return err;
	}
	size = (size_t)file.st_size;
	*text = malloc(size + 1);
	if (*text)
		got = read(fd, *text, size);
	(void)close(fd);
	if (!*text)
		return wf_error_set(e, -ENOMEM, "%.300s: out of memory", path);
	if (got != (ssize_t)size || memchr(*text, '\0', size)) {
		free(*text);
		*text = NULL;
		return wf_error_set(e, -EINVAL, "%.300s: it can't be read whole, or is no text",
				    path);
	}
	(*text)[size] = '\0';
	return 0;
}

int wf_acl_read(const char *path, struct wf_acl **acl, struct wf_error *e)
{
	struct reading r = { .path = path, .e = e, .acl = calloc(1, sizeof(*r.acl)) };
	int err;

	if (!r.acl)
		return wf_error_set(e, -ENOMEM, "%.300s: out of memory", path);
	r.acl->refs = 1;
	err = read_file(path, &r.acl->text, e);
	if (!err)
		err = take_text(&r);
	if (err) {
		wf_acl_put(r.acl);
		return err;
	}
	*acl = r.acl;
	return 0;
}

struct wf_acl *wf_acl_get(struct wf_acl *acl)
{
	atomic_fetch_add_explicit(&acl->refs, 1, memory_order_relaxed);
	return acl;
}

void wf_acl_put(struct wf_acl *acl)
{
	if (!acl || atomic_fetch_sub_explicit(&acl->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(acl->text);
	free(acl->entries);
	free(acl);
}

bool wf_acl_allows(const struct wf_acl *acl, const char *identity, enum wf_acl_act act,
		   const char *name, size_t bytes)
{
	size_t identity_bytes = strlen(identity);

	for (size_t i = 0; i < acl->count; i++) {
		const struct entry *entry = &acl->entries[i];

		if (entry->acts & 1u << act &&
		    wf_pattern_matches(entry->name.at, entry->name.bytes, name, bytes) &&
		    wf_pattern_matches(entry->identity.at, entry->identity.bytes, identity,
				       identity_bytes))
			return true;
	}
	return false;
}
