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
			/* Nobody waits for it: the array is given back when the operation has ended. */
			Operation forgotten(std::move(flight));
		}
	}

private:
	std::vector<std::unique_ptr<Flight>> flights_;
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

/* Write @packed of @type to the stream that @stream gives, or raises, with arrays beside it. */
Operation write_to(const std::shared_ptr<Shared> &shared, const std::function<weft_stream *()> &stream,
		   const ProtobufCMessageDescriptor *type, const nb::bytes &packed, nb::handle timeout,
		   nb::handle arrays);

/* Read the next message of a stream of @service: its bytes, or None after the last. */
Operation read_from(const std::shared_ptr<Shared> &shared, weft_stream *stream,
		    const std::shared_ptr<Service> &service, nb::handle timeout);

void bind_call(nb::module_ &m);
void bind_served_call(nb::module_ &m);
void bind_serve(nb::module_ &m, nb::class_<Node> &node);

#endif
