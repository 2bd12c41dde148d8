/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bodies: the bytes of a tensor, as they go beside a message: one row of them, without a type, for
 * the message says what they are.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_BODY_H
#define WEFT_TENSORFLOW_BODY_H

#include <cstddef>
#include <cstdint>

#include <weft/weft.h>

namespace weft_tensorflow {

/* Returns the body of @bytes at @data.  Borrows both. */
struct weft_tensor body_of(void *data, int64_t *bytes);

/* Returns the bytes of @body, which a peer has sent; 0: it is NULL, or no body. */
size_t body_bytes(const struct weft_tensor *body);

}  // namespace weft_tensorflow

#endif
