#include "client.h"

#include "attachment.h"
#include "driver.h"
#include "futex.h"
#include "markers.h"
#include "measure.h"

#include <algorithm>
#include <mutex>
#include <new>

namespace fikit {
namespace {

constexpr std::uint64_t kStale = 200000000; // the daemon has not been seen to work for so long: go on without it
constexpr std::uint64_t kSlice = 20000000;  // of a sleep, after which all is looked at again
constexpr std::size_t kKnown = 4096;

thread_local int depth = 0;

// One thread of the process stands at the gate, the others behind it: the process is held as a whole. Never destroyed.
alignas(std::timed_mutex) unsigned char gate_room[sizeof(std::timed_mutex)];
std::timed_mutex &gate() {
    static std::timed_mutex *const one = new (gate_room) std::timed_mutex;
    return *one;
}

// Identities whose names the daemon has been told. Losing one in a race costs a second telling.
struct Told {
    std::atomic<std::uint64_t> identity[kKnown];
    std::atomic<std::uint32_t> epoch;
};
Told told;

void introduce(Shared *shared, const Launch &launch) {
    const std::uint32_t current = epoch();
    if (told.epoch.load(std::memory_order_relaxed) != current) {
        for (auto &one : told.identity)
            one.store(0, std::memory_order_relaxed);
        told.epoch.store(current, std::memory_order_relaxed);
    }
    auto &slot = told.identity[launch.identity % kKnown];
    if (!launch.name || slot.load(std::memory_order_relaxed) == launch.identity)
        return;
    slot.store(launch.identity, std::memory_order_relaxed);
    say_name(shared, launch.identity, launch.name);
}

bool stale(const Shared *shared, std::uint64_t time) {
    const std::uint64_t beat = shared->beat.load(std::memory_order_relaxed);
    return beat < time && time - beat > kStale;
}

// Until the ticket is granted; false where this one let itself go.
bool granted(Shared *shared, std::uint64_t ticket, std::uint64_t from, std::uint32_t since) {
    const std::uint64_t until = from + settings().deadline;
    while (true) {
        const std::uint32_t seen = shared->grant_word.load(std::memory_order_acquire);
        if (shared->granted.load(std::memory_order_acquire) >= ticket)
            return true;
        const std::uint64_t time = now();
        if (time >= until || stale(shared, time) || epoch() != since)
            return false;
        if (time - from < settings().spin) {
            for (int i = 0; i < 32; ++i)
                pause();
            continue;
        }
        futex_wait(&shared->grant_word, seen, std::min(kSlice, until - time));
    }
}

// Locked, unless the others took longer than a hold may.
std::unique_lock<std::timed_mutex> behind_others() {
#if defined(__SANITIZE_THREAD__) // it does not know the call by which the other form waits
    return std::unique_lock<std::timed_mutex>(gate());
#else
    return std::unique_lock<std::timed_mutex>(gate(), std::chrono::nanoseconds(settings().deadline));
#endif
}

void hold(Shared *shared, const Launch &launch) {
    const std::uint64_t from = now();
    std::unique_lock<std::timed_mutex> guard = behind_others();
    const std::uint32_t since = epoch();
    const std::uint64_t ticket = next_ticket();
    if (!guard || attached() != shared || stale(shared, now()) || shared->gate.load(std::memory_order_acquire)) {
        say(shared, What::Passed, launch.identity, ticket);
        return;
    }
    say(shared, What::Waits, launch.identity, ticket);
    std::atomic_thread_fence(std::memory_order_seq_cst); // either it is seen, or the daemon is seen to sleep
    if (shared->asleep.load())
        ring();
    if (!granted(shared, ticket, from, since))
        say(shared, What::Abandoned, launch.identity, ticket);
}

} // namespace

bool inside() noexcept {
    return depth != 0;
}

bool wanted() noexcept {
    static const bool asked = !settings().socket.empty() || !settings().profile.empty();
    return asked;
}

bool enter(const Launch &launch) noexcept {
    if (depth != 0 || !wanted())
        return false;
    ++depth;
    if (measuring()) {
        measure_before(launch);
        return true;
    }
    Shared *shared = attached();
    if (!shared)
        return true;
    introduce(shared, launch);
    const bool open = shared->gate.load(std::memory_order_acquire) != 0;
    if (open || launch.never_held || capturing(launch.stream, launch.per_thread))
        say(shared, What::Passed, launch.identity, next_ticket());
    else
        hold(shared, launch);
    return true;
}

void leave(const Launch &launch, bool launched) noexcept {
    --depth;
    if (measuring()) {
        measure_after(launch, launched);
        return;
    }
    Shared *shared = attached();
    if (!shared)
        return;
    if (!launched)
        mark_done();
    else if (!shared->track.load(std::memory_order_relaxed))
        mark_alone();
    else if (capturing(launch.stream, launch.per_thread))
        mark_done();
    else
        mark(launch.stream, launch.per_thread);
}

void synchronized() noexcept {
    if (depth != 0 || !wanted() || measuring())
        return;
    Shared *shared = attached();
    if (shared && shared->track.load(std::memory_order_relaxed))
        publish(shared);
}

void reopen_locks() noexcept {
    new (&gate()) std::timed_mutex;
    depth = 0;
}

} // namespace fikit
