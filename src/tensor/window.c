/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/rights.h"
#include "util/random.h"
#include "util/status.h"

#define WINDOWS_MAX (1u << 20) /* open windows of a node, as many as offers */

/*
 * Bytes that a peer's account is charged for a loan: more than it takes, because when the peer goes
 * all its loans end in one turn, 66,000 of them in 100 ms.
 */
#define LOAN_CHARGED_BYTES 4096

/* Share of a peer's account, one of so many, that loans of whole windows leave.  Not tuned. */
#define LOANS_LEAVE 4

/* Use of a window by a peer: a loan, or a push. */
struct use {
	struct wf_list node; /* in the share's uses */
	struct wf_windows *windows;
	struct wf_window *window;
	struct wf_link *link; /* a reference; its ledger is charged */
	size_t charged_bytes;
	bool is_loan;
	bool waits; /* the loan's range is not filled yet */
};

/* A range that is offered to a peer. */
struct loan {
	struct use use;
	uint64_t asked; /* the peer's id of its ASK */
	uint64_t life;  /* id of the link in the life of the peer that asked */
	struct wf_terms terms;
	struct wf_outgoing outgoing;
	struct wf_stage *stage; /* NULL: the window is of the host's memory */
	struct wf_message_copy *refusal; /* for the peer, which waits, should the loan never leave */
	bool over; /* nobody is offered the range any more, and copies of the stage have to end */
};

_Static_assert(sizeof(struct loan) <= LOAN_CHARGED_BYTES, "a loan costs more than is charged");

/* The blocks of a push; while some are yet to come, the link knows of the list. */
struct wf_window_list {
	struct push *push;
	uint64_t offer, span_bytes; /* offer and length of the body */
	struct wf_pull_block *blocks; /* NULL: the body is one piece */
	uint32_t known, total;
	uint64_t known_bytes, total_bytes;
	struct wf_access_block last;
};

/* A body that is read into the window. */
struct push {
	struct use use;
	struct wf_pull *pull; /* a piece of windows->pulls */
	struct wf_stage *stage; /* stage of the pull; NULL: the window is of the host's memory */
	struct wf_window_list list;
	bool counts;          /* the body is the last of a put */
	struct wf_window_note *note; /* NULL: none follows the body */
};

int wf_window_table_init(struct wf_window_table *table)
{
	wf_table_init(&table->windows, WINDOWS_MAX);
	return -pthread_mutex_init(&table->lock, NULL);
}

void wf_window_table_fini(struct wf_window_table *table)
{
	pthread_mutex_destroy(&table->lock);
	wf_table_fini(&table->windows);
}

void wf_window_init(struct wf_windows *w, struct wf_transfer *t, struct wf_window_table *table,
		    struct wf_freelist *pulls, const struct wf_terms *terms, unsigned worker)
{
	*w = (struct wf_windows){
		.transfer = t, .table = table, .pulls = pulls, .terms = terms, .worker = worker,
	};
}

int wf_window_add(struct wf_window_table *table, struct wf_window *window)
{
	int err;

	for (size_t i = 0; i < sizeof(window->name.token); i += sizeof(uint64_t)) {
		uint64_t part = wf_random_u64();

		memcpy(window->name.token + i, &part, sizeof(part));
	}
	pthread_mutex_lock(&table->lock);
	err = wf_table_add(&table->windows, window, &window->name.id);
	pthread_mutex_unlock(&table->lock);
	return err;
}

void wf_window_remove(struct wf_window_table *table, struct wf_window *window)
{
	pthread_mutex_lock(&table->lock);
	wf_table_remove(&table->windows, window->name.id);
	pthread_mutex_unlock(&table->lock);
}

/* Returns the open window of that name; it stays at least until this worker is told to stop it. */
static struct wf_window *find(struct wf_window_table *table, const struct wf_access_name *name)
{
	struct wf_window *window;

	pthread_mutex_lock(&table->lock);
	window = wf_table_get(&table->windows, name->id);
	pthread_mutex_unlock(&table->lock);
	if (!window || memcmp(window->name.token, name->token, sizeof(name->token)))
		return NULL;
	return window;
}

/* May a peer use @bytes of @window at @at so? */
static enum weft_status admit(const struct wf_window *window, unsigned right, uint64_t at,
			      uint64_t bytes)
{
	if (!window)
		return WEFT_NOT_FOUND;
	if (right & ~window->rights)
		return WEFT_PERMISSION_DENIED;
	return at > window->bytes || bytes > window->bytes - at ? WEFT_OUT_OF_RANGE : WEFT_OK;
}

/* May the peer of @link use windows by @right at all? */
static enum weft_status check_rights(const struct wf_link *link, unsigned right)
{
	const char *name = right == WEFT_WINDOW_READ ? "get" : "put";
	struct wf_error e;

	return wf_status_of(wf_rights_check(link, WF_ACL_WINDOW, name, strlen(name), &e));
}

static struct wf_window_share *share_of(const struct wf_windows *w, const struct wf_window *window)
{
	return &window->shares[w->worker];
}

static void begin(struct use *use, struct wf_windows *w, struct wf_window *window,
		  struct wf_link *link, size_t bytes)
{
	use->windows = w;
	use->window = window;
	use->link = link;
	use->charged_bytes = bytes;
	wf_link_get(link);
	wf_ledger_charge(link, WF_LEDGER_OWED, bytes);
	wf_list_append(&share_of(w, window)->uses, &use->node);
}

/* Free @use; its window may be quiet then, and gone. */
static void end(struct use *use)
{
	struct wf_window_share *share = share_of(use->windows, use->window);

	wf_list_remove(&use->node);
	wf_ledger_discharge(use->link, WF_LEDGER_OWED, use->charged_bytes);
	wf_link_put(use->link);
	free(use);
	if (share->stopping && wf_list_empty(&share->uses))
		share->quiet(share);
}

/* Loans */

/* Refuse by @refusal, which is taken. */
static void refuse_by(struct wf_message_copy *refusal, struct wf_link *link, uint64_t asked,
		      enum weft_status status)
{
	uint8_t bytes[WF_ACCESS_LEND_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	const struct wf_access_lend lend = { .id = asked, .status = (uint8_t)status };

	wf_access_lend_put(&w, &lend);
	wf_message_copy_post(refusal, link, 0, WF_RECORD_LEND, bytes, wf_access_lend_bytes(&lend));
}

static int refuse(struct wf_link *link, uint64_t asked, enum weft_status status)
{
	struct wf_message_copy *refusal = wf_message_copy_new();

	if (!refusal)
		return -ENOMEM;
	refuse_by(refusal, link, asked, status);
	return 0;
}

static int put_lend(struct wf_outgoing *p, const struct wf_body *body)
{
	const struct loan *loan = WF_CONTAINER(p, struct loan, outgoing);
	const struct wf_access_lend lend = { .id = loan->asked, .body = *body };
	struct wf_bytes_writer head;
	int err = wf_outgoing_head(p, wf_access_lend_bytes(&lend), &head);

	if (!err)
		wf_access_lend_put(&head, &lend);
	return err;
}

/* End @loan once no copy reads the window. */
static void end_loan(struct loan *loan)
{
	loan->over = true;
	wf_stage_stop(loan->stage);
	if (loan->stage && !wf_stage_quiet(loan->stage))
		return;
	wf_stage_close(loan->stage);
	wf_message_copy_free(loan->refusal);
	end(&loan->use);
}

static void loan_staged(struct wf_stage *stage, const struct wf_error *e)
{
	struct loan *loan = stage->owner;

	if (loan->over)
		end_loan(loan);
	else
		wf_outgoing_filled(&loan->outgoing, e);
}

/* Has the peer that asked for @loan died? */
static bool is_orphaned(const struct loan *loan)
{
	return wf_link_real(loan->use.link)->id != loan->life;
}

static void loan_done(struct wf_outgoing *p, const struct wf_error *e)
{
	struct loan *loan = WF_CONTAINER(p, struct loan, outgoing);
	struct wf_link *link = wf_link_real(loan->use.link);

	/* A peer that lives waits for the loan, whether there is a rail just now or not. */
	if (e && !p->sent && wf_link_greeted(link) && !is_orphaned(loan)) {
		refuse_by(loan->refusal, link, loan->asked, wf_status_of(e->code));
		loan->refusal = NULL;
	}
	if (!e && loan->use.window->fills) {
		loan->use.window->taken_bytes += p->body_bytes;
		loan->use.window->taken(loan->use.window);
	}
	end_loan(loan);
}

static const struct wf_outgoing_class loan_class = {
	.offers = true,
	.shared = true,
	.put_head = put_lend,
	.done = loan_done,
};

/* Are the bytes of @loan there? */
static bool is_filled(const struct loan *loan)
{
	const struct wf_window *window = loan->use.window;
	const char *end = (const char *)loan->outgoing.body + loan->outgoing.body_bytes;

	return !window->fills || end <= (const char *)window->at + window->filled_bytes;
}

/*
 * Stage @loan, whose window is a device's.  -ENOMEM.  -EBADFD: it is to stay, and the rail does not
 * reach the device: what passes through a bounce buffer is there for one reader, once.
 */
static int stage_loan(struct wf_windows *w, struct wf_link *link, struct loan *loan, bool stays)
{
	const struct wf_kind_body *device = loan->use.window->device;
	const struct wf_rail_caps *caps = wf_link_caps(link);

	if (wf_stage_open(w->transfer, device, loan->outgoing.body_bytes, WF_KIND_INTO_CHUNK,
			  &loan->stage))
		return -ENOMEM;
	if (stays && !(caps && wf_stage_is_reached(loan->stage, link, false))) {
		wf_stage_close(loan->stage);
		return -EBADFD;
	}
	wf_stage_place(loan->stage, loan->outgoing.body, NULL);
	loan->stage->moved = loan_staged;
	loan->stage->owner = loan;
	loan->outgoing.stage = loan->stage;
	loan->terms.no_staging |= stays;
	return 0;
}

int wf_window_turn_away(struct wf_link *link, const struct wf_record *record)
{
	struct wf_access_ask ask;

	if (wf_access_ask_get(record->bytes, record->count, &ask))
		return -EBADMSG;
	return refuse(link, ask.id, WEFT_NOT_FOUND);
}

/* May @link be lent something?  What stays leaves a part of its account to what comes and goes. */
static bool has_room(const struct wf_link *link, bool stays)
{
	uint64_t left = stays ? wf_ledger_bound(link) / LOANS_LEAVE : 0;

	return wf_ledger_takes_call(link, LOAN_CHARGED_BYTES + left);
}

int wf_window_ask(struct wf_windows *w, struct wf_link *link, const struct wf_record *record)
{
	struct wf_access_ask ask;
	struct wf_window *window;
	enum weft_status status;
	struct loan *loan;
	int err = 0;

	if (wf_access_ask_get(record->bytes, record->count, &ask))
		return -EBADMSG;
	window = find(w->table, &ask.window);
	status = admit(window, WEFT_WINDOW_READ, ask.at, ask.bytes);
	if (status == WEFT_OK)
		status = check_rights(link, WEFT_WINDOW_READ);
	if (status == WEFT_OK && !has_room(link, ask.flags & WF_ACCESS_ASK_STAY))
		status = WEFT_RESOURCE_EXHAUSTED;
	if (status != WEFT_OK)
		return refuse(link, ask.id, status);
	loan = calloc(1, sizeof(*loan));
	if (!loan)
		return -ENOMEM;
	loan->refusal = wf_message_copy_new();
	if (!loan->refusal) {
		free(loan);
		return -ENOMEM;
	}
	loan->use.is_loan = true;
	loan->use.window = window;
	loan->asked = ask.id;
	loan->life = link->id;
	loan->terms = *w->terms;
	loan->terms.checksum = ask.flags & WF_ACCESS_ASK_SUM;
	loan->outgoing.body = (char *)window->at + ask.at;
	loan->outgoing.body_bytes = ask.bytes;
	loan->outgoing.class = &loan_class;
	loan->outgoing.terms = &loan->terms;
	loan->outgoing.type = WF_RECORD_LEND;
	if (window->device)
		err = stage_loan(w, link, loan, ask.flags & WF_ACCESS_ASK_STAY);
	if (err) {
		if (err == -ENOMEM)
			wf_message_copy_free(loan->refusal);
		else
			refuse_by(loan->refusal, link, ask.id, wf_status_of(err));
		free(loan);
		return err == -ENOMEM ? err : 0;
	}
	begin(&loan->use, w, window, link, LOAN_CHARGED_BYTES);
	loan->use.waits = !is_filled(loan);
	if (!loan->use.waits)
		wf_outgoing_post(w->transfer, link, &loan->outgoing);
	return 0;
}

void wf_window_fill(struct wf_windows *w, struct wf_window *window, uint64_t bytes)
{
	window->filled_bytes = bytes;
	WF_LIST_EACH_OF_NOW(node, &share_of(w, window)->uses) {
		struct use *use = WF_CONTAINER(node, struct use, node);
		struct loan *loan = WF_CONTAINER(use, struct loan, use);

		if (!use->waits || !is_filled(loan))
			continue;
		use->waits = false;
		if (is_orphaned(loan))
			end_loan(loan);
		else
			wf_outgoing_post(w->transfer, wf_link_real(use->link), &loan->outgoing);
	}
}

/* Pushes */

/* Free what @push holds, but for its note. */
static void empty_push(struct wf_windows *w, struct push *push)
{
	wf_stage_close(push->stage);
	wf_freelist_give(w->pulls, push->pull);
	free(push->list.blocks);
}

/* Free @push and what it holds, but for its note.  Accepts NULL. */
static void drop_push(struct wf_windows *w, struct push *push)
{
	if (!push)
		return;
	empty_push(w, push);
	free(push);
}

/* End @push, which had begun. */
static void end_push(struct push *push)
{
	struct wf_link *link = wf_link_real(push->use.link);

	if (link->above.listing == &push->list)
		link->above.listing = NULL;
	empty_push(push->use.windows, push);
	end(&push->use);
}

static void push_done(struct wf_pull *pull, const struct wf_error *e)
{
	struct push *push = pull->job.owner;
	struct wf_window *window = push->use.window;
	struct wf_windows *w = push->use.windows;

	if (!e && (push->counts || push->note)) {
		window->told(window, w, push->use.link, push->counts, push->note);
	} else if (push->note) {
		window->not_told(window, push->note);
	}
	end_push(push);
}

/* Make the note that @record brings.  NULL: there is none, or *@err is -ENOMEM. */
static struct wf_window_note *new_note(const struct wf_access_push *record, int *err)
{
	struct wf_window_note *note;

	if (!(record->flags & WF_ACCESS_PUSH_NOTED))
		return NULL;
	note = malloc(sizeof(*note) + record->note_bytes);
	if (!note) {
		*err = -ENOMEM;
		return NULL;
	}
	*note = (struct wf_window_note){
		.number = record->number,
		.of_get = record->flags & WF_ACCESS_PUSH_GOT,
		.has_body = record->body.way != WF_BODY_NONE,
		.count = record->note_bytes,
	};
	wf_list_init(&note->node);
	if (record->note_bytes)
		memcpy(note->bytes, record->note, record->note_bytes);
	return note;
}

/* Stage @push, for a window that is a device's.  -ENOMEM. */
static int stage_push(struct wf_windows *w, const struct wf_window *window,
		      const struct wf_access_push *record, struct push *push)
{
	uint64_t bytes = push->list.blocks ? record->block_bytes : record->body.bytes;

	if (wf_stage_open(w->transfer, window->device, bytes, WF_KIND_OUT_OF_CHUNK, &push->stage))
		return -ENOMEM;
	push->stage->moved = wf_pull_staged;
	push->stage->owner = push->pull;
	return 0;
}

/*
 * Make a push into @window, which is NULL if there is no such window, if @record brings a body.
 * Returns NULL if it does not, or with *@err set to -ENOMEM.
 */
static struct push *new_push(struct wf_windows *w, const struct wf_window *window,
			     const struct wf_access_push *record, int *err)
{
	struct push *push;

	if (record->body.way == WF_BODY_NONE)
		return NULL;
	push = calloc(1, sizeof(*push));
	if (!push) {
		*err = -ENOMEM;
		return NULL;
	}
	push->list = (struct wf_window_list){
		.push = push,
		.offer = record->body.offer,
		.span_bytes = record->body.bytes,
		.total = record->block_count,
		.total_bytes = record->block_bytes,
	};
	push->pull = wf_freelist_take(w->pulls);
	if (record->block_count)
		push->list.blocks = malloc(record->block_count * sizeof(push->list.blocks[0]));
	if (push->pull && (push->list.blocks || !record->block_count) &&
	    (!window || !window->device || !stage_push(w, window, record, push)))
		return push;
	drop_push(w, push);
	*err = -ENOMEM;
	return NULL;
}

/*
 * Add the blocks that @bytes describe to @list.  -EBADMSG: they make no sense.  -ERANGE: the window
 * or the body has no such bytes.
 */
static int add_blocks(struct wf_window_list *list, const struct wf_window *window,
		      const uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);

	while (wf_bytes_reader_left(&r)) {
		struct wf_access_block *b = &list->last;

		if (list->known == list->total || wf_access_block_get(&r, b) ||
		    b->bytes > list->total_bytes - list->known_bytes)
			return -EBADMSG;
		if (admit(window, 0, b->to, b->bytes) || b->from > list->span_bytes ||
		    b->bytes > list->span_bytes - b->from)
			return -ERANGE;
		list->blocks[list->known++] = (struct wf_pull_block){
			.to = (char *)window->at + b->to, .from = b->from, .bytes = b->bytes,
		};
		list->known_bytes += b->bytes;
	}
	return list->known == list->total && list->known_bytes < list->total_bytes ? -EBADMSG : 0;
}

/* Returns the bytes that a push of @record into @window takes. */
static size_t push_bytes(const struct wf_window *window, const struct wf_access_push *record)
{
	size_t bytes = sizeof(struct wf_window_note) + record->note_bytes;

	if (record->body.way == WF_BODY_NONE)
		return bytes;
	return bytes + sizeof(struct push) + sizeof(struct wf_pull) +
	       (window->device ? sizeof(struct wf_stage) : 0) +
	       record->block_count * sizeof(struct wf_pull_block);
}

/* Begin to read the body of @record.  Takes @answer. */
static void read_body(struct wf_windows *w, struct wf_window *window, struct wf_link *link,
		      const struct wf_access_push *record, struct push *push,
		      struct wf_answer *answer)
{
	struct wf_window_list *list = &push->list;
	struct wf_pull *pull = push->pull;

	pull->job = (struct wf_pull_job){
		.into = (char *)window->at + record->at,
		.shown = true,
		.stage = push->stage,
		.drains = push->stage != NULL,
		.terms = w->terms,
		.owner = push,
		.done = push_done,
	};
	pull->path = (struct wf_path){ .bytes = record->body.bytes };
	if (list->blocks) {
		pull->job.into = window->at;
		pull->job.blocks = list->blocks;
		pull->job.block_count = list->known;
		pull->job.blocks_known = list->known_bytes;
		pull->job.blocks_bytes = pull->path.bytes = list->total_bytes;
		pull->job.blocks_span = window->bytes;
		if (list->known < list->total)
			link->above.listing = list;
	}
	if (push->stage) {
		wf_stage_place(push->stage, pull->job.into, list->blocks);
		pull->job.handle =
			wf_stage_may_copy(push->stage, link, &record->body, w->terms->no_staging);
	}
	begin(&push->use, w, window, link, push_bytes(window, record));
	if (!wf_pull_start(w->transfer, link, &record->body, answer, pull))
		return;
	if (push->note)
		window->not_told(window, push->note);
	end_push(push);
}

/* May the push of @record be taken?  If so its note has a place. */
static enum weft_status admit_push(struct wf_windows *w, struct wf_window *window,
				   struct wf_link *link, const struct wf_access_push *record)
{
	unsigned right = record->flags & WF_ACCESS_PUSH_GOT ? WEFT_WINDOW_READ : WEFT_WINDOW_WRITE;
	/* The places of blocks are looked at one by one. */
	bool placed = record->body.way != WF_BODY_NONE && !(record->flags & WF_ACCESS_PUSH_LIST);
	enum weft_status status = admit(window, right, placed ? record->at : 0,
					placed ? record->body.bytes : 0);
	struct wf_error e;

	if (status == WEFT_OK)
		status = check_rights(link, right);
	if (status == WEFT_OK && record->body.way != WF_BODY_NONE &&
	    wf_terms_body(w->terms, link, &record->body, &e))
		status = WEFT_FAILED_PRECONDITION;
	if (status == WEFT_OK && !wf_ledger_takes_call(link, push_bytes(window, record)))
		status = WEFT_RESOURCE_EXHAUSTED;
	return status == WEFT_OK ? window->admits(window, w, link, record) : status;
}

/*
 * Answer a push without a body, and take it, if that is what @status says.  Takes @note; -ENOMEM:
 * nothing was done.
 */
static int take_note(struct wf_windows *w, struct wf_window *window, struct wf_link *link,
		     const struct wf_access_push *record, enum weft_status status,
		     struct wf_window_note *note)
{
	int err = wf_message_post_small(link, 0, WF_RECORD_NOTED, record->at, 0, (uint8_t)status);

	if (!err && status == WEFT_OK) {
		window->told(window, w, link, record->flags & WF_ACCESS_PUSH_LAST, note);
		return 0;
	}
	if (status == WEFT_OK && note)
		window->not_told(window, note);
	else
		free(note);
	return err;
}

/* Take a push with a body, whose blocks are @misplaced or not.  Takes @push and its note. */
static int take_body(struct wf_windows *w, struct wf_window *window, struct wf_link *link,
		     const struct wf_access_push *record, bool misplaced, struct push *push)
{
	struct wf_answer *answer;
	enum weft_status status;
	int err = wf_answer_open(link, &record->body, &answer);

	if (err) {
		free(push->note);
		drop_push(w, push);
		return err;
	}
	status = misplaced ? WEFT_OUT_OF_RANGE : admit_push(w, window, link, record);
	if (status == WEFT_OK) {
		read_body(w, window, link, record, push, answer);
	} else {
		free(push->note);
		drop_push(w, push);
		wf_answer_pulled(answer, link, status);
	}
	return 0;
}

int wf_window_push(struct wf_windows *w, struct wf_link *link, const struct wf_record *record)
{
	struct wf_access_push got;
	struct wf_window_note *note;
	struct wf_window *window;
	struct push *push;
	int err = 0;

	if (wf_access_push_get(record->bytes, record->count, &got))
		return -EBADMSG;
	/* Memory comes first: a record that was taken in part could not come again. */
	window = find(w->table, &got.window);
	note = new_note(&got, &err);
	push = new_push(w, window, &got, &err);
	if (!err && window && push && push->list.blocks)
		err = link->above.listing ? -EBADMSG
					  : add_blocks(&push->list, window, got.list, got.list_bytes);
	if (err && err != -ERANGE) {
		drop_push(w, push);
		free(note);
		return err;
	}
	if (!push)
		return take_note(w, window, link, &got, admit_push(w, window, link, &got), note);
	push->counts = got.flags & WF_ACCESS_PUSH_LAST;
	push->note = note;
	return take_body(w, window, link, &got, err == -ERANGE, push);
}

int wf_window_blocks(struct wf_link *link, const struct wf_record *record)
{
	struct wf_bytes_reader r = wf_bytes_reader(record->bytes, record->count);
	uint64_t offer = wf_bytes_get_u64(&r), bytes;
	struct wf_window_list *list = link->above.listing;
	struct wf_error e;
	uint32_t known;
	int err;

	if (r.bad)
		return -EBADMSG;
	/* The push may have ended early. */
	if (!list || list->offer != offer)
		return 0;
	known = list->known;
	bytes = list->known_bytes;
	err = add_blocks(list, list->push->use.window, r.at, wf_bytes_reader_left(&r));
	if (err == -ERANGE) {
		wf_error_set(&e, wf_status_code(WEFT_OUT_OF_RANGE), "a block is beyond the window");
		link->above.listing = NULL;
		wf_pull_stop(list->push->pull, &e);
		return 0;
	}
	if (err)
		return err;
	if (list->known == list->total)
		link->above.listing = NULL;
	wf_pull_more(list->push->pull, list->known - known, list->known_bytes - bytes);
	return 0;
}

void wf_window_stop(struct wf_windows *w, struct wf_window *window)
{
	struct wf_window_share *share = share_of(w, window);
	struct wf_error e;

	wf_error_set(&e, wf_status_code(WEFT_NOT_FOUND), "the window is closed");
	WF_LIST_EACH_OF_NOW(node, &share->uses) {
		struct use *use = WF_CONTAINER(node, struct use, node);

		if (use->waits)
			loan_done(&WF_CONTAINER(use, struct loan, use)->outgoing, &e);
		else if (use->is_loan)
			wf_outgoing_stop(&WF_CONTAINER(use, struct loan, use)->outgoing, &e);
		else
			wf_pull_stop(WF_CONTAINER(use, struct push, use)->pull, &e);
	}
	share->stopping = true;
	if (wf_list_empty(&share->uses))
		share->quiet(share);
}

/* Returns the next open window of @table from @at on; NULL: there is none. */
static struct wf_window *next_window(struct wf_window_table *table, uint32_t *at)
{
	struct wf_window *window;

	pthread_mutex_lock(&table->lock);
	window = wf_table_next(&table->windows, at);
	pthread_mutex_unlock(&table->lock);
	return window;
}

void wf_window_recall(struct wf_windows *w)
{
	const struct wf_link *asked = NULL;
	struct wf_window *window;
	struct wf_error e;
	uint32_t at = 0;
	bool may = false;

	wf_error_set(&e, wf_status_code(WEFT_PERMISSION_DENIED), "the peer may get no more");
	while ((window = next_window(w->table, &at))) {
		WF_LIST_EACH_OF_NOW(node, &share_of(w, window)->uses) {
			struct use *use = WF_CONTAINER(node, struct use, node);
			struct wf_outgoing *loan = &WF_CONTAINER(use, struct loan, use)->outgoing;

			if (!use->is_loan)
				continue;
			/* Most loans of a window that follow each other are of one peer. */
			if (use->link != asked)
				may = wf_rights_hold(use->link, WF_ACL_WINDOW, "get", 3);
			asked = use->link;
			if (may)
				continue;
			if (use->waits)
				loan_done(loan, &e);
			else
				wf_outgoing_stop(loan, &e);
		}
	}
}
