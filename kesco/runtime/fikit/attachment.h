// A client's tie to its daemon: the shared words, and the two threads that the client adds.
//
// The keeper has the socket, in a table of descriptors of its own: it notices when the daemon is gone, comes back when
// there is one again, and rings. The attendant says what has ended. It has the program's descriptors, since it asks the
// driver, which may have some. The words stay mapped at one address for the life of the process: another daemon's
// memory is put in the place of the old one, so no thread ever reads what is not there.
#pragma once

#include "shared_memory.h"

#include <string>

namespace fikit {

struct Settings {
    std::string socket;  // empty: no daemon is asked for
    std::string profile; // where a measurement goes; empty: none
    int priority = 0;
    std::uint64_t deadline = 500000000; // of a hold, in nanoseconds
    std::uint64_t spin = 20000;         // before a wait sleeps
    std::string task;
};
const Settings &settings() noexcept;

// The shared words while there is a daemon, else null. The first call of a process attaches, for which it waits for no
// longer than a launch may be held.
Shared *attached() noexcept;
// The same, without attaching: for calls that launch nothing.
Shared *attached_already() noexcept;
// Changes with each daemon and in each child after fork.
std::uint32_t epoch() noexcept;
// Has the keeper look: it tells the daemon that something waits, if that sleeps, and whether the daemon is there.
void ring() noexcept;
// Writes a record, and a name. Returns the time that it wrote.
std::uint64_t say(Shared *shared, What what, std::uint64_t identity, std::uint64_t ticket) noexcept;
void say_name(Shared *shared, std::uint64_t identity, const char *name) noexcept;
// What has ended, if anybody wants to know.
void publish(Shared *shared) noexcept;
// The next ticket: launches that stopped at the gate since the daemon was attached to.
std::uint64_t next_ticket() noexcept;
// Before anything else in a process, and again in a child: nothing is tied, and no lock is taken.
void untie() noexcept;

} // namespace fikit
