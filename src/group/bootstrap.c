/* SPDX-License-Identifier: BSD-2-Clause */
#include "group/bootstrap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "group/bootstrap.pb-c.h"
#include "group/join.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/random.h"
#include "util/thread.h"

#define MEMBER_BYTES_MAX 4096 /* a request has names of at most a few hundred bytes */
#define LATE_NS (100 * WF_NS_PER_MS) /* before its deadline a member has given up for that */

/* A rank's process, while its call runs, and for good once all are there. */
struct member {
	char *address; /* NULL: the rank is missing */
	char *host;
	uint32_t host_rank; /* the lowest rank on that host, once nobody is missing */
	uint64_t process;
};

/* A call of Join. */
struct caller {
	struct wf_list node; /* in bootstrap->callers, until over */
	struct wf_bootstrap *bootstrap;
	struct weft_stream *stream;
	uint32_t rank;
	uint32_t told;       /* how many were missing when this was last written */
	bool heard;          /* something was written */
	bool joined;         /* the rank is this call's */
	bool busy;           /* a read or a write of the stream runs */
	bool over;
};

struct wf_bootstrap {
	Weft__Group__Bootstrap_Service service;
	struct weft_node *node; /* the server's own */
	char job[WF_BOOTSTRAP_JOB_BYTES];
	pthread_mutex_t lock;   /* all below */
	pthread_cond_t changed; /* all are there, or the group is refused */
	struct wf_list callers;
	enum weft_status refused; /* WEFT_OK: not */
	char refusal[WF_ERROR_BYTES];
	uint64_t step;          /* constant, as is size */
	uint32_t size, missing;
	struct member members[]; /* by rank */
};

WEFT_STREAM_TYPES(join, Weft__Group__Member, Weft__Group__Progress);

void wf_bootstrap_name(const struct wf_job *job, char name[WF_BOOTSTRAP_JOB_BYTES])
{
	/* Jobs without a key may have ports in common: the first one tells them apart. */
	snprintf(name, WF_BOOTSTRAP_JOB_BYTES, "%s:%u/%s", job->key, job->port, job->name);
}

/* Members. */

static void forget(struct member *m)
{
	free(m->address);
	free(m->host);
	*m = (struct member){ 0 };
}

/* A caller that leaves before all are there makes its rank missing again. */
static void leave(struct caller *c)
{
	struct wf_bootstrap *b = c->bootstrap;

	if (!c->joined || !b->missing)
		return;
	c->joined = false;
	forget(&b->members[c->rank]);
	b->missing++;
}

static void end(struct caller *c, enum weft_status status, const char *text)
{
	if (!c->over) {
		leave(c);
		c->over = true;
		wf_list_remove(&c->node);
		weft_stream_finish(c->stream, status, text);
	}
	if (!c->busy)
		free(c);
}

static int by_host(const void *left, const void *right)
{
	const struct member *a = *(const struct member *const *)left;
	const struct member *b = *(const struct member *const *)right;
	int order = strcmp(a->host, b->host);

	return order ? order : a < b ? -1 : 1;
}

/* Number the hosts.  Returns how many there are; 0: no memory. */
static uint32_t number_hosts(struct wf_bootstrap *b)
{
	struct member **sorted = malloc(b->size * sizeof(struct member *));
	uint32_t count = 0;

	if (!sorted)
		return 0;
	for (uint32_t i = 0; i < b->size; i++)
		sorted[i] = &b->members[i];
	qsort(sorted, b->size, sizeof(struct member *), by_host);
	for (uint32_t i = 0; i < b->size; i++) {
		bool same = i && !strcmp(sorted[i]->host, sorted[i - 1]->host);

		sorted[i]->host_rank = same ? sorted[i - 1]->host_rank
					    : (uint32_t)(sorted[i] - b->members);
		count += !same;
	}
	free(sorted);
	return count;
}

/* Returns the first member whose address is for processes of its host alone; NULL: none. */
static const struct member *first_on_loopback(const struct wf_bootstrap *b)
{
	for (uint32_t i = 0; i < b->size; i++)
		if (wf_socket_leads_to_loopback(b->members[i].address))
			return &b->members[i];
	return NULL;
}

/* All are there: check that they can reach each other, or refuse the group for good. */
static void check_all(struct wf_bootstrap *b)
{
	uint32_t hosts = number_hosts(b);
	const struct member *hidden = hosts > 1 ? first_on_loopback(b) : NULL;

	if (!hosts) {
		b->refused = WEFT_RESOURCE_EXHAUSTED;
		snprintf(b->refusal, sizeof(b->refusal), "rank 0 has no memory for the list of members");
	} else if (hidden) {
		b->refused = WEFT_FAILED_PRECONDITION;
		snprintf(b->refusal, sizeof(b->refusal),
			 "the job has %u hosts, and the node of rank %u is at %.100s, which other hosts "
			 "do not reach: set WEFT_LISTEN, and WEFT_KEY_FILE or "
			 "WEFT_SECURITY=open", hosts,
			 (unsigned)(hidden - b->members), hidden->address);
	}
}

/* Telling callers. */

static void tell_all(struct wf_bootstrap *b);

static void written(struct weft_op *op, void *arg)
{
	struct caller *c = arg;
	struct wf_bootstrap *b = c->bootstrap;
	bool good = weft_op_status(op) == WEFT_OK;

	weft_op_free(op);
	pthread_mutex_lock(&b->lock);
	c->busy = false;
	if (!good || c->over)
		end(c, WEFT_CANCELLED, "the member has gone");
	else if (!c->told)
		end(c, WEFT_OK, "");
	tell_all(b);
	pthread_mutex_unlock(&b->lock);
}

static void write_progress(struct caller *c, const Weft__Group__Progress *progress)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;
	struct weft_op *op;

	options.done = written;
	options.arg = c;
	c->heard = true;
	c->told = c->bootstrap->missing;
	c->busy = !join_answer(c->stream, progress, &options, &op);
	if (!c->busy)
		end(c, WEFT_RESOURCE_EXHAUSTED, weft_error());
}

/* Fill @ranks with the lowest that are missing.  Returns their number. */
static size_t first_missing(const struct wf_bootstrap *b, uint32_t ranks[WF_BOOTSTRAP_MISSING_MAX])
{
	size_t count = 0;

	for (uint32_t i = 0; i < b->size && count < WF_BOOTSTRAP_MISSING_MAX; i++)
		if (!b->members[i].address)
			ranks[count++] = i;
	return count;
}

static void tell_missing(struct caller *c)
{
	Weft__Group__Progress progress = WEFT__GROUP__PROGRESS__INIT;
	uint32_t ranks[WF_BOOTSTRAP_MISSING_MAX];

	progress.n_missing = first_missing(c->bootstrap, ranks);
	progress.missing = ranks;
	progress.missing_count = c->bootstrap->missing;
	write_progress(c, &progress);
}

static void tell_members(struct caller *c)
{
	Weft__Group__Progress progress = WEFT__GROUP__PROGRESS__INIT;
	const struct wf_bootstrap *b = c->bootstrap;
	char **addresses = malloc(b->size * sizeof(*addresses));
	uint32_t *hosts = malloc(b->size * sizeof(*hosts));

	if (addresses && hosts) {
		for (uint32_t i = 0; i < b->size; i++) {
			addresses[i] = b->members[i].address;
			hosts[i] = b->members[i].host_rank;
		}
		progress.step = b->step;
		progress.n_addresses = progress.n_hosts = b->size;
		progress.addresses = addresses;
		progress.hosts = hosts;
		write_progress(c, &progress);
	} else {
		end(c, WEFT_RESOURCE_EXHAUSTED, "rank 0 has no memory for the list of members");
	}
	free(addresses);
	free(hosts);
}

static void tell_all(struct wf_bootstrap *b)
{
	WF_LIST_EACH(at, &b->callers) {
		struct caller *c = WF_CONTAINER(at, struct caller, node);

		if (c->busy || !c->joined)
			continue;
		if (b->refused)
			end(c, b->refused, b->refusal);
		else if (!b->missing && (!c->heard || c->told))
			tell_members(c);
		else if (!c->heard || (c->told != b->missing && b->missing <= WF_BOOTSTRAP_MISSING_MAX))
			tell_missing(c);
	}
}

/* Joining. */

static void gone(void *arg)
{
	struct caller *c = arg;
	struct wf_bootstrap *b = c->bootstrap;
	bool out_of_time = weft_served_left_ns(weft_stream_served(c->stream)) < LATE_NS;

	pthread_mutex_lock(&b->lock);
	end(c, WEFT_CANCELLED, "the member has gone");
	/* When time is over for one it is for all: those who follow hear who came too late for it. */
	if (!out_of_time)
		tell_all(b);
	pthread_mutex_unlock(&b->lock);
}

/* The call of a process takes the place of one that it made before. */
static void replace(struct wf_bootstrap *b, uint32_t rank)
{
	WF_LIST_EACH(at, &b->callers) {
		struct caller *c = WF_CONTAINER(at, struct caller, node);

		if (c->joined && c->rank == rank)
			c->joined = false;
	}
}

/* Check what @said asks for.  WEFT_OK, or a status and a sentence. */
static enum weft_status check(const struct wf_bootstrap *b, const Weft__Group__Member *said,
			      char *text, size_t bytes)
{
	const struct member *m;

	if (strcmp(said->job, b->job)) {
		snprintf(text, bytes, "the group \"%.100s\" meets here, and not \"%.100s\"", b->job,
			 said->job);
		return WEFT_NOT_FOUND;
	}
	if (said->size != b->size || said->rank >= b->size) {
		snprintf(text, bytes, "rank %u says that the job has %u processes, and rank 0 that there are %u",
			 said->rank, said->size, b->size);
		return WEFT_INVALID_ARGUMENT;
	}
	m = &b->members[said->rank];
	/* A member that has heard of all may join the next group of this name before rank 0 does. */
	if (!b->missing && b->refused == WEFT_OK && m->process != said->process) {
		snprintf(text, bytes, "all have joined, and rank 0 has not begun to join anew");
		return WEFT_UNAVAILABLE;
	}
	if (m->address && m->process != said->process) {
		snprintf(text, bytes, "another process has joined as rank %u, with its node at %.100s",
			 said->rank, m->address);
		return WEFT_ALREADY_EXISTS;
	}
	snprintf(text, bytes, "%s", b->refusal);
	return b->refused;
}

static bool enter(struct wf_bootstrap *b, struct caller *c, const Weft__Group__Member *said)
{
	struct member *m = &b->members[said->rank];
	struct member fresh = { .address = strdup(said->address), .host = strdup(said->host),
				.process = said->process };

	if (!fresh.address || !fresh.host) {
		forget(&fresh);
		return false;
	}
	c->rank = said->rank;
	c->joined = true;
	*m = fresh;
	b->missing--;
	return true;
}

static void take(struct caller *c, const Weft__Group__Member *said)
{
	struct wf_bootstrap *b = c->bootstrap;
	char text[WF_ERROR_BYTES];
	enum weft_status status = check(b, said, text, sizeof(text));

	if (status == WEFT_OK && b->members[said->rank].address) {
		replace(b, said->rank);
		c->rank = said->rank;
		c->joined = true;
	} else if (status == WEFT_OK && !enter(b, c, said)) {
		status = WEFT_RESOURCE_EXHAUSTED;
		snprintf(text, sizeof(text), "rank 0 has no memory for a member");
	} else if (status == WEFT_OK && !b->missing) {
		check_all(b);
		pthread_cond_broadcast(&b->changed);
	}
	if (status == WEFT_OK)
		weft_served_on_cancel(weft_stream_served(c->stream), gone, c);
	else
		end(c, status, text);
	tell_all(b);
}

static void asked(struct weft_op *op, void *arg)
{
	const Weft__Group__Member *said = join_asked(op);
	struct caller *c = arg;
	struct wf_bootstrap *b = c->bootstrap;

	pthread_mutex_lock(&b->lock);
	c->busy = false;
	if (said && !c->over)
		take(c, said);
	else
		end(c, WEFT_INVALID_ARGUMENT, "there is no member");
	pthread_mutex_unlock(&b->lock);
	weft_op_free(op);
}

static void handle_join(struct weft_stream *stream, void *arg)
{
	struct caller *c = calloc(1, sizeof(*c));
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;
	struct wf_bootstrap *b = arg;
	struct weft_op *op;

	if (!c) {
		weft_stream_finish(stream, WEFT_RESOURCE_EXHAUSTED, "rank 0 has no memory for a call");
		return;
	}
	c->bootstrap = b;
	c->stream = stream;
	options.done = asked;
	options.arg = c;
	pthread_mutex_lock(&b->lock);
	wf_list_append(&b->callers, &c->node);
	c->busy = !weft_stream_read(stream, &options, &op);
	if (!c->busy)
		end(c, WEFT_RESOURCE_EXHAUSTED, weft_error());
	pthread_mutex_unlock(&b->lock);
}

/* The server. */

/* Open the server's node at @listen, for others at @advertise, with the options of @beside. */
static int open_at(struct wf_bootstrap *b, const struct weft_node *beside, const char *listen,
		   const char *advertise)
{
	const struct wf_options *o = &beside->workers[0].engine.options;
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;

	options.listen = listen;
	options.advertise = advertise;
	options.name = "bootstrap";
	options.provider = o->provider;
	options.device = o->device;
	options.security = wf_node_security(beside);
	options.workers = 1;
	return weft_node_open(&options, &b->node);
}

/*
 * Open the server at a port of the job's.  Members may dial this host by any of its addresses, so
 * it listens on all, unless @beside itself is for this host alone; its rails are at @host, as those
 * of @beside are.
 */
static int open_at_port(struct wf_bootstrap *b, const struct weft_node *beside, const char *host,
			const struct wf_job *job)
{
	const char *all = strchr(host, ':') ? "::" : "0.0.0.0";
	bool local = wf_socket_is_loopback(host);
	char listen[WF_SOCKET_ADDRESS_BYTES + 8], advertise[WF_SOCKET_ADDRESS_BYTES + 8];
	int err = -EADDRINUSE;

	for (unsigned i = 0; i < job->ports && err == -EADDRINUSE; i++) {
		wf_socket_address(host, job->port + i, advertise, sizeof(advertise));
		wf_socket_address(local ? host : all, job->port + i, listen, sizeof(listen));
		err = open_at(b, beside, listen, advertise);
	}
	return err;
}

/* Open the server at any port, where and for whom @beside is open, too: others at @host. */
static int open_at_any_port(struct wf_bootstrap *b, const struct weft_node *beside,
			    const char *host)
{
	char listen[WF_SOCKET_ADDRESS_BYTES + 8], advertise[WF_SOCKET_ADDRESS_BYTES + 8];
	char name[WF_SOCKET_ADDRESS_BYTES];
	const char *given = beside->workers[0].engine.options.listen;
	uint16_t port;

	if (!*given || wf_socket_split(given, name, sizeof(name), &port, NULL))
		strcpy(name, host);
	wf_socket_address(name, 0, listen, sizeof(listen));
	wf_socket_address(host, 0, advertise, sizeof(advertise));
	return open_at(b, beside, listen, advertise);
}

static int open_node(struct wf_bootstrap *b, const struct weft_node *beside,
		     const struct wf_job *job, struct wf_error *e)
{
	char host[WF_SOCKET_ADDRESS_BYTES];
	uint16_t port;
	int err = wf_socket_split(weft_node_address(beside), host, sizeof(host), &port, e);

	if (err)
		return err;
	err = job->board ? open_at_any_port(b, beside, host) : open_at_port(b, beside, host, job);
	return err ? wf_error_set(e, err, "rank 0 can't listen for the others: %s", weft_error()) : 0;
}

static void free_bootstrap(struct wf_bootstrap *b)
{
	for (uint32_t i = 0; i < b->size; i++)
		forget(&b->members[i]);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* Make the server's state, with rank 0 in it.  NULL: no memory. */
static struct wf_bootstrap *new_bootstrap(struct weft_node *node, const char *host,
					  const struct wf_job *job)
{
	struct wf_bootstrap *b = calloc(1, sizeof(*b) + job->size * sizeof(b->members[0]));

	if (!b)
		return NULL;
	if (pthread_mutex_init(&b->lock, NULL))
		goto free_memory;
	if (wf_thread_cond_init(&b->changed))
		goto destroy_lock;
	wf_list_init(&b->callers);
	wf_bootstrap_name(job, b->job);
	b->step = wf_random_u64();
	b->size = job->size;
	b->missing = job->size - 1;
	b->members[0] = (struct member){ .address = strdup(weft_node_address(node)),
					 .host = strdup(host), .process = wf_random_u64() };
	if (b->members[0].address && b->members[0].host)
		return b;
	free_bootstrap(b);
	return NULL;

destroy_lock:
	pthread_mutex_destroy(&b->lock);
free_memory:
	free(b);
	return NULL;
}

static int post(const struct wf_bootstrap *b, const char *host, struct wf_job_board *board,
		struct wf_error *e)
{
	char line[WF_JOB_POST_BYTES];

	snprintf(line, sizeof(line), "%s %s", weft_node_address(b->node), host);
	return board->post(board, line, e);
}

int wf_bootstrap_open(struct weft_node *node, const char *host, const struct wf_job *job,
		      struct wf_bootstrap **b, struct wf_error *e)
{
	static const Weft__Group__Bootstrap_Service service = {
		.base = WEFT__GROUP__BOOTSTRAP__BASE_INIT
	};
	struct weft_stream_method join = { .name = "Join", .handle = handle_join };
	struct weft_serve_options options = WEFT_SERVE_OPTIONS_INIT;
	struct wf_bootstrap *fresh = new_bootstrap(node, host, job);
	int err;

	if (!fresh)
		return wf_error_set(e, -ENOMEM, "no memory for the members of a group");
	fresh->service = service;
	join.arg = fresh;
	options.methods = &join;
	options.method_count = 1;
	options.message_bytes_max = MEMBER_BYTES_MAX;
	err = open_node(fresh, node, job, e);
	if (err)
		goto free_state;
	err = weft_serve_with(fresh->node, &fresh->service.base, &options);
	if (err)
		wf_error_set(e, err, "%s", weft_error());
	else if (job->board)
		err = post(fresh, host, job->board, e);
	if (err)
		goto close_node;
	*b = fresh;
	return 0;

close_node:
	weft_node_close(fresh->node);
free_state:
	free_bootstrap(fresh);
	return err;
}

/* Under the lock. */
static int list_members(const struct wf_bootstrap *b, struct wf_join_members *members,
			struct wf_error *e)
{
	int err = wf_join_members_init(members, b->size);

	members->step = b->step;
	for (uint32_t i = 0; i < b->size && !err; i++)
		err = wf_join_members_set(members, i, b->members[i].address, b->members[i].host_rank);
	if (!err)
		return 0;
	wf_join_members_fini(members);
	return wf_error_set(e, err, "no memory for the list of members");
}

int wf_bootstrap_wait(struct wf_bootstrap *b, uint64_t until_ns, struct wf_join_members *members,
		      struct wf_error *e)
{
	struct timespec until = wf_clock_timespec(until_ns);
	int err = 0;

	pthread_mutex_lock(&b->lock);
	while (b->missing && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&b->changed, &b->lock, &until);
	if (b->missing)
		err = -EAGAIN;
	else if (b->refused)
		err = wf_error_set(e, b->refused == WEFT_FAILED_PRECONDITION ? -EADDRNOTAVAIL : -ENOMEM,
				   "%s", b->refusal);
	else
		err = list_members(b, members, e);
	pthread_mutex_unlock(&b->lock);
	return err;
}

size_t wf_bootstrap_missing(struct wf_bootstrap *b, uint32_t ranks[WF_BOOTSTRAP_MISSING_MAX],
			    uint32_t *total)
{
	size_t count;

	pthread_mutex_lock(&b->lock);
	count = first_missing(b, ranks);
	*total = b->missing;
	pthread_mutex_unlock(&b->lock);
	return count;
}

int wf_bootstrap_drain(struct wf_bootstrap *b, uint64_t until_ns)
{
	uint64_t now = wf_clock_now();
	int err;

	pthread_mutex_lock(&b->lock);
	WF_LIST_EACH(at, &b->callers) {
		struct caller *c = WF_CONTAINER(at, struct caller, node);

		/* One that is replaced may be told of its cancel now, by the worker, which ends it. */
		if (!c->joined && c->busy)
			end(c, WEFT_UNAVAILABLE, "rank 0 takes no more members");
	}
	pthread_mutex_unlock(&b->lock);
	/* Calls that still run are of members that have not taken the last message yet. */
	err = weft_node_drain(b->node, until_ns > now ? until_ns - now : 0);
	return err == -ETIMEDOUT ? -EAGAIN : err;
}

void wf_bootstrap_close(struct wf_bootstrap *b)
{
	weft_node_close(b->node);
	WF_LIST_EACH(at, &b->callers)
		free(WF_CONTAINER(at, struct caller, node));
	free_bootstrap(b);
}
