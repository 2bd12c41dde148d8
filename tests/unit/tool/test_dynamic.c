/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/dynamic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rpc/reflect.h"
#include "tests/unit/tool/kinds.pb-c.h"

#define WIRES 2000 /* random bytes to unpack, for each description */
#define WIRE_BYTES 200

/* Two methods from the message t.T, of two fields, to itself; and the enumeration t.E. */
struct said {
	Weft__Reflect__Description all;
	Weft__Reflect__Method methods[2], *method_list[2];
	Weft__Reflect__Type types[2], *type_list[2];
	Weft__Reflect__Field fields[2], *field_list[2];
	Weft__Reflect__Value value, *value_list[1];
};

static void init(struct said *s)
{
	weft__reflect__description__init(&s->all);
	weft__reflect__value__init(&s->value);
	for (int i = 0; i < 2; i++) {
		weft__reflect__method__init(&s->methods[i]);
		weft__reflect__type__init(&s->types[i]);
		weft__reflect__field__init(&s->fields[i]);
		s->method_list[i] = &s->methods[i];
		s->type_list[i] = &s->types[i];
		s->field_list[i] = &s->fields[i];
		s->methods[i].name = i ? "Talk" : "Ask";
		s->methods[i].input = s->methods[i].output = "t.T";
		s->methods[i].streams = i;
		s->fields[i].name = i ? "second" : "first";
		s->fields[i].number = i ? 8 : 7;
		s->fields[i].label = PROTOBUF_C_LABEL_NONE;
	}
	s->all.methods = s->method_list;
	s->all.types = s->type_list;
	s->all.n_methods = s->all.n_types = 2;
	s->types[0].name = "t.T";
	s->types[0].fields = s->field_list;
	s->types[0].n_fields = 2;
	s->types[1].name = "t.E";
	s->types[1].is_enum = true;
	s->types[1].values = s->value_list;
	s->types[1].n_values = 1;
	s->value_list[0] = &s->value;
	s->value.name = "ZERO";
}

static uint32_t chance(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Bytes that could be fields of numbers from @number on, of any wire type. */
static size_t make_wire(uint8_t *wire, uint32_t number, uint32_t *seed)
{
	size_t at = 0, most;

	while (at + 20 < WIRE_BYTES && chance(seed) % 8) {
		uint32_t tag = (number + chance(seed) % 3) << 3 | chance(seed) % 6;

		for (; tag > 127; tag >>= 7)
			wire[at++] = (uint8_t)(tag | 128);
		wire[at++] = (uint8_t)tag;
		most = chance(seed) % 12;
		wire[at++] = (uint8_t)(chance(seed) % 4 ? most : chance(seed));
		while (most--)
			wire[at++] = (uint8_t)(chance(seed) % 3 ? chance(seed) % 10 : chance(seed));
	}
	return at;
}

/* What protobuf-c makes of it must be safe, whatever comes. */
static void use(const ProtobufCMessageDescriptor *d, uint32_t number)
{
	uint32_t seed = number;

	for (int i = 0; i < WIRES; i++) {
		uint8_t wire[WIRE_BYTES], *packed;
		size_t bytes = make_wire(wire, number, &seed);
		ProtobufCMessage *m = protobuf_c_message_unpack(d, NULL, bytes, wire);

		if (!m)
			continue;
		bytes = protobuf_c_message_get_packed_size(m);
		packed = test_malloc(bytes + !bytes);
		assert_int_equal(protobuf_c_message_pack(m, packed), bytes);
		protobuf_c_message_free_unpacked(m, NULL);
		test_free(packed);
	}
}

static const char *try(const struct said *s)
{
	struct dynamic d;
	const char *wrong = dynamic_open(&d, "t.Service", &s->all);

	if (!wrong)
		use(d.service.methods[0].input, 6);
	dynamic_close(&d);
	return wrong;
}

static void a_described_message_packs_as_its_original(void **state)
{
	ProtobufCService service = { .descriptor = &kinds__museum__descriptor };
	Kinds__Kinds in = KINDS__KINDS__INIT, child = KINDS__KINDS__INIT;
	Kinds__Kinds *children[] = { &child, &child };
	char *texts[] = { "", "a", "bc" };
	int32_t numbers[] = { 0, -1, 300 };
	double reals[] = { 0.1, -1e300 };
	Weft__Reflect__Description *said;
	uint8_t packed[2][1024];
	struct wf_service_pb pb = { 0 };
	ProtobufCMessage *message;
	struct dynamic d;
	size_t bytes;

	(void)state;
	in.i32 = -1, in.s64 = INT64_MIN, in.f64 = UINT64_MAX, in.real = 0.1, in.flag = true;
	in.color = KINDS__COLOR__DARK, in.text = "text";
	in.data = (ProtobufCBinaryData){ 3, (uint8_t *)"\0\1\2" };
	in.child = &child, in.children = children, in.n_children = 2;
	in.texts = texts, in.n_texts = 3;
	in.i32s = in.loose = numbers, in.n_i32s = in.n_loose = 3;
	in.reals = reals, in.n_reals = 2;
	in.first_case = KINDS__KINDS__FIRST_ONE_CHILD, in.one_child = &child;
	in.second_case = KINDS__KINDS__SECOND_OTHER_NUMBER, in.other_number = 0;
	child.first_case = KINDS__KINDS__FIRST_ONE_TEXT, child.one_text = "one";
	wf_service_init(&pb, &service);
	said = wf_reflect_describe(&pb);
	assert_non_null(said);
	assert_null(dynamic_open(&d, "kinds.Museum", said));
	weft__reflect__description__free_unpacked(said, NULL);

	bytes = protobuf_c_message_pack(&in.base, packed[0]);
	message = protobuf_c_message_unpack(d.service.methods[0].input, NULL, bytes, packed[0]);
	assert_non_null(message);
	assert_int_equal(message->n_unknown_fields, 0);
	assert_int_equal(protobuf_c_message_get_packed_size(message), bytes);
	assert_int_equal(protobuf_c_message_pack(message, packed[1]), bytes);
	assert_memory_equal(packed[0], packed[1], bytes);

	protobuf_c_message_free_unpacked(message, NULL);
	dynamic_close(&d);
}

static void fields_that_must_be_there_are_missed(void **state)
{
	ProtobufCService service = { .descriptor = &kinds__museum__descriptor };
	struct wf_service_pb pb = { 0 };
	Weft__Reflect__Description *said;
	Old__Old in = OLD__OLD__INIT;
	ProtobufCMessage *message;
	uint8_t packed[64];
	struct dynamic d;
	size_t bytes;

	(void)state;
	in.name = "n";
	wf_service_init(&pb, &service);
	said = wf_reflect_describe(&pb);
	assert_null(dynamic_open(&d, "kinds.Museum", said));
	weft__reflect__description__free_unpacked(said, NULL);

	bytes = protobuf_c_message_pack(&in.base, packed);
	message = protobuf_c_message_unpack(d.service.methods[1].input, NULL, bytes, packed);
	assert_non_null(message);
	protobuf_c_message_free_unpacked(message, NULL);
	assert_null(protobuf_c_message_unpack(d.service.methods[1].input, NULL, 0, packed));
	dynamic_close(&d);
}

static void methods_keep_their_names_and_streams(void **state)
{
	struct dynamic d;
	struct said s;

	(void)state;
	init(&s);
	assert_null(dynamic_open(&d, "t.Service", &s.all));
	assert_string_equal(d.service.name, "t.Service");
	assert_int_equal(d.service.n_methods, 2);
	assert_string_equal(d.service.methods[0].name, "Ask");
	assert_string_equal(d.service.methods[1].name, "Talk");
	assert_false(d.streams[0]);
	assert_true(d.streams[1]);
	dynamic_close(&d);
	dynamic_close(&d);
}

/* The second field, after one of number 7. */
struct row {
	const char *name;
	uint32_t number, label, type;
	const char *type_name;
	bool packed;
	uint32_t oneof;
};

#define NONE PROTOBUF_C_LABEL_NONE
#define REPEATED PROTOBUF_C_LABEL_REPEATED
#define INT32 PROTOBUF_C_TYPE_INT32
#define ENUM PROTOBUF_C_TYPE_ENUM
#define STRING PROTOBUF_C_TYPE_STRING
#define BYTES PROTOBUF_C_TYPE_BYTES
#define MESSAGE PROTOBUF_C_TYPE_MESSAGE

static const char *try_row(const struct row *row)
{
	struct said s;

	init(&s);
	s.fields[1].number = row->number;
	s.fields[1].label = row->label;
	s.fields[1].type = row->type;
	s.fields[1].type_name = (char *)(uintptr_t)row->type_name;
	s.fields[1].packed = row->packed;
	s.fields[1].oneof = row->oneof;
	return try(&s);
}

static void a_field_that_makes_no_sense_is_refused(void **state)
{
	static const struct row rows[] = {
		{ "number 0", 0, NONE, INT32, "", false, 0 },
		{ "the number of another", 7, NONE, INT32, "", false, 0 },
		{ "a number that goes back", 6, NONE, INT32, "", false, 0 },
		{ "a number too large", 536870912, NONE, INT32, "", false, 0 },
		{ "a number of all bits", UINT32_MAX, NONE, INT32, "", false, 0 },
		{ "label 4", 8, 4, INT32, "", false, 0 },
		{ "a label of all bits", 8, UINT32_MAX, INT32, "", false, 0 },
		{ "type 17", 8, NONE, 17, "", false, 0 },
		{ "a type of all bits", 8, NONE, UINT32_MAX, "", false, 0 },
		{ "packed strings", 8, REPEATED, STRING, "", true, 0 },
		{ "packed bytes", 8, REPEATED, BYTES, "", true, 0 },
		{ "packed messages", 8, REPEATED, MESSAGE, "t.T", true, 0 },
		{ "packed, and only one", 8, NONE, INT32, "", true, 0 },
		{ "one of several, repeated", 8, REPEATED, INT32, "", false, 1 },
		{ "one of several, required", 8, PROTOBUF_C_LABEL_REQUIRED, STRING, "", false, 1 },
		{ "a message that is not described", 8, NONE, MESSAGE, "t.X", false, 0 },
		{ "a message without a name", 8, NONE, MESSAGE, "", false, 0 },
		{ "a message that is an enumeration", 8, NONE, MESSAGE, "t.E", false, 0 },
		{ "an enumeration that is not described", 8, NONE, ENUM, "t.X", false, 0 },
		{ "an enumeration without a name", 8, NONE, ENUM, "", false, 0 },
		{ "an enumeration that is a message", 8, NONE, ENUM, "t.T", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!try_row(&rows[i]))
			fail_msg("%s was taken", rows[i].name);
}

static void a_field_of_any_type_and_label_can_be_used(void **state)
{
	(void)state;
	for (uint32_t type = 0; type <= MESSAGE; type++) {
		for (uint32_t label = 0; label <= NONE; label++) {
			for (int packed = 0; packed < 2; packed++) {
				struct row row = { .number = 8, .label = label, .type = type };

				row.type_name = type == MESSAGE ? "t.T" : type == ENUM ? "t.E" : "";
				row.packed = packed && label == REPEATED && type < STRING;
				assert_null(try_row(&row));
			}
		}
	}
}

/* Each of the two may have written what the other reads and frees. */
static void two_fields_of_any_types_can_share_a_place(void **state)
{
	struct said s;

	(void)state;
	for (uint32_t pair = 0; pair <= MESSAGE * 17 + MESSAGE; pair++) {
		uint32_t types[] = { pair / 17, pair % 17 };

		init(&s);
		for (int i = 0; i < 2; i++) {
			s.fields[i].oneof = 7; /* the number of a field, too */
			s.fields[i].label = i ? NONE : PROTOBUF_C_LABEL_OPTIONAL;
			s.fields[i].type = types[i];
			s.fields[i].type_name = types[i] == MESSAGE ? "t.T"
						: types[i] == ENUM  ? "t.E"
								    : "";
		}
		assert_null(try(&s));
	}
}

static void a_method_without_types_is_refused(void **state)
{
	static char *const names[] = { "", "t.X", "t.E", "t", "T" };
	struct said s;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		init(&s);
		s.methods[0].input = names[i];
		assert_non_null(try(&s));
		init(&s);
		s.methods[1].output = names[i];
		assert_non_null(try(&s));
	}
	init(&s);
	s.all.n_types = 0;
	assert_non_null(try(&s));
}

static void an_odd_description_can_be_used(void **state)
{
	struct dynamic d;
	struct said s;

	(void)state;
	init(&s);
	s.types[1] = s.types[0]; /* of one name */
	s.fields[1].name = "first";
	assert_null(try(&s));

	init(&s);
	s.types[0].n_fields = 0;
	s.types[1].n_values = 0;
	assert_null(try(&s));

	init(&s);
	s.types[0].name = s.methods[0].input = s.methods[0].output = "\x1b[2J\n";
	s.methods[1] = s.methods[0];
	s.fields[0].name = s.fields[1].name = "";
	assert_null(try(&s));

	init(&s);
	s.all.n_methods = s.all.n_types = 0;
	assert_null(dynamic_open(&d, "", &s.all));
	dynamic_close(&d);
}

/* A list of @count times the same. */
/* protobuf-c reads the first field of what has a list of them, though it be of none. */
static void a_type_without_fields_has_no_list_of_them(void **state)
{
	struct said s;
	struct dynamic d;

	(void)state;
	init(&s);
	s.types[0].n_fields = 0;
	assert_null(try(&s));
	assert_null(dynamic_open(&d, "t.Service", &s.all));
	assert_null(d.service.methods[0].input->fields);
	dynamic_close(&d);
}

static void *list_of(void *pointer, size_t count)
{
	void **list = test_malloc(count * sizeof(*list));

	for (size_t i = 0; i < count; i++)
		list[i] = pointer;
	return (void *)list;
}

static void thousands_of_types_can_be_used_but_not_any_number(void **state)
{
	struct said s;

	(void)state;
	init(&s);
	s.all.types = list_of(&s.types[0], 10001);
	s.all.n_types = 10000;
	assert_null(try(&s));
	s.all.n_types = 10001;
	assert_non_null(try(&s));
	test_free(s.all.types);

	init(&s);
	s.all.methods = list_of(&s.methods[0], 10001);
	s.all.n_methods = 10001;
	assert_non_null(try(&s));
	test_free(s.all.methods);
}

static void thousands_of_fields_can_be_used_but_not_any_number(void **state)
{
	Weft__Reflect__Field *fields = test_calloc(50001, sizeof(*fields));
	struct dynamic d;
	struct said s;

	(void)state;
	init(&s);
	s.types[0].fields = test_calloc(50001, sizeof(s.types[0].fields[0]));
	for (uint32_t i = 0; i < 50001; i++) {
		fields[i] = s.fields[0];
		fields[i].number = 2 * i + 1; /* each a range of its own */
		s.types[0].fields[i] = &fields[i];
	}
	s.types[0].n_fields = 50000;
	assert_null(dynamic_open(&d, "t.Service", &s.all));
	for (uint32_t number = 99995; number < 100005; number++) {
		uint8_t wire[] = { (uint8_t)(number << 3 | 128), (uint8_t)(number >> 4 | 128),
				   (uint8_t)(number >> 11), 5 };
		ProtobufCMessage *m = protobuf_c_message_unpack(d.service.methods[0].input, NULL,
								sizeof(wire), wire);

		assert_non_null(m);
		assert_int_equal(m->n_unknown_fields, number % 2 == 0 || number > 100000);
		protobuf_c_message_free_unpacked(m, NULL);
	}
	dynamic_close(&d);
	s.types[0].n_fields = 50001;
	assert_non_null(try(&s));
	test_free(s.types[0].fields);
	test_free(fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_described_message_packs_as_its_original),
		cmocka_unit_test(fields_that_must_be_there_are_missed),
		cmocka_unit_test(methods_keep_their_names_and_streams),
		cmocka_unit_test(a_field_that_makes_no_sense_is_refused),
		cmocka_unit_test(a_field_of_any_type_and_label_can_be_used),
		cmocka_unit_test(two_fields_of_any_types_can_share_a_place),
		cmocka_unit_test(a_method_without_types_is_refused),
		cmocka_unit_test(an_odd_description_can_be_used),
		cmocka_unit_test(a_type_without_fields_has_no_list_of_them),
		cmocka_unit_test(thousands_of_types_can_be_used_but_not_any_number),
		cmocka_unit_test(thousands_of_fields_can_be_used_but_not_any_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
