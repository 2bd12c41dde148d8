/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "namespaces.h"

#define STREAMS_MAX 64
#define STREAM_BYTES_MAX ((size_t)64 << 20)
#define SOCKET_BYTES (128 << 20)
#define PACKET_BYTES (256 << 10)
#define QUIET_MS 300

static struct {
	pthread_mutex_t lock;
	int fd;
	uint64_t packets;
	size_t count;
	struct capture_stream streams[STREAMS_MAX];
	uint32_t first[STREAMS_MAX]; /* sequence number of each stream's first byte */
	uint8_t *bytes[STREAMS_MAX];
	const char *missed; /* NULL: nothing was missed */
} capture = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Returns the place of a stream; STREAMS_MAX: it began before the capture did. */
static size_t find(uint16_t from, uint16_t to, const struct tcphdr *tcp)
{
	for (size_t i = 0; i < capture.count; i++)
		if (capture.streams[i].from == from && capture.streams[i].to == to)
			return i;
	if (!tcp->syn || capture.count == STREAMS_MAX)
		return STREAMS_MAX;
	capture.streams[capture.count] = (struct capture_stream){ .from = from, .to = to };
	capture.first[capture.count] = ntohl(tcp->seq) + 1;
	return capture.count++;
}

static void keep(size_t i, uint32_t offset, const uint8_t *bytes, size_t count)
{
	struct capture_stream *s = &capture.streams[i];
	uint8_t *grown;

	if (!count)
		return;
	if (offset > s->count) {
		capture.missed = "a segment is missing";
		return;
	}
	if (offset + count <= s->count)
		return; /* sent again */
	grown = offset + count > STREAM_BYTES_MAX ? NULL :
						    realloc(capture.bytes[i], offset + count);
	if (!grown) {
		capture.missed = "a stream is too long";
		return;
	}
	memcpy(grown + offset, bytes, count);
	capture.bytes[i] = grown;
	s->bytes = grown;
	s->count = offset + count;
}

static void take(const uint8_t *packet, size_t bytes)
{
	const struct iphdr *ip = (const void *)packet;
	const struct tcphdr *tcp;
	size_t head, i;

	if (bytes < sizeof(*ip) || ip->protocol != IPPROTO_TCP ||
	    bytes < ip->ihl * 4u + sizeof(*tcp))
		return;
	tcp = (const void *)(packet + ip->ihl * 4u);
	head = ip->ihl * 4u + tcp->doff * 4u;
	i = find(ntohs(tcp->source), ntohs(tcp->dest), tcp);
	if (i < STREAMS_MAX && bytes >= head && !tcp->syn)
		keep(i, ntohl(tcp->seq) - capture.first[i], packet + head, bytes - head);
}

static void *run(void *arg)
{
	uint8_t *packet = malloc(PACKET_BYTES);

	while (packet) {
		struct sockaddr_ll from = { 0 };
		socklen_t length = sizeof(from);
		ssize_t got = recvfrom(capture.fd, packet, PACKET_BYTES, MSG_TRUNC,
				       (struct sockaddr *)&from, &length);

		/* Each packet of loopback is seen as it goes and as it comes. */
		if (got <= 0 || from.sll_pkttype != PACKET_HOST)
			continue;
		pthread_mutex_lock(&capture.lock);
		capture.packets++;
		if (got > PACKET_BYTES)
			capture.missed = "a packet is too long";
		else
			take(packet, (size_t)got);
		pthread_mutex_unlock(&capture.lock);
	}
	return arg;
}

/* Open the socket that sees what loopback carries, which is brought up. */
static bool open_socket(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
				  .sll_ifindex = (int)if_nametoindex("lo") };
	int bytes = SOCKET_BYTES;

	capture.fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
	if (capture.fd < 0 || bind(capture.fd, (struct sockaddr *)&at, sizeof(at)) ||
	    ioctl(capture.fd, SIOCSIFFLAGS, &lo))
		return false;
	return !setsockopt(capture.fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	       !setsockopt(capture.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

bool capture_begin(const char *host, char reason[CAPTURE_REASON_BYTES])
{
	pthread_t thread;

	if (namespaces_enter(CLONE_NEWUTS) && !sethostname(host, strlen(host)) && open_socket() &&
	    !pthread_create(&thread, NULL, run, NULL) && !pthread_detach(thread))
		return true;
	snprintf(reason, CAPTURE_REASON_BYTES, "no network of its own to capture: %s",
		 strerror(errno));
	return false;
}

void capture_forget(void)
{
	pthread_mutex_lock(&capture.lock);
	for (size_t i = 0; i < capture.count; i++) {
		free(capture.bytes[i]);
		capture.bytes[i] = NULL;
	}
	capture.count = 0;
	pthread_mutex_unlock(&capture.lock);
}

static uint64_t packets_so_far(void)
{
	uint64_t packets;

	pthread_mutex_lock(&capture.lock);
	packets = capture.packets;
	pthread_mutex_unlock(&capture.lock);
	return packets;
}

size_t capture_streams(const struct capture_stream **streams)
{
	struct tpacket_stats stats = { 0 };
	socklen_t length = sizeof(stats);
	uint64_t before;
	size_t count;

	do {
		before = packets_so_far();
		nanosleep(&(struct timespec){ .tv_nsec = QUIET_MS * 1000000L }, NULL);
	} while (packets_so_far() != before);
	getsockopt(capture.fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
	pthread_mutex_lock(&capture.lock);
	if (stats.tp_drops)
		capture.missed = "the kernel has dropped packets";
	if (capture.missed) {
		fprintf(stderr, "capture: %s\n", capture.missed);
		exit(1);
	}
	*streams = capture.streams;
	count = capture.count;
	pthread_mutex_unlock(&capture.lock);
	return count;
}
