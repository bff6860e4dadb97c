// What a pool of the program's own does with memory, as the macros of kesco_check.h tell it.
#include "backend.h"

namespace dryrun {

void pool_hands_out(const void *pointer, std::size_t size, cudaStream_t handle, const Call &call) {
    Stream *stream = stream_of(handle, false);
    if (stream != nullptr && pointer != nullptr && size > 0)
        submit(stream,
               {"B", hexadecimal(reinterpret_cast<std::uintptr_t>(pointer)) + " " + std::to_string(size), nullptr,
                call.stack()},
               cudaGraphNodeTypeEmpty);
}

void pool_takes_back(const void *pointer, cudaStream_t handle, const Call &call) {
    Stream *stream = stream_of(handle, false);
    if (stream != nullptr && pointer != nullptr)
        submit(stream, {"Y", hexadecimal(reinterpret_cast<std::uintptr_t>(pointer)), nullptr, call.stack()},
               cudaGraphNodeTypeEmpty);
}

} // namespace dryrun
