/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/fabric.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_COUNT 64u /* receives posted */
#define NAME_BYTES 512u
#define BATCH      16u /* completions read at once */

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
	size_t body_bytes, note_bytes;
	uint64_t far_address, far_key;
	uint64_t done;       /* completions of what we posted, receives apart */
	char heard[2 * NOTE_COUNT];
	unsigned head, tail; /* of heard */
	struct fi_context2 contexts[NOTE_COUNT + 2];
} f = { .peer = FI_ADDR_UNSPEC };

static void must(long err, const char *what)
{
	if (err < 0)
		bench_die("%s: %s", what, fi_strerror((int)-err));
}

static void progress(void);

/* Post until the provider takes it. */
#define POST(call) \
	do { \
		ssize_t err_; \
		while ((err_ = (call)) == -FI_EAGAIN) \
			progress(); \
		must(err_, #call); \
	} while (0)

/* Post, and wait for the completion. */
#define COMPLETE(call) \
	do { \
		uint64_t before_ = f.done; \
		POST(call); \
		while (f.done == before_) \
			progress(); \
	} while (0)

static void post_note(size_t i)
{
	must(fi_recv(f.ep, f.notes + i * f.note_bytes, f.note_bytes, fi_mr_desc(f.notes_mr),
		     f.peer, &f.contexts[i]),
	     "fi_recv");
}

static void completed(const struct fi_cq_msg_entry *e)
{
	size_t i = (size_t)((struct fi_context2 *)e->op_context - f.contexts);

	if (!(e->flags & FI_RECV)) {
		f.done++;
		return;
	}
	if (f.head - f.tail == 2 * NOTE_COUNT)
		bench_die("more notes than anyone asked for");
	f.heard[f.head++ % (2 * NOTE_COUNT)] = f.notes[i * f.note_bytes];
	post_note(i);
}

static void progress(void)
{
	struct fi_cq_msg_entry entries[BATCH];
	ssize_t got = fi_cq_read(f.cq, entries, BATCH);

	if (got == -FI_EAGAIN) {
		bench_spin();
		return;
	}
	if (got == -FI_EAVAIL) {
		struct fi_cq_err_entry why = { 0 };

		must(fi_cq_readerr(f.cq, &why, 0), "fi_cq_readerr");
		bench_die("an operation failed: %s", fi_strerror(why.err));
	}
	must(got, "fi_cq_read");
	for (ssize_t i = 0; i < got; i++)
		completed(&entries[i]);
}

char *fabric_body(void)
{
	return f.body;
}

void fabric_write_body(void)
{
	COMPLETE(fi_write(f.ep, f.body, f.body_bytes, fi_mr_desc(f.body_mr), f.peer,
			  f.far_address, f.far_key, &f.contexts[NOTE_COUNT + 1]));
}

void fabric_read_body(void)
{
	COMPLETE(fi_read(f.ep, f.body, f.body_bytes, fi_mr_desc(f.body_mr), f.peer,
			 f.far_address, f.far_key, &f.contexts[NOTE_COUNT + 1]));
}

void fabric_progress(void)
{
	progress();
}

void fabric_send_note(char word)
{
	char *from = f.notes + NOTE_COUNT * f.note_bytes;

	*from = word;
	if (f.note_bytes <= f.info->tx_attr->inject_size)
		POST(fi_inject(f.ep, from, f.note_bytes, f.peer));
	else
		COMPLETE(fi_send(f.ep, from, f.note_bytes, fi_mr_desc(f.notes_mr), f.peer,
				 &f.contexts[NOTE_COUNT]));
}

char fabric_hear_note(void)
{
	while (f.head == f.tail)
		progress();
	return f.heard[f.tail++ % (2 * NOTE_COUNT)];
}

/* Set-up */

struct fi_info *fabric_look(const struct bench_options *o, int passive, const char *node)
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

	must(fi_domain(f.fabric, info, &f.domain, NULL), "fi_domain");
	must(fi_cq_open(f.domain, &cq, &f.cq, NULL), "fi_cq_open");
	must(fi_endpoint(f.domain, info, &f.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(f.ep, &f.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
}

static void wait_connected(void)
{
	struct fi_eq_cm_entry e;
	uint32_t event;

	must(fi_eq_sread(f.eq, &event, &e, sizeof(e), 10000, 0), "fi_eq_sread");
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

	f.info = fabric_look(o, server, "127.0.0.1");
	must(fi_fabric(f.info->fabric_attr, &f.fabric, NULL), "fi_fabric");
	must(fi_eq_open(f.fabric, &eq, &f.eq, NULL), "fi_eq_open");
	if (server) {
		must(fi_passive_ep(f.fabric, f.info, &f.door, NULL), "fi_passive_ep");
		must(fi_pep_bind(f.door, &f.eq->fid, 0), "fi_pep_bind");
		must(fi_listen(f.door), "fi_listen");
		must(fi_getname(&f.door->fid, name, &bytes), "fi_getname");
		bench_tell(to, name, sizeof(name));
		must(fi_eq_sread(f.eq, &event, &e, sizeof(e), 10000, 0), "fi_eq_sread");
		if (event != FI_CONNREQ)
			bench_die("no connection request: event %u", event);
		open_domain(e.info);
		fi_freeinfo(e.info);
	} else {
		bench_hear(to, name, sizeof(name));
		open_domain(f.info);
	}
	must(fi_ep_bind(f.ep, &f.eq->fid, 0), "fi_ep_bind");
	must(fi_enable(f.ep), "fi_enable");
	must(server ? fi_accept(f.ep, NULL, 0) : fi_connect(f.ep, name, NULL, 0), "connecting");
	wait_connected();
}

static void open_shared(int to, const struct bench_options *o)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	char mine[NAME_BYTES] = { 0 }, theirs[NAME_BYTES];
	size_t bytes = NAME_BYTES;

	/* The address of a host's own provider is no host's address: it names itself. */
	f.info = fabric_look(o, 0, NULL);
	must(fi_fabric(f.info->fabric_attr, &f.fabric, NULL), "fi_fabric");
	open_domain(f.info);
	must(fi_av_open(f.domain, &av, &f.av, NULL), "fi_av_open");
	must(fi_ep_bind(f.ep, &f.av->fid, 0), "fi_ep_bind");
	must(fi_enable(f.ep), "fi_enable");
	must(fi_getname(&f.ep->fid, mine, &bytes), "fi_getname");
	bench_tell(to, mine, sizeof(mine));
	bench_hear(to, theirs, sizeof(theirs));
	if (fi_av_insert(f.av, theirs, 1, &f.peer, 0, NULL) != 1)
		bench_die("fi_av_insert failed");
}

void fabric_open(int to, int server, const struct bench_options *o, size_t note_bytes, int body)
{
	size_t notes_bytes = (NOTE_COUNT + 1) * note_bytes;
	uint64_t near[2] = { 0 }, far[2];

	if (strcmp(o->endpoint, "rdm") == 0)
		open_shared(to, o);
	else
		open_connected(to, server, o);
	f.note_bytes = note_bytes;
	f.notes = bench_memory(notes_bytes);
	must(fi_mr_reg(f.domain, f.notes, notes_bytes, FI_SEND | FI_RECV, 0, 2, 0, &f.notes_mr,
		       NULL),
	     "fi_mr_reg");
	for (size_t i = 0; i < NOTE_COUNT; i++)
		post_note(i);

	if (body) {
		f.body_bytes = o->bytes;
		f.body = bench_memory(o->bytes);
		must(fi_mr_reg(f.domain, f.body, o->bytes, FI_WRITE | FI_REMOTE_WRITE | FI_READ | FI_REMOTE_READ, 0, 1, 0,
			       &f.body_mr, NULL),
		     "fi_mr_reg");
		near[0] = f.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)f.body : 0;
		near[1] = fi_mr_key(f.body_mr);
	}
	bench_tell(to, near, sizeof(near));
	bench_hear(to, far, sizeof(far));
	f.far_address = far[0];
	f.far_key = far[1];
}

void fabric_close(void)
{
	fi_close(&f.ep->fid);
	if (f.body_mr)
		fi_close(&f.body_mr->fid);
	fi_close(&f.notes_mr->fid);
	fi_close(&f.cq->fid);
	if (f.av)
		fi_close(&f.av->fid);
	fi_close(&f.domain->fid);
	if (f.door)
		fi_close(&f.door->fid);
	if (f.eq)
		fi_close(&f.eq->fid);
	fi_close(&f.fabric->fid);
	fi_freeinfo(f.info);
	free(f.notes);
	free(f.body);
}
