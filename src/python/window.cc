/* SPDX-License-Identifier: BSD-2-Clause */
#include "window.h"

#include <cerrno>
#include <cstring>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "errors.h"

using namespace nb::literals;

/* Windows. */

Window::Window(std::shared_ptr<Shared> shared, nb::handle memory, unsigned rights)
	: Part(std::move(shared)), array_(memory, !!(rights & WEFT_WINDOW_WRITE))
{
	array_.need_contiguous("the memory of a window is not contiguous");
	check(weft_window_open(shared_->node(), array_.data(), array_.bytes(), rights, &window_));
	enter();
}

void Window::end()
{
	int err = 0;

	if (window_ && shared_->reachable()) {
		OwnTurn turn(*shared_);
		nb::gil_scoped_release free;

		err = weft_window_close(window_);
	}
	/* Peers may reach the memory still if the window did not close: it is kept for ever then. */
	if (err)
		array_.abandon();
	array_.release();
}

static Window *open_window(const Node &n, nb::handle memory, const std::string &rights)
{
	unsigned bits = 0;

	for (char c : rights) {
		if (c != 'r' && c != 'w')
			invalid("rights of a window are \"r\", \"w\" or \"rw\"");
		bits |= c == 'r' ? WEFT_WINDOW_READ : WEFT_WINDOW_WRITE;
	}
	return new Window(n.shared, memory, bits);
}

static nb::bytes describe(const Window &w)
{
	char descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);

	check(weft_window_describe(w.get(), descriptor, &bytes));
	return nb::bytes(descriptor, bytes);
}

static void publish(Window &w, nb::handle key)
{
	Key k(key);
	weft_window *window = w.get();
	int err;

	{
		Inside inside(w.shared(), &w);

		err = weft_window_publish(window, k.data, size_t(k.bytes));
	}
	check(err);
}

static bool wait_for_puts(Window &w, uint64_t count, nb::handle timeout)
{
	uint64_t ns = nanoseconds(timeout, WEFT_FOREVER);
	weft_window *window = w.get();
	int err = in_slices(
		w.shared(), &w, ns,
		[=](uint64_t slice) { return weft_window_wait(window, count, slice); },
		[=] { return weft_window_puts(window) >= count; });

	if (err == -ESHUTDOWN)
		(void)w.get(); // raises
	if (err == -ETIMEDOUT)
		return false;
	check(err);
	return true;
}

static nb::object note_of(Flight &flight)
{
	const weft_note *note = weft_op_note(flight.op);
	nb::bytes data(static_cast<const char *>(note->data), note->bytes);

	return nb::module_::import_("weft").attr("Note")(note->number, data, bool(note->of_get),
							   peer_of(flight.shared, flight.op));
}

static Operation next_note(const Window &w, nb::handle timeout)
{
	auto flight = std::make_unique<Flight>(w.shared());
	weft_op_options o = WEFT_OP_OPTIONS_INIT;

	flight->result = note_of;
	fill(o, *flight, timeout);
	check(weft_window_next(w.get(), &o, &flight->op));
	return Operation(std::move(flight));
}

/* Remote windows. */

void Remote::end()
{
	if (shared_->reachable())
		weft_remote_close(remote_);
}

static Remote *import_window(const Peer &peer, nb::bytes descriptor)
{
	weft_remote *remote;

	check(weft_window_import(peer.get(), descriptor.c_str(), descriptor.size(), &remote));
	return new Remote(peer.shared(), remote);
}

static nb::object remote_of(Flight &flight)
{
	weft_remote *remote;

	check(weft_op_remote(flight.op, &remote));
	return nb::cast(new Remote(flight.shared, remote), nb::rv_policy::take_ownership);
}

static Operation find_window(const Peer &peer, nb::handle key, nb::handle timeout)
{
	auto flight = std::make_unique<Flight>(peer.shared());
	weft_op_options o = WEFT_OP_OPTIONS_INIT;
	Key k(key);

	flight->result = remote_of;
	fill(o, *flight, timeout);
	check(weft_window_find(peer.get(), k.data, size_t(k.bytes), &o, &flight->op));
	return Operation(std::move(flight));
}

/* Blocks. */

static void add_block(std::vector<weft_block> &blocks, const Array &array, uint64_t local, uint64_t remote,
		      uint64_t bytes)
{
	uint64_t room = array.bytes();

	if (local > room || bytes > room - local)
		invalid("a block reaches beyond its array");
	blocks.push_back({ array.data() + local, remote, bytes });
}

/* Rows of a table of three columns of 64 bits, which may lie anyhow in memory. */
static void add_table(std::vector<weft_block> &blocks, const Array &array, const Array &table)
{
	const weft_tensor &t = table.tensor();
	const char *at = table.data();
	int64_t row, column;

	if (!is_on_host(t) || t.ndim != 2 || t.shape[1] != 3 || t.dtype.bits != 64 || t.dtype.lanes != 1 ||
	    (t.dtype.code != WEFT_INT && t.dtype.code != WEFT_UINT))
		invalid("blocks are a table of integers of 64 bits in three columns, in the host's memory: offset "
			"here, offset in the window, bytes");
	row = t.strides ? t.strides[0] : 3;
	column = t.strides ? t.strides[1] : 1;
	blocks.reserve(size_t(t.shape[0]));
	for (int64_t i = 0; i < t.shape[0]; i++) {
		uint64_t cell[3];

		for (int64_t k = 0; k < 3; k++)
			memcpy(&cell[k], at + (i * row + k * column) * 8, 8);
		add_block(blocks, array, cell[0], cell[1], cell[2]);
	}
}

static std::vector<weft_block> blocks_of(const Array &array, nb::handle blocks, uint64_t offset)
{
	std::vector<weft_block> all;

	if (blocks.is_none()) {
		all.push_back({ array.data(), offset, array.bytes() });
	} else if (PyObject_CheckBuffer(blocks.ptr()) || nb::hasattr(blocks, "__dlpack__")) {
		add_table(all, array, Array(blocks, false));
	} else {
		for (nb::handle block : blocks)
			add_block(all, array, nb::cast<uint64_t>(block[0]), nb::cast<uint64_t>(block[1]),
				  nb::cast<uint64_t>(block[2]));
	}
	return all;
}

typedef int (*Access)(weft_remote *remote, const weft_block *blocks, size_t count,
		      const weft_access_options *options, weft_op **op);

static Operation move(const Remote &remote, Access access, bool writable, nb::handle array, nb::handle blocks,
		      uint64_t offset, nb::handle note, nb::handle number, nb::handle timeout,
		      unsigned priority, nb::handle stream)
{
	auto flight = std::make_unique<Flight>(remote.shared());
	weft_access_options o = WEFT_ACCESS_OPTIONS_INIT;
	std::vector<weft_block> list;

	if (!array.is_none()) {
		flight->array.take(array, writable, stream);
		flight->array.need_contiguous("memory for a window is not contiguous");
		list = blocks_of(flight->array, blocks, offset);
		o.device = flight->array.tensor().device;
		o.stream = flight->array.stream();
	}
	fill(o.op, *flight, timeout, priority);
	if (!note.is_none() || !number.is_none()) {
		Key data(note.is_none() ? nb::handle(nb::bytes("", 0)) : note);

		o.flags = WEFT_NOTE;
		o.number = number.is_none() ? 0 : nb::cast<uint32_t>(number);
		flight->bytes.assign(data.data, data.data + data.bytes);
		o.note = flight->bytes.data();
		o.note_bytes = flight->bytes.size();
	}
	check(access(remote.get(), list.data(), list.size(), &o, &flight->op));
	return Operation(std::move(flight));
}

static Operation get(const Remote &remote, nb::handle array, nb::handle blocks, uint64_t offset,
		     nb::handle note, nb::handle number, nb::handle timeout, unsigned priority,
		     nb::handle stream)
{
	return move(remote, weft_get, true, array, blocks, offset, note, number, timeout, priority, stream);
}

static Operation put(const Remote &remote, nb::handle array, nb::handle blocks, uint64_t offset,
		     nb::handle note, nb::handle number, nb::handle timeout, unsigned priority,
		     nb::handle stream)
{
	return move(remote, weft_put, false, array, blocks, offset, note, number, timeout, priority, stream);
}

static nb::str rights_of(const Remote &remote)
{
	unsigned rights = weft_remote_rights(remote.get());

	return nb::str((std::string(rights & WEFT_WINDOW_READ ? "r" : "") +
			(rights & WEFT_WINDOW_WRITE ? "w" : ""))
			       .c_str());
}

/* Regions. */

Region::Region(std::shared_ptr<Shared> shared, nb::handle memory)
	: Part(std::move(shared)), array_(memory, false)
{
	weft_node *node;
	uint64_t bytes;
	int err;

	array_.need_contiguous("the memory of a region is not contiguous");
	bytes = array_.bytes();
	node = shared_->node();
	{
		Inside inside(shared_);

		err = weft_register(node, array_.data(), bytes, &region_);
	}
	check(err);
	enter();
}

void Region::end()
{
	if (region_ && shared_->reachable()) {
		OwnTurn turn(*shared_);
		nb::gil_scoped_release free;

		weft_unregister(region_);
	}
	array_.release();
}

static void bind_remote(nb::module_ &m)
{
	nb::class_<Remote>(m, "Remote", "A window of a peer's, to be read and written.")
		.def_prop_ro("nbytes", [](const Remote &r) { return weft_remote_bytes(r.get()); })
		.def_prop_ro("rights", &rights_of,
			     "'r', 'w' or 'rw'; '': a landing, which Python can't push into.")
		.def("get", &get, "array"_a, "blocks"_a = nb::none(), nb::kw_only(), "offset"_a = 0,
		     "note"_a = nb::none(), "number"_a = nb::none(), "timeout"_a = nb::none(), "priority"_a = 0,
		     "stream"_a = nb::none(),
		     "Read from the window into an array: all of it from offset on, or blocks.\n\n"
		     "blocks: a table of three columns, or tuples: offset in the array, offset in the window,\n"
		     "bytes; at most 65,536.  note, number: what the owner's Window.next() gets afterwards:\n"
		     "bytes, at most 4 KiB, and a number of 32 bits.")
		.def("put", &put, "array"_a.none(), "blocks"_a = nb::none(), nb::kw_only(), "offset"_a = 0,
		     "note"_a = nb::none(), "number"_a = nb::none(), "timeout"_a = nb::none(), "priority"_a = 0,
		     "stream"_a = nb::none(),
		     "Write an array, or blocks of it, to the window; None: nothing but a note.\n\n"
		     "When the operation has ended well all bytes are in the window.  Words as in get().")
		.def("close", [](Remote &r) { r.close(); });
}

void bind_window(nb::module_ &m, nb::class_<Node> &node, nb::class_<Peer> &peer)
{
	nb::class_<Window>(m, "Window", "Memory that peers read and write by themselves, until it closes.")
		.def_prop_ro("descriptor", &describe,
			     "Bytes by which a peer imports the window; as secret as the memory.")
		.def("publish", &publish, "key"_a, "Let peers find the window by a key.")
		.def_prop_ro("puts", [](const Window &w) { return weft_window_puts(w.get()); },
			     "How many puts have ended in the window.")
		.def("wait", &wait_for_puts, "count"_a, "timeout"_a = nb::none(),
		     "Wait until so many puts have ended since the window was opened.  Returns whether they have.")
		.def("next", &next_note, nb::kw_only(), "timeout"_a = nb::none(),
		     "Take the next note that came with a put or get; result() is a weft.Note.")
		.def("close", [](Window &w) { w.close(); },
		     "Close the window; when this returns no byte of it moves any more.");
	bind_remote(m);
	nb::class_<Region>(m, "Region", "Memory that stays registered, until it is closed.")
		.def("close", [](Region &r) { r.close(); });
	node.def("window", &open_window, "memory"_a, "rights"_a = "rw",
		 "Open a window over the memory of an array, which peers may read (r), write (w), or both.")
		.def("register", [](const Node &n, nb::handle memory) {
			return new Region(n.shared, memory);
		}, "memory"_a, "Keep the memory of an array registered: what lies in it needs no registration.");
	peer.def("window", &import_window, "descriptor"_a, "The peer's window with this descriptor.")
		.def("find_window", &find_window, "key"_a, nb::kw_only(), "timeout"_a = nb::none(),
		     "Find the window that the peer publishes, or will, by a key; result() is a weft.Remote.");
}
