/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/cudart.h"
#include "fabric/libfabric.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNTIME "libcudart.so"
#define DRIVER "libcuda.so"
#define NAME_BYTES 32 /* "libcudart.so.11.0" and its like */

/*
 * Find the text among @bytes that begins with @stem and is the name of a library, with or
 * without a version.  A sentence for a log, with the name in it, begins with something else.
 */
static bool find_name(const char *bytes, size_t count, const char *stem, char name[NAME_BYTES])
{
	size_t length = strlen(stem);
	const char *end = bytes + count, *at = bytes;

	while ((at = memmem(at, (size_t)(end - at), stem, length))) {
		size_t most = WF_MIN((size_t)(end - at), (size_t)NAME_BYTES);
		size_t whole = strnlen(at, most);

		if (at > bytes && !at[-1] && whole < most &&
		    strspn(at + length, ".0123456789") == whole - length) {
			memcpy(name, at, whole + 1);
			return true;
		}
		at += length;
	}
	return false;
}

static bool is_there(const char *name)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

	if (library)
		dlclose(library);
	return library;
}

static enum wf_cudart_state judge(const char *file, const char *bytes, size_t count,
				  char text[WF_CUDART_TEXT_BYTES])
{
	char names[2][NAME_BYTES];
	size_t found = 0;

	if (find_name(bytes, count, RUNTIME, names[found]))
		found++;
	if (find_name(bytes, count, DRIVER, names[found]))
		found++;
	if (!found) {
		(void)snprintf(text, WF_CUDART_TEXT_BYTES, "%s was built without CUDA", file);
		return WF_CUDART_ABSENT;
	}
	for (size_t i = 0; i < found; i++) {
		if (is_there(names[i]))
			continue;
		(void)snprintf(text, WF_CUDART_TEXT_BYTES,
			       "%s was built with CUDA and goes without: it asks for %s, of just this "
			       "name, and there is none",
			       file, names[i]);
		return WF_CUDART_MISSING;
	}
	(void)snprintf(text, WF_CUDART_TEXT_BYTES, "%s was built with CUDA and finds %s%s%s", file,
		       names[0], found > 1 ? " and " : "", found > 1 ? names[1] : "");
	return WF_CUDART_FOUND;
}

enum wf_cudart_state wf_cudart_look(const char *file, char text[WF_CUDART_TEXT_BYTES])
{
	enum wf_cudart_state state = WF_CUDART_UNKNOWN;
	void *bytes = MAP_FAILED;
	struct stat s;
	int fd;

	if (!file)
		file = wf_libfabric_file();
	fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && !fstat(fd, &s) && s.st_size > 0)
		bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes != MAP_FAILED) {
		state = judge(file, bytes, (size_t)s.st_size, text);
		munmap(bytes, (size_t)s.st_size);
	} else {
		(void)snprintf(text, WF_CUDART_TEXT_BYTES,
			       "%s can't be read, so nobody knows if it was built with CUDA",
			       file ? file : "libfabric's file");
	}
	if (fd >= 0)
		close(fd);
	return state;
}
