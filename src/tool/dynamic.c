/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/dynamic.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIELD_BYTES 16    /* room for a field of any type: the longest is a count and a pointer */
#define NUMBER_MAX 536870911 /* highest number of a field in protobuf */

/*
 * Limits of a description.  Each field looks for its type among all types: some seconds at worst.
 * Not tuned yet.
 */
#define TYPES_MAX 10000
#define FIELDS_MAX 50000

/* An allocation of a struct dynamic: all are in one list, to be freed together. */
struct piece {
	struct piece *next;
	_Alignas(16) char bytes[];
};

struct maker {
	struct dynamic *d;
	const Weft__Reflect__Description *said;
	ProtobufCMessageDescriptor *messages; /* by type; enumerations leave theirs empty */
	ProtobufCEnumDescriptor *enums;
	const char *wrong;
};

static void *take(struct maker *m, size_t count, size_t bytes)
{
	struct piece *piece = calloc(1, sizeof(*piece) + count * bytes);

	if (!piece) {
		m->wrong = "there is no memory for it";
		return NULL;
	}
	piece->next = m->d->memory;
	m->d->memory = piece;
	return piece->bytes;
}

static const char *text(struct maker *m, const char *from)
{
	size_t bytes = strlen(from) + 1;
	char *copy = take(m, bytes, 1);

	return copy ? memcpy(copy, from, bytes) : "";
}

/* Find the index of the type @name, or -1.  Types without names can't be told apart. */
static long find(const struct maker *m, const char *name, bool is_enum)
{
	for (size_t i = 0; *name && i < m->said->n_types; i++)
		if (!strcmp(m->said->types[i]->name, name) && m->said->types[i]->is_enum == is_enum)
			return (long)i;
	return -1;
}

static const ProtobufCMessageDescriptor *message(struct maker *m, const char *name)
{
	long at = find(m, name, false);

	if (at >= 0)
		return &m->messages[at];
	m->wrong = "a type is not described";
	return NULL;
}

/*
 * Numbers of fields must ascend: protobuf-c searches them so.  Fields that share a place (a oneof)
 * may be neither required nor repeated: of such fields protobuf-c does not note which has the
 * place.
 */
static bool field_good(const Weft__Reflect__Type *t, size_t at)
{
	const Weft__Reflect__Field *f = t->fields[at];

	return f->number && f->number <= NUMBER_MAX && f->type <= PROTOBUF_C_TYPE_MESSAGE &&
	       f->label <= PROTOBUF_C_LABEL_NONE &&
	       (!at || f->number > t->fields[at - 1]->number) &&
	       !(f->oneof && (f->label == PROTOBUF_C_LABEL_REPEATED ||
			      f->label == PROTOBUF_C_LABEL_REQUIRED)) &&
	       !(f->packed && (f->label != PROTOBUF_C_LABEL_REPEATED ||
			       f->type >= PROTOBUF_C_TYPE_STRING));
}

/* Find the first field of the oneof that field @at is in, or @at itself. */
static size_t first_of_oneof(const Weft__Reflect__Type *t, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (t->fields[i]->oneof && t->fields[i]->oneof == t->fields[at]->oneof)
			return i;
	return at;
}

/* A field has a place for its value, and before it one for its presence or count. */
static void make_field(struct maker *m, const Weft__Reflect__Type *t, size_t at,
		       ProtobufCFieldDescriptor *to)
{
	const Weft__Reflect__Field *f = t->fields[at];
	size_t place = f->oneof ? first_of_oneof(t, at) : at;
	long values;

	to->name = text(m, f->name);
	to->id = f->number;
	to->label = (ProtobufCLabel)f->label;
	to->type = (ProtobufCType)f->type;
	to->quantifier_offset =
		(unsigned)(sizeof(ProtobufCMessage) + place * 2 * FIELD_BYTES);
	to->offset = to->quantifier_offset + FIELD_BYTES;
	if (f->packed)
		to->flags |= PROTOBUF_C_FIELD_FLAG_PACKED;
	if (f->oneof)
		to->flags |= PROTOBUF_C_FIELD_FLAG_ONEOF;
	if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
		to->descriptor = message(m, f->type_name);
	} else if (f->type == PROTOBUF_C_TYPE_ENUM) {
		values = find(m, f->type_name, true);
		if (values < 0)
			m->wrong = "an enumeration is not described";
		else
			to->descriptor = &m->enums[values];
	}
}

/* Make the ranges of consecutive numbers by which protobuf-c looks for fields. */
static void make_ranges(struct maker *m, ProtobufCMessageDescriptor *d)
{
	ProtobufCIntRange *ranges = take(m, d->n_fields + 1, sizeof(*ranges));
	unsigned count = 0;

	if (!ranges)
		return;
	for (unsigned i = 0; i < d->n_fields; i++)
		if (!i || d->fields[i].id != d->fields[i - 1].id + 1)
			ranges[count++] = (ProtobufCIntRange){ (int)d->fields[i].id, i };
	ranges[count] = (ProtobufCIntRange){ 0, d->n_fields };
	d->field_ranges = ranges;
	d->n_field_ranges = count;
}

static void make_message(struct maker *m, size_t at)
{
	const Weft__Reflect__Type *t = m->said->types[at];
	ProtobufCMessageDescriptor *d = &m->messages[at];
	ProtobufCFieldDescriptor *fields = take(m, t->n_fields, sizeof(*fields));

	if (!fields)
		return;
	d->magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC;
	d->name = d->short_name = d->c_name = text(m, t->name);
	d->package_name = "";
	d->sizeof_message = sizeof(ProtobufCMessage) + t->n_fields * 2 * FIELD_BYTES;
	d->n_fields = (unsigned)t->n_fields;
	d->fields = t->n_fields ? fields : NULL; /* protobuf-c reads the first field unless NULL */
	for (size_t i = 0; i < t->n_fields; i++) {
		if (!field_good(t, i)) {
			m->wrong = "a field of it makes no sense";
			return;
		}
		make_field(m, t, i, &fields[i]);
	}
	make_ranges(m, d);
}

static void make_enum(struct maker *m, size_t at)
{
	const Weft__Reflect__Type *t = m->said->types[at];
	ProtobufCEnumDescriptor *d = &m->enums[at];
	ProtobufCEnumValue *values = take(m, t->n_values, sizeof(*values));

	if (!values)
		return;
	d->magic = PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC;
	d->name = d->short_name = d->c_name = text(m, t->name);
	d->package_name = "";
	d->n_values = (unsigned)t->n_values;
	d->values = values;
	for (size_t i = 0; i < t->n_values; i++) {
		values[i].name = values[i].c_name = text(m, t->values[i]->name);
		values[i].value = t->values[i]->number;
	}
}

static void make_methods(struct maker *m, const char *name)
{
	ProtobufCServiceDescriptor *s = &m->d->service;
	size_t count = m->said->n_methods;
	ProtobufCMethodDescriptor *methods = take(m, count, sizeof(*methods));
	bool *streams = take(m, count, sizeof(*streams));

	if (!methods || !streams)
		return;
	s->magic = PROTOBUF_C__SERVICE_DESCRIPTOR_MAGIC;
	s->name = s->short_name = s->c_name = text(m, name);
	s->package = "";
	s->n_methods = (unsigned)count;
	s->methods = methods;
	m->d->streams = streams;
	for (size_t i = 0; i < count; i++) {
		const Weft__Reflect__Method *from = m->said->methods[i];

		methods[i].name = text(m, from->name);
		methods[i].input = message(m, from->input);
		methods[i].output = message(m, from->output);
		streams[i] = from->streams;
	}
}

static bool too_much(const Weft__Reflect__Description *said)
{
	size_t fields = 0;

	for (size_t i = 0; i < said->n_types && i < TYPES_MAX; i++)
		fields += said->types[i]->n_fields;
	return said->n_types > TYPES_MAX || said->n_methods > TYPES_MAX || fields > FIELDS_MAX;
}

const char *dynamic_open(struct dynamic *d, const char *name,
			 const Weft__Reflect__Description *said)
{
	struct maker m = { .d = d, .said = said };

	memset(d, 0, sizeof(*d));
	if (too_much(said))
		return "it has too many types, fields or methods";
	m.messages = take(&m, said->n_types, sizeof(*m.messages));
	m.enums = take(&m, said->n_types, sizeof(*m.enums));
	if (m.messages && m.enums)
		make_methods(&m, name);
	for (size_t i = 0; i < said->n_types && !m.wrong; i++) {
		if (said->types[i]->is_enum)
			make_enum(&m, i);
		else
			make_message(&m, i);
	}
	if (m.wrong)
		dynamic_close(d);
	return m.wrong;
}

void dynamic_close(struct dynamic *d)
{
	struct piece *next = d->memory;

	while (next) {
		struct piece *piece = next;

		next = piece->next;
		free(piece);
	}
	d->memory = NULL;
}
