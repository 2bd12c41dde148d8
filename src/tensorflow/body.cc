/* SPDX-License-Identifier: BSD-2-Clause */
#include "body.h"

namespace weft_tensorflow {

struct weft_tensor body_of(void *data, int64_t *bytes)
{
	struct weft_tensor body = {};

	body.data = data;
	body.device = {WEFT_CPU, 0};
	body.ndim = 1;
	body.dtype = {WEFT_UINT, 8, 1};
	body.shape = bytes;
	return body;
}

size_t body_bytes(const struct weft_tensor *body)
{
	if (!body || body->ndim != 1 || body->dtype.code != WEFT_UINT || body->dtype.bits != 8 ||
	    body->dtype.lanes != 1)
		return 0;
	return static_cast<size_t>(body->shape[0]);
}

}  // namespace weft_tensorflow
