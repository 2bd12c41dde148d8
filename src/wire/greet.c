/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/greet.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "util/bytes.h"
#include "wire/door.pb-c.h"

#define MAGIC_BYTES 4

/* A message as protobuf-c wants it, which points into the struct wf_greet. */
struct draft {
	WfDoor__Message message;
	union {
		WfDoor__Hello hello;
		WfDoor__Refuse refuse;
		WfDoor__Try try;
		WfDoor__Cannot cannot;
		WfDoor__Beat beat;
		WfDoor__Resync resync;
		WfDoor__Goodbye goodbye;
		WfDoor__Same same;
	};
	WfDoor__Rail rails[WF_GREET_RAILS_MAX];
	WfDoor__Rail *rail_list[WF_GREET_RAILS_MAX];
};

/* Packing only reads, but the generated structs know no const. */
static ProtobufCBinaryData lend_bytes(const uint8_t *bytes, size_t count)
{
	return (ProtobufCBinaryData){ count, (uint8_t *)bytes };
}

static char *lend_text(const char *text)
{
	return (char *)text;
}

static void draft_rail(WfDoor__Rail *to, const struct wf_greet_rail *rail)
{
	assert(rail->address_bytes <= WF_GREET_ADDRESS_BYTES);
	wf_door__rail__init(to);
	to->provider = lend_text(rail->provider);
	to->libfabric = rail->libfabric;
	to->protocol = rail->protocol;
	to->protocol_version = rail->protocol_version;
	to->connected = rail->connected;
	to->same_host = rail->same_host;
	to->address = lend_bytes(rail->address, rail->address_bytes);
	to->frame_bytes = rail->frame_bytes;
	to->edition = rail->edition;
}

static void draft_hello(struct draft *d, const struct wf_greet_hello *hello)
{
	WfDoor__Hello *to = &d->hello;

	assert(hello->rail_count <= WF_GREET_RAILS_MAX);
	wf_door__hello__init(to);
	to->wire_min = hello->wire_min;
	to->wire_max = hello->wire_max;
	to->incarnation = lend_bytes(hello->incarnation, sizeof(hello->incarnation));
	to->name = lend_text(hello->name);
	to->address = lend_text(hello->address);
	to->manual = hello->manual;
	to->link = hello->link;
	to->token = hello->token;
	to->record_bytes_max = hello->record_bytes_max;
	to->lost_ns = hello->lost_ns;
	to->resume_link = hello->resume_link;
	to->resume_token = hello->resume_token;
	to->security = lend_text(hello->security);
	to->checksums = hello->checksums;
	to->checksum = hello->checksum;
	to->compressions = hello->compressions;
	to->lanes = hello->lanes;
	to->side = hello->side;
	to->proofs = hello->proofs;
	to->dials = hello->dials;
	to->cipher = hello->cipher;
	for (uint32_t i = 0; i < hello->rail_count; i++) {
		draft_rail(&d->rails[i], &hello->rails[i]);
		d->rail_list[i] = &d->rails[i];
	}
	to->rails = d->rail_list;
	to->n_rails = hello->rail_count;
	d->message.hello = to;
	d->message.what_case = WF_DOOR__MESSAGE__WHAT_HELLO;
}

static void draft_message(struct draft *d, const struct wf_greet *greet)
{
	wf_door__message__init(&d->message);
	switch (greet->kind) {
	case WF_GREET_HELLO:
		draft_hello(d, &greet->hello);
		break;
	case WF_GREET_REFUSE:
		wf_door__refuse__init(&d->refuse);
		d->refuse.status = greet->refuse.status;
		d->refuse.text = lend_text(greet->refuse.text);
		d->message.refuse = &d->refuse;
		d->message.what_case = WF_DOOR__MESSAGE__WHAT_REFUSE;
		break;
	case WF_GREET_TRY:
		wf_door__try__init(&d->try);
		d->try.epoch = greet->try.epoch;
		d->try.mine = greet->try.mine;
		d->try.yours = greet->try.yours;
		d->message.try_ = &d->try;
		d->message.what_case = WF_DOOR__MESSAGE__WHAT_TRY;
		break;
	case WF_GREET_CANNOT:
		wf_door__cannot__init(&d->cannot);
		d->cannot.epoch = greet->try.epoch;
		d->cannot.text = lend_text(greet->try.text);
		d->message.cannot = &d->cannot;
		d->message.what_case = WF_DOOR__MESSAGE__WHAT_CANNOT;
		break;
	case WF_GREET_BEAT:
		wf_door__beat__init(&d->beat);
		d->beat.number = greet->beat.number;
		d->beat.answer = greet->beat.answer;
		d->message.beat = &d->beat;
		d->message.what_case = WF_DOOR__MESSAGE__WHAT_BEAT;
		break;
	case WF_GREET_RESYNC:
		wf_door__resync__init(&d->resync);
		d->resync.epoch = greet->resync.epoch;
		d->resync.received = greet->resync.received;
		d->resync.answer = greet->resync.answer;
		d->message.resync = &d->resync;
		d->message.what_case = WF_DOOR__MESSAGE__WHAT_RESYNC;
		break;
	case WF_GREET_GOODBYE:
		wf_door__goodbye__init(&d->goodbye);
		d->goodbye.text = lend_text(greet->refuse.text);
		d->message.goodbye = &d->goodbye;
		d->message.what_case = WF_DOOR__MESSAGE__WHAT_GOODBYE;
		break;
	case WF_GREET_SAME:
		wf_door__same__init(&d->same);
		d->same.link = greet->same.link;
		d->same.answer = greet->same.answer;
		if (greet->same.proves)
			d->same.proof = lend_bytes(greet->same.proof, WF_GREET_PROOF_BYTES);
		d->message.same = &d->same;
		d->message.what_case = WF_DOOR__MESSAGE__WHAT_SAME;
		break;
	}
}

int wf_greet_put(const struct wf_greet *greet, uint8_t *bytes)
{
	struct wf_bytes_writer w = wf_bytes_writer(bytes, WF_GREET_PREFIX_BYTES);
	struct draft draft;
	size_t count;

	draft_message(&draft, greet);
	count = wf_door__message__get_packed_size(&draft.message);
	if (count > WF_GREET_BYTES_MAX - WF_GREET_PREFIX_BYTES)
		return -EMSGSIZE;
	wf_bytes_put(&w, WF_GREET_MAGIC, MAGIC_BYTES);
	wf_bytes_put_u32(&w, (uint32_t)count);
	wf_door__message__pack(&draft.message, bytes + WF_GREET_PREFIX_BYTES);
	return (int)(WF_GREET_PREFIX_BYTES + count);
}

int wf_greet_length(const uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	uint32_t length;

	if (memcmp(bytes, WF_GREET_MAGIC, WF_MIN(count, (size_t)MAGIC_BYTES)) != 0)
		return -EBADMSG;
	if (count < WF_GREET_PREFIX_BYTES)
		return 0;
	wf_bytes_view(&r, MAGIC_BYTES);
	length = wf_bytes_get_u32(&r);
	if (length > WF_GREET_BYTES_MAX - WF_GREET_PREFIX_BYTES)
		return -EMSGSIZE;
	return (int)(WF_GREET_PREFIX_BYTES + length);
}

/* protobuf-c gives NULL for bad bytes and for no memory: @data, a bool, tells them apart. */
static void *heap_alloc(void *data, size_t bytes)
{
	bool *exhausted = data;
	void *memory = malloc(bytes);

	if (!memory)
		*exhausted = true;
	return memory;
}

static void heap_free(void *data, void *memory)
{
	(void)data;
	free(memory);
}

/* Copy a whole name or address, or fail: a part of a name would mean another one. */
static int get_name(const char *what, const char *from, char *to, size_t room, struct wf_error *e)
{
	size_t count = strlen(from);

	if (count >= room)
		return wf_error_set(e, -EBADMSG, "its %s has %zu bytes, %zu are allowed", what,
				    count, room - 1);
	memcpy(to, from, count + 1);
	return 0;
}

/* A sentence for people is cut, between two characters of UTF-8. */
static void get_text(const char *from, char *to, size_t room)
{
	size_t count = strlen(from);

	if (count >= room) {
		count = room - 1;
		while (count && ((uint8_t)from[count] & 0xc0) == 0x80)
			count--;
	}
	memcpy(to, from, count);
	to[count] = '\0';
}

static int get_bytes(const char *what, const ProtobufCBinaryData *from, uint8_t *to, size_t count,
		     struct wf_error *e)
{
	if (from->len != count)
		return wf_error_set(e, -EBADMSG, "its %s has %zu bytes instead of %zu", what,
				    from->len, count);
	memcpy(to, from->data, count);
	return 0;
}

static int get_rail(const WfDoor__Rail *from, struct wf_greet_rail *rail, struct wf_error *e)
{
	if (get_name("provider", from->provider, rail->provider, sizeof(rail->provider), e))
		return -EBADMSG;
	if (from->address.len > sizeof(rail->address))
		return wf_error_set(e, -EBADMSG, "its %s rail has an address of %zu bytes, %zu are"
				    " allowed", rail->provider, from->address.len,
				    sizeof(rail->address));
	if (from->address.len)
		memcpy(rail->address, from->address.data, from->address.len);
	rail->address_bytes = (uint32_t)from->address.len;
	rail->libfabric = from->libfabric;
	rail->protocol = from->protocol;
	rail->protocol_version = from->protocol_version;
	rail->frame_bytes = from->frame_bytes;
	rail->edition = from->edition;
	rail->connected = from->connected;
	rail->same_host = from->same_host;
	return 0;
}

static int get_hello(const WfDoor__Hello *from, struct wf_greet_hello *hello, struct wf_error *e)
{
	if (get_bytes("incarnation", &from->incarnation, hello->incarnation,
		      sizeof(hello->incarnation), e) ||
	    get_name("name", from->name, hello->name, sizeof(hello->name), e) ||
	    get_name("address", from->address, hello->address, sizeof(hello->address), e) ||
	    get_name("security", from->security, hello->security, sizeof(hello->security), e))
		return -EBADMSG;
	if (from->proofs > WF_GREET_PROOFS_MAX)
		return wf_error_set(e, -EBADMSG, "it announces %u proofs, %d are allowed",
				    from->proofs, WF_GREET_PROOFS_MAX);
	if (from->n_rails > WF_GREET_RAILS_MAX)
		return wf_error_set(e, -EBADMSG, "it has %zu rails, %d are allowed", from->n_rails,
				    WF_GREET_RAILS_MAX);
	for (size_t i = 0; i < from->n_rails; i++)
		if (get_rail(from->rails[i], &hello->rails[i], e))
			return -EBADMSG;
	hello->rail_count = (uint32_t)from->n_rails;
	hello->wire_min = from->wire_min;
	hello->wire_max = from->wire_max;
	hello->manual = from->manual;
	hello->link = from->link;
	hello->token = from->token;
	hello->resume_link = from->resume_link;
	hello->resume_token = from->resume_token;
	hello->lost_ns = from->lost_ns;
	hello->record_bytes_max = from->record_bytes_max;
	hello->checksums = from->checksums;
	hello->checksum = from->checksum;
	hello->compressions = from->compressions;
	hello->lanes = from->lanes;
	hello->side = from->side;
	hello->proofs = from->proofs;
	hello->dials = from->dials;
	hello->cipher = from->cipher;
	return 0;
}

static int get_same(const WfDoor__Same *from, struct wf_greet *greet, struct wf_error *e)
{
	greet->kind = WF_GREET_SAME;
	greet->same.link = from->link;
	greet->same.answer = from->answer;
	greet->same.proves = from->proof.len;
	return from->proof.len ? get_bytes("proof", &from->proof, greet->same.proof,
					   sizeof(greet->same.proof), e)
			       : 0;
}

static int get_message(const WfDoor__Message *from, struct wf_greet *greet, struct wf_error *e)
{
	switch (from->what_case) {
	case WF_DOOR__MESSAGE__WHAT_HELLO:
		greet->kind = WF_GREET_HELLO;
		return get_hello(from->hello, &greet->hello, e);
	case WF_DOOR__MESSAGE__WHAT_REFUSE:
		greet->kind = WF_GREET_REFUSE;
		greet->refuse.status = from->refuse->status;
		get_text(from->refuse->text, greet->refuse.text, sizeof(greet->refuse.text));
		return 0;
	case WF_DOOR__MESSAGE__WHAT_TRY:
		greet->kind = WF_GREET_TRY;
		greet->try.epoch = from->try_->epoch;
		greet->try.mine = from->try_->mine;
		greet->try.yours = from->try_->yours;
		return 0;
	case WF_DOOR__MESSAGE__WHAT_CANNOT:
		greet->kind = WF_GREET_CANNOT;
		greet->try.epoch = from->cannot->epoch;
		get_text(from->cannot->text, greet->try.text, sizeof(greet->try.text));
		return 0;
	case WF_DOOR__MESSAGE__WHAT_BEAT:
		greet->kind = WF_GREET_BEAT;
		greet->beat.number = from->beat->number;
		greet->beat.answer = from->beat->answer;
		return 0;
	case WF_DOOR__MESSAGE__WHAT_RESYNC:
		greet->kind = WF_GREET_RESYNC;
		greet->resync.epoch = from->resync->epoch;
		greet->resync.received = from->resync->received;
		greet->resync.answer = from->resync->answer;
		return 0;
	case WF_DOOR__MESSAGE__WHAT_GOODBYE:
		greet->kind = WF_GREET_GOODBYE;
		get_text(from->goodbye->text, greet->refuse.text, sizeof(greet->refuse.text));
		return 0;
	case WF_DOOR__MESSAGE__WHAT_SAME:
		return get_same(from->same, greet, e);
	default:
		return wf_error_set(e, -EBADMSG, "it is of no kind that this version knows");
	}
}

int wf_greet_get(const uint8_t *bytes, size_t count, struct wf_greet *greet, struct wf_error *e)
{
	int length = wf_greet_length(bytes, count);
	bool exhausted = false;
	ProtobufCAllocator heap = { heap_alloc, heap_free, &exhausted };
	struct wf_greet got = { 0 };
	WfDoor__Message *message;
	int err;

	if (length == -EMSGSIZE)
		return wf_error_set(e, -EMSGSIZE, "it is longer than %d bytes", WF_GREET_BYTES_MAX);
	if (length <= 0 || (size_t)length != count)
		return wf_error_set(e, -EBADMSG, "it is not one whole message");
	message = wf_door__message__unpack(&heap, count - WF_GREET_PREFIX_BYTES,
					   bytes + WF_GREET_PREFIX_BYTES);
	if (!message && exhausted)
		return wf_error_set(e, -ENOMEM, "no memory to decode it");
	if (!message)
		return wf_error_set(e, -EBADMSG, "its encoding is broken");
	err = get_message(message, &got, e);
	wf_door__message__free_unpacked(message, &heap);
	if (err)
		return err;
	*greet = got;
	return 0;
}

struct wf_greet_hello *wf_greet_keep_hello(const struct wf_greet_hello *hello)
{
	struct wf_greet_hello *kept = malloc(wf_greet_hello_bytes(hello));

	if (kept)
		memcpy(kept, hello, wf_greet_hello_bytes(hello));
	return kept;
}
