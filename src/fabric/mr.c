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

static unsigned long long registered(const struct wf_rail *rail, enum wf_counters_memory kind)
{
	return atomic_load(&rail->counters->registered[kind]);
}

/* Can @err be the kernel's answer where too much is pinned?  Its code differs between versions. */
static bool is_of_limit(const struct wf_rail *rail, int err)
{
	return rail->row->rdma && (err == -ENOMEM || err == -EPERM || err == -EAGAIN);
}

static int explain(const struct wf_rail *rail, int err, size_t bytes, struct wf_error *e)
{
	struct rlimit limit = { 0 };

	wf_recorder_add(rail->recorder, WF_RECORDER_REGISTER_FAILED, 0, bytes, (uint64_t)err);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (!is_of_limit(rail, err) || limit.rlim_cur == RLIM_INFINITY)
		return wf_error_set(e, err, "registering %zu bytes with %s failed: %s", bytes,
				    rail->caps.provider, wf_error_name(err));
	return wf_error_set(e, -ENOMEM,
			    "registering %zu bytes with %s failed: %s: RLIMIT_MEMLOCK allows %llu, and "
			    "registered are %llu of the program's, %llu of the pool and links, %llu of "
			    "devices, %llu cached: raise it (ulimit -l, LimitMEMLOCK=), or lower "
			    "WEFT_POOL_BYTES or WEFT_CACHED_BYTES",
			    bytes, rail->caps.provider, wf_error_name(err),
			    (unsigned long long)limit.rlim_cur, registered(rail, WF_COUNTERS_USER),
			    registered(rail, WF_COUNTERS_POOL), registered(rail, WF_COUNTERS_DEVICE),
			    registered(rail, WF_COUNTERS_CACHED));
}

/* Bind @fid to the endpoint, where the provider demands that. */
static int bind_to_ep(struct wf_rail *rail, struct fid_mr *fid)
{
	int err;

	if (!(rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return 0;
	err = WF_RAIL_CALL(rail, fi_mr_bind, fid, &rail->shared.ep->fid, 0);
	return err ? err : WF_RAIL_CALL(rail, fi_mr_enable, fid);
}

/* The memory to register. */
struct ask {
	const void *base;
	size_t bytes;
	uint64_t rights;
	const struct wf_mr_device *device; /* device of the memory; NULL: the host */
};

/*
 * Register memory of a device by its dma-buf, if libfabric takes those, for which it needs to
 * know nothing of CUDA.  Else as CUDA's memory, if libfabric knows what that is.
 */
static int reg_device(struct wf_rail *rail, const struct ask *ask, uint64_t key,
		      struct fid_mr **fid)
{
	const struct iovec iov = { (void *)ask->base, ask->bytes };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = ask->rights,
		.requested_key = key,
		.iface = FI_HMEM_CUDA,
		.device.cuda = ask->device->cuda,
	};
#ifdef FI_MR_DMABUF
	const struct fi_mr_dmabuf dma_buf = {
		.fd = ask->device->dma_buf,
		.offset = ask->device->offset,
		.len = ask->bytes,
		.base_addr = (uint8_t *)ask->base - ask->device->offset,
	};
	struct fi_mr_attr by_dma_buf = attr;
	int err;

	by_dma_buf.dmabuf = &dma_buf;
	by_dma_buf.iface = FI_HMEM_SYSTEM;
	if (dma_buf.fd >= 0 && rail->info->fabric_attr->api_version >= FI_VERSION(1, 20)) {
		err = WF_RAIL_CALL(rail, fi_mr_regattr, rail->domain, &by_dma_buf, FI_MR_DMABUF,
				   fid);
		if (!err || err == -FI_ENOKEY)
			return err;
	}
#endif
	return WF_RAIL_CALL(rail, fi_mr_regattr, rail->domain, &attr, FI_HMEM_DEVICE_ONLY, fid);
}

static int reg(struct wf_rail *rail, const struct ask *ask, struct fid_mr **fid)
{
	int tries, err = -FI_ENOKEY;

	for (tries = 0; tries < KEY_TRIES && err == -FI_ENOKEY; tries++) {
		uint64_t key = random_key(rail);

		err = ask->device ? reg_device(rail, ask, key, fid)
				  : WF_RAIL_CALL(rail, fi_mr_reg, rail->domain, ask->base, ask->bytes,
						 ask->rights, 0, key, 0, fid, NULL);
	}
	return err;
}

static uint64_t rights_of(unsigned access)
{
	return (access & WF_ACCESS_LOCAL ? FI_SEND | FI_RECV | FI_READ : 0) |
	       (access & WF_ACCESS_REMOTE_READ ? FI_REMOTE_READ : 0);
}

/* Count @bytes more of @kind as registered; a value that wraps counts as many less. */
static void count(struct wf_rail *rail, enum wf_counters_memory kind, uint64_t bytes)
{
	/* The counters are levels, not totals. */
	wf_counters_add(&rail->counters->registered[kind], bytes);
	wf_counters_add(&rail->counters->registered_bytes, bytes);
}

/* Register the memory of @ask.  -ENOMEM, or a code of the provider's, without a sentence. */
static int open_mr(struct wf_rail *rail, const struct ask *ask, struct wf_mr **mr)
{
	struct wf_mr *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	err = reg(rail, ask, &m->fid);
	if (err)
		goto free_mr;
	err = bind_to_ep(rail, m->fid);
	if (err)
		goto close_fid;

	m->rail = rail;
	m->base = (uint8_t *)ask->base;
	m->bytes = ask->bytes;
	m->device = ask->device;
	wf_list_append(&rail->mrs, &m->node);
	m->kind = ask->device ? WF_COUNTERS_DEVICE : WF_COUNTERS_USER;
	count(rail, m->kind, m->bytes);
	wf_counters_add(&rail->counters->registrations, 1);
	*mr = m;
	return 0;

close_fid:
	WF_RAIL_CALL(rail, fi_close, &m->fid->fid);
free_mr:
	free(m);
	return err;
}

int wf_mr_open(struct wf_rail *rail, const void *base, size_t bytes, unsigned access,
	       struct wf_mr **mr, struct wf_error *e)
{
	const struct ask ask = { base, bytes, rights_of(access), NULL };
	int err = open_mr(rail, &ask, mr);

	/* Registrations that are only kept give way where a limit is in the way. */
	if ((err == -ENOMEM || is_of_limit(rail, err)) && rail->make_room &&
	    rail->make_room(rail->make_room_ctx))
		err = open_mr(rail, &ask, mr);
	return err ? explain(rail, err, bytes, e) : 0;
}

int wf_mr_open_device(struct wf_rail *rail, const void *base, size_t bytes,
		      const struct wf_mr_device *device, unsigned access, struct wf_mr **mr,
		      struct wf_error *e)
{
	const struct ask ask = { base, bytes, rights_of(access), device };
	int err = open_mr(rail, &ask, mr);

	if (!err) {
		rail->device_reached = true;
		return 0;
	}
	wf_recorder_add(rail->recorder, WF_RECORDER_REGISTER_FAILED, 0, bytes, (uint64_t)err);
	if (err != -ENOMEM && !rail->device_reached)
		rail->caps.memory.device = false;
	return wf_error_set(e, -EOPNOTSUPP, "%s on %s does not reach memory of CUDA device %d: %s",
			    rail->caps.provider, rail->caps.domain, device->cuda,
			    wf_error_name(err));
}

/* Read @base as a peer would: the kernel may let only the processor read a device's memory. */
static int try_read(const struct wf_rail *rail, const void *base, struct wf_error *e)
{
	uint8_t byte;
	int err = wf_vm_read((uint32_t)getpid(), &byte, 1, (uintptr_t)base);

	/* Where the kernel forbids such reads altogether, no peer is read so. */
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
	return rail->own.reads ? try_read(rail, base, e) : 0;
}

void wf_mr_close(struct wf_mr *mr)
{
	if (!mr)
		return;
	WF_RAIL_CALL(mr->rail, fi_close, &mr->fid->fid);
	wf_list_remove(&mr->node);
	count(mr->rail, mr->kind, -(uint64_t)mr->bytes);
	free(mr);
}

void wf_mr_set_kind(struct wf_mr *mr, enum wf_counters_memory kind)
{
	count(mr->rail, mr->kind, -(uint64_t)mr->bytes);
	mr->kind = kind;
	count(mr->rail, mr->kind, mr->bytes);
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
	return mr && (mr->rail->caps.memory.local || mr->device) ? fi_mr_desc(mr->fid) : NULL;
}

uint64_t wf_mr_key(const struct wf_mr *mr)
{
	return fi_mr_key(mr->fid);
}

uint64_t wf_mr_address(const struct wf_mr *mr, const void *ptr)
{
	if (mr->rail->own.reads || mr->rail->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		return (uint64_t)(uintptr_t)ptr;
	return (uint64_t)((const uint8_t *)ptr - mr->base);
}
