/* SPDX-License-Identifier: BSD-2-Clause */
#include "calls.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "job.h"

#define REPLY_PAUSE_MOST_MS 100

/* A call that is answered later. */
struct owed {
	struct owed *next;
	const Chaos__Request *request;
	Chaos__Reply_Closure closure;
	void *closure_data;
	uint64_t due_ns;
};

static void answer(struct traffic *t, const Chaos__Request *request,
		   Chaos__Reply_Closure closure, void *closure_data)
{
	Chaos__Reply reply = CHAOS__REPLY__INIT;
	struct content what = { .from = t->config.self,
				.to = request->from,
				.life = t->life,
				.sequence = request->sequence };

	reply.sequence = request->sequence;
	reply.payload.len = request->reply_bytes;
	reply.payload.data = malloc(reply.payload.len + 1);
	if (!reply.payload.data) {
		weft_served_fail(closure_data, WEFT_RESOURCE_EXHAUSTED, "no memory for a reply");
		return;
	}
	content_put(reply.payload.data, reply.payload.len, &what);
	closure(&reply, closure_data);
	free(reply.payload.data);
}

static void echo(Chaos__Echo_Service *service, const Chaos__Request *request,
		 Chaos__Reply_Closure closure, void *closure_data)
{
	struct traffic *t =
		(struct traffic *)((char *)service - offsetof(struct traffic, calls.service));
	struct report report = { .member = t->config.self,
				 .peer = request->from % TRAFFIC_PEERS_MAX,
				 .kind = REPORT_CALL,
				 .ended_ns = now_ns() };
	struct content what = { .life = request->life, .sequence = request->sequence };
	struct owed *owed;

	if (!content_is_new(&t->calls.seen[report.peer][request->lane % CALLS_LANES], &what)) {
		report.fault = REPORT_TWICE;
		snprintf(report.text, JOB_TEXT_BYTES, "call %llu of member %u came again",
			 (unsigned long long)what.sequence, report.peer);
		job_tell(t, &report);
	}
	if (request->payload.len &&
	    (!content_get(request->payload.data, request->payload.len, &what) ||
	     what.from != request->from || what.lane != request->lane ||
	     what.sequence != request->sequence)) {
		report.fault = REPORT_WRONG;
		snprintf(report.text, JOB_TEXT_BYTES, "a request of %zu bytes came wrong",
			 request->payload.len);
		job_tell(t, &report);
	}
	owed = request->pause_ms ? malloc(sizeof(*owed)) : NULL;
	if (!owed) {
		answer(t, request, closure, closure_data);
		return;
	}
	weft_served_defer(closure_data);
	pthread_mutex_lock(&t->calls.lock);
	*owed = (struct owed){ t->calls.owed, request, closure, closure_data,
			       now_ns() + request->pause_ms * MS };
	t->calls.owed = owed;
	pthread_mutex_unlock(&t->calls.lock);
}

/* Answer one call that is due, or any. */
static bool answer_one(struct traffic *t, bool any)
{
	uint64_t now = now_ns();
	struct owed **at, *owed;

	pthread_mutex_lock(&t->calls.lock);
	for (at = &t->calls.owed; *at && !any && (*at)->due_ns > now;)
		at = &(*at)->next;
	owed = *at;
	if (owed)
		*at = owed->next;
	pthread_mutex_unlock(&t->calls.lock);
	if (!owed)
		return false;
	answer(t, owed->request, owed->closure, owed->closure_data);
	free(owed);
	return true;
}

void calls_answer(struct traffic *t, bool all)
{
	while (answer_one(t, all))
		;
}

/* The caller. */

static void replied(const Chaos__Reply *reply, void *arg)
{
	struct job *j = arg;
	struct content what;

	atomic_fetch_add(&j->replies, 1);
	if (reply && (reply->sequence != j->what.sequence ||
		      (reply->payload.len &&
		       (!content_get(reply->payload.data, reply->payload.len, &what) ||
			what.sequence != j->what.sequence || what.from != j->lane->peer))))
		atomic_store(&j->reply_is_wrong, true);
}

int calls_begin(struct traffic *t, struct job *j)
{
	struct weft_call_options options = { .size = sizeof(options), .op = job_options(t, j) };
	Chaos__Request request = CHAOS__REQUEST__INIT;
	ProtobufCService *service;
	int err;

	if (!job_fill(t, j))
		return -1;
	err = weft_call_open(t->calls.stubs[j->lane->peer], &options, &service, &j->op);
	if (err)
		return err;
	request.from = t->config.self;
	request.life = t->life;
	request.lane = j->what.lane;
	request.sequence = j->what.sequence;
	request.payload.data = j->bytes;
	request.payload.len = j->count;
	request.reply_bytes = (uint32_t)job_draw_bytes(t, j->lane->is->bytes_most);
	request.pause_ms = job_draw(t, 4) ? 0 : (uint32_t)job_draw(t, REPLY_PAUSE_MOST_MS);
	chaos__echo__echo(service, &request, replied, j);
	return 0;
}

void calls_check(struct job *j)
{
	if (atomic_load(&j->reply_is_wrong))
		job_tell_of(j, REPORT_WRONG, "a reply came wrong");
	if (atomic_load(&j->replies) != 1)
		job_tell_of(j, REPORT_TWICE, "not one reply");
}

void calls_init(struct calls *calls)
{
	const Chaos__Echo_Service service = CHAOS__ECHO__INIT();

	calls->service = service;
	calls->service.echo = echo;
	pthread_mutex_init(&calls->lock, NULL);
}

void calls_fini(struct calls *calls)
{
	pthread_mutex_destroy(&calls->lock);
}
