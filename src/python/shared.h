/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared: what a node's Python objects have in common: the node itself, its completion queue, and the
 * operations under way.
 *
 * A node is closed when Python closes it, but stays underneath while results are alive that lie in its
 * memory; the last of these takes it along.  Whoever closes it waits for threads that are in a function
 * of weft's without the GIL (Inside).  The worker never takes the GIL: operations that have ended wait
 * in the queue until a thread with the GIL drains it.
 *
 * A manual node has no worker: threads that wait drive it in turns (Turn).
 *
 * Threads: those that hold the GIL, but where something else is said.
 */
#ifndef WEFT_PYTHON_SHARED_H
#define WEFT_PYTHON_SHARED_H

#include <exception>
#include <memory>
#include <thread>
#include <vector>
#include <nanobind/nanobind.h>
#include <weft/weft.h>

namespace nb = nanobind;

struct Flight;
class Part;
class Turn;

class Shared : public std::enable_shared_from_this<Shared> {
public:
	explicit Shared(const weft_node_options &options);
	~Shared();
	Shared(const Shared &) = delete;

	/* The node; raises when Python has closed it, or is about to. */
	weft_node *node() const;
	weft_queue *queue() const { return queue_; }
	bool open() const { return node_ && state_ == OPEN; }
	/* Whether what belongs to the node can be closed: the node is not, and is this process's own. */
	bool reachable() const { return node_ && state_ != CLOSED && !forked(); }
	/* Whether the node is there, maybe for results alone, and this process's own. */
	bool there() const { return node_ && !forked(); }
	bool manual() const { return manual_; }

	/*
	 * Close the node: operations under way end as cancelled, and threads that wait go on.  A second
	 * thread that closes it waits for the first.
	 */
	void close();
	/* Have @function called with @owner, as long as that lives, before the node closes. */
	void on_close(nb::handle owner, nb::object function);
	/*
	 * Drop what operations needed that have ended since.  Returns the futures of those that a
	 * task awaits.
	 */
	nb::list drain();
	/* Drain if operations are under way whose handles are gone. */
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
	nb::object kick;	       // of a manual node in an event loop: has it polled soon

private:
	friend class Inside;
	friend class Turn;
	enum State { OPEN, CLOSING, CLOSED };

	/* A function of an event loop's driver or a server's, for the close of the node. */
	struct Closer {
		nb::weakref owner;
		nb::object function;
	};

	static std::exception_ptr call_all(const std::vector<Closer> &closers);
	void close_node();
	void wait_for_threads();
	void cancel_all();

	weft_node *node_ = nullptr;
	weft_queue *queue_ = nullptr;
	State state_ = OPEN;
	bool over_ = false;	// the call of close() that has closed the node is over
	bool ending_ = false;	// a thread is in weft_node_close()
	std::thread::id closer_;
	bool manual_;
	unsigned results_ = 0;
	unsigned inside_ = 0;	// threads in functions of weft's
	std::vector<Closer> closers_;
	std::vector<const Turn *> turns_; // at a manual node: the first has come
	unsigned forks_;	// of this process, when the node was opened
};

/*
 * Turn of this thread at driving a manual node, which one thread does at a time, in the order in which
 * they came.  At a threaded node everyone's turn has come.
 */
class Turn {
public:
	/* Line up for a turn, unless not @wanted: none is had then, nor waited for. */
	explicit Turn(Shared &shared, bool wanted = true);
	Turn(const Turn &) = delete;
	~Turn();

	/* Whether the turn has come.  weft takes this thread for the node's own from then on. */
	bool has_come() const;
	/* Let other threads run until the turn has come. */
	void wait() const;

private:
	Shared &shared_;
	std::thread::id thread_;
	bool listed_;
};

/* A turn that has come. */
class OwnTurn : public Turn {
public:
	explicit OwnTurn(Shared &shared, bool wanted = true) : Turn(shared, wanted) { wait(); }
};

/*
 * Stay of this thread in a function of weft's on a node, and maybe on a part of it, without the GIL:
 * neither is closed meanwhile.  At a manual node it takes its turn, but for functions that drive nothing.
 */
class Inside {
public:
	/* Raises when the node or the part is closed, or about to be. */
	explicit Inside(const std::shared_ptr<Shared> &shared, Part *part = nullptr, bool drives = true);

	/* Whether there may be an Inside. */
	static bool may_be(const Shared &shared, const Part *part = nullptr);

private:
	struct Count {
		Count(std::shared_ptr<Shared> s, Part *p);
		~Count();
		Count(const Count &) = delete;

		std::shared_ptr<Shared> shared;
		Part *part;
	};

	Count count_;
	OwnTurn turn_;
	nb::gil_scoped_release free_; // ends before the others, which need the GIL
};

/* Let other threads have the GIL for a moment. */
void let_others_run();

/*
 * Let threads leave their moments without the GIL, in a second at most: after the end of the interpreter
 * none could.
 */
void let_threads_leave();

/* Close all nodes: the interpreter ends. */
void close_all_nodes();

#endif
