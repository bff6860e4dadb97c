// Allocating, freeing and asking about memory; copies between devices.
#include "streams.h"

#include <cstring>

using namespace dryrun;

namespace {

constexpr std::size_t kTotal = std::size_t{80} << 30; // what the device says it has
constexpr std::size_t kPitch = 512;

cudaError_t make(const Call &call, Kind kind, std::size_t size, void **pointer, bool watched = true) {
    if (pointer == nullptr)
        return call(cudaErrorInvalidValue);
    if (size == 0) {
        *pointer = nullptr;
        return cudaSuccess;
    }
    const bool device = kind != Kind::pinned;
    const Allocation *made =
        device && (size > kTotal || allocated() + size > kTotal) ? nullptr : allocate(kind, size, call, -1, watched);
    if (made == nullptr)
        return call(cudaErrorMemoryAllocation);
    *pointer = reinterpret_cast<void *>(made->base);
    return cudaSuccess;
}

// Waits for the whole device, as the driver does.
cudaError_t unmake(const Call &call, const void *pointer, bool host) {
    if (pointer == nullptr)
        return cudaSuccess;
    Allocation *allocation = allocation_at(pointer);
    const bool fits = allocation != nullptr && allocation->base == reinterpret_cast<std::uintptr_t>(pointer) &&
                      (allocation->kind == Kind::pinned) == host && allocation->kind != Kind::symbol &&
                      allocation->kind != Kind::registered;
    if (!fits)
        return call(cudaErrorInvalidValue);
    release(allocation, call.stack(), -1);
    return cudaSuccess;
}

cudaError_t make_array(const Call &call, cudaArray_t *array, const cudaChannelFormatDesc *format, cudaExtent extent,
                       unsigned flags) {
    const auto bits = static_cast<std::size_t>(format->x + format->y + format->z + format->w);
    const std::size_t element = bits / 8;
    const std::size_t rows = (extent.height == 0 ? 1 : extent.height) * (extent.depth == 0 ? 1 : extent.depth);
    if (element == 0 || extent.width == 0)
        return call(cudaErrorInvalidValue);
    Allocation *memory = allocate(Kind::array, element * extent.width * rows, call);
    if (memory == nullptr)
        return call(cudaErrorMemoryAllocation);
    *array = reinterpret_cast<cudaArray_t>(
        new Array{memory, element, extent.width, extent.height, extent.depth, *format, flags});
    return cudaSuccess;
}

// The line that says which memory a texture or surface reads or writes; the handle is what the kernel gets.
unsigned long long handle_of(const cudaResourceDesc &resource, bool writes) {
    static unsigned long long next = 0x7e00000000000001ULL; // no address, no small number
    std::uintptr_t base = 0;
    if (resource.resType == cudaResourceTypeArray)
        base = array_of(resource.res.array.array)->memory->base;
    else if (resource.resType == cudaResourceTypeLinear)
        base = reinterpret_cast<std::uintptr_t>(resource.res.linear.devPtr);
    else if (resource.resType == cudaResourceTypePitch2D)
        base = reinterpret_cast<std::uintptr_t>(resource.res.pitch2D.devPtr);
    else
        refuse("cudaCreateTextureObject for mipmapped arrays");
    record("O " + std::to_string(next) + " " + hexadecimal(base) + (writes ? " rw" : " r"));
    return next++;
}

// Advice that the driver takes without looking at the place that comes with it.
bool is_anywhere(cudaMemoryAdvise advice) {
    return advice == cudaMemAdviseSetReadMostly || advice == cudaMemAdviseUnsetReadMostly ||
           advice == cudaMemAdviseUnsetPreferredLocation;
}

bool is_place(int device) {
    return device == cudaCpuDeviceId || (device >= 0 && device < device_count());
}
#if CUDART_VERSION >= 13000
bool is_place(const cudaMemLocation &to) {
    if (to.type == cudaMemLocationTypeDevice)
        return to.id >= 0 && is_place(to.id);
    return to.type == cudaMemLocationTypeHost || to.type == cudaMemLocationTypeHostNuma ||
           to.type == cudaMemLocationTypeHostNumaCurrent;
}
bool is_device(const cudaMemLocation &to) {
    return to.type == cudaMemLocationTypeDevice;
}
#else
bool is_device(int device) {
    return device >= 0;
}
#endif

// What the driver says of a prefetch or of advice: the memory must be managed, be there, and hold the whole range. One
// of memory that is not there (any more) is in the record. `known` tells that there is such a place.
cudaError_t placed(const char *name, const void *low, std::size_t size, bool known, const Call &call) {
    const auto begin = reinterpret_cast<std::uintptr_t>(low);
    const Allocation *allocation = allocation_at(begin);
    if (allocation == nullptr)
        refused(name, begin, 0, call);
    const bool managed =
        allocation != nullptr && (allocation->kind == Kind::managed || allocation->kind == Kind::symbol);
    constexpr std::uintptr_t page = 4096; // the driver rounds the end up to whole pages
    if (!managed || size == 0 || size > (allocation->end() + page - 1) / page * page - begin)
        return cudaErrorInvalidValue;
    return known ? cudaSuccess : cudaErrorInvalidDevice;
}

} // namespace

cudaError_t dryrun::prefetch(const void *low, std::size_t size, const Place &to, const Stream *stream) {
    const Call call;
    if (stream == nullptr || stream->capture != nullptr)
        return call(stream == nullptr ? cudaErrorInvalidResourceHandle : cudaErrorStreamCaptureUnsupported);
    const cudaError_t refusal = placed("cudaMemPrefetchAsync", low, size, is_place(to), call);
    if (refusal == cudaSuccess && is_device(to))
        record("N " + std::to_string(stream->id) + " " + std::to_string(call.stack()) + " " +
               hexadecimal(reinterpret_cast<std::uintptr_t>(low)) + " " + std::to_string(size));
    return call(refusal);
}

extern "C" {

cudaError_t cudaMalloc(void **pointer, size_t size) {
    const Call call;
    return make(call, Kind::device, size, pointer);
}
cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned) {
    const Call call;
    return make(call, Kind::managed, size, pointer);
}
cudaError_t cudaMallocHost(void **pointer, size_t size) {
    const Call call;
    return make(call, Kind::pinned, size, pointer);
}
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
    const Call call;
    const cudaError_t result = make(call, Kind::pinned, size, pointer);
    if (result == cudaSuccess && size > 0)
        allocation_at(*pointer)->flags = flags;
    return result;
}
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    const Call call;
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    return make(call, Kind::device, *pitch * height, pointer);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr *made, cudaExtent extent) {
    const Call call;
    *made = {nullptr, (extent.width + kPitch - 1) / kPitch * kPitch, extent.width, extent.height};
    return make(call, Kind::device, made->pitch * extent.height * extent.depth, &made->ptr);
}
cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *format, size_t width, size_t height,
                            unsigned flags) {
    const Call call;
    return make_array(call, array, format, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *format, cudaExtent extent,
                              unsigned flags) {
    const Call call;
    return make_array(call, array, format, extent, flags);
}
cudaError_t cudaFree(void *pointer) {
    const Call call;
    return unmake(call, pointer, false);
}
cudaError_t cudaFreeHost(void *pointer) {
    const Call call;
    return unmake(call, pointer, true);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
    const Call call;
    if (array == nullptr)
        return cudaSuccess;
    release(array_of(array)->memory, call.stack(), -1);
    delete array_of(array);
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags) {
    const Call call;
    if (pointer == nullptr || size == 0)
        return call(cudaErrorInvalidValue);
    if (allocation_at(pointer) != nullptr)
        return call(cudaErrorHostMemoryAlreadyRegistered);
    adopt(Kind::registered, pointer, size, call.stack())->flags = flags;
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *pointer) {
    const Call call;
    Allocation *allocation = allocation_at(pointer);
    if (allocation == nullptr || allocation->kind != Kind::registered)
        return call(cudaErrorHostMemoryNotRegistered);
    release(allocation, call.stack(), -1);
    return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) {
    const Call call;
    const Allocation *allocation = allocation_at(host);
    if (allocation == nullptr || !allocation->on_host())
        return call(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}
cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
    const Call call;
    const Allocation *allocation = allocation_at(host);
    if (allocation == nullptr || !allocation->on_host())
        return call(cudaErrorInvalidValue);
    *flags = allocation->flags;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    const Call call;
    *available = kTotal - allocated();
    *total = kTotal;
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    const Call call;
    const Allocation *allocation = allocation_at(pointer);
    std::memset(attributes, 0, sizeof *attributes);
    void *same = const_cast<void *>(pointer);
    if (allocation == nullptr) {
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = -2;
        attributes->hostPointer = same;
        return cudaSuccess;
    }
    const bool managed = allocation->kind == Kind::managed;
    attributes->type = managed                 ? cudaMemoryTypeManaged
                       : allocation->on_host() ? cudaMemoryTypeHost
                                               : cudaMemoryTypeDevice;
    attributes->device = allocation->device;
    attributes->devicePointer = same;
    attributes->hostPointer = managed || allocation->on_host() ? same : nullptr;
    return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    const Call call;
    if (allocation_at(symbol) == nullptr)
        return call(cudaErrorInvalidSymbol);
    *address = const_cast<void *>(symbol);
    return cudaSuccess;
}
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
    const Call call;
    const Allocation *allocation = allocation_at(symbol);
    if (allocation == nullptr)
        return call(cudaErrorInvalidSymbol);
    *size = allocation->size;
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int, size_t size) {
    return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t size, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

// Advice about placement changes no order.
#if CUDART_VERSION >= 13000
cudaError_t cudaMemAdvise(const void *low, size_t size, cudaMemoryAdvise advice, cudaMemLocation to) {
    const Call call;
    return call(placed("cudaMemAdvise", low, size, is_anywhere(advice) || is_place(to), call));
}
#else
cudaError_t cudaMemAdvise(const void *low, size_t size, cudaMemoryAdvise advice, int device) {
    const Call call;
    return call(placed("cudaMemAdvise", low, size, is_anywhere(advice) || is_place(device), call));
}
#endif

// One pool that keeps everything: what its attributes change is not the order of anything.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int) {
    static char one;
    *pool = reinterpret_cast<cudaMemPool_t>(&one);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *) {
    return cudaDeviceGetDefaultMemPool(pool, 0);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc *, size_t) {
    return cudaSuccess;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *, const cudaResourceViewDesc *) {
    const Call call;
    *texture = handle_of(*resource, false);
    return cudaSuccess;
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t) {
    return cudaSuccess;
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *resource) {
    const Call call;
    *surface = handle_of(*resource, true);
    return cudaSuccess;
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t) {
    return cudaSuccess;
}
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *format, cudaArray_const_t array) {
    *format = array_of(array)->format;
    return cudaSuccess;
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *format, cudaExtent *extent, unsigned *flags, cudaArray_t array) {
    const Array &one = *array_of(array);
    if (format != nullptr)
        *format = one.format;
    if (extent != nullptr)
        *extent = {one.width, one.height, one.depth};
    if (flags != nullptr)
        *flags = one.flags;
    return cudaSuccess;
}

} // extern "C"
