/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensor: memory of a node's, as a received tensor lies in it or as the program asked for it, which
 * any library takes without a copy by DLPack or by the buffer protocol.
 *
 * The memory lives as long as the tensor, or an array that was made of it, whatever becomes of the node
 * and of the sender.
 */
#ifndef WEFT_PYTHON_TENSOR_H
#define WEFT_PYTHON_TENSOR_H

#include <memory>
#include <vector>
#include "operation.h"

class Tensor {
public:
	/* @memory is the tensor's own, of the node's pool or lent by a peer; NULL: there are no bytes. */
	Tensor(std::shared_ptr<Shared> shared, void *memory, const weft_tensor &t, unsigned flags);
	Tensor(const Tensor &) = delete;
	~Tensor();

	const weft_tensor &view() const { return view_; }
	unsigned flags() const { return flags_; }
	const std::vector<int64_t> &shape() const { return shape_; }
	std::vector<int64_t> &byte_strides() { return byte_strides_; }
	uint64_t bytes() const;
	/* Whether at most one dimension is longer than 1: the order of dimensions says nothing then. */
	bool is_one_column() const;
	bool on_host() const { return is_on_host(view_); }

private:
	std::shared_ptr<Shared> shared_;
	void *memory_;
	weft_tensor view_;
	unsigned flags_;
	std::vector<int64_t> shape_, byte_strides_;
};

/*
 * Fill in the options of a receive, which gives @into, an array, or None: a tensor of what came; else
 * as fill().  Of memory of a CUDA device, @stream is as Array::take() has it.
 */
void fill_recv(weft_recv_options &options, Flight &flight, nb::handle into, nb::handle timeout,
	       unsigned priority = 0, nb::handle stream = nb::none());

/* Take memory of the node's pool for a tensor, which peers on this host may get without a copy. */
nb::object empty(std::shared_ptr<Shared> shared, nb::handle shape, const char *dtype);

void bind_tensor(nb::module_ &m);

#endif
