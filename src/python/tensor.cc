/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor.h"

#include <algorithm>
#include <cstring>

#include "errors.h"

Tensor::Tensor(std::shared_ptr<Shared> shared, void *memory, const weft_tensor &t, unsigned flags)
	: shared_(std::move(shared)), memory_(memory), view_(t), flags_(flags),
	  shape_(t.shape, t.shape + t.ndim)
{
	int64_t stride = (t.dtype.bits * t.dtype.lanes + 7) / 8;

	view_.shape = shape_.data();
	view_.strides = nullptr;
	byte_strides_.resize(shape_.size());
	for (size_t i = shape_.size(); i--;) {
		byte_strides_[i] = stride;
		stride *= shape_[i];
	}
	if (memory_)
		shared_->hold();
}

Tensor::~Tensor()
{
	if (memory_)
		shared_->let_go(memory_);
}

uint64_t Tensor::bytes() const
{
	uint64_t bytes = 0;

	if (!(flags_ & WEFT_DEAD))
		check(weft_tensor_bytes(&view_, &bytes));
	return bytes;
}

bool Tensor::is_one_column() const
{
	return std::count_if(shape_.begin(), shape_.end(), [](int64_t length) { return length > 1; }) < 2;
}

/* Returns the object that a receive wrote into, or else a tensor of what came. */
static nb::object tensor_of(Flight &flight)
{
	const weft_tensor *t;
	unsigned flags = 0;

	if (flight.given.is_valid())
		return flight.given;
	if (!flight.shared->there())
		invalid("the node has closed, and the tensor that was received went with it");
	t = weft_op_tensor(flight.op, &flags);
	return nb::cast(new Tensor(flight.shared, weft_op_take(flight.op), *t, flags),
			nb::rv_policy::take_ownership);
}

void fill_recv(weft_recv_options &options, Flight &flight, nb::handle into, nb::handle timeout,
	       unsigned priority, nb::handle stream)
{
	flight.result = tensor_of;
	if (!into.is_none()) {
		flight.array.take(into, true, stream);
		flight.given = nb::borrow(into);
		options.stream = flight.array.stream();
	}
	fill(options.op, flight, timeout, priority);
}

nb::object empty(std::shared_ptr<Shared> shared, nb::handle shape, const char *dtype)
{
	std::vector<int64_t> lengths;
	weft_tensor t = {};
	uint64_t bytes;
	void *memory = nullptr;

	if (PyLong_Check(shape.ptr()))
		lengths.push_back(nb::cast<int64_t>(shape));
	else
		for (nb::handle length : shape)
			lengths.push_back(nb::cast<int64_t>(length));
	t.device = { WEFT_CPU, 0 };
	t.dtype = dtype_of_name(dtype);
	t.ndim = int32_t(lengths.size());
	t.shape = lengths.data();
	check(weft_tensor_bytes(&t, &bytes));
	if (bytes)
		check(weft_alloc(shared->node(), bytes, &memory));
	t.data = memory;
	return nb::cast(new Tensor(std::move(shared), memory, t, 0), nb::rv_policy::take_ownership);
}

/* DLPack. */

/* A capsule's struct, the tensor's shape, and a reference to the tensor. */
template <typename Managed> struct Export {
	Managed managed;
	PyObject *owner;

	static void drop(Managed *self)
	{
		auto *e = reinterpret_cast<Export *>(self);

		/* Any thread may drop an array; after the end of the interpreter nobody can. */
		if (Py_IsInitialized()) {
			PyGILState_STATE state = PyGILState_Ensure();

			Py_DECREF(e->owner);
			PyGILState_Release(state);
		}
		delete e;
	}
};

template <typename Managed> static Managed *make_export(nb::handle self, const Tensor &t)
{
	auto *e = new Export<Managed>{};

	e->managed.tensor = t.view();
	e->managed.deleter = Export<Managed>::drop;
	e->owner = self.inc_ref().ptr();
	return &e->managed;
}

/* A struct that nobody has taken out of its capsule goes with it. */
static void drop_capsule(PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, "dltensor")) {
		auto *m = static_cast<DlManaged *>(PyCapsule_GetPointer(capsule, "dltensor"));

		m->deleter(m);
	} else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		auto *m = static_cast<DlManagedVersioned *>(
			PyCapsule_GetPointer(capsule, "dltensor_versioned"));

		m->deleter(m);
	}
}

[[noreturn]] static void buffer_error(const char *sentence)
{
	PyErr_SetString(PyExc_BufferError, sentence);
	throw nb::python_error();
}

static nb::object to_dlpack(nb::handle self, nb::handle stream, nb::handle max_version,
			    nb::handle device, nb::handle copy)
{
	const Tensor &t = nb::cast<const Tensor &>(self);
	const weft_device at = t.view().device;
	const char *name;
	void *exported;

	/* A received tensor is there: no stream has to wait for it. */
	(void)stream;
	if (t.flags() & WEFT_DEAD)
		buffer_error("the tensor is dead: it has no content");
	if (!copy.is_none() && nb::cast<bool>(copy))
		buffer_error("a tensor of weft does not copy itself");
	if (!device.is_none() &&
	    (nb::cast<int>(device[0]) != at.type || nb::cast<int>(device[1]) != at.id))
		buffer_error("a tensor of weft does not move to another device");
	if (!max_version.is_none() && nb::cast<unsigned>(max_version[0]) >= DL_MAJOR) {
		auto *m = make_export<DlManagedVersioned>(self, t);

		m->version = { DL_MAJOR, DL_MINOR };
		m->flags = t.flags() & WEFT_READONLY ? DL_READONLY : 0;
		exported = m;
		name = "dltensor_versioned";
	} else {
		if (t.flags() & WEFT_READONLY)
			buffer_error("the tensor is a view of another process's memory, and read-only, which "
				     "this library's DLPack can't say: take memoryview(tensor)");
		exported = make_export<DlManaged>(self, t);
		name = "dltensor";
	}
	return nb::steal(PyCapsule_New(exported, name, drop_capsule));
}

/* The buffer protocol. */

static int get_buffer(PyObject *self, Py_buffer *b, int flags)
{
	Tensor &t = nb::cast<Tensor &>(nb::handle(self));
	const char *format = format_of_dtype(t.view().dtype);
	const char *why = nullptr;

	if (t.flags() & WEFT_DEAD)
		why = "the tensor is dead: it has no content";
	else if (!t.on_host())
		why = "the tensor is in the memory of a device";
	else if ((flags & PyBUF_WRITABLE) && (t.flags() & WEFT_READONLY))
		why = "the tensor is a view of another process's memory, and read-only";
	else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !t.is_one_column())
		why = "the tensor's last dimension is the one whose elements are neighbours";
	else if (!format && (flags & PyBUF_FORMAT))
		why = "the buffer protocol has no word for the tensor's dtype: use DLPack";
	b->obj = nullptr;
	if (why) {
		PyErr_SetString(PyExc_BufferError, why);
		return -1;
	}
	b->buf = t.view().data;
	b->len = Py_ssize_t(t.bytes());
	b->itemsize = (t.view().dtype.bits * t.view().dtype.lanes + 7) / 8;
	b->readonly = !!(t.flags() & WEFT_READONLY);
	b->ndim = t.view().ndim;
	b->format = flags & PyBUF_FORMAT ? const_cast<char *>(format) : nullptr;
	b->shape = flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t *>(t.view().shape) : nullptr;
	b->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
			     ? reinterpret_cast<Py_ssize_t *>(t.byte_strides().data())
			     : nullptr;
	b->suboffsets = nullptr;
	b->internal = nullptr;
	b->obj = nb::handle(self).inc_ref().ptr();
	return 0;
}

static PyType_Slot slots[] = {
	{ Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer) },
	{ 0, nullptr },
};

/* NumPy asks for this where there is no buffer, and would else make an array of one object. */
static nb::object to_numpy(nb::handle self, nb::args arguments, nb::kwargs words)
{
	nb::object buffer = nb::steal(PyMemoryView_FromObject(self.ptr()));

	if (!buffer.is_valid())
		throw nb::python_error();
	return nb::module_::import_("numpy").attr("asarray")(buffer, *arguments, **words);
}

static nb::tuple shape_of(const Tensor &t)
{
	nb::list lengths;

	for (int64_t length : t.shape())
		lengths.append(length);
	return nb::tuple(lengths);
}

void bind_tensor(nb::module_ &m)
{
	nb::class_<Tensor>(m, "Tensor", nb::type_slots(slots),
			   "Memory of a node's: a tensor that was received, or one of Node.empty().\n\n"
			   "numpy.asarray(tensor), torch.from_dlpack(tensor) and memoryview(tensor) make\n"
			   "arrays of it without a copy, which keep the memory.")
		.def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
		     nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
		     nb::arg("copy") = nb::none())
		.def("__dlpack_device__",
		     [](const Tensor &t) { return nb::make_tuple(t.view().device.type, t.view().device.id); })
		.def("__array__", &to_numpy)
		.def("tobytes",
		     [](const Tensor &t) {
			     if (!t.on_host())
				     buffer_error("the tensor is in the memory of a device");
			     return nb::bytes(static_cast<const char *>(t.view().data), t.bytes());
		     },
		     "The content, copied.")
		.def_prop_ro("shape", &shape_of, "The lengths of all dimensions.")
		.def_prop_ro("dtype", [](const Tensor &t) { return name_of_dtype(t.view().dtype); },
			     "NumPy's name of the dtype, or 'bfloat16'.")
		.def_prop_ro("nbytes", &Tensor::bytes)
		.def_prop_ro("dead", [](const Tensor &t) { return !!(t.flags() & WEFT_DEAD); },
			     "Whether the tensor has no content: the sender said only that there is none.")
		.def_prop_ro("readonly", [](const Tensor &t) { return !!(t.flags() & WEFT_READONLY); },
			     "Whether the tensor is a view of the sender's memory.")
		.def("__len__",
		     [](const Tensor &t) {
			     if (t.shape().empty())
				     throw nb::type_error("a tensor of no dimensions has no length");
			     return t.shape()[0];
		     })
		.def("__repr__", [](const Tensor &t) {
			nb::str text("weft.Tensor(shape={}, dtype='{}'{})");

			return text.format(shape_of(t), name_of_dtype(t.view().dtype),
					   t.flags() & WEFT_DEAD ? ", dead" : "");
		});
}
