/* SPDX-License-Identifier: BSD-2-Clause */
#include "tamper.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ETHERNET_BYTES 14
#define IPV4_BYTES 20
#define TCP_BYTES 20
#define PROTOCOL_TCP 6

/* A segment of TCP in a frame. */
struct segment {
	uint8_t *ip, *tcp, *payload;
	size_t tcp_bytes, payload_bytes; /* with the header, and without */
};

static unsigned u16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* Find the payload of TCP over IPv4.  False: @frame has none. */
static bool find(uint8_t *frame, size_t bytes, struct segment *s)
{
	size_t ip_bytes, head;

	s->ip = frame + ETHERNET_BYTES;
	if (bytes < ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES || u16(frame + 12) != 0x0800 ||
	    s->ip[9] != PROTOCOL_TCP)
		return false;
	ip_bytes = (size_t)(s->ip[0] & 15) * 4;
	if (u16(s->ip + 2) > bytes - ETHERNET_BYTES || u16(s->ip + 2) < ip_bytes + TCP_BYTES)
		return false;
	s->tcp = s->ip + ip_bytes;
	s->tcp_bytes = u16(s->ip + 2) - ip_bytes;
	head = (size_t)(s->tcp[12] >> 4) * 4;
	if (head < TCP_BYTES || head >= s->tcp_bytes)
		return false;
	s->payload = s->tcp + head;
	s->payload_bytes = s->tcp_bytes - head;
	return s->payload_bytes <= TAMPER_PAYLOAD_BYTES;
}

static uint32_t sum(const uint8_t *at, size_t bytes, uint32_t so_far)
{
	for (size_t i = 0; i + 1 < bytes; i += 2)
		so_far += u16(at + i);
	return bytes % 2 ? so_far + ((uint32_t)at[bytes - 1] << 8) : so_far;
}

/* Make the checksum right: over both addresses, the protocol, the length and the segment. */
static void set_checksum(struct segment *s)
{
	uint32_t total = PROTOCOL_TCP + (uint32_t)s->tcp_bytes;

	s->tcp[16] = s->tcp[17] = 0;
	total = sum(s->ip + 12, 8, total);
	total = sum(s->tcp, s->tcp_bytes, total);
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	total = ~total;
	s->tcp[16] = (uint8_t)(total >> 8);
	s->tcp[17] = (uint8_t)total;
}

/* A number below @below, by chance. */
static unsigned draw(struct tamper *t, unsigned below)
{
	return (unsigned)nrand48(t->chance) % below;
}

/* Put the bytes of an earlier segment in the place of this one's.  False: none has as many. */
static bool replace(struct tamper *t, struct segment *s)
{
	unsigned first = draw(t, TAMPER_PAST);

	for (unsigned i = 0; i < TAMPER_PAST; i++) {
		unsigned at = (first + i) % TAMPER_PAST;

		if (t->past[at].bytes != s->payload_bytes ||
		    !memcmp(t->past[at].data, s->payload, s->payload_bytes))
			continue;
		memcpy(s->payload, t->past[at].data, s->payload_bytes);
		return true;
	}
	return false;
}

static void flip(struct tamper *t, struct segment *s)
{
	unsigned bit = draw(t, (unsigned)s->payload_bytes * 8);

	s->payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void remember(struct tamper *t, const uint8_t *payload, size_t bytes)
{
	t->past[t->next].bytes = bytes;
	memcpy(t->past[t->next].data, payload, bytes);
	t->next = (t->next + 1) % TAMPER_PAST;
}

void tamper_pass(struct tamper *t, uint8_t *frame, size_t bytes)
{
	uint8_t payload[TAMPER_PAYLOAD_BYTES];
	struct segment s;
	unsigned one_in;

	if (!find(frame, bytes, &s))
		return;
	while (atomic_flag_test_and_set(&t->busy))
		sched_yield();
	memcpy(payload, s.payload, s.payload_bytes);
	one_in = t->one_in;
	if (one_in && !draw(t, one_in)) {
		if (draw(t, 2) && replace(t, &s)) {
			t->replaced++;
		} else {
			flip(t, &s);
			t->flipped++;
		}
		set_checksum(&s);
	}
	remember(t, payload, s.payload_bytes);
	atomic_flag_clear(&t->busy);
}
