// The one clock of all clients and daemons.
#pragma once

#include <cstdint>

namespace fikit {

// CLOCK_MONOTONIC in nanoseconds, of the machine once `common_clock` was called.
std::uint64_t now() noexcept;
// From now on `now` is the machine's clock also in a time namespace, where the kernel shows another one. Opens a file,
// so a client calls it where its descriptors are its own.
void common_clock() noexcept;

} // namespace fikit
