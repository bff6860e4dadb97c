// What a launch costs the host, with whatever driver the loader finds: `launch_cost LAUNCHES KERNELS`.
//
// Told by its standard input what to `alternate` and answers in JSON, as `task.cu`. A request is LAUNCHES launches of
// KERNELS names and sizes in turn, and a wait for them. With -DHOOKS there are hooks around each, as kesco writes them.
#include "../../kesco/runtime/hooks/launch_hooks.h"

#include "alternate.h"

#include <dlfcn.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

extern "C" {
__attribute__((weak)) void kesco_launch_before(const KescoLaunchSite *, const KescoLaunch *);
__attribute__((weak)) void kesco_launch_after(const KescoLaunchSite *, const KescoLaunch *);
}

#ifdef HOOKS
constexpr bool kHooks = true;
#else
constexpr bool kHooks = false;
#endif

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
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
    std::vector<KescoLaunchSite> sites;
    for (std::size_t i = 0; i < kernels; ++i)
        sites.push_back({KESCO_LAUNCH_HOOKS_VERSION, sizeof(KescoLaunchSite), names[i].c_str(), "launch_cost.cpp",
                         unsigned(i), 1, "main"});
    std::size_t next = 0;
    // Nanoseconds of a launch, from a request whose launches have hooks or none.
    const auto request = [&](auto hooks) {
        const double from = now();
        for (std::size_t i = 0; i < each; ++i) {
            const std::size_t k = (next + i) % kernels;
            const unsigned wide = unsigned(32 + k % 7 * 32);
            const KescoLaunch how = {nullptr, {0, 1, 1}, {wide, 1, 1}, 0, nullptr};
            if (hooks && kesco_launch_before)
                kesco_launch_before(&sites[k], &how);
            real(names[k].c_str(), 0, 1, 1, wide, 1, 1, 0, nullptr, nullptr, nullptr);
            if (hooks && kesco_launch_after)
                kesco_launch_after(&sites[k], &how);
        }
        next += each;
        const double made = now();
        wait(nullptr);
        return (made - from) * 1e9 / double(each);
    };
    const auto once = [&] { return request(std::bool_constant<kHooks>()); };
    once();
    std::printf("{\"ready\": true}\n");
    std::fflush(stdout);
    char line[100], what[20];
    double seconds = 0, warm = 0;
    while (std::fgets(line, sizeof line, stdin) &&
           std::sscanf(line, "alternate %19s %lf %lf", what, &seconds, &warm) == 3) {
        const bool hooks = std::strcmp(what, "hooks") == 0;
        alternate(now, seconds, warm, [&](bool with) {
            return hooks ? (with ? once() : request(std::false_type())) : past_library(with, once);
        });
    }
    return 0;
}
