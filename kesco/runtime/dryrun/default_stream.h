// The default stream in files that are compiled twice: as they are, and with CUDA_API_PER_THREAD_DEFAULT_STREAM, where
// the header gives each function the name of its per-thread variant and the default stream is the calling thread's own.
#pragma once

#include "backend.h"

namespace {

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr bool kPerThread = true;
#else
constexpr bool kPerThread = false;
#endif

inline dryrun::Stream *own(cudaStream_t handle) {
    return dryrun::stream_of(handle, kPerThread);
}
inline std::uintptr_t address(const void *pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

} // namespace
