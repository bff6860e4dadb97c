// Calls of CUDA's libraries, as far as kesco/frontend/resources/library_api.toml knows them: they compute nothing, and
// what they touch is in the record. The functions themselves are made of that table when this library is built.
#include "backend.h"

#include <cstring>
#include <map>

namespace dryrun {
namespace {

std::map<std::uintptr_t, cudaStream_t> &streams_of_handles() {
    static auto &one = *new std::map<std::uintptr_t, cudaStream_t>;
    return one;
}

} // namespace

// A handle is a number of its own, in as many bytes as its type has.
int library_creates(void *handle, std::size_t size) {
    const Call call;
    static std::uintptr_t next = 0;
    const std::uintptr_t made = ++next;
    std::memcpy(handle, &made, size);
    return 0;
}

int library_sets_stream(std::uintptr_t handle, cudaStream_t stream) {
    const Call call;
    streams_of_handles()[handle] = stream;
    return 0;
}

int library_works(const char *name, std::uintptr_t handle, const char *modes, const std::uintptr_t *addresses) {
    const Call call;
    const auto found = streams_of_handles().find(handle);
    Stream *stream = stream_of(found == streams_of_handles().end() ? nullptr : found->second, false);
    if (stream == nullptr)
        return 0;
    std::string head = name;
    for (std::size_t i = 0; modes[i] != 0; ++i) {
        Allocation *given = addresses[i] == 0 ? nullptr : allocation_at(addresses[i]);
        if (given == nullptr)
            continue;
        head += std::string(" ") + modes[i] + ":" + hexadecimal(addresses[i]);
        if (given->guarded)
            arm(given, nullptr);
    }
    submit(stream, {"l", head, nullptr, call.stack()}, cudaGraphNodeTypeEmpty);
    return 0;
}

} // namespace dryrun
