/* SPDX-License-Identifier: BSD-2-Clause */
#include "waiting.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "counters.h"

namespace weft_tensorflow {
namespace {

struct Call {
	Answer answer;
	const tensorflow::WorkerEnv *env;
	std::function<void()> given_up;
};

std::mutex calls_lock;
uint64_t last;

std::unordered_map<uint64_t, Call> &calls()
{
	static auto *all = new std::unordered_map<uint64_t, Call>;

	return *all;
}

/* Remove the call @number into *@call.  False: there is none any more. */
bool take(uint64_t number, Call *call)
{
	std::lock_guard<std::mutex> l(calls_lock);
	auto at = calls().find(number);

	if (at == calls().end())
		return false;
	*call = std::move(at->second);
	calls().erase(at);
	counters_add("sent_waiting", -1);
	return true;
}

/* A cancel, told by number: another thread may answer the call meanwhile. */
void cancelled(void *number)
{
	Call call;

	if (!take(reinterpret_cast<uintptr_t>(number), &call))
		return;
	/* The server, which ends once its calls are answered, is there until then. */
	if (call.given_up)
		call.given_up();
	call.answer.fail(absl::CancelledError(call.answer.key + ": the caller has given up"));
}

}  // namespace

uint64_t waiting_add(const Answer &answer, const tensorflow::WorkerEnv *env,
		     std::function<void()> given_up)
{
	uint64_t number;

	weft_served_defer(answer.call());
	{
		std::lock_guard<std::mutex> l(calls_lock);

		number = ++last;
		calls()[number] = {answer, env, std::move(given_up)};
		counters_add("sent_waiting");
	}
	weft_served_on_cancel(answer.call(), cancelled,
			      reinterpret_cast<void *>(static_cast<uintptr_t>(number)));
	return number;
}

bool waiting_remove(uint64_t number)
{
	Call call;

	return take(number, &call);
}

void waiting_end(const tensorflow::WorkerEnv *env)
{
	std::vector<Answer> answers;

	{
		std::lock_guard<std::mutex> l(calls_lock);

		for (auto at = calls().begin(); at != calls().end();) {
			if (at->second.env != env) {
				at++;
				continue;
			}
			answers.push_back(at->second.answer);
			at = calls().erase(at);
			counters_add("sent_waiting", -1);
		}
	}
	for (const Answer &answer : answers)
		answer.fail(absl::UnavailableError(answer.key + ": the server ends"));
}

}  // namespace weft_tensorflow
