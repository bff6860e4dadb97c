// The other functions that work on the default stream when no other is named: launches, streams, events, captures.
// This file is compiled twice.
#include "default_stream.h"

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define NVCC_LAUNCH __cudaLaunchKernel_ptsz
#else
#define NVCC_LAUNCH __cudaLaunchKernel
#endif

using namespace dryrun;

namespace {

cudaError_t launches(const void *function, dim3 grid, dim3 block, void **arguments, std::size_t shared,
                     cudaStream_t handle) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    cudaError_t refused = cudaSuccess;
    Operation made = kernel_launch(function, grid, block, arguments, shared, launch_stack(function), refused);
    if (refused != cudaSuccess)
        return call(refused);
    submit(stream, std::move(made), cudaGraphNodeTypeKernel);
    return cudaSuccess;
}

} // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
    return launches(function, grid, block, arguments, shared, stream);
}
#if CUDART_VERSION >= 12010
cudaError_t NVCC_LAUNCH(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                        cudaStream_t stream) {
    return launches(reinterpret_cast<const void *>(kernel), grid, block, arguments, shared, stream);
}
#endif
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream) {
    return launches(function, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
    for (unsigned i = 0; i < config->numAttrs; ++i)
        if (config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization ||
            config->attrs[i].id == cudaLaunchAttributeProgrammaticEvent)
            refuse("cudaLaunchKernelExC with programmatic dependent launch");
    return launches(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    submit(stream, host_function(function, data, call.stack()), cudaGraphNodeTypeHost);
    return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t function, void *data, unsigned) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    if (stream->capture != nullptr)
        return call(cudaErrorStreamCaptureUnsupported);
    submit(stream,
           {"L", "", [=](std::string &) { backend::host_runs([=] { function(handle, cudaSuccess, data); }); },
            call.stack()},
           cudaGraphNodeTypeHost);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t where, unsigned) {
    const Call call;
    Stream *stream = own(where);
    Event *event = event_of(handle);
    if (stream == nullptr || event == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    record_event(event, stream, call.stack());
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t where) {
    const Call call;
    return cudaEventRecordWithFlags(handle, where, 0);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t what, unsigned) {
    const Call call;
    Stream *stream = own(handle);
    Event *event = event_of(what);
    if (stream == nullptr || event == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    wait_event(stream, event, call.stack());
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    if (stream->capture != nullptr)
        return call(cudaErrorStreamCaptureUnsupported);
    record("H s " + std::to_string(stream->id) + " " + std::to_string(call.stack()));
    return cudaSuccess;
}
// Everything has finished as soon as somebody asks, and the answer is as good as a synchronize.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
    const Call call;
    return cudaStreamSynchronize(handle);
}
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags) {
    const Call call;
    const Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    *flags = stream->flags;
    return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
    const Call call;
    const Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    *priority = stream->priority;
    return cudaSuccess;
}
cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id) {
    const Call call;
    const Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    *id = static_cast<unsigned long long>(stream->id) + 1;
    return cudaSuccess;
}
// What attributes change is not the order of anything.
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaLaunchAttributeID, const cudaLaunchAttributeValue *) {
    return cudaSuccess;
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t, cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void *, size_t, unsigned) {
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr || stream->kind == 'l' || stream->capture != nullptr)
        return call(cudaErrorStreamCaptureUnsupported);
    stream->capture = new Graph;
    stream->origin = true;
    stream->last.clear();
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr || stream->capture == nullptr || !stream->origin)
        return call(cudaErrorIllegalState);
    Graph *captured = stream->capture;
    stream->origin = false;
    for (Stream *one : streams())
        if (one->capture == captured) {
            one->capture = nullptr;
            one->last.clear();
        }
    *graph = reinterpret_cast<cudaGraph_t>(captured);
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
    const Call call;
    const Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    *status = stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **last, const cudaGraphEdgeData **edges,
                                     size_t *count) {
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t handle, cudaStreamCaptureStatus *status, unsigned long long *id,
                                        cudaGraph_t *graph, const cudaGraphNode_t **last, size_t *count) {
    const void *edges = nullptr;
#endif
    const Call call;
    const Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    if (edges != nullptr)
        refuse("cudaStreamGetCaptureInfo with edges");
    *status = stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id != nullptr)
        *id = static_cast<unsigned long long>(stream->id) + 1;
    if (graph != nullptr)
        *graph = reinterpret_cast<cudaGraph_t>(stream->capture);
    if (last != nullptr)
        *last = reinterpret_cast<const cudaGraphNode_t *>(stream->last.data());
    if (count != nullptr)
        *count = stream->last.size();
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr || graph == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    return call(launch_graph(*reinterpret_cast<Graph *>(graph), stream, call.stack()));
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void *low, size_t size, cudaMemLocation to, unsigned, cudaStream_t handle) {
#else
cudaError_t cudaMemPrefetchAsync(const void *low, size_t size, int to, cudaStream_t handle) {
#endif
    return prefetch(low, size, to, own(handle));
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t handle) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr || stream->capture != nullptr)
        return call(stream == nullptr ? cudaErrorInvalidResourceHandle : cudaErrorStreamCaptureUnsupported);
    const Allocation *made = allocate(Kind::device, size, call, stream->id);
    if (made == nullptr)
        return call(cudaErrorMemoryAllocation);
    *pointer = reinterpret_cast<void *>(made->base);
    return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t, cudaStream_t stream) {
    const Call call;
    return cudaMallocAsync(pointer, size, stream);
}
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle) {
    const Call call;
    Stream *stream = own(handle);
    Allocation *allocation = allocation_at(pointer);
    if (stream == nullptr || stream->capture != nullptr)
        return call(stream == nullptr ? cudaErrorInvalidResourceHandle : cudaErrorStreamCaptureUnsupported);
    if (allocation == nullptr || allocation->base != address(pointer))
        return call(cudaErrorInvalidValue);
    release(allocation, call.stack(), stream->id);
    return cudaSuccess;
}

// The driver's functions that ask and change nothing; all others are not there, as in an old driver.
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **entry, unsigned long long,
                                    cudaDriverEntryPointQueryResult *status) {
    const Call call;
    *entry = driver_entry(symbol);
    if (status != nullptr)
        *status = *entry != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **entry, unsigned, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *status) {
    const Call call;
    return cudaGetDriverEntryPoint(symbol, entry, flags, status);
}
#endif

} // extern "C"
