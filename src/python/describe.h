/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths, counters and dumps, as Python has them.
 */
#ifndef WEFT_PYTHON_DESCRIBE_H
#define WEFT_PYTHON_DESCRIBE_H

#include <nanobind/nanobind.h>
#include <weft/weft.h>

namespace nb = nanobind;

nb::dict path_of(const weft_op *op);
nb::dict counters_of(weft_node *node);
nb::str dump_of(weft_node *node);

#endif
