/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_peers: what the provider itself takes of memory for an idle peer that is
 * connected: -w of them, each with an endpoint and a completion queue of its own,
 * as weft has them on tcp, all accepted by the process that is looked at.
 *
 * The memory is private and written to, from the 9th peer to the last.
 */
#include "tests/bench/fabric.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES  512u
#define QUEUE_SIZE  128u

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_pep *door;
} p;

static void must(long err, const char *what)
{
	if (err < 0)
		bench_die("%s: %s", what, fi_strerror((int)-err));
}

static void look(const struct bench_options *o, int passive)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };

	p.info = fabric_look(o, passive, "127.0.0.1");
	must(fi_fabric(p.info->fabric_attr, &p.fabric, NULL), "fi_fabric");
	must(fi_eq_open(p.fabric, &eq, &p.eq, NULL), "fi_eq_open");
	must(fi_domain(p.fabric, p.info, &p.domain, NULL), "fi_domain");
}

static uint32_t next_event(struct fi_eq_cm_entry *e)
{
	uint32_t event;

	must(fi_eq_sread(p.eq, &event, e, sizeof(*e), 10000, 0), "fi_eq_sread");
	return event;
}

/* One more endpoint, to @name or, without one, to who asks for it with @info. */
static void join(struct fi_info *info, const char *name)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_MSG, .size = QUEUE_SIZE,
				    .wait_obj = FI_WAIT_FD };
	struct fi_eq_cm_entry e;
	struct fid_cq *cq;
	struct fid_ep *ep;

	must(fi_cq_open(p.domain, &queue, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(p.domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(ep, &p.eq->fid, 0), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(name ? fi_connect(ep, name, NULL, 0) : fi_accept(ep, NULL, 0), "connecting");
	if (next_event(&e) != FI_CONNECTED)
		bench_die("no connection");
	/* Who never sent is no peer yet: the first message takes what all later ones use. */
	must(fi_inject(ep, &queue, 1, 0), "fi_inject");
}

/* The peers, all in one process, which nobody looks at; it ends with them. */
static int serve(int to, const struct bench_options *o)
{
	char name[NAME_BYTES], end;

	look(o, 0);
	bench_hear(to, name, sizeof(name));
	for (unsigned i = 0; i < o->window; i++)
		join(p.info, name);
	bench_hear(to, &end, 1);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "msg", .bytes = 8, .seconds = 1, .window = 200
	};
	size_t bytes = NAME_BYTES;
	char name[NAME_BYTES] = { 0 }, end = 0;
	struct fi_eq_cm_entry e;
	double before = 0;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv, "raw_peers [-p PROVIDER] [-w PEERS]");
	if (o.window <= BENCH_FIRST_PEERS)
		bench_die("more than %u peers, so that there is a difference", BENCH_FIRST_PEERS);
	to = bench_pair(serve, &o, &pid);
	look(&o, 1);
	must(fi_passive_ep(p.fabric, p.info, &p.door, NULL), "fi_passive_ep");
	must(fi_pep_bind(p.door, &p.eq->fid, 0), "fi_pep_bind");
	must(fi_listen(p.door), "fi_listen");
	must(fi_getname(&p.door->fid, name, &bytes), "fi_getname");
	bench_tell(to, name, sizeof(name));
	for (unsigned i = 0; i < o.window; i++) {
		if (i == BENCH_FIRST_PEERS)
			before = bench_private_bytes();
		if (next_event(&e) != FI_CONNREQ)
			bench_die("no connection request");
		join(e.info, NULL);
		fi_freeinfo(e.info);
	}
	printf("{\"test\":\"raw_peers\",\"provider\":\"%s\",\"peers\":%u,\"peer_bytes\":%.0f}\n",
	       o.provider, o.window,
	       (bench_private_bytes() - before) / (o.window - BENCH_FIRST_PEERS));
	bench_tell(to, &end, 1);
	bench_pair_end(pid);
	/* What is open goes with the process. */
	return 0;
}
