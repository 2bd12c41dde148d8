/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node: the backend's node of weft, and whether it is still open, for objects that may outlive the
 * backend; and what is begun again at it.
 *
 * Threads: any; close() while nobody else uses the node.
 */
#ifndef WEFT_NIXL_NODE_H
#define WEFT_NIXL_NODE_H

#include <weft/node.h>

#include "retry.h"

namespace weft_nixl {

class Node {
public:
	/* A node whose operations have @timeout_ns. */
	Node(struct weft_node *node, uint64_t timeout_ns) : node_(node), timeout_ns_(timeout_ns) {}
	~Node() { close(); }
	Node(const Node &) = delete;
	void operator=(const Node &) = delete;

	/* Returns the node, NULL when it has closed. */
	struct weft_node *get() const { return node_; }

	uint64_t timeout_ns() const { return timeout_ns_; }
	Retries &retries() { return retries_; }

	/* Close the node, which ends all operations. */
	void close()
	{
		struct weft_node *node = node_;

		retries_.close();
		if (node && !weft_node_close(node))
			node_ = nullptr;
	}

private:
	struct weft_node *node_;
	const uint64_t timeout_ns_;
	Retries retries_;
};

}  // namespace weft_nixl

#endif
