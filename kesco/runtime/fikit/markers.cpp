// Events behind launches. The thread that launches records them, so the stream and the context are certainly alive. Who
// asks them does so in the relaxed capture mode, so that no capture of the program is disturbed.
#include "markers.h"

#include "clock.h"
#include "driver.h"
#include "futex.h"
#include "markers_state.h"

#include <algorithm>
#include <new>

namespace fikit {
namespace {

constexpr int kBusy = 2;
constexpr Result kCaptures = 900, kCapturesEnd = 908; // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and so on
constexpr unsigned kNoTiming = 2;                     // CU_EVENT_DISABLE_TIMING
constexpr std::uint64_t kFresh = 50000;               // so long after an event another one is due, also on a credit
constexpr std::uint64_t kPaid = 10; // a pause that nobody could see is followed by so many times as long with events
constexpr std::uint64_t kOld = 100000000; // as kSettle in attachment.cpp

Markers &all() {
    static auto &one = *new Markers; // never destroyed: threads may launch while the process ends
    return one;
}

// An event of the launching thread's context, or null.
void *take(Markers &m, const Driver &d) {
    void *current = nullptr;
    if (d.context(&current) != kSuccess || !current)
        return nullptr;
    if (!m.context)
        m.context = current;
    if (m.context != current)
        return nullptr;
    if (m.spares)
        return m.spare[--m.spares];
    void *event = nullptr;
    if (m.created == kEvents || d.event_create(&event, kNoTiming) != kSuccess)
        return nullptr;
    ++m.created;
    return event;
}

std::uintptr_t key_of(void *stream, bool per_thread) {
    static thread_local char own;
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    if (handle == kPerThreadHandle || (handle == 0 && per_thread))
        return reinterpret_cast<std::uintptr_t>(&own);
    return handle == 0 ? kLegacy : handle;
}

void launched_on(Markers &m, void *stream, bool per_thread) {
    const std::uintptr_t key = key_of(stream, per_thread), before = m.stream.load(std::memory_order_relaxed);
    if (before != key && before != kSeveral)
        m.stream.store(before == kNoStream ? key : kSeveral, std::memory_order_relaxed);
}

// The launches up to this one that no event stands for. Under the lock.
std::uint64_t unmarked_until(Markers &m, std::uint64_t made) {
    const std::uint64_t before = m.marked.load(std::memory_order_relaxed);
    if (made <= before)
        return 0;
    m.marked.store(made, std::memory_order_relaxed);
    if (m.made.load() == made)
        m.owed = {};
    return made - before;
}

// Whether the launches on credits that have no event are on just this stream.
bool owed_on(const Markers &m, void *stream, bool per_thread) {
    return m.owed.stream == key_of(stream, per_thread) && m.owed.id == stream_number(stream, per_thread);
}

// An event is recorded on a stream. It is another one than the last where only the handle is the same.
void recorded_on(Markers &m, void *stream, bool per_thread) {
    if (m.stream.load(std::memory_order_relaxed) != key_of(stream, per_thread))
        return;
    const unsigned long long id = stream_number(stream, per_thread);
    if (m.id && m.id != id)
        m.stream.store(kSeveral, std::memory_order_relaxed);
    m.id = id;
}

void step_off(Markers &m, std::uint64_t time, std::uint64_t lost) {
    m.steps_from = std::max(m.steps_from, time + kPaid * lost);
}

// What was launched last without an event was to have ended long ago, and nobody could tell.
void paused_until(Markers &m, std::uint64_t time) {
    const std::uint64_t ended = m.owed.at + m.owed.time + kFresh;
    if (m.owed.stream != kNoStream && time > ended)
        step_off(m, time, time - ended);
}
void paused(Markers &m) {
    if (m.owed.stream != kNoStream)
        paused_until(m, now());
}

// How many launches an event on this stream stands for that is behind so many. Launches on credits on another stream
// are not among them, as long as they may be under way: then it is `own` launches only.
std::uint64_t stands_for(Markers &m, void *stream, bool per_thread, std::uint64_t made, std::uint64_t own) {
    const std::uint64_t time = m.owed.stream == kNoStream ? 0 : now();
    if (!time || (time > m.owed.at + kOld && m.waits.load() <= 0) || owed_on(m, stream, per_thread)) {
        m.owed = {};
        return unmarked_until(m, made);
    }
    if (m.owed.stream == key_of(stream, per_thread)) // another one that has its handle
        m.owed.stream = kSeveral;
    step_off(m, time, kOld);
    m.marked.fetch_add(own, std::memory_order_relaxed);
    return own;
}

// The answer of an event that has ended, or whose context has. One that a capture does not let be asked tells nothing.
bool tells_end(Result answer) {
    return answer != kNotReady && (answer < kCaptures || answer > kCapturesEnd);
}

bool can_record(const Driver *d) {
    return d && d->event_record && d->event_query && d->event_create && d->context;
}

void record(Markers &m, const Driver &d, void *stream, bool per_thread, std::uint64_t made, std::uint64_t own) {
    const int count = m.count.load(std::memory_order_relaxed);
    if (count == kEvents)
        return;
    void *event = take(m, d);
    if (!event)
        return;
    if ((per_thread && d.event_record_ptsz ? d.event_record_ptsz : d.event_record)(event, stream) != kSuccess) {
        m.spare[m.spares++] = event;
        return;
    }
    recorded_on(m, stream, per_thread);
    m.pending[count] = {event, stands_for(m, stream, per_thread, made, own), made, m.epoch, own != 0};
    m.count.store(count + 1, std::memory_order_relaxed);
    m.at.store(now(), std::memory_order_relaxed);
}

} // namespace

void markers_forked() noexcept {
    new (&all()) Markers; // another thread may have held the lock; the parent's events mean nothing here
}

void markers_reset() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    ++m.epoch;
    m.done = 0;
    m.before = m.made.load();
    m.marked.store(m.before);
    m.owed = {};
    m.ends(0);
}

void mark(void *stream, bool per_thread) noexcept {
    Markers &m = all();
    const Driver *d = driver();
    const auto guard = soon(m.lock);
    launched_on(m, stream, per_thread);
    const std::uint64_t made = m.made.fetch_add(1) + 1;
    if (!can_record(d)) {
        m.ends(unmarked_until(m, made)); // a dry run: what is launched has run
        return;
    }
    paused(m);
    record(m, *d, stream, per_thread, made, 1);
}

bool mark_later(void *stream, bool per_thread, const Taken &launch, const Step &step) noexcept {
    Markers &m = all();
    const Driver *d = driver();
    if (!can_record(d))
        return false;
    const std::uintptr_t key = key_of(stream, per_thread);
    const auto guard = soon(m.lock);
    paused_until(m, launch.at);
    const std::uint64_t before = m.made.load() - m.marked.load();
    if (m.stream.load(std::memory_order_relaxed) != key || (before && m.owed.stream != key))
        return false; // the first one, or several streams, or others without an event
    if (launch.at < m.steps_from || launch.at > m.at.load(std::memory_order_relaxed) + kFresh ||
        before + 1 >= step.launches || (before ? m.owed.time : 0) + launch.predicted >= step.time)
        return false;
    if (!before) {
        const unsigned long long id = stream_number(stream, per_thread);
        if (!id || (m.id && m.id != id))
            return false; // it may be another one than that of the last event
        m.owed = {key, id, 0, 0, 0};
    }
    ++m.owed.launches;
    m.owed.time += launch.predicted;
    m.owed.at = std::max(m.owed.at, launch.at);
    m.made.fetch_add(1);
    return true;
}

void mark_behind(void *stream, bool per_thread) noexcept {
    Markers &m = all();
    const Driver *d = driver();
    if (m.made.load() == m.marked.load() || !can_record(d))
        return;
    const std::uintptr_t key = key_of(stream, per_thread);
    const auto guard = soon(m.lock);
    paused(m);
    if (m.owed.stream == kNoStream ? m.stream.load(std::memory_order_relaxed) == key : owed_on(m, stream, per_thread))
        record(m, *d, stream, per_thread, m.made.load(), 0);
}

void mark_alone(void *stream, bool per_thread) noexcept {
    Markers &m = all();
    launched_on(m, stream, per_thread);
    m.made.fetch_add(1, std::memory_order_relaxed);
}

void mark_done() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    m.made.fetch_add(1);
    m.marked.fetch_add(1);
    m.ends(1);
}

std::uint64_t marked_at() noexcept {
    return all().at.load(std::memory_order_relaxed);
}

std::uint64_t markers_made() noexcept {
    return all().made.load(std::memory_order_relaxed);
}

void markers_waited(std::uint64_t made, void *stream, bool per_thread, bool everything) noexcept {
    Markers &m = all();
    const bool on_it = everything || m.stream.load(std::memory_order_relaxed) == key_of(stream, per_thread);
    if (!on_it && m.made.load() == m.marked.load())
        return;
    const auto guard = soon(m.lock);
    const Driver *d = driver();
    const bool owed = m.owed.stream != kNoStream;
    if (!everything && d &&
        ((on_it && m.id && m.id != stream_number(stream, per_thread)) || (owed && !owed_on(m, stream, per_thread))))
        return;                                    // another one that has the handle, or has others beside it
    if (!on_it && owed && m.made.load() == made) { // these are known to be on it; others without an event are not
        m.marked.fetch_add(m.owed.launches);
        m.ends(m.owed.launches);
        m.owed = {};
    }
    if (!on_it)
        return;
    m.drop([&](const Marker &one) { return one.upto <= made; });
    m.ends(unmarked_until(m, made));
    if (m.made.load() == made) {
        m.stream.store(kNoStream, std::memory_order_relaxed);
        m.id = 0;
    }
}

std::uint64_t markers_poll(std::uint64_t &unready) noexcept {
    Markers &m = all();
    const Driver *d = driver();
    std::unique_lock<std::mutex> guard = soon(m.lock);
    const int count = m.count.load(std::memory_order_relaxed);
    unready = m.unready;
    if (!count)
        return m.done;
    for (int i = 0; i < count; ++i)
        m.asked[i] = {m.pending[i].event, m.pending[i].close};
    const bool ordered = m.stream.load(std::memory_order_relaxed) != kSeveral;
    m.asking = true;
    guard.unlock(); // a launch under way may have the driver's lock for long, and would wait for this one next
    const std::uint64_t time = now();
    std::uint64_t seen = unready;
    int mode = 2; // CU_STREAM_CAPTURE_MODE_RELAXED: what is asked here ends no capture of another thread
    const bool relaxed = d->exchange_capture_mode && d->exchange_capture_mode(&mode) == kSuccess;
    const auto has_ended = [&](const Asked &one) {
        const Result answer = d->event_query(one.event);
        seen = answer == kNotReady && one.close ? time : seen;
        return tells_end(answer);
    };
    Asked *const end = m.asked + count, *until = m.asked;
    // On one stream they end in the order of its launches: few need be asked, and mostly the first one alone.
    if (ordered)
        until = has_ended(*until) ? std::partition_point(until + 1, end, has_ended) : until;
    else
        for (int busy = 0; until != end && busy < kBusy; ++until) // behind a few that have not ended hardly any has
            if (!has_ended(*until))
                until->event = nullptr, ++busy;
    if (relaxed)
        d->exchange_capture_mode(&mode); // as it was
    guard.lock();
    m.asking = false;
    m.unready = seen;
    Asked *next = m.asked; // what is pending of these is in the same order
    m.drop([&](const Marker &one) {
        Asked *const found = std::find_if(next, until, [&](const Asked &other) { return other.event == one.event; });
        next = found == until ? next : found + 1;
        return found != until;
    });
    while (m.kept_back)
        m.spare[m.spares++] = m.back[--m.kept_back];
    return m.done;
}

std::uint64_t markers_ended() noexcept {
    return all().ended.load(std::memory_order_relaxed);
}

bool markers_pending() noexcept {
    Markers &m = all();
    return m.count.load(std::memory_order_relaxed) || m.made.load() != m.marked.load();
}

bool markers_out() noexcept {
    return all().count.load(std::memory_order_relaxed) != 0;
}

bool markers_tell() noexcept {
    Markers &m = all();
    const int count = m.count.load(std::memory_order_relaxed);
    return count == kEvents || (count && m.made.load() == m.marked.load());
}

bool markers_waiting() noexcept {
    return all().waits.load(std::memory_order_relaxed) > 0;
}

void markers_waits_no_more() noexcept {
    all().waits.fetch_sub(1);
}

void markers_wait() noexcept {
    Markers &m = all();
    m.waits.fetch_add(1);
    if (m.made.load() == m.marked.load())
        return;
    const auto guard = soon(m.lock);
    paused(m);
}

void markers_settle() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    if (m.count.load(std::memory_order_relaxed) != 0 || m.waits.load() > 0)
        return;
    paused(m);
    m.ends(unmarked_until(m, m.made.load()));
}

} // namespace fikit
