/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packing of records into a frame, and out of one.
 *
 * A record is 12 bytes of header (u8 type, u8 flags, u16 zero, u32 bytes here,
 * u32 bytes in all) and its bytes.  A record that does not fit continues in the
 * next frames of the link: all parts but the last have MORE, all but the first
 * CONTINUED, and the parts of one record follow each other with nothing
 * between.  The total is known from the first part, and bounded before memory
 * is taken.
 *
 * Pure: no I/O, no clock; only wf_assembly allocates.
 */
#ifndef WF_PACK_H
#define WF_PACK_H

#include "wire/frame.h"

#define WF_RECORD_HEADER_BYTES 12

enum wf_record_flag { WF_RECORD_MORE = 1, WF_RECORD_CONTINUED = 2 };

struct wf_record {
	uint8_t type;
	uint8_t flags;
	uint32_t count; /* bytes in this part */
	uint32_t total; /* bytes of the whole record */
	const uint8_t *bytes; /* inside the frame */
};

/* A frame that is being filled.  Borrows its bytes until wf_pack_end. */
struct wf_pack {
	uint8_t *frame;
	struct wf_bytes_writer body;
	uint16_t record_count;
};

/* Begin @frame.  @capacity is at least 256, so that any record makes progress. */
void wf_pack_begin(struct wf_pack *p, uint8_t *frame, size_t capacity);

/* Payload bytes that one more record may have in this frame; 0 if not even a header fits. */
size_t wf_pack_room(const struct wf_pack *p);

/*
 * Append as much as fits of a record whose bytes are @head then @body, from
 * byte *@done on, and move *@done.  0: the record is complete.  1: more is to
 * follow in the next frame.  -ENOSPC: nothing fits here, nothing changed.
 * A part of fewer than 64 bytes is not begun in the rest of a frame.
 */
int wf_pack_add(struct wf_pack *p, uint8_t type, const void *head, size_t head_bytes,
		const void *body, size_t body_bytes, size_t *done);

/* Write the header, with counts filled in.  Returns the frame's length. */
size_t wf_pack_end(struct wf_pack *p, struct wf_frame *header);

struct wf_unpack {
	struct wf_bytes_reader body;
	uint16_t left;
};

/* Begin to unpack a message of @count bytes.  -EBADMSG. */
int wf_unpack_begin(struct wf_unpack *u, const uint8_t *frame, size_t count,
		    struct wf_frame *header);

/*
 * Take the next record: 1, or 0 at the end.  -EBADMSG: lengths, flags or count disagree, or bytes
 * are left over.
 */
int wf_unpack_next(struct wf_unpack *u, struct wf_record *record);

/* A record that came in parts. */
struct wf_assembly {
	uint8_t *bytes;
	uint32_t count, total;
	uint32_t frames; /* frames that parts came in; 0: the record is whole in one */
	uint8_t type;
	bool open;
};

/*
 * Take one part.  1: the record is whole: @whole describes it, in place if it
 * came in one part, else in the assembly's memory, until the next call.
 * 0: more is to come.  -EBADMSG: not the part that must follow.  -EMSGSIZE:
 * total above @total_max.  -ENOMEM: as if the part had not come; offer it again.
 */
int wf_assembly_add(struct wf_assembly *a, const struct wf_record *part, uint32_t total_max,
		    struct wf_record *whole);

/* Take back @part, the last one, which made a record whole that can't be used yet. */
void wf_assembly_undo(struct wf_assembly *a, const struct wf_record *part);
void wf_assembly_fini(struct wf_assembly *a);

#endif
