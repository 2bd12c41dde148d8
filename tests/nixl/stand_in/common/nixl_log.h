/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for NIXL's log, whose header needs Abseil: tests/nixl/interface.cc logs nothing.
 */
#ifndef WEFT_TESTS_NIXL_LOG_H
#define WEFT_TESTS_NIXL_LOG_H

#include <iostream>

#define NIXL_ERROR std::cerr
#define NIXL_ASSERT(condition) ((void)(condition))

#endif
