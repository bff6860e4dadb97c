// What kernels are called, and the hash that their identities begin with: found once for each handle, then read without
// a lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace fikit {

struct Called {
    std::uint64_t hash;
    const char *name; // lives as long as the process
    bool never_held;  // a kernel of NCCL: it waits for its peers, which may wait for this process
};

// Asks `resolve` for the name the first time; what has none is known by its number in the order of first launches.
const Called &called(const void *handle, const char *(*resolve)(const void *), const char *otherwise) noexcept;
// The same for a place with a hook: `site` is a constant of the program.
const Called &called_at(const void *site, const char *kernel, const char *file, std::uint32_t line,
                        std::uint32_t column) noexcept;

// A kernel with its dimensions, as it was launched before: all that a launch is known by, without hashing it anew.
struct Seen {
    std::uint64_t identity; // 0: not known
    const Called *called;
    std::atomic<std::uint32_t> *told; // the epoch in which a daemon was told its name; null: nobody keeps that
};
using Resolve = const Called &(*)(const void *handle);
// `handle` is a kernel, a graph, or the place of a hook; `resolve` says what it is called, the first time.
Seen seen(const void *handle, Resolve resolve, const std::uint32_t *grid, const std::uint32_t *block,
          std::uint64_t shared) noexcept;

} // namespace fikit
