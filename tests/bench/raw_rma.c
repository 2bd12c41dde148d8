/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_rma: what libfabric does by itself, for `weft perf` to be held against.
 *
 * Two processes, one buffer each, one body at a time: fi_write of the whole
 * body, a notice of 8 bytes when that is complete, and the receiver's
 * acknowledgement, which ends the iteration.  Both spin on one completion
 * queue.  The first body is compared byte by byte; nothing after it is.
 *
 *   -e msg  a connected endpoint (FI_EP_MSG)
 *   -e rdm  a shared one (FI_EP_RDM)
 *
 * Shares no code with weft.
 */
#include "tests/bench/bench.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_BYTES  8u
#define NOTE_COUNT  4u /* receives posted; at most two are ever in use */
#define SAMPLES_MAX 1000000u
#define WARM_COUNT  8u
#define NAME_BYTES  512u

enum note { NOTE_BODY = 1, NOTE_END = 2 };

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_pep *door;
	struct fid_ep *ep;
	struct fid_mr *body_mr, *notes_mr;
	fi_addr_t peer;
	char *body, *notes; /* notes: NOTE_COUNT to receive into, one to send from */
	uint64_t far_address, far_key;
	uint64_t done;        /* completions of what we posted, receives apart */
	unsigned heard[NOTE_COUNT + 1];
	unsigned head, tail;  /* of heard */
	struct fi_context2 contexts[NOTE_COUNT + 2];
} r = { .peer = FI_ADDR_UNSPEC };

static void must(long err, const char *what)
{
	if (err < 0)
		bench_die("%s: %s", what, fi_strerror((int)-err));
}

static void post_note(size_t i)
{
	must(fi_recv(r.ep, r.notes + i * NOTE_BYTES, NOTE_BYTES, fi_mr_desc(r.notes_mr), r.peer,
		     &r.contexts[i]),
	     "fi_recv");
}

static void progress(void)
{
	struct fi_cq_msg_entry e;
	ssize_t got = fi_cq_read(r.cq, &e, 1);

	if (got == -FI_EAGAIN) {
		bench_spin();
		return;
	}
	if (got == -FI_EAVAIL) {
		struct fi_cq_err_entry why = { 0 };

		must(fi_cq_readerr(r.cq, &why, 0), "fi_cq_readerr");
		bench_die("an operation failed: %s", fi_strerror(why.err));
	}
	must(got, "fi_cq_read");
	if (e.flags & FI_RECV) {
		size_t i = (size_t)((struct fi_context2 *)e.op_context - r.contexts);

		r.heard[r.head++ % (NOTE_COUNT + 1)] = (unsigned char)r.notes[i * NOTE_BYTES];
		post_note(i);
	} else {
		r.done++;
	}
}

/* Post until the provider takes it, and wait for its completion. */
#define COMPLETE(call) \
	do { \
		uint64_t before_ = r.done; \
		ssize_t err_; \
		while ((err_ = (call)) == -FI_EAGAIN) \
			progress(); \
		must(err_, #call); \
		while (r.done == before_) \
			progress(); \
	} while (0)

static void send_note(enum note note)
{
	char *from = r.notes + NOTE_COUNT * NOTE_BYTES;

	*from = (char)note;
	COMPLETE(fi_send(r.ep, from, NOTE_BYTES, fi_mr_desc(r.notes_mr), r.peer,
			 &r.contexts[NOTE_COUNT]));
}

static enum note hear_note(void)
{
	while (r.head == r.tail)
		progress();
	return (enum note)r.heard[r.tail++ % (NOTE_COUNT + 1)];
}

static void write_body(size_t bytes)
{
	COMPLETE(fi_write(r.ep, r.body, bytes, fi_mr_desc(r.body_mr), r.peer, r.far_address,
			  r.far_key, &r.contexts[NOTE_COUNT + 1]));
}

/* Set-up */

static struct fi_info *look(const struct bench_options *o, int passive, const char *node)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	if (!hints)
		bench_die("no memory");
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = strcmp(o->endpoint, "rdm") ? FI_EP_MSG : FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(o->provider);
	must(fi_getinfo(FI_VERSION(1, 14), node, NULL, passive ? FI_SOURCE : 0, hints, &info),
	     "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

static void open_domain(struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG, .size = 256 };

	must(fi_domain(r.fabric, info, &r.domain, NULL), "fi_domain");
	must(fi_cq_open(r.domain, &cq, &r.cq, NULL), "fi_cq_open");
	must(fi_endpoint(r.domain, info, &r.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(r.ep, &r.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
}

static void wait_connected(void)
{
	struct fi_eq_cm_entry e;
	uint32_t event;

	must(fi_eq_sread(r.eq, &event, &e, sizeof(e), 10000, 0), "fi_eq_sread");
	if (event != FI_CONNECTED)
		bench_die("no connection: event %u", event);
}

static void open_connected(int to, int server, const struct bench_options *o)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_cm_entry e;
	size_t bytes = NAME_BYTES;
	char name[NAME_BYTES] = { 0 };
	uint32_t event;

	r.info = look(o, server, "127.0.0.1");
	must(fi_fabric(r.info->fabric_attr, &r.fabric, NULL), "fi_fabric");
	must(fi_eq_open(r.fabric, &eq, &r.eq, NULL), "fi_eq_open");
	if (server) {
		must(fi_passive_ep(r.fabric, r.info, &r.door, NULL), "fi_passive_ep");
		must(fi_pep_bind(r.door, &r.eq->fid, 0), "fi_pep_bind");
		must(fi_listen(r.door), "fi_listen");
		must(fi_getname(&r.door->fid, name, &bytes), "fi_getname");
		bench_tell(to, name, sizeof(name));
		must(fi_eq_sread(r.eq, &event, &e, sizeof(e), 10000, 0), "fi_eq_sread");
		if (event != FI_CONNREQ)
			bench_die("no connection request: event %u", event);
		open_domain(e.info);
		fi_freeinfo(e.info);
	} else {
		bench_hear(to, name, sizeof(name));
		open_domain(r.info);
	}
	must(fi_ep_bind(r.ep, &r.eq->fid, 0), "fi_ep_bind");
	must(fi_enable(r.ep), "fi_enable");
	must(server ? fi_accept(r.ep, NULL, 0) : fi_connect(r.ep, name, NULL, 0), "connecting");
	wait_connected();
}

static void open_shared(int to, int server, const struct bench_options *o)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	char mine[NAME_BYTES] = { 0 }, theirs[NAME_BYTES];
	size_t bytes = NAME_BYTES;

	(void)server;
	/* The address of a host's own provider is no host's address: it names itself. */
	r.info = look(o, 0, NULL);
	must(fi_fabric(r.info->fabric_attr, &r.fabric, NULL), "fi_fabric");
	open_domain(r.info);
	must(fi_av_open(r.domain, &av, &r.av, NULL), "fi_av_open");
	must(fi_ep_bind(r.ep, &r.av->fid, 0), "fi_ep_bind");
	must(fi_enable(r.ep), "fi_enable");
	must(fi_getname(&r.ep->fid, mine, &bytes), "fi_getname");
	bench_tell(to, mine, sizeof(mine));
	bench_hear(to, theirs, sizeof(theirs));
	if (fi_av_insert(r.av, theirs, 1, &r.peer, 0, NULL) != 1)
		bench_die("fi_av_insert failed");
}

static void open_all(int to, int server, const struct bench_options *o)
{
	size_t notes_bytes = (NOTE_COUNT + 1) * NOTE_BYTES;
	uint64_t near[2], far[2];

	if (strcmp(o->endpoint, "rdm") == 0)
		open_shared(to, server, o);
	else
		open_connected(to, server, o);
	r.body = bench_memory(o->bytes);
	r.notes = bench_memory(notes_bytes);
	must(fi_mr_reg(r.domain, r.body, o->bytes, FI_WRITE | FI_REMOTE_WRITE, 0, 1, 0,
		       &r.body_mr, NULL),
	     "fi_mr_reg");
	must(fi_mr_reg(r.domain, r.notes, notes_bytes, FI_SEND | FI_RECV, 0, 2, 0, &r.notes_mr,
		       NULL),
	     "fi_mr_reg");
	for (size_t i = 0; i < NOTE_COUNT; i++)
		post_note(i);

	near[0] = r.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)r.body : 0;
	near[1] = fi_mr_key(r.body_mr);
	bench_tell(to, near, sizeof(near));
	bench_hear(to, far, sizeof(far));
	r.far_address = far[0];
	r.far_key = far[1];
}

static void close_all(void)
{
	fi_close(&r.ep->fid);
	fi_close(&r.body_mr->fid);
	fi_close(&r.notes_mr->fid);
	fi_close(&r.cq->fid);
	if (r.av)
		fi_close(&r.av->fid);
	fi_close(&r.domain->fid);
	if (r.door)
		fi_close(&r.door->fid);
	if (r.eq)
		fi_close(&r.eq->fid);
	fi_close(&r.fabric->fid);
	fi_freeinfo(r.info);
	free(r.notes);
	free(r.body);
}

static char pattern(size_t i)
{
	return (char)(i * 31 + (i >> 8) + 7);
}

/* The receiver: acknowledges until it is told to end. */
static int serve(int to, const struct bench_options *o)
{
	size_t wrong = 0;
	char end = 0;

	open_all(to, 1, o);
	if (hear_note() != NOTE_BODY)
		bench_die("no body came");
	for (size_t i = 0; i < o->bytes; i++)
		wrong += r.body[i] != pattern(i);
	if (wrong)
		bench_die("%zu bytes arrived wrong", wrong);
	do
		send_note(NOTE_BODY);
	while (hear_note() == NOTE_BODY);
	/* Nobody closes while the other may still wait for a completion. */
	bench_hear(to, &end, 1);
	close_all();
	return 0;
}

static void once(size_t bytes)
{
	write_body(bytes);
	send_note(NOTE_BODY);
	hear_note();
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "msg", .bytes = 16u << 20, .seconds = 1, .window = 1
	};
	double *us, start, last, now;
	size_t samples = 0;
	uint64_t count = 0;
	char end = 0;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv,
		      "raw_rma [-p PROVIDER] [-e msg|rdm] [-s BYTES] [-t SECONDS]");
	if (o.window != 1)
		bench_die("raw_rma has one body on the way, no more");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	to = bench_pair(serve, &o, &pid);
	open_all(to, 0, &o);

	for (size_t i = 0; i < o.bytes; i++)
		r.body[i] = pattern(i);
	for (unsigned i = 0; i < WARM_COUNT; i++)
		once(o.bytes);
	start = last = bench_now();
	do {
		once(o.bytes);
		now = bench_now();
		if (samples < SAMPLES_MAX)
			us[samples++] = (now - last) * 1e6;
		last = now;
		count++;
	} while (now - start < o.seconds);
	bench_print("raw_rma", &o, us, samples, count, now - start);

	send_note(NOTE_END);
	bench_tell(to, &end, 1);
	bench_pair_end(pid);
	close_all();
	close(to);
	free(us);
	return 0;
}
