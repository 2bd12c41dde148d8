/* SPDX-License-Identifier: BSD-2-Clause */
#include "array.h"

#include "errors.h"

static const char capsule_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

bool is_on_host(const weft_tensor &t)
{
	return t.device.type == WEFT_CPU || t.device.type == WEFT_CUDA_HOST;
}

void Array::release()
{
	Owner owner = owner_;

	owner_ = OWNER_NONE;
	if (owner == OWNER_BUFFER)
		PyBuffer_Release(&buffer_);
	else if (owner == OWNER_DLPACK && dlpack_->deleter)
		dlpack_->deleter(dlpack_);
	else if (owner == OWNER_VERSIONED && versioned_->deleter)
		versioned_->deleter(versioned_);
}

/* Strides of the buffer protocol are in bytes.  Returns false: they are no whole elements. */
static bool elements_of(const Py_buffer &b, std::vector<int64_t> *strides)
{
	for (int i = 0; i < b.ndim; i++) {
		if (b.strides[i] % b.itemsize)
			return false;
		strides->push_back(b.strides[i] / b.itemsize);
	}
	return true;
}

/*
 * Returns false where the object has no buffer, or none of elements that weft knows: DLPack may be
 * able to tell more of it.
 */
bool Array::take_buffer(nb::handle object, bool writable)
{
	int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
	Py_buffer *b = &buffer_;

	if (PyObject_GetBuffer(object.ptr(), b, flags)) {
		PyErr_Clear();
		return false;
	}
	if (b->ndim > WEFT_RANK_MAX || b->itemsize < 1 ||
	    !dtype_of_format(b->format, b->itemsize, &tensor_.dtype) ||
	    (!PyBuffer_IsContiguous(b, 'C') && !elements_of(*b, &strides_))) {
		PyBuffer_Release(b);
		return false;
	}
	static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are seen as they are");
	tensor_.data = b->buf;
	tensor_.device = { WEFT_CPU, 0 };
	tensor_.ndim = b->ndim;
	tensor_.shape = reinterpret_cast<int64_t *>(b->shape);
	tensor_.strides = strides_.empty() ? nullptr : strides_.data();
	owner_ = OWNER_BUFFER;
	return true;
}

static bool is_cuda(int type)
{
	return type == WEFT_CUDA || type == WEFT_CUDA_MANAGED;
}

/* Ask for the newest version of DLPack's capsules, and of an older library for what it has. */
static nb::object capsule_of(nb::handle object, bool cuda, nb::handle stream)
{
	nb::object function = object.attr("__dlpack__");
	nb::dict words;

	if (cuda)
		words["stream"] = stream;
	words["max_version"] = nb::make_tuple(DL_MAJOR, DL_MINOR);
	try {
		return function(**words);
	} catch (nb::python_error &e) {
		if (!e.matches(PyExc_TypeError))
			throw;
	}
	PyDict_DelItemString(words.ptr(), "max_version");
	return function(**words);
}

void Array::take_capsule(nb::handle object, bool writable, nb::handle stream)
{
	nb::object device = object.attr("__dlpack_device__")(), number = nb::borrow(stream), capsule;
	bool cuda = is_cuda(nb::cast<int>(device[0]));

	if (cuda && stream.is_none())
		number = nb::int_(1); // the default stream, by DLPack's count
	capsule = capsule_of(object, cuda, number);
	if (PyCapsule_IsValid(capsule.ptr(), versioned_name)) {
		auto *m = static_cast<DlManagedVersioned *>(
			PyCapsule_GetPointer(capsule.ptr(), versioned_name));

		if (m->version.major > DL_MAJOR)
			invalid("the array is of a later version of DLPack");
		if (writable && (m->flags & DL_READONLY))
			invalid("the array is not writable");
		PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
		versioned_ = m;
		tensor_ = m->tensor;
		owner_ = OWNER_VERSIONED;
	} else if (PyCapsule_IsValid(capsule.ptr(), capsule_name)) {
		dlpack_ = static_cast<DlManaged *>(PyCapsule_GetPointer(capsule.ptr(), capsule_name));
		PyCapsule_SetName(capsule.ptr(), "used_dltensor");
		tensor_ = dlpack_->tensor;
		owner_ = OWNER_DLPACK;
	} else {
		invalid("the array's __dlpack__ gives no capsule of DLPack");
	}
	if (cuda) {
		int64_t value = nb::cast<int64_t>(number);

		/* 1 and 2 are the default streams, whose handles are 0 and 2. */
		stream_ = value == -1 ? WEFT_NO_STREAM
				      : reinterpret_cast<void *>(value == 1 ? 0 : intptr_t(value));
	}
}

void Array::take(nb::handle object, bool writable, nb::handle stream)
{
	if (take_buffer(object, writable))
		return;
	strides_.clear();
	if (!nb::hasattr(object, "__dlpack__"))
		invalid(writable ? "a writable array is needed: an object with __dlpack__, or a buffer of "
				   "numbers that is not read-only"
				 : "an array is needed: an object with __dlpack__, or a buffer of numbers");
	take_capsule(object, writable, stream);
}

uint64_t Array::bytes() const
{
	uint64_t bytes = 0;

	check(weft_tensor_bytes(&tensor_, &bytes));
	return bytes;
}

void Array::need_contiguous(const char *what) const
{
	int64_t expected = 1;

	if (!tensor_.strides)
		return;
	for (int i = tensor_.ndim; i--;) {
		if (tensor_.shape[i] != 1 && tensor_.strides[i] != expected)
			invalid(what);
		expected *= tensor_.shape[i];
	}
}
