/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that is handled in Python, until it is answered; the last chance is its end.
 */
#ifndef WEFT_PYTHON_SERVED_CALL_H
#define WEFT_PYTHON_SERVED_CALL_H

#include <memory>
#include <string>
#include "inbox.h"
#include "message.h"
#include "operation.h"
#include "part.h"

class ServedCall : public Part {
public:
	ServedCall(std::shared_ptr<Shared> shared, std::shared_ptr<Service> service, Arrival arrival);
	/* A call that is not answered is turned away. */
	~ServedCall() override { close(); }

	/* The call; raises when it has been answered. */
	struct weft_served *get() const;
	/* Whether the call is answered, or about to be, as its node closes. */
	bool is_over() const
	{
		return answered_ || closing() || !shared_->open() || shared_->forked();
	}
	const Arrival &arrival() const { return arrival_; }

	/* Attach arrays to the reply. */
	void attach(nb::list arrays);
	void reply(const nb::bytes &packed);
	/* End the call; of a stream also well, by status 0. */
	void fail(int status, const std::string &sentence, const nb::bytes &details);

	/* Write a message of a stream, with arrays beside it, and read one. */
	Operation write(const nb::bytes &packed, nb::handle timeout, nb::handle arrays);
	Operation read(nb::handle timeout);

private:
	void end() override;
	weft_stream *stream() const;
	const ProtobufCMethodDescriptor &method() const { return service_->method(arrival_.method); }
	void answered();
	void kick();

	std::shared_ptr<Service> service_;
	Arrival arrival_;
	bool answered_ = false;
	bool torn_ = false; // as Writer has it, or of the reply
};

#endif
