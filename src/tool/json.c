/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/json.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 100 /* messages nested in messages */
#define FLOAT_MAX 3.4028235e38 /* FLT_MAX as it is usually written, which is a little more */
#define EXACT_MAX 9007199254740992.0 /* 2^53: below it a double is the number that was written */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t element_bytes(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return 4;
	}
}

/* Messages to JSON. */

static cJSON *base64_of(const ProtobufCBinaryData *data)
{
	char *text = malloc(data->len / 3 * 4 + 5), *at = text;
	cJSON *json;

	if (!text)
		return NULL;
	for (size_t i = 0; i < data->len; i += 3) {
		size_t left = data->len - i;
		uint32_t bits = (uint32_t)data->data[i] << 16;

		bits |= left > 1 ? (uint32_t)data->data[i + 1] << 8 : 0;
		bits |= left > 2 ? data->data[i + 2] : 0;
		*at++ = alphabet[bits >> 18 & 63];
		*at++ = alphabet[bits >> 12 & 63];
		*at++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
		*at++ = left > 2 ? alphabet[bits & 63] : '=';
	}
	*at = '\0';
	json = cJSON_CreateString(text);
	free(text);
	return json;
}

/* Write as many digits as give the same number when read: cJSON itself leaves out the last. */
static cJSON *real_of(double value, bool is_float)
{
	int digits = is_float ? FLT_DIG : DBL_DIG;
	char text[40];
	double back;

	if (isnan(value))
		return cJSON_CreateString("NaN");
	if (isinf(value))
		return cJSON_CreateString(value > 0 ? "Infinity" : "-Infinity");
	do {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		back = strtod(text, NULL);
	} while ((is_float ? (double)(float)back : back) != value &&
		 digits++ < (is_float ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG));
	return cJSON_CreateRaw(text);
}

static cJSON *signed_of(int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return cJSON_CreateString(text);
}

static cJSON *unsigned_of(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_CreateString(text);
}

static cJSON *enum_of(const ProtobufCEnumDescriptor *d, int32_t value)
{
	for (unsigned i = 0; i < d->n_values; i++)
		if (d->values[i].value == value)
			return cJSON_CreateString(d->values[i].name);
	return cJSON_CreateNumber(value);
}

/* Convert the element of @f at @at. */
static cJSON *element_of(const ProtobufCFieldDescriptor *f, const void *at)
{
	union {
		int32_t i32;
		uint32_t u32;
		int64_t i64;
		uint64_t u64;
		float f;
		double d;
		const char *text;
		const ProtobufCMessage *message;
		ProtobufCBinaryData bytes;
	} v = { 0 };
	protobuf_c_boolean truth;

	if (f->type == PROTOBUF_C_TYPE_BOOL) {
		memcpy(&truth, at, sizeof(truth));
		return cJSON_CreateBool(truth);
	}
	memcpy(&v, at, element_bytes(f->type));
	switch (f->type) {
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return cJSON_CreateNumber(v.u32);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return signed_of(v.i64);
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return unsigned_of(v.u64);
	case PROTOBUF_C_TYPE_FLOAT:
		return real_of((double)v.f, true);
	case PROTOBUF_C_TYPE_DOUBLE:
		return real_of(v.d, false);
	case PROTOBUF_C_TYPE_ENUM:
		return enum_of(f->descriptor, v.i32);
	case PROTOBUF_C_TYPE_STRING:
		return cJSON_CreateString(v.text ? v.text : "");
	case PROTOBUF_C_TYPE_BYTES:
		return base64_of(&v.bytes);
	case PROTOBUF_C_TYPE_MESSAGE:
		return json_of(v.message);
	default:
		return cJSON_CreateNumber(v.i32);
	}
}

static cJSON *list_of(const ProtobufCFieldDescriptor *f, const void *at, size_t count)
{
	cJSON *list = cJSON_CreateArray(), *element;
	const char *elements;

	memcpy(&elements, at, sizeof(elements));
	for (size_t i = 0; list && i < count; i++) {
		element = element_of(f, elements + i * element_bytes(f->type));
		if (!element) {
			cJSON_Delete(list);
			return NULL;
		}
		cJSON_AddItemToArray(list, element);
	}
	return list;
}

/* Tell whether a field is shown: zeros that proto3 leaves out are, missing messages are not. */
static bool is_there(const ProtobufCFieldDescriptor *f, const void *member, const void *quantifier)
{
	const void *pointer = NULL;
	uint32_t which;
	protobuf_c_boolean has;

	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		memcpy(&which, quantifier, sizeof(which));
		return which == f->id;
	}
	if (f->type == PROTOBUF_C_TYPE_MESSAGE ||
	    (f->type == PROTOBUF_C_TYPE_STRING && f->label == PROTOBUF_C_LABEL_OPTIONAL)) {
		memcpy(&pointer, member, sizeof(pointer));
		return pointer;
	}
	if (f->label != PROTOBUF_C_LABEL_OPTIONAL)
		return true;
	memcpy(&has, quantifier, sizeof(has));
	return has;
}

cJSON *json_of(const ProtobufCMessage *message)
{
	cJSON *json = cJSON_CreateObject(), *value;

	for (unsigned i = 0; json && i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &message->descriptor->fields[i];
		const char *member = (const char *)message + f->offset;
		const char *quantifier = (const char *)message + f->quantifier_offset;
		bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
		size_t count = 0;

		if (repeated)
			memcpy(&count, quantifier, sizeof(count));
		if (repeated ? !count : !is_there(f, member, quantifier))
			continue;
		value = repeated ? list_of(f, member, count) : element_of(f, member);
		if (!value) {
			cJSON_Delete(json);
			return NULL;
		}
		cJSON_AddItemToObject(json, f->name, value);
	}
	return json;
}

/* JSON to messages. */

struct reading {
	char *wrong;
	unsigned depth;
};

static bool bad(const struct reading *r, const ProtobufCFieldDescriptor *f, const char *what)
{
	snprintf(r->wrong, JSON_WRONG_BYTES, "%.80s is not %s", f->name, what);
	return false;
}

static int sextet(char c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;

	if (c == '-' || c == '_')
		return c == '-' ? 62 : 63;
	return at ? (int)(at - alphabet) : -1;
}

/*
 * Padding may be left out; padding that is there must be right.  -EINVAL: @text is no base64.
 * -ENOMEM.
 */
static int read_base64(const char *text, ProtobufCBinaryData *data)
{
	size_t bytes = strlen(text), count = bytes;
	uint32_t bits = 0;
	unsigned have = 0;

	while (count && text[count - 1] == '=')
		count--;
	if (count % 4 == 1 || (count != bytes && (bytes % 4 || bytes - count > 2)))
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (sextet(text[i]) < 0)
			return -EINVAL;
	data->len = 0;
	data->data = malloc(count + 1);
	if (!data->data)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		bits = bits << 6 | (uint32_t)sextet(text[i]);
		have += 6;
		if (have >= 8) {
			have -= 8;
			data->data[data->len++] = (uint8_t)(bits >> have);
		}
	}
	return 0;
}

/* Read a whole number, from a number or from a string: digits and perhaps a sign. */
static bool read_whole(const cJSON *json, bool is_signed, int bits, uint64_t *value)
{
	char text[40], *end;
	const char *from = cJSON_GetStringValue(json), *digits;
	int64_t number;

	if (cJSON_IsNumber(json)) {
		if (!(fabs(json->valuedouble) < EXACT_MAX) ||
		    json->valuedouble != floor(json->valuedouble))
			return false;
		snprintf(text, sizeof(text), "%.0f", json->valuedouble + 0.0); /* -0 becomes 0 */
		from = text;
	}
	if (!from)
		return false;
	digits = is_signed && *from == '-' ? from + 1 : from;
	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	if (is_signed) {
		number = strtoll(from, &end, 10);
		*value = (uint64_t)number;
		return !errno && !*end && (bits == 64 || (number >= INT32_MIN && number <= INT32_MAX));
	}
	*value = strtoull(from, &end, 10);
	return !errno && !*end && (bits == 64 || *value <= UINT32_MAX);
}

static bool read_real(const cJSON *json, double max, double *value)
{
	const char *text = cJSON_GetStringValue(json);

	if (cJSON_IsNumber(json)) {
		*value = json->valuedouble;
		return fabs(*value) <= max;
	}
	*value = !text ? 0 : !strcmp(text, "NaN") ? (double)NAN
		     : *text == '-'		  ? -(double)INFINITY
						  : (double)INFINITY;
	return text && (!strcmp(text, "NaN") || !strcmp(text, "Infinity") ||
			!strcmp(text, "-Infinity"));
}

static bool read_enum(const cJSON *json, const ProtobufCEnumDescriptor *d, uint64_t *value)
{
	const char *name = cJSON_GetStringValue(json);

	for (unsigned i = 0; name && i < d->n_values; i++) {
		if (!strcmp(d->values[i].name, name)) {
			*value = (uint64_t)(int64_t)d->values[i].value;
			return true;
		}
	}
	return cJSON_IsNumber(json) && read_whole(json, true, 32, value);
}

static ProtobufCMessage *read_message(struct reading *r, const ProtobufCMessageDescriptor *d,
				      const cJSON *json);

/* Read a string, bytes or a message.  false: r->wrong says why. */
static bool read_pointer(struct reading *r, const ProtobufCFieldDescriptor *f, const cJSON *json,
			 void *at)
{
	const char *text = cJSON_GetStringValue(json);
	ProtobufCBinaryData data;
	void *pointer;
	int err;

	if (f->type == PROTOBUF_C_TYPE_BYTES) {
		err = text ? read_base64(text, &data) : -EINVAL;
		if (err)
			return bad(r, f, err == -ENOMEM ? "small enough" : "bytes in base64");
		memcpy(at, &data, sizeof(data));
		return true;
	}
	if (f->type == PROTOBUF_C_TYPE_STRING && !text)
		return bad(r, f, "a string");
	pointer = f->type == PROTOBUF_C_TYPE_STRING ? (void *)strdup(text)
						    : (void *)read_message(r, f->descriptor, json);
	if (!pointer && f->type == PROTOBUF_C_TYPE_STRING)
		return bad(r, f, "small enough");
	memcpy(at, &pointer, sizeof(pointer));
	return pointer;
}

static bool read_element(struct reading *r, const ProtobufCFieldDescriptor *f, const cJSON *json,
			 void *at)
{
	size_t bytes = element_bytes(f->type);
	bool is_signed = false;
	uint64_t whole = 0;
	uint32_t half;
	double real;
	float single;

	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return read_pointer(r, f, json, at);
	case PROTOBUF_C_TYPE_BOOL:
		if (!cJSON_IsBool(json))
			return bad(r, f, "true or false");
		memcpy(at, &(protobuf_c_boolean){ cJSON_IsTrue(json) }, bytes);
		return true;
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_DOUBLE:
		if (!read_real(json, f->type == PROTOBUF_C_TYPE_FLOAT ? FLOAT_MAX : DBL_MAX, &real))
			return bad(r, f, "a number that fits");
		single = (float)real;
		memcpy(at, f->type == PROTOBUF_C_TYPE_FLOAT ? (void *)&single : (void *)&real, bytes);
		return true;
	case PROTOBUF_C_TYPE_ENUM:
		if (!read_enum(json, f->descriptor, &whole))
			return bad(r, f, "a value of its enumeration");
		break;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		is_signed = true;
		/* fall through */
	default:
		if (!read_whole(json, is_signed, (int)bytes * 8, &whole))
			return bad(r, f, "a whole number that fits, in quotes if it is long");
		break;
	}
	half = (uint32_t)whole;
	memcpy(at, bytes == 4 ? (void *)&half : (void *)&whole, bytes);
	return true;
}

static bool read_list(struct reading *r, const ProtobufCFieldDescriptor *f, const cJSON *json,
		      char *member, char *quantifier)
{
	size_t bytes = element_bytes(f->type), count = 0;
	size_t length = (size_t)cJSON_GetArraySize(json);
	char *elements;
	const cJSON *at;

	if (!cJSON_IsArray(json))
		return bad(r, f, "a list");
	elements = calloc(length + 1, bytes);
	if (!elements)
		return bad(r, f, "small enough");
	memcpy(member, &elements, sizeof(elements));
	cJSON_ArrayForEach(at, json) {
		if (!read_element(r, f, at, elements + count * bytes))
			return false;
		count++;
		memcpy(quantifier, &count, sizeof(count)); /* elements so far get freed with it */
	}
	return true;
}

static bool read_field(struct reading *r, const ProtobufCFieldDescriptor *f, const cJSON *json,
		       ProtobufCMessage *m)
{
	char *member = (char *)m + f->offset;
	char *quantifier = (char *)m + f->quantifier_offset;
	uint32_t which;

	if (cJSON_IsNull(json))
		return true;
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return read_list(r, f, json, member, quantifier);
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		memcpy(&which, quantifier, sizeof(which));
		if (which)
			return bad(r, f, "the only one of its kind");
	}
	if (!read_element(r, f, json, member))
		return false;
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		memcpy(quantifier, &f->id, sizeof(f->id));
	else if (f->label == PROTOBUF_C_LABEL_OPTIONAL && f->type != PROTOBUF_C_TYPE_STRING &&
		 f->type != PROTOBUF_C_TYPE_MESSAGE)
		memcpy(quantifier, &(protobuf_c_boolean){ 1 }, sizeof(protobuf_c_boolean));
	return true;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *d,
						  const char *name)
{
	for (unsigned i = 0; i < d->n_fields; i++)
		if (!strcmp(d->fields[i].name, name))
			return &d->fields[i];
	return NULL;
}

static bool read_fields(struct reading *r, const ProtobufCMessageDescriptor *d,
			const cJSON *json, ProtobufCMessage *m)
{
	const cJSON *at;

	cJSON_ArrayForEach(at, json) {
		const ProtobufCFieldDescriptor *f = find_field(d, at->string);

		if (!f) {
			snprintf(r->wrong, JSON_WRONG_BYTES, "a %.80s has no field %.80s", d->name,
				 at->string);
			return false;
		}
		if (cJSON_GetObjectItemCaseSensitive(json, at->string) != at)
			return bad(r, f, "there only once");
		if (!read_field(r, f, at, m))
			return false;
	}
	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];

		at = cJSON_GetObjectItemCaseSensitive(json, f->name);
		if (f->label == PROTOBUF_C_LABEL_REQUIRED && (!at || cJSON_IsNull(at)))
			return bad(r, f, "there, and must be");
	}
	return true;
}

static ProtobufCMessage *read_message(struct reading *r, const ProtobufCMessageDescriptor *d,
				      const cJSON *json)
{
	ProtobufCMessage *m;

	if (!cJSON_IsObject(json) || r->depth == DEPTH_MAX) {
		snprintf(r->wrong, JSON_WRONG_BYTES, "a %.80s is an object in braces%s", d->name,
			 r->depth == DEPTH_MAX ? ", not so deep in others" : "");
		return NULL;
	}
	m = calloc(1, d->sizeof_message);
	if (!m) {
		snprintf(r->wrong, JSON_WRONG_BYTES, "there is no memory for a %.80s", d->name);
		return NULL;
	}
	m->descriptor = d;
	r->depth++;
	if (!read_fields(r, d, json, m)) {
		protobuf_c_message_free_unpacked(m, NULL);
		return NULL;
	}
	r->depth--;
	return m;
}

ProtobufCMessage *json_read(const ProtobufCMessageDescriptor *descriptor, const cJSON *json,
			    char wrong[JSON_WRONG_BYTES])
{
	struct reading r = { .wrong = wrong };

	wrong[0] = '\0';
	return read_message(&r, descriptor, json);
}
