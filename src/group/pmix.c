/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMIx, by which mpirun, prun and srun --mpi=pmix tell their processes who they are.
 *
 * PMIx is asked for rank, size and the address that rank 0 has put there, and for nothing of all:
 * its fence would wait for a process that never comes, and not say for which.
 */
#include "group/pmix.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "group/launcher.h"
#include "util/clock.h"
#include "util/environment.h"
#include "util/thread.h"

#define LIBRARY_FILE "libpmix.so.2" /* the name of every version since 2 */
#define KEY_BYTES 512 /* PMIx's own limit */
#define LOOK_NS (100 * WF_NS_PER_MS) /* one look at the board */

static const struct entry {
	const char *name;
	size_t offset;
} entries[] = {
#define ENTRY(function) { #function, offsetof(struct wf_pmix_functions, function) }
	ENTRY(PMIx_Init),   ENTRY(PMIx_Finalize), ENTRY(PMIx_Error_string), ENTRY(PMIx_Put),
	ENTRY(PMIx_Commit), ENTRY(PMIx_Get),	  ENTRY(PMIx_Get_nb),
#undef ENTRY
};

/* A question to PMIx: shared with its thread, whose answer may come when nobody waits. */
struct question {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	unsigned refs;
	bool over;
	int status;
	char line[WF_JOB_POST_BYTES];
};

struct pmix_board {
	struct wf_job_board board;
	struct wf_pmix_functions pmix;
	struct wf_pmix_process self;
	struct question *question; /* NULL: none has been asked */
	char key[KEY_BYTES];
};

static struct pmix_board *board_of(struct wf_job_board *board)
{
	return WF_CONTAINER(board, struct pmix_board, board);
}

static int fail(const struct pmix_board *b, int status, const char *what, struct wf_error *e)
{
	return wf_error_set(e, -EIO, "PMIx: %s: %s", what, b->pmix.PMIx_Error_string(status));
}

/* The address of rank 0. */

static void put_question(struct question *q)
{
	bool last;

	pthread_mutex_lock(&q->lock);
	last = !--q->refs;
	pthread_mutex_unlock(&q->lock);
	if (!last)
		return;
	pthread_cond_destroy(&q->answered);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* In PMIx's thread, to which @value belongs. */
static void come(int status, struct wf_pmix_value *value, void *arg)
{
	struct question *q = arg;

	pthread_mutex_lock(&q->lock);
	q->status = status;
	if (status == WF_PMIX_SUCCESS && value && value->type == WF_PMIX_STRING && value->data.string)
		snprintf(q->line, sizeof(q->line), "%s", value->data.string);
	q->over = true;
	pthread_cond_signal(&q->answered);
	pthread_mutex_unlock(&q->lock);
	put_question(q);
}

/* Make a question with two references.  NULL: no memory. */
static struct question *new_question(void)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	if (pthread_mutex_init(&q->lock, NULL))
		goto free_memory;
	if (wf_thread_cond_init(&q->answered))
		goto destroy_lock;
	q->refs = 2;
	return q;

destroy_lock:
	pthread_mutex_destroy(&q->lock);
free_memory:
	free(q);
	return NULL;
}

static int ask(struct pmix_board *b, struct wf_error *e)
{
	struct wf_pmix_process root = b->self;
	struct question *q = new_question();
	int status;

	if (!q)
		return wf_error_set(e, -ENOMEM, "no memory for a question to PMIx");
	root.rank = 0;
	status = b->pmix.PMIx_Get_nb(&root, b->key, NULL, 0, come, q);
	if (status != WF_PMIX_SUCCESS) {
		put_question(q);
		put_question(q);
		return fail(b, status, "the address of rank 0", e);
	}
	b->question = q;
	return 0;
}

static int find(struct wf_job_board *board, char line[WF_JOB_POST_BYTES], struct wf_error *e)
{
	struct pmix_board *b = board_of(board);
	int err = b->question ? 0 : ask(b, e);
	struct question *q = b->question;
	struct timespec until = wf_clock_timespec(wf_clock_now() + LOOK_NS);
	bool over;

	if (err)
		return err;
	pthread_mutex_lock(&q->lock);
	while (!q->over && pthread_cond_timedwait(&q->answered, &q->lock, &until) != ETIMEDOUT)
		;
	over = q->over;
	pthread_mutex_unlock(&q->lock);
	if (!over)
		return wf_error_set(e, -EAGAIN, "rank 0 has not told PMIx its address yet");
	b->question = NULL;
	if (q->status == WF_PMIX_SUCCESS)
		strcpy(line, q->line);
	err = q->status == WF_PMIX_SUCCESS && *line
		      ? 0
		      : wf_error_set(e, -EAGAIN, "PMIx: the address of rank 0: %s",
				     b->pmix.PMIx_Error_string(q->status));
	put_question(q);
	return err;
}

static int post(struct wf_job_board *board, const char *line, struct wf_error *e)
{
	char text[WF_JOB_POST_BYTES];
	struct wf_pmix_value value = { .type = WF_PMIX_STRING, .data.string = text };
	struct pmix_board *b = board_of(board);
	int status;

	snprintf(text, sizeof(text), "%s", line);
	status = b->pmix.PMIx_Put(WF_PMIX_GLOBAL, b->key, &value);
	if (status == WF_PMIX_SUCCESS)
		status = b->pmix.PMIx_Commit();
	return status == WF_PMIX_SUCCESS ? 0 : fail(b, status, "the address of rank 0", e);
}

static void close_board(struct wf_job_board *board)
{
	struct pmix_board *b = board_of(board);

	if (b->question)
		put_question(b->question);
	b->pmix.PMIx_Finalize(NULL, 0);
	free(b);
}

/* PMIx itself. */

static int load(struct wf_pmix_functions *pmix, struct wf_error *e)
{
	void *library = dlopen(LIBRARY_FILE, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return wf_error_set(e, -ENOENT, "PMIx has started this process, and can't be loaded: %s",
				    dlerror());
	for (size_t i = 0; i < WF_COUNT(entries); i++) {
		void *function = dlsym(library, entries[i].name);

		if (!function)
			return wf_error_set(e, -ENOENT, LIBRARY_FILE " lacks %s", entries[i].name);
		memcpy((char *)pmix + entries[i].offset, &function, sizeof(function));
	}
	return 0;
}

static int read_size(const struct pmix_board *b, struct wf_job *job, struct wf_error *e)
{
	struct wf_pmix_process all = b->self;
	struct wf_pmix_value *value;
	uint32_t size = 0;
	int status;

	all.rank = WF_PMIX_NO_RANK;
	status = b->pmix.PMIx_Get(&all, WF_PMIX_JOB_SIZE, NULL, 0, &value);
	if (status != WF_PMIX_SUCCESS)
		return fail(b, status, "the size of the job", e);
	if (value->type == WF_PMIX_UINT32)
		size = value->data.number;
	free(value);
	if (b->self.rank >= size || size > WF_JOB_SIZE_MAX)
		return wf_error_set(e, -EINVAL, "PMIx: rank %u of %u processes", b->self.rank, size);
	job->rank = b->self.rank;
	job->size = size;
	return 0;
}

static bool here(void)
{
	return wf_environment_get("PMIX_NAMESPACE") && wf_environment_get("PMIX_RANK");
}

static int read_pmix(const struct wf_options *options, const char *argument, struct wf_job *job,
		     struct wf_error *e)
{
	struct pmix_board *b;
	int status, err;

	(void)options;
	(void)argument;
	if (!here())
		return wf_error_set(e, -ENOENT,
				    "PMIx has not started this process: PMIX_NAMESPACE is not set");
	b = calloc(1, sizeof(*b));
	if (!b)
		return wf_error_set(e, -ENOMEM, "no memory for a group");
	b->board = (struct wf_job_board){ post, find, close_board };
	snprintf(b->key, sizeof(b->key), "weft.%s", job->name);
	err = load(&b->pmix, e);
	if (err)
		goto free_board;
	status = b->pmix.PMIx_Init(&b->self, NULL, 0);
	if (status != WF_PMIX_SUCCESS) {
		err = fail(b, status, "PMIx_Init", e);
		goto free_board;
	}
	err = read_size(b, job, e);
	if (err)
		goto finalize;
	snprintf(job->key, sizeof(job->key), "%s", b->self.name);
	job->board = &b->board;
	return 0;

finalize:
	b->pmix.PMIx_Finalize(NULL, 0);
free_board:
	free(b);
	return err;
}

const struct wf_launcher wf_pmix_launcher = {
	.name = "pmix",
	.here = here,
	.read = read_pmix,
};
