// A program with compiled hooks and four threads that launch, to be linked with the client: for sanitizers.
#include "../../kesco/runtime/hooks/launch_hooks.h"

#include <dlfcn.h>

#include <thread>
#include <vector>

int main() {
    using Launch =
        int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 3;
    const auto real = reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernel"));
    const auto wait = reinterpret_cast<int (*)(void *)>(dlsym(library, "cuStreamSynchronize"));
    static const KescoLaunchSite site = {KESCO_LAUNCH_HOOKS_VERSION, sizeof site, "work", "task.cu", 7, 3, "main"};
    std::vector<std::thread> all;
    for (int i = 0; i < 4; ++i)
        all.emplace_back([&] {
            for (int round = 0; round < 20; ++round) {
                for (int k = 0; k < 10; ++k) {
                    const KescoLaunch launch = {nullptr, {20, 1, 1}, {64, 1, 1}, 0, nullptr};
                    kesco_launch_before(&site, &launch);
                    real(nullptr, 20, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr);
                    kesco_launch_after(&site, &launch);
                }
                wait(nullptr);
            }
        });
    for (auto &one : all)
        one.join();
    return 0;
}
