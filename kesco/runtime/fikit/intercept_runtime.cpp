// Launches of the runtime's interface, where the program has not asked for the driver's: a dry run has no driver.
#include "intercept.h"

#include <dlfcn.h>

namespace {

using fikit::Attribute, fikit::kNothing, fikit::kNotInitialized, fikit::Result;

struct Dim3 {
    std::uint32_t x, y, z;
};
struct RuntimeConfig { // cudaLaunchConfig_t
    Dim3 grid, block;
    std::size_t shared;
    void *stream;
    const Attribute *attributes;
    std::uint32_t count;
};

const char *runtime_name(const void *function) {
    using Ask = int (*)(const char **, const void *);
    static const auto ask = reinterpret_cast<Ask>(fikit::true_dlsym(RTLD_DEFAULT, "cudaFuncGetName"));
    const char *name = nullptr;
    if (ask && ask(&name, function) == 0 && name)
        return name;
    Dl_info info;
    return dladdr(function, &info) ? info.dli_sname : nullptr;
}

const fikit::Called &called_kernel(const void *handle) {
    return fikit::called(handle, runtime_name, "kernel");
}
const fikit::Called &called_graph(const void *handle) {
    return fikit::called(handle, nullptr, "graph");
}

bool looks_at_runtime() {
    return fikit::looks() && !fikit::driver_seen();
}

} // namespace

#define RUNTIME_FUNCTIONS(suffix, per_thread)                                                                          \
    SHOWN Result cudaLaunchKernel##suffix(const void *f, Dim3 grid, Dim3 block, void **args, std::size_t shared,       \
                                          void *stream) {                                                              \
        using Function = decltype(&cudaLaunchKernel##suffix);                                                          \
        static const auto real = reinterpret_cast<Function>(fikit::true_dlsym(RTLD_NEXT, "cudaLaunchKernel" #suffix)); \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(f, grid, block, args, shared, stream); };                                  \
        if (!looks_at_runtime())                                                                                       \
            return call();                                                                                             \
        return fikit::around(f, called_kernel, &grid.x, &block.x, shared, stream, per_thread, false, call);            \
    }                                                                                                                  \
    SHOWN Result cudaLaunchCooperativeKernel##suffix(const void *f, Dim3 grid, Dim3 block, void **args,                \
                                                     std::size_t shared, void *stream) {                               \
        using Function = decltype(&cudaLaunchCooperativeKernel##suffix);                                               \
        static const auto real =                                                                                       \
            reinterpret_cast<Function>(fikit::true_dlsym(RTLD_NEXT, "cudaLaunchCooperativeKernel" #suffix));           \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(f, grid, block, args, shared, stream); };                                  \
        if (!looks_at_runtime())                                                                                       \
            return call();                                                                                             \
        return fikit::around(f, called_kernel, &grid.x, &block.x, shared, stream, per_thread, true, call);             \
    }                                                                                                                  \
    SHOWN Result cudaLaunchKernelExC##suffix(const RuntimeConfig *config, const void *f, void **args) {                \
        using Function = decltype(&cudaLaunchKernelExC##suffix);                                                       \
        static const auto real =                                                                                       \
            reinterpret_cast<Function>(fikit::true_dlsym(RTLD_NEXT, "cudaLaunchKernelExC" #suffix));                   \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(config, f, args); };                                                       \
        if (!looks_at_runtime() || !config)                                                                            \
            return call();                                                                                             \
        return fikit::around(f, called_kernel, &config->grid.x, &config->block.x, config->shared, config->stream,      \
                             per_thread, fikit::cooperative(config->attributes, config->count), call);                 \
    }                                                                                                                  \
    SHOWN Result cudaGraphLaunch##suffix(void *graph, void *stream) {                                                  \
        using Function = decltype(&cudaGraphLaunch##suffix);                                                           \
        static const auto real = reinterpret_cast<Function>(fikit::true_dlsym(RTLD_NEXT, "cudaGraphLaunch" #suffix));  \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(graph, stream); };                                                         \
        if (!looks_at_runtime())                                                                                       \
            return call();                                                                                             \
        return fikit::around(graph, called_graph, kNothing, kNothing, 0, stream, per_thread, false, call);             \
    }

RUNTIME_FUNCTIONS(, false)
RUNTIME_FUNCTIONS(_ptsz, true)
