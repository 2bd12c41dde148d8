/* SPDX-License-Identifier: BSD-2-Clause */
#include "group/join.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/node.h"
#include "group/bootstrap.h"
#include "group/bootstrap.pb-c.h"
#include "util/clock.h"
#include "util/random.h"

#define PAUSE_NS (100 * WF_NS_PER_MS) /* between two calls to one address; not tuned */
#define ASK_NS (100 * WF_NS_PER_MS) /* between two questions to the program; not tuned */
#define PASS_NS (2 * WF_NS_PER_S) /* for a refusal to pass, beside WEFT_LOST; not tuned */
#define HEAR_NS (10 * WF_NS_PER_S) /* for all to hear of all; not tuned */
#define HEAR_LATE_NS WF_NS_PER_S /* for those who have joined to hear when the time is over */
#define LOOK_NS WF_NS_PER_S /* between two looks at the board while a call runs */

/* Ports of the job's host, and of loopback. */
#define ATTEMPTS_MAX (2 * WF_JOB_PORTS)

/* A place where rank 0's server may be, and the call that asks it. */
struct attempt {
	char address[WF_SOCKET_ADDRESS_BYTES + 8]; /* "": not known yet */
	uint64_t again_ns; /* no call before */
	struct weft_peer *peer;
	struct weft_stub *stub;
	struct weft_stream *stream; /* NULL: no call runs */
	struct weft_op *call, *read;
	bool refused; /* the last call was, in a way that may pass */
};

struct join {
	struct weft_node *node;
	const struct wf_job *job;
	const struct wf_join_limit *limit;
	Weft__Group__Member member;
	const char *host;     /* host of this process, as wf_join_host() has it */
	struct attempt attempts[ATTEMPTS_MAX];
	unsigned attempt_count;
	uint64_t look_ns;     /* no look at the board before */
	/* The last word of rank 0. */
	bool met, lost; /* rank 0 has said who is missing; its call has failed since */
	uint32_t missing[WF_BOOTSTRAP_MISSING_MAX], missing_count;
	size_t missing_known;
	char reason[WF_ERROR_BYTES]; /* why rank 0 is not met; "": no word */
	bool answered;               /* a server has said it: not hidden by ports that nobody has */
	struct wf_error refusal;     /* rank 0's last, which may pass; code 0: none */
	uint64_t final_ns;           /* a refusal is final from then on; with ->refusal */
};

WEFT_STREAM_TYPES(join, Weft__Group__Member, Weft__Group__Progress);

int wf_join_members_init(struct wf_join_members *members, uint32_t size)
{
	*members = (struct wf_join_members){ .size = size };
	members->addresses = calloc(size, sizeof(*members->addresses));
	members->hosts = calloc(size, sizeof(*members->hosts));
	if (members->addresses && members->hosts)
		return 0;
	wf_join_members_fini(members);
	return -ENOMEM;
}

int wf_join_members_set(struct wf_join_members *members, uint32_t rank, const char *address,
			uint32_t host)
{
	members->hosts[rank] = host;
	members->addresses[rank] = strdup(address);
	return members->addresses[rank] ? 0 : -ENOMEM;
}

void wf_join_members_fini(struct wf_join_members *members)
{
	for (uint32_t i = 0; members->addresses && i < members->size; i++)
		free(members->addresses[i]);
	free(members->addresses);
	free(members->hosts);
	*members = (struct wf_join_members){ 0 };
}

void wf_join_ranks(const uint32_t *ranks, size_t count, uint32_t total, char *text, size_t bytes)
{
	FILE *out = fmemopen(text, bytes, "w");

	*text = '\0'; /* without memory nothing is said */
	if (!out)
		return;
	fputs(total == 1 ? "rank " : "ranks ", out);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s%u", !i ? "" : i + 1 == total ? " and " : ", ", ranks[i]);
	if (count < total)
		fprintf(out, " and %u more", total - (uint32_t)count);
	fclose(out);
}

void wf_join_host(char host[WF_JOIN_HOST_BYTES])
{
	char boot[64] = "", space[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? 0 : read(fd, boot, sizeof(boot) - 1);

	if (fd >= 0)
		close(fd);
	boot[count > 0 ? strcspn(boot, "\n") : 0] = 0;
	count = readlink("/proc/self/ns/net", space, sizeof(space) - 1);
	space[count > 0 ? count : 0] = 0;
	snprintf(host, WF_JOIN_HOST_BYTES, "%s %s", boot, space);
}

/* Attempts. */

static void stop(struct attempt *a)
{
	weft_op_free(a->read);
	weft_op_free(a->call);
	weft_stream_close(a->stream);
	weft_stub_close(a->stub);
	weft_peer_close(a->peer);
	a->read = a->call = NULL;
	a->stream = NULL;
	a->stub = NULL;
	a->peer = NULL;
}

/* Call @a again after a while; @why is the word of a server if @answered. */
static void try_later(struct join *j, struct attempt *a, bool answered, const char *why)
{
	if (answered || !j->answered)
		snprintf(j->reason, sizeof(j->reason), "%.200s: %.260s", a->address, why);
	j->answered |= answered;
	stop(a); /* which may be the end of @why */
	a->again_ns = wf_clock_after(wf_clock_now(), PAUSE_NS);
}

static int call(const struct join *j, struct attempt *a)
{
	struct weft_call_options options = WEFT_CALL_OPTIONS_INIT;
	uint64_t now = wf_clock_now();
	int err;

	options.op.timeout_ns = j->limit->until_ns > now ? j->limit->until_ns - now : 1;
	err = weft_peer_open(j->node, a->address, &a->peer);
	if (!err)
		err = weft_stub_open(a->peer, &weft__group__bootstrap__descriptor, &a->stub);
	if (!err)
		err = weft_stream_open(a->stub, "Join", &options, &a->stream, &a->call);
	if (!err)
		err = join_ask(a->stream, &j->member, NULL, NULL);
	if (!err)
		err = weft_stream_half_close(a->stream);
	return err ? err : weft_stream_read(a->stream, NULL, &a->read);
}

/* Returns when a wait ends in which nothing comes, @ns after now or sooner. */
static uint64_t wait_end(const struct wf_join_limit *limit, uint64_t ns)
{
	uint64_t end = wf_clock_after(wf_clock_now(), limit->give_up ? WF_MIN(ns, ASK_NS) : ns);

	return WF_MIN(end, limit->until_ns);
}

/* Begin the calls that are due.  Returns when there is more to do. */
static uint64_t begin_calls(struct join *j)
{
	uint64_t now = wf_clock_now(), next = wait_end(j->limit, WEFT_FOREVER);

	for (unsigned i = 0; i < j->attempt_count; i++) {
		struct attempt *a = &j->attempts[i];

		if (!*a->address || a->read)
			continue;
		if (a->again_ns <= now && call(j, a))
			try_later(j, a, false, weft_error());
		if (!a->read && a->again_ns < next)
			next = a->again_ns;
	}
	return next;
}

/* Loopback leads nowhere from another host. */
static bool is_elsewhere(const struct join *j, const char *address, const char *host)
{
	return *host && strcmp(host, j->host) && wf_socket_leads_to_loopback(address);
}

/*
 * Look where rank 0 is, as the board says.  A call runs on, unless the board says something else
 * now: it may be to a server of an earlier job.
 */
static int look_at_board(struct join *j, struct wf_error *e)
{
	struct wf_job_board *board = j->job->board;
	struct attempt *a = &j->attempts[0];
	char line[WF_JOB_POST_BYTES];
	size_t bytes;
	int err;

	if (!board || (a->read && wf_clock_now() < j->look_ns))
		return 0;
	j->look_ns = wf_clock_after(wf_clock_now(), LOOK_NS);
	err = board->find(board, line, e);
	if (err == -EAGAIN)
		snprintf(j->reason, sizeof(j->reason), "%s", e->text);
	if (err)
		return err == -EAGAIN ? 0 : err;
	bytes = strcspn(line, " ");
	if (line[bytes])
		line[bytes++] = 0;
	if (!strcmp(line, a->address))
		return 0;
	/* A line that an earlier job has left is not final: rank 0 may be about to post. */
	if (bytes >= sizeof(a->address) || is_elsewhere(j, line, line + bytes)) {
		snprintf(j->reason, sizeof(j->reason),
			 "rank 0 is on another host, at %.100s, which this one does not reach: set WEFT_LISTEN, "
			 "and WEFT_KEY_FILE or WEFT_SECURITY=open", line);
		return 0;
	}
	stop(a);
	j->answered = false;
	memcpy(a->address, line, strlen(line) + 1);
	a->again_ns = 0;
	return 0;
}

static void list_ports(struct join *j, const char *host)
{
	for (unsigned i = 0; i < j->job->ports; i++) {
		struct attempt *a = &j->attempts[j->attempt_count++];

		wf_socket_address(host, j->job->port + i, a->address, sizeof(a->address));
	}
}

/*
 * A node on loopback has all others on its host.  Rank 0's server is on loopback, too, where the
 * name of the host may not lead.
 */
static void list_addresses(struct join *j)
{
	const struct wf_job *job = j->job;
	char own[WF_SOCKET_ADDRESS_BYTES];
	uint16_t port;

	if (job->board) {
		j->attempt_count = 1;
		return;
	}
	list_ports(j, job->host);
	if (!wf_socket_split(weft_node_address(j->node), own, sizeof(own), &port, NULL) &&
	    wf_socket_is_loopback(own) && strcmp(own, job->host))
		list_ports(j, own);
}

/* Listening to the server. */

static int keep_members(const struct join *j, const Weft__Group__Progress *said,
			struct wf_join_members *members)
{
	uint32_t size = j->job->size;
	int err;

	if (said->n_addresses != size || said->n_hosts != size)
		return -EPROTO;
	err = wf_join_members_init(members, size);
	members->step = said->step;
	for (uint32_t i = 0; i < size && !err; i++)
		err = wf_join_members_set(members, i, said->addresses[i], said->hosts[i]);
	if (err)
		wf_join_members_fini(members);
	return err;
}

static void keep_missing(struct join *j, const Weft__Group__Progress *said)
{
	size_t known = said->n_missing < WF_BOOTSTRAP_MISSING_MAX ? said->n_missing
								  : WF_BOOTSTRAP_MISSING_MAX;

	j->met = true;
	j->lost = j->answered = false;
	j->refusal.code = 0;
	memcpy(j->missing, said->missing, known * sizeof(j->missing[0]));
	j->missing_known = known;
	j->missing_count = said->missing_count < known ? (uint32_t)known : said->missing_count;
}

/* The code of a refusal; 0: another call may go better. */
static int code_of(enum weft_status status)
{
	switch (status) {
	case WEFT_ALREADY_EXISTS:
		return -EEXIST;
	case WEFT_INVALID_ARGUMENT:
		return -EINVAL;
	case WEFT_FAILED_PRECONDITION:
		return -EADDRNOTAVAIL;
	case WEFT_RESOURCE_EXHAUSTED:
		return -ENOMEM;
	default:
		return 0;
	}
}

/*
 * May a refusal by @status pass?  The rank may be claimed by a process that has died, until rank 0
 * takes it for lost, and the rank 0 of a job of another size may be about to end.
 */
static bool may_pass(enum weft_status status)
{
	return status == WEFT_ALREADY_EXISTS || status == WEFT_INVALID_ARGUMENT;
}

/* Keep @e, said to @a, as a refusal that may pass.  Returns whether it has had time to do so. */
static bool keep_refusal(struct join *j, struct attempt *a, const struct wf_error *e)
{
	uint64_t now = wf_clock_now();

	a->refused = true;
	if (!j->refusal.code)
		j->final_ns = wf_clock_after(now, j->node->workers[0].engine.options.lost_ns + PASS_NS);
	j->refusal = *e;
	return now >= j->final_ns;
}

/* The call of @a has no more to read.  -EAGAIN: another may; else what rank 0 has said against it. */
static int call_over(struct join *j, struct attempt *a, struct wf_error *e)
{
	enum weft_status status;
	int err;

	/* The call ends with its last read, or at once after it. */
	weft_wait(a->call, WF_NS_PER_S);
	status = weft_op_status(a->call);
	err = weft_op_executed(a->call) == WEFT_EXECUTED_YES ? code_of(status) : 0;
	if (err)
		wf_error_set(e, err, "%s", weft_op_message(a->call));
	if (err && (!may_pass(status) || keep_refusal(j, a, e)))
		return err;
	/* The refusal was said by one that is gone, or is another by now. */
	if (!err && a->refused) {
		a->refused = false;
		j->refusal.code = 0;
	}
	j->lost = true;
	try_later(j, a, status != WEFT_UNAVAILABLE && status != WEFT_DEADLINE_EXCEEDED,
		  *weft_op_message(a->read) ? weft_op_message(a->read) : "the server says no more");
	return -EAGAIN;
}

/* A read of @a has ended.  0: all members are known; -EAGAIN: not yet; -E: never. */
static int heard(struct join *j, struct attempt *a, struct wf_join_members *members,
		 struct wf_error *e)
{
	const Weft__Group__Progress *said = join_answered(a->read);
	int err;

	if (!said)
		return call_over(j, a, e);
	if (said->n_addresses) {
		err = keep_members(j, said, members);
		return err ? wf_error_set(e, err, err == -EPROTO ? "rank 0's list of members has another size"
								 : "no memory for the list of members")
			   : 0;
	}
	keep_missing(j, said);
	weft_op_free(a->read);
	a->read = NULL;
	if (weft_stream_read(a->stream, NULL, &a->read))
		try_later(j, a, false, weft_error());
	return -EAGAIN;
}

/* Wait for @ns, while no call runs. */
static void idle(struct weft_node *node, uint64_t ns)
{
	struct timespec time = wf_clock_timespec(ns);

	if (node->manual)
		weft_poll(node, ns);
	else
		nanosleep(&time, NULL);
}

/* Wait until a read ends, or @next.  -EAGAIN: nothing has ended; else as heard(). */
static int wait_for_word(struct join *j, uint64_t next, struct wf_join_members *members,
			 struct wf_error *e)
{
	struct weft_op *reads[ATTEMPTS_MAX] = { 0 };
	uint64_t now = wf_clock_now();
	uint64_t until = j->job->board && j->look_ns < next ? j->look_ns : next;
	uint64_t left = until > now ? until - now : 0;
	unsigned running = 0;
	size_t index;
	int err;

	for (unsigned i = 0; i < j->attempt_count; i++) {
		reads[i] = j->attempts[i].read;
		running += !!reads[i];
	}
	if (!running) {
		idle(j->node, left < PAUSE_NS ? left : PAUSE_NS);
		return -EAGAIN;
	}
	err = weft_wait_any(reads, ATTEMPTS_MAX, left, &index);
	if (err == -ETIMEDOUT)
		return -EAGAIN;
	return err ? wf_error_set(e, err, "%s", weft_error())
		   : heard(j, &j->attempts[index], members, e);
}

/* 0: the wait goes on; -ETIMEDOUT; -ECANCELED: the program gives the join up. */
static int is_over(const struct wf_join_limit *limit)
{
	if (limit->give_up && limit->give_up(limit->arg))
		return -ECANCELED;
	return wf_clock_now() < limit->until_ns ? 0 : -ETIMEDOUT;
}

/* Say why the wait is @over, as is_over() has it. */
static int waited_in_vain(const struct join *j, int over, struct wf_error *e)
{
	const struct wf_job *job = j->job;
	double seconds = (double)j->limit->ns / (double)WF_NS_PER_S;
	const char *own = weft_node_address(j->node);
	char ranks[256], hint[WF_SOCKET_ADDRESS_BYTES + 80] = "";

	if (over == -ECANCELED)
		return wf_error_set(e, over, "the join of %u processes (%s) was given up by this one",
				    job->size, job->launcher);
	if (j->refusal.code) {
		*e = j->refusal;
		return e->code;
	}
	if (wf_socket_leads_to_loopback(own))
		snprintf(hint, sizeof(hint), "; other hosts, if the job has any, do not reach this node, "
					     "at %s: see WEFT_LISTEN", own);

	if (!j->met && job->board)
		return wf_error_set(e, -ETIMEDOUT, "rank 0 of %u processes (%s) was not met within %g s%s%s%s",
				    job->size, job->launcher, seconds, *j->reason ? ": " : "",
				    j->reason, hint);
	if (!j->met)
		return wf_error_set(e, -ETIMEDOUT,
				    "rank 0 of %u processes (%s) was not met at %s or the %u ports after "
				    "within %g s%s%s%s", job->size, job->launcher,
				    j->attempts[0].address, job->ports - 1, seconds,
				    *j->reason ? ": " : "", j->reason, hint);
	wf_join_ranks(j->missing, j->missing_known, j->missing_count, ranks, sizeof(ranks));
	return wf_error_set(e, -ETIMEDOUT, "%u of %u processes (%s) did not join within %g s: %s%s%s%s",
			    j->missing_count, job->size, job->launcher, seconds, ranks,
			    j->lost ? "; then rank 0 left, " : "", j->lost ? j->reason : "", hint);
}

int wf_join(struct weft_node *node, const struct wf_job *job, const struct wf_join_limit *limit,
	    struct wf_join_members *members, struct wf_error *e)
{
	char name[WF_BOOTSTRAP_JOB_BYTES], host[WF_JOIN_HOST_BYTES];
	struct join j = { .node = node, .job = job, .limit = limit,
			  .member = WEFT__GROUP__MEMBER__INIT };
	int err = -EAGAIN, over = 0;

	wf_bootstrap_name(job, name);
	wf_join_host(host);
	j.member.job = name;
	j.member.rank = job->rank;
	j.member.size = job->size;
	j.member.address = (char *)(uintptr_t)weft_node_address(node);
	j.member.host = host;
	j.host = host;
	j.member.process = wf_random_u64();
	list_addresses(&j);
	while (err == -EAGAIN && !(over = is_over(limit))) {
		err = look_at_board(&j, e);
		if (!err)
			err = wait_for_word(&j, begin_calls(&j), members, e);
	}
	if (err == -EAGAIN)
		err = waited_in_vain(&j, over, e);
	for (unsigned i = 0; i < j.attempt_count; i++)
		stop(&j.attempts[i]);
	return err;
}

/*
 * Let the others hear of a join that has ended with @err, for a while, and drive a manual node
 * meanwhile.  Returns @err; -ECANCELED: the program has given up a join that went well.
 */
static int let_hear(struct weft_node *node, struct wf_bootstrap *b,
		    const struct wf_join_limit *limit, int err)
{
	uint64_t now = wf_clock_now(), until = now + HEAR_LATE_NS;

	if (!err && until < limit->until_ns)
		until = WF_MIN(now + HEAR_NS, limit->until_ns);
	while (now < until) {
		if (wf_bootstrap_drain(b, WF_MIN(until, now + ASK_NS)) != -EAGAIN)
			return err;
		if (node->manual)
			weft_poll(node, 0);
		if (!err && limit->give_up && limit->give_up(limit->arg))
			return -ECANCELED;
		now = wf_clock_now();
	}
	return err;
}

int wf_join_as_root(struct weft_node *node, const struct wf_job *job, struct wf_bootstrap *b,
		    const struct wf_join_limit *limit, struct wf_join_members *members,
		    struct wf_error *e)
{
	struct join j = { .node = node, .job = job, .limit = limit, .met = true };
	int err = -EAGAIN, over = 0;

	/* A manual node is driven meanwhile, as others may have it as their peer already. */
	while (err == -EAGAIN && !(over = is_over(limit))) {
		err = wf_bootstrap_wait(b, wait_end(limit, node->manual ? PAUSE_NS : WEFT_FOREVER),
					members, e);
		if (err == -EAGAIN && node->manual)
			weft_poll(node, 0);
	}
	if (err == -EAGAIN) {
		j.missing_known = wf_bootstrap_missing(b, j.missing, &j.missing_count);
		err = waited_in_vain(&j, over, e);
	}
	over = let_hear(node, b, limit, err);
	if (over == err)
		return err;
	wf_join_members_fini(members);
	return waited_in_vain(&j, over, e);
}
