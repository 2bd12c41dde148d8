/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls and streams, of bytes: what weft/rpc.py makes of them has messages.
 */
#ifndef WEFT_PYTHON_CALL_H
#define WEFT_PYTHON_CALL_H

#include <functional>
#include <memory>
#include <vector>
#include "message.h"
#include "node.h"
#include "part.h"
#include "tensor.h"

/*
 * Arrays that go beside a message: all are taken before the first is attached, as one that is none, or
 * can't go there, may be among them, and taking one may run other threads.
 */
class Attached {
public:
	Attached(const std::shared_ptr<Shared> &shared, nb::handle arrays)
	{
		for (nb::handle array : arrays) {
			if (flights_.size() == WEFT_ATTACHMENTS_MAX)
				invalid("too many arrays beside one message");
			flights_.push_back(std::make_unique<Flight>(shared));
			Array &taken = flights_.back()->array;
			taken.take(array, false);
			if (!is_on_host(taken.tensor()))
				taken.need_contiguous("an array of a device is not contiguous");
		}
	}

	/* Attach them by @attach: (tensor, options, op), as weft_call_attach() takes them. */
	template <typename Attach> void attach(Attach attach)
	{
		for (std::unique_ptr<Flight> &flight : flights_) {
			weft_send_options o = WEFT_SEND_OPTIONS_INIT;

			fill(o.op, *flight, nb::none());
			o.stream = flight->array.stream();
			check(attach(flight->array.pointer(), &o, &flight->op));
			has_begun_ = true;
			/* Nobody waits for it: the array is given back when the operation has ended. */
			Operation forgotten(std::move(flight));
		}
	}

	/* Whether one is attached. */
	bool has_begun() const { return has_begun_; }

private:
	std::vector<std::unique_ptr<Flight>> flights_;
	bool has_begun_ = false;
};

/* Describe an attachment as its receiver sees it before it takes it. */
nb::tuple attachment_of(const weft_tensor *t, unsigned flags);

/*
 * Receive an attachment by @receive: (tensor, options, op), as weft_op_receive() takes them.  @into:
 * None, or an array to receive into.
 */
template <typename Receive>
Operation receive_by(const std::shared_ptr<Shared> &shared, nb::handle into, nb::handle timeout,
		     Receive receive)
{
	auto flight = std::make_unique<Flight>(shared);
	weft_recv_options o = WEFT_RECV_OPTIONS_INIT;

	fill_recv(o, *flight, into, timeout);
	check(receive(flight->array.pointer(), &o, &flight->op));
	return Operation(std::move(flight));
}

/* An end of a stream, as what is written needs it. */
struct Writer {
	const std::shared_ptr<Shared> &shared;
	const std::shared_ptr<Service> &service;
	const ProtobufCMessageDescriptor *type; // of a message
	std::function<weft_stream *()> stream;	// gives the stream, or raises
	bool &torn; // a message was refused with some of its arrays attached: they are no other's
};

/* Raise if @torn, for the arrays would go with another message. */
void need_whole(bool torn);

/* Write @packed, with arrays beside it. */
Operation write_to(const Writer &writer, const nb::bytes &packed, nb::handle timeout,
		   nb::handle arrays);

/* Read the next message of a stream of @service: its bytes, or None after the last. */
Operation read_from(const std::shared_ptr<Shared> &shared, weft_stream *stream,
		    const std::shared_ptr<Service> &service, nb::handle timeout);

void bind_call(nb::module_ &m);
void bind_served_call(nb::module_ &m);
void bind_serve(nb::module_ &m, nb::class_<Node> &node);

#endif
