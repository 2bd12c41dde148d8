/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_stream: messages and acknowledgements over plain TCP sockets between two
 * processes on loopback: what there is without any fabric.
 *
 *   -e spin   both ask again and again; the default
 *   -e sleep  both sleep in the system until something comes
 *   -e pack   like spin, and a message is packed by its sender and unpacked by the receiver, each
 *             time: one of protobuf-c's, with -s bytes in it
 *
 * Latency: a message of -s bytes to the receiver's word of 16 bytes, one at a
 * time.  Bandwidth: up to -w messages on the way at once.  Half of -t each.
 */
#include "tests/bench/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/sim/mirror.pb-c.h"

#define WORD_BYTES  16
#define SAMPLES_MAX 1000000u
#define WARM_COUNT  8u

static int patience = MSG_DONTWAIT; /* 0: sleep */
static bool packs;

/* A message as it is sent; its content is that of all messages. */
struct message {
	char *bytes, *content;
	size_t count;
};

static Sim__Bytes unpacked(const struct message *m, size_t bytes)
{
	Sim__Bytes b = SIM__BYTES__INIT;

	b.body = (ProtobufCBinaryData){ bytes, (uint8_t *)m->content };
	return b;
}

static struct message make(const struct bench_options *o)
{
	struct message m = { .content = bench_memory(o->bytes), .count = o->bytes };
	Sim__Bytes b = unpacked(&m, o->bytes);

	if (packs)
		m.count = sim__bytes__get_packed_size(&b);
	m.bytes = bench_memory(m.count);
	return m;
}

static void drop(struct message *m)
{
	free(m->bytes);
	free(m->content);
}

static void pack(const struct message *m, const struct bench_options *o)
{
	Sim__Bytes b;

	if (!packs)
		return;
	b = unpacked(m, o->bytes);
	(void)sim__bytes__pack(&b, (uint8_t *)m->bytes);
}

static void unpack(const struct message *m)
{
	Sim__Bytes *b;

	if (!packs)
		return;
	b = sim__bytes__unpack(NULL, m->count, (const uint8_t *)m->bytes);
	if (!b)
		bench_die("a message does not unpack");
	sim__bytes__free_unpacked(b, NULL);
}

/* What is still to be moved of one message. */
static ssize_t again(ssize_t moved)
{
	if (moved > 0)
		return moved;
	if (moved < 0 && (errno == EAGAIN || errno == EINTR)) {
		bench_spin();
		return 0;
	}
	bench_die("the connection has gone");
}

static void send_all(int fd, const char *from, size_t bytes)
{
	while (bytes) {
		ssize_t moved = again(send(fd, from, bytes, patience | MSG_NOSIGNAL));

		from += moved;
		bytes -= (size_t)moved;
	}
}

/* Whole messages only.  0: the other side has closed before the first byte. */
static int receive_all(int fd, char *to, size_t bytes)
{
	size_t have = 0;

	while (have < bytes) {
		ssize_t moved = recv(fd, to + have, bytes - have, patience);

		if (moved == 0 && have == 0)
			return 0;
		have += (size_t)again(moved);
	}
	return 1;
}

static void no_delay(int fd)
{
	int yes = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)))
		bench_die("no TCP_NODELAY");
}

/* The receiver: a word for every message, until the sender closes. */
static int serve(int to, const struct bench_options *o)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t length = sizeof(at);
	char word[WORD_BYTES] = { 0 };
	struct message m = make(o);
	int door = socket(AF_INET, SOCK_STREAM, 0), fd;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (door < 0 || bind(door, (struct sockaddr *)&at, sizeof(at)) || listen(door, 1) ||
	    getsockname(door, (struct sockaddr *)&at, &length))
		bench_die("can't listen");
	bench_tell(to, &at, sizeof(at));
	fd = accept(door, NULL, NULL);
	if (fd < 0)
		bench_die("can't accept");
	no_delay(fd);
	while (receive_all(fd, m.bytes, m.count)) {
		unpack(&m);
		send_all(fd, word, sizeof(word));
	}
	close(fd);
	close(door);
	drop(&m);
	return 0;
}

/* Words that have come, without waiting.  A word is short: it comes whole or not at all. */
static uint64_t words_here(int fd)
{
	char words[WORD_BYTES * 64];
	ssize_t got = again(recv(fd, words, sizeof(words), patience | MSG_PEEK));
	uint64_t whole = (uint64_t)got / WORD_BYTES;

	if (whole && recv(fd, words, whole * WORD_BYTES, 0) != (ssize_t)(whole * WORD_BYTES))
		bench_die("the connection has gone");
	return whole;
}

static uint64_t stream(int fd, const struct bench_options *o, const struct message *m, double until)
{
	uint64_t sent = 0, heard = 0;

	do {
		pack(m, o);
		send_all(fd, m->bytes, m->count);
		sent++;
		do
			heard += words_here(fd);
		while (sent - heard >= o->window);
	} while (bench_now() < until);
	while (heard < sent)
		heard += words_here(fd);
	return sent;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "", .endpoint = "spin", .bytes = 8, .seconds = 1, .window = 16
	};
	double *us, start, until;
	struct sockaddr_in at;
	char word[WORD_BYTES];
	struct message m;
	size_t samples = 0;
	uint64_t count;
	pid_t pid;
	int to, fd;

	bench_options(&o, argc, argv,
		      "tcp_stream [-e spin|sleep|pack] [-s BYTES] [-t SECONDS] [-w WINDOW]");
	if (!strcmp(o.endpoint, "sleep"))
		patience = 0;
	packs = !strcmp(o.endpoint, "pack");
	m = make(&o);
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	to = bench_pair(serve, &o, &pid);
	bench_hear(to, &at, sizeof(at));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)))
		bench_die("can't connect");
	no_delay(fd);

	for (unsigned i = 0; i < WARM_COUNT; i++) {
		pack(&m, &o);
		send_all(fd, m.bytes, m.count);
		receive_all(fd, word, sizeof(word));
	}
	until = bench_now() + o.seconds / 2;
	do {
		start = bench_now();
		pack(&m, &o);
		send_all(fd, m.bytes, m.count);
		receive_all(fd, word, sizeof(word));
		us[samples++] = (bench_now() - start) * 1e6;
	} while (samples < SAMPLES_MAX && bench_now() < until);

	start = bench_now();
	count = stream(fd, &o, &m, start + o.seconds / 2);
	bench_print("tcp_stream", &o, us, samples, count, bench_now() - start);

	close(fd);
	bench_pair_end(pid);
	close(to);
	free(us);
	drop(&m);
	return 0;
}
