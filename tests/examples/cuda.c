/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers from one GPU to another, with the CUDA runtime: weft orders itself behind the work that
 * is on a stream, so the program never waits for its stream before it sends or receives.
 *
 *   cuda recv            prints its address, receives into memory of the GPU, and checks it
 *   cuda send ADDRESS    fills memory of the GPU and sends it
 *
 * Two processes may use the same GPU.  Where the network does not reach a GPU's memory the bytes
 * go through memory of the host, piece by piece; this program does not see a difference.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define NUMBERS (4 * 1024 * 1024)
#define BYTES (NUMBERS * sizeof(float))
#define STEP 0
#define KEY "numbers"
#define GPU 0

static void check(int err)
{
	if (err) {
		fprintf(stderr, "cuda: %s\n", weft_error());
		exit(1);
	}
}

static void check_cuda(cudaError_t err, const char *what)
{
	if (err != cudaSuccess) {
		fprintf(stderr, "cuda: %s: %s\n", what, cudaGetErrorString(err));
		exit(1);
	}
}

/* Memory on the GPU and, pinned so that copies run beside the program, on the host. */
struct memory {
	cudaStream_t stream;
	float *device, *host;
};

static void take(struct memory *m)
{
	check_cuda(cudaSetDevice(GPU), "no GPU");
	check_cuda(cudaStreamCreate(&m->stream), "no stream");
	check_cuda(cudaMalloc((void **)&m->device, BYTES), "no memory on the GPU");
	check_cuda(cudaMallocHost((void **)&m->host, BYTES), "no pinned memory");
}

static void give(struct memory *m)
{
	check_cuda(cudaFreeHost(m->host), "pinned memory");
	check_cuda(cudaFree(m->device), "memory on the GPU");
	check_cuda(cudaStreamDestroy(m->stream), "the stream");
}

static struct weft_tensor tensor_of(const struct memory *m, int64_t *count)
{
	return (struct weft_tensor){
		.data = m->device,
		.device = { WEFT_CUDA, GPU },
		.ndim = 1,
		.dtype = { WEFT_FLOAT, 32, 1 },
		.shape = count,
	};
}

static void finish(struct weft_op *op)
{
	enum weft_status status;

	check(weft_finish(op, &status));
	check(status != WEFT_OK);
}

static void send_numbers(struct weft_node *node, const char *address, struct memory *m)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t count = NUMBERS;
	struct weft_tensor tensor = tensor_of(m, &count);
	struct weft_peer *peer;
	struct weft_op *op;

	check(weft_peer_open(node, address, &peer));
	for (size_t i = 0; i < NUMBERS; i++)
		m->host[i] = (float)i / 2;
	/* A kernel that computes the numbers would stand here. */
	check_cuda(cudaMemcpyAsync(m->device, m->host, BYTES, cudaMemcpyHostToDevice, m->stream),
		   "a copy to the GPU");
	options.stream = m->stream; /* the copy comes first: no cudaStreamSynchronize() */
	check(weft_send(peer, STEP, KEY, strlen(KEY), &tensor, &options, &op));
	/* Work put on the stream from here on must leave the tensor alone until the send ends. */
	finish(op);
	weft_peer_close(peer);
}

static void receive_numbers(struct weft_node *node, struct memory *m)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	int64_t count = NUMBERS;
	struct weft_tensor into = tensor_of(m, &count);
	struct weft_op *op;

	check_cuda(cudaMemsetAsync(m->device, 0, BYTES, m->stream), "zeros on the GPU");
	options.stream = m->stream; /* the zeros come first, and then the numbers */
	check(weft_recv(node, NULL, STEP, KEY, strlen(KEY), &into, &options, &op));
	printf("%s\n", weft_node_address(node));
	fflush(stdout);
	finish(op);

	/* The numbers are there now, for work on any stream. */
	check_cuda(cudaMemcpyAsync(m->host, m->device, BYTES, cudaMemcpyDeviceToHost, m->stream),
		   "a copy from the GPU");
	check_cuda(cudaStreamSynchronize(m->stream), "the stream");
	for (size_t i = 0; i < NUMBERS; i++) {
		if (m->host[i] != (float)i / 2) {
			fprintf(stderr, "cuda: number %zu is %g\n", i, (double)m->host[i]);
			exit(1);
		}
	}
	printf("%d numbers have come\n", NUMBERS);
}

int main(int argc, char **argv)
{
	struct weft_node *node;
	struct memory memory;

	if (!(argc == 2 && !strcmp(argv[1], "recv")) && !(argc == 3 && !strcmp(argv[1], "send"))) {
		fprintf(stderr, "usage: cuda recv | cuda send ADDRESS\n");
		return 2;
	}
	take(&memory);
	check(weft_node_open(NULL, &node));
	if (argc == 2)
		receive_numbers(node, &memory);
	else
		send_numbers(node, argv[2], &memory);
	check(weft_node_close(node));
	give(&memory);
	return 0;
}
