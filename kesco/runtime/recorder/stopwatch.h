// How long one operation takes on the device, for `kesco profile`: a line of the record behind the operation's own.
//
//     D nanoseconds registers static_shared local queued
//
// nanoseconds is -1 where it could not be measured, and so are the facts of what is no kernel; queued is 1 where the
// operation was in the stream's queue before the one in front of it had ended. One line for the GPU, before the first:
//
//     G sms threads blocks registers shared driver runtime name
//
// (of one multiprocessor, but for the first number). Only with CUDA_RECORDER_TIMES in the environment.
#pragma once

#include "forward.h"

#include <type_traits>

namespace forward {

// Put around the real call. It is written by `write`, among the books of that call.
class Stopwatch {
  public:
    Stopwatch(cudaStream_t stream, bool per_thread);
    // The call has been made; waits until it is done.
    void stop(cudaError_t result);
    void write(const void *stub) const;

  private:
    cudaStream_t stream_ = nullptr;
    void *watch_ = nullptr; // null where nothing is measured
    bool queued_ = false, wanted_ = false;
    long long nanoseconds_ = -1;
};

// The stream among a call's arguments; the default stream where there is none.
inline cudaStream_t stream_among() {
    return nullptr;
}
template <typename First, typename... Rest> cudaStream_t stream_among(First first, Rest... rest) {
    if constexpr (std::is_same_v<First, cudaStream_t>)
        return first;
    else
        return stream_among(rest...);
}

} // namespace forward
