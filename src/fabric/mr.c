/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"
#include "fabric/vm.h"
#include "util/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEY_TRIES 4 /* a random key may be taken where keys are short */

static uint64_t random_key(const struct wf_rail *rail)
{
	size_t bits = rail->info->domain_attr->mr_key_size * 8;
	uint64_t key = wf_random_u64();

	if (rail->info->domain_attr->mr_mode & FI_MR_PROV_KEY)
		return 0;
	return bits < 64 ? key & (((uint64_t)1 << bits) - 1) : key;
}

static int explain(const struct wf_rail *rail, int err, size_t bytes, struct wf_error *e)
{
	struct rlimit limit = { 0 };

	wf_recorder_add(rail->recorder, WF_RECORDER_REGISTER_FAILED, 0, bytes, (uint64_t)err);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (rail->row->rdma && limit.rlim_cur != RLIM_INFINITY &&
	    rail->registered_bytes + bytes > limit.rlim_cur)
		return wf_error_set(e, -ENOMEM,
				    "registering %zu bytes with %s, after %llu, passes "
				    "RLIMIT_MEMLOCK, which is %llu: raise it with ulimit -l",
				    bytes, rail->caps.provider,
				    (unsigned long long)rail->registered_bytes,
				    (unsigned long long)limit.rlim_cur);
	return wf_error_set(e, err, "registering %zu bytes with %s failed: %s", bytes,
			    rail->caps.provider, wf_error_name(err));
}

/* Where the provider demands it, a registration belongs to the endpoint. */
static int bind_to_ep(struct wf_rail *rail, struct fid_mr *fid)
{
	int err;

	if (!(rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return 0;
	err = WF_RAIL_CALL(rail, fi_mr_bind, fid, &rail->ep->fid, 0);
	return err ? err : WF_RAIL_CALL(rail, fi_mr_enable, fid);
}

int wf_mr_open(struct wf_rail *rail, const void *base, size_t bytes, unsigned access,
	       struct wf_mr **mr, struct wf_error *e)
{
	struct wf_mr *m = calloc(1, sizeof(*m));
	uint64_t rights = 0;
	int tries, err;

	if (!m)
		return wf_error_set(e, -ENOMEM, "no memory for a registration");
	if (access & WF_ACCESS_LOCAL)
		rights |= FI_SEND | FI_RECV | FI_READ;
	if (access & WF_ACCESS_REMOTE_READ)
		rights |= FI_REMOTE_READ;
	for (tries = 0, err = -FI_ENOKEY; tries < KEY_TRIES && err == -FI_ENOKEY; tries++)
		err = WF_RAIL_CALL(rail, fi_mr_reg, rail->domain, base, bytes, rights, 0,
				   random_key(rail), 0, &m->fid, NULL);
	if (err)
		goto free_mr;
	err = bind_to_ep(rail, m->fid);
	if (err)
		goto close_fid;

	m->rail = rail;
	m->base = (uint8_t *)base;
	m->bytes = bytes;
	wf_list_append(&rail->mrs, &m->node);
	rail->registered_bytes += bytes;
	wf_counters_add(&rail->counters->registered_bytes, bytes);
	wf_counters_add(&rail->counters->registrations, 1);
	*mr = m;
	return 0;

close_fid:
	WF_RAIL_CALL(rail, fi_close, &m->fid->fid);
free_mr:
	free(m);
	return explain(rail, err, bytes, e);
}

/* Memory of a device is such that the kernel lets the processor read, and nobody else. */
static int try_read(const struct wf_rail *rail, const void *base, struct wf_error *e)
{
	uint8_t byte;
	int err = wf_vm_read((uint32_t)getpid(), &byte, 1, (uintptr_t)base);

	/* Where it is not allowed at all no peer is read so. */
	if (err != -EFAULT)
		return 0;
	return wf_error_set(e, err, "with %s other processes read it themselves, which fails: %s",
			    rail->caps.provider, wf_error_name(err));
}

int wf_mr_try(struct wf_rail *rail, const void *base, size_t bytes, struct wf_error *e)
{
	struct wf_mr *mr;
	int err = wf_mr_open(rail, base, bytes, WF_ACCESS_REMOTE_READ, &mr, e);

	if (err)
		return err;
	wf_mr_close(mr);
	return rail->own_reads ? try_read(rail, base, e) : 0;
}

void wf_mr_close(struct wf_mr *mr)
{
	if (!mr)
		return;
	WF_RAIL_CALL(mr->rail, fi_close, &mr->fid->fid);
	wf_list_remove(&mr->node);
	mr->rail->registered_bytes -= mr->bytes;
	/* It is a level, not a total: adding what wraps round subtracts. */
	wf_counters_add(&mr->rail->counters->registered_bytes, -(uint64_t)mr->bytes);
	free(mr);
}

void wf_mr_hit(const struct wf_mr *mr)
{
	if (mr)
		wf_counters_add(&mr->rail->counters->registration_hits, 1);
}

void wf_mr_evict(struct wf_mr *mr)
{
	if (mr)
		wf_counters_add(&mr->rail->counters->registration_evictions, 1);
	wf_mr_close(mr);
}

void *wf_mr_desc(const struct wf_mr *mr)
{
	return mr && mr->rail->caps.mr_local ? fi_mr_desc(mr->fid) : NULL;
}

uint64_t wf_mr_key(const struct wf_mr *mr)
{
	return fi_mr_key(mr->fid);
}

uint64_t wf_mr_address(const struct wf_mr *mr, const void *ptr)
{
	if (mr->rail->own_reads || mr->rail->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		return (uint64_t)(uintptr_t)ptr;
	return (uint64_t)((const uint8_t *)ptr - mr->base);
}
