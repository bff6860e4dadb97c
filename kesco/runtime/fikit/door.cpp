#include "door.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

namespace fikit {
namespace {

constexpr std::uint64_t kPatience = 1000000000, kReading = 5000000000; // nanoseconds for a Hello, and to read
constexpr std::size_t kStrangers = 64;                                 // of the daemon's own user
constexpr int kAtOnce = 16;                                            // that come; then other things get their turn

} // namespace

void watch(int poll, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (epoll_ctl(poll, EPOLL_CTL_MOD, fd, &event) != 0)
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

Door::~Door() {
    for (const auto &one : strangers_)
        close(one.first);
}

std::string Door::open(int poll, const std::string &own, const std::string &shared) {
    poll_ = poll;
    std::string why = own_.open(own, 0600);
    if (why.empty() && !shared.empty())
        why = shared_.open(shared, 0666); // who else may come in is decided by SO_PEERCRED
    for (const Listener *one : {&own_, &shared_})
        if (one->fd() >= 0)
            watch(poll_, one->fd(), EPOLLIN);
    return why;
}

std::size_t Door::share(std::size_t all) const {
    return std::max<std::size_t>(all / (users_.size() + 1), 1);
}

bool Door::knows(int fd, Stranger &one) const {
    ucred who{};
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return false;
    const auto listed = users_.find(who.uid);
    if (who.uid != geteuid() && listed == users_.end())
        return false;
    one.user = who.uid, one.pid = who.pid;
    one.cap = who.uid == geteuid() ? cap_ : std::min(cap_, listed->second);
    return true;
}

void Door::make_room(uid_t user) {
    const std::size_t most = user == geteuid() ? kStrangers : share(kStrangers);
    std::size_t many = 0;
    const auto order = [](const Stranger &one) { return std::make_tuple(bool(one.told), one.since); };
    auto first = strangers_.end();
    for (auto one = strangers_.begin(); one != strangers_.end(); ++one) {
        if (one->second.user != user)
            continue;
        ++many;
        if (first == strangers_.end() || order(one->second) < order(first->second))
            first = one;
    }
    if (many >= most)
        drop(first->first);
}

void Door::greet(int listening, std::uint64_t now) {
    for (int come = 0; come < kAtOnce; ++come) {
        const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        Stranger one;
        if (!knows(fd, one)) {
            refuse(fd, Refusal::NotAllowed);
            continue;
        }
        make_room(one.user);
        one.since = now;
        strangers_[fd] = one;
        watch(poll_, fd, EPOLLIN | EPOLLRDHUP);
    }
}

void Door::drop(int fd) {
    strangers_.erase(fd);
    close(fd); // which takes it out of the poll set
}

void Door::refuse(int fd, Refusal why) {
    const Welcome welcome{kMagic, kVersion, std::uint32_t(why), 0};
    if (send(fd, &welcome, sizeof welcome, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        errno = 0; // it is gone already
    drop(fd);
}

const Stranger *Door::hear(int fd) {
    Stranger &one = strangers_.at(fd);
    if (one.told) {
        write(fd, one);
        return nullptr;
    }
    const ssize_t got =
        recv(fd, reinterpret_cast<char *>(&one.hello) + one.got, sizeof one.hello - one.got, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        drop(fd);
        return nullptr;
    }
    one.got += got > 0 ? std::size_t(got) : 0;
    return one.got == sizeof one.hello ? &one : nullptr;
}

void Door::tell(int fd, std::shared_ptr<const std::string> text, std::uint64_t now) {
    Stranger &one = strangers_.at(fd);
    one.told = std::move(text);
    one.since = now;
    watch(poll_, fd, EPOLLOUT);
    write(fd, one);
}

void Door::write(int fd, Stranger &one) {
    const ssize_t sent =
        send(fd, one.told->data() + one.taken, one.told->size() - one.taken, MSG_NOSIGNAL | MSG_DONTWAIT);
    one.taken += sent > 0 ? std::size_t(sent) : 0;
    if (one.taken == one.told->size() || (sent < 0 && errno != EAGAIN && errno != EINTR))
        drop(fd); // it has all of it, or is gone
}

void Door::end_late(std::uint64_t now) {
    for (auto one = strangers_.begin(); one != strangers_.end();) {
        const auto &[fd, who] = *one++;
        if (now > who.since && now - who.since > (who.told ? kReading : kPatience))
            drop(fd);
    }
}

} // namespace fikit
