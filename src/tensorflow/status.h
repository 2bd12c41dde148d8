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

/*
 * Returns what goes beside @status to another task: TensorFlow's payloads, which say whether an
 * error follows from another one.
 */
std::string status_details(const absl::Status &status);

/* Add the @bytes of details that came beside @status. */
void status_add_details(absl::Status *status, const void *details, size_t bytes);

/* Returns the status of weft that @status is told as. */
enum weft_status status_to_weft(const absl::Status &status);

}  // namespace weft_tensorflow

#endif
