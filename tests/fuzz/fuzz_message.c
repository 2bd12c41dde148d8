/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: which type, with bit 7 whether it is compressed, then a message of it as a peer
 * sends it.  What unpacks is not too deep, and packs as a message that stays as it is.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "rpc/codec.h"
#include "rpc/zstd.h"
#include "tests/fuzz/any_message.h"
#include "tests/unit/rpc/nest.pb-c.h"
#include "tests/unit/tool/kinds.pb-c.h"

static const ProtobufCMessageDescriptor *const types[] = {
	&kinds__kinds__descriptor, &old__old__descriptor, &nest__nest__descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct any_look look;
	ProtobufCMessage *m;
	struct wf_error e;

	if (!count)
		return 0;
	/* A record whose body is none has no address for it. */
	if (wf_codec_unpack(types[(bytes[0] & 0x7f) % WF_COUNT(types)],
			    count > 1 ? bytes + 1 : NULL, count - 1, bytes[0] & 0x80, MIB, &m, &e))
		return 0;
	look = any_message_look(m);
	must(look.depth <= WF_CODEC_DEPTH_MAX);
	must(look.unknown || any_message_lasts(m));
	protobuf_c_message_free_unpacked(m, NULL);
	return 0;
}

static void put(struct wf_bytes_writer *w, const ProtobufCMessage *m)
{
	size_t count;
	uint8_t *bytes = any_message_pack(m, &count);

	wf_bytes_put(w, bytes, count);
	free(bytes);
}

static void put_old(struct wf_bytes_writer *w)
{
	Old__Old m = OLD__OLD__INIT, inner = OLD__OLD__INIT;
	int32_t numbers[] = { 1, -1 };

	m.name = inner.name = "n";
	m.has_count = m.has_level = m.has_real = true;
	m.title = "t";
	m.inner = &inner;
	m.dense = numbers, m.n_dense = 2;
	put(w, &m.base);
}

/* As deep as it may be. */
static void put_nest(struct wf_bytes_writer *w)
{
	Nest__Nest nests[WF_CODEC_DEPTH_MAX + 1];

	for (size_t i = 0; i < WF_COUNT(nests); i++) {
		nest__nest__init(&nests[i]);
		if (i)
			nests[i - 1].inner = &nests[i];
	}
	put(w, &nests[0].base);
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	static void (*const puts[])(struct wf_bytes_writer *w) = {
		any_message_put_kinds, put_old, put_nest,
	};
	uint8_t plain[FUZZ_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(plain, sizeof(plain));
	size_t type = index % WF_COUNT(puts), count;

	if (index >= 2 * WF_COUNT(puts))
		return 0;
	puts[type](&w);
	must(!w.bad);
	count = sizeof(plain) - wf_bytes_writer_left(&w);
	bytes[0] = (uint8_t)type;
	if (index == type) {
		memcpy(bytes + 1, plain, count);
		return 1 + count;
	}
	bytes[0] |= 0x80;
	count = wf_zstd_pack(plain, count, bytes + 1, FUZZ_BYTES_MAX - 1);
	must(count);
	return 1 + count;
}
