/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inbox of a server: calls that have come, for the event loop that handles them.
 *
 * weft's worker puts them in, without the GIL, and the loop reads the inbox's descriptor.
 */
#ifndef WEFT_PYTHON_INBOX_H
#define WEFT_PYTHON_INBOX_H

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>
#include <weft/served.h>
#include <weft/stream.h>

/* A call that has come: of one message, or a stream. */
struct Arrival {
	uint64_t number; // in this process; not 0
	unsigned method;
	struct weft_served *call;
	weft_peer *peer; // who calls; open until the node closes
	weft_stream *stream; // nullptr: of one message
	ProtobufCClosure closure;
	void *closure_data;
	std::string request;
};

/* Nobody has to hear any more whether the caller of call @number gives up. */
void forget(uint64_t number);

/* Answer a call that nobody has handled. */
void turn_away(const Arrival &arrival, const char *why);

class Inbox {
public:
	Inbox(); // throws std::bad_alloc where there is no descriptor
	~Inbox();
	Inbox(const Inbox &) = delete;

	/*
	 * Take @arrival, and tell later whether its caller gave up.  Throws std::bad_alloc: the call is
	 * not taken.  Threads: the worker.
	 */
	void come(Arrival arrival);
	/* The caller of call @number has given up.  Throws std::bad_alloc.  Threads: the worker. */
	void given_up(uint64_t number);

	/* Take what has come, and the numbers of calls whose callers gave up.  Threads: any. */
	void take(std::vector<Arrival> *arrivals, std::vector<uint64_t> *given_up);
	/* Turn all away, and what comes from now on.  Threads: any. */
	void close();
	int fd() const { return fd_; }

private:
	void ring();

	std::mutex lock_;
	std::vector<Arrival> arrivals_;
	std::vector<uint64_t> given_up_;
	bool closed_ = false;
	int fd_;
};

#endif
