// The driver, found as the CUDA runtime does: dlopen, dlsym, cuGetProcAddress_v2.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

using Launch = int (*)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                       void **, void **);

template <typename Function> void find(Function &function, const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    using Get = int (*)(const char *, void **, int, std::uint64_t, int *);
    const auto get = reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress_v2"));
    void *found = nullptr;
    if (!get || get(name, &found, 12000, 0, nullptr) != 0)
        exit(4);
    function = reinterpret_cast<Function>(found);
}
