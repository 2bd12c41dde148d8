/* SPDX-License-Identifier: BSD-2-Clause */
#include "errors.h"

#include <cerrno>
#include <cmath>
#include <cstring>

[[noreturn]] static void raise(nb::object exception)
{
	PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception.ptr())), exception.ptr());
	throw nb::python_error();
}

static nb::object module_of_errors()
{
	return nb::module_::import_("weft.errors");
}

nb::str text_of(const char *text)
{
	return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text, Py_ssize_t(strlen(text)), "replace"));
}

void refused(int err)
{
	nb::str sentence = text_of(weft_error());

	raise(module_of_errors().attr("_refused")(err, sentence));
}

void failed(const weft_op *op)
{
	raise(module_of_errors().attr("_failed")(int(weft_op_status(op)), text_of(weft_op_message(op)),
						 int(weft_op_executed(op))));
}

void invalid(const char *sentence)
{
	raise(module_of_errors().attr("_refused")(-EINVAL, sentence));
}

uint64_t nanoseconds(nb::handle seconds, uint64_t none)
{
	double number;

	if (seconds.is_none())
		return none;
	number = PyFloat_AsDouble(seconds.ptr());
	if (number == -1 && PyErr_Occurred())
		throw nb::python_error();
	if (std::isnan(number) || number < 0)
		invalid("a time is a number of seconds, 0 or more");
	if (number > 1e9)
		return WEFT_FOREVER;
	return number * 1e9 < 1 ? 1 : uint64_t(number * 1e9);
}
