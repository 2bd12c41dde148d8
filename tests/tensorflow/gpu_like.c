/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device for TensorFlow whose memory the host can't read, for tests on hosts without a GPU.
 *
 * TensorFlow loads it as a plug-in of its own (TF_PLUGGABLE_DEVICE_LIBRARY_PATH), as
 * /device:GPU_LIKE:0.  The name sorts behind CPU, as GPU does: TensorFlow takes the first device of
 * a server for the one that sessions fetch to.
 *
 * The memory of the device is mapped twice: at the addresses that TensorFlow gets nobody may read
 * or write, so that a tensor taken for one of the host ends the process; copies go through the
 * other mapping.  A stream has nothing to wait for: each copy is made at once.  TensorFlow divides
 * the memory up by itself, and gives none of it back.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tensorflow/c/experimental/stream_executor/stream_executor.h>

#define MEMORY_BYTES (512ull << 20)

static char *closed; /* the memory as TensorFlow knows it */
static char *open_;  /* the same memory, for copies */
static uint64_t used;

/* Returns where the byte at @memory can be read and written. */
static void *opened(const void *memory)
{
	return open_ + ((const char *)memory - closed);
}

static void map_memory(TF_Status *status)
{
	int fd = memfd_create("gpu_like", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, MEMORY_BYTES)) {
		TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "gpu_like: no memory");
		return;
	}
	closed = mmap(NULL, MEMORY_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
	open_ = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (closed == MAP_FAILED || open_ == MAP_FAILED)
		TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "gpu_like: no memory");
}

static void allocate(const SP_Device *device, uint64_t size, int64_t space,
		     SP_DeviceMemoryBase *memory)
{
	(void)device, (void)space;
	memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
	memory->size = size <= MEMORY_BYTES - used ? size : 0;
	memory->opaque = memory->size ? closed + used : NULL;
	/* 256: what TensorFlow asks of a device. */
	used += (memory->size + 255) & ~255ull;
}

static void deallocate(const SP_Device *device, SP_DeviceMemoryBase *memory)
{
	(void)device, (void)memory;
}

static void *host_allocate(const SP_Device *device, uint64_t size)
{
	void *memory = NULL;

	(void)device;
	return posix_memalign(&memory, 64, size) ? NULL : memory;
}

static void host_deallocate(const SP_Device *device, void *memory)
{
	(void)device;
	free(memory);
}

static TF_Bool no_stats(const SP_Device *device, SP_AllocatorStats *stats)
{
	(void)device, (void)stats;
	return 0;
}

static TF_Bool usage(const SP_Device *device, int64_t *left, int64_t *total)
{
	(void)device;
	*left = MEMORY_BYTES - used;
	*total = MEMORY_BYTES;
	return 1;
}

/* Streams, events and timers have no state; TensorFlow wants pointers that are not NULL. */
static char nothing;

static void create_stream(const SP_Device *device, SP_Stream *stream, TF_Status *status)
{
	(void)device, (void)status;
	*stream = (SP_Stream)&nothing;
}

static void destroy_stream(const SP_Device *device, SP_Stream stream)
{
	(void)device, (void)stream;
}

static void depend(const SP_Device *device, SP_Stream dependent, SP_Stream other,
		   TF_Status *status)
{
	(void)device, (void)dependent, (void)other, (void)status;
}

static void stream_status(const SP_Device *device, SP_Stream stream, TF_Status *status)
{
	(void)device, (void)stream, (void)status;
}

static void create_event(const SP_Device *device, SP_Event *event, TF_Status *status)
{
	(void)device, (void)status;
	*event = (SP_Event)&nothing;
}

static void destroy_event(const SP_Device *device, SP_Event event)
{
	(void)device, (void)event;
}

static SE_EventStatus event_status(const SP_Device *device, SP_Event event)
{
	(void)device, (void)event;
	return SE_EVENT_COMPLETE;
}

static void stream_event(const SP_Device *device, SP_Stream stream, SP_Event event,
			 TF_Status *status)
{
	(void)device, (void)stream, (void)event, (void)status;
}

static void host_event(const SP_Device *device, SP_Event event, TF_Status *status)
{
	(void)device, (void)event, (void)status;
}

static void create_timer(const SP_Device *device, SP_Timer *timer, TF_Status *status)
{
	(void)device, (void)status;
	*timer = (SP_Timer)&nothing;
}

static void destroy_timer(const SP_Device *device, SP_Timer timer)
{
	(void)device, (void)timer;
}

static void use_timer(const SP_Device *device, SP_Stream stream, SP_Timer timer, TF_Status *status)
{
	(void)device, (void)stream, (void)timer, (void)status;
}

static uint64_t nanoseconds(SP_Timer timer)
{
	(void)timer;
	return 0;
}

static void synchronize(const SP_Device *device, TF_Status *status)
{
	(void)device, (void)status;
}

static void sync_dtoh(const SP_Device *device, void *to, const SP_DeviceMemoryBase *from,
		      uint64_t size, TF_Status *status)
{
	(void)device, (void)status;
	memcpy(to, opened(from->opaque), size);
}

static void sync_htod(const SP_Device *device, SP_DeviceMemoryBase *to, const void *from,
		      uint64_t size, TF_Status *status)
{
	(void)device, (void)status;
	memcpy(opened(to->opaque), from, size);
}

static void sync_dtod(const SP_Device *device, SP_DeviceMemoryBase *to,
		      const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status)
{
	(void)device, (void)status;
	memmove(opened(to->opaque), opened(from->opaque), size);
}

static void dtoh(const SP_Device *device, SP_Stream stream, void *to,
		 const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status)
{
	(void)stream;
	sync_dtoh(device, to, from, size, status);
}

static void htod(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to,
		 const void *from, uint64_t size, TF_Status *status)
{
	(void)stream;
	sync_htod(device, to, from, size, status);
}

static void dtod(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to,
		 const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status)
{
	(void)stream;
	sync_dtod(device, to, from, size, status);
}

static void fill(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory,
		 uint8_t pattern, uint64_t size, TF_Status *status)
{
	(void)device, (void)stream, (void)status;
	memset(opened(memory->opaque), pattern, size);
}

static void zero(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory,
		 uint64_t size, TF_Status *status)
{
	fill(device, stream, memory, 0, size, status);
}

static void fill32(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory,
		   uint32_t pattern, uint64_t size, TF_Status *status)
{
	char *to = opened(memory->opaque);

	(void)device, (void)stream, (void)status;
	for (uint64_t at = 0; at + sizeof pattern <= size; at += sizeof pattern)
		memcpy(to + at, &pattern, sizeof pattern);
}

static TF_Bool call_host(const SP_Device *device, SP_Stream stream, SE_StatusCallbackFn callback,
			 void *arg)
{
	TF_Status *status = TF_NewStatus();

	(void)device, (void)stream;
	callback(arg, status);
	TF_DeleteStatus(status);
	return 1;
}

static void device_count(const SP_Platform *platform, int *count, TF_Status *status)
{
	(void)platform, (void)status;
	*count = 1;
}

static void create_device(const SP_Platform *platform, SE_CreateDeviceParams *params,
			  TF_Status *status)
{
	(void)platform;
	params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
	params->device->ordinal = params->ordinal;
	params->device->hardware_name = "gpu_like";
	params->device->device_vendor = "weft";
	params->device->pci_bus_id = "0000:00:00.0";
	map_memory(status);
}

static void destroy_device(const SP_Platform *platform, SP_Device *device)
{
	(void)platform, (void)device;
}

static void create_device_fns(const SP_Platform *platform, SE_CreateDeviceFnsParams *params,
			      TF_Status *status)
{
	(void)platform, (void)status;
	params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
}

static void destroy_device_fns(const SP_Platform *platform, SP_DeviceFns *fns)
{
	(void)platform, (void)fns;
}

static void create_executor(const SP_Platform *platform, SE_CreateStreamExecutorParams *params,
			    TF_Status *status)
{
	(void)platform, (void)status;
	*params->stream_executor = (SP_StreamExecutor){
		.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE,
		.allocate = allocate,
		.deallocate = deallocate,
		.host_memory_allocate = host_allocate,
		.host_memory_deallocate = host_deallocate,
		.get_allocator_stats = no_stats,
		.device_memory_usage = usage,
		.create_stream = create_stream,
		.destroy_stream = destroy_stream,
		.create_stream_dependency = depend,
		.get_stream_status = stream_status,
		.create_event = create_event,
		.destroy_event = destroy_event,
		.get_event_status = event_status,
		.record_event = stream_event,
		.wait_for_event = stream_event,
		.create_timer = create_timer,
		.destroy_timer = destroy_timer,
		.start_timer = use_timer,
		.stop_timer = use_timer,
		.memcpy_dtoh = dtoh,
		.memcpy_htod = htod,
		.memcpy_dtod = dtod,
		.sync_memcpy_dtoh = sync_dtoh,
		.sync_memcpy_htod = sync_htod,
		.sync_memcpy_dtod = sync_dtod,
		.block_host_for_event = host_event,
		.synchronize_all_activity = synchronize,
		.mem_zero = zero,
		.memset = fill,
		.memset32 = fill32,
		.host_callback = call_host,
	};
}

static void destroy_executor(const SP_Platform *platform, SP_StreamExecutor *executor)
{
	(void)platform, (void)executor;
}

static void create_timer_fns(const SP_Platform *platform, SP_TimerFns *fns, TF_Status *status)
{
	(void)platform, (void)status;
	fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
	fns->nanoseconds = nanoseconds;
}

static void destroy_timer_fns(const SP_Platform *platform, SP_TimerFns *fns)
{
	(void)platform, (void)fns;
}

static void destroy_platform(SP_Platform *platform)
{
	(void)platform;
}

static void destroy_platform_fns(SP_PlatformFns *fns)
{
	(void)fns;
}

__attribute__((visibility("default"))) void SE_InitPlugin(SE_PlatformRegistrationParams *params,
							  TF_Status *status)
{
	(void)status;
	params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
	params->platform->name = "GPU_LIKE_MEMORY";
	params->platform->type = "GPU_LIKE";
	params->platform->use_bfc_allocator = 1;
	params->platform->force_memory_growth = 1;
	params->platform_fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
	params->platform_fns->get_device_count = device_count;
	params->platform_fns->create_device = create_device;
	params->platform_fns->destroy_device = destroy_device;
	params->platform_fns->create_device_fns = create_device_fns;
	params->platform_fns->destroy_device_fns = destroy_device_fns;
	params->platform_fns->create_stream_executor = create_executor;
	params->platform_fns->destroy_stream_executor = destroy_executor;
	params->platform_fns->create_timer_fns = create_timer_fns;
	params->platform_fns->destroy_timer_fns = destroy_timer_fns;
	params->destroy_platform = destroy_platform;
	params->destroy_platform_fns = destroy_platform_fns;
}
