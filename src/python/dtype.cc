/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of dtypes: NumPy's words, formats of the buffer protocol, and DLPack's codes.
 */
#include <cstring>
#include <string>

#include "array.h"
#include "errors.h"

static const struct {
	const char *name;
	const char *format; // of struct; NULL: there is none
	uint8_t code, bits;
} rows[] = {
	{ "float32", "f", WEFT_FLOAT, 32 },    { "float64", "d", WEFT_FLOAT, 64 },
	{ "float16", "e", WEFT_FLOAT, 16 },    { "bfloat16", nullptr, WEFT_BFLOAT, 16 },
	{ "int8", "b", WEFT_INT, 8 },	       { "int16", "h", WEFT_INT, 16 },
	{ "int32", "i", WEFT_INT, 32 },	       { "int64", "q", WEFT_INT, 64 },
	{ "uint8", "B", WEFT_UINT, 8 },	       { "uint16", "H", WEFT_UINT, 16 },
	{ "uint32", "I", WEFT_UINT, 32 },      { "uint64", "Q", WEFT_UINT, 64 },
	{ "bool", "?", WEFT_BOOL, 8 },	       { "complex64", "Zf", WEFT_COMPLEX, 64 },
	{ "complex128", "Zd", WEFT_COMPLEX, 128 },
};

bool dtype_of_format(const char *format, Py_ssize_t item_bytes, weft_dtype *dtype)
{
	uint8_t bits = uint8_t(item_bytes * 8);

	if (!format)
		format = "B";
	if (*format == '@' || *format == '=' || *format == '<')
		format++;
	if (!strcmp(format, "c") || (strlen(format) == 1 && strchr("lL", *format))) {
		uint8_t code = *format == 'l' ? WEFT_INT : WEFT_UINT;

		*dtype = { code, bits, 1 };
		return true;
	}
	for (const auto &row : rows)
		if (row.format && !strcmp(row.format, format) && row.bits == bits) {
			*dtype = { row.code, row.bits, 1 };
			return true;
		}
	return false;
}

const char *format_of_dtype(weft_dtype dtype)
{
	for (const auto &row : rows)
		if (row.code == dtype.code && row.bits == dtype.bits && dtype.lanes == 1)
			return row.format;
	return nullptr;
}

nb::str name_of_dtype(weft_dtype dtype)
{
	for (const auto &row : rows)
		if (row.code == dtype.code && row.bits == dtype.bits && dtype.lanes == 1)
			return nb::str(row.name);
	return nb::str(("code " + std::to_string(dtype.code) + " of " + std::to_string(dtype.bits) +
			" bits" + (dtype.lanes == 1 ? "" : " and " + std::to_string(dtype.lanes) + " lanes"))
			       .c_str());
}

weft_dtype dtype_of_name(const char *name)
{
	for (const auto &row : rows)
		if (!strcmp(row.name, name))
			return { row.code, row.bits, 1 };
	invalid("there is no dtype of that name");
}
