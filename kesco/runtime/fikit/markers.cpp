// Events behind launches. The thread that launches records them, so the stream and the context are certainly alive; the
// attendant thread asks them, in relaxed capture mode, so that no capture of the program is disturbed.
#include "markers.h"

#include "driver.h"

#include <mutex>
#include <new>

namespace fikit {
namespace {

constexpr int kEvents = 512;
constexpr int kBusy = 4;
constexpr unsigned kNoTiming = 2; // CU_EVENT_DISABLE_TIMING

struct Marker {
    void *event;
    std::uint64_t weight; // launches that it stands for
    std::uint32_t epoch;
};

// All below is kept under `lock`, which is held for no longer than a few calls that do not wait.
struct Markers {
    std::mutex lock;
    void *context = nullptr; // events belong to one; a second GPU is another daemon's
    void *spare[kEvents];
    int spares = 0, made = 0;
    Marker pending[kEvents];
    int count = 0;
    std::uint64_t done = 0, unmarked = 0;
    std::uint32_t epoch = 0;
};
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
    if (m.made == kEvents || d.event_create(&event, kNoTiming) != kSuccess)
        return nullptr;
    ++m.made;
    return event;
}

} // namespace

bool capturing(void *stream, bool per_thread) noexcept {
    const Driver *d = driver();
    int status = 0;
    const auto ask = d ? (per_thread ? d->is_capturing_ptsz : d->is_capturing) : nullptr;
    return ask && (ask(stream, &status) != kSuccess || status != 0);
}

void markers_forked() noexcept {
    new (&all()) Markers; // another thread may have held the lock; the parent's events mean nothing here
}

void markers_reset() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    ++m.epoch;
    m.done = m.unmarked = 0;
}

void mark(void *stream, bool per_thread) noexcept {
    Markers &m = all();
    const Driver *d = driver();
    const std::lock_guard<std::mutex> guard(m.lock);
    if (!d || !d->event_record || !d->event_query || !d->event_create || !d->context) {
        ++m.done; // a dry run: what is launched has run
        return;
    }
    ++m.unmarked;
    if (m.count == kEvents)
        return;
    void *event = take(m, *d);
    if (!event)
        return;
    if ((per_thread && d->event_record_ptsz ? d->event_record_ptsz : d->event_record)(event, stream) != kSuccess) {
        m.spare[m.spares++] = event;
        return;
    }
    m.pending[m.count++] = {event, m.unmarked, m.epoch};
    m.unmarked = 0;
}

void mark_alone() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    ++m.unmarked;
}

void mark_done() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    ++m.done;
}

std::uint64_t markers_poll() noexcept {
    Markers &m = all();
    const Driver *d = driver();
    const std::lock_guard<std::mutex> guard(m.lock);
    int kept = 0, busy = 0;
    for (int i = 0; i < m.count; ++i) {
        const Marker one = m.pending[i];
        // Behind a few that have not ended hardly any has: a long queue must not keep the lock from who launches.
        if (busy == kBusy || d->event_query(one.event) == kNotReady) {
            busy += busy < kBusy;
            m.pending[kept++] = one;
            continue;
        }
        if (one.epoch == m.epoch) // ended, or its context did
            m.done += one.weight;
        m.spare[m.spares++] = one.event;
    }
    m.count = kept;
    return m.done;
}

bool markers_pending() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    return m.count != 0 || m.unmarked != 0;
}

void markers_settle() noexcept {
    Markers &m = all();
    const std::lock_guard<std::mutex> guard(m.lock);
    if (m.count == 0) {
        m.done += m.unmarked;
        m.unmarked = 0;
    }
}

} // namespace fikit
