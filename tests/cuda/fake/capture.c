/* SPDX-License-Identifier: BSD-2-Clause */
/* What a capture of a graph forbids: the software driver's captures record nothing. */
#include "tests/cuda/fake/internal.h"

#include <stdlib.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED };

struct fake_graph {
	CUstream stream;
	int mode;
	pthread_t thread;
	bool spoilt;
	struct fake_graph *next;
};

static struct fake_graph *captures; /* under way */
static _Thread_local int thread_mode = GLOBAL;

bool fake_is_captured(void)
{
	bool is = false;

	for (struct fake_graph *g = captures; g; g = g->next) {
		bool own = pthread_equal(g->thread, pthread_self());

		if (thread_mode == RELAXED || g->mode == RELAXED ||
		    (!own && (thread_mode == THREAD_LOCAL || g->mode == THREAD_LOCAL)))
			continue;
		g->spoilt = is = true;
	}
	return is;
}

static struct fake_graph **find(CUstream stream)
{
	struct fake_graph **at = &captures;

	while (*at && (*at)->stream != stream)
		at = &(*at)->next;
	return at;
}

int cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	int code = fake_begin("cuStreamBeginCapture");
	struct fake_graph *fresh = calloc(1, sizeof(*fresh));

	if (!code && ((uintptr_t)stream <= 2 || *find(stream)))
		code = CU_INVALID_VALUE;
	if (code) {
		free(fresh);
		return fake_end(code);
	}
	*fresh = (struct fake_graph){ .stream = stream, .mode = mode, .thread = pthread_self(),
				      .next = captures };
	captures = fresh;
	return fake_end(CU_OK);
}

int cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	int code = fake_begin("cuStreamEndCapture");
	struct fake_graph **at = find(stream), *found = *at;

	if (!code && !found)
		code = CU_INVALID_VALUE;
	if (code)
		return fake_end(code);
	*at = found->next;
	*graph = found;
	if (found->spoilt) {
		free(found);
		*graph = NULL;
		code = CU_CAPTURE_INVALIDATED;
	}
	return fake_end(code);
}

/* Is a stream under capture that the default one would wait for? */
static bool forbids_default(void)
{
	for (struct fake_graph *g = captures; g; g = g->next)
		if (!fake_is_beside(g->stream))
			return true;
	return false;
}

int cuStreamIsCapturing(CUstream stream, int *status)
{
	int code = fake_begin("cuStreamIsCapturing");

	if (!code && (uintptr_t)stream <= 1 && forbids_default())
		code = CU_CAPTURE_IMPLICIT;
	else if (!code)
		*status = !*find(stream) ? 0 : (*find(stream))->spoilt ? 2 : 1;
	return fake_end(code);
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int code = fake_begin("cuThreadExchangeStreamCaptureMode"), was = thread_mode;

	if (!code) {
		thread_mode = *mode;
		*mode = was;
	}
	return fake_end(code);
}

int cuGraphDestroy(CUgraph graph)
{
	int code = fake_begin("cuGraphDestroy");

	free(graph);
	return fake_end(code);
}
