// What the program's handles and pointers are called in the books, and lines for what the books lack.
#include "forward.h"

#include <cstdlib>
#include <map>
#include <set>

MODELED(cudaEventCreateWithFlags);

namespace forward {
namespace {

struct Same {
    std::uintptr_t base;
    std::size_t size;
};
std::map<std::uintptr_t, Same> &same() {
    static auto &one = *new std::map<std::uintptr_t, Same>;
    return one;
}

std::uintptr_t recorded(std::uintptr_t address) {
    if (same().empty())
        return address;
    auto found = same().upper_bound(address);
    if (found == same().begin())
        return address;
    --found;
    return address - found->first < found->second.size ? address - found->first + found->second.base : address;
}

bool unclear = false;

int absent() {
    return cudaErrorSharedObjectSymbolNotFound;
}

// Programs that this one starts must not have the recorder in front of theirs.
__attribute__((constructor)) void leave_the_environment() {
    const char *wanted = std::getenv("CUDA_RECORDER_PRELOAD");
    if (wanted == nullptr)
        return;
    if (*wanted == 0)
        unsetenv("LD_PRELOAD");
    else
        setenv("LD_PRELOAD", wanted, 1);
    unsetenv("CUDA_RECORDER_PRELOAD");
}

} // namespace

// Behind this library in the order of loading; or in a runtime that a library of the program's brought along for
// itself.
void *next_symbol(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    for (const char *library : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
        void *handle = found == nullptr ? dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
        if (handle != nullptr) {
            found = dlsym(handle, name);
            dlclose(handle); // it stays: whoever loaded it still has it
        }
    }
    return found != nullptr ? found : reinterpret_cast<void *>(absent);
}

void same_memory(std::uintptr_t other, std::uintptr_t base, std::size_t size) {
    if (other != base)
        same()[other] = {base, size};
}

void *in(void *pointer) {
    return reinterpret_cast<void *>(recorded(reinterpret_cast<std::uintptr_t>(pointer)));
}
const void *in(const void *pointer) {
    return in(const_cast<void *>(pointer));
}

// One that was made by other means, by the driver's functions for example, is met here for the first time.
cudaStream_t in(cudaStream_t stream) {
    if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
        return stream;
    const auto found = bound<cudaStream_t>().find(stream);
    if (found != bound<cudaStream_t>().end())
        return found->second;
    static const auto ask = next<decltype(&cudaStreamGetFlags)>("cudaStreamGetFlags");
    unsigned flags = 0;
    if (ask(stream, &flags) != cudaSuccess)
        throw Lost{};
    const char kind = (flags & cudaStreamNonBlocking) != 0 ? 'n' : 'b';
    bind(stream, reinterpret_cast<cudaStream_t>(new_stream(kind, flags, 0, stack_number({}))));
    return bound<cudaStream_t>()[stream];
}
cudaEvent_t in(cudaEvent_t event) {
    const auto found = bound<cudaEvent_t>().find(event);
    if (found != bound<cudaEvent_t>().end())
        return found->second;
    cudaEvent_t ours = nullptr;
    expect(MODEL(cudaEventCreateWithFlags)(&ours, 0));
    bind(event, ours);
    return ours;
}
cudaArray_t in(cudaArray_t array) {
    return array == nullptr ? nullptr : known(array);
}
cudaArray_const_t in(cudaArray_const_t array) {
    return in(const_cast<cudaArray_t>(array));
}
cudaPitchedPtr in(cudaPitchedPtr pointer) {
    pointer.ptr = in(pointer.ptr);
    return pointer;
}
cudaMemcpy3DParms in(const cudaMemcpy3DParms &parameters) {
    cudaMemcpy3DParms result = parameters;
    result.srcArray = in(parameters.srcArray);
    result.dstArray = in(parameters.dstArray);
    result.srcPtr = in(parameters.srcPtr);
    result.dstPtr = in(parameters.dstPtr);
    return result;
}
cudaResourceDesc in(const cudaResourceDesc &resource) {
    cudaResourceDesc result = resource;
    if (resource.resType == cudaResourceTypeArray)
        result.res.array.array = in(resource.res.array.array);
    else if (resource.resType == cudaResourceTypeLinear)
        result.res.linear.devPtr = in(resource.res.linear.devPtr);
    else if (resource.resType == cudaResourceTypePitch2D)
        result.res.pitch2D.devPtr = in(resource.res.pitch2D.devPtr);
    return result;
}

void missing(const char *name) {
    const Call call;
    record("U " + std::to_string(call.stack()) + " " + name);
}

void failed(const char *name, cudaError_t error, std::uint32_t stack) {
    if (error == cudaErrorNotReady) // an answer, not an error
        return;
    static const auto named = next<const char *(*)(cudaError_t)>("cudaGetErrorName");
    record("E " + std::to_string(stack) + " " + name + " " + std::to_string(static_cast<int>(error)) + " " +
           named(error));
}

void graphs_are_unclear() {
    unclear = true;
}
bool graphs_unclear() {
    return unclear;
}

} // namespace forward
