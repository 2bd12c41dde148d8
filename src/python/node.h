/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes and peers, as Python has them.
 */
#ifndef WEFT_PYTHON_NODE_H
#define WEFT_PYTHON_NODE_H

#include <memory>
#include <string>
#include "operation.h"

struct Node {
	std::shared_ptr<Shared> shared;
};

class Peer {
public:
	/* @owned: the peer was opened for this object. */
	Peer(std::shared_ptr<Shared> shared, weft_peer *peer, bool owned);
	Peer(Peer &&other) noexcept;
	~Peer();

	/* The peer; raises when the node is closed. */
	weft_peer *get() const;
	const std::shared_ptr<Shared> &shared() const { return shared_; }

private:
	std::shared_ptr<Shared> shared_;
	weft_peer *peer_;
	bool owned_;
};

/* Key of a tensor or window: bytes, or a str in UTF-8.  Raises @wrong if it is neither. */
struct Key {
	explicit Key(nb::handle object, const char *wrong = "a key is bytes, or a str");
	const char *data = nullptr;
	Py_ssize_t bytes = 0;
};

/* The peer that @op is with; None: there is none. */
nb::object peer_of(const std::shared_ptr<Shared> &shared, const weft_op *op);

nb::class_<Node> bind_node(nb::module_ &m);
nb::class_<Peer> bind_peer(nb::module_ &m);
void bind_window(nb::module_ &m, nb::class_<Node> &node, nb::class_<Peer> &peer);
void bind_group(nb::module_ &m, nb::class_<Node> &node);

#endif
