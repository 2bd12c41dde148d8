/* SPDX-License-Identifier: BSD-2-Clause */
/* weft call: call a method of that node, with JSON in and out. */
#include "tool/tool.h"

#include <getopt.h>

#ifdef HAVE_CJSON

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/dynamic.h"
#include "tool/json.h"
#include "tool/remote.h"
#include "tool/text.h"

#define LIMIT_NS 10000000000ull
#define PAIRS_MAX 64
#define BODY_ROOM ((size_t)64 << 10)
#define BODY_BYTES_MAX ((size_t)1 << 30) /* room for several messages of 64 MiB, in digits */
#define BLANKS " \t\r\n"

struct request {
	struct remote remote;
	struct dynamic dynamic;
	unsigned method;
	struct weft_metadata pairs[PAIRS_MAX];
	size_t pair_count;
	const char *target, *body; /* target: Service/Method; body: JSON values, the messages */
	bool verbose;
};

static const ProtobufCMethodDescriptor *method_of(const struct request *q)
{
	return &q->dynamic.service.methods[q->method];
}

static int print(const struct request *q, const ProtobufCMessage *message)
{
	cJSON *json = json_of(message);
	char *text = json ? cJSON_Print(json) : NULL;
	int status = TOOL_OK;

	if (text) {
		text_print_json(stdout, text);
		printf("\n");
	} else {
		status = tool_fail(q->remote.command, "no memory to print a reply");
	}
	free(text);
	cJSON_Delete(json);
	if (!status && tool_flush(q->remote.command))
		status = TOOL_FAILED;
	return status;
}

/* Read the next JSON value at *@at as a message.  NULL: none is left, or *@status says why. */
static ProtobufCMessage *next(const struct request *q, const char **at, int *status)
{
	ProtobufCMessage *message;
	char wrong[JSON_WRONG_BYTES];
	cJSON *json;

	*at += strspn(*at, BLANKS);
	if (!**at)
		return NULL;
	json = cJSON_ParseWithOpts(*at, at, false);
	if (!json) {
		*status = tool_misused(q->remote.command, "the body is no JSON from here on: %.40s", *at);
		return NULL;
	}
	message = json_read(method_of(q)->input, json, wrong);
	cJSON_Delete(json);
	if (!message)
		*status = tool_misused(q->remote.command, "the body: %s", wrong);
	return message;
}

static struct weft_call_options options_of(const struct request *q)
{
	return (struct weft_call_options){
		.size = sizeof(struct weft_call_options),
		.op = { .size = sizeof(struct weft_op_options), .timeout_ns = q->remote.limit_ns },
		.metadata = q->pairs,
		.metadata_count = q->pair_count,
	};
}

static void print_pairs(const char *what, const struct weft_metadata *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const unsigned char *value = pairs[i].value;

		fprintf(stderr, "%s ", what);
		text_print(stderr, pairs[i].key);
		fprintf(stderr, ": ");
		for (size_t k = 0; k < pairs[i].bytes; k++)
			fprintf(stderr, value[k] < ' ' || value[k] > '~' ? "\\x%02x" : "%c", value[k]);
		fprintf(stderr, "\n");
	}
}

/* Print the metadata that came beside the replies, if --verbose asks for it. */
static void print_rest(const struct request *q, struct weft_op *op)
{
	const struct weft_metadata *pairs;
	size_t count;

	if (!q->verbose)
		return;
	pairs = weft_call_initial(op, &count);
	print_pairs("initial", pairs, count);
	pairs = weft_call_trailing(op, &count);
	print_pairs("trailing", pairs, count);
}

/* Unary calls. */

struct unary {
	const struct request *q;
	int status;
};

static void heard(const ProtobufCMessage *reply, void *arg)
{
	struct unary *u = arg;

	if (reply)
		u->status = print(u->q, reply);
}

static int call(struct request *q, struct weft_stub *stub)
{
	struct weft_call_options options = options_of(q);
	struct unary u = { .q = q };
	const char *at = q->body;
	ProtobufCMessage *message = next(q, &at, &u.status);
	ProtobufCService *service;
	struct weft_op *op;
	int status;

	if (!message)
		return u.status ? u.status : tool_misused(q->remote.command, "the body has no message");
	if (at[strspn(at, BLANKS)]) {
		protobuf_c_message_free_unpacked(message, NULL);
		return tool_misused(q->remote.command, "%s takes one message, and the body goes on: %.40s",
				    q->target, at);
	}
	if (weft_call_open(stub, &options, &service, &op)) {
		status = tool_fail(q->remote.command, "%s", weft_error());
	} else {
		service->invoke(service, q->method, message, heard, &u);
		status = tool_wait(op) == -EINTR ? TOOL_INTERRUPTED : TOOL_OK;
		if (!status)
			print_rest(q, op);
		if (!status && weft_op_status(op) != WEFT_OK)
			status = tool_op_failed(q->remote.command, op, q->target);
		tool_drop(op);
	}
	protobuf_c_message_free_unpacked(message, NULL);
	return status ? status : u.status;
}

/* Streams: all messages are written first, and replies are printed as they come. */

static int write_all(struct request *q, struct weft_stream *stream)
{
	const char *at = q->body;
	ProtobufCMessage *message;
	int status = TOOL_OK, err;

	while ((message = next(q, &at, &status))) {
		err = weft_stream_write(stream, message, NULL, NULL);
		protobuf_c_message_free_unpacked(message, NULL);
		if (err)
			return tool_fail(q->remote.command, "%s", weft_error());
	}
	if (!status && weft_stream_half_close(stream))
		status = tool_fail(q->remote.command, "%s", weft_error());
	return status;
}

/* Print the next message.  TOOL_OK with *@more false: no more will come, for any reason. */
static int read_one(struct request *q, struct weft_stream *stream, bool *more)
{
	const ProtobufCMessage *message;
	int status = TOOL_OK;
	struct weft_op *op;

	*more = false;
	if (weft_stream_read(stream, NULL, &op))
		return tool_fail(q->remote.command, "%s", weft_error());
	if (tool_wait(op) == -EINTR)
		status = TOOL_INTERRUPTED;
	message = status ? NULL : weft_stream_message(op);
	if (message) {
		status = print(q, message);
		*more = true;
	}
	weft_op_free(op);
	return status;
}

static int talk(struct request *q, struct weft_stub *stub)
{
	struct weft_call_options options = options_of(q);
	struct weft_stream *stream;
	struct weft_op *op;
	bool more = true;
	int status;

	if (weft_stream_open(stub, method_of(q)->name, &options, &stream, &op))
		return tool_fail(q->remote.command, "%s", weft_error());
	status = write_all(q, stream);
	while (!status && more)
		status = read_one(q, stream, &more);
	if (!status && tool_wait(op) == -EINTR)
		status = TOOL_INTERRUPTED;
	if (!status)
		print_rest(q, op);
	if (!status && weft_op_status(op) != WEFT_OK)
		status = tool_op_failed(q->remote.command, op, q->target);
	weft_op_free(op);
	weft_stream_close(stream);
	return status;
}

/* Find the method of @q in what the node says of its service. */
static int find_method(struct request *q)
{
	const char *slash = strrchr(q->target, '/');
	Weft__Reflect__Description *said = NULL;
	const char *wrong;
	char *service;
	int status;

	if (!slash)
		return tool_misused(q->remote.command, "'%s' is not a Service/Method", q->target);
	service = strndup(q->target, (size_t)(slash - q->target));
	if (!service)
		return tool_fail(q->remote.command, "no memory");
	status = remote_describe(&q->remote, service, &said);
	if (!status) {
		wrong = dynamic_open(&q->dynamic, service, said);
		if (wrong)
			status = tool_fail(q->remote.command, "what %s says of %s is of no use: %s",
					   q->remote.address, service, wrong);
		weft__reflect__description__free_unpacked(said, NULL);
	}
	while (!status && q->method < q->dynamic.service.n_methods &&
	       strcmp(method_of(q)->name, slash + 1))
		q->method++;
	if (!status && q->method == q->dynamic.service.n_methods)
		status = tool_fail(q->remote.command, "service %s has no method %s", service,
				   slash + 1);
	free(service);
	return status;
}

static int call_method(struct request *q)
{
	struct weft_stub *stub;
	int status = find_method(q);

	if (status)
		return status;
	if (weft_stub_open(q->remote.peer, &q->dynamic.service, &stub))
		return tool_fail(q->remote.command, "%s", weft_error());
	status = q->dynamic.streams[q->method] ? talk(q, stub) : call(q, stub);
	weft_stub_close(stub);
	return status;
}

/* Read all of @from as text, which the caller frees.  NULL: errno says why. */
static char *read_all(FILE *from)
{
	size_t room = BODY_ROOM, used = 0, got;
	char *text = malloc(room), *more;

	while (text && (got = fread(text + used, 1, room - used - 1, from))) {
		used += got;
		if (room - used > 1)
			continue;
		errno = used > BODY_BYTES_MAX ? EFBIG : ENOMEM;
		more = used > BODY_BYTES_MAX ? NULL : realloc(text, room *= 2);
		if (!more)
			free(text);
		text = more;
	}
	if (text && ferror(from)) {
		free(text);
		return NULL;
	}
	if (text)
		text[used] = '\0';
	return text;
}

/* Read the body by its word: JSON itself, "@FILE", or "-" for standard input. */
static int read_body(const struct tool_command *self, const char *word, char **body)
{
	bool is_file = *word == '@', is_input = !strcmp(word, "-");
	FILE *from = is_input ? stdin : NULL;
	int status = TOOL_OK;

	if (is_file)
		from = fopen(word + 1, "re");
	if (is_file && !from)
		return tool_fail(self, "can't read %s: %s", word + 1, strerror(errno));
	*body = from ? read_all(from) : strdup(word);
	if (!*body)
		status = tool_fail(self, "can't read the body: %s", strerror(errno));
	if (is_file)
		fclose(from);
	return status;
}

/* Add the metadata of @text, "key: value", which is cut in two at the colon. */
static int add_pair(struct request *q, char *text)
{
	char *colon = strchr(text, ':');

	if (!colon || q->pair_count == PAIRS_MAX)
		return -EINVAL;
	*colon++ = '\0';
	colon += strspn(colon, " ");
	q->pairs[q->pair_count++] = (struct weft_metadata){ text, colon, strlen(colon) };
	return 0;
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = {
		{ "header", required_argument, NULL, 'H' },
		{ "timeout", required_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct request q = { 0 };
	uint64_t limit_ns = LIMIT_NS;
	char *body = NULL;
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":H:t:v", names, NULL)) != -1) {
		if (c == 'v')
			q.verbose = true;
		else if (c != 'H' && c != 't')
			return tool_bad_option(self, c, argv);
		else if (c == 'H' && add_pair(&q, optarg))
			return tool_misused(self, "'%s' is not a key: value", optarg);
		else if (c == 't' && tool_seconds(optarg, &limit_ns))
			return tool_misused(self, "'%s' is not a time in seconds", optarg);
	}
	if (argc - optind < 2 || argc - optind > 3)
		return tool_misused(self, "an address, a Service/Method and a body are needed");
	q.target = argv[optind + 1];
	status = read_body(self, argc - optind == 3 ? argv[optind + 2] : "{}", &body);
	if (status)
		return status;
	q.body = body;
	status = remote_open(&q.remote, self, argv[optind], limit_ns);
	if (!status) {
		status = call_method(&q);
		remote_close(&q.remote);
		dynamic_close(&q.dynamic); /* the stub used the descriptors until the node closed */
	}
	free(body);
	return status;
}

#else

static int run(const struct tool_command *self, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return tool_fail(self, "this weft was built without libcjson, which reads JSON");
}

#endif

const struct tool_command call_command = {
	.name = "call",
	.arguments = "[-v] [-H 'KEY: VALUE']... [-t SECONDS] ADDRESS SERVICE/METHOD [BODY]",
	.does = "call a method of that node, with JSON in and out",
	.options = "  ADDRESS            host:port of the node's door\n"
		   "  SERVICE/METHOD     as `weft services` prints them\n"
		   "  BODY               the request in JSON, default {}; for a stream several;\n"
		   "                     - is standard input, and @FILE a file\n"
		   "  -H, --header PAIR  metadata for the server; may be repeated\n"
		   "  -t, --timeout S    the deadline; default 10\n"
		   "  -v, --verbose      print the server's metadata, on stderr\n",
	.run = run,
};
