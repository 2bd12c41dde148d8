/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/acl.h"

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

#define MANY_LINES 10000
#define FILE_BYTES_MAX ((size_t)WF_ACL_FILE_BYTES_MAX)
#define TRAINER "spiffe://example.org/train/7"

static char folder[64];
static char path[128]; /* of the file of the test that runs */
static struct wf_acl *acl; /* what expect_read() has read */

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/weft-acl.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/allow", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	wf_acl_put(acl);
	acl = NULL;
	(void)remove(path);
	return rmdir(folder);
}

static void write_bytes(const char *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), count);
	assert_int_equal(close(fd), 0);
}

/* The file that is there is taken. */
static void expect_taken(void)
{
	struct wf_error e = { 0 };

	wf_acl_put(acl);
	acl = NULL;
	if (wf_acl_read(path, &acl, &e))
		fail_msg("%s", e.text);
	assert_non_null(acl);
}

/* A file of this text is taken. */
static void expect_read(const char *text)
{
	write_bytes(text, strlen(text));
	expect_taken();
}

/* The file that is there is refused with @code and a sentence that has its path and @says. */
static void expect_not_taken(int code, const char *says)
{
	struct wf_acl *none = NULL;
	struct wf_error e = { 0 };
	int err = wf_acl_read(path, &none, &e);

	if (err != code)
		fail_msg("%d, and not %d: %s", err, code, e.text);
	assert_int_equal(e.code, code);
	assert_null(none);
	if (strncmp(e.text, path, strlen(path)) || !strstr(e.text, says))
		fail_msg("'%s' lacks '%s' or '%s'", e.text, path, says);
}

/* A file of this text is refused for line @line, with exactly these words after file and line. */
static void expect_line_refused(const char *text, unsigned line, const char *says)
{
	char all[WF_ERROR_BYTES];
	struct wf_acl *none = NULL;
	struct wf_error e = { 0 };

	write_bytes(text, strlen(text));
	assert_int_equal(wf_acl_read(path, &none, &e), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_null(none);
	(void)snprintf(all, sizeof(all), "%s:%u: %s", path, line, says);
	assert_string_equal(e.text, all);
}

static bool allows(const char *identity, enum wf_acl_act act, const char *name)
{
	return wf_acl_allows(acl, identity, act, name, strlen(name));
}

static void expect(bool allowed, const char *identity, enum wf_acl_act act, const char *name)
{
	if (allows(identity, act, name) != allowed)
		fail_msg("%s, act %d, '%s': expected %d", identity, act, name, allowed);
}

/* Expect that nobody may do anything. */
static void expect_nothing_allowed(void)
{
	static const char *const identities[] = { "key:0123456789abcdef", "node", TRAINER, "*" };
	static const char *const names[] = { "", "*", "get", "put", "a/b", "grad/0" };

	for (size_t i = 0; i < WF_COUNT(identities); i++)
		for (int act = 0; act < WF_ACL_ACTS; act++)
			for (size_t n = 0; n < WF_COUNT(names); n++)
				expect(false, identities[i], act, names[n]);
}

/* Expect that "node" may do what @acts say, of these names, and nothing else. */
static void expect_acts(unsigned acts, const char *call, const char *key, const char *use)
{
	expect(acts & 1 << WF_ACL_CALL, "node", WF_ACL_CALL, call);
	expect(acts & 1 << WF_ACL_TENSOR, "node", WF_ACL_TENSOR, key);
	expect(acts & 1 << WF_ACL_WINDOW, "node", WF_ACL_WINDOW, use);
	expect(acts & 1 << WF_ACL_ABORT, "node", WF_ACL_ABORT, "");
	expect(acts & 1 << WF_ACL_DRAIN, "node", WF_ACL_DRAIN, "");
}

static void a_line_allows_its_own_kind_alone(void **state)
{
	(void)state;
	/* One name for every act: a line of another kind does not match by it. */
	expect_read("allow node calls get\n");
	expect_acts(1 << WF_ACL_CALL, "get", "get", "get");
	expect_read("allow node tensors get\n");
	expect_acts(1 << WF_ACL_TENSOR, "get", "get", "get");
	expect_read("allow node windows get\n");
	expect_acts(1 << WF_ACL_WINDOW, "get", "get", "get");
	expect_read("allow node abort\n");
	expect_acts(1 << WF_ACL_ABORT, "get", "get", "get");
	expect_read("allow node drain\n");
	expect_acts(1 << WF_ACL_DRAIN, "get", "get", "get");
	expect_read("allow node calls *\nallow node tensors *\n");
	expect_acts(1 << WF_ACL_CALL | 1 << WF_ACL_TENSOR, "get", "get", "get");
}

static void all_allows_each_act_of_any_name(void **state)
{
	(void)state;
	expect_read("allow node all\n");
	expect_acts((1 << WF_ACL_ACTS) - 1, "a.Service/Method", "grad/0", "get");
	expect_acts((1 << WF_ACL_ACTS) - 1, "", "", "put");
	assert_true(wf_acl_allows(acl, "node", WF_ACL_TENSOR, "\0\xff\n *", 5));
	for (int act = 0; act < WF_ACL_ACTS; act++)
		expect(false, "other", act, "get");
}

static void an_empty_file_refuses_everything(void **state)
{
	static const char *const texts[] = {
		"", "\n", "\n\n\n", " ", "\t \t\n", "\r\n\r\n", "#", "# allow * all",
		"#allow * all\n \t# allow * all\n\n",
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(texts); i++) {
		expect_read(texts[i]);
		expect_nothing_allowed();
	}
}

static void a_list_refuses_what_no_line_allows(void **state)
{
	(void)state;
	expect_read("allow node calls a.Store/Get\nallow node tensors grad\n"
		    "allow other calls a.Store/Put\n");
	expect(true, "node", WF_ACL_CALL, "a.Store/Get");
	expect(false, "node", WF_ACL_CALL, "a.Store/Put");
	expect(false, "node", WF_ACL_CALL, "a.Store/Ge");
	expect(false, "node", WF_ACL_CALL, "a.Store/Gets");
	expect(false, "node", WF_ACL_CALL, ".Store/Get");
	expect(false, "node", WF_ACL_CALL, "a.store/get");
	expect(false, "node", WF_ACL_CALL, "");
	expect(false, "node", WF_ACL_TENSOR, "a.Store/Get");
	expect(false, "other", WF_ACL_CALL, "a.Store/Get");
	expect(true, "other", WF_ACL_CALL, "a.Store/Put");
	expect(false, "other", WF_ACL_TENSOR, "grad");
	expect(false, "nod", WF_ACL_CALL, "a.Store/Get");
	expect(false, "nodes", WF_ACL_CALL, "a.Store/Get");
	expect(false, "Node", WF_ACL_CALL, "a.Store/Get");
	/* The text of a peer is never a pattern. */
	expect(false, "*", WF_ACL_CALL, "a.Store/Get");
	expect(false, "node", WF_ACL_CALL, "*");
}

static void blanks_and_comments_mean_nothing(void **state)
{
	static const char *const texts[] = {
		"allow node calls one two\n",
		"allow node calls one two", /* no newline at its end */
		"allow node calls one two\r\n",
		"allow node calls one two\r",
		"\tallow\tnode\tcalls\tone\ttwo\t\n",
		"  allow   node \t calls  one\t\ttwo  ",
		"\n\nallow node calls one two\n\n",
		"allow node calls one two # three\n",
		"allow node calls one two #three\n",
		"allow node calls one two\t#\n",
		"# three\nallow node calls one two\n# allow node all\n",
		"# who\r\n\r\nallow node calls one two\r\n# allow node calls three",
		"allow node calls one\r\nallow node calls two\r\n",
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(texts); i++) {
		expect_read(texts[i]);
		expect_acts(1 << WF_ACL_CALL, "one", "one", "get");
		expect_acts(1 << WF_ACL_CALL, "two", "two", "put");
		expect_acts(0, "three", "three", "get");
		expect_acts(0, "#", "", "get");
		expect_acts(0, "two\r", "two ", "get");
	}
}

static void a_comment_begins_only_where_a_word_would(void **state)
{
	(void)state;
	expect_read("allow node#1 tensors grad#2 step#\n");
	expect(true, "node#1", WF_ACL_TENSOR, "grad#2");
	expect(true, "node#1", WF_ACL_TENSOR, "step#");
	expect(false, "node", WF_ACL_TENSOR, "grad#2");
	expect(false, "node#1", WF_ACL_TENSOR, "grad");
	/* The words of the grammar may be names. */
	expect_read("allow allow tensors all abort\nallow all calls drain\n");
	expect(true, "allow", WF_ACL_TENSOR, "all");
	expect(true, "allow", WF_ACL_TENSOR, "abort");
	expect(false, "allow", WF_ACL_ABORT, "");
	expect(true, "all", WF_ACL_CALL, "drain");
	expect(false, "all", WF_ACL_DRAIN, "");
}

static void a_star_stands_for_any_text_of_an_identity(void **state)
{
	(void)state;
	expect_read("allow spiffe://example.org/train/* calls one\nallow key:* calls two\n"
		    "allow *.example.org calls three\nallow * calls four\n"
		    "allow spiffe://*/ns/*/sa/* calls five\n");
	expect(true, TRAINER, WF_ACL_CALL, "one");
	expect(true, "spiffe://example.org/train/", WF_ACL_CALL, "one");
	expect(true, "spiffe://example.org/train/a/b", WF_ACL_CALL, "one");
	expect(false, "spiffe://example.org/train", WF_ACL_CALL, "one");
	expect(false, "spiffe://example.org/serve/7", WF_ACL_CALL, "one");
	expect(false, "x" TRAINER, WF_ACL_CALL, "one");
	expect(true, "key:0123456789abcdef", WF_ACL_CALL, "two");
	expect(false, TRAINER, WF_ACL_CALL, "two");
	expect(true, "node.example.org", WF_ACL_CALL, "three");
	expect(false, "example.org", WF_ACL_CALL, "three");
	expect(false, "node.example.org.net", WF_ACL_CALL, "three");
	expect(true, TRAINER, WF_ACL_CALL, "four");
	expect(true, "node", WF_ACL_CALL, "four");
	expect(true, "spiffe://a/ns/b/sa/c", WF_ACL_CALL, "five");
	expect(false, "spiffe://a/ns/b/c", WF_ACL_CALL, "five");
}

static void a_star_stands_for_any_text_of_a_method(void **state)
{
	(void)state;
	expect_read("allow node calls a.Store/* */Check b.*/Get*\n");
	expect(true, "node", WF_ACL_CALL, "a.Store/Get");
	expect(true, "node", WF_ACL_CALL, "a.Store/");
	expect(false, "node", WF_ACL_CALL, "a.Store");
	expect(false, "node", WF_ACL_CALL, "a.Stores/Get");
	expect(true, "node", WF_ACL_CALL, "grpc.health.v1.Health/Check");
	expect(false, "node", WF_ACL_CALL, "grpc.health.v1.Health/Watch");
	expect(true, "node", WF_ACL_CALL, "b.One/GetAll");
	expect(false, "node", WF_ACL_CALL, "b.One/Put");
	expect(false, "other", WF_ACL_CALL, "a.Store/Get");
}

static void a_key_may_have_any_bytes(void **state)
{
	static const char zeros[] = { 'g', 0, 'x', 0, 'z' };
	char every[256];

	(void)state;
	expect_read("allow node tensors g*z\nallow other tensors grad\nallow third tensors *\n");
	assert_true(wf_acl_allows(acl, "node", WF_ACL_TENSOR, zeros, sizeof(zeros)));
	/* Bytes after a zero count. */
	assert_false(wf_acl_allows(acl, "node", WF_ACL_TENSOR, zeros, sizeof(zeros) - 1));
	assert_false(wf_acl_allows(acl, "other", WF_ACL_TENSOR, "grad\0", 5));
	assert_false(wf_acl_allows(acl, "other", WF_ACL_TENSOR, "grad\0grad", 9));
	assert_false(wf_acl_allows(acl, "other", WF_ACL_TENSOR, "\0grad", 5));
	assert_true(wf_acl_allows(acl, "other", WF_ACL_TENSOR, "grad\0", 4));
	for (size_t i = 0; i < sizeof(every); i++)
		every[i] = (char)i;
	assert_true(wf_acl_allows(acl, "third", WF_ACL_TENSOR, every, sizeof(every)));
	assert_true(wf_acl_allows(acl, "third", WF_ACL_TENSOR, "", 0));
	every[0] = 'g';
	every[255] = 'z';
	assert_true(wf_acl_allows(acl, "node", WF_ACL_TENSOR, every, sizeof(every)));
	/* Bytes that are no ASCII are as good in a line as others. */
	expect_read("allow n\xc3\xb6" "de tensors \xff\x01\n");
	expect(true, "n\xc3\xb6" "de", WF_ACL_TENSOR, "\xff\x01");
	expect(false, "node", WF_ACL_TENSOR, "\xff\x01");
	expect(false, "n\xc3\xb6" "de", WF_ACL_TENSOR, "\xff");
}

static void each_pattern_and_each_line_allows_something_more(void **state)
{
	(void)state;
	expect_read("allow node tensors a b* c\nallow node tensors d\nallow node abort\n"
		    "allow other tensors a\nallow node drain\nallow node tensors a\n");
	expect_acts(1 << WF_ACL_TENSOR | 1 << WF_ACL_ABORT | 1 << WF_ACL_DRAIN, "a", "a", "get");
	expect(true, "node", WF_ACL_TENSOR, "bb");
	expect(true, "node", WF_ACL_TENSOR, "c");
	expect(true, "node", WF_ACL_TENSOR, "d");
	expect(false, "node", WF_ACL_TENSOR, "e");
	expect(false, "node", WF_ACL_TENSOR, "a b* c");
	expect(true, "other", WF_ACL_TENSOR, "a");
	expect(false, "other", WF_ACL_TENSOR, "c");
	expect(false, "other", WF_ACL_ABORT, "");
	expect(false, "other", WF_ACL_DRAIN, "");
}

static void windows_are_got_from_and_put_into_apart(void **state)
{
	(void)state;
	expect_read("allow reader windows get\nallow writer windows put\n"
		    "allow both windows get put\nallow two windows put\nallow two windows get\n");
	expect(true, "reader", WF_ACL_WINDOW, "get");
	expect(false, "reader", WF_ACL_WINDOW, "put");
	expect(false, "writer", WF_ACL_WINDOW, "get");
	expect(true, "writer", WF_ACL_WINDOW, "put");
	expect(true, "both", WF_ACL_WINDOW, "get");
	expect(true, "both", WF_ACL_WINDOW, "put");
	expect(true, "two", WF_ACL_WINDOW, "get");
	expect(true, "two", WF_ACL_WINDOW, "put");
	expect(false, "both", WF_ACL_WINDOW, "");
	expect(false, "both", WF_ACL_TENSOR, "get");
}

static void abort_and_drain_are_allowed_apart(void **state)
{
	(void)state;
	expect_read("allow one abort\nallow two drain # at its end\nallow t* drain\n");
	expect(true, "one", WF_ACL_ABORT, "");
	expect(false, "one", WF_ACL_DRAIN, "");
	expect(false, "two", WF_ACL_ABORT, "");
	expect(true, "two", WF_ACL_DRAIN, "");
	expect(true, "three", WF_ACL_DRAIN, "");
	expect(false, "three", WF_ACL_ABORT, "");
}

static void a_malformed_line_is_named_and_what_was_expected(void **state)
{
	static const char kinds[] = "expected calls, tensors, windows, abort, drain or all";
	static const char more[] = "nothing more was expected";
	static const struct {
		const char *line, *says, *word;
	} rows[] = {
		{ "deny node all", "expected allow", "deny" },
		{ "Allow node all", "expected allow", "Allow" },
		{ "allows node all", "expected allow", "allows" },
		{ "allo node all", "expected allow", "allo" },
		{ "allow# node all", "expected allow", "allow#" },
		{ "node calls a/b", "expected allow", "node" },
		{ "\xef\xbb\xbf" "allow node all", "expected allow", "\xef\xbb\xbf" "allow" },
		{ "allow", "expected an identity, at the end of the line", NULL },
		{ "allow \t\r", "expected an identity, at the end of the line", NULL },
		{ "allow # node all", "expected an identity, at the end of the line", NULL },
		{ "allow node", kinds, NULL },
		{ "allow node # all", kinds, NULL },
		{ "allow node call a/b", kinds, "call" },
		{ "allow node everything", kinds, "everything" },
		{ "allow node Calls a/b", kinds, "Calls" },
		{ "allow node *", kinds, "*" },
		{ "allow node callsa/b", kinds, "callsa/b" },
		{ "allow node other calls a/b", kinds, "other" },
		{ "allow node calls", "expected a pattern, at the end of the line", NULL },
		{ "allow node calls  \t", "expected a pattern, at the end of the line", NULL },
		{ "allow node calls # a/b", "expected a pattern, at the end of the line", NULL },
		{ "allow node tensors", "expected a pattern, at the end of the line", NULL },
		{ "allow node tensors #1", "expected a pattern, at the end of the line", NULL },
		{ "allow node windows", "expected get or put, at the end of the line", NULL },
		{ "allow node windows both", "expected get or put", "both" },
		{ "allow node windows *", "expected get or put", "*" },
		{ "allow node windows g*", "expected get or put", "g*" },
		{ "allow node windows Get", "expected get or put", "Get" },
		{ "allow node windows gets", "expected get or put", "gets" },
		{ "allow node windows get,put", "expected get or put", "get,put" },
		{ "allow node windows get put push", "expected get or put", "push" },
		{ "allow node abort now", more, "now" },
		{ "allow node abort drain", more, "drain" },
		{ "allow node drain *", more, "*" },
		{ "allow node all calls", more, "calls" },
	};
	char text[256], says[256];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		(void)snprintf(says, sizeof(says), "%s%s%s", rows[i].says, rows[i].word ? ": " : "",
			       rows[i].word ? rows[i].word : "");
		expect_line_refused(rows[i].line, 1, says);
		(void)snprintf(text, sizeof(text), "# who\r\n\nallow node all\n%s\ndeny\n",
			       rows[i].line);
		expect_line_refused(text, 4, says);
	}
}

static void a_word_that_is_too_long_for_the_sentence_is_cut(void **state)
{
	char text[300], says[200];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)snprintf(says, sizeof(says), "expected allow: %.100s", text);
	expect_line_refused(text, 1, says);
}

static void a_read_may_go_without_a_sentence(void **state)
{
	struct wf_acl *none = NULL;

	(void)state;
	write_bytes("deny", 4);
	assert_int_equal(wf_acl_read(path, &none, NULL), -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(wf_acl_read(path, &none, NULL), -ENOENT);
	assert_null(none);
}

static void a_missing_file_is_named(void **state)
{
	(void)state;
	expect_not_taken(-ENOENT, "No such file");
}

static void a_folder_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	expect_not_taken(-EINVAL, "expected a file of 1 MiB at most");
}

/* Opening a FIFO for reading blocks until somebody writes, if nothing is done about it. */
static void a_fifo_is_refused_at_once(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_not_taken(-EINVAL, "expected a file of 1 MiB at most");
}

static void a_file_of_more_than_a_mebibyte_is_refused(void **state)
{
	char *text = malloc(FILE_BYTES_MAX + 1);

	(void)state;
	assert_non_null(text);
	memset(text, '\n', FILE_BYTES_MAX + 1);
	memcpy(text + FILE_BYTES_MAX - 14, "allow node all", 14);
	write_bytes(text, FILE_BYTES_MAX);
	expect_taken();
	expect(true, "node", WF_ACL_DRAIN, "");
	write_bytes(text, FILE_BYTES_MAX + 1);
	free(text);
	expect_not_taken(-EINVAL, "expected a file of 1 MiB at most");
}

static void a_zero_byte_is_refused_anywhere(void **state)
{
	static const char good[] = "allow node all\nallow other all\n";
	char text[sizeof(good)];

	(void)state;
	for (size_t at = 0; at < sizeof(good); at++) {
		memcpy(text, good, sizeof(good));
		text[at] = '\0';
		write_bytes(text, sizeof(good));
		expect_not_taken(-EINVAL, "is no text");
	}
}

static void a_file_that_others_may_write_is_refused(void **state)
{
	static const struct {
		mode_t mode;
		bool good;
	} rows[] = {
		{ 0600, true }, { 0400, true }, { 0644, true }, { 0444, true }, { 0755, true },
		{ 0620, false }, { 0602, false }, { 0664, false }, { 0666, false },
	};

	(void)state;
	write_bytes("allow * all\n", 12);
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		assert_int_equal(chmod(path, rows[i].mode), 0);
		if (rows[i].good)
			expect_taken();
		else
			expect_not_taken(-EACCES, "can write to it");
	}
}

static void a_file_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid())
		skip(); /* root alone can give a file away */
	write_bytes("allow * all\n", 12);
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	expect_not_taken(-EACCES, "can write to it");
}

static void a_line_may_be_very_long(void **state)
{
	const size_t names = 100000;
	char *text = malloc(FILE_BYTES_MAX), *at = text;
	char *key = malloc(FILE_BYTES_MAX);

	(void)state;
	assert_true(text && key);
	at += sprintf(at, "allow node tensors");
	for (size_t i = 0; i < names; i++)
		at += sprintf(at, " key%05zu", i);
	write_bytes(text, (size_t)(at - text));
	expect_taken();
	expect(true, "node", WF_ACL_TENSOR, "key00000");
	expect(true, "node", WF_ACL_TENSOR, "key50000");
	expect(true, "node", WF_ACL_TENSOR, "key99999");
	expect(false, "node", WF_ACL_TENSOR, "key9999");
	/* One word that fills the file. */
	at = text + sprintf(text, "allow node tensors ");
	memset(at, 'k', FILE_BYTES_MAX - (size_t)(at - text));
	memset(key, 'k', FILE_BYTES_MAX);
	write_bytes(text, FILE_BYTES_MAX);
	expect_taken();
	assert_true(wf_acl_allows(acl, "node", WF_ACL_TENSOR, key,
				  FILE_BYTES_MAX - (size_t)(at - text)));
	assert_false(wf_acl_allows(acl, "node", WF_ACL_TENSOR, key,
				   FILE_BYTES_MAX - (size_t)(at - text) - 1));
	free(text);
	free(key);
}

static void a_file_may_have_ten_thousand_lines(void **state)
{
	char *text = malloc(FILE_BYTES_MAX), *at = text;
	char identity[32];

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < MANY_LINES; i++)
		at += sprintf(at, "allow node%d calls s%d/m%d # %d\n", i, i, i, i);
	write_bytes(text, (size_t)(at - text));
	expect_taken();
	for (int i = 0; i < MANY_LINES; i += 101) {
		(void)snprintf(identity, sizeof(identity), "node%d", i);
		(void)snprintf(text, 64, "s%d/m%d", i, i);
		expect(true, identity, WF_ACL_CALL, text);
		expect(false, identity, WF_ACL_TENSOR, text);
		expect(false, "node1", WF_ACL_CALL, text);
	}
	expect(true, "node9999", WF_ACL_CALL, "s9999/m9999");
	expect(false, "node10000", WF_ACL_CALL, "s10000/m10000");
	/* A fault of the last line has its number. */
	memset(text, '\n', MANY_LINES);
	strcpy(text + MANY_LINES - 1, "deny");
	expect_line_refused(text, MANY_LINES, "expected allow: deny");
	free(text);
}

static void a_list_lives_until_its_last_reference_is_given_back(void **state)
{
	(void)state;
	wf_acl_put(NULL);
	expect_read("allow node drain\n");
	assert_ptr_equal(wf_acl_get(acl), acl);
	assert_ptr_equal(wf_acl_get(acl), acl);
	wf_acl_put(acl);
	expect(true, "node", WF_ACL_DRAIN, "");
	wf_acl_put(acl);
	expect(true, "node", WF_ACL_DRAIN, "");
}

static void a_list_does_not_change_with_its_file(void **state)
{
	(void)state;
	expect_read("allow node drain\n");
	write_bytes("allow oooo abort\n", 17);
	expect_acts(1 << WF_ACL_DRAIN, "", "", "");
	assert_int_equal(unlink(path), 0);
	expect_acts(1 << WF_ACL_DRAIN, "", "", "");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(a_line_allows_its_own_kind_alone),
		WITH_FOLDER(all_allows_each_act_of_any_name),
		WITH_FOLDER(an_empty_file_refuses_everything),
		WITH_FOLDER(a_list_refuses_what_no_line_allows),
		WITH_FOLDER(blanks_and_comments_mean_nothing),
		WITH_FOLDER(a_comment_begins_only_where_a_word_would),
		WITH_FOLDER(a_star_stands_for_any_text_of_an_identity),
		WITH_FOLDER(a_star_stands_for_any_text_of_a_method),
		WITH_FOLDER(a_key_may_have_any_bytes),
		WITH_FOLDER(each_pattern_and_each_line_allows_something_more),
		WITH_FOLDER(windows_are_got_from_and_put_into_apart),
		WITH_FOLDER(abort_and_drain_are_allowed_apart),
		WITH_FOLDER(a_malformed_line_is_named_and_what_was_expected),
		WITH_FOLDER(a_word_that_is_too_long_for_the_sentence_is_cut),
		WITH_FOLDER(a_read_may_go_without_a_sentence),
		WITH_FOLDER(a_missing_file_is_named),
		WITH_FOLDER(a_folder_is_refused),
		WITH_FOLDER(a_fifo_is_refused_at_once),
		WITH_FOLDER(a_file_of_more_than_a_mebibyte_is_refused),
		WITH_FOLDER(a_zero_byte_is_refused_anywhere),
		WITH_FOLDER(a_file_that_others_may_write_is_refused),
		WITH_FOLDER(a_file_of_another_user_is_refused),
		WITH_FOLDER(a_line_may_be_very_long),
		WITH_FOLDER(a_file_may_have_ten_thousand_lines),
		WITH_FOLDER(a_list_lives_until_its_last_reference_is_given_back),
		WITH_FOLDER(a_list_does_not_change_with_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
