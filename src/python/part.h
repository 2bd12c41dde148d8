/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of a node that are closed before it: windows, remote windows, regions, groups, streams, servers
 * and calls that are served.
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

	/*
	 * Close the part when no thread is inside it; a second thread that closes it waits for the first.
	 * The destructor of each kind calls it.
	 */
	void close();
	bool closing() const { return closing_; }
	const std::shared_ptr<Shared> &shared() const { return shared_; }

protected:
	/* Let the node close the part.  The last that a constructor does. */
	void enter();
	/* Do what closes this kind of part.  Lets other threads run, maybe. */
	virtual void end() = 0;

	/* Returns @handle; raises when the node is closed, or @closed where the part is. */
	template <typename T> T *need(T *handle, const char *closed) const
	{
		shared_->node();
		if (!handle || closing_)
			invalid(closed);
		return handle;
	}

	std::shared_ptr<Shared> shared_;

private:
	friend class Inside;

	bool closing_ = false;
	std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);
	std::thread::id closer_;
	unsigned inside_ = 0; // threads in functions of weft's on this part
};

#endif
