/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few functions of the CUDA runtime that a libfabric with CUDA and the example of a CUDA
 * program ask for, so that the software driver can stand for libcudart.so, too.
 */
#ifndef FAKE_CUDA_RUNTIME_H
#define FAKE_CUDA_RUNTIME_H

#include "tests/cuda/fake/driver.h"

int cudaRuntimeGetVersion(int *version);
int cudaDriverGetVersion(int *version);
int cudaGetDeviceCount(int *count);
int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaDeviceSynchronize(void);
const char *cudaGetErrorName(int code);
const char *cudaGetErrorString(int code);
int cudaMalloc(void **at, size_t bytes);
int cudaFree(void *at);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMallocHost(void **at, size_t bytes);
int cudaFreeHost(void *at);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, CUstream stream);
int cudaMemsetAsync(void *at, int value, size_t bytes, CUstream stream);
int cudaStreamCreate(CUstream *stream);
int cudaStreamDestroy(CUstream stream);
int cudaStreamSynchronize(CUstream stream);
int cudaHostRegister(void *at, size_t bytes, unsigned flags);
int cudaHostUnregister(void *at);
int cudaIpcGetMemHandle(CUipcMemHandle *handle, void *at);
int cudaIpcOpenMemHandle(void **at, CUipcMemHandle handle, unsigned flags);
int cudaIpcCloseMemHandle(void *at);

#endif
