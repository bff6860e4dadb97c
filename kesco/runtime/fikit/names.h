// What kernels are called, and the hash that their identities begin with: found once for each handle, then read without
// a lock.
#pragma once

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

} // namespace fikit
