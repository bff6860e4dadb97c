#include "client.h"

#include "attachment.h"
#include "clock.h"
#include "credit.h"
#include "driver.h"
#include "futex.h"
#include "markers.h"
#include "measure.h"
#include "process.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace fikit {
namespace {

constexpr std::uint64_t kStale = 200000000; // the daemon has not been seen to work for so long: go on without it
constexpr std::uint64_t kSlice = 20000000;  // of a sleep, after which all is looked at again
constexpr std::uint64_t kNear = 1000000; // of a wait: while work of its own is under way, it looks whether that ended
constexpr std::size_t kKnown = 4096;
constexpr std::size_t kTries = 8;
constexpr std::uint64_t kRarely = 1000000; // between events that are recorded for no other reason

thread_local int depth = 0;
thread_local bool passes_by = false;
thread_local std::uint64_t launched_at = 0; // by this thread, the last time
thread_local std::uint32_t said_in = 0;     // the epoch in which its present launch was said; 0: it was not
thread_local std::uint64_t on_credit = 0;   // what its present launch is taken for, if that is made on a credit; else 0
thread_local bool measured = false;         // its present launch is
thread_local int waits = 0;                 // that it is in
thread_local std::uint64_t waits_from = 0;  // since then; 0: nobody asks
std::atomic<std::uint64_t> waited{0};       // by all threads, since all had ended for the last time
std::atomic<std::uint64_t> told_of{0};      // of so many launches it was said that they had

// A thread ends in the middle of a launch, or of a wait.
struct Ends {
    bool touched = false;
    ~Ends() {
        if (std::exchange(measured, false))
            measure_after({}, false);
        if (said_in && said_in == epoch())
            mark_done();
        for (; waits > 0; --waits)
            markers_waits_no_more();
    }
};
thread_local Ends ends;

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
    if (launch.told && launch.told->load(std::memory_order_relaxed) == current)
        return;
    if (told.epoch.load(std::memory_order_acquire) != current) {
        for (auto &one : told.identity)
            one.store(0, std::memory_order_relaxed);
        told.epoch.store(current, std::memory_order_release);
    }
    const auto known = [&] {
        if (launch.told)
            launch.told->store(current, std::memory_order_relaxed);
    };
    if (!launch.name || !launch.identity)
        return;
    for (std::size_t i = 0; i < kTries; ++i) {
        auto &slot = told.identity[(launch.identity + i) % kKnown];
        const std::uint64_t there = slot.load(std::memory_order_relaxed);
        if (there == launch.identity)
            return known();
        if (there == 0 || i + 1 == kTries) {
            slot.store(launch.identity, std::memory_order_relaxed);
            say_name(shared, launch.identity, launch.name);
            return known();
        }
    }
}

bool stale(const Shared *shared, std::uint64_t time) {
    const std::uint64_t beat = shared->beat.load(std::memory_order_relaxed);
    return beat < time && time - beat > kStale;
}

// Until the ticket is granted; false where this one let itself go. Who fills a gap often waits for nothing but the end
// of what it launched before: it asks for that itself, because to sleep and be woken takes longer than many a kernel.
bool granted(Shared *shared, std::uint64_t ticket, std::uint64_t from, std::uint32_t since) {
    const std::uint64_t until = from + settings().deadline;
    std::uint64_t awake = from; // something may happen soon after this
    for (bool slept = false;;) {
        const std::uint32_t seen = shared->grant_word.load(std::memory_order_acquire);
        if (shared->granted.load(std::memory_order_acquire) >= ticket)
            return true;
        const std::uint64_t time = now();
        if (time >= until || stale(shared, time) || epoch() != since)
            return false;
        if (time - from < kNear && markers_out()) {
            publish(shared);
            awake = time;
        }
        if (time - awake < settings().spin) {
            for (int i = 0; i < 32; ++i)
                pause();
            continue;
        }
        if (std::exchange(slept, true))
            ring(); // then it is soon known where the daemon is gone
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

// The record by which the daemon counts the present launch, so its end is counted as well.
void say_launched(Shared *shared, What what, const Launch &launch, std::uint64_t ticket) {
    launched_at = say(shared, what, launch.identity, ticket);
    said_in = epoch();
}

void hold(Shared *shared, const Launch &launch) {
    const std::uint64_t from = now();
    std::unique_lock<std::timed_mutex> guard = behind_others();
    const std::uint32_t since = epoch();
    if (!guard || attached() != shared || stale(shared, now()) || shared->gate.load(std::memory_order_acquire)) {
        say_launched(shared, What::Passed, launch, 0);
        return;
    }
    const std::uint64_t ticket = next_ticket();
    std::uint64_t predicted = 0;
    if (const std::uint64_t credit = take_credit(shared, launch.identity, predicted)) {
        say_launched(shared, What::Credited, launch, credit);
        on_credit = predicted;
        return;
    }
    if (shared->track.load(std::memory_order_relaxed))
        mark_behind(launch.stream, launch.per_thread); // what it waits for may be the end of just these
    say_launched(shared, What::Waits, launch,
                 ticket); // what follows counts nothing for a daemon that has not read this
    std::atomic_thread_fence(std::memory_order_seq_cst); // either it is seen, or the daemon is seen to sleep
    if (shared->asleep.load())
        ring();
    const bool good = granted(shared, ticket, from, since);
    launched_at = say(shared, good ? What::Began : What::Abandoned, launch.identity, ticket);
    launched_by_grant(shared, launch.identity);
}

// Whether anybody may want to know when this one has ended, before the next one or a wait tells it.
bool worth_an_event(const Shared &shared, std::uint64_t identity) {
    return (shared.worth[worth_word(identity)].load(std::memory_order_relaxed) & worth_bit(identity)) ||
           launched_at > marked_at() + kRarely;
}

// Nothing that another thread, or a parent, held or knew of.
void anew() noexcept {
    untie();
    markers_forked();
    measure_forked();
    new (&gate()) std::timed_mutex;
}

// Before what is kept of this process is looked at.
void here() noexcept {
    if (!begun())
        begin(anew);
}

} // namespace

bool inside() noexcept {
    return depth != 0;
}

void pass_by(bool on) noexcept {
    if (on != std::exchange(passes_by, on))
        depth += on ? 1 : -1;
}

bool wanted() noexcept {
    static const bool asked = !settings().socket.empty() || !settings().profile.empty();
    return asked;
}

bool enter(const Launch &launch) noexcept {
    if (depth != 0 || !wanted())
        return false;
    ++depth;
    ends.touched = true; // so that it is there
    here();
    if (measuring()) {
        const Uncancelled whole;
        measure_before(launch);
        return measured = true;
    }
    Shared *shared = attached();
    if (!shared)
        return true;
    introduce(shared, launch);
    if (shared->gate.load(std::memory_order_acquire) || launch.never_held) {
        say_launched(shared, What::Passed, launch, 0);
        return true;
    }
    const Uncancelled whole;
    if (capturing(launch.stream, launch.per_thread))
        say_launched(shared, What::Passed, launch, 0);
    else
        hold(shared, launch);
    return true;
}

void leave(const Launch &launch, bool launched) noexcept {
    --depth;
    const std::uint64_t predicted = std::exchange(on_credit, 0);
    const std::uint32_t said = std::exchange(said_in, 0);
    if (measuring()) {
        const Uncancelled whole;
        measure_after(launch, launched);
        measured = false;
        return;
    }
    Shared *shared = attached();
    if (!shared || said != epoch()) // the daemon, or this one, came only now and knows of no such launch
        return;
    const auto track = Track(shared->track.load(std::memory_order_relaxed));
    if (!launched)
        return mark_done();
    if (track == Track::None || (track == Track::Some && !worth_an_event(*shared, launch.identity)))
        return mark_alone(launch.stream, launch.per_thread);
    const Uncancelled whole;
    if (predicted && mark_later(launch.stream, launch.per_thread, {launched_at, predicted}, step_of(shared)))
        return;
    else if (capturing(launch.stream, launch.per_thread))
        mark_done();
    else
        mark(launch.stream, launch.per_thread);
}

namespace {

// The shared words where somebody wants to know what has ended.
Shared *asked() {
    if (depth != 0 || !wanted() || measuring())
        return nullptr;
    Shared *shared = attached_already();
    return shared && shared->track.load(std::memory_order_relaxed) ? shared : nullptr;
}

// The end of a request, if all of it has ended, and how long the program waited for it.
void say_waited(Shared *shared) {
    if (const std::uint64_t from = std::exchange(waits_from, 0))
        waited.fetch_add(now() - from, std::memory_order_relaxed);
    const std::uint64_t made = markers_made();
    if (markers_ended() == made && told_of.exchange(made, std::memory_order_relaxed) != made)
        say(shared, What::Ended, waited.exchange(0), shared->completed.load(std::memory_order_relaxed));
}

} // namespace

std::uint64_t wait_begins() noexcept {
    if (wanted()) {
        ends.touched = true;
        here();
    }
    const std::uint64_t before = markers_made();
    markers_wait();
    ++waits;
    waits_from = asked() ? now() : 0;
    return before;
}

void wait_ends() noexcept {
    --waits;
    markers_waits_no_more();
}

void after_wait(std::uint64_t before, const Wait &wait) noexcept {
    if (depth != 0 || !wanted())
        return;
    const Uncancelled whole;
    if (measuring())
        return measure_waited();
    if (!attached_already())
        return;
    markers_waited(before, wait.stream, wait.per_thread, wait.all);
    synchronized();
}

void synchronized() noexcept {
    const Uncancelled whole;
    Shared *shared = asked();
    if (!shared)
        return;
    publish(shared);
    if (Track(shared->track.load(std::memory_order_relaxed)) == Track::Some)
        say_waited(shared);
}

} // namespace fikit
