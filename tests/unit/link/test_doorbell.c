/* SPDX-License-Identifier: BSD-2-Clause */
/* The doorbell: a child sleeps, this process rings. */
#include "link/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "util/clock.h"

#define ROUNDS 10000
#define LIMIT_MS 10000
#define DELAYS 1024 /* loops, up to some 300 ns: as long as a post takes from core to core */
#define SPINS 20000 /* then the other may need this core */

/* Stands in for a rail, between the two processes. */
struct shared {
	_Atomic unsigned posted, seen;
	_Atomic unsigned slept; /* how often the sleeper was really woken by the bell */
};

/* A copy of descriptor @fd of process @pid. */
static int copy_of(pid_t pid, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);

	assert_true(process >= 0);
	(void)close(process);
	return copy;
}

static int open_remote(pid_t pid, const int fds[2], struct wf_remote_doorbell **remote_doorbell)
{
	return wf_remote_doorbell_open(copy_of(pid, fds[0]), copy_of(pid, fds[1]), remote_doorbell);
}

static bool has_rung(const struct wf_doorbell *bell)
{
	struct pollfd fd = { .fd = wf_doorbell_fd(bell), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void only_a_sleeper_is_rung(void **state)
{
	struct wf_doorbell *bell;
	struct wf_remote_doorbell *remote_doorbell;
	int fds[2];

	(void)state;
	assert_int_equal(wf_doorbell_open(&bell, NULL), 0);
	wf_doorbell_fds(bell, fds);
	assert_int_equal(open_remote(getpid(), fds, &remote_doorbell), 0);

	wf_remote_doorbell_ring(remote_doorbell);
	assert_false(has_rung(bell));
	wf_doorbell_sleep(bell);
	assert_false(has_rung(bell));
	wf_remote_doorbell_ring(remote_doorbell);
	wf_remote_doorbell_ring(remote_doorbell);
	assert_true(has_rung(bell));
	wf_doorbell_wake(bell);
	assert_false(has_rung(bell));
	wf_remote_doorbell_ring(remote_doorbell);
	assert_false(has_rung(bell));

	wf_remote_doorbell_close(remote_doorbell);
	wf_doorbell_close(bell);
}

/* Take what is posted, asleep in between.  The exit status says whether a ring was lost. */
static int sleeper(struct wf_doorbell *bell, struct shared *shared)
{
	struct pollfd fd = { .fd = wf_doorbell_fd(bell), .events = POLLIN };
	unsigned seen = 0;

	while (seen < ROUNDS) {
		if (atomic_load_explicit(&shared->posted, memory_order_acquire) > seen) {
			atomic_store_explicit(&shared->seen, ++seen, memory_order_release);
			continue;
		}
		/* So that the next post meets every step of falling asleep. */
		for (unsigned spin = 0; spin < seen % DELAYS; spin++)
			atomic_signal_fence(memory_order_seq_cst);
		wf_doorbell_sleep(bell);
		if (atomic_load_explicit(&shared->posted, memory_order_acquire) == seen) {
			if (poll(&fd, 1, LIMIT_MS) != 1)
				return 1;
			atomic_fetch_add(&shared->slept, 1);
		}
		wf_doorbell_wake(bell);
	}
	return 0;
}

static bool has_seen(struct shared *shared, unsigned number)
{
	return atomic_load_explicit(&shared->seen, memory_order_acquire) >= number;
}

static void no_ring_is_lost_over_many_rounds(void **state)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t limit_ns = wf_clock_now() + 60 * WF_NS_PER_S;
	struct wf_remote_doorbell *remote_doorbell;
	int status, pipe_fds[2], fds[2];
	pid_t child;

	(void)state;
	assert_true(shared != MAP_FAILED);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		struct wf_doorbell *bell;

		if (wf_doorbell_open(&bell, NULL))
			_exit(2);
		wf_doorbell_fds(bell, fds);
		if (write(pipe_fds[1], fds, sizeof(fds)) != (ssize_t)sizeof(fds))
			_exit(2);
		_exit(sleeper(bell, shared));
	}
	assert_true(child > 0);
	assert_int_equal(read(pipe_fds[0], fds, sizeof(fds)), sizeof(fds));
	assert_int_equal(open_remote(child, fds, &remote_doorbell), 0);

	for (unsigned i = 1; i <= ROUNDS; i++) {
		atomic_store_explicit(&shared->posted, i, memory_order_release);
		wf_remote_doorbell_ring(remote_doorbell);
		for (unsigned spin = 0; !has_seen(shared, i); spin++) {
			if (spin < SPINS)
				continue;
			if (waitpid(child, &status, WNOHANG) == child || wf_clock_now() > limit_ns)
				fail_msg("round %u was never seen", i);
			(void)sched_yield();
		}
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(atomic_load(&shared->slept) > 0);

	wf_remote_doorbell_ring(remote_doorbell); /* a dead one: nothing happens */
	wf_remote_doorbell_close(remote_doorbell);
	(void)munmap(shared, sizeof(*shared));
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

static void a_peer_can_only_read_the_page(void **state)
{
	struct wf_doorbell *bell;
	int fds[2];

	(void)state;
	assert_int_equal(wf_doorbell_open(&bell, NULL), 0);
	wf_doorbell_fds(bell, fds);
	assert_true(mmap(NULL, WF_DOORBELL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fds[1], 0) == MAP_FAILED);
	assert_int_equal(ftruncate(fds[1], 0), -1);
	assert_int_equal(pwrite(fds[1], "x", 1, 0), -1);
	wf_doorbell_close(bell);
}

static void a_descriptor_that_is_no_doorbell_is_refused(void **state)
{
	struct wf_doorbell *bell;
	struct wf_remote_doorbell *remote_doorbell = NULL;
	int good[2], pipe_fds[2], blocking, loose, small;

	(void)state;
	assert_int_equal(wf_doorbell_open(&bell, NULL), 0);
	wf_doorbell_fds(bell, good);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
	blocking = eventfd(0, EFD_CLOEXEC);
	loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(blocking >= 0 && loose >= 0 && small >= 0);
	assert_int_equal(ftruncate(loose, WF_DOORBELL_PAGE_BYTES), 0);
	assert_int_equal(fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK), 0);

	const int bells[] = { pipe_fds[1], blocking, good[1], -1 };
	const int pages[] = { pipe_fds[0], loose, small, good[0], -1 };

	for (size_t i = 0; i < WF_COUNT(bells); i++)
		assert_int_equal(
			wf_remote_doorbell_open(dup(bells[i]), dup(good[1]), &remote_doorbell),
			-EBADMSG);
	for (size_t i = 0; i < WF_COUNT(pages); i++)
		assert_int_equal(
			wf_remote_doorbell_open(dup(good[0]), dup(pages[i]), &remote_doorbell),
			-EBADMSG);
	assert_null(remote_doorbell);

	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	(void)close(blocking);
	(void)close(loose);
	(void)close(small);
	wf_doorbell_close(bell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_sleeper_is_rung),
		cmocka_unit_test(no_ring_is_lost_over_many_rounds),
		cmocka_unit_test(a_peer_can_only_read_the_page),
		cmocka_unit_test(a_descriptor_that_is_no_doorbell_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
