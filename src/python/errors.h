/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of weft as exceptions of Python, which weft/errors.py defines.
 */
#ifndef WEFT_PYTHON_ERRORS_H
#define WEFT_PYTHON_ERRORS_H

#include <nanobind/nanobind.h>
#include <weft/weft.h>

namespace nb = nanobind;

/* @text for Python, also where it was cut within a character. */
nb::str text_of(const char *text);

/* Raise what a function of weft has refused with the negative code @err; weft_error() has the sentence. */
[[noreturn]] void refused(int err);

/* Raise how @op has failed. */
[[noreturn]] void failed(const weft_op *op);

/* Raise @sentence as what a function of weft would have refused with -EINVAL. */
[[noreturn]] void invalid(const char *sentence);

inline void check(int err)
{
	if (err < 0)
		refused(err);
}

/* Deadline of an operation, or a limit of waiting, in seconds; None: @none. */
uint64_t nanoseconds(nb::handle seconds, uint64_t none);

#endif
