/* SPDX-License-Identifier: BSD-2-Clause */
#include "arena.h"

#include <vector>

#include <tensorflow/core/common_runtime/process_state.h>
#include <tensorflow/core/platform/env.h>
#include <tensorflow/core/platform/logging.h>
#include <tensorflow/core/platform/mutex.h>

#include "counters.h"
#include "settings.h"

namespace weft_tensorflow {
namespace {

using tensorflow::mutex;
using tensorflow::mutex_lock;
using tensorflow::ProcessState;

struct Arena {
	void *memory;
	size_t bytes;
};

/*
 * TensorFlow tells of an arena while it holds its allocator, in any thread, and registering waits
 * for the node's.  So an arena is only noted there, and registered in a thread of its own.
 */
class Arenas {
public:
	void add(void *memory, size_t bytes)
	{
		{
			mutex_lock l(fresh_lock_);

			fresh_.push_back({memory, bytes});
		}
		tensorflow::Env::Default()->SchedClosure([this] { take_fresh(); });
	}

	void join(weft_node *node)
	{
		mutex_lock l(lock_);

		nodes_.push_back(node);
		for (const Arena &arena : arenas_)
			enter(node, arena);
	}

	void leave(weft_node *node)
	{
		mutex_lock l(lock_);

		for (auto at = nodes_.begin(); at != nodes_.end(); at++) {
			if (*at == node) {
				nodes_.erase(at);
				break;
			}
		}
	}

private:
	void take_fresh()
	{
		mutex_lock l(lock_);
		std::vector<Arena> fresh;

		{
			mutex_lock f(fresh_lock_);

			fresh.swap(fresh_);
		}
		for (const Arena &arena : fresh) {
			arenas_.push_back(arena);
			for (weft_node *node : nodes_)
				enter(node, arena);
		}
	}

	/* A region goes with its node: nobody keeps it. */
	static void enter(weft_node *node, const Arena &arena)
	{
		struct weft_region *region;

		if (weft_register(node, arena.memory, arena.bytes, &region))
			LOG(WARNING) << "weft: " << arena.bytes
				     << " bytes of TensorFlow's memory are registered by each "
					"transfer: "
				     << weft_error();
		else
			counters_add("registered_bytes", static_cast<int64_t>(arena.bytes));
	}

	mutex fresh_lock_;
	std::vector<Arena> fresh_ TF_GUARDED_BY(fresh_lock_); /* not registered with any node */
	mutex lock_;
	std::vector<Arena> arenas_ TF_GUARDED_BY(lock_);
	std::vector<weft_node *> nodes_ TF_GUARDED_BY(lock_);
};

Arenas &arenas()
{
	/* TensorFlow may take memory while static objects end. */
	static auto *all = new Arenas;

	return *all;
}

/* TensorFlow's own state, which tells nobody whether there is an allocator of the host. */
struct State : ProcessState {
	static bool has_allocator(ProcessState *state)
	{
		mutex_lock l(state->*(&State::mu_));

		return !(state->*(&State::cpu_allocators_)).empty();
	}
};

const bool visitor_registered = [] {
	ProcessState *state;

	if (!settings_register())
		return false;
	state = ProcessState::singleton();
	/* TensorFlow would end the process. */
	if (State::has_allocator(state)) {
		LOG(WARNING) << "weft: TF_WEFT_REGISTER comes too late: import weft_tensorflow "
				"before TensorFlow makes a tensor or a server";
		return false;
	}
	/* With someone to tell, TensorFlow takes its memory in arenas, and keeps them. */
	state->AddCPUAllocVisitor([](void *memory, int, size_t bytes) {
		arenas().add(memory, bytes);
	});
	return true;
}();

}  // namespace

void arena_join(weft_node *node)
{
	arenas().join(node);
}

void arena_leave(weft_node *node)
{
	arenas().leave(node);
}

}  // namespace weft_tensorflow
