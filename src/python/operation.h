/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations: weft's handles as Python has them, to be waited for, awaited, or forgotten.
 *
 * A flight is an operation with the Python objects that it needs: buffers, for which weft has borrowed
 * the memory.  It lives until the operation has ended, its futures are told and no handle is left,
 * whichever is last, and dies under the GIL.  Giving back a buffer can let other threads have the
 * GIL for a while, and these can drop the handle: a flight that is taken out of the queue is then
 * left to whoever has taken it.
 */
#ifndef WEFT_PYTHON_OPERATION_H
#define WEFT_PYTHON_OPERATION_H

#include <functional>
#include "array.h"
#include "shared.h"

struct Flight {
	/* Makes what the operation gives once it has ended well. */
	typedef nb::object (*Result)(Flight &flight);

	explicit Flight(std::shared_ptr<Shared> shared);
	~Flight();
	Flight(const Flight &) = delete;

	/* The operation has ended: give back its buffers, and leave its futures in @ended. */
	void come_down(nb::list &ended);
	void release();

	std::shared_ptr<Shared> shared;
	weft_op *op = nullptr;
	Array array, second;
	std::vector<char> bytes;    // memory that an operation reads and Python need not see
	std::shared_ptr<const void> keeps; // what the operation points into
	nb::object given;	    // an object that is the result, or belongs to it
	nb::object kept;	    // the result, when somebody has asked for it
	std::vector<nb::object> futures; // of tasks that await it
	Result result = nullptr;    // nullptr: nothing but the outcome
	size_t place = 0;	    // in shared->flights
	bool has_handle = false, released = false;
	bool landing = false;	    // out of the queue, and about to come down
};

/* Set @futures, each in its own event loop. */
void wake(nb::list futures);

/*
 * Fill in the options that all operations share: @timeout in seconds, None for the node's deadline;
 * @priority.
 */
void fill(weft_op_options &options, Flight &flight, nb::handle timeout, unsigned priority = 0);

class Operation {
public:
	/* The handle of @flight, whose operation has begun.  Raises what event loops do. */
	explicit Operation(std::unique_ptr<Flight> flight);
	Operation(Operation &&other) noexcept : flight_(other.flight_) { other.flight_ = nullptr; }
	~Operation();

	bool done() const;
	/* As done(); an operation that has ended gives its buffers back. */
	bool see_end();
	/* Wait for at most @timeout seconds; None: for ever.  Returns whether the operation has ended. */
	bool wait(nb::handle timeout);
	/* Wait, and return what the operation gives; raises how it has failed, or that it has not ended. */
	nb::object result(nb::handle timeout);
	nb::object exception(nb::handle timeout);
	void cancel();
	/* Drive the manual node for a while, in the hope that the operation ends.  Returns whether it has. */
	bool spin();
	/* Have @future set when the operation has ended.  Returns false: it has. */
	bool tell(nb::object future);
	Flight &flight() const { return *flight_; }

private:
	explicit Operation(Flight *flight) : flight_(flight) { flight->has_handle = true; }

	Flight *flight_;
};

/*
 * Call @once again and again, each time for at most a slice of @timeout_ns and without the GIL, until
 * it returns another code than -ETIMEDOUT or the time is over; at a manual node, when this thread's turn
 * to drive it has come.  Returns that code, or 0 when @over says that what is waited for has come while
 * another thread had its turn.  -ESHUTDOWN: the node, or @part unless that is NULL, is closed or about to
 * be.  Raises what Ctrl-C does.
 */
int in_slices(const std::shared_ptr<Shared> &shared, Part *part, uint64_t timeout_ns,
	      const std::function<int(uint64_t)> &once,
	      const std::function<bool()> &over = [] { return false; });

/* Wait for the first, or for all, of a list of operations of one node. */
size_t wait_any(nb::list operations, nb::handle timeout);
bool wait_all(nb::list operations, nb::handle timeout);

void bind_operation(nb::module_ &m);

#endif
