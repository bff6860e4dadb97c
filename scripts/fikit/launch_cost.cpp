// What a launch costs the host, with whatever driver the loader finds: `launch_cost LAUNCHES KERNELS`.
//
// Told by its standard input what to do and answers in JSON, as `task.cu`. A request is LAUNCHES launches of KERNELS
// names and sizes in turn, and a wait for them. With -DHOOKS there are hooks around each launch, as kesco writes them.
#include "../../kesco/runtime/hooks/launch_hooks.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" {
__attribute__((weak)) void kesco_launch_before(const KescoLaunchSite *, const KescoLaunch *);
__attribute__((weak)) void kesco_launch_after(const KescoLaunchSite *, const KescoLaunch *);
}

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
}
static double middle(std::vector<double> &times) {
    std::sort(times.begin(), times.end());
    return times.empty() ? 0 : times[times.size() / 2];
}

int main(int count, char **words) {
    if (count < 3)
        return 2;
    using Launch = int (*)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                           void **, void **);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 3;
    const auto real = reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernel"));
    const auto wait = reinterpret_cast<int (*)(void *)>(dlsym(library, "cuStreamSynchronize"));
    const std::size_t each = std::strtoul(words[1], nullptr, 10), kernels = std::strtoul(words[2], nullptr, 10);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kernels; ++i)
        names.push_back("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE" +
                        std::to_string(i));
#ifdef HOOKS
    std::vector<KescoLaunchSite> sites;
    for (std::size_t i = 0; i < kernels; ++i)
        sites.push_back({KESCO_LAUNCH_HOOKS_VERSION, sizeof(KescoLaunchSite), names[i].c_str(), "launch_cost.cpp",
                         unsigned(i), 1, "main"});
#endif
    const auto launch = [&](std::size_t k) {
        const unsigned wide = unsigned(32 + k % 7 * 32);
#ifdef HOOKS
        const KescoLaunch how = {nullptr, {0, 1, 1}, {wide, 1, 1}, 0, nullptr};
        if (kesco_launch_before)
            kesco_launch_before(&sites[k], &how);
#endif
        real(names[k].c_str(), 0, 1, 1, wide, 1, 1, 0, nullptr, nullptr, nullptr);
#ifdef HOOKS
        if (kesco_launch_after)
            kesco_launch_after(&sites[k], &how);
#endif
    };
    launch(0);
    wait(nullptr);
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
        for (std::size_t next = 0; from < begin + warm + seconds || launches.empty(); next += each) {
            for (std::size_t i = 0; i < each; ++i)
                launch((next + i) % kernels);
            const double made = now();
            wait(nullptr);
            const double ended = now();
            if (from >= begin + warm) {
                requests.push_back((ended - from) * 1e6);
                launches.push_back((made - from) * 1e9 / double(each));
            }
            from = ended;
        }
        std::printf("{\"requests\": %zu, \"p50_us\": %.3f, \"launch_ns\": %.2f, \"result\": \"right\"}\n",
                    requests.size(), middle(requests), middle(launches));
        std::fflush(stdout);
    }
    return 0;
}
