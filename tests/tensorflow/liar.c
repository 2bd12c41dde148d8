/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender of tensors that lies: it answers weft.tensorflow.Tensors.Receive with what the name of
 * the edge asks for, "lie_NAME" of the table below.
 *
 * usage: liar HOST:PORT, until the standard input ends.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weft/weft.h>

#include "tensors.pb-c.h"

#define FLOAT32 1
#define FLOAT64 2
#define INT32 3
#define STRING 7
#define FLOAT32_REF 101

#define HUGE_BYTES (3ll << 30) /* more than a message of protobuf may have */

static float numbers[4] = { 1, 2, 3, 4 };
static const unsigned char garbage[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 };
/* A TensorProto: float32, one dimension of 2^40, 4 bytes of content. */
static const unsigned char big_proto[] = { 8, 1, 18, 9, 18, 7, 8, 128, 128, 128, 128, 128,
					   32, 34, 4, 0, 0, 0, 0 };
/* A TensorProto: float32, one dimension of -5. */
static const unsigned char negative_proto[] = { 8, 1, 18, 13, 18, 11, 8, 0xfb, 0xff, 0xff, 0xff,
						0xff, 0xff, 0xff, 0xff, 0xff, 1 };
/* A TensorProto: of type 9999. */
static const unsigned char unknown_proto[] = { 8, 0x8f, 0x4e, 18, 4, 18, 2, 8, 4 };
/* A TensorProto: 2^40 strings, of which it has one, of no bytes. */
static const unsigned char many_proto[] = { 8, 7, 18, 9, 18, 7, 8, 128, 128, 128, 128, 128, 32,
					    66, 0 };
/* A TensorProto: four numbers of float32, whole. */
static const unsigned char plain_proto[] = { 8, 1, 18, 4, 18, 2, 8, 4, 34, 16, 0, 0, 128, 63, 0, 0,
					     128, 63, 0, 0, 128, 63, 0, 0, 128, 63 };
/* A TensorProto: a variant of one element whose bytes are none. */
static const unsigned char variant_proto[] = { 8, 21, 18, 4, 18, 2, 8, 1, 34, 3, 0xff, 0xff, 0xff };
static int64_t many_dims[300];

struct lie {
	const char *name;
	int dtype;
	size_t dim_count;
	int64_t dims[2];
	int packed;
	int dead;
	const void *body; /* NULL: none */
	int64_t body_bytes;
};

#define BODY(bytes) .body = (bytes), .body_bytes = sizeof(bytes)

static const struct lie lies[] = {
	{ "lie_none", FLOAT32, 1, { 4 }, BODY(numbers) },
	{ "lie_negative", FLOAT32, 1, { -4 }, BODY(numbers) },
	{ "lie_many_dims", FLOAT32, 300, { 0 }, BODY(numbers) },
	{ "lie_elements", FLOAT32, 2, { 1ll << 40, 1ll << 40 }, BODY(numbers) },
	{ "lie_bytes", FLOAT64, 1, { 1ll << 61 }, BODY(numbers) },
	{ "lie_huge", FLOAT32, 1, { 1ll << 34 }, BODY(numbers) },
	{ "lie_short", FLOAT32, 1, { 8 }, BODY(numbers) },
	{ "lie_long", FLOAT32, 1, { 2 }, BODY(numbers) },
	{ "lie_unknown_type", 9999, 1, { 4 }, BODY(numbers) },
	{ "lie_negative_type", -1, 1, { 4 }, BODY(numbers) },
	{ "lie_no_type", 0, 1, { 4 }, BODY(numbers) },
	{ "lie_reference", FLOAT32_REF, 1, { 4 }, BODY(numbers) },
	{ "lie_plain_string", STRING, 1, { 4 }, BODY(numbers) },
	{ "lie_other_type", INT32, 1, { 4 }, BODY(numbers) },
	{ "lie_no_body", FLOAT32, 1, { 4 } },
	{ "lie_garbage", STRING, 1, { 4 }, 1, BODY(garbage) },
	{ "lie_packed_no_body", STRING, 1, { 4 }, 1 },
	{ "lie_packed_other_type", STRING, 1, { 4 }, 1, BODY(numbers) },
	{ "lie_packed_big", FLOAT32, 1, { 4 }, 1, BODY(big_proto) },
	{ "lie_packed_negative", FLOAT32, 1, { 4 }, 1, BODY(negative_proto) },
	{ "lie_packed_unknown", FLOAT32, 1, { 4 }, 1, BODY(unknown_proto) },
	{ "lie_packed_many", STRING, 1, { 4 }, 1, BODY(many_proto) },
	{ "lie_packed_plain", FLOAT32, 1, { 4 }, 1, BODY(plain_proto) },
	{ "lie_packed_variant", FLOAT32, 1, { 4 }, 1, BODY(variant_proto) },
	{ "lie_packed_huge", FLOAT32, 1, { 4 }, 1, .body = numbers, .body_bytes = HUGE_BYTES },
	{ "lie_dead_body", FLOAT32, 1, { 4 }, BODY(numbers) },
	/* Replies that are no lies, but strange. */
	{ "lie_empty_with_body", FLOAT32, 1, { 0 }, BODY(numbers) },
	{ "lie_dead_with_body", 9999, 1, { -1 }, 0, 1, BODY(numbers) },
};

static const struct lie *find(const Weft__Tensorflow__Want *want)
{
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		const char *name = lies[i].name;
		size_t bytes = strlen(name);
		const char *at = memmem(want->key.data, want->key.len, name, bytes);

		/* The name ends the edge's, and a frame's number follows. */
		if (at && at[bytes] == ';')
			return &lies[i];
	}
	return NULL;
}

/* Returns memory that holds the body of @lie. */
static void *memory(const struct lie *lie)
{
	static void *huge;

	if (lie->body_bytes < HUGE_BYTES)
		return (void *)lie->body;
	if (!huge)
		huge = mmap(NULL, HUGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
	return huge;
}

static void attach(struct weft_served *call, const struct lie *lie)
{
	struct weft_send_options o = WEFT_SEND_OPTIONS_INIT;
	int64_t length = lie->body_bytes;
	struct weft_tensor t = { .data = memory(lie), .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &length };

	o.flags = strcmp(lie->name, "lie_dead_body") ? WEFT_OPAQUE : WEFT_DEAD;
	if (!strcmp(lie->name, "lie_packed_other_type")) {
		o.flags = 0;
		length = 1;
		t.dtype = (struct weft_dtype){ WEFT_COMPLEX, 128, 1 };
	}
	if (weft_served_attach(call, &t, &o, NULL))
		fprintf(stderr, "liar: %s: %s\n", lie->name, weft_error());
}

static void tensors__receive(Weft__Tensorflow__Tensors_Service *service,
			     const Weft__Tensorflow__Want *want,
			     Weft__Tensorflow__Have_Closure closure, void *closure_data)
{
	Weft__Tensorflow__Have have = WEFT__TENSORFLOW__HAVE__INIT;
	struct weft_served *call = weft_served(closure_data);
	const struct lie *lie = find(want);

	(void)service;
	if (!lie) {
		weft_served_fail(call, WEFT_NOT_FOUND, "the liar has no such lie");
		return;
	}
	have.dtype = lie->dtype;
	have.packed = lie->packed;
	have.dead = lie->dead;
	have.n_dim = lie->dim_count;
	have.dim = lie->dim_count > 2 ? many_dims : (int64_t *)lie->dims;
	if (lie->body)
		attach(call, lie);
	closure(&have, closure_data);
}

static void tensors__receive_buffer(Weft__Tensorflow__Tensors_Service *service,
				    const Weft__Tensorflow__WantBuffer *want,
				    Weft__Tensorflow__Have_Closure closure, void *closure_data)
{
	(void)service;
	(void)want;
	(void)closure;
	weft_served_fail(weft_served(closure_data), WEFT_NOT_FOUND, "the liar has no buffers");
}

int main(int argc, char **argv)
{
	Weft__Tensorflow__Tensors_Service tensors = WEFT__TENSORFLOW__TENSORS__INIT(tensors__);
	ProtobufCService *services[] = { &tensors.base, NULL };
	struct weft_node_options o = WEFT_NODE_OPTIONS_INIT;
	struct weft_node *node;
	char c;

	for (size_t i = 0; i < sizeof(many_dims) / sizeof(many_dims[0]); i++)
		many_dims[i] = 1;
	o.listen = argc > 1 ? argv[1] : "127.0.0.1:0";
	o.services = services;
	if (weft_node_open(&o, &node)) {
		fprintf(stderr, "liar: %s\n", weft_error());
		return 1;
	}
	puts(weft_node_address(node));
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
