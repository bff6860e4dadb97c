// What client and daemon say over the socket. A client writes one Hello and reads one Welcome, with the memfd beside it
// where `error` is 0. From then on a byte from the client means "something waits", and the end of the connection is the
// end of the other side; the daemon says nothing more there. A status request is a Hello that asks for it: the
// daemon answers with JSON and closes.
#pragma once

#include "shared_memory.h"

namespace fikit {

constexpr std::uint32_t kMagic = 0x4b464b54; // KFKT

enum class Ask : std::uint32_t { Attach = 1, Status = 2 };

struct Hello {
    std::uint32_t magic, version;
    std::uint32_t ask;
    std::int32_t priority;
    char task[40]; // the task's key in the profile; may be empty
    char name[64]; // of the program, for people
};

enum class Refusal : std::uint32_t { None = 0, Version = 1, Full = 2, NotAllowed = 3, NoMemory = 4 };

struct Welcome {
    std::uint32_t magic, version;
    std::uint32_t error;   // Refusal
    std::int32_t priority; // as granted: never above the user's cap
};

} // namespace fikit
