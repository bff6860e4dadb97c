// Which launches have ended: events behind some of them, asked by another thread, and what the program itself waited
// for. Nobody ever waits for an event of these.
//
// Launches are counted in the order in which they were made. A launch without an event of its own counts with the next
// one that has one, or with a wait of the program. So a task may be taken to be busy for longer than it is, and then
// nobody is let in; over streams that overlap, one launch may count for another.
//
// Of launches on credits one in some has an event, for as long as all are on one stream. They count with the next event
// on that very stream, and with no other. Where the program goes off without a launch and without a wait nobody can
// tell when they ended; so that this costs little, each launch has an event again for a while after that.
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
// A launch was made on a credit. Whether its end can be told later, with the next one's; if not, nothing was counted,
// and it is to be marked.
struct Taken {
    std::uint64_t at, predicted; // when it was launched, and what it is taken for
};
struct Step {
    std::uint64_t time, launches; // as much may be launched without an event: predicted nanoseconds, and how many
};
bool mark_later(void *stream, bool per_thread, const Taken &launch, const Step &step) noexcept;
// Records an event behind the launches that have none, if they are all on this stream, which is alive.
void mark_behind(void *stream, bool per_thread) noexcept;
// A thread of the program has come to a wait, and what it did since its last launch is over; it goes on behind it.
void markers_wait() noexcept;
void markers_waits_no_more() noexcept;
// A launch was made that needs no event: it failed, or was captured.
void mark_done() noexcept;
// When the last event was recorded.
std::uint64_t marked_at() noexcept;
// How many launches were made, and that all of these on the stream (or at all) have ended: the program waited for it.
std::uint64_t markers_made() noexcept;
// So many of these have ended, as of when the events were last asked.
std::uint64_t markers_ended() noexcept;
void markers_waited(std::uint64_t made, void *stream, bool per_thread, bool all) noexcept;
// Asks the events. Returns how many launches have ended in all since the reset, and when some of those that had not
// been said before were last seen not to have: of an event that other work may be before, as a copy, nobody can say.
std::uint64_t markers_poll(std::uint64_t &unready) noexcept;
// Whether launches are under way, or were not long ago; whether events are; and whether these tell when all of it has
// ended. They do not while more was launched behind the last of them. No driver is asked for any of this.
bool markers_pending() noexcept;
bool markers_out() noexcept;
bool markers_tell() noexcept;
// Whether a thread of the program waits for the device.
bool markers_waiting() noexcept;
// Takes everything for ended (nothing was launched for long, and no event tells), unless the program waits.
void markers_settle() noexcept;

} // namespace fikit
