/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Letters: notifications that belong to no transfer, and that nobody waits for.
 *
 * Threads: any.
 */
#ifndef WEFT_NIXL_LETTER_H
#define WEFT_NIXL_LETTER_H

#include <memory>
#include <string>

#include "connection.h"

namespace weft_nixl {

/*
 * Send @packed, a notification as it travels, again and again while the other agent has no room for
 * it and there is time.  SUCCESS: it is on its way; if it does not arrive the log says so.
 */
Status letter_send(std::shared_ptr<Connection> connection, std::string packed);

}  // namespace weft_nixl

#endif
