/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Array: memory of any library of Python's, seen as a tensor of weft without a copy, by the buffer
 * protocol or by DLPack.
 *
 * An array keeps the memory, and the object that owns it, until it is released: under the GIL.
 */
#ifndef WEFT_PYTHON_ARRAY_H
#define WEFT_PYTHON_ARRAY_H

#include <vector>
#include <nanobind/nanobind.h>
#include "dlpack.h"

namespace nb = nanobind;

class Array {
public:
	Array() = default;
	Array(nb::handle object, bool writable, nb::handle stream = nb::none())
	{
		take(object, writable, stream);
	}
	Array(const Array &) = delete; // a buffer may point into itself
	~Array() { release(); }

	/*
	 * See @object, which is to be written to if @writable.  Of memory of a CUDA device, @stream is
	 * the stream after whose work it is ready, as DLPack counts streams; None: the default one.
	 */
	void take(nb::handle object, bool writable, nb::handle stream = nb::none());
	void release();
	/* Keep the memory for ever: somebody else may use it still. */
	void abandon() { owner_ = OWNER_NONE; }

	const weft_tensor &tensor() const { return tensor_; }
	const weft_tensor *pointer() const { return held() ? &tensor_ : nullptr; }
	bool held() const { return owner_ != OWNER_NONE; }
	void *stream() const { return stream_; } // for the options of an operation
	uint64_t bytes() const;
	char *data() const { return static_cast<char *>(tensor_.data) + tensor_.byte_offset; }
	/* Raises unless the array is one piece of memory; @what names it. */
	void need_contiguous(const char *what) const;

private:
	enum Owner { OWNER_NONE, OWNER_BUFFER, OWNER_DLPACK, OWNER_VERSIONED };

	bool take_buffer(nb::handle object, bool writable);
	void take_capsule(nb::handle object, bool writable, nb::handle stream);

	weft_tensor tensor_ = {};
	Owner owner_ = OWNER_NONE;
	Py_buffer buffer_;
	DlManaged *dlpack_ = nullptr;
	DlManagedVersioned *versioned_ = nullptr;
	std::vector<int64_t> strides_;
	void *stream_ = nullptr;
};

/* Whether the host can read the memory of @t. */
bool is_on_host(const weft_tensor &t);

/* The dtype that a format of the buffer protocol stands for.  Returns false: there is none. */
bool dtype_of_format(const char *format, Py_ssize_t item_bytes, weft_dtype *dtype);

/* The format for @dtype, as of struct; NULL: there is none. */
const char *format_of_dtype(weft_dtype dtype);

/* NumPy's name of @dtype, or "bfloat16"; "code 5 of 24 bits" for others. */
nb::str name_of_dtype(weft_dtype dtype);

/* The dtype of that name.  Raises. */
weft_dtype dtype_of_name(const char *name);

#endif
