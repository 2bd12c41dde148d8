/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers that weft has of the CUDA driver are those of cuda.h: what is wrong does
 * not compile.  The versions of functions, which stand in a table, are looked for among
 * the types of cudaTypedefs.h.
 */
#include <cuda.h>

#include "memory/cuda_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAME(own, cuda) _Static_assert((int)(own) == (int)(cuda), #own " is " #cuda)

SAME(WF_CU_OK, CUDA_SUCCESS);
SAME(WF_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(WF_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(WF_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(WF_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(WF_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(WF_CU_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(WF_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(WF_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(WF_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(WF_CU_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(WF_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(WF_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(WF_CU_IPC_LAZY_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(WF_CU_HANDLE_DMA_BUF, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME(WF_CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(WF_CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(WF_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(WF_CU_POINTER_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(WF_CU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(WF_CU_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(WF_CU_POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(WF_CU_POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(WF_CU_POINTER_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME(WF_CU_DEVICE_FLUSH_OPTIONS, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
SAME(WF_CU_DEVICE_WRITES_ORDERING, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
SAME(WF_CU_FLUSH_BY_HOST, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
SAME(WF_CU_FLUSH_CURRENT_CONTEXT, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
SAME(WF_CU_ORDERED_FOR_OWNER, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
SAME(WF_CU_ORDERED_FOR_OWNER, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
SAME(WF_CU_DEVICE_DMA_BUF, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME(WF_CU_DEVICE_NUMA_NODE, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);

/* What a call passes has the same size, and a handle goes by value. */
SAME(sizeof(uintptr_t), sizeof(CUdeviceptr));
SAME(sizeof(int), sizeof(CUdevice));
SAME(sizeof(int), sizeof(CUresult));
SAME(sizeof(int), sizeof(CUpointer_attribute));
SAME(sizeof(int), sizeof(CUstreamCaptureMode));
SAME(sizeof(int), sizeof(CUstreamCaptureStatus));
SAME(sizeof(struct wf_cuda_driver_ipc_handle), sizeof(CUipcMemHandle));
SAME(_Alignof(struct wf_cuda_driver_ipc_handle), _Alignof(CUipcMemHandle));
/* The default streams. */
_Static_assert((uintptr_t)CU_STREAM_LEGACY == 1 && (uintptr_t)CU_STREAM_PER_THREAD == 2,
	       "streams up to 2 are every context's");

static char *read_all(FILE *f)
{
	size_t room = 4 << 20;
	char *text = malloc(room);

	assert_non_null(f);
	text[fread(text, 1, room - 1, f)] = '\0';
	return text;
}

static void every_function_has_the_form_of_the_version_that_is_asked_for(void **state)
{
	char line[1200], name[64], type[128], *table, *types, *at;
	FILE *source, *header;
	unsigned count = 0;
	int version;

	(void)state;
	snprintf(line, sizeof(line), "%s/src/memory/cuda_driver.c", getenv("top_srcdir"));
	source = fopen(line, "r");
	table = read_all(source);
	fclose(source);
	snprintf(line, sizeof(line), "echo '#include <cudaTypedefs.h>' | %s %s -E -",
		 getenv("CC"), CUDA_FLAGS);
	header = popen(line, "r");
	types = read_all(header);
	assert_int_equal(pclose(header), 0);

	for (at = table; (at = strstr(at, "\tENTRY(")); at++) {
		if (sscanf(at, "\tENTRY(%63[A-Za-z], %d,", name, &version) != 2)
			fail_msg("not a row: %.40s", at);
		snprintf(type, sizeof(type), "*PFN_%s_v%d)(", name, version);
		if (!strstr(types, type))
			fail_msg("CUDA has no %s of version %d", name, version);
		count++;
	}
	print_message("%u functions\n", count);
	assert_in_range(count, 30, 100);
	free(table);
	free(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_function_has_the_form_of_the_version_that_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
