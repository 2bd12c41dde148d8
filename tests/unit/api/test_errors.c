/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the public functions refuse before anything is sent, and with which
 * sentence.  Nodes are opened over tcp, which every libfabric has.
 */
#include <weft/weft.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What came of opening a node. */
struct outcome {
	int err;
	char text[600];
};

/* An option struct of a later version, with one field more. */
struct longer {
	struct weft_node_options known;
	uint64_t unknown;
};

/* A child that crashes must end: cmocka's handler would go on with the next test in it. */
static void let_crash(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

	for (size_t i = 0; i < COUNT(signals); i++)
		signal(signals[i], SIG_DFL);
}

/*
 * Open a node in a child, with @name=@value in its environment (NULL: nothing):
 * libfabric reads its variables only once in a process.
 */
static struct outcome open_with(const char *name, const char *value,
				const struct weft_node_options *options)
{
	struct outcome o = { .err = 1 };
	int fds[2], status;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct weft_node *node = NULL;

		let_crash();
		if (name)
			setenv(name, value, 1);
		o.err = weft_node_open(options, &node);
		snprintf(o.text, sizeof(o.text), "%s", o.err ? weft_error() : "");
		/* Nothing is written on failure. */
		if (o.err && node)
			o.err = 2;
		weft_node_close(node);
		_exit(write(fds[1], &o, sizeof(o)) != sizeof(o));
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &o, sizeof(o)), sizeof(o));
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return o;
}

static void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static struct weft_node_options over_tcp(void)
{
	return (struct weft_node_options){ .size = sizeof(struct weft_node_options),
					   .provider = "tcp" };
}

static void beyond_loopback_needs_a_word(void **state)
{
	struct weft_node_options options = over_tcp();
	struct outcome o;

	(void)state;
	options.listen = "0.0.0.0:0";
	options.advertise = "127.0.0.1:0";
	o = open_with(NULL, NULL, &options);
	assert_int_equal(o.err, -EACCES);
	assert_says(o.text, "0.0.0.0:0");
	assert_says(o.text, "WEFT_SECURITY=open");

	o = open_with("WEFT_SECURITY", "open", &options);
	assert_string_equal(o.text, "");
	assert_int_equal(o.err, 0);
	options.security = WEFT_SECURITY_OPEN;
	o = open_with(NULL, NULL, &options);
	assert_string_equal(o.text, "");
	assert_int_equal(o.err, 0);

	/* Others can't dial a wildcard. */
	options.advertise = NULL;
	o = open_with(NULL, NULL, &options);
	assert_int_equal(o.err, -EINVAL);
	assert_says(o.text, "WEFT_ADVERTISE");
}

static void an_address_that_is_taken_is_named(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct weft_node_options options = over_tcp();
	socklen_t bytes = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct outcome o;
	char text[40];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &bytes), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(a.sin_port));
	options.listen = text;
	o = open_with(NULL, NULL, &options);
	assert_int_equal(o.err, -EADDRINUSE);
	assert_says(o.text, text);
	close(fd);
}

static void an_address_to_listen_on_is_host_and_port(void **state)
{
	static const char *const wrong[] = { "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536",
					     ":7000", "[::1:7000" };

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct weft_node_options options = over_tcp();
		struct outcome o;

		options.listen = wrong[i];
		o = open_with(NULL, NULL, &options);
		if (o.err != -EINVAL)
			fail_msg("%s: %d, %s", wrong[i], o.err, o.text);
		assert_true(o.text[0] != '\0');
	}
}

static void a_security_that_there_is_not_is_refused(void **state)
{
	struct weft_node_options options = over_tcp();
	struct outcome o;

	(void)state;
	options.security = (enum weft_security)(WEFT_SECURITY_SEALED + 1);
	o = open_with(NULL, NULL, &options);
	assert_int_equal(o.err, -EINVAL);
	assert_says(o.text, "security number 4");
}

static void options_must_have_a_size_this_version_can_honour(void **state)
{
	struct longer later = { .known = over_tcp() };
	struct weft_node_options options = over_tcp();
	struct outcome o;

	(void)state;
	options.size = 0;
	o = open_with(NULL, NULL, &options);
	assert_int_equal(o.err, -EINVAL);
	assert_says(o.text, "size");

	/* From a program compiled against a later version: fine, until it asks for more. */
	later.known.size = sizeof(later);
	o = open_with(NULL, NULL, &later.known);
	assert_string_equal(o.text, "");
	assert_int_equal(o.err, 0);
	later.unknown = 1;
	o = open_with(NULL, NULL, &later.known);
	assert_int_equal(o.err, -EINVAL);
	assert_says(o.text, "does not know");

	/* From an earlier one: what lies beyond its end is not looked at. */
	options.size = offsetof(struct weft_node_options, listen);
	options.listen = "nonsense";
	o = open_with(NULL, NULL, &options);
	assert_string_equal(o.text, "");
	assert_int_equal(o.err, 0);
}

static void a_provider_that_is_not_there_is_named(void **state)
{
	struct weft_node_options options = over_tcp();
	struct outcome o;

	(void)state;
	options.provider = "nosuch";
	o = open_with(NULL, NULL, &options);
	assert_int_equal(o.err, -ENODATA);
	assert_says(o.text, "WEFT_PROVIDER=nosuch (set by the program)");
	assert_says(o.text, "tcp");
	options.provider = NULL;
	o = open_with("WEFT_PROVIDER", "nosuch", &options);
	assert_int_equal(o.err, -ENODATA);
	assert_says(o.text, "WEFT_PROVIDER=nosuch; ");

	o = open_with("FI_PROVIDER", "nosuch", NULL);
	assert_int_equal(o.err, -ENODATA);
	assert_says(o.text, "FI_PROVIDER=nosuch");

	/* By the name that it was set by. */
	options.provider = NULL;
	o = open_with("TF_RDMA_DEV_NAME", "mlx5_9", &options);
	assert_int_equal(o.err, -ENODATA);
	assert_says(o.text, " with TF_RDMA_DEV_NAME=mlx5_9");
	options.device = "eth9";
	o = open_with("TF_RDMA_DEV_NAME", "mlx5_9", &options);
	assert_int_equal(o.err, -ENODATA);
	assert_says(o.text, " with WEFT_DEVICE=eth9 (set by the program)");

	o = open_with("FI_PROVIDER", "", NULL);
	assert_int_equal(o.err, -ENODATA);
	assert_says(o.text, "FI_PROVIDER is set but empty");
}

static void a_setting_out_of_its_limits_is_named(void **state)
{
	struct weft_node_options options = over_tcp();
	struct outcome o;

	(void)state;
	o = open_with("WEFT_CHUNK_BYTES", "1", &options);
	assert_int_equal(o.err, -EINVAL);
	assert_says(o.text, "WEFT_CHUNK_BYTES=1");
	o = open_with("WEFT_PORTS", "7000", &options);
	assert_int_equal(o.err, -EINVAL);
	assert_says(o.text, "WEFT_PORTS=7000");
	o = open_with("WEFT_PORTS", "7000-6000", &options);
	assert_int_equal(o.err, -EINVAL);
	assert_says(o.text, "WEFT_PORTS=7000-6000: expected first-last, the lower port first");
}

/* The rest needs an open node. */

struct world {
	struct weft_node *threaded, *manual;
	struct weft_peer *peer; /* of the threaded one; nobody is there */
};

static int open_world(void **state)
{
	static struct world w;
	struct weft_node_options options = over_tcp();

	if (weft_node_open(&options, &w.threaded))
		return -1;
	options.mode = WEFT_MANUAL;
	if (weft_node_open(&options, &w.manual) ||
	    weft_peer_open(w.threaded, "127.0.0.1:9", &w.peer))
		return -1;
	*state = &w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	weft_peer_close(w->peer);
	return weft_node_close(w->threaded) || weft_node_close(w->manual) ? -1 : 0;
}

static void a_name_is_at_most_63_bytes(void **state)
{
	struct weft_node_options options = over_tcp();
	char name[65] = "";
	struct outcome o;

	(void)state;
	memset(name, 'n', 63);
	options.name = name;
	assert_int_equal(open_with(NULL, NULL, &options).err, 0);
	name[63] = 'n';
	o = open_with(NULL, NULL, &options);
	assert_int_equal(o.err, -EINVAL);
	assert_string_equal(o.text, "name has 64 bytes: at most 63");
}

static void note_line(void *arg, int level, const char *line)
{
	char *heard = arg;

	(void)level;
	strncat(heard, line, 500);
	strcat(heard, "\n");
}

static void a_variable_that_is_no_setting_is_named_once(void **state)
{
	struct weft_node_options options = over_tcp();
	char heard[2000] = "";
	struct weft_node *node;

	(void)state;
	options.log = note_line;
	options.log_arg = heard;
	setenv("WEFT_PROVIDR", "tcp", 1);
	setenv("WEFT_", "", 1);
	assert_int_equal(weft_node_open(&options, &node), 0);
	weft_node_close(node);
	unsetenv("WEFT_PROVIDR");
	unsetenv("WEFT_");
	assert_says(heard, "WEFT_PROVIDR");
	assert_null(strstr(strstr(heard, "WEFT_PROVIDR") + 1, "WEFT_PROVIDR"));

	heard[0] = '\0';
	setenv("WEFT_POOL_BYTES", "1M", 1);
	setenv("WEFTY", "", 1);
	assert_int_equal(weft_node_open(&options, &node), 0);
	weft_node_close(node);
	unsetenv("WEFT_POOL_BYTES");
	assert_null(strstr(heard, "no setting"));
}

/* A node that opens has huge pages, and one that has none says so. */
static void a_pool_that_can_not_be_had_is_named(void **state)
{
	const struct weft_node_options options = { .size = sizeof(options) };
	struct weft_node *node;
	int err;

	(void)state;
	setenv("WEFT_POOL_NUMA", "63", 1);
	assert_int_equal(weft_node_open(&options, &node), -EINVAL);
	assert_says(weft_error(), "WEFT_POOL_NUMA=63: this machine has memory on NUMA node");
	setenv("WEFT_POOL_NUMA", "0", 1);
	assert_int_equal(weft_node_open(&options, &node), 0);
	assert_int_equal(weft_node_close(node), 0);
	unsetenv("WEFT_POOL_NUMA");
	setenv("WEFT_POOL_HUGE", "yes", 1);
	err = weft_node_open(&options, &node);
	if (err) {
		assert_int_equal(err, -ENOMEM);
		assert_says(weft_error(), "nr_hugepages");
	} else {
		assert_int_equal(weft_node_close(node), 0);
	}
	unsetenv("WEFT_POOL_HUGE");
}

static void the_log_goes_to_standard_error_where_that_is_asked_for(void **state)
{
	struct weft_node_options options = over_tcp();
	struct weft_node *node;
	char text[1000] = "";
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);

	(void)state;
	assert_non_null(file);
	setenv("WEFT_PROVIDR", "tcp", 1);
	dup2(fileno(file), STDERR_FILENO);
	assert_int_equal(weft_node_open(&options, &node), 0); /* silent */
	weft_node_close(node);
	setenv("WEFT_LOG", "stderr:1", 1);
	assert_int_equal(weft_node_open(&options, &node), 0);
	weft_node_close(node);
	unsetenv("WEFT_LOG");
	unsetenv("WEFT_PROVIDR");
	dup2(saved, STDERR_FILENO);
	close(saved);

	rewind(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_int_equal(strncmp(text, "weft: the environment has ", 26), 0);
	assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
}

static void a_binary_key_is_shown_in_digits(void **state)
{
	static const uint8_t key[] = { 0x00, 0x1b, 'k', 0xff };
	struct weft_recv_options options = {
		.size = sizeof(options), .op = { .size = sizeof(options.op), .timeout_ns = 1 },
	};
	struct world *w = *state;
	struct weft_op *op;

	assert_int_equal(weft_recv(w->manual, NULL, 7, key, sizeof(key), NULL, &options, &op), 0);
	assert_int_equal(weft_wait(op, WEFT_FOREVER), 0);
	assert_says(weft_op_message(op), "step 7, key 0x001b6bff");
	weft_op_free(op);
	assert_int_equal(weft_recv(w->manual, NULL, 7, "name", 4, NULL, &options, &op), 0);
	assert_int_equal(weft_wait(op, WEFT_FOREVER), 0);
	assert_says(weft_op_message(op), "step 7, key \"name\"");
	weft_op_free(op);
}

static void an_info_is_asked_as_a_node_would(void **state)
{
	struct weft_node_options options = over_tcp();
	struct weft_info *info = NULL;
	struct weft_fabric fabric = { .size = sizeof(fabric) };
	struct weft_info_secure secure = { .size = 0 };
	struct weft_cuda cuda = { .size = 0 };
	struct weft_cuda_device device = { .size = 0 };
	char text[100];

	(void)state;
	options.size = 0;
	assert_int_equal(weft_info_open(&options, &info), -EINVAL);
	options = over_tcp();
	options.provider = "nosuch";
	assert_int_equal(weft_info_open(&options, &info), -ENODATA);
	assert_null(info);
	assert_int_equal(weft_info_look(&options, &info), 0);
	assert_true(weft_info_count(info) > 0);
	for (size_t i = 0; i < weft_info_count(info); i++) {
		assert_int_equal(weft_info_get(info, i, &fabric), 0);
		assert_int_equal(fabric.used, 0);
		assert_true(fabric.reason[0] != '\0');
	}
	weft_info_close(info);

	options.provider = "tcp";
	assert_int_equal(weft_info_open(&options, &info), 0);
	assert_int_equal(weft_info_get(info, weft_info_count(info), &fabric), -EINVAL);
	assert_int_equal(weft_info_plan(info, weft_info_count(info), 1, WEFT_PLACE_USER,
					WEFT_PLACE_USER, text, sizeof(text)),
			 -EINVAL);
	assert_int_equal(weft_info_get(info, 0, &fabric), 0);
	fabric.size = 0;
	assert_int_equal(weft_info_get(info, 0, &fabric), -EINVAL);
	assert_int_equal(weft_info_security(info, &secure), -EINVAL);
	assert_int_equal(weft_info_cuda(info, &cuda), -EINVAL);
	assert_int_equal(weft_info_cuda_device(info, 0, &device), -EINVAL);
	device.size = sizeof(device);
	assert_int_equal(weft_info_cuda_device(info, 1000, &device), -EINVAL);
	weft_info_close(info);
	weft_info_close(NULL);
}

static void a_peer_is_host_and_port(void **state)
{
	static const char *const wrong[] = { "", "host", "host:", ":7", "host:-1", "host:70000",
					     "::1:7" };
	struct world *w = *state;
	struct weft_peer *peer = NULL, *same = NULL;
	char longest[2000];

	for (size_t i = 0; i < COUNT(wrong); i++) {
		if (weft_peer_open(w->threaded, wrong[i], &peer) != -EINVAL)
			fail_msg("\"%s\" passes for an address", wrong[i]);
		assert_says(weft_error(), wrong[i]);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(weft_peer_open(w->threaded, longest, &peer), -EINVAL);
	assert_null(peer);

	assert_int_equal(weft_peer_open(w->threaded, "[::1]:7", &peer), 0);
	assert_int_equal(weft_peer_open(w->threaded, "[::1]:7", &same), 0);
	assert_ptr_equal(peer, same);
	assert_string_equal(weft_peer_name(peer), "[::1]:7");
	weft_peer_close(peer);
	weft_peer_close(same);
	weft_peer_close(NULL);
}

static void a_tensor_that_is_none_is_not_sent(void **state)
{
	static float data[4];
	int64_t two[] = { 2, 2 }, turned[] = { 1, 2 }, wrong[] = { 2, -2 };
	const struct weft_tensor good = { .data = data, .device = { WEFT_CPU, 0 }, .ndim = 2,
					  .dtype = { WEFT_FLOAT, 32, 1 }, .shape = two };
	struct weft_send_options options = { .size = sizeof(options) };
	struct world *w = *state;
	struct weft_tensor t;
	struct weft_op *op = NULL;

	t = good;
	t.dtype.bits = 0;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &t, NULL, &op), -EINVAL);
	assert_says(weft_error(), "0 bits");
	t = good;
	t.ndim = WEFT_RANK_MAX + 1;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &t, NULL, &op), -EINVAL);
	assert_string_equal(weft_error(), "ndim is 65: expected 0 to 64");
	t = good;
	t.shape = wrong;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &t, NULL, &op), -EINVAL);
	assert_string_equal(weft_error(), "dimension 1 of the shape is negative: -2");
	t = good;
	t.shape = NULL;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &t, NULL, &op), -EINVAL);
	assert_string_equal(weft_error(), "shape is NULL, and ndim is 2");
	t = good;
	t.data = NULL;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &t, NULL, &op), -EINVAL);
	assert_says(weft_error(), "without data");
	t = good;
	t.device.type = 10;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &t, NULL, &op), -ENOTSUP);
	assert_says(weft_error(), "device type 10");
	assert_int_equal(weft_recv(w->threaded, NULL, 0, "k", 1, &t, NULL, &op), -ENOTSUP);

	assert_int_equal(weft_send(w->peer, 0, "k", WEFT_KEY_BYTES_MAX + 1, &good, NULL, &op),
			 -EINVAL);
	assert_says(weft_error(), "65536");
	assert_int_equal(weft_send(w->peer, 0, NULL, 1, &good, NULL, &op), -EINVAL);
	assert_string_equal(weft_error(), "key is NULL, and key_bytes is 1");
	options.flags = WEFT_ANY_SHAPE;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &good, &options, &op), -EINVAL);
	assert_says(weft_error(), "0x8");
	options.flags = WEFT_OPAQUE;
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &good, &options, &op), -EINVAL);
	assert_says(weft_error(), "opaque");

	t = good;
	t.strides = turned;
	assert_int_equal(weft_recv(w->threaded, NULL, 0, "k", 1, &t, NULL, &op), -EINVAL);
	assert_says(weft_error(), "contiguous");
	assert_int_equal(weft_recv(w->manual, w->peer, 0, "k", 1, &good, NULL, &op), -EINVAL);
	assert_says(weft_error(), "another node");
	assert_null(op);
}

static void a_priority_above_the_highest_is_refused(void **state)
{
	struct weft_op_options ping = { .size = sizeof(ping), .priority = WEFT_PRIORITY_MAX + 1 };
	struct world *w = *state;
	struct weft_op *op = NULL;

	assert_int_equal(weft_ping(w->peer, &ping, &op), -EINVAL);
	assert_says(weft_error(), "priority 4 is above 3");
	ping.priority = 0;
	ping.reserved[2] = 1;
	assert_int_equal(weft_ping(w->peer, &ping, &op), -EINVAL);
	assert_says(weft_error(), "reserved");
	assert_null(op);
}

static void options_of_operations_need_their_size_too(void **state)
{
	struct weft_op_options ping = { .timeout_ns = 1 };
	struct weft_send_options send = { .flags = WEFT_DEAD };
	struct weft_recv_options recv = { .size = sizeof(recv), .op.timeout_ns = 1 };
	int64_t shape[] = { 1 };
	const struct weft_tensor t = { .ndim = 1, .dtype = { WEFT_FLOAT, 32, 1 }, .shape = shape };
	struct world *w = *state;
	struct weft_op *op = NULL;

	assert_int_equal(weft_ping(w->peer, &ping, &op), -EINVAL);
	assert_says(weft_error(), "size");
	assert_int_equal(weft_send(w->peer, 0, "k", 1, &t, &send, &op), -EINVAL);
	assert_says(weft_error(), "size");
	/* A time limit must not be dropped in silence. */
	assert_int_equal(weft_recv(w->threaded, NULL, 0, "k", 1, NULL, &recv, &op), -EINVAL);
	assert_says(weft_error(), "options->op.size is not set");
	assert_null(op);

	recv.op.timeout_ns = 0;
	recv.op.priority = 1;
	assert_int_equal(weft_recv(w->threaded, NULL, 0, "k", 1, NULL, &recv, &op), -EINVAL);
	recv.op.priority = 0;
	assert_int_equal(weft_recv(w->threaded, NULL, 0, "k", 1, NULL, &recv, &op), 0);
	weft_cancel(op);
	assert_int_equal(weft_wait(op, WEFT_FOREVER), 0);
	assert_int_equal(weft_op_status(op), WEFT_CANCELLED);
	assert_null(weft_op_tensor(op, NULL));
	assert_null(weft_op_take(op));
	weft_op_free(op);
	weft_op_free(NULL);
}

static void structs_to_be_filled_in_need_their_size_too(void **state)
{
	struct weft_counters counters = { .size = sizeof(counters.size) - 1 };
	struct weft_placement placement = { 0 };
	struct weft_probe_info info = { 0 };
	struct weft_option option = { 0 };
	struct world *w = *state;

	assert_int_equal(weft_node_counters(w->threaded, &counters), -EINVAL);
	assert_string_equal(weft_error(), "counters->size is not set");
	assert_int_equal(weft_memory_place(w->threaded, w, &placement), -EINVAL);
	assert_string_equal(weft_error(), "placement->size is not set");
	assert_int_equal(weft_probe(w->threaded, NULL, 0, "k", 1, &info), -EINVAL);
	assert_string_equal(weft_error(), "info->size is not set");
	assert_int_equal(weft_option_get(0, &option), -EINVAL);
	assert_string_equal(weft_error(), "option->size is not set");
	option.size = sizeof(option.size);
	assert_int_equal(weft_option_get(0, &option), 0);
	assert_null(option.name);
}

static void a_manual_node_has_one_worker(void **state)
{
	struct weft_node_options options = { .size = sizeof(options), .mode = WEFT_MANUAL,
					     .workers = 2 };
	struct weft_node *node = NULL;

	(void)state;
	assert_int_equal(weft_node_open(&options, &node), -EINVAL);
	assert_says(weft_error(), "manual");
	options.mode = WEFT_THREADED;
	options.workers = 17;
	assert_int_equal(weft_node_open(&options, &node), -EINVAL);
	assert_says(weft_error(), "at most 16");
	assert_null(node);
}

static void a_threaded_node_is_not_driven(void **state)
{
	struct world *w = *state;
	uint64_t timeout;

	assert_int_equal(weft_poll(w->threaded, 0), -EINVAL);
	assert_says(weft_error(), "manual");
	assert_int_equal(weft_fd(w->threaded), -EINVAL);
	assert_int_equal(weft_arm(w->threaded, &timeout), -EINVAL);
}

/* A callback that asks for what it must not. */
struct nosy {
	struct weft_node *node;
	int wait, close, poll;
};

static void ask_inside(struct weft_op *op, void *arg)
{
	struct nosy *n = arg;

	n->wait = weft_op_ended(op) ? weft_wait(op, 0) : 1;
	n->close = weft_node_close(n->node);
	n->poll = weft_poll(n->node, 0);
}

static void callbacks_may_not_wait_for_themselves(void **state)
{
	struct world *w = *state;
	struct nosy n = { .node = w->manual };
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = 1, .done = ask_inside, .arg = &n },
	};
	struct weft_op *op;

	assert_int_equal(weft_recv(w->manual, NULL, 0, "k", 1, NULL, &options, &op), 0);
	assert_int_equal(weft_wait(op, WEFT_FOREVER), 0);
	assert_int_equal(weft_op_status(op), WEFT_DEADLINE_EXCEEDED);
	assert_int_equal(n.wait, -EDEADLK);
	assert_int_equal(n.close, -EDEADLK);
	assert_int_equal(n.poll, -EDEADLK);
	weft_op_free(op);
}

static void an_operation_that_runs_says_so(void **state)
{
	struct weft_path path = { .size = sizeof(path) };
	struct world *w = *state;
	struct weft_op *op;

	assert_int_equal(weft_recv(w->manual, NULL, 0, "k", 1, NULL, NULL, &op), 0);
	assert_int_equal(weft_op_ended(op), 0);
	assert_int_equal(weft_op_status(op), WEFT_UNKNOWN);
	assert_string_equal(weft_op_message(op), "");
	assert_int_equal(weft_op_executed(op), WEFT_EXECUTED_MAYBE);
	assert_int_equal(weft_op_path(op, &path), -EAGAIN);
	assert_int_equal(weft_wait(op, 1), -ETIMEDOUT);
	assert_null(weft_op_tensor(op, NULL));
	path.size = 0;
	assert_int_equal(weft_op_path(op, &path), -EINVAL);
	weft_cancel(op);
	assert_int_equal(weft_wait(op, WEFT_FOREVER), 0);
	assert_true(weft_op_message(op)[0] != '\0');
	weft_op_free(op);
}

static void the_pool_says_when_it_is_too_small(void **state)
{
	struct world *w = *state;
	void *memory = NULL;

	assert_int_equal(weft_alloc(w->threaded, (size_t)2 << 30, &memory), -ENOBUFS);
	assert_says(weft_error(), "WEFT_POOL_BYTES");
	assert_null(memory);
	weft_free(w->threaded, NULL);
	weft_free(w->threaded, &memory); /* not of the pool: ignored */
}

static void counters_need_their_size(void **state)
{
	struct weft_counters counters = { 0 };
	struct world *w = *state;

	assert_int_equal(weft_node_counters(w->threaded, &counters), -EINVAL);
	counters.size = sizeof(counters);
	assert_int_equal(weft_node_counters(w->threaded, &counters), 0);
	assert_int_equal(counters.size, sizeof(counters));
}

/* What a forked child finds. */
static int child_of(struct world *w)
{
	struct weft_node *own = NULL;
	struct weft_op *op;
	struct weft_peer *peer;
	void *memory;
	struct weft_node_options options = over_tcp();

	if (weft_ping(w->peer, NULL, &op) != -EOWNERDEAD)
		return 2;
	if (weft_peer_open(w->threaded, "a:1", &peer) != -EOWNERDEAD)
		return 3;
	if (weft_alloc(w->threaded, 1, &memory) != -EOWNERDEAD)
		return 4;
	if (weft_poll(w->manual, 0) != -EOWNERDEAD)
		return 5;
	if (weft_node_close(w->threaded) != -EOWNERDEAD)
		return 6;
	if (!strstr(weft_error(), "forked"))
		return 7;
	/* But it may have a node of its own. */
	return weft_node_open(&options, &own) || weft_node_close(own) ? 8 : 0;
}

static void a_forked_child_does_not_own_the_node(void **state)
{
	struct world *w = *state;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		let_crash();
		_exit(child_of(w));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest before_libfabric[] = {
		cmocka_unit_test(beyond_loopback_needs_a_word),
		cmocka_unit_test(an_address_that_is_taken_is_named),
		cmocka_unit_test(an_address_to_listen_on_is_host_and_port),
		cmocka_unit_test(a_security_that_there_is_not_is_refused),
		cmocka_unit_test(options_must_have_a_size_this_version_can_honour),
		cmocka_unit_test(a_provider_that_is_not_there_is_named),
		cmocka_unit_test(a_setting_out_of_its_limits_is_named),
		cmocka_unit_test(a_name_is_at_most_63_bytes),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_info_is_asked_as_a_node_would),
		cmocka_unit_test(a_variable_that_is_no_setting_is_named_once),
		cmocka_unit_test(a_pool_that_can_not_be_had_is_named),
		cmocka_unit_test(the_log_goes_to_standard_error_where_that_is_asked_for),
		cmocka_unit_test(a_binary_key_is_shown_in_digits),
		cmocka_unit_test(a_peer_is_host_and_port),
		cmocka_unit_test(a_tensor_that_is_none_is_not_sent),
		cmocka_unit_test(a_priority_above_the_highest_is_refused),
		cmocka_unit_test(options_of_operations_need_their_size_too),
		cmocka_unit_test(structs_to_be_filled_in_need_their_size_too),
		cmocka_unit_test(a_manual_node_has_one_worker),
		cmocka_unit_test(a_threaded_node_is_not_driven),
		cmocka_unit_test(callbacks_may_not_wait_for_themselves),
		cmocka_unit_test(an_operation_that_runs_says_so),
		cmocka_unit_test(the_pool_says_when_it_is_too_small),
		cmocka_unit_test(counters_need_their_size),
		cmocka_unit_test(a_forked_child_does_not_own_the_node),
	};

	return cmocka_run_group_tests(before_libfabric, NULL, NULL) ||
	       cmocka_run_group_tests(tests, open_world, close_world);
}
