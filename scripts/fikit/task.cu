// A task for measuring on a GPU, told by its standard input what to do: `task KERNELS KERNEL_US [THREADS BLOCKS]`.
//
//     run SECONDS [WARM]              requests one after another, the first WARM seconds of which are not counted
//     alternate WHAT SECONDS WARM     requests with and without WHAT in turn: `hooks`, or FIKIT's `library`
//     quit
//
// A request is KERNELS kernels that each keep BLOCKS blocks busy for KERNEL_US, and a wait for them. Answers with a
// line of JSON, as worker.py does: how many requests, the median of their microseconds and of the nanoseconds that
// each of their launches took the host; of `alternate` those of each request. Each kernel counts: a wrong number of
// them is the end of the program.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "alternate.h"
#include "task.cuh"

static double middle(std::vector<double> &times) {
    std::sort(times.begin(), times.end());
    return times.empty() ? 0 : times[times.size() / 2];
}

__attribute__((noinline)) static double request(const Shape &shape) {
    const double from = now();
    for (int i = 0; i + 1 < shape.kernels; ++i) {
        work<<<shape.blocks, shape.threads>>>(shape.count, shape.microseconds);
    }
    last<<<shape.blocks, shape.threads>>>(shape.count, shape.microseconds);
    const double made = now();
    cudaStreamSynchronize(0);
    return made - from;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    Shape shape = {nullptr, std::atoi(argv[1]), std::atoi(argv[2]), 128, 132};
    if (argc > 4)
        shape.threads = std::atoi(argv[3]), shape.blocks = std::atoi(argv[4]);
    if (cudaMalloc(&shape.count, sizeof *shape.count) != cudaSuccess)
        return 3;
    cudaMemset(shape.count, 0, sizeof *shape.count);
    unsigned long long launched = 0, counted = 0;
    const auto once = [&] {
        launched += shape.kernels;
        return request(shape);
    };
    once();
    std::printf("{\"ready\": true}\n");
    std::fflush(stdout);
    char line[100], what[20];
    bool right = true;
    while (right && std::fgets(line, sizeof line, stdin)) {
        double seconds = 0, warm = 0;
        if (std::sscanf(line, "alternate %19s %lf %lf", what, &seconds, &warm) == 3) {
            const bool hooks = std::strcmp(what, "hooks") == 0;
            alternate(now, seconds, warm, [&](bool with) {
                if (hooks && !with)
                    launched += shape.kernels;
                const double took = hooks ? (with ? once() : plain_request(shape)) : past_library(with, once);
                return took * 1e9 / shape.kernels;
            });
        } else if (std::sscanf(line, "run %lf %lf", &seconds, &warm) >= 1) {
            std::vector<double> requests, launches;
            for (const double begin = now(); now() < begin + warm + seconds || launches.empty();) {
                const double from = now(), took = once();
                if (from >= begin + warm) {
                    requests.push_back((now() - from) * 1e6);
                    launches.push_back(took * 1e9 / shape.kernels);
                }
            }
            std::printf("{\"requests\": %zu, \"p50_us\": %.3f, \"launch_ns\": %.2f}\n", requests.size(),
                        middle(requests), middle(launches));
            std::fflush(stdout);
        } else {
            break;
        }
        cudaMemcpy(&counted, shape.count, sizeof counted, cudaMemcpyDeviceToHost);
        right = counted == launched;
    }
    return right ? 0 : 1;
}
