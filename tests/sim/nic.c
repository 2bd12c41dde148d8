/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/nic.h"

#include <errno.h>
#include <rdma/fi_domain.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/cuda.h"
#include "tests/sim/chance.h"

unsigned wf_nic_asked, wf_nic_refused;

/* As nvidia-peermem gives a NIC one. */
static int window(const void *at, size_t bytes, void **window)
{
	struct wf_error e;
	uint64_t offset;
	int fd;

	wf_nic_asked++;
	if (wf_chance_in_100(wf_nic_refused) || wf_cuda_dma_buf(at, bytes, &fd, &offset, &e))
		return -EFAULT;
	*window = offset ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return *window == MAP_FAILED ? -ENOMEM : 0;
}

struct wf_fake wf_nic_fake(uint64_t seed)
{
	return (struct wf_fake){
		.seed = seed, .delay_min_ns = 2000, .delay_max_ns = 60000, .eagain = 50,
		.version = seed % 2 ? FI_VERSION(2, 1) : 0,
		.mr_mode = seed % 3 ? FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY : 0,
		.window = window,
	};
}
