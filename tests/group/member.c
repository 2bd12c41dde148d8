/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * member [--manual] [--keyed] [--give-up] [--name NAME]...: a process of a job.  Joins a group, or one of each
 * NAME, prints what it is told of itself, sends a tensor to each other rank, sums up numbers of all,
 * and ends.
 * With --give-up it says when it joins, and SIGUSR1 makes it give that up.
 */
#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define NAMES_MAX 6

static int64_t one = 1;
static volatile sig_atomic_t told;

/* A tensor of one number, at @number. */
static struct weft_tensor tensor_of(int64_t *number)
{
	return (struct weft_tensor){ .data = number, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { WEFT_INT, 64, 1 }, .shape = &one };
}

static void check(int err, const char *what)
{
	if (err)
		errx(1, "%s: %s (%s)", what, weft_error(), weft_strerror(err));
}

static void wait_for(struct weft_op *op, const char *what)
{
	enum weft_status status;

	check(weft_finish(op, &status), what);
	if (status != WEFT_OK)
		errx(1, "%s: %s: %s", what, weft_status_name(status), weft_error());
}

/* Exchange a number with every rank. */
static void meet_all(struct weft_node *node, struct weft_group *group, const char *name)
{
	uint32_t size = weft_group_size(group);
	struct weft_op **sends = calloc(size, sizeof(struct weft_op *));
	struct weft_op **recvs = calloc(size, sizeof(struct weft_op *));
	int64_t *numbers = calloc(size, sizeof(int64_t)), mine = weft_group_rank(group);

	if (!sends || !recvs || !numbers)
		errx(1, "no memory");
	for (uint32_t i = 0; i < size; i++) {
		struct weft_tensor in = tensor_of(&numbers[i]), out = tensor_of(&mine);
		struct weft_peer *peer;

		if (i == weft_group_rank(group))
			continue;
		check(weft_group_peer(group, i, &peer), "peer");
		check(weft_recv(node, peer, 1, name, strlen(name), &in, NULL, &recvs[i]), "recv");
		check(weft_send(peer, 1, name, strlen(name), &out, NULL, &sends[i]), "send");
	}
	for (uint32_t i = 0; i < size; i++) {
		if (!recvs[i])
			continue;
		wait_for(recvs[i], "recv");
		wait_for(sends[i], "send");
		if (numbers[i] != i)
			errx(1, "rank %u says that it is %" PRId64, i, numbers[i]);
	}
	free(sends);
	free(recvs);
	free(numbers);
}

/* Sum up numbers of all ranks, few of them, and so many that each rank combines some. */
static void sum_up(struct weft_group *group, int64_t count)
{
	int64_t *numbers = malloc((size_t)count * sizeof(int64_t));
	struct weft_tensor t = tensor_of(numbers);
	int64_t size = weft_group_size(group);
	struct weft_op *op;

	if (!numbers)
		errx(1, "no memory");
	t.shape = &count;
	for (int64_t i = 0; i < count; i++)
		numbers[i] = i + weft_group_rank(group);
	check(weft_all_reduce(group, &t, &t, WEFT_SUM, NULL, &op), "all_reduce");
	wait_for(op, "all_reduce");
	for (int64_t i = 0; i < count; i++)
		if (numbers[i] != size * i + size * (size - 1) / 2)
			errx(1, "sum number %" PRId64 " is %" PRId64, i, numbers[i]);
	free(numbers);
}

static void tell(int signal)
{
	(void)signal;
	told = 1;
}

static int is_told(void *arg)
{
	(void)arg;
	return told;
}

static struct weft_group *join(struct weft_node *node, const char *name)
{
	struct weft_join_options options = WEFT_JOIN_OPTIONS_INIT;
	struct weft_group *group;

	options.name = name;
	options.give_up = is_told;
	check(weft_join(node, &options, &group), "join");
	printf("rank %u of %u, local %u of %u, by %s\n", weft_group_rank(group),
	       weft_group_size(group), weft_group_local_rank(group),
	       weft_group_local_size(group), weft_group_launcher(group));
	fflush(stdout);
	return group;
}

int main(int argc, char **argv)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	struct weft_group *groups[NAMES_MAX];
	const char *names[NAMES_MAX] = { "" };
	struct weft_node *node;
	unsigned count = 0;
	bool say = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--manual"))
			options.mode = WEFT_MANUAL;
		else if (!strcmp(argv[i], "--keyed"))
			options.security = WEFT_SECURITY_KEYED;
		else if (!strcmp(argv[i], "--give-up"))
			say = true;
		else if (!strcmp(argv[i], "--name") && i + 1 < argc && count < NAMES_MAX)
			names[count++] = argv[++i];
		else
			errx(2, "what is %s?", argv[i]);
	}
	count = count ? count : 1;
	check(weft_node_open(&options, &node), "node");
	if (say) {
		signal(SIGUSR1, tell);
		puts("joins");
		fflush(stdout);
	}
	for (unsigned i = 0; i < count; i++)
		groups[i] = join(node, names[i]);
	for (unsigned i = 0; i < count; i++)
		meet_all(node, groups[i], *names[i] ? names[i] : "all");
	for (unsigned i = 0; i < count; i++) {
		sum_up(groups[i], 100);
		sum_up(groups[i], 1000000);
	}
	puts("met all");
	fflush(stdout);
	for (unsigned i = 0; i < count; i++)
		check(weft_group_close(groups[i]), "close");
	check(weft_node_close(node), "node");
	return 0;
}
