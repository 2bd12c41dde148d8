/* SPDX-License-Identifier: BSD-2-Clause */
#include "operation.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nanobind/stl/string.h>
#include <utility>

#include "describe.h"
#include "errors.h"
#include "node.h"

/* Time in which an answer of a near peer comes, and a turn of an event loop passes. */
static const std::chrono::microseconds SPIN(50);

/* Time between two looks at Python's signals, for Ctrl-C. */
#define SLICE_NS 100000000ull

/* Time of one turn at driving a manual node, which other threads may wait for. */
#define TURN_NS 5000000ull

Flight::Flight(std::shared_ptr<Shared> s) : shared(std::move(s))
{
	place = shared->flights.size();
	shared->flights.push_back(this);
}

Flight::~Flight()
{
	if (op && !shared->forked())
		weft_op_free(op);
	shared->flights[place] = shared->flights.back();
	shared->flights[place]->place = place;
	shared->flights.pop_back();
}

void Flight::release()
{
	if (released)
		return;
	released = true;
	array.release();
	second.release();
}

void Flight::come_down(nb::list &ended)
{
	release();
	for (nb::object &future : std::exchange(futures, {}))
		ended.append(std::move(future));
	landing = false;
	if (has_handle)
		return;
	shared->nobodys--;
	delete this;
}

void wake(nb::list futures)
{
	if (nb::len(futures))
		nb::module_::import_("weft.aio").attr("_wake")(futures);
}

void fill(weft_op_options &options, Flight &flight, nb::handle timeout, unsigned priority)
{
	options.size = sizeof(options);
	options.timeout_ns = nanoseconds(timeout, 0);
	options.priority = priority;
	options.queue = flight.shared->queue();
	options.arg = &flight;
}

/* Where what follows raises, the handle is there, and dropped as any. */
Operation::Operation(std::unique_ptr<Flight> flight) : Operation(flight.release())
{
	flight_->shared->tidy();
	if (flight_->shared->kick.is_valid())
		flight_->shared->kick();
}

Operation::~Operation()
{
	if (!flight_)
		return;
	/* A flight with futures stays until drain() takes it out of the queue, and tells these. */
	if ((done() && !flight_->landing && flight_->futures.empty()) ||
	    flight_->shared->forked()) {
		delete flight_;
		return;
	}
	flight_->has_handle = false;
	flight_->shared->nobodys++;
}

bool Operation::done() const
{
	return weft_op_ended(flight_->op);
}

/* The rest of a time that begins now. */
class Left {
public:
	explicit Left(uint64_t ns) : ns_(ns) {}

	uint64_t ns() const
	{
		uint64_t gone = std::chrono::nanoseconds(Clock::now() - begun_).count();

		return ns_ == WEFT_FOREVER ? ns_ : ns_ - std::min(ns_, gone);
	}

private:
	typedef std::chrono::steady_clock Clock;

	uint64_t ns_;
	Clock::time_point begun_ = Clock::now();
};

/* As in_slices(), for one slice.  -EAGAIN: it is over, and there is time left. */
static int in_one_slice(const std::shared_ptr<Shared> &shared, Part *part, const Left &left,
			const std::function<int(uint64_t)> &once, const std::function<bool()> &over)
{
	Turn turn(*shared);
	uint64_t slice;
	int err;

	/* The node or the part may be gone, and with it what @over looks at. */
	while (!turn.has_come() && Inside::may_be(*shared, part) && !over() && left.ns())
		let_others_run();
	if (!Inside::may_be(*shared, part))
		return -ESHUTDOWN;
	if (!turn.has_come())
		return over() ? 0 : -ETIMEDOUT;
	slice = std::min<uint64_t>(left.ns(), shared->manual() ? TURN_NS : SLICE_NS);
	{
		Inside inside(shared, part);

		err = once(slice);
	}
	return err == -ETIMEDOUT && left.ns() ? -EAGAIN : err;
}

int in_slices(const std::shared_ptr<Shared> &shared, Part *part, uint64_t timeout_ns,
	      const std::function<int(uint64_t)> &once, const std::function<bool()> &over)
{
	Left left(timeout_ns);
	int err;

	/* Handlers of signals run between the slices, when this thread has no turn. */
	while ((err = in_one_slice(shared, part, left, once, over)) == -EAGAIN)
		if (PyErr_CheckSignals())
			throw nb::python_error();
	/* An event loop that has the node sleeps on a state that is old. */
	if (shared->kick.is_valid() && shared->open())
		shared->kick();
	return err;
}

/* Wait for a moment for a node that closes, which ends its operations. */
static void see_closing()
{
	let_others_run();
	if (PyErr_CheckSignals())
		throw nb::python_error();
}

bool Operation::wait(nb::handle timeout)
{
	uint64_t ns = nanoseconds(timeout, WEFT_FOREVER);
	weft_op *op = flight_->op;

	while (!done()) {
		int err = in_slices(
			flight_->shared, nullptr, ns,
			[op](uint64_t slice) { return weft_wait(op, slice); },
			[op] { return weft_op_ended(op); });

		if (err == -ETIMEDOUT)
			return false;
		if (err != -ESHUTDOWN)
			check(err);
		else if (flight_->shared->forked())
			flight_->shared->node(); // raises
		else
			see_closing();
	}
	flight_->release();
	return true;
}

bool Operation::see_end()
{
	if (!done())
		return false;
	flight_->release();
	return true;
}

[[noreturn]] static void not_ended(const char *sentence)
{
	PyErr_SetString(PyExc_TimeoutError, sentence);
	throw nb::python_error();
}

nb::object Operation::result(nb::handle timeout)
{
	if (!wait(timeout))
		not_ended("the operation has not ended yet");
	if (weft_op_status(flight_->op) != WEFT_OK)
		failed(flight_->op);
	if (!flight_->kept.is_valid())
		flight_->kept = flight_->result ? flight_->result(*flight_) : nb::none();
	return flight_->kept;
}

nb::object Operation::exception(nb::handle timeout)
{
	if (!wait(timeout))
		not_ended("the operation has not ended yet");
	if (weft_op_status(flight_->op) == WEFT_OK)
		return nb::none();
	try {
		result(nb::none());
	} catch (nb::python_error &e) {
		return nb::borrow(e.value());
	}
	return nb::none();
}

void Operation::cancel()
{
	if (flight_->shared->there())
		weft_cancel(flight_->op);
}

bool Operation::spin()
{
	weft_node *node = flight_->shared->node();
	auto until = std::chrono::steady_clock::now() + SPIN;
	Turn turn(*flight_->shared);

	while (!done() && turn.has_come() && std::chrono::steady_clock::now() < until)
		check(weft_poll(node, 0));
	return done();
}

bool Operation::tell(nb::object future)
{
	/* One that has come out of the queue is told by nobody any more. */
	if (done())
		return false;
	flight_->futures.push_back(std::move(future));
	return true;
}

/* Operations of a list, which other threads may change. */
static std::vector<nb::object> taken(nb::list operations)
{
	std::vector<nb::object> all;

	for (nb::handle operation : operations) {
		(void)nb::cast<Operation &>(operation); // raises
		all.push_back(nb::borrow(operation));
	}
	return all;
}

size_t wait_any(nb::list operations, nb::handle timeout)
{
	uint64_t ns = nanoseconds(timeout, WEFT_FOREVER);
	auto all = taken(operations);
	std::vector<weft_op *> ops;
	size_t index = 0;

	for (const nb::object &one : all)
		ops.push_back(nb::cast<Operation &>(one).flight().op);
	if (all.empty())
		check(weft_wait_any(nullptr, 0, 0, &index)); // raises
	auto ended = [&] {
		for (index = 0; index < ops.size() && !weft_op_ended(ops[index]); index++)
			;
		return index < ops.size();
	};
	while (!ended()) {
		auto &shared = nb::cast<Operation &>(all[0]).flight().shared;
		int err = in_slices(
			shared, nullptr, ns,
			[&](uint64_t slice) { return weft_wait_any(ops.data(), ops.size(), slice, &index); },
			ended);

		if (err == -ETIMEDOUT)
			not_ended("none of the operations has ended yet");
		if (err != -ESHUTDOWN)
			check(err);
		else if (shared->forked())
			shared->node(); // raises
		else
			see_closing();
	}
	nb::cast<Operation &>(all[index]).flight().release();
	return index;
}

bool wait_all(nb::list operations, nb::handle timeout)
{
	std::chrono::duration<double> gone;
	auto begun = std::chrono::steady_clock::now();
	nb::object left = nb::borrow(timeout);

	for (const nb::object &one : taken(operations)) {
		if (!nb::cast<Operation &>(one).wait(left))
			return false;
		gone = std::chrono::steady_clock::now() - begun;
		if (!timeout.is_none())
			left = nb::float_(std::max(PyFloat_AsDouble(timeout.ptr()) - gone.count(), 0.0));
	}
	return true;
}

static nb::object status_of(const Operation &o)
{
	if (!o.done())
		return nb::none();
	return nb::module_::import_("weft.errors").attr("Status")(int(weft_op_status(o.flight().op)));
}

static nb::object key_of(const Operation &o)
{
	size_t bytes = 0;
	const void *key = o.done() ? weft_op_key(o.flight().op, &bytes) : nullptr;

	return key ? nb::object(nb::bytes(key, bytes)) : nb::none();
}

void bind_operation(nb::module_ &m)
{
	nb::class_<Operation>(m, "Operation",
			      "What has been begun: to be waited for, awaited, cancelled, or forgotten.\n\n"
			      "A buffer that an operation was given is borrowed until it has ended, also when\n"
			      "nobody has the operation any more.")
		.def("done", &Operation::see_end, "Whether the operation has ended.")
		.def("wait", &Operation::wait, nb::arg("timeout") = nb::none(),
		     "Wait for at most so many seconds; None: for ever.  Returns whether it has ended.")
		.def("result", &Operation::result, nb::arg("timeout") = nb::none(),
		     "Wait, and return what the operation gives; raises weft.Error if it has failed, and\n"
		     "TimeoutError if it has not ended in time, and goes on.")
		.def("exception", &Operation::exception, nb::arg("timeout") = nb::none(),
		     "Wait, and return the error that result() would raise; None: it has ended well.")
		.def("cancel", &Operation::cancel,
		     "Ask for an early end.  The outcome may still be success.")
		.def("path", [](const Operation &o) { return path_of(o.flight().op); },
		     "The path that the bytes really took, as a dict: provider, way, copies, times in ns.")
		.def_prop_ro("status", &status_of, "The outcome, a weft.Status; None: it has not ended.")
		.def_prop_ro("key", &key_of, "The key of a receive's tensor, as bytes; None: there is none yet.")
		.def_prop_ro("peer", [](const Operation &o) {
			return peer_of(o.flight().shared, o.flight().op);
		}, "The peer that the operation is with, or whose tensor came; None: nobody's.")
		.def("__await__", [](nb::handle self) {
			return nb::module_::import_("weft.aio").attr("_await")(self);
		})
		.def_prop_ro("_node", [](const Operation &o) { return Node{ o.flight().shared }; })
		.def("_spin", &Operation::spin)
		.def("_tell", &Operation::tell);
	m.def("wait_any", &wait_any, nb::arg("operations"), nb::arg("timeout") = nb::none(),
	      "Wait for the first of a list of operations of one node.  Returns its index.");
	m.def("wait_all", &wait_all, nb::arg("operations"), nb::arg("timeout") = nb::none(),
	      "Wait for all of a list of operations of one node.  Returns whether all have ended.");
}
