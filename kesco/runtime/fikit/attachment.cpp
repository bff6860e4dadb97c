#include "attachment.h"

#include "clock.h"
#include "futex.h"
#include "greeting.h"
#include "markers.h"
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <utility>

namespace fikit {
namespace {

enum State : int { Fresh, Attached, Alone };

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kPatience = 300000000; // of the first launch for a daemon's answer
constexpr std::uint64_t kLook = 100000000;     // between looks at what one is woken for
constexpr std::uint64_t kNowAndThen = 200000;  // between looks at what is of little interest
constexpr std::uint64_t kRarely = 1000000;     // between questions of a holder that goes on launching
constexpr std::uint64_t kQuiet = 20000;        // without a launch of the holder: now it may be idle
constexpr std::uint64_t kOften = 50000;        // where some launches on credits have no event
constexpr std::uint64_t kSettle = 100000000;   // what has no event of its own has ended so long after it was launched

struct Tie {
    std::atomic<int> state{Fresh};
    std::atomic<std::uint32_t> epoch{1};
    std::atomic<std::uint64_t> tickets{0};
    std::mutex first; // one thread starts the others
    bool started = false;
    std::atomic<std::uint32_t> news{0}; // a futex: the state changes
    std::atomic<std::uint32_t> bell{0}; // a futex: the keeper is to look
    std::mutex naming;
    std::mutex publishing;
    std::atomic<bool> ending{false};
    Shared *words = nullptr; // the address never changes once it is there
};
alignas(Tie) unsigned char room[sizeof(Tie)];
Tie &tie() {
    static Tie *const one = new (room) Tie;
    return *one;
}

int number(const char *name, int least, int most, int otherwise) {
    const char *text = getenv(name);
    if (!text || !*text)
        return otherwise;
    return int(std::min<long>(std::max<long>(strtol(text, nullptr, 10), least), most));
}

Settings read_settings() {
    Settings result;
    const char *socket = getenv("KESCO_FIKIT_SOCKET"), *profile = getenv("KESCO_FIKIT_MEASURE");
    const char *task = getenv("KESCO_FIKIT_TASK");
    result.socket = socket ? socket : "";
    result.profile = profile ? profile : "";
    result.task = task ? task : "";
    result.priority = number("KESCO_FIKIT_PRIORITY", 0, 9, 0);
    result.deadline = std::uint64_t(number("KESCO_FIKIT_DEADLINE_MS", 1, 60000, 500)) * 1000000;
    result.spin = std::uint64_t(number("KESCO_FIKIT_SPIN_US", 0, 10000, 20)) * 1000;
    return result;
}

// Whoever waits for the daemon to come or to go looks again.
void tell_news() {
    tie().news.fetch_add(1);
    futex_wake(&tie().news);
}

// Called by the keeper alone.
bool attach(const Found &found) {
    Tie &t = tie();
    if (t.words) {
        const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
        if (mremap(found.words, sizeof(Shared), sizeof(Shared), flags, t.words) == MAP_FAILED) {
            munmap(found.words, sizeof(Shared));
            return false;
        }
    } else {
        t.words = found.words;
    }
    t.tickets.store(0);
    markers_reset();
    t.epoch.fetch_add(1);
    t.state.store(Attached, std::memory_order_release);
    tell_news();
    return true;
}

void detach() {
    Tie &t = tie();
    t.state.store(Alone, std::memory_order_release);
    t.epoch.fetch_add(1);
    futex_wake(&t.words->grant_word); // whoever waits sees that it is alone
}

void nap(std::uint64_t nanoseconds) {
    const timespec time{time_t(nanoseconds / kSecond), long(nanoseconds % kSecond)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

// Rings where it is asked to, until the daemon is gone.
void stay(int socket) {
    Tie &t = tie();
    std::uint32_t rung = t.bell.load();
    while (true) {
        futex_wait(&t.bell, rung, kLook);
        const std::uint32_t before = rung;
        rung = t.bell.load();
        // Full: the daemon has enough to read. Gone: see below.
        if (rung != before && t.words->asleep.load() && send(socket, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            errno = 0;
        char bytes[64];
        const ssize_t got = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return;
    }
}

void *keep(void *) {
    Tie &t = tie();
    pthread_setname_np(pthread_self(), "kesco-keeper");
    const bool able = own_descriptors(); // where that is not allowed there is no daemon
    if (able)
        common_clock();
    std::uint64_t wait = kSecond / 10;
    do {
        const Found found = able ? greet(settings()) : Found{-1, nullptr};
        if (found.words && attach(found)) {
            stay(found.socket);
            detach();
            wait = kSecond / 10;
        }
        if (found.socket >= 0)
            close(found.socket);
        int first = Fresh;
        if (t.state.compare_exchange_strong(first, Alone))
            tell_news();
        nap(wait);
        wait = std::min<std::uint64_t>(wait * 2, kSecond / 2);
    } while (able);
    return nullptr;
}

// Whether the driver is to be asked now. It has a lock that launches take. So it is asked where the answer can be that
// all has ended, and else only now and then; and of the holder, whose launches nothing may slow down, only where it has
// stopped launching, and does not wait itself: then its own wait tells.
bool worth_asking(bool held, std::uint64_t since, std::uint64_t quiet) {
    if (held)
        return since >= kOften || markers_tell();
    return since >= kRarely || (quiet >= kQuiet && markers_tell() && !markers_waiting());
}

// Follows what is under way while somebody wants to know.
void follow(Shared *shared) {
    const std::uint32_t daemon = epoch();
    std::uint64_t last_pending = now(), last_launch = last_pending, asked = 0, head = 0;
    while (!tie().ending.load() && epoch() == daemon && shared->track.load(std::memory_order_relaxed)) {
        const std::uint64_t time = now();
        const bool held = Track(shared->track.load(std::memory_order_relaxed)) == Track::Each;
        if (const std::uint64_t seen = shared->head.load(std::memory_order_relaxed); seen != head)
            head = seen, last_launch = time;
        if (worth_asking(held, time - asked, time - last_launch)) {
            publish(shared);
            asked = time;
        }
        if (markers_pending())
            last_pending = time;
        if (time - last_launch > kSettle)
            markers_settle();
        const std::uint64_t idle = time - last_pending;
        const bool soon = held && markers_pending() && time - last_launch < 2000000; // an event, behind what has none
        const bool out = idle < 2000000 && (held ? markers_out() : markers_tell());
        nap(idle >= kSecond ? 2000000 : out ? 15000 : soon ? kOften : kNowAndThen);
    }
}

void *attend(void *) {
    Tie &t = tie();
    prctl(PR_SET_TIMERSLACK, 1000UL);
    pthread_setname_np(pthread_self(), "kesco-fikit");
    while (!t.ending.load()) {
        const std::uint32_t heard = t.news.load();
        Shared *words = attached_already();
        if (!words)
            futex_wait(&t.news, heard, kSecond);
        else if (words->track.load(std::memory_order_relaxed))
            follow(words);
        else
            futex_wait(&words->track, 0, kLook);
    }
    return nullptr;
}

// Before the driver's own end: once this returns, the attendant does not enter the driver any more.
void end() {
    Tie &t = tie();
    if (!begun())
        return; // a child that launched nothing
    t.ending.store(true);
    for (int tries = 0; tries < 50; ++tries, nap(kSecond / 1000))
        if (t.publishing.try_lock())
            return t.publishing.unlock();
}

// Under the lock.
void start_both() {
    Tie &t = tie();
    if (std::exchange(t.started, true))
        return;
    static std::atomic<bool> registered{false};
    if (!registered.exchange(true))
        atexit(end);
    if (!start(attend) || !start(keep))
        t.state.store(Alone);
}

// By another clock than `now`, which the keeper may just set right.
void wait_for_the_first_try(Clock::time_point until) {
    Tie &t = tie();
    for (std::uint32_t heard = t.news.load(); t.state.load() == Fresh; heard = t.news.load()) {
        const auto left = std::chrono::nanoseconds(until - Clock::now()).count();
        if (left > 0) {
            futex_wait(&t.news, heard, std::uint64_t(left));
            continue;
        }
        int first = Fresh;
        t.state.compare_exchange_strong(first, Alone); // the keeper goes on trying
    }
}

} // namespace

const Settings &settings() noexcept {
    static const Settings &one = *new Settings(read_settings());
    return one;
}

void untie() noexcept {
    Tie &t = tie();
    Shared *words = t.words; // a parent's; nothing is written there before another memory is in its place
    const std::uint32_t before = t.epoch.load();
    new (&t) Tie;
    t.epoch.store(before + 1);
    t.words = words;
}

std::uint32_t epoch() noexcept {
    return tie().epoch.load(std::memory_order_acquire);
}
std::uint64_t next_ticket() noexcept {
    return tie().tickets.fetch_add(1, std::memory_order_relaxed) + 1;
}

Shared *attached_already() noexcept {
    Tie &t = tie();
    return t.state.load(std::memory_order_acquire) == Attached ? t.words : nullptr;
}

Shared *attached() noexcept {
    Tie &t = tie();
    const int state = t.state.load(std::memory_order_acquire);
    if (state == Attached)
        return t.words;
    if (state == Alone || settings().socket.empty())
        return nullptr;
    const Uncancelled whole;
    const auto until = Clock::now() + std::chrono::nanoseconds(std::min(kPatience, settings().deadline));
    const std::lock_guard<std::mutex> guard(t.first);
    start_both();
    wait_for_the_first_try(until);
    return attached_already();
}

void ring() noexcept {
    tie().bell.fetch_add(1);
    futex_wake(&tie().bell);
}

std::uint64_t say(Shared *shared, What what, std::uint64_t identity, std::uint64_t ticket) noexcept {
    const std::uint64_t time = now();
    const std::uint64_t at = shared->head.fetch_add(1, std::memory_order_relaxed);
    Record &one = shared->records[at & (kRecords - 1)];
    one.sequence.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    one.identity.store(identity, std::memory_order_relaxed);
    one.ticket.store(ticket, std::memory_order_relaxed);
    one.time.store(time, std::memory_order_relaxed);
    one.what.store(std::uint32_t(what), std::memory_order_relaxed);
    one.sequence.store(at + 1, std::memory_order_release);
    return time;
}

void say_name(Shared *shared, std::uint64_t identity, const char *name) noexcept {
    const std::lock_guard<std::mutex> guard(tie().naming);
    const std::uint64_t at = shared->names_head.load(std::memory_order_relaxed);
    Name &one = shared->names[at & (kNames - 1)];
    one.sequence.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    one.identity.store(identity, std::memory_order_relaxed);
    strncpy(one.text, name, kName - 1);
    one.text[kName - 1] = '\0';
    one.sequence.store(at + 1, std::memory_order_release);
    shared->names_head.store(at + 1, std::memory_order_release);
}

void publish(Shared *shared) noexcept {
    Tie &t = tie();
    const auto guard = soon(t.publishing); // so that the number never goes back
    if (t.ending.load())
        return;
    const std::uint32_t before = t.epoch.load();
    std::uint64_t unready = 0;
    const std::uint64_t done = markers_poll(unready);
    if (before != t.epoch.load() || t.state.load() != Attached || done == shared->completed.load())
        return;
    shared->unready_of.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    shared->unready_at.store(unready, std::memory_order_relaxed);
    shared->unready_of.store(done, std::memory_order_release);
    shared->completed_at.store(now(), std::memory_order_relaxed);
    shared->completed.store(done, std::memory_order_release);
}

} // namespace fikit
