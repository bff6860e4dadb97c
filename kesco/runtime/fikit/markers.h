// Which launches have ended: events behind some of them, asked by another thread, and what the program itself waited
// for. Nobody ever waits for an event of these.
//
// Launches are counted in the order in which they were made. A launch without an event of its own counts with the next
// one that has one, or with a wait of the program. So a task may be taken to be busy for longer than it is, and then
// nobody is let in; over streams that overlap, one launch may count for another.
#pragma once

#include <cstdint>

namespace fikit {

// Begins to count anew (another daemon, a child after fork). What is under way belongs to the count before.
void markers_reset() noexcept;
// In a child after fork.
void markers_forked() noexcept;
// A launch was made on a stream. Without room for an event it is counted with a later one.
void mark(void *stream, bool per_thread) noexcept;
// A launch was made whose own end nobody wants to know. Takes no lock.
void mark_alone(void *stream, bool per_thread) noexcept;
// A launch was made that needs no event: it failed, or was captured.
void mark_done() noexcept;
// When the last event was recorded.
std::uint64_t marked_at() noexcept;
// How many launches were made, and that all of these on the stream (or at all) have ended: the program waited for it.
std::uint64_t markers_made() noexcept;
// So many of these have ended, as of when the events were last asked.
std::uint64_t markers_ended() noexcept;
void markers_waited(std::uint64_t made, void *stream, bool per_thread, bool all) noexcept;
// Asks the events. Returns how many launches have ended in all since the reset.
std::uint64_t markers_poll() noexcept;
// Whether launches are under way, or were not long ago; whether events are; and whether these tell when all of it has
// ended. They do not while more was launched behind the last of them. No driver is asked for any of this.
bool markers_pending() noexcept;
bool markers_out() noexcept;
bool markers_tell() noexcept;
// Takes everything for ended (nothing was launched for long, and no event tells).
void markers_settle() noexcept;
bool capturing(void *stream, bool per_thread) noexcept;

} // namespace fikit
