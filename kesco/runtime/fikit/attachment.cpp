#include "attachment.h"

#include "driver.h"
#include "futex.h"
#include "markers.h"
#include "protocol.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace fikit {
namespace {

enum State : int { Fresh, Attached, Alone };

constexpr long kPatience = 300; // milliseconds for a daemon's answer
constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kNowAndThen = 200000; // between looks at what is of little interest
constexpr std::uint64_t kOften = 50000;       // where some launches on credits have no event
constexpr std::uint64_t kSettle = 100000000;  // what has no event of its own has ended so long after it was launched

struct Tie {
    std::atomic<int> state{Fresh};
    std::atomic<int> socket{-1};
    std::atomic<std::uint32_t> epoch{1};
    std::atomic<std::uint64_t> tickets{0};
    std::mutex first; // one thread attaches
    bool attendant = false;
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

// A socket to the daemon with its Welcome read, or -1. `memory` is the descriptor of the shared words.
int greet(int *memory) {
    const Settings &s = settings();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (s.socket.size() >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, s.socket.c_str(), s.socket.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const timeval patience{0, kPatience * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    Hello hello{kMagic, kVersion, std::uint32_t(Ask::Attach), s.priority, {}, {}};
    strncpy(hello.task, s.task.c_str(), sizeof hello.task - 1);
    strncpy(hello.name, program_invocation_short_name, sizeof hello.name - 1);
    Welcome welcome{};
    iovec part{&welcome, sizeof welcome};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    *memory = -1;
    bool good = connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
                send(fd, &hello, sizeof hello, MSG_NOSIGNAL) == ssize_t(sizeof hello) &&
                recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == ssize_t(sizeof welcome);
    if (good)
        for (cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
            if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS)
                memcpy(memory, CMSG_DATA(one), sizeof *memory);
    good = good && welcome.magic == kMagic && welcome.version == kVersion && !welcome.error && *memory >= 0;
    if (good)
        return fd;
    if (*memory >= 0)
        close(*memory);
    close(fd);
    return -1;
}

// Whether there is a daemon now. Called by one thread at a time.
bool attach() {
    Tie &t = tie();
    int memory = -1;
    const int fd = greet(&memory);
    if (fd < 0)
        return false;
    void *place =
        mmap(t.words, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | (t.words ? MAP_FIXED : 0), memory, 0);
    close(memory);
    if (place == MAP_FAILED) {
        close(fd);
        return false;
    }
    t.words = static_cast<Shared *>(place);
    t.tickets.store(0);
    markers_reset();
    t.epoch.fetch_add(1);
    t.socket.store(fd);
    t.state.store(Attached, std::memory_order_release);
    return true;
}

void detach() {
    Tie &t = tie();
    t.state.store(Alone, std::memory_order_release);
    t.epoch.fetch_add(1);
    const int fd = t.socket.exchange(-1);
    if (fd >= 0)
        close(fd);
    futex_wake(&t.words->grant_word); // whoever waits sees that it is alone
}

void nap(std::uint64_t nanoseconds) {
    const timespec time{time_t(nanoseconds / kSecond), long(nanoseconds % kSecond)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

// Waits for the daemon's byte or its end; false at its end.
bool listen_for(int milliseconds) {
    pollfd one{tie().socket.load(), POLLIN, 0};
    if (poll(&one, 1, milliseconds) <= 0)
        return true;
    char bytes[64];
    const ssize_t got = recv(one.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

// Follows what is under way until there is nothing, or nobody wants to know; false when the daemon is gone. The driver
// is asked where the answer can be that all has ended, and else only now and then: it has a lock that launches take.
bool follow(Shared *shared) {
    std::uint64_t last_pending = now(), last_look = last_pending, last_launch = last_pending, asked = 0, head = 0;
    while (!tie().ending.load() && shared->track.load(std::memory_order_relaxed)) {
        const std::uint64_t time = now();
        const bool held = Track(shared->track.load(std::memory_order_relaxed)) == Track::Each;
        if (time - asked >= (held ? kOften : kNowAndThen) || markers_tell()) {
            publish(shared);
            asked = time;
        }
        if (markers_pending())
            last_pending = time;
        if (const std::uint64_t seen = shared->head.load(std::memory_order_relaxed); seen != head)
            head = seen, last_launch = time;
        else if (time - last_launch > kSettle)
            markers_settle();
        const std::uint64_t idle = time - last_pending;
        if (time - last_look > 20000000) {
            last_look = time;
            if (!listen_for(0))
                return false;
        }
        const bool soon = held && markers_pending() && time - last_launch < 2000000; // an event, behind what has none
        nap(idle >= kSecond ? 2000000 : idle < 2000000 && markers_out() ? 15000 : soon ? kOften : kNowAndThen);
    }
    return true;
}

void *attend(void *) {
    Tie &t = tie();
    prctl(PR_SET_TIMERSLACK, 1000UL);
    pthread_setname_np(pthread_self(), "kesco-fikit");
    std::uint64_t wait = kSecond / 10;
    while (!t.ending.load()) {
        if (t.state.load() != Attached) {
            nap(wait);
            wait = std::min<std::uint64_t>(wait * 2, kSecond / 2);
            if (!t.ending.load() && attach())
                wait = kSecond / 10;
            continue;
        }
        if (!listen_for(t.words->track.load() ? 0 : 100) || !follow(t.words))
            detach();
    }
    return nullptr;
}

// Before the driver's own end: once this returns, the attendant does not enter the driver any more.
void end() {
    Tie &t = tie();
    t.ending.store(true);
    for (int tries = 0; tries < 50; ++tries, nap(kSecond / 1000))
        if (t.publishing.try_lock())
            return t.publishing.unlock();
}

// Starts the attendant with all signals blocked, so that the program's handlers never run on it.
void start_attendant() {
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, attend, nullptr) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void in_child() {
    Tie &t = tie();
    const int fd = t.socket.load();
    Shared *words = t.words;
    const std::uint32_t epoch = t.epoch.load();
    new (&t) Tie;
    t.epoch.store(epoch + 1);
    t.words = words; // the parent's; nothing is written there before another memory is in its place
    if (fd >= 0)
        close(fd);
    markers_forked();
    reopen_locks();
}

} // namespace

const Settings &settings() noexcept {
    static const Settings &one = *new Settings(read_settings());
    return one;
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
    const std::lock_guard<std::mutex> guard(t.first);
    if (!t.attendant) {
        t.attendant = true;
        static std::once_flag once;
        std::call_once(once, [] {
            pthread_atfork(nullptr, nullptr, in_child);
            atexit(end);
        });
        if (!attach())
            t.state.store(Alone);
        start_attendant();
    }
    return t.state.load() == Attached ? t.words : nullptr;
}

void ring() noexcept {
    const int fd = tie().socket.load();
    if (fd >= 0 && send(fd, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return; // full: the daemon has enough to read; gone: the attendant will notice
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
