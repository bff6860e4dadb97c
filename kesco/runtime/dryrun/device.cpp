// Devices, versions, errors, and the driver's functions that can be asked for by name.
#include "streams.h"

#include <cstring>
#include <map>

using namespace dryrun;

namespace {

constexpr int kProcessors = 132;

bool known(int device) {
    return device >= 0 && device < device_count();
}

// Attributes of a large device of today; the rest is 0.
const std::map<int, int> &attributes() {
    static const std::map<int, int> values = {
        {cudaDevAttrMaxThreadsPerBlock, 1024},
        {cudaDevAttrMaxBlockDimX, 1024},
        {cudaDevAttrMaxBlockDimY, 1024},
        {cudaDevAttrMaxBlockDimZ, 64},
        {cudaDevAttrMaxGridDimX, 2147483647},
        {cudaDevAttrMaxGridDimY, 65535},
        {cudaDevAttrMaxGridDimZ, 65535},
        {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, 232448},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472},
        {cudaDevAttrTotalConstantMemory, 65536},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrMaxRegistersPerBlock, 65536},
        {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
        {cudaDevAttrClockRate, 1980000},
        {cudaDevAttrMemoryClockRate, 2619000},
        {cudaDevAttrGlobalMemoryBusWidth, 5120},
        {cudaDevAttrL2CacheSize, 52428800},
        {cudaDevAttrTextureAlignment, 512},
        {cudaDevAttrMultiProcessorCount, kProcessors},
        {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
        {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
        {cudaDevAttrComputeCapabilityMajor, architecture() / 10},
        {cudaDevAttrComputeCapabilityMinor, architecture() % 10},
        {cudaDevAttrAsyncEngineCount, 3},
        {cudaDevAttrCanMapHostMemory, 1},
        {cudaDevAttrConcurrentKernels, 1},
        {cudaDevAttrUnifiedAddressing, 1},
        {cudaDevAttrStreamPrioritiesSupported, 1},
        {cudaDevAttrManagedMemory, 1},
        {cudaDevAttrConcurrentManagedAccess, 1},
        {cudaDevAttrCooperativeLaunch, 1},
        {cudaDevAttrMemoryPoolsSupported, 1},
        {cudaDevAttrHostRegisterSupported, 1},
        {cudaDevAttrComputePreemptionSupported, 1},
        {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    };
    return values;
}

void describe(cudaDeviceProp &p) {
    std::memset(&p, 0, sizeof p);
    std::strcpy(p.name, "kesco dry run");
    p.totalGlobalMem = std::size_t{80} << 30;
    p.sharedMemPerBlock = 49152;
    p.sharedMemPerBlockOptin = 232448;
    p.sharedMemPerMultiprocessor = 233472;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536;
    p.warpSize = 32;
    p.memPitch = 2147483647;
    p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 2147483647;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.totalConstMem = 65536;
    p.major = architecture() / 10;
    p.minor = architecture() % 10;
    p.textureAlignment = 512;
    p.texturePitchAlignment = 32;
    p.multiProcessorCount = kProcessors;
    p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
    p.managedMemory = p.concurrentManagedAccess = p.cooperativeLaunch = p.memoryPoolsSupported = 1;
    p.hostRegisterSupported = p.computePreemptionSupported = p.canUseHostPointerForRegisteredMem = 1;
    p.asyncEngineCount = 3;
    p.memoryBusWidth = 5120;
    p.l2CacheSize = 52428800;
    p.maxThreadsPerMultiProcessor = 2048;
    p.maxBlocksPerMultiProcessor = 32;
    p.maxTexture1D = p.maxTexture2D[0] = 131072;
    p.maxTexture2D[1] = 65536;
#if CUDART_VERSION < 13000
    p.clockRate = 1980000;
    p.memoryClockRate = 2619000;
#endif
}

struct Name {
    cudaError_t error;
    const char *name, *text;
};
constexpr Name kNames[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration", "__global__ function call is not configured"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a "
     "capturing stream"},
};
const Name &named(cudaError_t error) {
    static constexpr Name other = {cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};
    for (const Name &one : kNames)
        if (one.error == error)
            return one;
    return other;
}

// Of the driver: CUresult is an int, CUdeviceptr an unsigned long long, CUcontext a pointer.
int context_id(void *, unsigned long long *id) {
    *id = static_cast<unsigned long long>(thread().device) + 1;
    return 0;
}
int address_range(unsigned long long *base, std::size_t *size, unsigned long long pointer) {
    const Call call;
    const Allocation *allocation = allocation_at(static_cast<std::uintptr_t>(pointer));
    if (allocation == nullptr)
        return 1; // CUDA_ERROR_INVALID_VALUE
    if (base != nullptr)
        *base = allocation->base;
    if (size != nullptr)
        *size = allocation->size;
    return 0;
}

int pointer_attribute(void *data, int attribute, unsigned long long pointer) {
    const Call call;
    constexpr int kBufferId = 7; // CU_POINTER_ATTRIBUTE_BUFFER_ID
    const Allocation *allocation = allocation_at(static_cast<std::uintptr_t>(pointer));
    if (allocation == nullptr || attribute != kBufferId)
        return 1;
    *static_cast<unsigned long long *>(data) = allocation->id + 1;
    return 0;
}

} // namespace

void *dryrun::driver_entry(const char *symbol) {
    const std::string name(symbol);
    if (name == "cuCtxGetId")
        return reinterpret_cast<void *>(context_id);
    if (name == "cuMemGetAddressRange")
        return reinterpret_cast<void *>(address_range);
    if (name == "cuPointerGetAttribute")
        return reinterpret_cast<void *>(pointer_attribute);
    return nullptr;
}

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
    *count = device_count();
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    const Call call;
    if (!known(device))
        return call(cudaErrorInvalidDevice);
    thread().device = device;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
    *device = thread().device;
    return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned) {
    return cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    *flags = 0;
    return cudaSuccess;
}
cudaError_t cudaSetValidDevices(int *, int) {
    return cudaSuccess;
}
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    const Call call;
    return call(known(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    const Call call;
    if (!known(device))
        return call(cudaErrorInvalidDevice);
    describe(*properties);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    const Call call;
    if (!known(device))
        return call(cudaErrorInvalidDevice);
    const auto found = attributes().find(attribute);
    *value = found == attributes().end() ? 0 : found->second;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device) {
    std::snprintf(id, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least != nullptr)
        *least = 0;
    if (greatest != nullptr)
        *greatest = -5;
    return cudaSuccess;
}
cudaError_t cudaDeviceReset(void) {
    return cudaDeviceSynchronize();
}
cudaError_t cudaThreadExit(void) {
    return cudaDeviceSynchronize();
}
cudaError_t cudaThreadSynchronize(void) {
    return cudaDeviceSynchronize();
}
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {
    return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    *value = limit == cudaLimitStackSize ? 1024 : limit == cudaLimitMallocHeapSize ? 8U << 20 : 1U << 20;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return cudaSuccess;
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache(void) {
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    const Call call;
    *can = device != peer && known(device) && known(peer) ? 1 : 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
    const Call call;
    return call(known(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceDisablePeerAccess(int) {
    return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr, int, int) {
    *value = 0;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaProfilerStart(void) {
    return cudaSuccess;
}
cudaError_t cudaProfilerStop(void) {
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    const cudaError_t error = thread().error;
    thread().error = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError(void) {
    return thread().error;
}
const char *cudaGetErrorName(cudaError_t error) {
    return named(error).name;
}
const char *cudaGetErrorString(cudaError_t error) {
    return named(error).text;
}

} // extern "C"
