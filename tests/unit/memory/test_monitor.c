/* SPDX-License-Identifier: BSD-2-Clause */
/* The monitor, by the kernel that runs the test. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/monitor.h"

#define BYTES (64 * KIB)
#define RACES 300

static uint8_t *map_at(void *at, int flags)
{
	return mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static uint8_t *map(void)
{
	uint8_t *base = map_at(NULL, 0);

	assert_ptr_not_equal(base, MAP_FAILED);
	memset(base, 1, BYTES);
	return base;
}

static int open_monitor(void **state)
{
	struct wf_error e;

	(void)state;
	return wf_monitor_open(&e);
}

static int close_monitor(void **state)
{
	(void)state;
	wf_monitor_close();
	return 0;
}

static void memory_that_stays_is_never_stale(void **state)
{
	struct wf_monitor_watch watch;
	uint8_t *base = map(), *beside = map();

	(void)state;
	assert_int_equal(wf_monitor_watch(&watch, base + 100, BYTES / 2), 0);
	memset(base, 2, BYTES);
	munmap(beside, BYTES);
	assert_int_equal(mprotect(base, BYTES, PROT_READ), 0);
	assert_int_equal(wf_monitor_check(&watch), 0);
	/* Memory behind the last page of the range is not watched. */
	assert_int_equal(munmap(base + BYTES / 2 + 4 * KIB, BYTES / 2 - 4 * KIB), 0);
	assert_int_equal(wf_monitor_check(&watch), 0);
	wf_monitor_unwatch(&watch);
	munmap(base, BYTES);
}

/* A system call's write to a page that was never touched would fail, if faults were watched. */
static void the_kernel_writes_to_watched_memory_that_was_never_touched(void **state)
{
	struct wf_monitor_watch watch;
	uint8_t *base = map_at(NULL, 0);
	int fds[2];

	(void)state;
	assert_ptr_not_equal(base, MAP_FAILED);
	assert_int_equal(wf_monitor_watch(&watch, base, BYTES), 0);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(fds[0], base + 1, 1), 1);
	assert_int_equal(base[1], 'x');
	assert_int_equal(wf_monitor_check(&watch), 0);
	wf_monitor_unwatch(&watch);
	munmap(base, BYTES);
	close(fds[0]);
	close(fds[1]);
}

static void unmap(uint8_t *base)
{
	assert_int_equal(munmap(base, BYTES), 0);
}

static void unmap_the_last_page(uint8_t *base)
{
	assert_int_equal(munmap(base + BYTES - 4 * KIB, 4 * KIB), 0);
}

static void map_anew(uint8_t *base)
{
	assert_int_equal(munmap(base, BYTES), 0);
	assert_ptr_equal(map_at(base, MAP_FIXED_NOREPLACE), base);
}

static void map_over(uint8_t *base)
{
	assert_ptr_equal(map_at(base, MAP_FIXED), base);
}

static void give_pages_back(uint8_t *base)
{
	assert_int_equal(madvise(base, BYTES, MADV_DONTNEED), 0);
}

static void let_pages_be_taken(uint8_t *base)
{
	assert_int_equal(madvise(base, BYTES, MADV_FREE), 0);
}

static void move(uint8_t *base)
{
	uint8_t *place = map_at(NULL, 0);

	assert_ptr_equal(mremap(base, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
	assert_int_equal(munmap(place, BYTES), 0);
}

static void move_pages_only(uint8_t *base)
{
	void *place = mremap(base, BYTES, BYTES, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);

	assert_ptr_not_equal(place, MAP_FAILED);
	assert_int_equal(munmap(place, BYTES), 0);
}

static void each_change_of_where_memory_lies_makes_it_stale(void **state)
{
	static void (*const changes[])(uint8_t *base) = {
		unmap, unmap_the_last_page, map_anew, map_over, give_pages_back, let_pages_be_taken,
		move, move_pages_only,
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(changes); i++) {
		uint64_t before = wf_monitor_changes();
		struct wf_monitor_watch watch;
		uint8_t *base = map();

		assert_int_equal(wf_monitor_watch(&watch, base, BYTES), 0);
		changes[i](base);
		assert_int_equal(wf_monitor_check(&watch), -ESTALE);
		assert_true(wf_monitor_changes() > before);
		wf_monitor_unwatch(&watch);
		munmap(base, BYTES);
	}
}

/* Memory mapped where another thread unmaps, which has not returned from that. */
static void *unmap_in_thread(void *base)
{
	munmap(base, BYTES);
	return NULL;
}

static void a_new_mapping_is_stale_while_the_munmap_of_the_old_one_still_runs(void **state)
{
	(void)state;
	for (int i = 0; i < RACES; i++) {
		struct wf_monitor_watch watch, again;
		uint8_t *base = map();
		pthread_t thread;
		int err;

		assert_int_equal(wf_monitor_watch(&watch, base, BYTES), 0);
		assert_int_equal(pthread_create(&thread, NULL, unmap_in_thread, base), 0);
		while (map_at(base, MAP_FIXED_NOREPLACE) != base)
			;
		assert_int_not_equal(wf_monitor_check(&watch), 0);
		/* A watch of the new mapping is not marked by the old one's end. */
		err = wf_monitor_watch(&again, base, BYTES);
		pthread_join(thread, NULL);
		assert_int_equal(wf_monitor_check(&watch), -ESTALE);
		if (!err) {
			assert_int_equal(wf_monitor_check(&again), 0);
			wf_monitor_unwatch(&again);
		} else {
			assert_int_equal(err, -EAGAIN);
		}
		wf_monitor_unwatch(&watch);
		munmap(base, BYTES);
	}
}

static void memory_of_files_and_shared_memory_is_not_watched(void **state)
{
	struct wf_monitor_watch watch;
	int fd = memfd_create("monitor", MFD_CLOEXEC);
	int flags[] = { MAP_SHARED, MAP_PRIVATE, MAP_SHARED | MAP_ANONYMOUS };

	(void)state;
	assert_int_equal(ftruncate(fd, BYTES), 0);
	for (size_t i = 0; i < WF_COUNT(flags); i++) {
		uint8_t *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags[i],
				     flags[i] & MAP_ANONYMOUS ? -1 : fd, 0);

		assert_ptr_not_equal(base, MAP_FAILED);
		assert_int_equal(wf_monitor_watch(&watch, base, BYTES), -EOPNOTSUPP);
		munmap(base, BYTES);
	}
	close(fd);
}

static void a_range_with_a_hole_is_not_watched(void **state)
{
	struct wf_monitor_watch watch;
	uint8_t *base = map();

	(void)state;
	assert_int_equal(munmap(base + 4 * KIB, 4 * KIB), 0);
	assert_int_equal(wf_monitor_watch(&watch, base, BYTES), -EOPNOTSUPP);
	assert_int_equal(wf_monitor_watch(&watch, base, 0), -EOPNOTSUPP);
	munmap(base, BYTES);
}

static void a_watch_that_ends_leaves_those_that_overlap_it(void **state)
{
	struct wf_monitor_watch first, second;
	uint8_t *base = map();

	(void)state;
	assert_int_equal(wf_monitor_watch(&first, base, BYTES), 0);
	assert_int_equal(wf_monitor_watch(&second, base + BYTES / 4, BYTES / 4), 0);
	wf_monitor_unwatch(&first);
	assert_int_equal(madvise(base, BYTES / 4, MADV_DONTNEED), 0);
	assert_int_equal(wf_monitor_check(&second), 0);
	assert_int_equal(madvise(base + BYTES / 4, 4 * KIB, MADV_DONTNEED), 0);
	assert_int_equal(wf_monitor_check(&second), -ESTALE);
	wf_monitor_unwatch(&second);
	munmap(base, BYTES);
}

/* Returns what a program hears that would watch the @bytes at @at by a userfaultfd of its own. */
/* Watch a range as the program's own.  Returns a descriptor. */
static int try_watch(const uint8_t *at, size_t bytes)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY), err;
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)at, bytes }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, UFFDIO_API, &api), 0);
	err = ioctl(fd, UFFDIO_REGISTER, &range) ? -errno : 0;
	if (err)
		close(fd);
	return err ? err : fd;
}

static int watch_ourselves(const uint8_t *at, size_t bytes)
{
	int fd = try_watch(at, bytes);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* On kernels up to 6.16 the watch of one could be ended by another. */
static void memory_that_the_program_watches_is_refused_and_stays_the_programs(void **state)
{
	struct wf_monitor_watch watch;
	uint8_t *base = map();
	int fd = try_watch(base, BYTES);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(wf_monitor_watch(&watch, base, BYTES), -EBUSY);
	assert_int_equal(watch_ourselves(base, BYTES), -EBUSY);
	close(fd);
	munmap(base, BYTES);
}

static void memory_left_of_a_range_that_lost_a_part_is_the_programs_to_watch(void **state)
{
	static const size_t page = 4 * KIB;

	(void)state;
	for (size_t at = 0; at < BYTES; at += BYTES / 4) {
		struct wf_monitor_watch watch;
		uint8_t *base = map();

		assert_int_equal(wf_monitor_watch(&watch, base, BYTES), 0);
		assert_int_equal(watch_ourselves(base, BYTES), -EBUSY);
		assert_int_equal(munmap(base + at, page), 0);
		wf_monitor_unwatch(&watch);
		if (at)
			assert_int_equal(watch_ourselves(base, at), 0);
		assert_int_equal(watch_ourselves(base + at + page, BYTES - at - page), 0);
		munmap(base, BYTES);
	}
}

static void a_forked_child_changes_its_own_memory_only(void **state)
{
	struct wf_monitor_watch watch;
	uint8_t *base = map();
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(wf_monitor_watch(&watch, base, BYTES), 0);
	child = fork();
	if (!child) {
		wf_monitor_forked();
		_exit(munmap(base, BYTES) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(wf_monitor_check(&watch), 0);
	unmap(base);
	assert_int_equal(wf_monitor_check(&watch), -ESTALE);
	wf_monitor_unwatch(&watch);
}

static void the_monitor_serves_several_users_and_opens_again(void **state)
{
	struct wf_monitor_watch watch;
	struct wf_error e;
	uint8_t *base;

	assert_int_equal(wf_monitor_open(&e), 0);
	wf_monitor_close();
	wf_monitor_close();
	assert_int_equal(open_monitor(state), 0);
	/* Memory from before the close may lose a part: AddressSanitizer unmaps when a thread ends. */
	base = map();
	assert_int_equal(wf_monitor_watch(&watch, base, BYTES), 0);
	unmap(base);
	assert_int_equal(wf_monitor_check(&watch), -ESTALE);
	wf_monitor_unwatch(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_stays_is_never_stale),
		cmocka_unit_test(the_kernel_writes_to_watched_memory_that_was_never_touched),
		cmocka_unit_test(each_change_of_where_memory_lies_makes_it_stale),
		cmocka_unit_test(a_new_mapping_is_stale_while_the_munmap_of_the_old_one_still_runs),
		cmocka_unit_test(memory_of_files_and_shared_memory_is_not_watched),
		cmocka_unit_test(a_range_with_a_hole_is_not_watched),
		cmocka_unit_test(a_watch_that_ends_leaves_those_that_overlap_it),
		cmocka_unit_test(memory_that_the_program_watches_is_refused_and_stays_the_programs),
		cmocka_unit_test(memory_left_of_a_range_that_lost_a_part_is_the_programs_to_watch),
		cmocka_unit_test(a_forked_child_changes_its_own_memory_only),
		cmocka_unit_test(the_monitor_serves_several_users_and_opens_again),
	};
	struct wf_error e;

	if (wf_monitor_open(&e)) {
		printf("skipped: %s\n", e.text);
		return 77;
	}
	wf_monitor_close();
	return cmocka_run_group_tests(tests, open_monitor, close_monitor);
}
