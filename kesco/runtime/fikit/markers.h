// Which launches have ended: an event behind each launch, asked by another thread. Nobody ever waits for one.
#pragma once

#include <cstdint>

namespace fikit {

// Begins to count anew (another daemon, a child after fork). What is under way belongs to the count before.
void markers_reset() noexcept;
// In a child after fork.
void markers_forked() noexcept;
// A launch was made on a stream. Without room for an event it is counted with a later one.
void mark(void *stream, bool per_thread) noexcept;
// A launch was made while nobody wants to know; it is counted with the next one that is marked.
void mark_alone() noexcept;
// A launch was made that needs no event: it failed, or was captured.
void mark_done() noexcept;
// Asks the events. Returns how many launches have ended in all since the reset.
std::uint64_t markers_poll() noexcept;
// Whether launches are under way, or were not long ago.
bool markers_pending() noexcept;
// Takes everything for ended (nothing was launched for long, and no event tells).
void markers_settle() noexcept;
bool capturing(void *stream, bool per_thread) noexcept;

} // namespace fikit
