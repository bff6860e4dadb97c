// Allocating and freeing, symbols, textures and devices, in front of the real functions.
#include "forward.h"

using namespace forward;

namespace {

// What the real runtime has allocated, in the books.
template <typename Real, typename Size>
cudaError_t allocates(const char *name, Kind kind, void *const *pointer, Real real, Size size, unsigned flags = 0) {
    const cudaError_t result = real();
    observe(name, [&](const Call &call) {
        if (result != cudaSuccess)
            return failed(name, result, call);
        if (size() > 0 && *pointer != nullptr)
            adopt(kind, *pointer, size(), call.stack())->flags = flags;
    });
    return result;
}

constexpr long no_stream() {
    return -1;
}

} // namespace

MODELED(cudaFree);
MODELED(cudaFreeHost);
MODELED(cudaFreeArray);
MODELED(cudaMallocArray);
MODELED(cudaMalloc3DArray);
MODELED(cudaHostUnregister);
MODELED(cudaDeviceSynchronize);

BOTH(cudaHostRegister, (void *pointer, size_t size, unsigned flags), pointer, size, flags)
BOTH(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t size), to, to_device, from,
     from_device, size)
BOTH(cudaMemcpyPeerAsync,
     (void *to, int to_device, const void *from, int from_device, size_t size, cudaStream_t stream), to, to_device,
     from, from_device, size, stream)

extern "C" {

cudaError_t cudaDeviceSynchronize(void) {
    REAL(cudaDeviceSynchronize);
    return both("cudaDeviceSynchronize", real, MODEL(cudaDeviceSynchronize));
}

cudaError_t cudaMalloc(void **pointer, size_t size) {
    REAL(cudaMalloc);
    return allocates("cudaMalloc", Kind::device, pointer, [&] { return real(pointer, size); }, [&] { return size; });
}
cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags) {
    REAL(cudaMallocManaged);
    return allocates(
        "cudaMallocManaged", Kind::managed, pointer, [&] { return real(pointer, size, flags); }, [&] { return size; });
}
cudaError_t cudaMallocHost(void **pointer, size_t size) {
    REAL(cudaMallocHost);
    return allocates(
        "cudaMallocHost", Kind::pinned, pointer, [&] { return real(pointer, size); }, [&] { return size; });
}
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
    REAL(cudaHostAlloc);
    return allocates(
        "cudaHostAlloc", Kind::pinned, pointer, [&] { return real(pointer, size, flags); }, [&] { return size; },
        flags);
}
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    REAL(cudaMallocPitch);
    return allocates(
        "cudaMallocPitch", Kind::device, pointer, [&] { return real(pointer, pitch, width, height); },
        [&] { return *pitch * height; });
}
cudaError_t cudaMalloc3D(cudaPitchedPtr *made, cudaExtent extent) {
    REAL(cudaMalloc3D);
    return allocates(
        "cudaMalloc3D", Kind::device, &made->ptr, [&] { return real(made, extent); },
        [&] { return made->pitch * extent.height * extent.depth; });
}
cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *format, size_t width, size_t height,
                            unsigned flags) {
    REAL(cudaMallocArray);
    return makes(
        "cudaMallocArray", array, [&] { return real(array, format, width, height, flags); },
        [&](cudaArray_t *ours) { return MODEL(cudaMallocArray)(ours, format, width, height, flags); });
}
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *format, cudaExtent extent,
                              unsigned flags) {
    REAL(cudaMalloc3DArray);
    return makes(
        "cudaMalloc3DArray", array, [&] { return real(array, format, extent, flags); },
        [&](cudaArray_t *ours) { return MODEL(cudaMalloc3DArray)(ours, format, extent, flags); });
}
cudaError_t cudaFree(void *pointer) {
    REAL(cudaFree);
    const Freeing freeing(pointer, "cudaFree", no_stream);
    const cudaError_t result = real(pointer);
    freeing.ends(result, [&] { return MODEL(cudaFree)(pointer); });
    return result;
}
cudaError_t cudaFreeHost(void *pointer) {
    REAL(cudaFreeHost);
    const Freeing freeing(pointer, "cudaFreeHost", no_stream);
    const cudaError_t result = real(pointer);
    freeing.ends(result, [&] { return MODEL(cudaFreeHost)(pointer); });
    return result;
}
cudaError_t cudaHostUnregister(void *pointer) {
    REAL(cudaHostUnregister);
    const Freeing freeing(pointer, "cudaHostUnregister", no_stream);
    const cudaError_t result = real(pointer);
    freeing.ends(result, [&] { return MODEL(cudaHostUnregister)(pointer); });
    return result;
}
cudaError_t cudaFreeArray(cudaArray_t array) {
    REAL(cudaFreeArray);
    return destroys("cudaFreeArray", array, real, MODEL(cudaFreeArray));
}

// The program learns an address that the books do not have yet.
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    REAL(cudaGetSymbolAddress);
    const cudaError_t result = real(address, symbol);
    observe("cudaGetSymbolAddress", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaGetSymbolAddress", result, call);
        const Allocation *known = allocation_at(symbol);
        if (known == nullptr)
            throw Lost{};
        same_memory(reinterpret_cast<std::uintptr_t>(*address), known->base, known->size);
    });
    return result;
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    REAL(cudaHostGetDevicePointer);
    const cudaError_t result = real(device, host, flags);
    observe("cudaHostGetDevicePointer", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaHostGetDevicePointer", result, call);
        const auto at = reinterpret_cast<std::uintptr_t>(host);
        if (const Allocation *known = allocation_at(at))
            same_memory(reinterpret_cast<std::uintptr_t>(*device), at, known->end() - at);
    });
    return result;
}

// The line that says which memory a texture or surface reads or writes; the handle is what the kernel gets.
static void object(const char *name, cudaError_t result, unsigned long long handle, const cudaResourceDesc &resource,
                   bool writes) {
    observe(name, [&](const Call &call) {
        if (result != cudaSuccess)
            return failed(name, result, call);
        const cudaResourceDesc ours = in(resource);
        const void *base = nullptr;
        if (ours.resType == cudaResourceTypeArray)
            base = reinterpret_cast<const void *>(array_of(ours.res.array.array)->memory->base);
        else if (ours.resType == cudaResourceTypeLinear)
            base = ours.res.linear.devPtr;
        else if (ours.resType == cudaResourceTypePitch2D)
            base = ours.res.pitch2D.devPtr;
        else
            throw Lost{};
        record("O " + std::to_string(handle) + " " + hexadecimal(reinterpret_cast<std::uintptr_t>(base)) +
               (writes ? " rw" : " r"));
    });
}
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *how, const cudaResourceViewDesc *view) {
    REAL(cudaCreateTextureObject);
    const cudaError_t result = real(texture, resource, how, view);
    object("cudaCreateTextureObject", result, *texture, *resource, false);
    return result;
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *resource) {
    REAL(cudaCreateSurfaceObject);
    const cudaError_t result = real(surface, resource);
    object("cudaCreateSurfaceObject", result, *surface, *resource, true);
    return result;
}

cudaError_t cudaSetDevice(int device) {
    REAL(cudaSetDevice);
    const cudaError_t result = real(device);
    observe("cudaSetDevice", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaSetDevice", result, call);
        thread().device = device;
    });
    return result;
}
// Only for the error that it ends with where there is no GPU.
cudaError_t cudaGetDeviceCount(int *count) {
    REAL(cudaGetDeviceCount);
    const cudaError_t result = real(count);
    observe("cudaGetDeviceCount", [&](const Call &call) {
        if (result != cudaSuccess)
            failed("cudaGetDeviceCount", result, call);
    });
    return result;
}
// All memory of the device is gone, and what is named like it later is new.
cudaError_t cudaDeviceReset(void) {
    REAL(cudaDeviceReset);
    const cudaError_t result = real();
    observe("cudaDeviceReset", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaDeviceReset", result, call);
        expect(MODEL(cudaDeviceSynchronize)());
        for (Allocation *one : allocations())
            if (one->device == thread().device && one->kind != Kind::symbol)
                release(one, call.stack(), -1);
    });
    return result;
}

} // extern "C"

#if CUDART_VERSION >= 13000
PLACES(cudaMemAdvise, (const void *low, size_t size, cudaMemoryAdvise advice, cudaMemLocation to), low, size, advice,
       to)
#else
PLACES(cudaMemAdvise, (const void *low, size_t size, cudaMemoryAdvise advice, int to), low, size, advice, to)
#endif
