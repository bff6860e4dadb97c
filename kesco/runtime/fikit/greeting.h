// How a client comes to its daemon: what is said over the socket, and what of the answer is believed.
#pragma once

#include "attachment.h"

namespace fikit {

// A daemon: its socket and the shared words, or -1 and null where there is none, or none that can be trusted. Blocks
// for a while at most. Called by a thread with descriptors of its own.
struct Found {
    int socket;
    Shared *words;
};
Found greet(const Settings &settings) noexcept;

} // namespace fikit
