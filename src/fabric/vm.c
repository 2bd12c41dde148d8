/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/vm.h"

#include <errno.h>
#include <sys/types.h>
#include <sys/uio.h>

int wf_vm_read(uint32_t pid, void *into, size_t count, uint64_t address)
{
	struct iovec local = { .iov_base = into, .iov_len = count };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = count };
	ssize_t n;

	while (local.iov_len) {
		n = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EFAULT;
		/* The kernel stops short where the peer's mapping ends. */
		local.iov_base = (char *)local.iov_base + n;
		local.iov_len -= (size_t)n;
		remote.iov_base = (char *)remote.iov_base + n;
		remote.iov_len -= (size_t)n;
	}
	return 0;
}

int wf_vm_read_spans(uint32_t pid, const struct wf_span *spans, uint32_t span_count)
{
	int err = 0;

	for (uint32_t i = 0; i < span_count && !err; i++)
		err = wf_vm_read(pid, spans[i].into, spans[i].count, spans[i].address);
	return err;
}
