/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What it costs to register memory, by size, beside what it is registered for: reading
 * a body of that size.
 *
 * usage: registration [PROVIDER]     default verbs
 *
 * A row for each size, in microseconds, medians:
 *   touch    the first write to memory that is fresh from the system
 *   pin      registering it, once it is there: libfabric keeps nothing
 *   fresh    registering it where it is not there yet, which does both
 *   cached   registering it again where libfabric has kept that
 *   pool     asking again for the key of a chunk of the pool
 *   body     a tensor of that size between two nodes of this process
 *   at 12 GB/s  the same body on a wire of that speed: a calculation, not a measurement
 *
 * On emulated processors only the order of the columns says anything.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#include "fabric/mr.h"
#include "memory/grant.h"
#include "util/clock.h"

#define ROUNDS 5
#define WIRE_BYTES_PER_S 12e9
#define SECONDS 120 /* more than any body takes */

static const size_t sizes[] = { 4 * KIB, 64 * KIB, 1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB };
#define SIZES WF_COUNT(sizes)

enum { TOUCH, PIN, FRESH, CACHED, POOL, BODY, COLUMNS };
static const char *const titles[COLUMNS] = { "touch", "pin", "fresh", "cached", "pool", "body" };

static double (*table)[COLUMNS]; /* microseconds; shared with the children */
static const char *provider = "verbs";

__attribute__((noreturn)) WF_PRINTF(1, 2) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

static const char *listen_host(void)
{
	static char host[64];
	const char *listen = getenv("WEFT_LISTEN");

	snprintf(host, sizeof(host), "%s", listen ? listen : "127.0.0.1");
	host[strcspn(host, ":")] = '\0';
	return host;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_size);
	return values[ROUNDS / 2];
}

static double since_us(uint64_t begin_ns)
{
	return (double)(wf_clock_now() - begin_ns) / WF_NS_PER_US;
}

static void *fresh_memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("no memory");
	return at;
}

static struct wf_rail *open_rail(struct wf_select *select)
{
	struct wf_options options = { .rdma = true, .shm = true };
	struct wf_rail_config config = { .host = listen_host(), .slots_count = 16 };
	struct wf_rail *rail = NULL;
	struct wf_error e;

	snprintf(options.provider, sizeof(options.provider), "%s", provider);
	snprintf(options.listen, sizeof(options.listen), "%s:0", listen_host());
	if (wf_select_open(&options, select, &e))
		die("%s", e.text);
	for (size_t i = 0; i < select->count && !rail; i++)
		if (select->all[i].used && wf_rail_open(&select->all[i], &config, &rail, &e))
			die("%s", e.text);
	return rail;
}

/* How long registering @at takes. */
static double register_us(struct wf_rail *rail, void *at, size_t bytes)
{
	struct wf_error e;
	struct wf_mr *mr;
	uint64_t begin = wf_clock_now();
	double took;

	if (wf_mr_open(rail, at, bytes, WF_ACCESS_LOCAL | WF_ACCESS_REMOTE_READ, &mr, &e))
		die("%s", e.text);
	took = since_us(begin);
	wf_mr_close(mr);
	return took;
}

static void measure_pins(struct wf_rail *rail, size_t row)
{
	double touch[ROUNDS], pin[ROUNDS], fresh[ROUNDS];
	size_t bytes = sizes[row];

	for (int i = 0; i < ROUNDS; i++) {
		void *at = fresh_memory(bytes);
		uint64_t begin = wf_clock_now();

		memset(at, 1, bytes);
		touch[i] = since_us(begin);
		pin[i] = register_us(rail, at, bytes);
		munmap(at, bytes);
		at = fresh_memory(bytes);
		fresh[i] = register_us(rail, at, bytes);
		munmap(at, bytes);
	}
	table[row][TOUCH] = median(touch);
	table[row][PIN] = median(pin);
	table[row][FRESH] = median(fresh);
}

static void measure_kept(struct wf_rail *rail, size_t row)
{
	double cached[ROUNDS], pool[ROUNDS];
	size_t bytes = sizes[row];
	struct wf_pool chunks;
	struct wf_grant_span span;
	struct wf_grant grant;
	struct wf_error e;
	void *at = fresh_memory(bytes), *chunk;

	memset(at, 1, bytes);
	register_us(rail, at, bytes);
	if (wf_pool_init(&chunks, GIB) || wf_pool_take(&chunks, bytes, &chunk))
		die("there is no pool");
	span = (struct wf_grant_span){ .at = chunk, .bytes = bytes };
	if (wf_grant_remote(&grant, rail, &chunks, &span, &e))
		die("the pool has no chunk of %zu bytes", bytes);
	wf_grant_close(&grant);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin;

		cached[i] = register_us(rail, at, bytes);
		begin = wf_clock_now();
		if (wf_grant_remote(&grant, rail, &chunks, &span, &e))
			die("%s", e.text);
		pool[i] = since_us(begin);
		wf_grant_close(&grant);
	}
	table[row][CACHED] = median(cached);
	table[row][POOL] = median(pool);
	munmap(at, bytes);
	wf_pool_forget(&chunks, NULL);
	wf_pool_give(&chunks, chunk);
	wf_pool_fini(&chunks);
}

static void measure_rail(void (*measure)(struct wf_rail *rail, size_t row))
{
	struct wf_select select;
	struct wf_rail *rail = open_rail(&select);

	for (size_t row = 0; row < SIZES; row++)
		measure(rail, row);
	wf_rail_close(rail);
	wf_select_close(&select);
}

/* A range that is registered for a peer has a key of its own, and not that of a range around it. */
static void compare_keys(struct wf_rail *rail, size_t row)
{
	size_t bytes = sizes[row];
	void *at = fresh_memory(bytes);
	struct wf_mr *whole, *part;
	struct wf_error e;

	if (wf_mr_open(rail, at, bytes, WF_ACCESS_LOCAL, &whole, &e) ||
	    wf_mr_open(rail, at, bytes / 2, WF_ACCESS_REMOTE_READ, &part, &e))
		die("%s", e.text);
	if (wf_mr_key(whole) == wf_mr_key(part))
		die("half of %zu bytes has the key of all of them", bytes);
	wf_mr_close(part);
	wf_mr_close(whole);
	munmap(at, bytes);
}

static void pins(void)
{
	measure_rail(compare_keys);
	measure_rail(measure_pins);
}

/* libfabric's cache, which weft switches off. */
static void kept(void)
{
	setenv("FI_MR_CACHE_MONITOR", "memhooks", 1);
	measure_rail(measure_kept);
}

static double body_us(struct weft_node *to, struct weft_peer *peer, uint64_t step, uint8_t *out,
		      uint8_t *in, size_t bytes)
{
	int64_t count = (int64_t)bytes;
	struct weft_tensor from = { .data = out, .device = { WEFT_CPU, 0 }, .ndim = 1,
				    .dtype = { WEFT_UINT, 8, 1 }, .shape = &count };
	struct weft_tensor into = from;
	struct weft_op *send, *recv;
	uint64_t begin = wf_clock_now();
	double took;

	into.data = in;
	if (weft_recv(to, NULL, step, "k", 1, &into, NULL, &recv) ||
	    weft_send(peer, step, "k", 1, &from, NULL, &send) ||
	    weft_wait(recv, SECONDS * WF_NS_PER_S) || weft_op_status(recv) != WEFT_OK)
		die("a body of %zu bytes: %s", bytes, weft_error());
	took = since_us(begin);
	weft_wait(send, SECONDS * WF_NS_PER_S);
	weft_op_free(send);
	weft_op_free(recv);
	return took;
}

static void bodies(void)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = provider };
	uint8_t *out = fresh_memory(sizes[SIZES - 1]), *in = fresh_memory(sizes[SIZES - 1]);
	struct weft_node *one, *other;
	struct weft_peer *peer;
	double took[ROUNDS];

	memset(out, 1, sizes[SIZES - 1]);
	memset(in, 1, sizes[SIZES - 1]);
	if (weft_node_open(&options, &one) || weft_node_open(&options, &other) ||
	    weft_peer_open(one, weft_node_address(other), &peer))
		die("%s", weft_error());
	for (size_t row = 0; row < SIZES; row++) {
		body_us(other, peer, row, out, in, sizes[row]);
		for (int i = 0; i < ROUNDS; i++)
			took[i] = body_us(other, peer, row, out, in, sizes[row]);
		table[row][BODY] = median(took);
	}
	weft_peer_close(peer);
	weft_node_close(one);
	weft_node_close(other);
}

/* In a process of its own: libfabric reads its environment once, and verbs is not for forked children. */
static void apart(void (*part)(void))
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		part();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		exit(1);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		provider = argv[1];
	table = mmap(NULL, SIZES * sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		die("no memory");
	apart(pins);
	apart(kept);
	apart(bodies);
	printf("%s, microseconds\n%10s", provider, "bytes");
	for (int i = 0; i < COLUMNS; i++)
		printf(" %10s", titles[i]);
	printf(" %11s %9s\n", "at 12 GB/s", "pin/that");
	for (size_t row = 0; row < SIZES; row++) {
		double wire_us = (double)sizes[row] / WIRE_BYTES_PER_S * 1e6;

		printf("%10zu", sizes[row]);
		for (int i = 0; i < COLUMNS; i++)
			printf(" %10.1f", table[row][i]);
		printf(" %11.1f %9.2f\n", wire_us, table[row][PIN] / wire_us);
	}
	puts("the last two columns are calculated");
	return 0;
}
