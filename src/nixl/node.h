/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node: the backend's node of weft, and whether it is still open, for objects that may outlive the
 * backend.
 *
 * Threads: any; close() while nobody else uses the node.
 */
#ifndef WEFT_NIXL_NODE_H
#define WEFT_NIXL_NODE_H

#include <weft/node.h>

namespace weft_nixl {

class Node {
public:
	explicit Node(struct weft_node *node) : node_(node) {}
	~Node() { close(); }
	Node(const Node &) = delete;
	void operator=(const Node &) = delete;

	/* Returns the node, NULL when it has closed. */
	struct weft_node *get() const { return node_; }

	/* Close the node, which ends all operations. */
	void close()
	{
		struct weft_node *node = node_;

		if (node && !weft_node_close(node))
			node_ = nullptr;
	}

private:
	struct weft_node *node_;
};

}  // namespace weft_nixl

#endif
