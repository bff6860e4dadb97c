// The functions that work on the default stream when no other is named, in front of the real ones.
//
// Compiled twice, like ../dryrun/stream_api.cpp, for the two meanings of the default stream.
#include "stopwatch.h"

using namespace forward;

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr bool kPerThread = true;
#define NVCC_LAUNCH __cudaLaunchKernel_ptsz
#else
constexpr bool kPerThread = false;
#define NVCC_LAUNCH __cudaLaunchKernel
#endif

MODELED(cudaLaunchKernel);

namespace {

// Copies and memsets: one that the real runtime refused may have been given memory that is freed.
template <typename Real, typename Model, typename... A>
cudaError_t moves(const char *name, Real real, Model model, const void *to, const void *from, A... arguments) {
    Stopwatch watch(stream_among(arguments...), kPerThread);
    const cudaError_t result = real(arguments...);
    watch.stop(result);
    observe(name, [&](const Call &call) {
        if (result == cudaSuccess) {
            expect(model(in(arguments)...));
            return watch.write(nullptr);
        }
        if (result == cudaErrorInvalidValue)
            refused(name, reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from), call);
        failed(name, result, call);
    });
    return result;
}

struct Launch {
    dim3 grid, block;
    void **arguments;
    std::size_t shared;
    cudaStream_t stream;
};
template <typename Kernel, typename Real>
cudaError_t launches(const char *name, Kernel kernel, const Launch &how, Real real) {
    Stopwatch watch(how.stream, kPerThread);
    const cudaError_t result = real();
    watch.stop(result);
    observe(name, [&](const Call &) {
        const void *stub = stub_of(kernel);
        if (result == cudaSuccess) {
            expect(MODEL(cudaLaunchKernel)(stub, how.grid, how.block, how.arguments, how.shared, in(how.stream)));
            watch.write(stub);
        } else {
            failed(name, result, launch_stack(stub));
        }
    });
    return result;
}

bool captured(cudaStream_t stream) {
    const Stream *ours = stream_of(in(stream), kPerThread);
    return ours != nullptr && ours->capture != nullptr;
}

// Memory that is allocated in stream order, but for that of a graph: its nodes are not kept.
void pooled(const char *name, void *pointer, std::size_t size, cudaStream_t stream, const Call &call) {
    const Stream *ours = stream_of(in(stream), kPerThread);
    if (ours == nullptr || pointer == nullptr)
        throw Lost{};
    if (ours->capture != nullptr) {
        graphs_are_unclear();
        missing(name);
    }
    adopt(Kind::device, pointer, size, call.stack(), "", ours->capture != nullptr ? -1 : ours->id)->pooled = true;
}

void vague_launch(Stream *stream, const Call &call) {
    submit(stream, {"K", "graph 1,1,1 1,1,1 0 ?", nullptr, call.stack()}, cudaGraphNodeTypeKernel);
}

} // namespace

#define MOVES(name, parameters, to, from, ...)                                                                         \
    MODELED(name);                                                                                                     \
    extern "C" cudaError_t name parameters {                                                                           \
        REAL(name);                                                                                                    \
        return moves(#name, real, MODEL(name), to, from, __VA_ARGS__);                                                 \
    }

// clang-format off
MOVES(cudaMemcpy, (void *to, const void *from, size_t size, cudaMemcpyKind kind), to, from, to, from, size, kind)
MOVES(cudaMemcpyAsync, (void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream), to, from,
      to, from, size, kind, stream)
MOVES(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
      cudaMemcpyKind kind), to, from, to, to_pitch, from, from_pitch, width, height, kind)
MOVES(cudaMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
      cudaMemcpyKind kind, cudaStream_t stream), to, from, to, to_pitch, from, from_pitch, width, height, kind, stream)
MOVES(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t size, size_t offset, cudaMemcpyKind kind),
      nullptr, from, symbol, from, size, offset, kind)
MOVES(cudaMemcpyToSymbolAsync, (const void *symbol, const void *from, size_t size, size_t offset, cudaMemcpyKind kind,
      cudaStream_t stream), nullptr, from, symbol, from, size, offset, kind, stream)
MOVES(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind),
      to, nullptr, to, symbol, size, offset, kind)
MOVES(cudaMemcpyFromSymbolAsync, (void *to, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind,
      cudaStream_t stream), to, nullptr, to, symbol, size, offset, kind, stream)
MOVES(cudaMemcpyToArray, (cudaArray_t to, size_t x, size_t y, const void *from, size_t size, cudaMemcpyKind kind),
      nullptr, from, to, x, y, from, size, kind)
MOVES(cudaMemcpyFromArray, (void *to, cudaArray_const_t from, size_t x, size_t y, size_t size, cudaMemcpyKind kind),
      to, nullptr, to, from, x, y, size, kind)
MOVES(cudaMemcpyToArrayAsync, (cudaArray_t to, size_t x, size_t y, const void *from, size_t size, cudaMemcpyKind kind,
      cudaStream_t stream), nullptr, from, to, x, y, from, size, kind, stream)
MOVES(cudaMemcpyFromArrayAsync, (void *to, cudaArray_const_t from, size_t x, size_t y, size_t size,
      cudaMemcpyKind kind, cudaStream_t stream), to, nullptr, to, from, x, y, size, kind, stream)
MOVES(cudaMemcpy2DToArray, (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
      size_t height, cudaMemcpyKind kind), nullptr, from, to, x, y, from, pitch, width, height, kind)
MOVES(cudaMemcpy2DToArrayAsync, (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
      size_t height, cudaMemcpyKind kind, cudaStream_t stream),
      nullptr, from, to, x, y, from, pitch, width, height, kind, stream)
MOVES(cudaMemcpy2DFromArray, (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
      size_t height, cudaMemcpyKind kind), to, nullptr, to, pitch, from, x, y, width, height, kind)
MOVES(cudaMemcpy2DFromArrayAsync, (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
      size_t height, cudaMemcpyKind kind, cudaStream_t stream),
      to, nullptr, to, pitch, from, x, y, width, height, kind, stream)
MOVES(cudaMemset, (void *to, int value, size_t size), to, nullptr, to, value, size)
MOVES(cudaMemsetAsync, (void *to, int value, size_t size, cudaStream_t stream), to, nullptr, to, value, size, stream)
MOVES(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height), to, nullptr,
      to, pitch, value, width, height)
MOVES(cudaMemset2DAsync, (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream), to,
      nullptr, to, pitch, value, width, height, stream)
MOVES(cudaMemset3D, (cudaPitchedPtr to, int value, cudaExtent extent), to.ptr, nullptr, to, value, extent)
MOVES(cudaMemset3DAsync, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream), to.ptr, nullptr,
      to, value, extent, stream)
#if CUDART_VERSION >= 13000
PLACES(cudaMemPrefetchAsync, (const void *low, size_t size, cudaMemLocation to, unsigned flags, cudaStream_t stream),
       low, size, to, flags, stream)
#else
PLACES(cudaMemPrefetchAsync, (const void *low, size_t size, int to, cudaStream_t stream), low, size, to, stream)
#endif
BOTH(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data), stream, function, data)
BOTH(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags),
     stream, function, data, flags)
BOTH(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, stream)
BOTH(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags), event, stream, flags)
BOTH(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), stream, event, flags)
BOTH(cudaStreamSynchronize, (cudaStream_t stream), stream)
BOTH(cudaStreamQuery, (cudaStream_t stream), stream)
BOTH(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), stream, mode)
// clang-format on

MODELED(cudaMemcpy3D);
MODELED(cudaMemcpy3DAsync);
MODELED(cudaStreamEndCapture);
MODELED(cudaStreamBeginCapture);
MODELED(cudaGraphLaunch);
MODELED(cudaFreeAsync);

extern "C" {

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p) {
    REAL(cudaMemcpy3D);
    return moves(
        "cudaMemcpy3D", [&] { return real(p); },
        [&] {
            const cudaMemcpy3DParms ours = in(*p);
            return MODEL(cudaMemcpy3D)(&ours);
        },
        p->dstPtr.ptr, p->srcPtr.ptr);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream) {
    REAL(cudaMemcpy3DAsync);
    return moves(
        "cudaMemcpy3DAsync", [&](cudaStream_t) { return real(p, stream); },
        [&](cudaStream_t known) {
            const cudaMemcpy3DParms ours = in(*p);
            return MODEL(cudaMemcpy3DAsync)(&ours, known);
        },
        p->dstPtr.ptr, p->srcPtr.ptr, stream);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream) {
    REAL(cudaLaunchKernel);
    return launches("cudaLaunchKernel", function, {grid, block, arguments, shared, stream},
                    [&] { return real(function, grid, block, arguments, shared, stream); });
}
#if CUDART_VERSION >= 12010
cudaError_t NVCC_LAUNCH(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                        cudaStream_t stream) {
    REAL(NVCC_LAUNCH);
    return launches("cudaLaunchKernel", kernel, {grid, block, arguments, shared, stream},
                    [&] { return real(kernel, grid, block, arguments, shared, stream); });
}
#endif
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream) {
    REAL(cudaLaunchCooperativeKernel);
    return launches("cudaLaunchCooperativeKernel", function, {grid, block, arguments, shared, stream},
                    [&] { return real(function, grid, block, arguments, shared, stream); });
}
// One that may begin before what is in front of it has ended is recorded as if it could not.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
    REAL(cudaLaunchKernelExC);
    const cudaLaunchConfig_t &how = *config;
    const cudaError_t result = launches("cudaLaunchKernelExC", function,
                                        {how.gridDim, how.blockDim, arguments, how.dynamicSmemBytes, how.stream},
                                        [&] { return real(config, function, arguments); });
    for (unsigned i = 0; result == cudaSuccess && i < how.numAttrs; ++i)
        if (how.attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization ||
            how.attrs[i].id == cudaLaunchAttributeProgrammaticEvent)
            observe("cudaLaunchKernelExC",
                    [&](const Call &) { missing("cudaLaunchKernelExC with programmatic dependent launch"); });
    return result;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    REAL(cudaStreamEndCapture);
    const cudaError_t result = real(stream, graph);
    observe("cudaStreamEndCapture", [&](const Call &call) {
        cudaGraph_t ours = nullptr;
        if (result != cudaErrorStreamCaptureWrongThread && captured(stream)) // otherwise it has ended, well or not
            expect(MODEL(cudaStreamEndCapture)(in(stream), &ours));
        if (result != cudaSuccess)
            return failed("cudaStreamEndCapture", result, call);
        if (ours == nullptr)
            throw Lost{};
        bind(*graph, ours);
    });
    return result;
}
#if CUDART_VERSION >= 12030
// Its nodes come after others that the graph has.
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after,
                                          const cudaGraphEdgeData *edges, size_t count, cudaStreamCaptureMode mode) {
    REAL(cudaStreamBeginCaptureToGraph);
    const cudaError_t result = real(stream, graph, after, edges, count, mode);
    observe("cudaStreamBeginCaptureToGraph", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaStreamBeginCaptureToGraph", result, call);
        graphs_are_unclear();
        expect(MODEL(cudaStreamBeginCapture)(in(stream), mode));
        missing("cudaStreamBeginCaptureToGraph");
    });
    return result;
}
#endif
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    REAL(cudaGraphLaunch);
    const cudaError_t result = real(graph, stream);
    observe("cudaGraphLaunch", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaGraphLaunch", result, call);
        const auto found = bound<cudaGraphExec_t>().find(graph);
        if (graphs_unclear() || captured(stream) || found == bound<cudaGraphExec_t>().end())
            vague_launch(stream_of(in(stream), kPerThread), call);
        else
            expect(MODEL(cudaGraphLaunch)(found->second, in(stream)));
    });
    return result;
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
    REAL(cudaMallocAsync);
    const cudaError_t result = real(pointer, size, stream);
    observe("cudaMallocAsync", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaMallocAsync", result, call);
        pooled("cudaMallocAsync", *pointer, size, stream, call);
    });
    return result;
}
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
    REAL(cudaMallocFromPoolAsync);
    const cudaError_t result = real(pointer, size, pool, stream);
    observe("cudaMallocFromPoolAsync", [&](const Call &call) {
        if (result != cudaSuccess)
            return failed("cudaMallocFromPoolAsync", result, call);
        pooled("cudaMallocFromPoolAsync", *pointer, size, stream, call);
    });
    return result;
}
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    REAL(cudaFreeAsync);
    Freeing freeing(pointer, "cudaFreeAsync", [&] { return stream_of(in(stream), kPerThread)->id; });
    const cudaError_t result = real(pointer, stream);
    freeing.ends(result, [&] {
        if (captured(stream)) {
            graphs_are_unclear();
            throw Lost{};
        }
        return MODEL(cudaFreeAsync)(pointer, in(stream));
    });
    return result;
}

} // extern "C"
