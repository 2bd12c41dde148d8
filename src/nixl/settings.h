/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: the parameters that a backend may be made with, and the node that they ask for.  What
 * none of them says weft's environment decides.
 *
 * Threads: any.
 */
#ifndef WEFT_NIXL_SETTINGS_H
#define WEFT_NIXL_SETTINGS_H

#include <memory>

#include "nixl.h"
#include "node.h"

namespace weft_nixl {

/* Returns the parameters and their defaults, which are empty. */
Parameters settings_defaults();

/*
 * Open the node of @agent as @parameters say.  A failure is logged; so are parameters that there
 * are not, which change nothing.
 */
Status settings_open_node(const std::string &agent, const Parameters &parameters,
			  std::shared_ptr<Node> *node);

}  // namespace weft_nixl

#endif
