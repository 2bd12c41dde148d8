/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plug-in: what NIXL finds by name in libplugin_WEFT.so.
 */
#include <exception>

#include <weft/base.h>

#include "backend.h"
#include "engine.h"
#include "log.h"
#include "settings.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace weft_nixl;

constexpr char kName[] = "WEFT";

Backend *open(const BackendOptions *options)
{
	try {
		return new Engine(options);
	} catch (const std::exception &error) {
		log_line(LOG_ERROR, "no backend: %s", error.what());
		return nullptr;
	}
}

void close(Backend *backend)
{
	delete backend;
}

const char *name()
{
	return kName;
}

Plugin plugin = {
	kInterface, open, close, name, weft_version, settings_defaults, Engine::all_memories,
};

}  // namespace

EXPORT Plugin *nixl_plugin_init()
{
	return &plugin;
}

EXPORT void nixl_plugin_fini()
{
}
