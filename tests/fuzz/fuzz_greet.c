/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: one message of the door.  What is accepted ends its texts inside
 * their arrays, and written and read again it says the same.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/bytes.h"
#include "wire/greet.h"

static void check_hello(const struct wf_greet_hello *h)
{
	must(memchr(h->name, 0, sizeof(h->name)) && memchr(h->address, 0, sizeof(h->address)));
	must(memchr(h->security, 0, sizeof(h->security)) != NULL);
	must(h->rail_count <= WF_GREET_RAILS_MAX);
	for (uint32_t i = 0; i < h->rail_count; i++) {
		must(memchr(h->rails[i].provider, 0, sizeof(h->rails[i].provider)) != NULL);
		must(h->rails[i].address_bytes <= WF_GREET_ADDRESS_BYTES);
	}
}

static void take(const uint8_t *bytes, size_t count)
{
	uint8_t again[WF_GREET_BYTES_MAX], third[WF_GREET_BYTES_MAX];
	int length = wf_greet_length(bytes, count), again_bytes;
	struct wf_greet greet, copy;
	struct wf_error e = { 0 };

	must(length == -EBADMSG || length == -EMSGSIZE ||
	     (length >= 0 && length <= WF_GREET_BYTES_MAX));
	if (wf_greet_get(bytes, count, &greet, &e)) {
		must(e.code < 0 && e.text[0]);
		return;
	}
	must((size_t)length == count);
	if (greet.kind == WF_GREET_HELLO)
		check_hello(&greet.hello);
	again_bytes = wf_greet_put(&greet, again);
	must(again_bytes > 0 && wf_greet_length(again, (size_t)again_bytes) == again_bytes);
	must(!wf_greet_get(again, (size_t)again_bytes, &copy, &e));
	must(wf_greet_put(&copy, third) == again_bytes);
	must(!memcmp(again, third, (size_t)again_bytes));
}

/* As it is; and with the prefix that it should have, or few would be read any further. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct wf_bytes_writer w;
	uint8_t *mended;

	take(bytes, count);
	if (count < WF_GREET_PREFIX_BYTES)
		return 0;
	mended = malloc(count);
	must(mended != NULL);
	w = wf_bytes_writer(mended, count);
	wf_bytes_put(&w, WF_GREET_MAGIC, sizeof(WF_GREET_MAGIC) - 1);
	wf_bytes_put_u32(&w, (uint32_t)(count - WF_GREET_PREFIX_BYTES));
	wf_bytes_put(&w, bytes + WF_GREET_PREFIX_BYTES, count - WF_GREET_PREFIX_BYTES);
	take(mended, count);
	free(mended);
	return 0;
}

static void fill_hello(struct wf_greet_hello *h)
{
	h->wire_min = h->wire_max = 1;
	memset(h->incarnation, 7, sizeof(h->incarnation));
	snprintf(h->name, sizeof(h->name), "worker3");
	snprintf(h->address, sizeof(h->address), "[::1]:7000");
	snprintf(h->security, sizeof(h->security), "open");
	h->side = 0x0123456789abcdef;
	h->link = 1;
	h->token = 0x1234;
	h->checksums = 1;
	h->checksum = true;
	h->rail_count = 2;
	for (uint32_t i = 0; i < h->rail_count; i++) {
		snprintf(h->rails[i].provider, sizeof(h->rails[i].provider), "rail%u", i);
		h->rails[i].address_bytes = 16;
	}
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	struct wf_greet greet = { .kind = (enum wf_greet_kind)(index + 1) };
	int count;

	if (greet.kind > WF_GREET_SAME)
		return 0;
	if (greet.kind == WF_GREET_HELLO)
		fill_hello(&greet.hello);
	else if (greet.kind == WF_GREET_TRY || greet.kind == WF_GREET_CANNOT)
		snprintf(greet.try.text, sizeof(greet.try.text), "no slots left");
	else if (greet.kind == WF_GREET_REFUSE || greet.kind == WF_GREET_GOODBYE)
		snprintf(greet.refuse.text, sizeof(greet.refuse.text), "closing");
	else if (greet.kind == WF_GREET_SAME)
		greet.same.link = greet.same.proves = 1;
	count = wf_greet_put(&greet, bytes);
	must(count > 0 && count <= FUZZ_BYTES_MAX);
	return (size_t)count;
}
