// What is common to launches of the driver's interface and of the runtime's: what of their ABI is used, and how a
// launch goes between the two halves of the client. Nothing of CUDA is needed to build this.
#pragma once

#include "client.h"
#include "driver.h"
#include "identity.h"
#include "names.h"

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace fikit {

struct Attribute { // CUlaunchAttribute
    std::uint32_t id, pad;
    alignas(8) unsigned char value[64];
};
constexpr std::uint32_t kCooperative = 2; // CU_LAUNCH_ATTRIBUTE_COOPERATIVE, and the runtime's
constexpr Result kNotInitialized = 3;
constexpr std::uint32_t kNothing[3] = {0, 0, 0};

inline bool cooperative(const Attribute *attributes, std::uint32_t count) {
    for (std::uint32_t i = 0; attributes && i < count; ++i)
        if (attributes[i].id == kCooperative)
            return true;
    return false;
}

// Whether a launch of this thread is to be looked at.
inline bool looks() {
    return wanted() && !inside();
}

// Whether the program has asked for the driver's launches: then these are looked at, and the runtime's need not be.
bool driver_seen() noexcept;

// The launch `real()` of what this handle stands for, between the two halves of the client.
template <typename Real> Result around(const void *handle, Resolve resolve, const std::uint32_t *grid,
                                       const std::uint32_t *block, std::uint64_t shared, void *stream, bool per_thread,
                                       bool never_held, Real real) {
    const Seen known = seen(handle, resolve, grid, block, shared);
    const Launch launch{known.identity, known.called->name,
                        known.told,     stream,
                        per_thread,     never_held || known.called->never_held,
                        grid,           block,
                        shared};
    const bool entered = enter(launch);
    const Result result = real();
    if (entered)
        leave(launch, result == kSuccess);
    return result;
}

} // namespace fikit
