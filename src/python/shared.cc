/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared.h"

#include <algorithm>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "errors.h"
#include "operation.h"
#include "part.h"

static std::vector<Shared *> &all_nodes()
{
	static auto *all = new std::vector<Shared *>; // outlives what is destroyed at the end

	return *all;
}

/* Forks between the first process that had a node and this one: to ask for costs no system call. */
static unsigned forks;

static void count_forks()
{
	static bool counted;

	if (!counted)
		check(-pthread_atfork(nullptr, nullptr, [] { forks++; }));
	counted = true;
}

/* Calls of weft's on nodes that this thread is in: a handler of a signal may run in one. */
static thread_local unsigned calls_here;

/* Threads that let others have the GIL; under the GIL. */
static unsigned threads_resting;

void let_others_run()
{
	threads_resting++;
	{
		nb::gil_scoped_release free;

		usleep(1000);
	}
	threads_resting--;
}

void let_threads_leave()
{
	for (int i = 0; threads_resting && i < 100; i++) {
		nb::gil_scoped_release free;

		usleep(10000);
	}
}

bool Inside::may_be(const Shared &shared, const Part *part)
{
	return shared.there() && shared.state_ != Shared::CLOSING && !(part && part->closing());
}

/* A thread that drives already, and is in a handler of a signal, has no turn of its own to wait for. */
Turn::Turn(Shared &shared, bool wanted) : shared_(shared), thread_(std::this_thread::get_id())
{
	/* Threads of a parent, which are not in its child, may be in its list. */
	listed_ = wanted && shared.manual() && !shared.forked() &&
		  (shared.turns_.empty() || shared.turns_[0]->thread_ != thread_);
	if (listed_)
		shared.turns_.push_back(this);
}

Turn::~Turn()
{
	if (listed_)
		shared_.turns_.erase(std::find(shared_.turns_.begin(), shared_.turns_.end(), this));
}

bool Turn::has_come() const
{
	if (!listed_)
		return true;
	if (shared_.turns_[0] != this)
		return false;
	/* Under the GIL: what another thread begins goes to this one from here on. */
	if (shared_.there())
		(void)weft_fd(shared_.node_);
	return true;
}

void Turn::wait() const
{
	while (!has_come() && !shared_.forked())
		let_others_run();
}

Inside::Inside(const std::shared_ptr<Shared> &shared, Part *part, bool drives)
	: count_(shared, part), turn_(*shared, drives)
{
}

Inside::Count::Count(std::shared_ptr<Shared> s, Part *p) : shared(std::move(s)), part(p)
{
	if (!may_be(*shared, part))
		invalid("the node is closed");
	shared->inside_++;
	if (part)
		part->inside_++;
	calls_here++;
}

Inside::Count::~Count()
{
	shared->inside_--;
	if (part)
		part->inside_--;
	calls_here--;
}

Shared::Shared(const weft_node_options &options) : manual_(options.mode == WEFT_MANUAL), forks_(forks)
{
	int err;

	count_forks();
	{
		nb::gil_scoped_release free;

		err = weft_node_open(&options, &node_);
		if (!err) {
			err = weft_queue_open(node_, &queue_);
			if (err)
				weft_node_close(node_);
		}
	}
	check(err);
	all_nodes().push_back(this);
}

Shared::~Shared()
{
	auto &all = all_nodes();

	all.erase(std::find(all.begin(), all.end(), this));
	state_ = CLOSED;
	close_node();
	if (!forked())
		weft_queue_close(queue_);
	else
		/* Locks of a child's copies may be held for ever. */
		new std::vector<std::shared_ptr<void>>(std::move(lent));
}

weft_node *Shared::node() const
{
	if (!open())
		invalid("the node is closed");
	if (forked())
		check(weft_poll(node_, 0)); // raises: the node is the parent's
	return node_;
}

bool Shared::forked() const
{
	return forks != forks_;
}

/* Threads of a parent are not in its child. */
void Shared::wait_for_threads()
{
	while (inside_ && !forked())
		let_others_run();
}

void Shared::cancel_all()
{
	if (forked())
		return;
	for (Flight *flight : flights)
		if (flight->op)
			weft_cancel(flight->op);
}

void Shared::close_node()
{
	weft_node *node = node_;

	node_ = nullptr;
	if (forked())
		return;
	while (!node && ending_)
		let_others_run();
	if (!node)
		return;
	ending_ = true;
	wait_for_threads();
	if (manual_)
		(void)weft_fd(node); // this thread is the node's own from here on
	{
		nb::gil_scoped_release free;

		weft_node_close(node);
	}
	ending_ = false;
}

void Shared::on_close(nb::handle owner, nb::object function)
{
	/* Loops come and go while the node stays.  To ask a reference runs no Python code. */
	auto gone = [](const Closer &closer) { return closer.owner().is_none(); };

	closers_.erase(std::remove_if(closers_.begin(), closers_.end(), gone), closers_.end());
	closers_.push_back({ nb::weakref(owner), std::move(function) });
}

/* Call all of @closers.  Returns what the first of them that raises has raised. */
std::exception_ptr Shared::call_all(const std::vector<Closer> &closers)
{
	std::exception_ptr raised;

	for (const Closer &closer : closers) {
		try {
			nb::object owner = closer.owner();

			if (!owner.is_none())
				closer.function(owner);
		} catch (const nb::python_error &) {
			if (!raised)
				raised = std::current_exception();
		}
	}
	return raised;
}

void Shared::close()
{
	auto self = shared_from_this(); // what is dropped below may have the last reference

	if (calls_here)
		invalid("a handler of a signal can't close a node inside a call on one");
	if (state_ != OPEN) {
		while (!over_ && closer_ != std::this_thread::get_id() && !forked())
			let_others_run();
		return;
	}
	state_ = CLOSING;
	closer_ = std::this_thread::get_id();
	struct Over {
		bool &over;
		~Over() { over = true; }
	} over{ over_ };

	kick.reset();
	/* Threads that wait for operations hear of it at once, and others within a slice. */
	if (inside_)
		cancel_all();
	wait_for_threads();
	while (!parts.empty()) {
		Part *part = parts.back();

		parts.pop_back();
		part->close();
	}
	state_ = CLOSED;
	std::exception_ptr raised = call_all(std::exchange(closers_, {}));
	if (!results_)
		close_node();
	else
		cancel_all();
	wake(drain());
	if (raised)
		std::rethrow_exception(raised);
}

bool Shared::idle() const
{
	return std::none_of(flights.begin(), flights.end(), [](const Flight *flight) {
		return !flight->futures.empty() || !weft_op_ended(flight->op);
	});
}

nb::list Shared::drain()
{
	weft_op *ended[64];
	nb::list futures;
	int count;

	if (forked())
		return futures;
	while ((count = weft_queue_next(queue_, ended, 64, 0)) > 0) {
		for (int i = 0; i < count; i++)
			static_cast<Flight *>(weft_op_arg(ended[i]))->landing = true;
		for (int i = 0; i < count; i++)
			static_cast<Flight *>(weft_op_arg(ended[i]))->come_down(futures);
	}
	return futures;
}

void Shared::tidy()
{
	if (nobodys)
		wake(drain());
}

void Shared::let_go(void *memory)
{
	if (there())
		weft_free(node_, memory);
	results_--;
	if (results_ || state_ != CLOSED)
		return;
	nb::error_scope unharmed; // an exception may be under way that drops the result
	try {
		close_node();
		/* Operations that ended with the node may be awaited. */
		wake(drain());
	} catch (nb::python_error &e) {
		e.discard_as_unraisable("weft: the last result of a closed node");
	}
}

Part::Part(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

void Part::enter()
{
	shared_->parts.push_back(this);
}

void Part::close()
{
	if (closing_) {
		/* The part may be gone as soon as it is closed. */
		auto shared = shared_;
		auto closed = closed_;

		if (closer_ == std::this_thread::get_id())
			return;
		while (!*closed && !shared->forked())
			let_others_run();
		return;
	}
	closing_ = true;
	closer_ = std::this_thread::get_id();
	while (inside_ && !shared_->forked())
		let_others_run();
	end();
	*closed_ = true; // another thread may delete the part from here on
}

Part::~Part()
{
	auto &parts = shared_->parts;
	auto at = std::find(parts.begin(), parts.end(), this);

	if (at != parts.end())
		parts.erase(at);
}

void close_all_nodes()
{
	std::vector<std::shared_ptr<Shared>> nodes;

	for (Shared *shared : all_nodes())
		nodes.push_back(shared->shared_from_this());
	for (auto &shared : nodes) {
		try {
			shared->close();
		} catch (nb::python_error &e) {
			e.discard_as_unraisable("weft: the end of the interpreter closes its nodes");
		}
	}
	let_threads_leave();
}
