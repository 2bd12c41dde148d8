/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grpc_peer: what gRPC C++ does where weft could stand in its place.
 *
 *   grpc_peer serve sync|async|spin        prints its address, and serves for ever
 *   grpc_peer unary|threads|spin|async|stream [-s SIZES] [-t SECONDS] [-w WINDOW] ADDRESS...
 *   grpc_peer paced -r RATE [-s SIZES] [-t SECONDS] [-w WINDOW] ADDRESS...
 *
 * A body is one message whose parts have the SIZES.  unary: one blocking call
 * after the other, as most programs do it.  threads: the same by WINDOW threads.
 * spin: one at a time, by a completion queue that is polled without ever sleeping, on
 * both sides.  async: WINDOW calls in flight to each address.  paced: RATE of them
 * due in a second, at the times of a Poisson process with a fixed seed, each timed
 * from when it was due; one that finds WINDOW calls in flight waits.  stream: bodies
 * one after the other on a client stream, to its end.  The answers are empty.  With
 * weft's WEFT_CERT, WEFT_KEY and WEFT_CA in the environment both sides show that
 * certificate, by TLS.
 */
#include "peer.grpc.pb.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using Clock = std::chrono::steady_clock;

static const int warm_count = 64;

[[noreturn]] static void die(const std::string &why)
{
	fprintf(stderr, "grpc_peer: %s\n", why.c_str());
	exit(1);
}

static void must(const grpc::Status &status)
{
	if (!status.ok())
		die(status.error_message());
}

static uint64_t spent_ns()
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

static double since(Clock::time_point start)
{
	return std::chrono::duration<double>(Clock::now() - start).count();
}

/* The next thing that has happened; with @spin asked for again and again. */
static bool next(grpc::CompletionQueue *queue, bool spin, void **tag)
{
	bool ok = false;

	if (!spin)
		return queue->Next(tag, &ok) && ok;
	while (true) {
		switch (queue->AsyncNext(tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC))) {
		case grpc::CompletionQueue::GOT_EVENT:
			return ok;
		case grpc::CompletionQueue::SHUTDOWN:
			return false;
		default:
			break;
		}
	}
}

/* The serving side */

static void answer(const bench::Body &body, bench::Word *word)
{
	if (body.ask_spent())
		word->set_spent_ns(spent_ns());
}

class SyncPeer final : public bench::Peer::Service {
	grpc::Status Put(grpc::ServerContext *, const bench::Body *body, bench::Word *word) override
	{
		answer(*body, word);
		return grpc::Status::OK;
	}

	grpc::Status Stream(grpc::ServerContext *, grpc::ServerReader<bench::Body> *bodies,
			    bench::Word *) override
	{
		bench::Body body;

		while (bodies->Read(&body))
			;
		return grpc::Status::OK;
	}
};

/* One call of an asynchronous server, from its request to the end of its answer. */
class Served {
public:
	Served(bench::Peer::AsyncService *service, grpc::ServerCompletionQueue *queue)
		: service_(service), queue_(queue), writer_(&context_)
	{
		service_->RequestPut(&context_, &body_, &writer_, queue_, queue_, this);
	}

	void advance()
	{
		if (answered_) {
			delete this;
			return;
		}
		answered_ = true;
		new Served(service_, queue_);
		answer(body_, &word_);
		writer_.Finish(word_, grpc::Status::OK, this);
	}

private:
	bench::Peer::AsyncService *service_;
	grpc::ServerCompletionQueue *queue_;
	grpc::ServerContext context_;
	bench::Body body_;
	bench::Word word_;
	grpc::ServerAsyncResponseWriter<bench::Word> writer_;
	bool answered_ = false;
};

/* The file that a variable names, which is one of weft's: both take the same certificates. */
static std::string content(const char *variable)
{
	const char *path = getenv(variable);
	std::ifstream file(path ? path : "");
	std::stringstream text;

	if (!file)
		die(std::string("can't read the file of ") + variable);
	text << file.rdbuf();
	return text.str();
}

static bool secured()
{
	return getenv("WEFT_CERT") != nullptr;
}

/* TLS with a certificate of each side, or nothing. */
static std::shared_ptr<grpc::ServerCredentials> server_credentials()
{
	if (!secured())
		return grpc::InsecureServerCredentials();
	grpc::SslServerCredentialsOptions options(
		GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
	options.pem_root_certs = content("WEFT_CA");
	options.pem_key_cert_pairs.push_back({ content("WEFT_KEY"), content("WEFT_CERT") });
	return grpc::SslServerCredentials(options);
}

static std::shared_ptr<grpc::ChannelCredentials> client_credentials()
{
	if (!secured())
		return grpc::InsecureChannelCredentials();
	return grpc::SslCredentials({ content("WEFT_CA"), content("WEFT_KEY"),
				      content("WEFT_CERT") });
}

static int serve(const std::string &mode)
{
	bench::Peer::AsyncService async;
	SyncPeer sync;
	grpc::ServerBuilder builder;
	std::unique_ptr<grpc::ServerCompletionQueue> queue;
	int port = 0;
	void *tag;

	builder.SetMaxReceiveMessageSize(-1);
	builder.AddListeningPort("127.0.0.1:0", server_credentials(), &port);
	if (mode == "sync") {
		builder.RegisterService(&sync);
	} else {
		builder.RegisterService(&async);
		queue = builder.AddCompletionQueue();
	}
	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
	if (!server || !port)
		die("can't listen");
	printf("127.0.0.1:%d\n", port);
	fflush(stdout);
	if (!queue) {
		server->Wait();
		return 0;
	}
	for (int i = 0; i < 64; i++)
		new Served(&async, queue.get());
	while (next(queue.get(), mode == "spin", &tag))
		static_cast<Served *>(tag)->advance();
	return 0;
}

/* The measuring side */

struct Options {
	std::string mode;
	std::vector<size_t> sizes = { 0 };
	double seconds = 1;
	unsigned window = 1;
	double rate = 0; /* of paced */
	std::vector<std::string> addresses;
};

struct Result {
	std::vector<double> us; /* of bodies one at a time */
	uint64_t count = 0;
	double seconds = 0;
	uint64_t spent_ns = 0; /* by all processes */
};

using Stubs = std::vector<std::unique_ptr<bench::Peer::Stub>>;

static uint64_t all_spent_ns(const Stubs &stubs)
{
	uint64_t sum = spent_ns();

	for (const auto &stub : stubs) {
		grpc::ClientContext context;
		bench::Body body;
		bench::Word word;

		body.set_ask_spent(true);
		must(stub->Put(&context, body, &word));
		sum += word.spent_ns();
	}
	return sum;
}

static Result one_by_one(const Options &o, const Stubs &stubs, const bench::Body &body)
{
	Result result;
	Clock::time_point start = Clock::now();

	do {
		grpc::ClientContext context;
		bench::Word word;
		Clock::time_point begun = Clock::now();

		must(stubs[result.count % stubs.size()]->Put(&context, body, &word));
		result.us.push_back(since(begun) * 1e6);
		result.count++;
	} while (since(start) < o.seconds);
	result.seconds = since(start);
	return result;
}

static Result by_threads(const Options &o, const Stubs &stubs, const bench::Body &body)
{
	std::vector<Result> results(o.window);
	std::vector<std::thread> threads;
	Result sum;

	for (Result &result : results)
		threads.emplace_back([&] { result = one_by_one(o, stubs, body); });
	for (std::thread &thread : threads)
		thread.join();
	for (const Result &result : results) {
		sum.us.insert(sum.us.end(), result.us.begin(), result.us.end());
		sum.count += result.count;
		sum.seconds = std::max(sum.seconds, result.seconds);
	}
	return sum;
}

/* A call in flight. */
struct Flight {
	grpc::ClientContext context;
	bench::Word word;
	grpc::Status status;
	std::unique_ptr<grpc::ClientAsyncResponseReader<bench::Word>> reader;
	bench::Peer::Stub *stub;
	Clock::time_point begun;
};

/* Begin a call that is timed from @begun. */
static void begin(grpc::CompletionQueue *queue, bench::Peer::Stub *stub, const bench::Body &body,
		  Clock::time_point begun)
{
	Flight *flight = new Flight;

	flight->stub = stub;
	flight->begun = begun;
	flight->reader = stub->AsyncPut(&flight->context, body, queue);
	flight->reader->Finish(&flight->word, &flight->status, flight);
}

static Result in_flight(const Options &o, const Stubs &stubs, const bench::Body &body)
{
	grpc::CompletionQueue queue;
	bool spin = o.mode == "spin";
	size_t flying = 0;
	Result result;
	Clock::time_point start = Clock::now();
	void *tag;

	for (const auto &stub : stubs)
		for (unsigned i = 0; i < o.window; i++, flying++)
			begin(&queue, stub.get(), body, Clock::now());
	while (flying && next(&queue, spin, &tag)) {
		std::unique_ptr<Flight> flight(static_cast<Flight *>(tag));

		must(flight->status);
		result.us.push_back(since(flight->begun) * 1e6);
		result.count++;
		if (since(start) < o.seconds)
			begin(&queue, flight->stub, body, Clock::now());
		else
			flying--;
	}
	result.seconds = since(start);
	return result;
}

/*
 * The next call that has ended.  None until @until, or none yet where that is less than 2 ms away:
 * a queue waits for whole milliseconds.
 */
static Flight *ended(grpc::CompletionQueue *queue, Clock::time_point until)
{
	auto us = std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now());
	gpr_timespec gap = gpr_time_from_micros(us.count() - 2000, GPR_TIMESPAN);
	gpr_timespec deadline = us.count() > 2000
					? gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gap)
					: gpr_time_0(GPR_CLOCK_MONOTONIC);
	void *tag;
	bool ok;

	return queue->AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT
		       ? static_cast<Flight *>(tag)
		       : nullptr;
}

static Result paced(const Options &o, const Stubs &stubs, const bench::Body &body)
{
	const std::chrono::milliseconds slice(100);
	grpc::CompletionQueue queue;
	std::mt19937_64 seed(0);
	std::exponential_distribution<double> interval(o.rate / 1e9);
	const size_t most = o.window * stubs.size();
	size_t begun = 0;
	Result result;
	Clock::time_point start = Clock::now(), due = start;

	while (true) {
		/* Calls that still wait when the time has passed twice are dropped. */
		bool more = std::chrono::duration<double>(due - start).count() < o.seconds &&
			    since(start) < 2 * o.seconds;
		bool full = begun - result.count == most;

		if (!more && begun == result.count)
			break;
		if (more && !full && due <= Clock::now()) {
			begin(&queue, stubs[begun++ % stubs.size()].get(), body, due);
			due += std::chrono::nanoseconds(std::llround(interval(seed)));
			continue;
		}
		std::unique_ptr<Flight> flight(
			ended(&queue, more && !full ? due : Clock::now() + slice));
		if (!flight)
			continue;
		must(flight->status);
		result.us.push_back(since(flight->begun) * 1e6);
		result.count++;
	}
	result.seconds = since(start);
	return result;
}

static Result stream(const Options &o, const Stubs &stubs, const bench::Body &body)
{
	grpc::ClientContext context;
	bench::Word word;
	Result result;
	Clock::time_point start = Clock::now();
	auto writer = stubs[0]->Stream(&context, &word);

	do {
		if (!writer->Write(body))
			die("the stream has ended early");
		result.count++;
	} while (since(start) < o.seconds);
	writer->WritesDone();
	must(writer->Finish());
	result.seconds = since(start);
	result.us.push_back(result.seconds * 1e6 / static_cast<double>(result.count));
	return result;
}

static Result measure(const Options &o, const Stubs &stubs, const bench::Body &body)
{
	uint64_t before = all_spent_ns(stubs);
	Result result = o.mode == "unary"     ? one_by_one(o, stubs, body)
			: o.mode == "threads" ? by_threads(o, stubs, body)
			: o.mode == "stream"  ? stream(o, stubs, body)
			: o.mode == "paced"   ? paced(o, stubs, body)
					      : in_flight(o, stubs, body);

	result.spent_ns = all_spent_ns(stubs) - before;
	return result;
}

static void print(const Options &o, Result *r, size_t bytes)
{
	double count = static_cast<double>(r->count), last;

	std::sort(r->us.begin(), r->us.end());
	last = static_cast<double>(r->us.size() - 1);
	printf("{\"test\":\"grpc_%s\",\"bytes\":%zu,\"count\":%llu,\"seconds\":%.6f,"
	       "\"latency_us\":{\"p50\":%.2f,\"p99\":%.2f,\"p999\":%.2f,\"max\":%.2f},"
	       "\"bytes_per_s\":%.0f,\"messages_per_s\":%.1f,\"cpu_us\":%.3f}\n",
	       o.mode.c_str(), bytes, static_cast<unsigned long long>(r->count), r->seconds,
	       r->us[static_cast<size_t>(0.5 * last)], r->us[static_cast<size_t>(0.99 * last)],
	       r->us[static_cast<size_t>(0.999 * last)], r->us.back(),
	       count * static_cast<double>(bytes) / r->seconds, count / r->seconds,
	       static_cast<double>(r->spent_ns) / 1e3 / count);
}

static int run(const Options &o)
{
	grpc::ChannelArguments arguments;
	Stubs stubs;
	bench::Body body;
	size_t bytes = 0;

	arguments.SetMaxSendMessageSize(-1);
	for (const std::string &address : o.addresses)
		stubs.push_back(bench::Peer::NewStub(grpc::CreateCustomChannel(
			address, client_credentials(), arguments)));
	for (size_t size : o.sizes) {
		/* No part of nothing: an empty call is empty. */
		if (size)
			body.add_parts(std::string(size, 'a'));
		bytes += size;
	}
	for (int i = 0; i < (bytes < 1 << 20 ? warm_count : 4); i++)
		for (const auto &stub : stubs) {
			grpc::ClientContext context;
			bench::Word word;

			must(stub->Put(&context, body, &word));
		}
	Result result = measure(o, stubs, body);
	print(o, &result, bytes);
	return 0;
}

static size_t bytes_of(const std::string &text)
{
	char *end;
	size_t value = strtoull(text.c_str(), &end, 10);

	return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

static std::vector<size_t> sizes_of(const std::string &list)
{
	std::vector<size_t> sizes;

	for (size_t at = 0, comma; at <= list.size(); at = comma + 1) {
		comma = std::min(list.find(',', at), list.size());
		sizes.push_back(bytes_of(list.substr(at, comma - at)));
	}
	return sizes;
}

int main(int argc, char **argv)
{
	Options o;
	int c;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	o.mode = argc > 1 ? argv[1] : "";
	optind = 2;
	while ((c = getopt(argc, argv, "r:s:t:w:")) != -1)
		if (c == 's')
			o.sizes = sizes_of(optarg);
		else if (c == 't')
			o.seconds = strtod(optarg, nullptr);
		else if (c == 'r')
			o.rate = strtod(optarg, nullptr);
		else if (c == 'w')
			o.window = static_cast<unsigned>(strtoul(optarg, nullptr, 10));
		else
			return 2;
	for (; optind < argc; optind++)
		o.addresses.push_back(argv[optind]);
	if (o.addresses.empty() || !(o.seconds > 0) || !o.window ||
	    (o.mode == "paced") != (o.rate > 0))
		die("usage: grpc_peer serve sync|async|spin, unary|threads|spin|async|stream "
		    "or paced -r RATE, then [-s SIZES] [-t SECONDS] [-w WINDOW] ADDRESS...");
	return run(o);
}
