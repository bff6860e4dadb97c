// The samples of one process, as lines of text:
//
//     kesco-fikit-samples 1 events|cupti
//     K <identity, 16 hex digits> <grid x y z> <block x y z> <shared> <name>      once for each identity
//     S <identity> <time on the device, ns> <idle until the next launch's start, ns>|- <host's time before, ns> <waits>
//
// Times come from a pair of events around each launch: they resolve about half a microsecond, and where the device was
// idle they include the way of the launch to it. A file is of one process, and written whole or empty.
#include "measure.h"

#include "attachment.h"
#include "clock.h"
#include "driver.h"
#include "markers.h"
#include "process.h"
#include "sample_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>
#include <set>
#include <string>

namespace fikit {
namespace {

constexpr int kPairs = 4096;

struct Pair {
    void *from, *to;
    std::uint64_t identity;
    std::uint64_t host; // its own time before: since the last launch returned, or a wait for the device ended
    bool waits;         // before the next one the host waited for the device
};

struct Samples {
    std::mutex lock;
    bool begun = false, writes = false; // the file of this process
    std::set<std::uint64_t> known;
    Pair ring[kPairs]; // in the order of launches; the last one waits for its successor
    std::uint64_t first = 0, next = 0;
    void *spare[2 * kPairs];
    int spares = 0;
    bool open = false;          // between before and after
    std::uint64_t returned = 0; // when the last launch did, or a wait
    bool waited = false;
};
Samples &all() {
    static auto &one = *new Samples;
    return one;
}

void *take(Samples &s, const Driver &d) {
    if (s.spares)
        return s.spare[--s.spares];
    void *event = nullptr;
    return d.event_create(&event, 0) == kSuccess ? event : nullptr;
}

long elapsed(const Driver &d, void *from, void *to) {
    float milliseconds = 0;
    if (d.event_elapsed(&milliseconds, from, to) != kSuccess)
        return -1;
    return milliseconds < 0 ? 0 : long(double(milliseconds) * 1e6);
}

template <typename... Values> void line(const char *format, Values... values) {
    char text[128];
    snprintf(text, sizeof text, format, values...);
    write_samples(text);
}

void introduce(const Launch &one) {
    line("K %016" PRIx64 " %u %u %u %u %u %u %" PRIu64 " ", one.identity, one.grid[0], one.grid[1], one.grid[2],
         one.block[0], one.block[1], one.block[2], one.shared);
    write_samples(one.name ? one.name : "");
    write_samples("\n");
}

// Writes what has ended; with `all_of_them` waits for the rest.
void drain(Samples &s, const Driver &d, bool all_of_them) {
    while (s.first != s.next) {
        Pair &one = s.ring[s.first % kPairs];
        const bool last = s.first + 1 == s.next;
        if (!all_of_them && (last || d.event_query(s.ring[(s.first + 1) % kPairs].from) != kSuccess))
            return;
        if (d.event_synchronize(one.to) != kSuccess)
            return;
        const long time = elapsed(d, one.from, one.to);
        const long gap = last ? -1 : elapsed(d, one.to, s.ring[(s.first + 1) % kPairs].from);
        if (time >= 0 && gap >= 0)
            line("S %016" PRIx64 " %ld %ld %" PRIu64 " %d\n", one.identity, time, gap, one.host, one.waits);
        else if (time >= 0)
            line("S %016" PRIx64 " %ld - %" PRIu64 " %d\n", one.identity, time, one.host, one.waits);
        s.spare[s.spares++] = one.from;
        s.spare[s.spares++] = one.to;
        ++s.first;
    }
}

void finish() {
    if (!begun())
        return; // a child that launched nothing
    Samples &s = all();
    const Driver *d = driver();
    const std::lock_guard<std::mutex> guard(s.lock);
    if (!s.writes)
        return;
    if (s.next != s.first)
        s.ring[(s.next - 1) % kPairs].waits = s.waited;
    if (d)
        drain(s, *d, true);
    end_samples();
    s.writes = false;
}

// Begins the file: one for each process, since a task may be several.
bool ready(Samples &s) {
    if (s.begun)
        return s.writes;
    s.begun = true;
    static std::atomic<bool> registered{false};
    if (!registered.exchange(true))
        atexit(finish);
    s.writes = begin_samples(settings().profile + "." + std::to_string(getpid()));
    if (s.writes)
        write_samples("kesco-fikit-samples 1 events\n");
    return s.writes;
}

} // namespace

void measure_forked() noexcept {
    if (!measuring())
        return;
    no_samples();
    new (&all()) Samples; // what another thread may have been changing is left as it is
}

bool measuring() noexcept {
    static const bool asked = !settings().profile.empty();
    return asked;
}

void measure_before(const Launch &launch) noexcept {
    Samples &s = all();
    const Driver *d = driver();
    s.lock.lock(); // until the launch is made: the order of launches is the order of samples
    s.open = false;
    if (!d || !d->event_record || !d->event_elapsed || !ready(s) || capturing(launch.stream, launch.per_thread))
        return;
    if (s.next - s.first == kPairs)
        drain(s, *d, true);
    Pair &one = s.ring[s.next % kPairs];
    if (s.next != s.first)
        s.ring[(s.next - 1) % kPairs].waits = s.waited;
    const std::uint64_t before = s.returned;
    one = {take(s, *d), take(s, *d), launch.identity, before ? now() - before : 0, false};
    s.waited = false;
    const auto record = launch.per_thread && d->event_record_ptsz ? d->event_record_ptsz : d->event_record;
    s.open = one.from && one.to && record(one.from, launch.stream) == kSuccess;
}

void measure_after(const Launch &launch, bool launched) noexcept {
    Samples &s = all();
    const Driver *d = driver();
    if (s.open && launched) {
        Pair &one = s.ring[s.next % kPairs];
        const auto record = launch.per_thread && d->event_record_ptsz ? d->event_record_ptsz : d->event_record;
        if (s.known.insert(launch.identity).second)
            introduce(launch);
        if (record(one.to, launch.stream) == kSuccess) {
            ++s.next;
            if (s.next % 64 == 0)
                drain(s, *d, false);
        }
    }
    s.open = false;
    s.returned = now();
    s.lock.unlock();
}

void measure_waited() noexcept {
    Samples &s = all();
    const std::lock_guard<std::mutex> guard(s.lock);
    s.waited = true;
    s.returned = now();
}

} // namespace fikit
