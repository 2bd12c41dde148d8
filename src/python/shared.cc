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

Inside::Inside(const std::shared_ptr<Shared> &shared, Part *part) : count_(shared, part) {}

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
	{
		nb::gil_scoped_release free;

		weft_node_close(node);
	}
	ending_ = false;
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
	for (nb::handle closer : std::exchange(closers, nb::list()))
		closer();
	if (!results_)
		close_node();
	else
		cancel_all();
	wake(drain());
}

bool Shared::idle() const
{
	return std::none_of(flights.begin(), flights.end(), [](const Flight *flight) {
		return flight->future.is_valid() || !weft_op_ended(flight->op);
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
	close_node();
	/* Nobody looks into the queue of a closed node any more. */
	drain();
}

Part::Part(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

void Part::enter()
{
	shared_->parts.push_back(this);
}

void Part::close()
{
	if (closing_) {
		while (!closed_ && closer_ != std::this_thread::get_id() && !shared_->forked())
			let_others_run();
		return;
	}
	closing_ = true;
	closer_ = std::this_thread::get_id();
	while (inside_ && !shared_->forked())
		let_others_run();
	end();
	closed_ = true; // another thread may delete the part from here on
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
	for (auto &shared : nodes)
		shared->close();
	let_threads_leave();
}
