// What task.cu has in common with the same program without hooks: its kernels, and a request that has none.
#pragma once

#include <cuda_runtime.h>

#include <chrono>

struct Shape {
    unsigned long long *count;
    int kernels, microseconds, threads, blocks;
};

// Always the same work, and not the same time: a kernel that waits for a clock would end while another process runs.
static __device__ void busy(unsigned long long *count, int microseconds) {
    float x = threadIdx.x;
    for (int i = 0; i < microseconds * 430; ++i)
        x = x * 0.999f + 1.0f; // about four cycles each, one behind another
    if (x == -1.0f || (blockIdx.x == 0 && threadIdx.x == 0))
        *count += 1;
}
static __global__ void work(unsigned long long *count, int microseconds) {
    busy(count, microseconds);
}
// The last kernel of a request is another one, so that its gap is known by its name.
static __global__ void last(unsigned long long *count, int microseconds) {
    busy(count, microseconds);
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The same as `request` of task.cu, in which there may be hooks. Seconds of the host for the launches.
__attribute__((noinline)) static double plain_request(const Shape &shape) {
    const double from = now();
    for (int i = 0; i + 1 < shape.kernels; ++i) {
        work<<<shape.blocks, shape.threads>>>(shape.count, shape.microseconds);
    }
    last<<<shape.blocks, shape.threads>>>(shape.count, shape.microseconds);
    const double made = now();
    cudaStreamSynchronize(0);
    return made - from;
}
