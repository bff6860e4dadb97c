// A task for measuring on a GPU: `task SECONDS KERNELS KERNEL_US HOST_US [THREADS_PER_BLOCK BLOCKS]`.
//
// A request is KERNELS kernels that each keep BLOCKS blocks busy for KERNEL_US, a wait for them, and HOST_US of work on
// the host. Prints requests, kernels a second, and the median, p90 and p99 of a request's time in microseconds; and
// with KERNEL_US 0 the nanoseconds that a launch takes the host. Ends with "right" or "WRONG": each kernel counts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

// Always the same work, and not the same time: a kernel that waits for a clock would end while another process runs.
__device__ void busy(unsigned long long *count, int microseconds) {
    float x = threadIdx.x;
    for (int i = 0; i < microseconds * 430; ++i)
        x = x * 0.999f + 1.0f; // about four cycles each, one behind another
    if (x == -1.0f || (blockIdx.x == 0 && threadIdx.x == 0))
        *count += 1;
}
__global__ void work(unsigned long long *count, int microseconds) {
    busy(count, microseconds);
}
// The last kernel of a request is another one, so that its gap is known by its name.
__global__ void last(unsigned long long *count, int microseconds) {
    busy(count, microseconds);
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    const double seconds = std::atof(argv[1]);
    const int kernels = std::atoi(argv[2]), host = std::atoi(argv[4]);
    const int microseconds = std::atoi(argv[3]);
    const int threads = argc > 5 ? std::atoi(argv[5]) : 128, blocks = argc > 6 ? std::atoi(argv[6]) : 132;
    unsigned long long *count;
    if (cudaMalloc(&count, sizeof *count) != cudaSuccess)
        return 3;
    cudaMemset(count, 0, sizeof *count);
    work<<<blocks, threads>>>(count, 0);
    last<<<blocks, threads>>>(count, 0);
    cudaDeviceSynchronize();
    unsigned long long launched = 2;
    std::vector<double> times;
    double launching = 0;
    const double begin = now();
    while (now() - begin < seconds) {
        const double from = now();
        for (int i = 0; i + 1 < kernels; ++i) {
            work<<<blocks, threads>>>(count, microseconds);
        }
        last<<<blocks, threads>>>(count, microseconds);
        launching += now() - from;
        cudaStreamSynchronize(0);
        times.push_back(now() - from);
        launched += kernels;
        if (host > 0)
            std::this_thread::sleep_for(std::chrono::microseconds(host));
    }
    const double whole = now() - begin;
    unsigned long long counted = 0;
    cudaMemcpy(&counted, count, sizeof counted, cudaMemcpyDeviceToHost);
    std::sort(times.begin(), times.end());
    const size_t n = times.size();
    std::printf("requests %zu kernels_per_s %.1f p50_us %.1f p90_us %.1f p99_us %.1f launch_ns %.1f %s\n", n,
                (launched - 2) / whole, times[n / 2] * 1e6, times[n * 9 / 10] * 1e6, times[n * 99 / 100] * 1e6,
                launching * 1e9 / (launched - 2), counted == launched ? "right" : "WRONG");
    return counted == launched ? 0 : 1;
}
