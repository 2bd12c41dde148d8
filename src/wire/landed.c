/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/landed.h"

#include <errno.h>

void wf_landed_put(struct wf_bytes_writer *w, const struct wf_landed *l, const int64_t *shape)
{
	wf_bytes_put_u64(w, l->serial);
	wf_bytes_put_u64(w, l->number);
	wf_bytes_put_u8(w, l->dtype.code);
	wf_bytes_put_u8(w, l->dtype.bits);
	wf_bytes_put_u16(w, l->dtype.lanes);
	wf_bytes_put_u8(w, l->rank);
	for (unsigned i = 0; i < l->rank; i++)
		wf_bytes_put_u64(w, (uint64_t)shape[i]);
}

void wf_landed_set_serial(uint8_t *note, uint64_t serial)
{
	struct wf_bytes_writer w = wf_bytes_writer(note, sizeof(serial));

	wf_bytes_put_u64(&w, serial);
}

int wf_landed_get(const uint8_t *bytes, size_t count, struct wf_landed *l)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_landed got;

	got.serial = wf_bytes_get_u64(&r);
	got.number = wf_bytes_get_u64(&r);
	got.dtype.code = wf_bytes_get_u8(&r);
	got.dtype.bits = wf_bytes_get_u8(&r);
	got.dtype.lanes = wf_bytes_get_u16(&r);
	got.rank = wf_bytes_get_u8(&r);
	got.shape = wf_bytes_view(&r, got.rank * sizeof(int64_t));
	if (r.bad || wf_bytes_reader_left(&r) || !got.dtype.bits || !got.dtype.lanes ||
	    got.rank > WEFT_RANK_MAX)
		return -EBADMSG;
	*l = got;
	return 0;
}

int64_t wf_landed_dim(const struct wf_landed *l, unsigned index)
{
	return wf_bytes_i64_at(l->shape, index);
}
