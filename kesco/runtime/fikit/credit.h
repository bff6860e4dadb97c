// The client's side of a credit: launches that need not ask, for as long as what it has in flight is predicted to be
// done in time. Who calls these stands at the gate, so it is one thread at a time.
#pragma once

#include "markers.h"
#include "shared_memory.h"

namespace fikit {

// The number of the credit on which a kernel may be launched now, and what the kernel is taken for; 0: it has to ask.
std::uint64_t take_credit(Shared *shared, std::uint64_t identity, std::uint64_t &predicted) noexcept;
// What may be launched on a credit before its end must be told: a quarter of what may be in flight.
Step step_of(const Shared *shared) noexcept;
// It was let go by a grant: it is in flight as well.
void launched_by_grant(const Shared *shared, std::uint64_t identity) noexcept;

} // namespace fikit
