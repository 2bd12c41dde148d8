/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/progress.h"
#include "util/status.h"

#define ASKS_MAX (1u << 20) /* as many as there are offers */

void wf_remotes_init(struct wf_remotes *r, struct wf_transfer *t, struct wf_freelist *pulls)
{
	*r = (struct wf_remotes){ .transfer = t, .pulls = pulls };
	wf_table_init(&r->asks, ASKS_MAX);
}

void wf_remotes_fini(struct wf_remotes *r)
{
	wf_table_fini(&r->asks);
}

void wf_remote_why(struct wf_error *e, enum weft_status status, const char *peer)
{
	int code = wf_status_code(status);

	switch (status) {
	case WEFT_NOT_FOUND:
		wf_error_set(e, code, "%s has no such window: it is closed, or was of another start",
			     peer);
		break;
	case WEFT_PERMISSION_DENIED:
		wf_error_set(e, code, "the window of %s has no right for that", peer);
		break;
	case WEFT_OUT_OF_RANGE:
		wf_error_set(e, code, "the window of %s has no such bytes", peer);
		break;
	default:
		wf_error_set(e, code, "%s did not open its window: %s", peer, wf_status_name(status));
		break;
	}
}

/* Asking for ranges */

int wf_remote_expect(struct wf_remotes *r, struct wf_link *link, struct wf_remote_ask *ask)
{
	int err = wf_table_add(&r->asks, ask, &ask->id);

	if (err) {
		ask->id = 0;
		return err;
	}
	ask->remotes = r;
	ask->link = link;
	wf_link_get(link);
	wf_link_watch(link, false);
	wf_list_init(&ask->node);
	/* The link may be another name, by now, of the one whose end is told. */
	wf_list_append(&wf_link_real(link)->work[WF_ABOVE_ASKS], &ask->node);
	return 0;
}

void wf_remote_unask(struct wf_remote_ask *ask)
{
	if (!ask->id)
		return;
	wf_table_remove(&ask->remotes->asks, ask->id);
	wf_list_remove(&ask->node);
	ask->id = 0;
	wf_link_unwatch(ask->link);
	wf_link_put(ask->link);
}

/* Ask for @bytes of @remote from @at on.  -ENOMEM, -ENOSPC: nothing was done. */
static int ask_for(struct wf_remotes *r, struct wf_link *link, const struct wf_remote *remote,
		   uint64_t at, uint64_t bytes, unsigned flags, struct wf_remote_ask *ask)
{
	uint8_t room[WF_ACCESS_ASK_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(room, sizeof(room));
	int err = wf_remote_expect(r, link, ask);

	if (err)
		return err;
	wf_access_ask_put(&w, &(struct wf_access_ask){ .id = ask->id, .window = remote->name,
						       .at = at, .bytes = bytes,
						       .flags = (uint8_t)flags });
	err = wf_message_post_own(link, 0, WF_RECORD_ASK, room, sizeof(room));
	if (err)
		wf_remote_unask(ask);
	return err;
}

/* Returns the ask that the peer of @link answers; NULL: nobody waits for that any more. */
static struct wf_remote_ask *find_ask(const struct wf_remotes *r, const struct wf_link *link,
				      uint64_t id, bool noted)
{
	struct wf_remote_ask *ask = wf_table_get(&r->asks, id);

	return ask && wf_link_real(ask->link) == link && ask->noted == noted ? ask : NULL;
}

int wf_remote_lend(struct wf_remotes *r, struct wf_link *link, const struct wf_record *record)
{
	struct wf_answer *answer = NULL;
	struct wf_remote_ask *ask;
	struct wf_access_lend lend;
	struct wf_error e;
	int err;

	if (wf_access_lend_get(record->bytes, record->count, &lend))
		return -EBADMSG;
	ask = find_ask(r, link, lend.id, false);
	if (!ask)
		return lend.status == WEFT_OK ? wf_answer_late(link, &lend.body) : 0;
	if (lend.status == WEFT_OK) {
		err = wf_answer_open(link, &lend.body, &answer);
		if (err)
			return err;
	}
	wf_remote_unask(ask);
	if (!answer)
		wf_remote_why(&e, lend.status, wf_link_label(link));
	ask->answered(ask, &lend.body, answer, answer ? NULL : &e);
	return 0;
}

int wf_remote_noted(struct wf_remotes *r, struct wf_link *link, const struct wf_record *record)
{
	struct wf_record_small small;
	struct wf_remote_ask *ask;
	struct wf_error e;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	ask = find_ask(r, link, small.id, true);
	if (!ask)
		return 0;
	wf_remote_unask(ask);
	if (small.status != WEFT_OK)
		wf_remote_why(&e, small.status, wf_link_label(link));
	ask->answered(ask, NULL, NULL, small.status != WEFT_OK ? &e : NULL);
	return 0;
}

/* Gets */

static struct wf_remote_get *get_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_remote_get, node);
}

static void close_stage(struct wf_remote_get *g)
{
	wf_stage_close(g->stage);
	g->stage = NULL;
}

static void end(struct wf_remote_get *g, const struct wf_error *e)
{
	struct wf_link *link = g->link;
	struct wf_freelist *pulls = g->remotes->pulls;
	struct wf_pull *pull = g->pull;

	g->state = WF_REMOTE_GET_ENDED;
	wf_list_remove(&g->node);
	wf_remote_unask(&g->ask);
	close_stage(g);
	g->pull = NULL;
	wf_link_unwatch(link);
	g->done(g, e);
	wf_freelist_give(pulls, pull); /* @e may have been in the pull */
	wf_link_put(link);
}

static void end_without_memory(struct wf_remote_get *g)
{
	struct wf_error e;

	wf_error_set(&e, -ENOMEM, "no memory to read a window");
	end(g, &e);
}

/* Have the pull of @g copy what it reads to the device that @job's destination is on.  -ENOMEM. */
static int open_stage(struct wf_remote_get *g, struct wf_link *link, const struct wf_body *body,
		      struct wf_pull_job *job)
{
	uint64_t bytes = job->blocks ? job->blocks_bytes : body->bytes;

	if (!g->device)
		return 0;
	if (wf_stage_open(g->remotes->transfer, g->device, bytes, WF_KIND_OUT_OF_CHUNK, &g->stage))
		return -ENOMEM;
	wf_stage_place(g->stage, job->into, job->blocks);
	g->stage->moved = wf_pull_staged;
	g->stage->owner = g->pull;
	job->stage = g->stage;
	job->drains = true;
	job->handle = wf_stage_may_copy(g->stage, link, body, g->terms->no_staging);
	return 0;
}

/* Begin to read @body, with the destination that @job has.  Takes @answer, which may be NULL. */
static void begin(struct wf_remote_get *g, struct wf_link *link, struct wf_pull_job *job,
		  const struct wf_body *body, struct wf_answer *answer)
{
	job->terms = g->terms;
	job->owner = g;
	if (!g->pull)
		g->pull = wf_freelist_take(g->remotes->pulls);
	if (!g->pull || open_stage(g, link, body, job)) {
		if (answer)
			wf_answer_pulled(answer, link, WEFT_RESOURCE_EXHAUSTED);
		end_without_memory(g);
		return;
	}
	g->pull->job = *job;
	g->path.way = g->stage || body->way == WF_BODY_STAGED ? WF_BODY_STAGED : WF_BODY_PULL;
	g->pull->path = g->path;
	g->state = WF_REMOTE_GET_READING;
	if (wf_pull_start(g->remotes->transfer, link, body, answer, g->pull))
		end_without_memory(g);
}

/*
 * Returns why the pull of @g failed; an offer that the owner took back is a window that it closed.
 * The pull may have been on its way to that end when this node gave it up.
 */
static const struct wf_error *why_failed(const struct wf_remote_get *g, const struct wf_error *e,
					 struct wf_error *why)
{
	const struct wf_link *link = wf_link_real(g->link);

	if (!e || e->code != -ECANCELED || g->stopped == -ECANCELED ||
	    (!g->taken_back && !wf_link_greeted(link)))
		return e;
	wf_remote_why(why, WEFT_NOT_FOUND, wf_link_label(link));
	return why;
}

/* May @g, whose reads ended by @e, ask again for what was lent to it?  Once. */
static bool asks_again(struct wf_remote_get *g, const struct wf_error *e)
{
	bool again = !g->anew && !g->stopped && e->code == -ECANCELED &&
		     wf_link_greeted(wf_link_real(g->link));

	g->anew |= again;
	return again;
}

/* End @g, whose link is dead.  A peer that had taken its window back before has closed it. */
static void end_with_link(struct wf_remote_get *g, const struct wf_error *e)
{
	struct wf_error why;

	if (g->taken_back)
		wf_remote_why(&why, WEFT_NOT_FOUND, wf_link_label(wf_link_real(g->link)));
	end(g, g->taken_back ? &why : e);
}

/* Gets of a window that is lent as a whole */

static void window_answered(struct wf_remote_ask *ask, const struct wf_body *body,
			    struct wf_answer *answer, const struct wf_error *e);

/* Ask for the window, for those that wait for it.  -ENOMEM, -ENOSPC: nothing was done. */
static int ask_for_window(struct wf_remote *remote)
{
	struct wf_remote_get *first = get_of(wf_list_first(&remote->waiting));
	int err;

	remote->ask.answered = window_answered;
	err = ask_for(first->remotes, wf_link_real(first->link), remote, 0, remote->bytes,
		      WF_ACCESS_ASK_STAY, &remote->ask);
	if (!err)
		remote->state = WF_REMOTE_ASKED;
	return err;
}

/* Ask for the window; without memory for that those that wait for it end. */
static void ask_or_end(struct wf_remote *remote)
{
	struct wf_list waiting, *node;

	remote->made_room = false;
	if (!ask_for_window(remote))
		return;
	wf_list_take(&waiting, &remote->waiting);
	while ((node = wf_list_pop(&waiting)))
		end_without_memory(get_of(node));
}

static void finish_withdrawal(struct wf_remote *remote)
{
	struct wf_answer *answer = remote->answer;

	if (remote->state != WF_REMOTE_WITHDRAWN || !wf_list_empty(&remote->reading))
		return;
	remote->state = WF_REMOTE_NONE;
	remote->answer = NULL;
	wf_answer_withdrawn(answer, answer->link);
	if (!wf_list_empty(&remote->waiting))
		ask_or_end(remote);
}

/* A pull may have been offered the window anew, on another rail: later gets need not ask again. */
static void learn(struct wf_remote *remote, const struct wf_pull *pull)
{
	uint64_t bytes = remote->body.bytes;

	if (remote->state != WF_REMOTE_HELD || pull->body.offer != remote->body.offer)
		return;
	remote->body = pull->body;
	remote->body.bytes = bytes;
}

/*
 * Give up a loan that the owner has taken back, or could not offer anew, as it told a pull alone.
 * Returns whether @g may ask for the window again, of a peer that is there: once, as its owner says
 * then how it lends the window, which may be a device's that another rail reaches, or why not.
 */
static bool doubt(struct wf_remote *remote, struct wf_remote_get *g, const struct wf_pull *pull,
		  const struct wf_error *e)
{
	if (!g->stopped && e->code == -ECANCELED && remote->state == WF_REMOTE_HELD &&
	    pull->body.offer == remote->body.offer)
		wf_remote_close(remote);
	return asks_again(g, e);
}

static void begin_or_wait(struct wf_remote_get *g);

static void blocks_read(struct wf_pull *pull, const struct wf_error *e)
{
	struct wf_remote_get *g = pull->job.owner;
	struct wf_remote *remote = g->remote;
	bool again = e && doubt(remote, g, pull, e);
	struct wf_error why;

	g->path = pull->path;
	if (!e)
		learn(remote, pull);
	wf_list_remove(&g->node);
	finish_withdrawal(remote);
	if (!again) {
		end(g, why_failed(g, e, &why));
		return;
	}
	close_stage(g);
	begin_or_wait(g);
}

static void read_blocks(struct wf_remote_get *g)
{
	struct wf_remote *remote = g->remote;
	struct wf_pull_job job = {
		.into = g->span,
		.blocks = g->blocks,
		.block_count = g->count,
		.blocks_known = g->path.bytes,
		.blocks_bytes = g->path.bytes,
		.blocks_span = g->span_bytes,
		.done = blocks_read,
	};

	wf_list_append(&remote->reading, &g->node);
	begin(g, remote->answer->link, &job, &remote->body, NULL);
}

static void withdrawn(struct wf_answer *answer)
{
	struct wf_remote *remote = answer->owner;
	struct wf_error e;

	remote->state = WF_REMOTE_WITHDRAWN;
	wf_error_set(&e, -ECANCELED, "%s has taken its window back", wf_link_label(answer->link));
	WF_LIST_EACH_OF_NOW(node, &remote->reading) {
		get_of(node)->taken_back = true;
		wf_pull_stop(get_of(node)->pull, &e);
	}
	finish_withdrawal(remote);
}

static void lost(struct wf_answer *answer, const struct wf_error *e)
{
	struct wf_remote *remote = answer->owner;
	struct wf_list due, *node;

	wf_answer_close(answer);
	remote->answer = NULL;
	remote->state = WF_REMOTE_NONE;
	/* Reads on a shared rail may go on for a while: those gets are of no loan any more. */
	wf_list_take(&due, &remote->reading);
	while ((node = wf_list_pop(&due)))
		wf_pull_lost(get_of(node)->pull, e);
	/* Gets that wait for the end of a loan that was taken back have not asked. */
	wf_list_take(&due, &remote->waiting);
	while ((node = wf_list_pop(&due)))
		end_with_link(get_of(node), e);
}

static const struct wf_answer_keeper keeper = {
	.withdrawn = withdrawn,
	.lost = lost,
};

static void begin_alone(struct wf_remote_get *g);

/* Give back the oldest loan of the peer of @link that no get reads.  False: there is none. */
static bool give_one_back(const struct wf_link *link)
{
	WF_LIST_EACH(node, &link->offers.all) {
		const struct wf_answer *answer = WF_CONTAINER(node, struct wf_answer, all_node);
		struct wf_remote *remote = answer->owner;

		if (answer->keeper != &keeper || !wf_list_empty(&remote->reading))
			continue;
		wf_remote_close(remote);
		return true;
	}
	return false;
}

/*
 * Ask for @remote once more, whose owner may lend this node too much already, and give a loan back
 * for it.  False: it can't be, or was done before, and other things fill this node's account there.
 */
static bool make_room(struct wf_remote *remote)
{
	const struct wf_remote_get *g = get_of(wf_list_first(&remote->waiting));

	if (remote->made_room || !give_one_back(wf_link_real(g->link)))
		return false;
	remote->made_room = true;
	return !ask_for_window(remote);
}

static void window_answered(struct wf_remote_ask *ask, const struct wf_body *body,
			    struct wf_answer *answer, const struct wf_error *e)
{
	struct wf_remote *remote = WF_CONTAINER(ask, struct wf_remote, ask);
	struct wf_list waiting, *node;
	struct wf_error why;

	if (e && e->code == wf_status_code(WEFT_RESOURCE_EXHAUSTED) && make_room(remote))
		return;
	wf_list_take(&waiting, &remote->waiting);
	remote->state = WF_REMOTE_NONE;
	if (e ? e->code == wf_status_code(WEFT_FAILED_PRECONDITION) : body->way == WF_BODY_STAGED) {
		if (answer)
			wf_answer_pulled(answer, answer->link, WEFT_OK);
		remote->in_pieces = true;
		while ((node = wf_list_pop(&waiting)))
			begin_alone(get_of(node));
		return;
	}
	/* A checksum of the window says nothing of blocks. */
	if (!e && (body->bytes != remote->bytes || body->way != WF_BODY_PULL ||
		   body->sum_kind != WF_BODY_SUM_NONE)) {
		wf_error_set(&why, -EPROTO, "%s lends another window than was asked for",
			     wf_link_label(answer->link));
		wf_answer_pulled(answer, answer->link, WEFT_FAILED_PRECONDITION);
		e = &why;
	}
	if (!e) {
		remote->state = WF_REMOTE_HELD;
		remote->body = *body;
		remote->answer = answer;
		answer->keeper = &keeper;
		answer->owner = remote;
	}
	while ((node = wf_list_pop(&waiting))) {
		struct wf_remote_get *g = get_of(node);

		g->refused = e && !g->anew;
		if (e && !wf_link_greeted(wf_link_real(g->link)))
			end_with_link(g, e);
		else if (e)
			end(g, e);
		else
			read_blocks(g);
	}
}

/* Have @g read what is lent, or wait for that. */
static void use_window(struct wf_remote_get *g)
{
	struct wf_remote *remote = g->remote;

	if (remote->state == WF_REMOTE_HELD) {
		read_blocks(g);
		return;
	}
	g->state = WF_REMOTE_GET_ASKING;
	wf_list_append(&remote->waiting, &g->node);
	if (remote->state == WF_REMOTE_NONE)
		ask_or_end(remote);
}

/* Gets of which each block is lent alone */

static void ask_for_block(struct wf_remote_get *g, struct wf_link *link);

static void block_read(struct wf_pull *pull, const struct wf_error *e)
{
	struct wf_remote_get *g = pull->job.owner;
	struct wf_link *link = wf_link_real(g->link);
	struct wf_error why;

	g->path = pull->path;
	close_stage(g);
	if (e ? !asks_again(g, e) : ++g->next == g->count)
		end(g, why_failed(g, e, &why));
	else
		ask_for_block(g, link);
}

static void block_answered(struct wf_remote_ask *ask, const struct wf_body *body,
			   struct wf_answer *answer, const struct wf_error *e)
{
	struct wf_remote_get *g = WF_CONTAINER(ask, struct wf_remote_get, ask);
	const struct wf_pull_block *block = &g->blocks[g->next];
	struct wf_pull_job job = { .into = block->to, .done = block_read };
	struct wf_error why;

	if (!e && (body->bytes != block->bytes || wf_terms_body(g->terms, answer->link, body, &why))) {
		if (body->bytes != block->bytes)
			wf_error_set(&why, -EPROTO, "%s lends another range than was asked for",
				     wf_link_label(answer->link));
		wf_answer_pulled(answer, answer->link, WEFT_FAILED_PRECONDITION);
		e = &why;
	}
	if (e) {
		g->refused = !g->next && !g->anew;
		if (wf_link_greeted(wf_link_real(g->link)))
			end(g, e);
		else
			end_with_link(g, e);
		return;
	}
	begin(g, answer->link, &job, body, answer);
}

static void ask_for_block(struct wf_remote_get *g, struct wf_link *link)
{
	const struct wf_pull_block *block = &g->blocks[g->next];

	g->state = WF_REMOTE_GET_ASKING;
	g->ask.answered = block_answered;
	if (ask_for(g->remotes, link, g->remote, block->from, block->bytes,
		    g->path.sum_kind == WF_BODY_SUM_NONE ? 0 : WF_ACCESS_ASK_SUM, &g->ask))
		end_without_memory(g);
}

static void begin_alone(struct wf_remote_get *g)
{
	g->alone = true;
	ask_for_block(g, wf_link_real(g->link));
}

/* The life of a get and of a remote window */

static void go_on(struct wf_remote_get *g)
{
	struct wf_link *link = wf_link_real(g->link);
	struct wf_error e;
	uint8_t sum_kind;

	wf_list_remove(&g->node);
	/* The pull looks at the other terms, as lanes may come up yet. */
	if (wf_terms_sum(g->terms, link, &sum_kind, &e)) {
		end(g, &e);
		return;
	}
	g->path.caps = wf_link_caps(link);
	g->path.sum_kind = sum_kind;
	g->path.way = WF_BODY_PULL;
	g->path.queued_ns = link->engine->loop.now_ns;
	if (g->remote->in_pieces || sum_kind != WF_BODY_SUM_NONE)
		begin_alone(g);
	else
		use_window(g);
}

/* Begin @g now, or as soon as there is a rail. */
static void begin_or_wait(struct wf_remote_get *g)
{
	struct wf_link *link = wf_link_real(g->link);

	g->state = WF_REMOTE_GET_WAITING;
	if (wf_link_caps(link))
		go_on(g);
	else
		wf_list_append(&link->work[WF_ABOVE_GETS], &g->node);
}

void wf_remote_get(struct wf_remotes *r, struct wf_link *link, struct wf_remote_get *g)
{
	struct wf_error e;

	g->remotes = r;
	g->link = link;
	g->refused = g->alone = g->anew = g->taken_back = false;
	g->stopped = 0;
	g->next = 0;
	g->pull = NULL;
	g->stage = NULL;
	g->ask = (struct wf_remote_ask){ 0 };
	g->path = (struct wf_path){ 0 };
	for (uint32_t i = 0; i < g->count; i++)
		g->path.bytes += g->blocks[i].bytes;
	wf_list_init(&g->node);
	wf_link_get(link);
	wf_link_watch(link, true);
	g->state = WF_REMOTE_GET_WAITING;
	if (link->state == WF_LINK_GONE) {
		wf_error_set(&e, -ENOTCONN, "%s is gone, and its address is not known",
			     wf_link_label(link));
		end(g, &e);
		return;
	}
	begin_or_wait(g);
}

int wf_remote_take_back(struct wf_remote_get *g)
{
	if (g->state != WF_REMOTE_GET_WAITING)
		return -EALREADY;
	g->state = WF_REMOTE_GET_ENDED;
	wf_list_remove(&g->node);
	wf_link_unwatch(g->link);
	wf_link_put(g->link);
	return 0;
}

/* Have a later get ask for the window anew, if @g alone waits for the answer. */
static void ask_no_more(struct wf_remote_get *g)
{
	struct wf_remote *remote = g->remote;

	if (g->state != WF_REMOTE_GET_ASKING || g->alone)
		return;
	wf_list_remove(&g->node);
	if (remote->state != WF_REMOTE_ASKED || !wf_list_empty(&remote->waiting))
		return;
	wf_remote_unask(&remote->ask);
	remote->state = WF_REMOTE_NONE;
}

void wf_remote_stop(struct wf_remote_get *g, const struct wf_error *e)
{
	if (g->state == WF_REMOTE_GET_READING) {
		g->stopped = e->code;
		wf_pull_stop(g->pull, e);
	} else if (g->state != WF_REMOTE_GET_ENDED) {
		ask_no_more(g);
		end(g, e);
	}
}

void wf_remote_init(struct wf_remote *remote)
{
	wf_list_init(&remote->waiting);
	wf_list_init(&remote->reading);
}

void wf_remote_close(struct wf_remote *remote)
{
	struct wf_answer *answer = remote->answer;

	if (remote->state == WF_REMOTE_ASKED)
		wf_remote_unask(&remote->ask);
	if (remote->state == WF_REMOTE_HELD)
		wf_answer_pulled(answer, answer->link, WEFT_OK);
	remote->state = WF_REMOTE_NONE;
	remote->answer = NULL;
}

void wf_remote_up(struct wf_link *link)
{
	WF_LIST_EACH_OF_NOW(node, &link->work[WF_ABOVE_GETS])
		go_on(get_of(node));
}

void wf_remote_down(struct wf_link *link, const struct wf_error *e)
{
	struct wf_list *node;

	while ((node = wf_list_first(&link->work[WF_ABOVE_ASKS]))) {
		struct wf_remote_ask *ask = WF_CONTAINER(node, struct wf_remote_ask, node);

		wf_remote_unask(ask);
		ask->answered(ask, NULL, NULL, e);
	}
	WF_LIST_EACH_OF_NOW(at, &link->work[WF_ABOVE_GETS])
		end_with_link(get_of(at), e);
}

void wf_remote_describe(const struct wf_remote_get *g, char *text, size_t bytes)
{
	const char *peer = g->link ? wf_link_label(wf_link_real(g->link)) : "";

	switch (g->state) {
	case WF_REMOTE_GET_ENDED:
		(void)snprintf(text, bytes, "it has ended");
		break;
	case WF_REMOTE_GET_WAITING:
		(void)snprintf(text, bytes, "no rail to %s yet", peer);
		break;
	case WF_REMOTE_GET_ASKING:
		(void)snprintf(text, bytes, "%s has not lent its window", peer);
		break;
	case WF_REMOTE_GET_READING:
		wf_pull_describe(g->pull, text, bytes);
		break;
	}
}

uint64_t wf_remote_progress(const struct wf_remote_get *g)
{
	uint64_t progress = wf_progress_add(g->state, g->next);

	return g->state == WF_REMOTE_GET_READING
		       ? wf_progress_add(progress, wf_pull_progress(g->pull))
		       : progress;
}
