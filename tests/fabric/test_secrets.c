/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secrets of nodes that talk by a key file: where in memory they are, and that nothing written for
 * people has them.
 *
 * The test keeps what it looks for combined with a mask, or it would find its own copies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#include "core/node.h"
#include "tests/fabric/calls.pb-c.h"

#define LIMIT_NS 20000000000ull
#define CHILD_S 60 /* no child lives longer */
#define PATH_BYTES 96
#define LONGEST_BYTES ((int64_t)4 << 20)
#define SECRET_BYTES 32
#define MASK 0xa5
#define BUFFER_BYTES ((size_t)1 << 20)
#define MAPPINGS_MAX 4096
#define TEXT_BYTES (4 * SECRET_BYTES)

static char folder[64], key[PATH_BYTES], fresh[PATH_BYTES];
static Calls__Test_Service service;

/* Secrets that are looked for. */

enum {
	KEY_FILE,
	PSK,
	LINK,
	LINK_NEXT,
	RATCHET_OUT,
	RATCHET_IN,
	SECRETS,
	/* libssl keeps this one, and OpenSSL 3.0 does not wipe it: it is looked for, and told. */
	EARLY = SECRETS,
	MARKER,
	PATTERNS
};

static const char *const names[PATTERNS] = {
	[KEY_FILE] = "key file",
	[PSK] = "PSK",
	[LINK] = "secret of a link",
	[LINK_NEXT] = "secret of a link's next epoch",
	[RATCHET_OUT] = "secret of a ratchet that seals",
	[RATCHET_IN] = "secret of a ratchet that opens",
	[EARLY] = "early secret of libssl",
	[MARKER] = "marker",
};

struct pattern {
	bool known;
	uint8_t masked[SECRET_BYTES];
	unsigned count; /* how often it was found */
};

static struct pattern patterns[PATTERNS];
/* Bytes that a search must find. */
static uint8_t *marker;

static void look_for(unsigned place, const uint8_t bytes[SECRET_BYTES])
{
	struct pattern *p = &patterns[place];

	for (size_t i = 0; i < SECRET_BYTES; i++)
		p->masked[i] = bytes[i] ^ MASK;
	p->known = true;
}

static bool is_at(const uint8_t *at, const struct pattern *p)
{
	for (size_t i = 0; i < SECRET_BYTES; i++)
		if ((uint8_t)(at[i] ^ MASK) != p->masked[i])
			return false;
	return true;
}

/* Count the patterns among @count bytes, which came from @where. */
static void search(const uint8_t *bytes, size_t count, const char *where)
{
	for (unsigned i = 0; i < PATTERNS; i++) {
		struct pattern *p = &patterns[i];
		const uint8_t *at = bytes, *end = bytes + count - SECRET_BYTES + 1;

		if (!p->known || count < SECRET_BYTES)
			continue;
		for (; at < end && (at = memchr(at, p->masked[0] ^ MASK, (size_t)(end - at))); at++)
			if (is_at(at, p) && !p->count++ && i != MARKER)
				print_message("%s: in %s\n", names[i], where);
	}
}

static void forget_counts(void)
{
	for (unsigned i = 0; i < PATTERNS; i++)
		patterns[i].count = 0;
}

/* How many secrets were found, in a search that had found the marker? */
static unsigned secrets_found(void)
{
	unsigned found = 0;

	for (unsigned i = 0; i < SECRETS; i++)
		found += patterns[i].count != 0;
	return patterns[MARKER].count ? found : PATTERNS;
}

/* Memory of this process */

struct mapping {
	unsigned long from, to;
	bool readable, dumped;
	char line[200];
};

static size_t list_mappings(struct mapping *mappings)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	struct mapping *m = mappings - 1;
	char line[512], rights[8];
	unsigned long from, to;

	if (!maps)
		return 0;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3) {
			if (++m == mappings + MAPPINGS_MAX)
				break;
			*m = (struct mapping){ from, to, rights[0] == 'r', true, "" };
			(void)snprintf(m->line, sizeof(m->line), "%.*s", (int)strcspn(line, "\n"), line);
		} else if (!strncmp(line, "VmFlags:", 8)) {
			m->dumped = !strstr(line, " dd");
		}
	}
	(void)fclose(maps);
	return (size_t)(m + 1 - mappings);
}

/* Search what pread() gives of @fd from @from to @to, by way of @buffer. */
static void search_file(int fd, unsigned long from, unsigned long to, uint8_t *buffer,
			const char *where)
{
	ssize_t got;

	for (; from < to; from += (size_t)got > SECRET_BYTES ? (size_t)got - SECRET_BYTES + 1 :
							       SECRET_BYTES) {
		got = pread(fd, buffer, to - from < BUFFER_BYTES ? to - from : BUFFER_BYTES,
			    (off_t)from);
		if (got <= 0)
			return; /* such as pages of a device */
		search(buffer, (size_t)got, where);
		if ((size_t)got == to - from)
			return;
	}
}

/* Search all readable memory of this process; @dumped: only what a core file would have. */
static void search_memory(bool dumped)
{
	const size_t bytes = BUFFER_BYTES + MAPPINGS_MAX * sizeof(struct mapping);
	uint8_t *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping *mappings = (void *)(own + BUFFER_BYTES);
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	size_t count = own == MAP_FAILED || madvise(own, bytes, MADV_DONTDUMP) ?
			       0 : list_mappings(mappings);

	forget_counts();
	for (size_t i = 0; i < count && fd >= 0; i++) {
		const struct mapping *m = &mappings[i];

		/* The kernel may have merged the search's own memory with its neighbours. */
		unsigned long skip = (unsigned long)own, after = skip + bytes;

		if (!m->readable || (dumped && !m->dumped))
			continue;
		if (skip >= m->to || after <= m->from) {
			search_file(fd, m->from, m->to, own, m->line);
			continue;
		}
		if (m->from < skip)
			search_file(fd, m->from, skip, own, m->line);
		if (m->to > after)
			search_file(fd, after, m->to, own, m->line);
	}
	(void)close(fd);
	(void)munmap(own, bytes);
}

/* Nodes that talk */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *text; /* the log of all nodes, and dumps */
static char *written;
static size_t written_bytes;

struct two {
	struct weft_node *a, *b;
	struct weft_peer *to_a, *to_b;
	struct weft_stub *stub_a, *stub_b;
};

static void note(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	pthread_mutex_lock(&lock);
	(void)fprintf(text, "%s\n", line);
	pthread_mutex_unlock(&lock);
}

static void answer(Calls__Test_Service *of, const Calls__Nothing *request,
		   Calls__Nothing_Closure closure, void *closure_data)
{
	Calls__Nothing reply = CALLS__NOTHING__INIT;

	(void)of;
	(void)request;
	closure(&reply, closure_data);
}

static struct weft_node *open_node(void)
{
	const struct weft_node_options options = {
		.size = sizeof(options), .provider = "tcp", .log = note, .timeout_ns = LIMIT_NS,
		.workers = 1, .services = (ProtobufCService *const[]){ &service.base, NULL },
	};
	struct weft_node *node;

	assert_int_equal(setenv("WEFT_KEY_FILE", key, 1), 0);
	assert_int_equal(setenv("WEFT_LOG", "3", 1), 0);
	if (weft_node_open(&options, &node))
		fail_msg("%s", weft_error());
	assert_int_equal(unsetenv("WEFT_KEY_FILE") || unsetenv("WEFT_LOG"), 0);
	return node;
}

static void ends_well(struct weft_op *op)
{
	assert_int_equal(weft_wait(op, LIMIT_NS), 0);
	if (weft_op_status(op) != WEFT_OK)
		fail_msg("%s", weft_op_message(op));
	weft_op_free(op);
}

static void replied(const Calls__Nothing *reply, void *arg)
{
	(void)reply;
	(void)arg;
}

static void call(struct weft_stub *stub)
{
	const Calls__Nothing request = CALLS__NOTHING__INIT;
	ProtobufCService *once;
	struct weft_op *op;

	assert_int_equal(weft_call_open(stub, NULL, &once, &op), 0);
	calls__test__empty(once, &request, replied, NULL);
	ends_well(op);
}

static void move(struct weft_node *to, struct weft_peer *peer, uint64_t step, int64_t count)
{
	struct weft_tensor sent = { .device = { WEFT_CPU, 0 }, .ndim = 1, .shape = &count,
				    .dtype = { WEFT_UINT, 8, 1 } }, got = sent;
	struct weft_op *send, *receive;

	sent.data = test_malloc((size_t)count);
	got.data = test_malloc((size_t)count);
	memset(sent.data, 7, (size_t)count);
	assert_int_equal(weft_recv(to, NULL, step, "k", 1, &got, NULL, &receive), 0);
	assert_int_equal(weft_send(peer, step, "k", 1, &sent, NULL, &send), 0);
	ends_well(send);
	ends_well(receive);
	assert_memory_equal(sent.data, got.data, (size_t)count);
	test_free(sent.data);
	test_free(got.data);
}

static void talk(const struct two *two, uint64_t step)
{
	static const int64_t sizes[] = { 8, 1000, 60000, 1 << 20, LONGEST_BYTES };

	for (size_t i = 0; i < WF_COUNT(sizes); i++) {
		move(two->b, two->to_b, step + i, sizes[i]);
		move(two->a, two->to_a, step + i, sizes[i]);
		call(two->stub_a);
		call(two->stub_b);
	}
}

/* Look for the key in file @path, and for the PSK that comes of it. */
static void look_for_key(const char *path)
{
	static const struct wf_secret none;
	struct wf_secret file, psk, early;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, file.bytes, SECRET_BYTES), SECRET_BYTES);
	assert_int_equal(close(fd), 0);
	assert_int_equal(wf_secret_derive(&file, "weft key", 0, 0, &psk), 0);
	/* RFC 8446, 7.1: HKDF-Extract without a salt. */
	assert_int_equal(wf_secret_mac(&none, psk.bytes, SECRET_BYTES, early.bytes, SECRET_BYTES),
			 0);
	look_for(KEY_FILE, file.bytes);
	look_for(PSK, psk.bytes);
	look_for(EARLY, early.bytes);
	wf_secret_wipe(&file);
	wf_secret_wipe(&psk);
	wf_secret_wipe(&early);
}

/* Look for the secrets of the only link of @arg, a node whose worker runs this. */
static void look_for_links(struct weft_op *op, void *arg)
{
	struct weft_node *node = arg;
	struct wf_list *links = &node->workers[0].engine.link_list;
	struct wf_link *link = WF_CONTAINER(wf_list_first(links), struct wf_link, node);

	(void)op;
	look_for(LINK, link->seals.secret->bytes);
	look_for(LINK_NEXT, link->seals.next->bytes);
	look_for(RATCHET_OUT, link->seals.out.next->bytes);
	look_for(RATCHET_IN, link->seals.in.next->bytes);
}

static struct two open_two(void)
{
	struct weft_op_options options = { .size = sizeof(options), .done = look_for_links };
	struct weft_op *op;
	struct two two;

	two.a = open_node();
	two.b = open_node();
	assert_int_equal(weft_peer_open(two.a, weft_node_address(two.b), &two.to_b), 0);
	assert_int_equal(weft_peer_open(two.b, weft_node_address(two.a), &two.to_a), 0);
	assert_int_equal(weft_stub_open(two.to_b, &calls__test__descriptor, &two.stub_b), 0);
	assert_int_equal(weft_stub_open(two.to_a, &calls__test__descriptor, &two.stub_a), 0);
	talk(&two, 0);
	options.arg = two.a;
	assert_int_equal(weft_ping(two.to_b, &options, &op), 0);
	ends_well(op);
	assert_true(patterns[RATCHET_IN].known);
	return two;
}

static void close_two(struct two *two)
{
	weft_stub_close(two->stub_a);
	weft_stub_close(two->stub_b);
	weft_peer_close(two->to_a);
	weft_peer_close(two->to_b);
	assert_int_equal(weft_node_close(two->a), 0);
	assert_int_equal(weft_node_close(two->b), 0);
}

/* A sanitizer maps far more memory than can be read, and keeps what was freed. */
static void skip_with_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("a sanitizer's memory can't be searched\n");
	skip();
#endif
}

/* Text */

static void write_hex(const uint8_t *bytes, const char *digits, char out[TEXT_BYTES])
{
	for (size_t i = 0; i < SECRET_BYTES; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * SECRET_BYTES] = '\0';
}

/* Write the 42 letters of base64 that 32 bytes give alone; the rest depends on what follows. */
static void write_base64(const uint8_t *bytes, const char *last_two, char out[TEXT_BYTES])
{
	char letters[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	memcpy(letters + 62, last_two, 2);
	for (size_t i = 0; i < 42; i++) {
		unsigned pair = bytes[i * 6 / 8] << 8 | bytes[i * 6 / 8 + 1];

		out[i] = letters[pair >> (10 - i * 6 % 8) & 63];
	}
	out[42] = '\0';
}

static void is_not_written(const struct pattern *p, const char *name)
{
	uint8_t bytes[SECRET_BYTES];
	char forms[4][TEXT_BYTES];

	for (size_t i = 0; i < SECRET_BYTES; i++)
		bytes[i] = p->masked[i] ^ MASK;
	write_hex(bytes, "0123456789abcdef", forms[0]);
	write_hex(bytes, "0123456789ABCDEF", forms[1]);
	write_base64(bytes, "+/", forms[2]);
	write_base64(bytes, "-_", forms[3]);
	if (memmem(written, written_bytes, bytes, SECRET_BYTES))
		fail_msg("%s is written as it is", name);
	for (size_t i = 0; i < WF_COUNT(forms); i++)
		if (memmem(written, written_bytes, forms[i], strlen(forms[i])))
			fail_msg("%s is written as %s", name, forms[i]);
}

static void dumps_and_logs_have_no_secret(void **state)
{
	struct two two;

	(void)state;
	look_for_key(key);
	two = open_two();
	pthread_mutex_lock(&lock);
	assert_int_equal(weft_dump(two.a, text), 0);
	assert_int_equal(weft_dump(two.b, text), 0);
	pthread_mutex_unlock(&lock);
	close_two(&two);
	(void)fflush(text);
	assert_non_null(strstr(written, "link"));
	for (unsigned i = 0; i < SECRETS; i++)
		is_not_written(&patterns[i], names[i]);
}

static void forms_of_text_are_as_others_write_them(void **state)
{
	uint8_t bytes[SECRET_BYTES];
	char out[TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < SECRET_BYTES; i++)
		bytes[i] = (uint8_t)(0xe0 + i);
	write_hex(bytes, "0123456789abcdef", out);
	assert_string_equal(out, "e0e1e2e3e4e5e6e7e8e9eaebecedeeef"
				 "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
	write_base64(bytes, "+/", out);
	assert_string_equal(out, "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v");
	write_base64(bytes, "-_", out);
	assert_string_equal(out, "4OHi4-Tl5ufo6err7O3u7_Dx8vP09fb3-Pn6-_z9_v");
}

/* Memory */

static void memory_that_a_core_file_has_holds_no_secret_of_nodes_that_live(void **state)
{
	struct two two;

	(void)state;
	skip_with_sanitizers();
	look_for_key(key);
	two = open_two();
	search_memory(true);
	assert_int_equal(secrets_found(), 0);
	/* The rest of memory has them. */
	search_memory(false);
	assert_int_equal(patterns[KEY_FILE].count, 0);
	for (unsigned i = PSK; i < SECRETS; i++)
		assert_int_not_equal(patterns[i].count, 0);
	close_two(&two);
}

static void nodes_that_are_closed_leave_no_secret_in_memory(void **state)
{
	struct two two;

	(void)state;
	skip_with_sanitizers();
	look_for_key(key);
	two = open_two();
	close_two(&two);
	search_memory(false);
	assert_int_equal(secrets_found(), 0);
}

static void a_forked_child_has_no_secret_of_its_parents(void **state)
{
	struct two two;
	pid_t child;
	int status;

	(void)state;
	skip_with_sanitizers();
	look_for_key(key);
	two = open_two();
	child = fork();
	if (!child) {
		alarm(CHILD_S);
		search_memory(false);
		_exit((int)secrets_found());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close_two(&two);
}

static void a_key_that_was_replaced_is_gone_from_memory_after_its_grace(void **state)
{
	struct weft_counters counters = { .size = sizeof(counters) };
	struct two two;

	(void)state;
	skip_with_sanitizers();
	assert_int_equal(setenv("WEFT_KEY_GRACE", "100ms", 1), 0);
	look_for_key(key);
	two = open_two();
	assert_int_equal(unsetenv("WEFT_KEY_GRACE"), 0);
	assert_int_equal(rename(fresh, key), 0);
	assert_int_equal(weft_node_rekey(two.a), 0);
	assert_int_equal(weft_node_rekey(two.b), 0);
	for (unsigned i = 0; i < 2000 && !counters.links_rekeyed; i++) {
		assert_int_equal(weft_node_counters(two.a, &counters), 0);
		usleep(10000);
	}
	assert_int_equal(counters.links_rekeyed, 1);
	talk(&two, 100);
	/* Each node forgets what it had at its own next look. */
	for (unsigned i = 0; i < 200; i++) {
		search_memory(false);
		if (!secrets_found())
			break;
		usleep(100000);
	}
	assert_int_equal(patterns[KEY_FILE].count + patterns[PSK].count, 0);
	/* Secrets that came of it are gone with it. */
	for (unsigned i = LINK; i < SECRETS; i++)
		assert_int_equal(patterns[i].count, 0);
	assert_int_not_equal(patterns[MARKER].count, 0);
	close_two(&two);
}

/* Core files */

/* The child's part: write what is to be looked for, and die with nodes that live. */
static int die_with_nodes(void)
{
	int fd;

	alarm(CHILD_S);
	look_for_key(key);
	(void)open_two();
	fd = open("patterns", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (write(fd, patterns, sizeof(patterns)) != sizeof(patterns))
		return 1;
	abort();
}

/* Does the kernel write core files into the folder where a process is? */
static bool are_cores_written_here(void)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	char pattern[128] = "|";
	int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, pattern, sizeof(pattern) - 1);

	if (fd >= 0)
		(void)close(fd);
	return got > 0 && !strncmp(pattern, "core", 4) && !setrlimit(RLIMIT_CORE, &none);
}

/* Open the core file in the folder, and remove its name. */
static int open_core(void)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	int fd = -1;

	assert_non_null(entries);
	while (fd < 0 && (entry = readdir(entries)))
		if (!strncmp(entry->d_name, "core", 4)) {
			fd = openat(dirfd(entries), entry->d_name, O_RDONLY | O_CLOEXEC);
			assert_int_equal(unlinkat(dirfd(entries), entry->d_name, 0), 0);
		}
	(void)closedir(entries);
	return fd;
}

static void a_core_file_has_no_secret_of_nodes_that_lived(void **state)
{
	static uint8_t buffer[BUFFER_BYTES];
	int status, fd;
	pid_t child;

	(void)state;
	skip_with_sanitizers();
	if (!are_cores_written_here()) {
		print_message("the kernel writes no core files to where a process is\n");
		skip();
	}
	child = fork();
	if (!child) {
		if (!chdir(folder))
			execl("/proc/self/exe", "test_secrets", "--die", key, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && WCOREDUMP(status));

	fd = openat(AT_FDCWD, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	status = openat(fd, "patterns", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(status, patterns, sizeof(patterns)), sizeof(patterns));
	assert_int_equal(close(status) || unlinkat(fd, "patterns", 0) || close(fd), 0);
	forget_counts();
	fd = open_core();
	assert_true(fd >= 0);
	search_file(fd, 0, (unsigned long)lseek(fd, 0, SEEK_END), buffer, "the core file");
	assert_int_equal(close(fd), 0);
	assert_int_equal(secrets_found(), 0);
}

static int begin(void **state)
{
	(void)state;
	memset(patterns, 0, sizeof(patterns));
	look_for(MARKER, marker);
	text = open_memstream(&written, &written_bytes);
	return !text || weft_key_new(key) || weft_key_new(fresh);
}

static int end(void **state)
{
	(void)state;
	(void)fclose(text);
	free(written);
	(void)unlink(fresh);
	return unlink(key);
}

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/weft-secrets.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(key, sizeof(key), "%s/key", folder);
	(void)snprintf(fresh, sizeof(fresh), "%s/fresh", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(forms_of_text_are_as_others_write_them),
		TEST(dumps_and_logs_have_no_secret),
		TEST(memory_that_a_core_file_has_holds_no_secret_of_nodes_that_live),
		TEST(nodes_that_are_closed_leave_no_secret_in_memory),
		TEST(a_forked_child_has_no_secret_of_its_parents),
		TEST(a_key_that_was_replaced_is_gone_from_memory_after_its_grace),
		TEST(a_core_file_has_no_secret_of_nodes_that_lived),
	};

	calls__test__init(&service, NULL);
	service.empty = answer;
	marker = malloc(SECRET_BYTES);
	if (!marker)
		return 1;
	for (size_t i = 0; i < SECRET_BYTES; i++)
		marker[i] = (uint8_t)(i * 37 + 11);
	if (argc == 3 && !strcmp(argv[1], "--die")) {
		(void)snprintf(key, sizeof(key), "%s", argv[2]);
		text = open_memstream(&written, &written_bytes);
		look_for(MARKER, marker);
		return die_with_nodes();
	}
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
