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
	void close() override;

	weft_window *get() const { return need(window_, "the window is closed"); }

private:
	Array array_;
	weft_window *window_ = nullptr;
};

/* A window of a peer's. */
class Remote : public Part {
public:
	Remote(std::shared_ptr<Shared> shared, weft_remote *remote) : Part(std::move(shared)), remote_(remote) {}
	~Remote() override { close(); }
	void close() override;

	weft_remote *get() const { return need(remote_, "the remote window is closed"); }

private:
	weft_remote *remote_;
};

/* Memory of an array that stays registered. */
class Region : public Part {
public:
	Region(std::shared_ptr<Shared> shared, nb::handle memory);
	~Region() override { close(); }
	void close() override;

private:
	Array array_;
	weft_region *region_ = nullptr;
};

#endif
