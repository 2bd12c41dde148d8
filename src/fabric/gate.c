/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC 0x3165746167746677ull
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TRIES 1000 /* some 20 us: many times what anybody needs in there */

static int map(struct wf_gate *gate, int fd)
{
	void *page = mmap(NULL, WF_GATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	gate->page = page;
	return 0;
}

int wf_gate_open(struct wf_gate *gate)
{
	int fd = memfd_create("weft-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING), err = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, WF_GATE_BYTES) || fcntl(fd, F_ADD_SEALS, SEALS))
		err = -errno;
	if (!err)
		err = map(gate, fd);
	if (err) {
		(void)close(fd);
		return err;
	}
	gate->page->magic = MAGIC;
	gate->fd = fd;
	return 0;
}

/* Our copy of the descriptor @theirs of process @pid, or a negative code. */
static int copy_fd(uint32_t pid, int theirs)
{
	int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), fd, err;

	if (process < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
	err = errno == EBADF ? -EBADMSG : -errno;
	(void)close(process);
	return fd < 0 ? err : fd;
}

/* Only a file that can't shrink may be touched without fear. */
static bool is_sound(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstat(fd, &st) &&
	       st.st_size == WF_GATE_BYTES;
}

int wf_gate_take(struct wf_gate *gate, uint32_t pid, int fd)
{
	int ours = copy_fd(pid, fd), err;

	if (ours < 0)
		return ours;
	err = is_sound(ours) ? map(gate, ours) : -EBADMSG;
	(void)close(ours);
	if (err)
		return err;
	gate->fd = -1;
	if (gate->page->magic == MAGIC)
		return 0;
	wf_gate_close(gate);
	return -EBADMSG;
}

void wf_gate_close(struct wf_gate *gate)
{
	if (!gate->page)
		return;
	(void)munmap(gate->page, WF_GATE_BYTES);
	if (gate->fd >= 0)
		(void)close(gate->fd);
	*gate = (struct wf_gate){ .fd = -1 };
}

bool wf_gate_enter(struct wf_gate *gate)
{
	if (!gate->page)
		return true;
	for (int i = 0; i < TRIES; i++) {
		uint32_t nobody = 0;

		if (!atomic_load_explicit(&gate->page->inside, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&gate->page->inside, &nobody, 1,
							    memory_order_acquire,
							    memory_order_relaxed))
			return true;
		atomic_signal_fence(memory_order_seq_cst);
	}
	return false;
}
