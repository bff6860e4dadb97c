// Device functions that several workloads share: grid-stride indices, so that any grid and block covers the data, and a
// sum over one block.
#pragma once

#include <cuda_runtime.h>

__device__ inline long thread_index() { return static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ inline long thread_count() { return static_cast<long>(gridDim.x) * blockDim.x; }

// The sum of `value` over the threads of the block, given to all of them. All must call it; any block size will do.
template <typename T>
__device__ inline T block_sum(T value) {
  __shared__ T partial[1024];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // an earlier call may still be reading
  partial[thread] = value;
  __syncthreads();
  for (int width = static_cast<int>(blockDim.x); width > 1;) {
    const int half = (width + 1) / 2;
    if (thread + half < width) partial[thread] += partial[thread + half];
    __syncthreads();
    width = half;
  }
  return partial[0];
}
