/* SPDX-License-Identifier: BSD-2-Clause */
/* struct weft_tensor is DLPack's DLTensor, and managed tensors are let go once. */
#include <stdio.h>

#if !__has_include(<dlpack/dlpack.h>)

int main(void)
{
	puts("skip: dlpack/dlpack.h is not installed");
	return 77;
}

#else

#include <weft/dlpack.h>
#include <weft/weft.h>

#include <stdatomic.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define SAME_PLACE(ours, field, theirs, its)                                                \
	assert_int_equal(offsetof(ours, field), offsetof(theirs, its));                    \
	assert_int_equal(sizeof(((ours *)NULL)->field), sizeof(((theirs *)NULL)->its))

static void the_layout_is_that_of_dlpack(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct weft_tensor), sizeof(DLTensor));
	SAME_PLACE(struct weft_tensor, data, DLTensor, data);
	SAME_PLACE(struct weft_tensor, device, DLTensor, device);
	SAME_PLACE(struct weft_tensor, ndim, DLTensor, ndim);
	SAME_PLACE(struct weft_tensor, dtype, DLTensor, dtype);
	SAME_PLACE(struct weft_tensor, shape, DLTensor, shape);
	SAME_PLACE(struct weft_tensor, strides, DLTensor, strides);
	SAME_PLACE(struct weft_tensor, byte_offset, DLTensor, byte_offset);

	assert_int_equal(sizeof(struct weft_device), sizeof(DLDevice));
	SAME_PLACE(struct weft_device, type, DLDevice, device_type);
	SAME_PLACE(struct weft_device, id, DLDevice, device_id);

	assert_int_equal(sizeof(struct weft_dtype), sizeof(DLDataType));
	SAME_PLACE(struct weft_dtype, code, DLDataType, code);
	SAME_PLACE(struct weft_dtype, bits, DLDataType, bits);
	SAME_PLACE(struct weft_dtype, lanes, DLDataType, lanes);
}

static void the_codes_are_those_of_dlpack(void **state)
{
	(void)state;
	assert_int_equal(WEFT_INT, kDLInt);
	assert_int_equal(WEFT_UINT, kDLUInt);
	assert_int_equal(WEFT_FLOAT, kDLFloat);
	assert_int_equal(WEFT_HANDLE, kDLOpaqueHandle);
	assert_int_equal(WEFT_BFLOAT, kDLBfloat);
	assert_int_equal(WEFT_COMPLEX, kDLComplex);
#ifdef DLPACK_MAJOR_VERSION /* who has it has kDLBool; 0.6 has neither */
	assert_int_equal(WEFT_BOOL, kDLBool);
#endif
	assert_int_equal(WEFT_CPU, kDLCPU);
	assert_int_equal(WEFT_CUDA, kDLCUDA);
	assert_int_equal(WEFT_CUDA_HOST, kDLCUDAHost);
}

#define LIMIT_NS ((uint64_t)10000000000) /* generous: nothing here takes so long */

/* A managed tensor of six numbers, two rows of three columns, that counts its deletions. */
struct managed {
	DLManagedTensor base;
	float data[6];
	int64_t shape[2];
	atomic_int deleted;
};

static void delete(DLManagedTensor *tensor)
{
	struct managed *m = tensor->manager_ctx;

	atomic_fetch_add(&m->deleted, 1);
}

static void manage(struct managed *m)
{
	memset(m, 0, sizeof(*m));
	for (int i = 0; i < 6; i++)
		m->data[i] = (float)i;
	m->shape[0] = 2;
	m->shape[1] = 3;
	m->base.manager_ctx = m;
	m->base.deleter = delete;
	m->base.dl_tensor = (DLTensor){ .data = m->data, .device = { kDLCPU, 0 }, .ndim = 2,
					.dtype = { kDLFloat, 32, 1 }, .shape = m->shape };
}

static void count_deleted(struct weft_op *op, void *arg)
{
	int *seen = arg;

	(void)op;
	*seen += 1000;
}

static void a_managed_tensor_is_let_go_when_it_has_been_sent(void **state)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = "tcp" };
	int done = 0;
	struct weft_send_options send = { .size = sizeof(send), .op = { .timeout_ns = LIMIT_NS,
									.done = count_deleted,
									.arg = &done } };
	struct weft_node *a, *b;
	struct weft_op *sent, *got;
	const DLTensor *tensor;
	struct weft_peer *peer;
	struct managed m;

	(void)state;
	manage(&m);
	assert_int_equal(weft_node_open(&options, &a), 0);
	assert_int_equal(weft_node_open(&options, &b), 0);
	assert_int_equal(weft_peer_open(a, weft_node_address(b), &peer), 0);

	assert_int_equal(weft_dlpack_send(peer, 1, "m", 1, &m.base, &send, &sent), 0);
	assert_int_equal(weft_recv(b, NULL, 1, "m", 1, NULL, NULL, &got), 0);
	assert_int_equal(weft_wait(got, LIMIT_NS), 0);
	assert_int_equal(weft_wait(sent, LIMIT_NS), 0);
	assert_string_equal(weft_op_message(sent), "");
	assert_int_equal(atomic_load(&m.deleted), 1);
	assert_int_equal(done, 1000);

	assert_int_equal(weft_op_status(got), WEFT_OK);
	tensor = weft_dlpack_view(weft_op_tensor(got, NULL));
	assert_int_equal(tensor->ndim, 2);
	assert_int_equal(tensor->dtype.code, kDLFloat);
	assert_memory_equal(tensor->shape, m.shape, sizeof(m.shape));
	assert_memory_equal(tensor->data, m.data, sizeof(m.data));

	weft_op_free(sent);
	weft_op_free(got);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(a), 0);
	assert_int_equal(weft_node_close(b), 0);
	assert_int_equal(atomic_load(&m.deleted), 1);
}

static void a_managed_tensor_that_is_refused_stays_the_callers(void **state)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = "tcp" };
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_op *op;
	struct managed m;

	(void)state;
	manage(&m);
	m.base.dl_tensor.device.device_type = kDLROCM;
	assert_int_equal(weft_node_open(&options, &node), 0);
	assert_int_equal(weft_peer_open(node, "127.0.0.1:9", &peer), 0);
	assert_int_equal(weft_dlpack_send(peer, 1, "m", 1, &m.base, NULL, &op), -ENOTSUP);
	assert_int_equal(atomic_load(&m.deleted), 0);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(node), 0);
	assert_int_equal(atomic_load(&m.deleted), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_layout_is_that_of_dlpack),
		cmocka_unit_test(the_codes_are_those_of_dlpack),
		cmocka_unit_test(a_managed_tensor_is_let_go_when_it_has_been_sent),
		cmocka_unit_test(a_managed_tensor_that_is_refused_stays_the_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
