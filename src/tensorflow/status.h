/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statuses: outcomes of weft as TensorFlow's, which have the same numbers.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_STATUS_H
#define WEFT_TENSORFLOW_STATUS_H

#include <string>

#include <absl/status/status.h>
#include <weft/base.h>

namespace weft_tensorflow {

/* Returns @code with the sentence "weft: @what: @why". */
absl::Status status_of(enum weft_status code, const std::string &what, const char *why);

/* Returns the status of weft's function that has just failed in this thread with @err. */
absl::Status status_of_error(int err, const std::string &what);

/* Returns the status of weft that @status is told as. */
enum weft_status status_to_weft(const absl::Status &status);

}  // namespace weft_tensorflow

#endif
