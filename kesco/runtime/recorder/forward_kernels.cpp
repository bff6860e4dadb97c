// Streams, events, and what the compiler's start-up code registers, in front of the real functions.
#include "forward.h"

using namespace forward;

namespace {

std::unordered_map<const void *, const void *> &stubs() {
    static auto &one = *new std::unordered_map<const void *, const void *>;
    return one;
}

#if CUDART_VERSION >= 12010
template <typename Real>
cudaError_t asks_kernel(const char *name, cudaKernel_t *kernel, const void *function, Real real) {
    const cudaError_t result = real(kernel, function);
    observe(name, [&](const Call &call) {
        if (result != cudaSuccess)
            return failed(name, result, call);
        stubs()[*kernel] = function;
    });
    return result;
}
#endif

} // namespace

const void *forward::stub_of(const void *function) {
    const auto found = stubs().find(function);
    return found == stubs().end() ? function : found->second;
}

extern "C" {
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, dim3 *, dim3 *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, std::size_t, int, int);
#if CUDART_VERSION >= 12010
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
#endif
}
MODELED(__cudaRegisterFunction);
MODELED(__cudaRegisterVar);
MODELED(cudaStreamCreateWithPriority);
MODELED(cudaStreamDestroy);
MODELED(cudaEventCreateWithFlags);
MODELED(cudaEventDestroy);

BOTH(cudaEventSynchronize, (cudaEvent_t event), event)
BOTH(cudaEventQuery, (cudaEvent_t event), event)

extern "C" {

void __cudaRegisterFunction(void **module, const char *stub, char *same, const char *name, int threads, void *tid,
                            void *bid, dim3 *block, dim3 *grid, int *warp) {
    REAL(__cudaRegisterFunction);
    real(module, stub, same, name, threads, tid, bid, block, grid, warp);
    observe("__cudaRegisterFunction", [&](const Call &) {
        MODEL(__cudaRegisterFunction)(module, stub, same, name, threads, tid, bid, block, grid, warp);
    });
}
void __cudaRegisterVar(void **module, char *shadow, char *same, const char *name, int external, std::size_t size,
                       int constant, int global) {
    REAL(__cudaRegisterVar);
    real(module, shadow, same, name, external, size, constant, global);
    observe("__cudaRegisterVar", [&](const Call &) {
        MODEL(__cudaRegisterVar)(module, shadow, same, name, external, size, constant, global);
    });
}
#if CUDART_VERSION >= 12010
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    REAL(__cudaGetKernel);
    return asks_kernel("__cudaGetKernel", kernel, function, real);
}
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    REAL(cudaGetKernel);
    return asks_kernel("cudaGetKernel", kernel, function, real);
}
#endif

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    REAL(cudaStreamCreate);
    return makes(
        "cudaStreamCreate", stream, [&] { return real(stream); },
        [&](cudaStream_t *ours) { return MODEL(cudaStreamCreateWithPriority)(ours, 0, 0); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    REAL(cudaStreamCreateWithFlags);
    return makes(
        "cudaStreamCreateWithFlags", stream, [&] { return real(stream, flags); },
        [&](cudaStream_t *ours) { return MODEL(cudaStreamCreateWithPriority)(ours, flags, 0); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    REAL(cudaStreamCreateWithPriority);
    return makes(
        "cudaStreamCreateWithPriority", stream, [&] { return real(stream, flags, priority); },
        [&](cudaStream_t *ours) { return MODEL(cudaStreamCreateWithPriority)(ours, flags, priority); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    REAL(cudaStreamDestroy);
    return destroys("cudaStreamDestroy", stream, real, MODEL(cudaStreamDestroy));
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
    REAL(cudaEventCreate);
    return makes(
        "cudaEventCreate", event, [&] { return real(event); },
        [&](cudaEvent_t *ours) { return MODEL(cudaEventCreateWithFlags)(ours, 0); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    REAL(cudaEventCreateWithFlags);
    return makes(
        "cudaEventCreateWithFlags", event, [&] { return real(event, flags); },
        [&](cudaEvent_t *ours) { return MODEL(cudaEventCreateWithFlags)(ours, flags); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    REAL(cudaEventDestroy);
    return destroys("cudaEventDestroy", event, real, MODEL(cudaEventDestroy));
}

} // extern "C"
