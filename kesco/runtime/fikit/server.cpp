// The daemon's loop: sockets, then shared words, then the policy, then grants. It sleeps while nobody waits.
#include "server.h"

#include "clock.h"
#include "futex.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace fikit {
namespace {

constexpr int kBeat = 20;                     // milliseconds: a sleeping daemon shows that it lives
constexpr std::uint64_t kOften = 500000;      // nanoseconds: sockets are looked at while something waits
constexpr std::uint64_t kLinger = 1000000;    // who waited often does so again soon, and need not wake anybody then
constexpr std::uint64_t kSecond = 1000000000; // between looks at its name
constexpr rlim_t kDescriptors = 768;          // clients, strangers of all users, and some

// Without enough of them it would not notice who comes.
bool enough_descriptors() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < kDescriptors)
        return false;
    limit.rlim_cur = std::max(limit.rlim_cur, kDescriptors);
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

} // namespace

Server::Server(ServerSettings settings)
    : settings_(std::move(settings)), door_(settings_.priority_cap, settings_.users), guests_(KESCO_POLICY_TASKS) {}

Server::~Server() {
    guests_.clear();
    if (poll_ >= 0)
        close(poll_);
    if (policy_)
        kesco_policy_free(policy_);
}

std::string Server::open() {
    policy_ = kesco_policy_new(&settings_.policy);
    if (!policy_)
        return "the policy's settings make no sense";
    if (!enough_descriptors())
        return "it needs " + std::to_string(kDescriptors) + " descriptors: see ulimit -n";
    std::string why = settings_.costs.empty() ? "" : profiles_.read(settings_.costs, settings_.policy);
    poll_ = epoll_create1(EPOLL_CLOEXEC);
    if (why.empty())
        why = door_.open(poll_, settings_.socket, settings_.shared);
    if (why.empty() && !settings_.record.empty()) // last: what is there stays where it cannot serve
        why = recorder_.open(settings_.record, settings_.record_bytes);
    prctl(PR_SET_TIMERSLACK, 1000UL);
    return why;
}

// ---- who comes and goes ---------------------------------------------------------------------------------------------

Refusal Server::admit(const Stranger &who, std::uint64_t now, std::unique_ptr<Guest> &guest, int &memory) {
    std::uint32_t task = 0;
    while (task < guests_.size() && guests_[task])
        ++task;
    const auto his = [&](const auto &one) { return one && one->user == who.user; };
    const auto many = std::size_t(std::count_if(guests_.begin(), guests_.end(), his));
    if (task == guests_.size() || (who.user != geteuid() && many >= door_.share(guests_.size())))
        return Refusal::Full;
    guest = std::make_unique<Guest>();
    memory = make_words(*guest);
    if (memory < 0)
        return Refusal::NoMemory;
    guest->task = task;
    guest->pid = who.pid;
    guest->user = who.user;
    guest->priority = std::min(std::max(who.hello.priority, 0), who.cap);
    guest->key = shown(who.hello.task, sizeof who.hello.task);
    guest->name = shown(who.hello.name, sizeof who.hello.name);
    guest->since = now;
    guest->words->beat.store(now);
    return Refusal::None;
}

void Server::answer(int fd, const Stranger &who, std::uint64_t now) {
    if (who.hello.magic != kMagic || who.hello.version != kVersion)
        return door_.refuse(fd, Refusal::Version);
    if (who.hello.ask == std::uint32_t(Ask::Status)) {
        if (!told_ || told_at_ != now) // one text for all that ask at a time
            told_ = std::make_shared<const std::string>(status(now)), told_at_ = now;
        return door_.tell(fd, told_, now);
    }
    std::unique_ptr<Guest> guest;
    int memory = -1;
    if (const Refusal why = admit(who, now, guest, memory); why != Refusal::None)
        return door_.refuse(fd, why);
    door_.let_in(fd);
    kesco_policy_task_arrives(policy_, now, guest->task, guest->priority);
    profiles_.give(*guest, policy_);
    recorder_.came(now, guest->task, guest->priority, long(guest->pid), guest->name);
    const std::uint32_t task = guest->task;
    guests_[task] = std::move(guest);
    ++present_;
    publish(); // before it can look: the first of all finds an open gate
    const Welcome welcome{kMagic, kVersion, 0, guests_[task]->priority};
    iovec part{const_cast<Welcome *>(&welcome), sizeof welcome};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &memory, sizeof memory);
    const bool sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(sizeof welcome);
    close(memory);
    guests_[task]->socket = fd;
    if (!sent)
        leave(*guests_[task], now);
}

void Server::leave(Guest &guest, std::uint64_t now) {
    listen(guest, policy_, recorder_, now);
    kesco_policy_task_leaves(policy_, now, guest.task);
    recorder_.left(now, guest.task);
    --present_;
    guests_[guest.task].reset();
    publish();
}

void Server::hear(int fd, std::uint64_t now) {
    for (auto &guest : guests_)
        if (guest && guest->socket == fd) {
            char bytes[256];
            const ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                leave(*guest, now);
            return;
        }
}

void Server::events(int milliseconds, std::uint64_t now) {
    epoll_event found[16]; // then other things get their turn
    const int count = epoll_wait(poll_, found, 16, milliseconds);
    now = milliseconds ? fikit::now() : now;
    for (int i = 0; i < count; ++i) {
        const int fd = found[i].data.fd;
        if (door_.listens(fd))
            door_.greet(fd, now);
        else if (!door_.has(fd))
            hear(fd, now);
        else if (const Stranger *who = door_.hear(fd))
            answer(fd, Stranger(*who), now);
    }
    door_.end_late(now);
}

// ---- turns ----------------------------------------------------------------------------------------------------------

bool Server::look(std::uint64_t now) {
    bool heard = false;
    for (auto &guest : guests_)
        if (guest && guest->socket >= 0)
            heard |= listen(*guest, policy_, recorder_, now);
    return heard;
}

bool Server::decide(std::uint64_t now) {
    KescoGrant grants[64];
    bool any = false;
    std::size_t count;
    do {
        count = kesco_policy_decide(policy_, now, grants, 64, &wake_);
        for (std::size_t i = 0; i < count; ++i) {
            Guest *guest = grants[i].task < guests_.size() ? guests_[grants[i].task].get() : nullptr;
            if (!guest)
                continue;
            any = true;
            recorder_.granted(now, grants[i], guest->held);
            guest->held = KESCO_NOT_HELD;
            guest->waiting = guest->waiting == grants[i].ticket ? 0 : guest->waiting;
            guest->last = grants[i];
            guest->words->granted.store(grants[i].ticket, std::memory_order_release);
            guest->words->grant_word.fetch_add(1, std::memory_order_release);
            futex_wake(&guest->words->grant_word);
        }
    } while (count == 64);
    for (auto &guest : guests_) {
        if (!guest)
            continue;
        publish_credit(*guest, policy_);
        if (guest->waiting)
            guest->held = kesco_policy_task(policy_, guest->task)->held_reason;
    }
    return any;
}

void Server::publish() {
    const std::uint64_t now = fikit::now(); // a look at many sockets takes its time
    const int holder = kesco_policy_holder(policy_);
    for (auto &guest : guests_) {
        if (!guest)
            continue;
        Shared &words = *guest->words;
        words.beat.store(now, std::memory_order_relaxed);
        words.gate.store(int(guest->task) == holder, std::memory_order_release);
        const auto track = std::uint32_t(this->track(*guest, holder));
        if (words.track.exchange(track) != track)
            futex_wake(&words.track);
    }
}

// The holder's launches cost it nothing but where a gap may follow. All others stop at each launch anyway, and what
// they have on the GPU must be known. Who predicts nothing fills whatever is idle.
Track Server::track(const Guest &guest, int holder) const {
    if (present_ < 2)
        return Track::None;
    return int(guest.task) == holder && settings_.policy.kind >= KESCO_MEAN ? Track::Some : Track::Each;
}

// Whether anybody waits, or goes on without asking until it is told to stop.
bool Server::waiting() const {
    return std::any_of(guests_.begin(), guests_.end(),
                       [](const auto &one) { return one && (one->waiting || one->credit.until); });
}

void Server::sleep_until_asked(std::uint64_t now) {
    for (auto &guest : guests_)
        if (guest)
            guest->words->asleep.store(1);
    std::atomic_thread_fence(std::memory_order_seq_cst); // see `hold` in client.cpp
    look(now);
    events(waiting() ? 0 : kBeat, now);
    for (auto &guest : guests_)
        if (guest)
            guest->words->asleep.store(0);
}

std::string Server::serve(const volatile int *stop) {
    std::uint64_t last = 0, beat = 0, heard = 0, waited = 0, seen = now();
    while (!*stop) {
        const std::uint64_t time = now();
        bool busy = look(time);
        busy |= decide(time);
        if (busy || time - beat > 1000000) {
            publish();
            beat = time;
        }
        if (busy)
            last = time;
        if (time - seen > kSecond) {
            if (!door_.there())
                return settings_.socket + " is no longer this daemon's: another one may serve there";
            seen = time;
        }
        if (waiting())
            waited = time;
        if (time - waited > kLinger) {
            sleep_until_asked(now());
            heard = now();
            continue;
        }
        if (time - heard > kOften) {
            events(0, time);
            heard = time;
        }
        if (time - last < settings_.spin || wake_ < time + 20000) {
            pause();
            continue;
        }
        const timespec nap{0, 10000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    }
    return "";
}

} // namespace fikit
