/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of a node that are closed before it: windows, remote windows, regions and groups.
 *
 * Threads: those that hold the GIL.
 */
#ifndef WEFT_PYTHON_PART_H
#define WEFT_PYTHON_PART_H

#include <memory>
#include "errors.h"
#include "shared.h"

class Part {
public:
	explicit Part(std::shared_ptr<Shared> shared);
	Part(const Part &) = delete;
	virtual ~Part();

	/* Close the part, once; later calls do nothing. */
	virtual void close() = 0;
	const std::shared_ptr<Shared> &shared() const { return shared_; }

protected:
	/* Returns @handle; raises when the node is closed, or @closed where the part is. */
	template <typename T> T *need(T *handle, const char *closed) const
	{
		shared_->node();
		if (!handle)
			invalid(closed);
		return handle;
	}

	std::shared_ptr<Shared> shared_;
};

#endif
