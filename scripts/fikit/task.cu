// A task for measuring on a GPU, told by its standard input what to do: `task KERNELS KERNEL_US [THREADS BLOCKS]`.
//
//     run SECONDS [WARM]    requests one after another, the first WARM seconds of which are not counted
//     quit
//
// A request is KERNELS kernels that each keep BLOCKS blocks busy for KERNEL_US, and a wait for them. Answers with a
// line of JSON, as worker.py does: how many requests, the median of their microseconds and of the nanoseconds that
// each of their launches took the host. Each kernel counts, and `result` says whether all of them have run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
static double middle(std::vector<double> &times) {
    std::sort(times.begin(), times.end());
    return times.empty() ? 0 : times[times.size() / 2];
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const int kernels = std::atoi(argv[1]), microseconds = std::atoi(argv[2]);
    const int threads = argc > 3 ? std::atoi(argv[3]) : 128, blocks = argc > 4 ? std::atoi(argv[4]) : 132;
    unsigned long long *count;
    if (cudaMalloc(&count, sizeof *count) != cudaSuccess)
        return 3;
    cudaMemset(count, 0, sizeof *count);
    work<<<blocks, threads>>>(count, 0);
    last<<<blocks, threads>>>(count, 0);
    cudaDeviceSynchronize();
    unsigned long long launched = 2, counted = 2;
    std::printf("{\"ready\": true}\n");
    std::fflush(stdout);
    char line[100];
    while (std::fgets(line, sizeof line, stdin)) {
        double seconds = 0, warm = 0;
        if (std::sscanf(line, "run %lf %lf", &seconds, &warm) < 1)
            break;
        std::vector<double> requests, launches;
        const double begin = now();
        double from = begin;
        while (from < begin + warm + seconds || launches.empty()) {
            for (int i = 0; i + 1 < kernels; ++i) {
                work<<<blocks, threads>>>(count, microseconds);
            }
            last<<<blocks, threads>>>(count, microseconds);
            const double made = now();
            cudaStreamSynchronize(0);
            launched += kernels;
            const double ended = now();
            if (from >= begin + warm) {
                requests.push_back((ended - from) * 1e6);
                launches.push_back((made - from) * 1e9 / kernels);
            }
            from = ended;
        }
        cudaMemcpy(&counted, count, sizeof counted, cudaMemcpyDeviceToHost);
        std::printf("{\"requests\": %zu, \"p50_us\": %.3f, \"launch_ns\": %.2f, \"result\": \"%s\"}\n", requests.size(),
                    middle(requests), middle(launches), counted == launched ? "right" : "WRONG");
        std::fflush(stdout);
    }
    return counted == launched ? 0 : 1;
}
