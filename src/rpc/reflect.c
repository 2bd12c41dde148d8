/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/reflect.h"

#include <stdlib.h>
#include <string.h>

/* Descriptors, each once: those looked at, and then those still to be looked at. */
struct list {
	const void **at;
	size_t count;
};

struct found {
	struct list messages, enums;
	bool failed; /* for want of memory */
};

/* Append @pointer to @array of @count. */
static bool grow(void *array, size_t count, const void *pointer)
{
	void **at = realloc(*(void **)array, (count + 1) * sizeof(pointer));

	if (!at)
		return false;
	memcpy(&at[count], &pointer, sizeof(pointer));
	*(void **)array = (void *)at;
	return true;
}

static void find(struct found *f, struct list *list, const void *descriptor)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i] == descriptor)
			return;
	if (grow((void *)&list->at, list->count, descriptor))
		list->count++;
	else
		f->failed = true;
}

static void find_all(struct found *f, const ProtobufCServiceDescriptor *service)
{
	for (unsigned i = 0; i < service->n_methods; i++) {
		find(f, &f->messages, service->methods[i].input);
		find(f, &f->messages, service->methods[i].output);
	}
	for (size_t i = 0; i < f->messages.count; i++) {
		const ProtobufCMessageDescriptor *d = f->messages.at[i];

		for (unsigned k = 0; k < d->n_fields; k++) {
			if (d->fields[k].type == PROTOBUF_C_TYPE_MESSAGE)
				find(f, &f->messages, d->fields[k].descriptor);
			else if (d->fields[k].type == PROTOBUF_C_TYPE_ENUM)
				find(f, &f->enums, d->fields[k].descriptor);
		}
	}
}

static char *text(struct found *f, const char *s)
{
	char *copy = strdup(s ? s : "");

	f->failed |= !copy;
	return copy;
}

/* Add a message of @d to the list of @count at @list. */
static void *add(struct found *f, void *list, size_t *count, const ProtobufCMessageDescriptor *d)
{
	ProtobufCMessage *m = malloc(d->sizeof_message);

	if (!m || !grow(list, *count, m)) {
		f->failed = true;
		free(m);
		return NULL;
	}
	protobuf_c_message_init(d, m);
	++*count;
	return m;
}

static void describe_field(struct found *f, Weft__Reflect__Type *t,
			   const ProtobufCFieldDescriptor *from)
{
	Weft__Reflect__Field *to =
		add(f, (void *)&t->fields, &t->n_fields, &weft__reflect__field__descriptor);
	const ProtobufCMessageDescriptor *message = from->descriptor;
	const ProtobufCEnumDescriptor *values = from->descriptor;

	if (!to)
		return;
	to->name = text(f, from->name);
	to->number = from->id;
	to->label = from->label;
	to->type = from->type;
	to->type_name = text(f, from->type == PROTOBUF_C_TYPE_MESSAGE ? message->name
				: from->type == PROTOBUF_C_TYPE_ENUM  ? values->name
								      : "");
	to->packed = from->flags & PROTOBUF_C_FIELD_FLAG_PACKED;
	/* Members of a oneof share the word that says which one is set. */
	if (from->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		to->oneof = from->quantifier_offset;
}

static void describe_message(struct found *f, Weft__Reflect__Description *all,
			     const ProtobufCMessageDescriptor *d)
{
	Weft__Reflect__Type *t =
		add(f, (void *)&all->types, &all->n_types, &weft__reflect__type__descriptor);

	if (!t)
		return;
	t->name = text(f, d->name);
	for (unsigned i = 0; i < d->n_fields; i++)
		describe_field(f, t, &d->fields[i]);
}

static void describe_enum(struct found *f, Weft__Reflect__Description *all,
			  const ProtobufCEnumDescriptor *d)
{
	Weft__Reflect__Type *t =
		add(f, (void *)&all->types, &all->n_types, &weft__reflect__type__descriptor);

	if (!t)
		return;
	t->name = text(f, d->name);
	t->is_enum = true;
	for (unsigned i = 0; i < d->n_values; i++) {
		Weft__Reflect__Value *v = add(f, (void *)&t->values, &t->n_values,
					      &weft__reflect__value__descriptor);

		if (!v)
			return;
		v->name = text(f, d->values[i].name);
		v->number = d->values[i].value;
	}
}

Weft__Reflect__Description *wf_reflect_describe(const struct wf_service_pb *service)
{
	const ProtobufCServiceDescriptor *d = service->service->descriptor;
	Weft__Reflect__Description *all = malloc(sizeof(*all));
	struct found f = { 0 };

	if (!all)
		return NULL;
	weft__reflect__description__init(all);
	find_all(&f, d);
	for (unsigned i = 0; i < d->n_methods; i++) {
		Weft__Reflect__Method *m = add(&f, (void *)&all->methods, &all->n_methods,
					       &weft__reflect__method__descriptor);

		if (!m)
			break;
		m->name = text(&f, d->methods[i].name);
		m->input = text(&f, d->methods[i].input->name);
		m->output = text(&f, d->methods[i].output->name);
		m->streams = service->base.streams(&service->base, (int)i);
	}
	for (size_t i = 0; i < f.messages.count; i++)
		describe_message(&f, all, f.messages.at[i]);
	for (size_t i = 0; i < f.enums.count; i++)
		describe_enum(&f, all, f.enums.at[i]);
	free(f.messages.at);
	free(f.enums.at);
	if (!f.failed)
		return all;
	weft__reflect__description__free_unpacked(all, NULL);
	return NULL;
}
