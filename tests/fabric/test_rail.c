/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rails on the real providers that this host has, between processes: this
 * program starts itself again as the peer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/ep.h"
#include "fabric/mr.h"
#include "util/clock.h"

#define LIMIT_NS (30 * WF_NS_PER_S) /* for what takes milliseconds on an idle machine */
#define BODY (8 * MIB) /* long enough that a close comes in the middle */
#define SLOTS 8
#define READS 600 /* more than tcp serves in two looks: 225 in each */

/* What a message asks of the peer, in its first byte. */
enum ask {
	ASK_ECHO = 'e',  /* send it back */
	ASK_LATER = 'l', /* send it back after a while */
	ASK_BODY = 'b',  /* send the address and key of the body */
	ASK_FLOOD = 'f', /* send for ever */
	ASK_READS = 'r'  /* read a byte of ours many times, and send back when all have come */
};

struct body {
	char kind;
	uint64_t address, key;
};

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) + 5);
}

/* Where rails are: as for users, but for the port. */
static const char *host(void)
{
	static char text[64];
	const char *listen = getenv("WEFT_LISTEN");

	snprintf(text, sizeof(text), "%s", listen ? listen : "127.0.0.1");
	text[strcspn(text, ":")] = '\0';
	return text;
}

static int select_one(const char *provider, struct wf_select *select,
		      const struct wf_select_candidate **candidate, struct wf_error *e)
{
	struct wf_options options = { .rdma = true, .shm = true };
	size_t i;
	int err;

	snprintf(options.provider, sizeof(options.provider), "%s", provider);
	snprintf(options.listen, sizeof(options.listen), "%s:0", host());
	err = wf_select_open(&options, select, e);
	if (err)
		return err;
	for (i = 0; i < select->count; i++)
		if (select->all[i].used)
			*candidate = &select->all[i];
	return 0;
}

/* The peer. */

struct peer {
	struct wf_rail *rail;
	struct wf_ep *ep;
	struct wf_mr *body_mr, *out_mr;
	uint8_t *body, out[66 * KIB];
	unsigned reads; /* under way */
	struct wf_rail_event late[SLOTS]; /* messages that came before a send had ended */
	unsigned late_count;
	bool floods, ends;
};

static void peer_need(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "peer: %s\n", what);
	_exit(3);
}

static void peer_send(struct peer *p, const void *bytes, size_t count)
{
	struct wf_rail_event events[8];
	int ret, n;

	memcpy(p->out, bytes, count);
	while ((ret = wf_ep_send(p->ep, p->out, count, wf_mr_desc(p->out_mr), NULL)) == -EAGAIN)
		wf_rail_poll(p->rail, events, 0);
	/* One message at a time: @out is used again. */
	while (ret == 0) {
		n = wf_rail_poll(p->rail, events, 1);
		if (n && (events[0].kind == WF_EVENT_SENT || events[0].kind == WF_EVENT_CLOSED))
			return;
		if (n && events[0].kind == WF_EVENT_RECEIVED) {
			peer_need(p->late_count < SLOTS, "room for a message");
			p->late[p->late_count++] = events[0];
		}
	}
}

static size_t from_hex(const char *text, uint8_t *bytes)
{
	size_t n;
	unsigned byte;

	for (n = 0; n < WF_ADDRESS_BYTES && text[2 * n] != ' ' &&
		    sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
		bytes[n] = (uint8_t)byte;
	return n;
}

/* What an end tells of its rail. */
struct place {
	uint8_t address[WF_ADDRESS_BYTES];
	size_t address_bytes;
	int pid, gate; /* its process, and the gate's descriptor there */
};

/* "ADDRESS PID GATE ..." */
static void read_place(const char *line, struct place *place)
{
	place->address_bytes = from_hex(line, place->address);
	if (sscanf(line + 2 * place->address_bytes, "%d %d", &place->pid, &place->gate) != 2)
		abort();
}

static int open_to(struct wf_rail *rail, const struct place *to, void *owner, struct wf_ep **ep)
{
	int process, gate, err;

	if (!wf_rail_caps(rail)->same_host)
		return wf_ep_open(rail, to->address, to->address_bytes, "token", 5, owner, ep, NULL);
	process = (int)syscall(SYS_pidfd_open, to->pid, 0);
	gate = (int)syscall(SYS_pidfd_getfd, process, to->gate, 0);
	err = wf_ep_open_here(rail, to->address, to->address_bytes, (uint32_t)to->pid, gate, owner,
			      ep, NULL);
	close(gate);
	close(process);
	return err;
}

/* An address that comes in is where to send; the end of input is the end. */
static void peer_command(struct peer *p)
{
	struct pollfd input = { 0, POLLIN, 0 };
	char line[3 * WF_ADDRESS_BYTES];
	struct place place;

	if (!poll(&input, 1, 0))
		return;
	if (!fgets(line, sizeof(line), stdin)) {
		p->ends = true;
		return;
	}
	wf_ep_close(p->ep);
	p->ep = NULL;
	read_place(line, &place);
	peer_need(!open_to(p->rail, &place, p, &p->ep), "open");
}

static void peer_read(struct peer *p, const uint8_t *asked)
{
	struct wf_rail_event event;
	struct body body;
	int err;

	memcpy(&body, asked, sizeof(body));
	for (unsigned i = 0; i < READS; i++) {
		while ((err = wf_ep_read(p->ep, p->out, 1, wf_mr_desc(p->out_mr), body.address,
					 body.key, NULL)) == -EAGAIN)
			p->reads -= wf_rail_poll(p->rail, &event, 1);
		peer_need(!err, "read");
		p->reads++;
	}
}

static void peer_answer(struct peer *p, const struct wf_rail_event *v)
{
	struct body body = { ASK_BODY, wf_mr_address(p->body_mr, p->body), wf_mr_key(p->body_mr) };

	/* Whoever asks has told his address before. */
	peer_command(p);
	peer_need(p->ep != NULL || p->ends, "an address");
	if (p->ends)
		return;
	switch (v->bytes[0]) {
	case ASK_LATER:
		usleep(50 * 1000);
		peer_send(p, v->bytes, v->count);
		break;
	case ASK_ECHO:
		peer_send(p, v->bytes, v->count);
		break;
	case ASK_BODY:
		peer_send(p, &body, sizeof(body));
		break;
	case ASK_FLOOD:
		p->floods = true;
		break;
	case ASK_READS:
		peer_read(p, v->bytes);
		break;
	}
}

static bool peer_next(struct peer *p, struct wf_rail_event *v)
{
	if (!p->late_count)
		return wf_rail_poll(p->rail, v, 1);
	*v = p->late[0];
	memmove(p->late, p->late + 1, --p->late_count * sizeof(*v));
	return true;
}

static void peer_hear(struct peer *p)
{
	struct wf_rail_event v;

	if (!peer_next(p, &v))
		return;
	switch (v.kind) {
	case WF_EVENT_REQUEST:
		peer_need(!wf_ep_accept(p->rail, v.request, p, &p->ep, NULL), "accept");
		break;
	case WF_EVENT_READ:
		if (!--p->reads)
			peer_send(p, "", 1);
		break;
	case WF_EVENT_RECEIVED:
		peer_answer(p, &v);
		wf_rail_give(p->rail, v.slot);
		break;
	case WF_EVENT_CLOSED:
		wf_ep_close(v.ep);
		if (p->ep == v.ep)
			p->ep = NULL;
		break;
	default:
		break;
	}
}

static void print_address(struct wf_rail *rail, FILE *out)
{
	uint8_t address[WF_ADDRESS_BYTES];
	size_t bytes = wf_rail_address(rail, address), i;

	for (i = 0; i < bytes; i++)
		fprintf(out, "%02x", address[i]);
	fprintf(out, " %d %d %s\n", (int)getpid(), wf_rail_gate_fd(rail), wf_rail_files(rail));
	fflush(out);
}

static int peer_main(const char *provider)
{
	struct wf_rail_config config = { .host = host(), .slots_count = SLOTS };
	const struct wf_select_candidate *candidate = NULL;
	struct wf_select select;
	struct peer p = { 0 };
	size_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdin, NULL, _IONBF, 0); /* or poll would not see what is buffered */
	peer_need(!select_one(provider, &select, &candidate, NULL), "select");
	peer_need(!wf_rail_open(candidate, &config, &p.rail, NULL), "rail");
	p.body = malloc(BODY);
	peer_need(p.body, "memory");
	for (i = 0; i < BODY; i++)
		p.body[i] = pattern(i);
	peer_need(!wf_mr_open(p.rail, p.body, BODY, WF_ACCESS_REMOTE_READ, &p.body_mr, NULL), "mr");
	peer_need(!wf_mr_open(p.rail, p.out, sizeof(p.out), WF_ACCESS_LOCAL, &p.out_mr, NULL), "mr");
	print_address(p.rail, stdout);
	for (i = 0; !p.ends; i++) {
		peer_hear(&p);
		if (p.floods)
			peer_send(&p, p.body, wf_rail_caps(p.rail)->frame_bytes);
		peer_command(&p);
		if (i % 16 == 0)
			usleep(50); /* both ends share two cores with others */
	}
	wf_rail_close(p.rail);
	wf_select_close(&select);
	free(p.body);
	return 0;
}

/* This end. */

struct child {
	pid_t pid;
	int in; /* its standard input */
	struct place place;
	char files[WF_ADDRESS_BYTES];
};

struct world {
	const char *provider;
	struct wf_select select;
	struct wf_rail *rail;
	struct wf_counters counters;
	struct wf_mr *out_mr, *into_mr;
	uint8_t out[66 * KIB], *into, *expected; /* BODY bytes each */
	/* heard: */
	unsigned connected, closed, sent, received, reads;
	int read_status;
	struct wf_ep *closed_ep;
	uint8_t last[66 * KIB];
	size_t last_bytes;
};

static void spawn(const struct world *w, struct child *c)
{
	char line[4 * WF_ADDRESS_BYTES];
	int in[2], out[2];
	FILE *from;

	*c = (struct child){ 0 };
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (!c->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl("/proc/self/exe", "test_rail", "peer", w->provider, (char *)NULL);
		_exit(4);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	from = fdopen(out[0], "r");
	assert_non_null(from);
	assert_non_null(fgets(line, sizeof(line), from));
	fclose(from);
	read_place(line, &c->place);
	sscanf(line, "%*s %*d %*d %127s", c->files);
	assert_true(c->place.address_bytes > 0);
}

/* Whoever is killed leaves his files: they must be there still. */
static void remove_files(const struct child *c)
{
	char path[64 + WF_ADDRESS_BYTES];

	snprintf(path, sizeof(path), "/dev/shm/%s", c->files);
	if (c->files[0])
		assert_int_equal(unlink(path), 0);
}

static void reap(struct child *c, bool killed)
{
	int status;

	if (killed)
		kill(c->pid, SIGKILL);
	close(c->in);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	if (killed)
		remove_files(c);
	else
		assert_int_equal(status, 0);
}

static void hear(struct world *w)
{
	struct wf_rail_event v;

	while (wf_rail_poll(w->rail, &v, 1)) {
		switch (v.kind) {
		case WF_EVENT_CONNECTED:
			w->connected++;
			break;
		case WF_EVENT_CLOSED:
			w->closed++;
			w->closed_ep = v.ep;
			break;
		case WF_EVENT_SENT:
			w->sent++;
			break;
		case WF_EVENT_READ:
			w->reads++;
			w->read_status = v.status;
			break;
		case WF_EVENT_RECEIVED:
			w->received++;
			assert_true(v.count <= sizeof(w->last));
			memcpy(w->last, v.bytes, v.count);
			w->last_bytes = v.count;
			wf_rail_give(w->rail, v.slot);
			break;
		case WF_EVENT_REQUEST:
			wf_ep_reject(w->rail, v.request);
			break;
		}
	}
}

/* Until *@count has reached @goal.  All counts tell what has come when it does not. */
static void await(struct world *w, const unsigned *count, unsigned goal)
{
	uint64_t until = wf_clock_now() + LIMIT_NS;

	while (*count < goal) {
		hear(w);
		if (wf_clock_now() >= until)
			fail_msg("awaited %u and got %u; connected %u, sent %u, received %u, read %u, closed %u",
				 goal, *count, w->connected, w->sent, w->received, w->reads,
				 w->closed);
	}
}

static struct wf_ep *join(struct world *w, struct child *c)
{
	unsigned connected = w->connected + 1;
	struct wf_ep *ep;

	assert_int_equal(open_to(w->rail, &c->place, w, &ep), 0);
	if (wf_rail_caps(w->rail)->connected) {
		await(w, &w->connected, connected);
	} else {
		FILE *to = fdopen(dup(c->in), "w");

		assert_non_null(to);
		print_address(w->rail, to);
		fclose(to);
	}
	return ep;
}

static void post(struct world *w, struct wf_ep *ep, char kind, size_t count)
{
	uint64_t until = wf_clock_now() + LIMIT_NS;
	unsigned sent = w->sent;
	int ret;

	w->out[0] = (uint8_t)kind;
	while ((ret = wf_ep_send(ep, w->out, count, wf_mr_desc(w->out_mr), NULL)) == -EAGAIN) {
		hear(w);
		assert_true(wf_clock_now() < until);
	}
	assert_true(ret >= 0);
	if (!ret)
		await(w, &w->sent, sent + 1);
}

static void echo(struct world *w, struct wf_ep *ep, size_t count)
{
	unsigned received = w->received;
	size_t i;

	for (i = 0; i < count; i++)
		w->out[i] = pattern(i + count);
	post(w, ep, ASK_ECHO, count);
	await(w, &w->received, received + 1);
	assert_int_equal(w->last_bytes, count);
	assert_memory_equal(w->last, w->out, count);
}

static struct body body_of(struct world *w, struct wf_ep *ep)
{
	unsigned received = w->received;
	struct body body;

	post(w, ep, ASK_BODY, 1);
	await(w, &w->received, received + 1);
	assert_int_equal(w->last_bytes, sizeof(body));
	memcpy(&body, w->last, sizeof(body));
	return body;
}

static void start_read(struct world *w, struct wf_ep *ep, const struct body *body, size_t count)
{
	uint64_t until = wf_clock_now() + LIMIT_NS;
	int err;

	while ((err = wf_ep_read(ep, w->into, count, wf_mr_desc(w->into_mr), body->address,
				 body->key, NULL)) == -EAGAIN) {
		hear(w);
		assert_true(wf_clock_now() < until);
	}
	assert_int_equal(err, 0);
}

static struct world *begin(void **state)
{
	const struct wf_select_candidate *candidate = NULL;
	struct wf_rail_config config = { .host = host(), .slots_count = SLOTS };
	struct world *w = calloc(1, sizeof(*w));
	struct wf_error e = { 0 };
	size_t i;

	assert_non_null(w);
	w->provider = *state;
	config.counters = &w->counters;
	if (select_one(w->provider, &w->select, &candidate, &e)) {
		print_message("%s\n", e.text);
		free(w);
		skip();
	}
	assert_int_equal(wf_rail_open(candidate, &config, &w->rail, &e), 0);
	w->into = calloc(1, BODY);
	w->expected = malloc(BODY);
	assert_non_null(w->into);
	assert_non_null(w->expected);
	for (i = 0; i < BODY; i++)
		w->expected[i] = pattern(i);
	assert_int_equal(wf_mr_open(w->rail, w->out, sizeof(w->out), WF_ACCESS_LOCAL, &w->out_mr, &e), 0);
	assert_int_equal(wf_mr_open(w->rail, w->into, BODY, WF_ACCESS_LOCAL, &w->into_mr, &e), 0);
	return w;
}

static void end(struct world *w)
{
	wf_rail_close(w->rail);
	wf_select_close(&w->select);
	free(w->into);
	free(w->expected);
	free(w);
}

static void messages_go_both_ways(void **state)
{
	struct world *w = begin(state);
	size_t frame = wf_rail_caps(w->rail)->frame_bytes;
	size_t inject = wf_rail_caps(w->rail)->inject_bytes;
	struct child c;
	struct wf_ep *ep;
	unsigned i;

	spawn(w, &c);
	ep = join(w, &c);
	echo(w, ep, 1);
	echo(w, ep, inject);
	echo(w, ep, WF_MIN(inject + 1, frame));
	echo(w, ep, frame);
	for (i = 0; i < 4 * SLOTS; i++)
		echo(w, ep, 100 + i);
	assert_int_equal(wf_ep_busy(ep), 0);
	wf_ep_close(ep);
	reap(&c, false);
	end(w);
}

static void a_frame_that_fits_no_slot_is_refused(void **state)
{
	struct world *w = begin(state);
	struct child c;
	struct wf_ep *ep;

	spawn(w, &c);
	ep = join(w, &c);
	assert_int_equal(wf_ep_send(ep, w->out, wf_rail_caps(w->rail)->frame_bytes + 1,
				    wf_mr_desc(w->out_mr), NULL), -EMSGSIZE);
	echo(w, ep, 64);
	reap(&c, true);
	end(w);
}

static void a_mebibyte_is_read(void **state)
{
	struct world *w = begin(state);
	struct child c;
	struct body body;
	struct wf_ep *ep;

	spawn(w, &c);
	ep = join(w, &c);
	body = body_of(w, ep);
	start_read(w, ep, &body, 1 * MIB);
	if (wf_rail_caps(w->rail)->sync_read) /* before any poll */
		assert_memory_equal(w->into, w->expected, 1 * MIB);
	await(w, &w->reads, 1);
	assert_int_equal(w->read_status, 0);
	assert_memory_equal(w->into, w->expected, 1 * MIB);
	assert_int_equal(w->into[1 * MIB], 0);
	reap(&c, true);
	end(w);
}

static void a_sleeper_is_woken(void **state)
{
	struct world *w = begin(state);
	struct pollfd fd = { wf_rail_fd(w->rail), POLLIN, 0 };
	unsigned received, wakes = 0;
	struct child c;
	struct wf_ep *ep;
	uint64_t until;

	if (fd.fd < 0) {
		enum wf_provider_wait wait = wf_rail_caps(w->rail)->wait;

		assert_true(wait == WF_WAIT_NONE || wait == WF_WAIT_DOORBELL);
		end(w);
		return;
	}
	spawn(w, &c);
	ep = join(w, &c);
	/* So many that their queue is not watched until the next sleep. */
	for (unsigned i = 0; i < 8; i++)
		echo(w, ep, 1000);

	/* Nothing comes: it stays quiet. */
	while (wf_rail_arm(w->rail))
		hear(w);
	assert_int_equal(poll(&fd, 1, 100), 0);

	/* Something comes while we sleep. */
	received = w->received;
	post(w, ep, ASK_LATER, 1000);
	until = wf_clock_now() + LIMIT_NS;
	while (w->received == received && wf_clock_now() < until) {
		if (!wf_rail_arm(w->rail)) {
			assert_int_equal(poll(&fd, 1, 10 * 1000), 1);
			wf_rail_woken(w->rail);
			wakes++;
		}
		hear(w);
	}
	assert_int_equal(w->received, received + 1);
	assert_true(wakes < 20); /* it slept, and did not spin */

	/* A death wakes too. */
	if (wf_rail_caps(w->rail)->connected) {
		while (wf_rail_arm(w->rail))
			hear(w);
		reap(&c, true);
		assert_int_equal(poll(&fd, 1, 10 * 1000), 1);
		wf_rail_woken(w->rail);
		await(w, &w->closed, 1);
	} else {
		reap(&c, true);
	}
	end(w);
}

/* Sleep until *@count has reached @goal, woken by the descriptor alone. */
static void await_asleep(struct world *w, const unsigned *count, unsigned goal)
{
	struct pollfd fd = { wf_rail_fd(w->rail), POLLIN, 0 };
	uint64_t until = wf_clock_now() + LIMIT_NS;

	while (*count < goal) {
		if (!wf_rail_arm(w->rail)) {
			assert_int_equal(poll(&fd, 1, 10 * 1000), 1);
			wf_rail_woken(w->rail);
		}
		hear(w);
		assert_true(wf_clock_now() < until);
	}
}

static void among_quiet_peers_one_that_speaks_is_heard(void **state)
{
	struct world *w = begin(state);
	struct child c[3];
	struct wf_ep *ep[3];

	for (unsigned i = 0; i < 3; i++) {
		spawn(w, &c[i]);
		ep[i] = join(w, &c[i]);
		for (unsigned j = 0; j < 8; j++)
			echo(w, ep[i], 1000);
	}
	for (unsigned i = 0; i < 6; i++) {
		unsigned received = w->received;

		while (wf_rail_arm(w->rail))
			hear(w);
		post(w, ep[i % 3], ASK_LATER, 1000);
		/* Half of them without a sleep. */
		if (i < 3 || wf_rail_fd(w->rail) < 0)
			await(w, &w->received, received + 1);
		else
			await_asleep(w, &w->received, received + 1);
		assert_int_equal(w->received, received + 1);
	}
	for (unsigned i = 0; i < 3; i++)
		reap(&c[i], true);
	end(w);
}

/* The first look at a read that is there may leave a part of it, which rings no more. */
static void a_sleeper_hears_of_a_read_into_two_places(void **state)
{
	struct world *w = begin(state);
	struct wf_span spans[2];
	struct child c;
	struct body body;
	struct wf_ep *ep;

	spawn(w, &c);
	ep = join(w, &c);
	body = body_of(w, ep);
	for (unsigned i = 0; i < 2; i++)
		spans[i] = (struct wf_span){ w->into + 20000 * i, 20000, body.address + 20000 * i };
	for (unsigned i = 1; i <= 6; i++) {
		while (wf_rail_arm(w->rail))
			hear(w);
		assert_int_equal(wf_ep_read_spans(ep, spans, 2, wf_mr_desc(w->into_mr), body.key, NULL), 0);
		usleep(20 * 1000); /* it is there, as a rule */
		wf_rail_woken(w->rail);
		hear(w);
		await_asleep(w, &w->reads, i);
		assert_int_equal(w->read_status, 0);
	}
	assert_memory_equal(w->into, w->expected, 40000);
	reap(&c, true);
	end(w);
}

/* One look serves so many of them as libfabric has read ahead, and says that there is no more. */
static void a_sleeper_serves_all_reads_that_have_come(void **state)
{
	struct world *w = begin(state);
	struct wf_error e;
	struct child c;
	struct wf_ep *ep;
	struct body asked = { .kind = ASK_READS };
	static uint8_t shown[1];
	struct wf_mr *mr;

	assert_int_equal(wf_mr_open(w->rail, shown, 1, WF_ACCESS_REMOTE_READ, &mr, &e), 0);
	spawn(w, &c);
	ep = join(w, &c);
	echo(w, ep, 1000);
	asked.address = wf_mr_address(mr, shown);
	asked.key = wf_mr_key(mr);
	memcpy(w->out, &asked, sizeof(asked));
	post(w, ep, ASK_READS, sizeof(asked));
	while (wf_rail_arm(w->rail))
		hear(w);
	usleep(200 * 1000); /* all of them have come, as a rule */
	wf_rail_woken(w->rail);
	hear(w);
	await_asleep(w, &w->received, 2);
	reap(&c, true);
	end(w);
}

static void a_sleeping_worker_hears_a_peer_that_connects(void **state)
{
	struct world *w = begin(state);
	struct child c;
	struct wf_ep *ep;

	spawn(w, &c);
	/* The peer does not answer before we sleep. */
	assert_int_equal(kill(c.pid, SIGSTOP), 0);
	assert_int_equal(open_to(w->rail, &c.place, w, &ep), 0);
	while (wf_rail_arm(w->rail))
		hear(w);
	assert_int_equal(w->connected, 0);
	assert_int_equal(kill(c.pid, SIGCONT), 0);
	await_asleep(w, &w->connected, 1);
	post(w, ep, ASK_LATER, 1000);
	await_asleep(w, &w->received, 1);
	reap(&c, true);
	end(w);
}

static void room_in_a_full_socket_wakes_the_sender(void **state)
{
	struct world *w = begin(state);
	size_t frame = wf_rail_caps(w->rail)->frame_bytes;
	unsigned goal;
	int ret = 0;
	struct child c;
	struct wf_ep *ep;

	spawn(w, &c);
	ep = join(w, &c);
	echo(w, ep, 1000);
	goal = w->sent;
	assert_int_equal(kill(c.pid, SIGSTOP), 0);
	w->out[0] = 0; /* asks for nothing */
	/* More than the buffers of both ends. */
	for (size_t bytes = 0; bytes < 64 * MIB && !ret; bytes += frame, goal += !ret)
		ret = wf_ep_send(ep, w->out, frame, wf_mr_desc(w->out_mr), NULL);
	while (wf_rail_arm(w->rail))
		hear(w);
	assert_true(w->sent < goal);
	assert_int_equal(kill(c.pid, SIGCONT), 0);
	await_asleep(w, &w->sent, goal);
	echo(w, ep, 1000);
	reap(&c, true);
	end(w);
}

static void a_killed_peer_closes_its_connection_and_no_slot_is_lost(void **state)
{
	struct world *w = begin(state);
	struct child c;
	struct wf_ep *ep;
	unsigned i;

	if (!wf_rail_caps(w->rail)->connected) {
		end(w);
		return;
	}
	/* Killed in the middle of messages, more often than there are slots. */
	for (i = 0; i < SLOTS + 2; i++) {
		unsigned received = w->received, closed = w->closed;

		spawn(w, &c);
		ep = join(w, &c);
		post(w, ep, ASK_FLOOD, 1);
		await(w, &w->received, received + 2 * SLOTS);
		/* Unread, its frames fill the pipe until one gets in only in part. */
		usleep(50 * 1000);
		reap(&c, true);
		await(w, &w->closed, closed + 1);
		assert_ptr_equal(w->closed_ep, ep);
		assert_int_equal(wf_ep_send(ep, w->out, 1, NULL, NULL), -ENOTCONN);
		wf_ep_close(ep);
	}
	spawn(w, &c);
	ep = join(w, &c);
	echo(w, ep, 1000);
	reap(&c, true);
	end(w);
}

static void closing_under_a_read_hurts_no_other_peer(void **state)
{
	struct world *w = begin(state);
	struct body body, other_body;
	struct child c, other;
	struct wf_ep *ep, *other_ep;
	unsigned i, j;

	if (!wf_rail_caps(w->rail)->connected) {
		end(w);
		return;
	}
	spawn(w, &c);
	spawn(w, &other);
	other_ep = join(w, &other);
	other_body = body_of(w, other_ep);
	for (i = 0; i < 10; i++) {
		unsigned reads;

		ep = join(w, &c);
		body = body_of(w, ep);
		reads = w->reads;
		for (j = 0; j < 4; j++)
			start_read(w, ep, &body, BODY);
		/* Until the first of them is about over: the others stream in behind it. */
		await(w, &w->reads, reads + 1);
		wf_ep_close(ep);
		memset(w->into, 0x55, BODY);
		echo(w, other_ep, 1000);
		for (j = 0; j < BODY; j += 997)
			assert_int_equal(w->into[j], 0x55); /* nothing lands late */
		reads = w->reads;
		for (j = 0; j < 4; j++)
			start_read(w, other_ep, &other_body, 64 * KIB);
		await(w, &w->reads, reads + 4);
		assert_int_equal(w->read_status, 0);
		assert_memory_equal(w->into, w->expected, 64 * KIB);
	}
	assert_int_equal(w->closed, 0);
	reap(&c, true);
	reap(&other, true);
	end(w);
}

/* A key that is not (or no longer) there may cost the connection, and no other one. */
static void a_wrong_key_costs_its_own_connection_at_most(void **state)
{
	struct world *w = begin(state);
	bool connected = wf_rail_caps(w->rail)->connected;
	uint64_t until = wf_clock_now() + LIMIT_NS;
	struct child c, other;
	struct wf_ep *ep, *other_ep;
	struct body body;

	spawn(w, &c);
	spawn(w, &other);
	other_ep = join(w, &other);
	echo(w, other_ep, 1000);
	ep = join(w, &c);
	body = body_of(w, ep);
	body.key ^= 0x5555;
	start_read(w, ep, &body, 64 * KIB);
	while (!w->closed && !w->reads) {
		hear(w);
		assert_true(wf_clock_now() < until);
	}
	assert_true(w->closed ? w->closed_ep == ep : w->read_status != 0);
	assert_int_equal(w->into[0], 0);
	echo(w, other_ep, 1000);

	/* And there is a new one. */
	if (connected) {
		wf_ep_close(ep);
		ep = join(w, &c);
	}
	echo(w, ep, 1000);
	reap(&c, true);
	reap(&other, true);
	end(w);
}

static void a_new_endpoint_takes_the_place_of_a_stuck_one(void **state)
{
	struct world *w = begin(state);
	uint8_t was[WF_ADDRESS_BYTES] = { 0 }, is[WF_ADDRESS_BYTES] = { 0 };
	struct child c;
	struct wf_ep *ep;

	if (wf_rail_caps(w->rail)->connected) {
		assert_int_equal(wf_rail_reopen(w->rail, NULL), -ENOSYS);
		end(w);
		return;
	}
	spawn(w, &c);
	ep = join(w, &c);
	echo(w, ep, 1000);
	wf_rail_address(w->rail, was);
	assert_int_equal(wf_rail_reopen(w->rail, NULL), 0);
	wf_rail_address(w->rail, is);
	assert_memory_not_equal(was, is, sizeof(is));
	wf_ep_close(ep);
	ep = join(w, &c);
	echo(w, ep, 1000);
	reap(&c, true);
	end(w);
}

static unsigned open_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(fds);
	while (readdir(fds))
		count++;
	closedir(fds);
	return count;
}

static void a_request_that_nobody_read_goes_with_the_rail(void **state)
{
	unsigned before = open_fds();
	struct world *w = begin(state);
	struct pollfd dialled = { wf_rail_fd(w->rail), POLLIN, 0 };
	struct child c;
	FILE *to;

	spawn(w, &c);
	to = fdopen(dup(c.in), "w");
	assert_non_null(to);
	print_address(w->rail, to);
	fclose(to);
	/* The peer has dialled when the descriptor wakes; one that needs a look for it does not. */
	(void)poll(&dialled, 1, 2000);
	end(w);
	reap(&c, false);
	assert_int_equal(open_fds(), before);
}

/* A peer that stands still in the middle of dialling: connected, and nothing more. */
static void a_connection_that_says_nothing_goes_with_the_rail(void **state)
{
	unsigned before = open_fds(), held;
	struct world *w = begin(state);
	struct sockaddr_storage at = { 0 };
	uint64_t until = wf_clock_now() + LIMIT_NS;
	struct wf_rail_event events[4];
	int fd;

	assert_true(wf_rail_address(w->rail, (uint8_t *)&at) <= sizeof(at));
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(struct sockaddr_in)), 0);
	held = open_fds();
	while (open_fds() == held && wf_clock_now() < until)
		wf_rail_poll(w->rail, events, WF_COUNT(events));
	assert_int_equal(open_fds(), held + 1); /* the provider has taken it in */
	end(w);
	assert_int_equal(open_fds(), before + 1); /* our own end */
	close(fd);
}

/* It died, and its files went, between its greeting and the first use of its address. */
static void a_peer_that_died_before_it_was_met_takes_nobody_along(void **state)
{
	struct world *w = begin(state);
	struct child dead, living;
	struct wf_ep *ep = NULL, *other;

	spawn(w, &dead);
	spawn(w, &living);
	reap(&dead, true);
	if (open_to(w->rail, &dead.place, w, &ep))
		ep = NULL;
	other = join(w, &living);
	wf_ep_close(ep);
	echo(w, other, 1000);
	reap(&living, false);
	end(w);
}

/* Meet a later peer, which answers. */
static void meet_another(struct world *w)
{
	struct child living;
	struct wf_ep *ep;

	spawn(w, &living);
	ep = join(w, &living);
	echo(w, ep, 1000);
	wf_ep_close(ep);
	reap(&living, false);
}

/* The endpoint of a later peer may take the place of the other's at the provider. */
static void a_peer_that_died_before_it_answered_spoils_no_later_one(void **state)
{
	struct world *w = begin(state);
	struct child dead;
	struct wf_ep *ep;

	spawn(w, &dead);
	assert_int_equal(kill(dead.pid, SIGSTOP), 0);
	assert_int_equal(open_to(w->rail, &dead.place, w, &ep), 0);
	assert_int_equal(wf_ep_send(ep, w->out, 1000, wf_mr_desc(w->out_mr), NULL), -EAGAIN);
	reap(&dead, true);
	wf_ep_close(ep);
	meet_another(w);
	end(w);
}

/* Two ways share the peer's entry: the one that is closed last has sent it nothing. */
static void a_peer_that_died_before_it_answered_one_of_two_ways_spoils_no_later_one(void **state)
{
	struct world *w = begin(state);
	struct child dead;
	struct wf_ep *ep, *quiet;

	spawn(w, &dead);
	assert_int_equal(kill(dead.pid, SIGSTOP), 0);
	assert_int_equal(open_to(w->rail, &dead.place, w, &quiet), 0);
	assert_int_equal(open_to(w->rail, &dead.place, w, &ep), 0);
	assert_int_equal(wf_ep_send(ep, w->out, 1000, wf_mr_desc(w->out_mr), NULL), -EAGAIN);
	reap(&dead, true);
	wf_ep_close(ep);
	wf_ep_close(quiet);
	meet_another(w);
	end(w);
}

/* Addresses are met anew each time, so that one stopped peer does not use them up. */
static void a_stopped_peer_that_is_met_again_is_known_once(void **state)
{
	struct world *w = begin(state);
	struct child stopped;
	struct wf_ep *ep;

	spawn(w, &stopped);
	assert_int_equal(kill(stopped.pid, SIGSTOP), 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(open_to(w->rail, &stopped.place, w, &ep), 0);
		assert_int_equal(wf_ep_send(ep, w->out, 1000, wf_mr_desc(w->out_mr), NULL), -EAGAIN);
		wf_ep_close(ep);
		assert_false(wf_rail_is_stuck(w->rail));
	}
	assert_int_equal(kill(stopped.pid, SIGCONT), 0);
	ep = join(w, &stopped);
	echo(w, ep, 1000);
	reap(&stopped, false);
	end(w);
}

/* An endpoint of @w to @other, which is in this process, too, and a message there. */
static struct wf_ep *reach(struct world *w, struct world *other)
{
	uint64_t until = wf_clock_now() + LIMIT_NS;
	struct place place = { .pid = (int)getpid(), .gate = wf_rail_gate_fd(other->rail) };
	unsigned received = other->received + 1;
	struct wf_ep *ep;

	place.address_bytes = wf_rail_address(other->rail, place.address);
	assert_int_equal(open_to(w->rail, &place, w, &ep), 0);
	while (wf_ep_send(ep, w->out, 1000, wf_mr_desc(w->out_mr), NULL) == -EAGAIN) {
		hear(w);
		hear(other);
		assert_true(wf_clock_now() < until);
	}
	while (other->received < received) {
		hear(w);
		hear(other);
		assert_true(wf_clock_now() < until);
	}
	return ep;
}

static void the_first_close_within_a_process_takes_nobody_along(void **state)
{
	struct world *w = begin(state), *other;
	struct wf_ep *ep;

	for (int i = 0; i < 3; i++) {
		other = begin(state);
		ep = reach(w, other);
		reach(other, w);
		end(other);
		wf_ep_close(ep);
	}
	end(w);
}

static void files_are_known_and_go_with_the_rail(void **state)
{
	struct world *w = begin(state);
	char path[64 + WF_ADDRESS_BYTES];
	struct child c;

	spawn(w, &c);
	if (!wf_rail_caps(w->rail)->host.leaves_files) {
		assert_string_equal(wf_rail_files(w->rail), "");
		assert_string_equal(c.files, "");
		reap(&c, false);
		end(w);
		return;
	}
	assert_string_not_equal(c.files, wf_rail_files(w->rail));
	/* Who is killed leaves his, under the name he told; reap removes it. */
	snprintf(path, sizeof(path), "/dev/shm/%s", c.files);
	assert_int_equal(access(path, F_OK), 0);
	reap(&c, true);
	assert_int_equal(access(path, F_OK), -1);
	/* Who closes does not. */
	snprintf(path, sizeof(path), "/dev/shm/%s", wf_rail_files(w->rail));
	assert_int_equal(access(path, F_OK), 0);
	end(w);
	assert_int_equal(access(path, F_OK), -1);
}

static void mine(int signal_number)
{
	(void)signal_number;
}

static void our_signal_handlers_stay(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM };
	struct sigaction action;
	struct world *w;
	size_t i;

	for (i = 0; i < WF_COUNT(signals); i++)
		signal(signals[i], mine);
	w = begin(state);
	for (i = 0; i < WF_COUNT(signals); i++) {
		sigaction(signals[i], NULL, &action);
		assert_ptr_equal(action.sa_handler, mine);
	}
	end(w);
	for (i = 0; i < WF_COUNT(signals); i++)
		signal(signals[i], SIG_DFL);
}

/* libfabric 1.17's own: 24 bytes for each endpoint of one provider. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfabric.so\n";
}

/* PAIR_PROVIDERS names those that are wanted, with blanks between them: by default not what needs hardware. */
static bool is_wanted(const char *provider)
{
	const char *wanted = getenv("PAIR_PROVIDERS");
	size_t bytes = strlen(provider);

	if (!wanted)
		wanted = "shm tcp net sockets";
	for (const char *at = wanted; (at = strstr(at, provider)); at += bytes)
		if ((at == wanted || at[-1] == ' ') && (!at[bytes] || at[bytes] == ' '))
			return true;
	return false;
}

#define ON(provider, test) { #test " (" provider ")", test, NULL, NULL, provider }
#define EVERY(test) ON("shm", test), ON("tcp", test), ON("net", test), ON("sockets", test), ON("verbs", test)

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		/* First: a provider may install its handlers only once. */
		ON("shm", our_signal_handlers_stay),
		ON("tcp", our_signal_handlers_stay),
		EVERY(messages_go_both_ways),
		EVERY(a_frame_that_fits_no_slot_is_refused),
		EVERY(a_mebibyte_is_read),
		EVERY(a_sleeper_is_woken),
		EVERY(among_quiet_peers_one_that_speaks_is_heard),
		ON("tcp", a_sleeper_hears_of_a_read_into_two_places),
		ON("net", a_sleeper_hears_of_a_read_into_two_places),
		ON("tcp", a_sleeper_serves_all_reads_that_have_come),
		ON("net", a_sleeper_serves_all_reads_that_have_come),
		ON("tcp", a_sleeping_worker_hears_a_peer_that_connects),
		ON("net", a_sleeping_worker_hears_a_peer_that_connects),
		ON("tcp", room_in_a_full_socket_wakes_the_sender),
		ON("net", room_in_a_full_socket_wakes_the_sender),
		ON("tcp", a_killed_peer_closes_its_connection_and_no_slot_is_lost),
		ON("net", a_killed_peer_closes_its_connection_and_no_slot_is_lost),
		ON("tcp", closing_under_a_read_hurts_no_other_peer),
		ON("net", closing_under_a_read_hurts_no_other_peer),
		/* Not shm: no provider looks at a key there, and weft reads by itself. */
		ON("tcp", a_wrong_key_costs_its_own_connection_at_most),
		ON("net", a_wrong_key_costs_its_own_connection_at_most),
		ON("verbs", a_wrong_key_costs_its_own_connection_at_most),
		ON("sockets", a_wrong_key_costs_its_own_connection_at_most),
		EVERY(a_new_endpoint_takes_the_place_of_a_stuck_one),
		ON("tcp", a_request_that_nobody_read_goes_with_the_rail),
		ON("net", a_request_that_nobody_read_goes_with_the_rail),
		ON("tcp", a_connection_that_says_nothing_goes_with_the_rail),
		ON("net", a_connection_that_says_nothing_goes_with_the_rail),
		EVERY(a_peer_that_died_before_it_was_met_takes_nobody_along),
		ON("shm", a_peer_that_died_before_it_answered_spoils_no_later_one),
		ON("shm", a_peer_that_died_before_it_answered_one_of_two_ways_spoils_no_later_one),
		ON("shm", a_stopped_peer_that_is_met_again_is_known_once),
		ON("sockets", the_first_close_within_a_process_takes_nobody_along),
		EVERY(files_are_known_and_go_with_the_rail),
	};

	struct CMUnitTest tests[WF_COUNT(all)];
	size_t i, count = 0;

	if (argc == 3 && !strcmp(argv[1], "peer"))
		return peer_main(argv[2]);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < WF_COUNT(all); i++)
		if (is_wanted(all[i].initial_state))
			tests[count++] = all[i];
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return _cmocka_run_group_tests("rails", tests, count, NULL, NULL);
}
