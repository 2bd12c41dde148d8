/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/nth.h"

/* This file is where the program's own names end. */
#undef malloc
#undef calloc
#undef realloc
#undef eventfd

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <protobuf-c/protobuf-c.h>

static struct {
	/* Atomic, because names are looked up in threads. */
	_Atomic uint64_t calls[WF_NTH_KINDS];
	struct wf_nth_fault fault;
	_Atomic uint64_t failed;
	_Atomic(const char *) name;
	_Atomic size_t blocks;
} nth;

void wf_nth_fail(const struct wf_nth_fault *fault)
{
	for (size_t i = 0; i < WF_NTH_KINDS; i++)
		nth.calls[i] = 0;
	nth.fault = *fault;
	nth.failed = 0;
	nth.name = "nothing";
}

uint64_t wf_nth_calls(enum wf_nth_kind kind)
{
	return nth.calls[kind];
}

enum wf_nth_kind wf_nth_kind(void)
{
	return nth.fault.kind;
}

uint64_t wf_nth_failed(void)
{
	return nth.failed;
}

const char *wf_nth_name(void)
{
	return nth.name;
}

size_t wf_nth_blocks(void)
{
	return nth.blocks;
}

/* Is this call, named @name, one of those that fail? */
static bool fails(enum wf_nth_kind kind, const char *name)
{
	const struct wf_nth_fault *f = &nth.fault;
	uint64_t number = ++nth.calls[kind];

	if (kind != f->kind || number < f->first || number - f->first >= f->count)
		return false;
	nth.failed++;
	nth.name = name;
	if (kind == WF_NTH_FILE)
		errno = EMFILE;
	if (kind == WF_NTH_MEMORY)
		errno = ENOMEM;
	return true;
}

/* Only these may say -EAGAIN. */
static bool is_post(const char *call)
{
	return !strcmp(call, "fi_send") || !strcmp(call, "fi_inject") ||
	       !strcmp(call, "fi_recv") || !strcmp(call, "fi_read");
}

int wf_nth_veto(const char *call)
{
	static const int codes[WF_NTH_CODES] = { -ENOMEM, -EIO, -EAGAIN };
	uint64_t turn = nth.fault.code + nth.failed;

	if (!fails(WF_NTH_FABRIC, call))
		return 0;
	return codes[turn % (is_post(call) ? WF_NTH_CODES : WF_NTH_CODES - 1)];
}

static void *count(void *block)
{
	nth.blocks += block != NULL;
	return block;
}

/* The program's own memory. */

void *own_malloc(size_t bytes);
void *own_calloc(size_t members, size_t bytes);
void *own_realloc(void *old, size_t bytes);

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t members, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *block);

void *own_malloc(size_t bytes)
{
	return count(__real_malloc(bytes));
}

void *own_calloc(size_t members, size_t bytes)
{
	return count(__real_calloc(members, bytes));
}

/* Not counted twice; nobody here shrinks to nothing. */
static void *grow(void *old, size_t bytes)
{
	void *block = __real_realloc(old, bytes);

	return old ? block : count(block);
}

void *own_realloc(void *old, size_t bytes)
{
	return grow(old, bytes);
}

/* The library's. */

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t members, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_reallocarray(void *old, size_t members, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

void *__wrap_malloc(size_t bytes)
{
	return fails(WF_NTH_MEMORY, "malloc") ? NULL : own_malloc(bytes);
}

void *__wrap_calloc(size_t members, size_t bytes)
{
	return fails(WF_NTH_MEMORY, "calloc") ? NULL : own_calloc(members, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return fails(WF_NTH_MEMORY, "realloc") ? NULL : grow(old, bytes);
}

void *__wrap_reallocarray(void *old, size_t members, size_t bytes)
{
	return fails(WF_NTH_MEMORY, "reallocarray") ? NULL : grow(old, members * bytes);
}

char *__wrap_strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = fails(WF_NTH_MEMORY, "strdup") ? NULL : own_malloc(bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

void __wrap_free(void *block)
{
	nth.blocks -= block != NULL;
	__real_free(block);
}

/* protobuf-c's, which lies in a library of its own. */

static void *pb_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return fails(WF_NTH_MEMORY, "protobuf-c's malloc") ? NULL : own_malloc(bytes);
}

static void pb_free(void *ctx, void *block)
{
	(void)ctx;
	__wrap_free(block);
}

static ProtobufCAllocator pb_allocator = { pb_alloc, pb_free, NULL };

ProtobufCMessage *__real_protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
						   ProtobufCAllocator *allocator, size_t bytes,
						   const uint8_t *data);
ProtobufCMessage *__wrap_protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
						   ProtobufCAllocator *allocator, size_t bytes,
						   const uint8_t *data);
void __real_protobuf_c_message_free_unpacked(ProtobufCMessage *message,
					     ProtobufCAllocator *allocator);
void __wrap_protobuf_c_message_free_unpacked(ProtobufCMessage *message,
					     ProtobufCAllocator *allocator);

ProtobufCMessage *__wrap_protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
						   ProtobufCAllocator *allocator, size_t bytes,
						   const uint8_t *data)
{
	return __real_protobuf_c_message_unpack(descriptor, allocator ? allocator : &pb_allocator,
						bytes, data);
}

void __wrap_protobuf_c_message_free_unpacked(ProtobufCMessage *message,
					     ProtobufCAllocator *allocator)
{
	__real_protobuf_c_message_free_unpacked(message, allocator ? allocator : &pb_allocator);
}

/* What the system gives besides. */

void *__real_mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
FILE *__real_open_memstream(char **text, size_t *bytes);
FILE *__wrap_open_memstream(char **text, size_t *bytes);
int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __real_pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attr);
int __real_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attr);
int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attr);

void *__wrap_mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
	void *map = MAP_FAILED;

	if (!fails(WF_NTH_MEMORY, "mmap"))
		map = __real_mmap(at, bytes, access, flags, fd, offset);
	nth.blocks += map != MAP_FAILED;
	return map;
}

int __wrap_munmap(void *at, size_t bytes)
{
	nth.blocks--;
	return __real_munmap(at, bytes);
}

/* The text is whoever's asked for it, and freed as any other. */
FILE *__wrap_open_memstream(char **text, size_t *bytes)
{
	FILE *file = NULL;

	if (!fails(WF_NTH_MEMORY, "open_memstream"))
		file = __real_open_memstream(text, bytes);
	nth.blocks += file != NULL;
	return file;
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	return fails(WF_NTH_MEMORY, "getaddrinfo") ? EAI_MEMORY :
						     __real_getaddrinfo(node, service, hints, list);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attr)
{
	return fails(WF_NTH_MEMORY, "pthread_mutex_init") ? ENOMEM :
							    __real_pthread_mutex_init(lock, attr);
}

int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attr)
{
	return fails(WF_NTH_MEMORY, "pthread_cond_init") ?
		       ENOMEM :
		       __real_pthread_cond_init(condition, attr);
}

/* Descriptors and threads. */

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_ctl(int fd, int what, int member, struct epoll_event *event);
int __wrap_epoll_ctl(int fd, int what, int member, struct epoll_event *event);
int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);
int own_eventfd(unsigned value, int flags);
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __real_accept4(int fd, struct sockaddr *from, socklen_t *bytes, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *bytes, int flags);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int own_eventfd(unsigned value, int flags)
{
	return __real_eventfd(value, flags);
}

int __wrap_epoll_create1(int flags)
{
	return fails(WF_NTH_FILE, "epoll_create1") ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int fd, int what, int member, struct epoll_event *event)
{
	/* Only a new member needs anything. */
	if (what == EPOLL_CTL_ADD && fails(WF_NTH_FILE, "epoll_ctl"))
		return -1;
	return __real_epoll_ctl(fd, what, member, event);
}

int __wrap_eventfd(unsigned value, int flags)
{
	return fails(WF_NTH_FILE, "eventfd") ? -1 : __real_eventfd(value, flags);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return fails(WF_NTH_FILE, "memfd_create") ? -1 : __real_memfd_create(name, flags);
}

int __wrap_socket(int family, int type, int protocol)
{
	return fails(WF_NTH_FILE, "socket") ? -1 : __real_socket(family, type, protocol);
}

int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *bytes, int flags)
{
	return fails(WF_NTH_FILE, "accept4") ? -1 : __real_accept4(fd, from, bytes, flags);
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return fails(WF_NTH_FILE, "open") ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int at, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return fails(WF_NTH_FILE, "openat") ? -1 : __real_openat(at, path, flags, mode);
}

DIR *__wrap_opendir(const char *path)
{
	return fails(WF_NTH_FILE, "opendir") ? NULL : __real_opendir(path);
}

/* The library makes descriptors of processes by it, and nothing else. */
long __wrap_syscall(long number, ...)
{
	long a[3];
	va_list args;

	va_start(args, number);
	for (size_t i = 0; i < WF_COUNT(a); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return fails(WF_NTH_FILE, "syscall") ? -1 : __real_syscall(number, a[0], a[1], a[2]);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	return fails(WF_NTH_FILE, "pthread_create") ? EAGAIN :
						      __real_pthread_create(thread, attr, run, arg);
}
