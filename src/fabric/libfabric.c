/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/libfabric.h"
#include "fabric/signals.h"
#include "util/fork.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <rdma/fabric.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* The functions that weft calls by name. */
struct functions {
	__typeof__(fi_getinfo) *getinfo;
	__typeof__(fi_freeinfo) *freeinfo;
	__typeof__(fi_dupinfo) *dupinfo;
	__typeof__(fi_fabric) *fabric;
	__typeof__(fi_version) *version;
};

/*
 * The versions are those that a linker would have bound: configure found them.
 * dlsym() alone would give the latest, whose structures may be larger than the
 * headers say.
 */
static const struct {
	const char *name;
	const char *version; /* "": libfabric was built without versions */
	size_t offset;
} entries[] = {
#define ENTRY(name, version) \
	{ "fi_" #name, version, offsetof(struct functions, name) }
	ENTRY(getinfo, WF_FI_GETINFO_VERSION),
	ENTRY(freeinfo, WF_FI_FREEINFO_VERSION),
	ENTRY(dupinfo, WF_FI_DUPINFO_VERSION),
	ENTRY(fabric, WF_FI_FABRIC_VERSION),
	ENTRY(version, WF_FI_VERSION_VERSION),
#undef ENTRY
};

/*
 * Two threads that load libfabric at once find the same functions.  The first thread
 * writes them here, before @loaded says so, and nobody changes them after.
 */
static struct functions functions;
static atomic_bool loaded;
/* The dynamic linker's record of libfabric's file; NULL: libfabric is not loaded. */
static _Atomic(const struct link_map *) object;

/* A search of the objects of the process. */
struct search {
	ElfW(Addr) code, libfabric;
	bool reached; /* the walk has come to libfabric */
	bool found;
};

static int find_functions(void *handle, struct functions *found,
			  struct wf_error *e)
{
	const struct link_map *map = object;

	for (size_t i = 0; i < WF_COUNT(entries); i++) {
		const char *name = entries[i].name;
		const char *version = entries[i].version;
		void *function = *version ? dlvsym(handle, name, version) :
					    dlsym(handle, name);

		if (!function)
			return wf_error_set(e, -ELIBBAD, "%s is not the libfabric that "
					    "weft was built for: it has no %s%s%s",
					    map->l_name, name,
					    *version ? " of version " : "", version);
		memcpy((char *)found + entries[i].offset, &function,
		       sizeof(function));
	}
	return 0;
}

static int load(struct functions *found, struct wf_error *e)
{
	/* RTLD_DEEPBIND would hide a sanitizer's malloc from libfabric. */
	void *handle = dlopen(WF_LIBFABRIC_FILE,
			      RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	struct link_map *map;

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return wf_error_set(e, -ELIBACC, "libfabric can't be loaded: %s",
				    dlerror());
	object = map;
	return find_functions(handle, found, e);
}

/*
 * dlopen() runs without a lock of weft's, which a child that another thread forks
 * meanwhile would inherit, held for ever.
 */
int wf_libfabric_load(struct wf_error *e)
{
	struct functions found;
	int err;

	if (loaded)
		return 0;
	wf_signals_save();
	err = load(&found, e);
	wf_signals_restore();
	if (err)
		return err;
	wf_fork_hold();
	if (!loaded)
		functions = found;
	loaded = true;
	wf_fork_let();
	return 0;
}

const char *wf_libfabric_file(void)
{
	const struct link_map *map = object;

	return map ? map->l_name : NULL;
}

/* The dynamic linker lists objects in the order in which they were loaded. */
static int visit(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	struct search *search = ctx;

	(void)bytes;
	search->reached |= info->dlpi_addr == search->libfabric;
	if (!search->reached)
		return 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD &&
		    search->code - info->dlpi_addr - part->p_vaddr <
			    part->p_memsz)
			search->found = true;
	}
	return search->found;
}

bool wf_libfabric_brought(const void *code)
{
	const struct link_map *map = object;
	struct search search = { .code = (ElfW(Addr))code };

	if (!map)
		return false;
	search.libfabric = map->l_addr;
	(void)dl_iterate_phdr(visit, &search);
	return search.found;
}

/* libfabric's functions, under their own names. */

int fi_getinfo(uint32_t version, const char *node, const char *service,
	       uint64_t flags, const struct fi_info *hints,
	       struct fi_info **info)
{
	return functions.getinfo(version, node, service, flags, hints, info);
}

void fi_freeinfo(struct fi_info *info)
{
	functions.freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return functions.dupinfo(info);
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
	      void *context)
{
	return functions.fabric(attr, fabric, context);
}

uint32_t fi_version(void)
{
	return loaded ? functions.version() : 0;
}
