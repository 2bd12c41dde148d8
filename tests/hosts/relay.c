/* SPDX-License-Identifier: BSD-2-Clause */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME_BYTES 1600 /* Ethernet's 1514, and a tag */
#define FRAMES 4096      /* under way: 20 ms at 2 Gbit/s; what comes beyond is lost */
#define BATCH 64         /* from one end before the other has its turn */
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static struct frame {
	uint64_t due_ns;
	size_t bytes;
	uint8_t data[FRAME_BYTES];
} frames[FRAMES];
static unsigned first, count;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

int relay_end(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), error;

	if (fd < 0)
		return -1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (!ioctl(fd, TUNSETIFF, &request))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* One that finds its end down, or full, is lost, as in any network. */
static void put(int fd, const uint8_t *data, size_t bytes)
{
	if (write(fd, data, bytes) < 0 && errno == EBADFD)
		_exit(1); /* the interface was deleted */
}

static void pass_on(int from, int to)
{
	uint8_t data[FRAME_BYTES];
	ssize_t got;

	for (unsigned i = 0; i < BATCH && (got = read(from, data, sizeof(data))) > 0; i++)
		put(to, data, (size_t)got);
}

static void take_in(int from, uint64_t delay_ns, struct tamper *tamper)
{
	for (unsigned i = 0; i < BATCH; i++) {
		static struct frame lost;
		struct frame *f = count < FRAMES ? &frames[(first + count) % FRAMES] : &lost;
		ssize_t got = read(from, f->data, sizeof(f->data));

		if (got <= 0)
			return;
		if (tamper)
			tamper_pass(tamper, f->data, (size_t)got);
		f->bytes = (size_t)got;
		f->due_ns = now_ns() + delay_ns;
		count += f != &lost;
	}
}

static void give_out(int to)
{
	uint64_t now = now_ns();

	for (; count && frames[first].due_ns <= now; first = (first + 1) % FRAMES, count--)
		put(to, frames[first].data, frames[first].bytes);
}

void relay_run(int near, int far, unsigned delay_ms, struct tamper *tamper)
{
	struct pollfd ends[2] = { { near, POLLIN, 0 }, { far, POLLIN, 0 } };
	uint64_t now;

	for (;;) {
		struct timespec wait = { 0 };

		give_out(far);
		now = now_ns();
		if (count && frames[first].due_ns > now)
			wait.tv_nsec = (long)(frames[first].due_ns - now);
		ppoll(ends, 2, count ? &wait : NULL, NULL);
		if (ends[0].revents)
			take_in(near, delay_ms * MS, tamper);
		if (ends[1].revents)
			pass_on(far, near);
	}
}
