/* SPDX-License-Identifier: BSD-2-Clause */
#include "secure/secret_heap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/fork.h"
#include "util/list.h"

/* A page of secrets.  Its description lies elsewhere, as a forked child needs it whole. */
struct page {
	struct wf_list node;
	struct wf_secret *secrets;
	size_t count, taken_count;
	uint8_t taken[]; /* is each secret taken? */
};

/* Under wf_fork_hold(): a child forked by another thread may take secrets of its own. */
static struct wf_list pages = { &pages, &pages };

static struct page *page_open(void)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE), count = bytes / WF_SECRET_BYTES;
	struct page *p = calloc(1, sizeof(*p) + count);
	void *memory;

	if (!p)
		return NULL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		free(p);
		return NULL;
	}
	(void)madvise(memory, bytes, MADV_DONTDUMP);
	(void)madvise(memory, bytes, MADV_WIPEONFORK);
	p->secrets = memory;
	p->count = count;
	wf_list_append(&pages, &p->node);
	return p;
}

static void page_close(struct page *p)
{
	wf_list_remove(&p->node);
	(void)munmap(p->secrets, p->count * WF_SECRET_BYTES);
	free(p);
}

static struct page *page_with_room(void)
{
	WF_LIST_EACH(node, &pages) {
		struct page *p = WF_CONTAINER(node, struct page, node);

		if (p->taken_count < p->count)
			return p;
	}
	return page_open();
}

static struct page *page_of(const struct wf_secret *secret)
{
	WF_LIST_EACH(node, &pages) {
		struct page *p = WF_CONTAINER(node, struct page, node);

		if (secret >= p->secrets && secret < p->secrets + p->count)
			return p;
	}
	return NULL;
}

struct wf_secret *wf_secret_heap_take(void)
{
	struct wf_secret *secret = NULL;
	struct page *p;
	size_t i;

	wf_fork_hold();
	p = page_with_room();
	if (p) {
		i = (size_t)((uint8_t *)memchr(p->taken, false, p->count) - p->taken);
		p->taken[i] = true;
		p->taken_count++;
		secret = &p->secrets[i];
	}
	wf_fork_let();
	return secret;
}

void wf_secret_heap_give(struct wf_secret *secret)
{
	struct page *p;

	if (!secret)
		return;
	wf_secret_wipe(secret);
	wf_fork_hold();
	p = page_of(secret);
	p->taken[secret - p->secrets] = false;
	if (!--p->taken_count)
		page_close(p);
	wf_fork_let();
}
