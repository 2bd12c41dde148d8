/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows, remote windows and regions, as Python has them.
 */
#ifndef WEFT_PYTHON_WINDOW_H
#define WEFT_PYTHON_WINDOW_H

#include "node.h"
#include "part.h"

/* Memory of an array that peers may read or write by themselves. */
class Window : public Part {
public:
	Window(std::shared_ptr<Shared> shared, nb::handle memory, unsigned rights);
	~Window() override { close(); }

	weft_window *get() const { return need(window_, "the window is closed"); }

private:
	void end() override;

	Array array_;
	weft_window *window_ = nullptr;
};

/* A window of a peer's. */
class Remote : public Part {
public:
	Remote(std::shared_ptr<Shared> shared, weft_remote *remote) : Part(std::move(shared)), remote_(remote)
	{
		enter();
	}
	~Remote() override { close(); }

	weft_remote *get() const { return need(remote_, "the remote window is closed"); }

private:
	void end() override;

	weft_remote *remote_;
};

/* Memory of an array that stays registered. */
class Region : public Part {
public:
	Region(std::shared_ptr<Shared> shared, nb::handle memory);
	~Region() override { close(); }

private:
	void end() override;

	Array array_;
	weft_region *region_ = nullptr;
};

#endif
