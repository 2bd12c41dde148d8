/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths, counters and dumps, as Python has them.
 */
#ifndef WEFT_PYTHON_DESCRIBE_H
#define WEFT_PYTHON_DESCRIBE_H

#include <memory>
#include "shared.h"

nb::dict path_of(const weft_op *op);
nb::dict counters_of(weft_node *node);
nb::str dump_of(const std::shared_ptr<Shared> &shared);

#endif
