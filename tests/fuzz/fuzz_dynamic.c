/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: what a node says of a service, after its length as a u16, then a
 * message to each of its first methods.  What is taken can be used: messages of
 * such types unpack, pack and are shown as JSON.
 */
#include "tests/fuzz/fuzz.h"

#include "rpc/codec.h"
#include "rpc/reflect.h"
#include "tests/fuzz/any_message.h"
#include "tests/unit/tool/kinds.pb-c.h"
#include "tool/dynamic.h"
#include "tool/json.h"
#include "util/bytes.h"

#define METHODS_MAX 2 /* of an input, that are tried */

static void use(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t count)
{
	ProtobufCMessage *m = any_message_unpack(type, bytes, count), *back;
	char wrong[JSON_WRONG_BYTES];
	cJSON *json;

	if (!m)
		return;
	must(any_message_look(m).unknown || any_message_lasts(m));
	json = json_of(m);
	must(json != NULL);
	/* Two fields of one name make JSON that is refused. */
	back = json_read(type, json, wrong);
	if (back)
		protobuf_c_message_free_unpacked(back, NULL);
	cJSON_Delete(json);
	protobuf_c_message_free_unpacked(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	size_t length = wf_bytes_get_u16(&r);
	const uint8_t *packed = wf_bytes_view(&r, WF_MIN(length, wf_bytes_reader_left(&r)));
	ProtobufCMessage *said;
	const char *wrong;
	struct dynamic d;

	if (!packed)
		return 0;
	said = any_message_unpack(&weft__reflect__description__descriptor, packed,
				  (size_t)(r.at - packed));
	if (!said)
		return 0;
	wrong = dynamic_open(&d, "t.Service", (Weft__Reflect__Description *)said);
	protobuf_c_message_free_unpacked(said, NULL); /* nothing of it is kept */
	for (unsigned i = 0; !wrong && i < WF_MIN(d.service.n_methods, METHODS_MAX); i++)
		use(d.service.methods[i].input, r.at, wf_bytes_reader_left(&r));
	dynamic_close(&d);
	return 0;
}

static bool never_streams(const struct wf_service *service, int method)
{
	(void)service;
	(void)method;
	return false;
}

static void put_museum(struct wf_bytes_writer *w)
{
	ProtobufCService service = { .descriptor = &kinds__museum__descriptor };
	struct wf_service_pb pb = { .base = { .streams = never_streams }, .service = &service };
	Weft__Reflect__Description *said;
	uint8_t *bytes;
	size_t count;

	said = wf_reflect_describe(&pb);
	must(said != NULL);
	bytes = any_message_pack(&said->base, &count);
	wf_bytes_put_u16(w, (uint16_t)count);
	wf_bytes_put(w, bytes, count);
	weft__reflect__description__free_unpacked(said, NULL);
	free(bytes);
}

/* Short, so that damage hits what matters. */
static void put_small(struct wf_bytes_writer *w)
{
	Weft__Reflect__Description said = WEFT__REFLECT__DESCRIPTION__INIT;
	Weft__Reflect__Method method = WEFT__REFLECT__METHOD__INIT, *methods[] = { &method };
	Weft__Reflect__Type type = WEFT__REFLECT__TYPE__INIT, *types[] = { &type };
	Weft__Reflect__Field a = WEFT__REFLECT__FIELD__INIT, b = a, *fields[] = { &a, &b };
	uint8_t *bytes;
	size_t count;

	method.name = "M", method.input = method.output = type.name = "T";
	a.name = "a", a.number = 1, a.type = PROTOBUF_C_TYPE_STRING;
	b.name = "b", b.number = 2, b.type = PROTOBUF_C_TYPE_MESSAGE, b.type_name = "T";
	a.label = b.label = PROTOBUF_C_LABEL_NONE;
	a.oneof = b.oneof = 1;
	type.fields = fields, type.n_fields = 2;
	said.methods = methods, said.n_methods = 1;
	said.types = types, said.n_types = 1;
	bytes = any_message_pack(&said.base, &count);
	wf_bytes_put_u16(w, (uint16_t)count);
	wf_bytes_put(w, bytes, count);
	wf_bytes_put(w, "\x12\3\x0a\1x", 5); /* b: a T whose a is x */
	free(bytes);
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	struct wf_bytes_writer w = wf_bytes_writer(bytes, FUZZ_BYTES_MAX);

	switch (index) {
	case 0:
		put_museum(&w);
		any_message_put_kinds(&w);
		break;
	case 1:
		put_small(&w);
		break;
	default:
		return 0;
	}
	must(!w.bad);
	return FUZZ_BYTES_MAX - wf_bytes_writer_left(&w);
}
