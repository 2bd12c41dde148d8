/* SPDX-License-Identifier: BSD-2-Clause */
/* Which messages of calls are compressed: as was asked, and as the peer understands. */
#include "api/compression.h"

#include <errno.h>

#include "api/check.h"
#include "api/desk.h"
#include "api/last.h"
#include "api/op.h"
#include "api/stream.h"

int wf_compression_check(enum weft_compression compression)
{
	if ((unsigned)compression > WEFT_ZSTD)
		return wf_last_set(-EINVAL, "there is no compression %d", (int)compression);
	return 0;
}

int weft_call_compress(void *closure_data, enum weft_compression compression)
{
	struct wf_served *served = closure_data;
	int err = WF_NEED(closure_data);

	if (!err)
		err = wf_check_node(wf_desk_of(served)->node);
	if (!err)
		err = wf_compression_check(compression);
	if (!err)
		served->compression = (uint8_t)compression;
	return err;
}

int weft_call_compressed(void *closure_data)
{
	const struct wf_served *served = closure_data;

	return WF_NEED(closure_data) ? -EINVAL : served->was_compressed;
}

int weft_stream_compress(struct weft_stream *stream, enum weft_compression compression)
{
	int err = WF_NEED(stream);

	if (!err && stream->owner)
		err = wf_check_node(stream->owner);
	if (!err)
		err = wf_compression_check(compression);
	if (!err)
		stream->compression = compression;
	return err;
}

int weft_op_compressed(const struct weft_op *op)
{
	if (WF_NEED(op))
		return -EINVAL;
	if (op->class->kind == WF_OP_CALL)
		return op->call.reply_compressed;
	return op->class->kind == WF_OP_READ && weft_op_ended(op) && op->read.compressed;
}
