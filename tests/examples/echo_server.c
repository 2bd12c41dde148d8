/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives each line of a stream back.  Prints its address, and serves until SIGTERM. */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <weft/weft.h>
#include "echo.pb-c.h"

WEFT_STREAM_TYPES(repeat, Echo__Line, Echo__Line);
static void hear(struct weft_stream *stream, void *unused);

/* The line has left.  Only now the next is read: who reads no answers has to wait. */
static void said(struct weft_op *write, void *stream)
{
	weft_op_free(write);
	hear(stream, NULL); /* if the call is over, the read tells */
}

static void heard(struct weft_op *read, void *stream)
{
	struct weft_op_options then = WEFT_OP_OPTIONS_INIT;
	const Echo__Line *line = repeat_asked(read);
	struct weft_op *write;

	then.done = said;
	then.arg = stream;
	if (!line) /* no more lines, or no client any more: the status says which */
		weft_stream_finish(stream, weft_op_status(read), weft_op_message(read));
	else if (repeat_answer(stream, line, &then, &write))
		weft_stream_finish(stream, WEFT_INTERNAL, weft_error());
	weft_op_free(read);
}

/* Each call begins here.  Like the others it runs on weft's thread and must not block. */
static void hear(struct weft_stream *stream, void *unused)
{
	struct weft_op_options then = WEFT_OP_OPTIONS_INIT;
	struct weft_op *read;

	(void)unused;
	then.done = heard;
	then.arg = stream;
	if (weft_stream_read(stream, &then, &read))
		weft_stream_finish(stream, WEFT_INTERNAL, weft_error());
}

int main(void)
{
	Echo__Echo_Service service = { .base = ECHO__ECHO__BASE_INIT };
	struct weft_stream_method methods[] = { { "Repeat", hear, NULL } };
	struct weft_node *node;
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	if (weft_node_open(NULL, &node) || weft_serve_streams(node, &service.base, methods, 1))
		errx(1, "%s", weft_error());
	puts(weft_node_address(node));
	fflush(stdout);
	sigwaitinfo(&end, NULL);
	return weft_node_close(node) != 0; /* the calls that run end, too */
}
