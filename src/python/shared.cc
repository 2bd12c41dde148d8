/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared.h"

#include <algorithm>
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

Shared::Shared(const weft_node_options &options) : manual_(options.mode == WEFT_MANUAL), process_(getpid())
{
	int err;

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
	closed_ = true;
	close_node();
	if (!forked())
		weft_queue_close(queue_);
}

weft_node *Shared::node() const
{
	if (!open())
		invalid("the node is closed");
	return node_;
}

bool Shared::forked() const
{
	return getpid() != process_;
}

void Shared::close_node()
{
	weft_node *node = node_;

	node_ = nullptr;
	if (!node || forked())
		return;
	nb::gil_scoped_release free;
	weft_node_close(node);
}

void Shared::close()
{
	auto self = shared_from_this(); // what is dropped below may have the last reference

	if (closed_)
		return;
	kick.reset();
	while (!parts.empty()) {
		Part *part = parts.back();

		parts.pop_back();
		part->close();
	}
	closed_ = true;
	for (nb::handle closer : std::exchange(closers, nb::list()))
		closer();
	if (!results_) {
		close_node();
	} else if (!forked()) {
		for (Flight *flight : flights)
			weft_cancel(flight->op);
	}
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
	if (nobodys && !awaited)
		wake(drain());
}

void Shared::let_go(void *memory)
{
	if (node_ && !forked())
		weft_free(node_, memory);
	results_--;
	if (results_ || !closed_)
		return;
	close_node();
	/* Nobody looks into the queue of a closed node any more. */
	drain();
}

Part::Part(std::shared_ptr<Shared> shared) : shared_(std::move(shared))
{
	shared_->parts.push_back(this);
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
