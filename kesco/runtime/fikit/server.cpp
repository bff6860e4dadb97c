// The daemon's loop: sockets, then shared words, then the policy, then grants. It sleeps while nobody waits.
#include "server.h"

#include "clock.h"
#include "futex.h"
#include "policy_times.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

namespace fikit {
namespace {

constexpr int kBeat = 20;                       // milliseconds: a sleeping daemon shows that it lives
constexpr std::uint64_t kOften = 500000;        // nanoseconds: sockets are looked at while something waits
constexpr std::uint64_t kLinger = 1000000;      // who waited often does so again soon, and need not wake anybody then
constexpr std::uint64_t kPatience = 1000000000; // for a Hello
constexpr std::size_t kStrangers = 64;

// Whether a gap behind this kernel may be one to fill, in one of twenty cases.
bool worth_watching(const KescoTimes &gap, std::uint64_t threshold) {
    return gap.count && std::max(gap.mean, kesco::fikit::quantile(gap, 95)) >= threshold / 2;
}

void watch(int poll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = fd;
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

} // namespace

Server::Server(ServerSettings settings) : settings_(std::move(settings)), guests_(KESCO_POLICY_TASKS) {}

Server::~Server() {
    guests_.clear();
    for (const auto &one : strangers_)
        close(one.first);
    if (listening_ >= 0) {
        unlink(settings_.socket.c_str());
        close(listening_);
    }
    if (poll_ >= 0)
        close(poll_);
    if (lock_ >= 0)
        close(lock_);
    if (policy_)
        kesco_policy_free(policy_);
}

std::string Server::open() {
    policy_ = kesco_policy_new(&settings_.policy);
    if (!policy_)
        return "the policy's settings make no sense";
    if (!settings_.costs.empty()) {
        std::string why;
        auto read = kesco::fikit::read_costs(settings_.costs, why);
        if (!read)
            return why;
        costs_ = std::move(*read);
    }
    if (!settings_.record.empty() && !recorder_.open(settings_.record))
        return settings_.record + ": " + strerror(errno);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (settings_.socket.size() >= sizeof address.sun_path)
        return "the socket's path is too long: " + settings_.socket;
    strcpy(address.sun_path, settings_.socket.c_str());
    // Whoever has the lock owns the name: what lies there is a dead daemon's.
    lock_ = ::open((settings_.socket + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) != 0)
        return lock_ < 0 ? settings_.socket + ".lock: " + strerror(errno) : "another daemon serves " + settings_.socket;
    unlink(settings_.socket.c_str());
    listening_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t before = umask(0177);
    const bool bound = bind(listening_, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
    umask(before);
    if (!bound || ::listen(listening_, 64) != 0) {
        const std::string why = settings_.socket + ": " + strerror(errno);
        close(listening_);
        listening_ = -1;
        return why;
    }
    if (!settings_.users.empty())
        chmod(settings_.socket.c_str(), 0666); // who else may come in is decided by SO_PEERCRED
    poll_ = epoll_create1(EPOLL_CLOEXEC);
    watch(poll_, listening_);
    prctl(PR_SET_TIMERSLACK, 1000UL);
    return "";
}

// ---- who comes and goes ---------------------------------------------------------------------------------------------

void Server::greet(std::uint64_t now) {
    while (true) {
        const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (strangers_.size() >= kStrangers) {
            close(fd);
            continue;
        }
        strangers_[fd] = now;
        watch(poll_, fd);
    }
}

void Server::drop(int fd) {
    strangers_.erase(fd);
    close(fd); // which takes it out of the poll set
}

void Server::refuse(int fd, Refusal why) {
    const Welcome welcome{kMagic, kVersion, std::uint32_t(why), 0};
    if (send(fd, &welcome, sizeof welcome, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        errno = 0; // it is gone already
    drop(fd);
}

Refusal Server::admit(int fd, const Hello &hello, std::uint64_t now, std::unique_ptr<Guest> &guest, int &memory) {
    ucred who{};
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return Refusal::NotAllowed;
    int cap = settings_.priority_cap;
    if (who.uid != geteuid()) {
        const auto found = settings_.users.find(who.uid);
        if (found == settings_.users.end())
            return Refusal::NotAllowed;
        cap = std::min(cap, found->second);
    }
    std::uint32_t task = 0;
    while (task < guests_.size() && guests_[task])
        ++task;
    if (task == guests_.size())
        return Refusal::Full;
    guest = std::make_unique<Guest>();
    memory = make_words(*guest);
    if (memory < 0)
        return Refusal::NoMemory;
    guest->task = task;
    guest->pid = who.pid;
    guest->user = who.uid;
    guest->priority = std::min(std::max(hello.priority, 0), cap);
    guest->key = shown(hello.task, sizeof hello.task);
    guest->name = shown(hello.name, sizeof hello.name);
    guest->since = now;
    guest->words->beat.store(now);
    return Refusal::None;
}

void Server::answer(int fd, const Hello &hello, std::uint64_t now) {
    if (hello.magic != kMagic || hello.version != kVersion)
        return refuse(fd, Refusal::Version);
    if (hello.ask == std::uint32_t(Ask::Status)) {
        const std::string text = status(now);
        fcntl(fd, F_SETFL, 0);
        const timeval patience{0, 100000};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0)
            errno = 0; // who asked is gone
        return drop(fd);
    }
    std::unique_ptr<Guest> guest;
    int memory = -1;
    if (const Refusal why = admit(fd, hello, now, guest, memory); why != Refusal::None)
        return refuse(fd, why);
    kesco_policy_task_arrives(policy_, now, guest->task, guest->priority);
    if (const auto found = costs_.find(guest->key); found != costs_.end())
        for (const auto &one : found->second) {
            kesco_policy_cost(policy_, guest->task, one.first, &one.second);
            predict(*guest, policy_, one.first);
            if (worth_watching(one.second.gap, settings_.policy.threshold_ns))
                guest->words->worth[worth_word(one.first)].fetch_or(worth_bit(one.first), std::memory_order_relaxed);
        }
    recorder_.came(now, guest->task, guest->priority, long(guest->pid), guest->name);
    const std::uint32_t task = guest->task;
    guests_[task] = std::move(guest);
    ++present_;
    publish(now); // before it can look: the first of all finds an open gate
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
    strangers_.erase(fd);
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
    publish(now);
}

void Server::hear(int fd, std::uint64_t now) {
    if (const auto stranger = strangers_.find(fd); stranger != strangers_.end()) {
        Hello hello{};
        const ssize_t got = recv(fd, &hello, sizeof hello, MSG_DONTWAIT | MSG_PEEK);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return drop(fd);
        if (got < ssize_t(sizeof hello))
            return; // the rest comes, or its time is over
        recv(fd, &hello, sizeof hello, MSG_DONTWAIT);
        return answer(fd, hello, now);
    }
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
    epoll_event found[64];
    const int count = epoll_wait(poll_, found, 64, milliseconds);
    now = milliseconds ? fikit::now() : now;
    for (int i = 0; i < count; ++i)
        found[i].data.fd == listening_ ? greet(now) : hear(found[i].data.fd, now);
    while (true) {
        const auto late = std::find_if(strangers_.begin(), strangers_.end(),
                                       [&](const auto &one) { return now - one.second > kPatience; });
        if (late == strangers_.end())
            break;
        drop(late->first);
    }
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

void Server::publish(std::uint64_t now) {
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

void Server::serve(const volatile int *stop) {
    std::uint64_t last = 0, beat = 0, heard = 0, waited = 0;
    while (!*stop) {
        const std::uint64_t time = now();
        bool busy = look(time);
        busy |= decide(time);
        if (busy || time - beat > 1000000) {
            publish(time);
            beat = time;
        }
        if (busy)
            last = time;
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
}

} // namespace fikit
