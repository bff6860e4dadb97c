// Copies and fills, which work on the default stream when no other is named. This file is compiled twice.
#include "default_stream.h"

using namespace dryrun;

namespace {

cudaError_t copies(const char *name, const Copy &what, cudaMemcpyKind kind, bool async, cudaStream_t handle) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    if (what.to.extent() == 0 || what.slices == 0)
        return cudaSuccess;
    if (stream->capture != nullptr && !async)
        return call(cudaErrorStreamCaptureImplicit);
    Operation made;
    if (!copy(name, what, kind, async, call, made))
        return call(cudaErrorInvalidValue);
    submit(stream, made, cudaGraphNodeTypeMemcpy);
    return cudaSuccess;
}
Copy plain(void *to, const void *from, std::size_t size) {
    return {{address(to), size}, {address(from), size}};
}
Copy rows(void *to, std::size_t to_pitch, const void *from, std::size_t from_pitch, std::size_t width,
          std::size_t height) {
    return {{address(to), width, to_pitch, height}, {address(from), width, from_pitch, height}};
}
char *inside(cudaArray_const_t array, std::size_t x, std::size_t y) {
    const Array *one = array_of(array);
    return reinterpret_cast<char *>(one->memory->base + y * one->width * one->element + x);
}
std::size_t pitch(cudaArray_const_t array) {
    return array_of(array)->width * array_of(array)->element;
}
const char *part(const void *symbol, std::size_t offset) {
    return static_cast<const char *>(symbol) + offset;
}

cudaError_t fills(const char *name, Range what, std::size_t slices, std::size_t slice, int value, bool async,
                  cudaStream_t handle) {
    const Call call;
    Stream *stream = own(handle);
    if (stream == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    if (what.extent() == 0 || slices == 0)
        return cudaSuccess;
    Operation made;
    if (!fill(name, what, slices, slice, static_cast<unsigned>(value), 1, async, call, made))
        return call(cudaErrorInvalidValue);
    submit(stream, made, cudaGraphNodeTypeMemset);
    return cudaSuccess;
}

} // namespace

extern "C" {

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
    return copies("cudaMemcpy", plain(to, from, size), kind, false, nullptr);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
    return copies("cudaMemcpyAsync", plain(to, from, size), kind, true, stream);
}
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
    return copies("cudaMemcpy2D", rows(to, to_pitch, from, from_pitch, width, height), kind, false, nullptr);
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copies("cudaMemcpy2DAsync", rows(to, to_pitch, from, from_pitch, width, height), kind, true, stream);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p) {
    return copies("cudaMemcpy3D", rows_of(*p), p->kind, false, nullptr);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream) {
    return copies("cudaMemcpy3DAsync", rows_of(*p), p->kind, true, stream);
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, cudaMemcpyKind kind) {
    return copies("cudaMemcpyToSymbol", plain(const_cast<char *>(part(symbol, offset)), from, size), kind, false,
                  nullptr);
}
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
    return copies("cudaMemcpyToSymbolAsync", plain(const_cast<char *>(part(symbol, offset)), from, size), kind, true,
                  stream);
}
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind) {
    return copies("cudaMemcpyFromSymbol", plain(to, part(symbol, offset), size), kind, false, nullptr);
}
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return copies("cudaMemcpyFromSymbolAsync", plain(to, part(symbol, offset), size), kind, true, stream);
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t size, cudaMemcpyKind kind) {
    return copies("cudaMemcpyToArray", plain(inside(to, x, y), from, size), kind, false, nullptr);
}
cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t size,
                                cudaMemcpyKind kind) {
    return copies("cudaMemcpyFromArray", plain(to, inside(from, x, y), size), kind, false, nullptr);
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t size,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
    return copies("cudaMemcpyToArrayAsync", plain(inside(to, x, y), from, size), kind, true, stream);
}
cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t size,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
    return copies("cudaMemcpyFromArrayAsync", plain(to, inside(from, x, y), size), kind, true, stream);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t from_pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
    return copies("cudaMemcpy2DToArray", rows(inside(to, x, y), pitch(to), from, from_pitch, width, height), kind,
                  false, nullptr);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copies("cudaMemcpy2DToArrayAsync", rows(inside(to, x, y), pitch(to), from, from_pitch, width, height), kind,
                  true, stream);
}
cudaError_t cudaMemcpy2DFromArray(void *to, size_t to_pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                  size_t height, cudaMemcpyKind kind) {
    return copies("cudaMemcpy2DFromArray", rows(to, to_pitch, inside(from, x, y), pitch(from), width, height), kind,
                  false, nullptr);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t to_pitch, cudaArray_const_t from, size_t x, size_t y,
                                       size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return copies("cudaMemcpy2DFromArrayAsync", rows(to, to_pitch, inside(from, x, y), pitch(from), width, height),
                  kind, true, stream);
}
cudaError_t cudaMemset(void *to, int value, size_t size) {
    return fills("cudaMemset", {address(to), size}, 1, 0, value, false, nullptr);
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
    return fills("cudaMemsetAsync", {address(to), size}, 1, 0, value, true, stream);
}
cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    return fills("cudaMemset2D", {address(to), width, pitch, height}, 1, 0, value, false, nullptr);
}
cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
    return fills("cudaMemset2DAsync", {address(to), width, pitch, height}, 1, 0, value, true, stream);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
    return fills("cudaMemset3D", {address(to.ptr), extent.width, to.pitch, extent.height}, extent.depth,
                 to.pitch * to.ysize, value, false, nullptr);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
    return fills("cudaMemset3DAsync", {address(to.ptr), extent.width, to.pitch, extent.height}, extent.depth,
                 to.pitch * to.ysize, value, true, stream);
}

} // extern "C"
