// Unmodified programs: launches and synchronizes of the driver's interface.
//
// The runtime, also where it is linked statically or loaded by a Python module, finds the driver's functions by dlsym
// and cuGetProcAddress. Both are answered here, for the names below only, with functions that call the true ones.
#include "intercept.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>

namespace {

using fikit::Attribute, fikit::kNothing, fikit::kNotInitialized, fikit::looks, fikit::Result;

struct Config { // CUlaunchConfig
    std::uint32_t grid[3], block[3], shared;
    void *stream;
    const Attribute *attributes;
    std::uint32_t count;
};
constexpr std::uint64_t kPerThread = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
constexpr Result kNotFound = 500;

std::atomic<bool> launches_asked_for{false};

const char *driver_name(const void *function) {
    const fikit::Driver *d = fikit::driver();
    const char *name = nullptr;
    void *handle = const_cast<void *>(function);
    if (d && d->function_name && d->function_name(&name, handle) == fikit::kSuccess && name)
        return name;
    return d && d->kernel_name && d->kernel_name(&name, handle) == fikit::kSuccess ? name : nullptr;
}

const fikit::Called &called_kernel(const void *handle) {
    return fikit::called(handle, driver_name, "kernel");
}
const fikit::Called &called_graph(const void *handle) {
    return fikit::called(handle, nullptr, "graph");
}

// Where the true function is: what the program was given, or else the driver's own.
template <typename Function> Function truly(std::atomic<void *> &known, const char *name) {
    void *found = known.load(std::memory_order_relaxed);
    if (!found) {
        void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        found = library ? fikit::true_dlsym(library, name) : fikit::true_dlsym(RTLD_NEXT, name);
        known.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function>(found);
}

} // namespace

bool fikit::driver_seen() noexcept {
    return launches_asked_for.load(std::memory_order_relaxed);
}

// ---- the driver's functions, each for the legacy and for the per-thread default stream ----------------------------

#define DRIVER_FUNCTIONS(suffix, per_thread)                                                                           \
    static std::atomic<void *> true_cuLaunchKernel##suffix, true_cuLaunchKernelEx##suffix,                             \
        true_cuLaunchCooperativeKernel##suffix, true_cuGraphLaunch##suffix, true_cuStreamSynchronize##suffix,          \
        true_cuMemcpyDtoH_v2##suffix;                                                                                  \
    SHOWN Result cuLaunchKernel##suffix(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
                                        unsigned bz, unsigned shared, void *stream, void **params, void **extra) {     \
        using Function = decltype(&cuLaunchKernel##suffix);                                                            \
        const auto real = truly<Function>(true_cuLaunchKernel##suffix, "cuLaunchKernel" #suffix);                      \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra); };              \
        if (!looks())                                                                                                  \
            return call();                                                                                             \
        const std::uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};                                           \
        return fikit::around(f, called_kernel, grid, block, shared, stream, per_thread, false, call);                  \
    }                                                                                                                  \
    SHOWN Result cuLaunchCooperativeKernel##suffix(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,        \
                                                   unsigned by, unsigned bz, unsigned shared, void *stream,            \
                                                   void **params) {                                                    \
        using Function = decltype(&cuLaunchCooperativeKernel##suffix);                                                 \
        const auto real =                                                                                              \
            truly<Function>(true_cuLaunchCooperativeKernel##suffix, "cuLaunchCooperativeKernel" #suffix);              \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(f, gx, gy, gz, bx, by, bz, shared, stream, params); };                     \
        if (!looks())                                                                                                  \
            return call();                                                                                             \
        const std::uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};                                           \
        return fikit::around(f, called_kernel, grid, block, shared, stream, per_thread, true, call);                   \
    }                                                                                                                  \
    SHOWN Result cuLaunchKernelEx##suffix(const Config *config, void *f, void **params, void **extra) {                \
        using Function = decltype(&cuLaunchKernelEx##suffix);                                                          \
        const auto real = truly<Function>(true_cuLaunchKernelEx##suffix, "cuLaunchKernelEx" #suffix);                  \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(config, f, params, extra); };                                              \
        if (!looks() || !config)                                                                                       \
            return call();                                                                                             \
        return fikit::around(f, called_kernel, config->grid, config->block, config->shared, config->stream,            \
                             per_thread, fikit::cooperative(config->attributes, config->count), call);                 \
    }                                                                                                                  \
    SHOWN Result cuGraphLaunch##suffix(void *graph, void *stream) {                                                    \
        using Function = decltype(&cuGraphLaunch##suffix);                                                             \
        const auto real = truly<Function>(true_cuGraphLaunch##suffix, "cuGraphLaunch" #suffix);                        \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const auto call = [&] { return real(graph, stream); };                                                         \
        if (!looks())                                                                                                  \
            return call();                                                                                             \
        return fikit::around(graph, called_graph, kNothing, kNothing, 0, stream, per_thread, false, call);             \
    }                                                                                                                  \
    SHOWN Result cuStreamSynchronize##suffix(void *stream) {                                                           \
        using Function = decltype(&cuStreamSynchronize##suffix);                                                       \
        const auto real = truly<Function>(true_cuStreamSynchronize##suffix, "cuStreamSynchronize" #suffix);            \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const std::uint64_t before = fikit::wait_begins();                                                             \
        const Result result = real(stream);                                                                            \
        if (result == fikit::kSuccess)                                                                                 \
            fikit::after_wait(before, {stream, per_thread, false});                                                    \
        fikit::wait_ends();                                                                                            \
        return result;                                                                                                 \
    }                                                                                                                  \
    SHOWN Result cuMemcpyDtoH_v2##suffix(void *to, unsigned long long from, std::size_t size) {                        \
        using Function = decltype(&cuMemcpyDtoH_v2##suffix);                                                           \
        const auto real = truly<Function>(true_cuMemcpyDtoH_v2##suffix, "cuMemcpyDtoH_v2" #suffix);                    \
        if (!real)                                                                                                     \
            return kNotInitialized;                                                                                    \
        const std::uint64_t before = fikit::wait_begins();                                                             \
        const Result result = real(to, from, size);                                                                    \
        if (result == fikit::kSuccess)                                                                                 \
            fikit::after_wait(before, {nullptr, per_thread, false});                                                   \
        fikit::wait_ends();                                                                                            \
        return result;                                                                                                 \
    }

DRIVER_FUNCTIONS(, false)
DRIVER_FUNCTIONS(_ptsz, true)

static std::atomic<void *> true_cuCtxSynchronize, true_cuCtxSynchronize_v2, true_cuEventSynchronize,
    true_cuGetProcAddress, true_cuGetProcAddress_v2;

SHOWN Result cuCtxSynchronize() {
    const auto real = truly<decltype(&cuCtxSynchronize)>(true_cuCtxSynchronize, "cuCtxSynchronize");
    const std::uint64_t before = fikit::wait_begins();
    const Result result = real ? real() : kNotInitialized;
    if (result == fikit::kSuccess)
        fikit::after_wait(before, {nullptr, false, true});
    fikit::wait_ends();
    return result;
}
// The runtime of CUDA 13 names the context also where it is the thread's own. Of another one: only what the events say.
SHOWN Result cuCtxSynchronize_v2(void *context) {
    const auto real = truly<decltype(&cuCtxSynchronize_v2)>(true_cuCtxSynchronize_v2, "cuCtxSynchronize_v2");
    const std::uint64_t before = fikit::wait_begins();
    const Result result = real ? real(context) : kNotInitialized;
    if (result == fikit::kSuccess && (!context || context == fikit::current_context()))
        fikit::after_wait(before, {nullptr, false, true});
    else
        fikit::synchronized();
    fikit::wait_ends();
    return result;
}
SHOWN Result cuEventSynchronize(void *event) {
    const auto real = truly<decltype(&cuEventSynchronize)>(true_cuEventSynchronize, "cuEventSynchronize");
    const std::uint64_t before = fikit::wait_begins();
    const Result result = real ? real(event) : kNotInitialized;
    fikit::synchronized();
    fikit::wait_ends();
    return result;
}

SHOWN Result cuGetProcAddress(const char *name, void **function, int version, std::uint64_t flags);
SHOWN Result cuGetProcAddress_v2(const char *name, void **function, int version, std::uint64_t flags, int *status);

namespace {

struct Entry {
    const char *name;
    void *ours;
    std::atomic<void *> *real;
};
#define ENTRY(name)                                                                                                    \
    { #name, reinterpret_cast < void *>(&name), &true_##name }
const Entry kEntries[] = {
    ENTRY(cuLaunchKernel),
    ENTRY(cuLaunchKernel_ptsz),
    ENTRY(cuLaunchKernelEx),
    ENTRY(cuLaunchKernelEx_ptsz),
    ENTRY(cuLaunchCooperativeKernel),
    ENTRY(cuLaunchCooperativeKernel_ptsz),
    ENTRY(cuGraphLaunch),
    ENTRY(cuGraphLaunch_ptsz),
    ENTRY(cuStreamSynchronize),
    ENTRY(cuStreamSynchronize_ptsz),
    ENTRY(cuMemcpyDtoH_v2),
    ENTRY(cuMemcpyDtoH_v2_ptsz),
    ENTRY(cuCtxSynchronize),
    ENTRY(cuCtxSynchronize_v2),
    ENTRY(cuEventSynchronize),
    ENTRY(cuGetProcAddress),
    ENTRY(cuGetProcAddress_v2),
};

const Entry *entry_of(const char *name) {
    if (name[0] != 'c' || name[1] != 'u')
        return nullptr;
    for (const Entry &one : kEntries)
        if (strcmp(one.name, name) == 0)
            return &one;
    return nullptr;
}

// What the program is given in place of `found`, which it asked for under this name.
void *replaced(const char *name, void *found) {
    const Entry *one = entry_of(name);
    if (!one || found == one->ours)
        return found;
    one->real->store(found, std::memory_order_relaxed);
    if (strncmp(name, "cuLaunchKernel", 14) == 0)
        launches_asked_for.store(true, std::memory_order_relaxed);
    return one->ours;
}

// cuGetProcAddress names functions without the suffix of their version and of the default stream.
void *replaced_address(const char *name, void *found, int version, std::uint64_t flags) {
    char full[64];
    if (!name || !found || strlen(name) > 40)
        return found;
    strcpy(full, name);
    if (strcmp(name, "cuGetProcAddress") == 0) {
        strcat(full, version >= 12000 ? "_v2" : "");
        return replaced(full, found);
    }
    if (strcmp(name, "cuCtxSynchronize") == 0)
        strcat(full, version >= 13000 ? "_v2" : "");
    if (strcmp(name, "cuMemcpyDtoH") == 0)
        strcat(full, version >= 3020 ? "_v2" : "_v1");
    if (flags & kPerThread) {
        char own[80];
        strcpy(own, full);
        strcat(own, "_ptsz");
        if (entry_of(own))
            return replaced(own, found);
    }
    return replaced(full, found);
}

} // namespace

SHOWN Result cuGetProcAddress(const char *name, void **function, int version, std::uint64_t flags) {
    const auto real = truly<decltype(&cuGetProcAddress)>(true_cuGetProcAddress, "cuGetProcAddress");
    if (!real)
        return kNotFound;
    const Result result = real(name, function, version, flags);
    if (result == fikit::kSuccess && function)
        *function = replaced_address(name, *function, version, flags);
    return result;
}
SHOWN Result cuGetProcAddress_v2(const char *name, void **function, int version, std::uint64_t flags, int *status) {
    const auto real = truly<decltype(&cuGetProcAddress_v2)>(true_cuGetProcAddress_v2, "cuGetProcAddress_v2");
    if (!real)
        return kNotFound;
    const Result result = real(name, function, version, flags, status);
    if (result == fikit::kSuccess && function)
        *function = replaced_address(name, *function, version, flags);
    return result;
}

// ---- dlsym: the true one must see the caller's return address, so it is jumped to, never called --------------------

extern "C" {
__attribute__((visibility("hidden"))) void *(*kesco_fikit_true_dlsym)(void *, const char *) = nullptr;
}

// What dlsym gives instead of what it would, or null to have it do its work.
extern "C" __attribute__((visibility("hidden"))) void *kesco_fikit_instead(void *handle, const char *name) {
    kesco_fikit_true_dlsym = fikit::dlsym_address();
    if (!name || handle == RTLD_NEXT || !entry_of(name) || !fikit::wanted())
        return nullptr;
    void *found = fikit::true_dlsym(handle, name);
    return found ? replaced(name, found) : nullptr;
}

#if defined(__x86_64__)
asm(R"(
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    endbr64
    pushq %rdi
    pushq %rsi
    subq $8, %rsp
    call kesco_fikit_instead
    addq $8, %rsp
    popq %rsi
    popq %rdi
    testq %rax, %rax
    jne 1f
    jmpq *kesco_fikit_true_dlsym(%rip)
1:
    ret
    .size dlsym, .-dlsym
)");
#endif
