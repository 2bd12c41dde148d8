/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared: what a node's Python objects have in common: the node itself, its completion queue, and the
 * operations under way.
 *
 * A node is closed when Python closes it, but stays underneath while results are alive that lie in its
 * memory; the last of these takes it along.  The worker never takes the GIL: operations that have
 * ended wait in the queue until a thread with the GIL drains it.
 *
 * Threads: those that hold the GIL, but where something else is said.
 */
#ifndef WEFT_PYTHON_SHARED_H
#define WEFT_PYTHON_SHARED_H

#include <memory>
#include <vector>
#include <nanobind/nanobind.h>
#include <weft/weft.h>

namespace nb = nanobind;

struct Flight;
class Part;

class Shared : public std::enable_shared_from_this<Shared> {
public:
	explicit Shared(const weft_node_options &options);
	~Shared();
	Shared(const Shared &) = delete;

	/* The node; raises when Python has closed it. */
	weft_node *node() const;
	weft_queue *queue() const { return queue_; }
	bool open() const { return node_ && !closed_; }
	/* Whether calls may be made: the node is open, and this process's own. */
	bool reachable() const { return open() && !forked(); }
	bool manual() const { return manual_; }

	/* Close the node: operations under way end as cancelled. */
	void close();
	/*
	 * Drop what operations needed that have ended since.  Returns the futures of those that a
	 * task awaits.
	 */
	nb::list drain();
	/* Drain if nobody else will, and operations are under way whose handles are gone. */
	void tidy();

	/* Whether no operation is under way, nor a task to be woken. */
	bool idle() const;

	/* Results in the node's memory: it closes after the last of them. */
	void hold() { results_++; }
	void let_go(void *memory);

	/* A process that was forked has the objects, and not the node. */
	bool forked() const;

	std::vector<Flight *> flights; // under way, or with a handle
	unsigned nobodys = 0;	       // of these, without a handle
	std::vector<Part *> parts;     // open, closed before the node
	std::vector<std::shared_ptr<void>> lent; // borrowed by the node until it has closed
	bool awaited = false;	       // an event loop drains
	nb::object kick;	       // of a manual node in an event loop: has it polled soon
	nb::list closers;	       // functions of event loops, called before the node closes

private:
	void close_node();

	weft_node *node_ = nullptr;
	weft_queue *queue_ = nullptr;
	bool closed_ = false, manual_;
	unsigned results_ = 0;
	long process_;
};

/* Close all nodes: the interpreter ends. */
void close_all_nodes();

#endif
