#include "greeting.h"

#include "clock.h"
#include "protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace fikit {
namespace {

constexpr timeval kPatience{5, 0};                // for an answer: a daemon may have a long profile to read
constexpr std::uint64_t kSameClock = 10000000000; // so far apart one clock may seem while an answer is under way

// A socket on which a daemon was asked to attach, or -1.
int ask(const Settings &s) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (s.socket.size() >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, s.socket.c_str(), s.socket.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    Hello hello{kMagic, kVersion, std::uint32_t(Ask::Attach), s.priority, {}, {}};
    strncpy(hello.task, s.task.c_str(), sizeof hello.task - 1);
    strncpy(hello.name, program_invocation_short_name, sizeof hello.name - 1);
    if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
        send(fd, &hello, sizeof hello, MSG_NOSIGNAL) == ssize_t(sizeof hello))
        return fd;
    close(fd);
    return -1;
}

// The descriptor that comes with a good Welcome, or -1.
int answer(int fd) {
    Welcome welcome{};
    iovec part{&welcome, sizeof welcome};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = CMSG_LEN(sizeof(int)); // room for one: others are closed
    const bool whole = recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == ssize_t(sizeof welcome);
    int memory = -1;
    for (cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS)
            memcpy(&memory, CMSG_DATA(one), sizeof memory);
    if (whole && welcome.magic == kMagic && welcome.version == kVersion && !welcome.error)
        return memory;
    if (memory >= 0)
        close(memory);
    return -1;
}

// The shared words, or null: memory that is too small or could be cut off would end this process when it is read.
Shared *map(int memory) {
    struct stat found {};
    const int seals = fcntl(memory, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memory, &found) != 0 || found.st_size < off_t(sizeof(Shared)))
        return nullptr;
    void *place = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    return place == MAP_FAILED ? nullptr : static_cast<Shared *>(place);
}

// The daemon has just written its time. Where that is another one, no time of its means anything here.
bool same_clock(const Shared &words) {
    const std::uint64_t here = now(), there = words.beat.load(std::memory_order_relaxed);
    return (here < there ? there - here : here - there) < kSameClock;
}

} // namespace

Found greet(const Settings &settings) noexcept {
    const int fd = ask(settings), memory = fd < 0 ? -1 : answer(fd);
    Shared *words = memory < 0 ? nullptr : map(memory);
    if (memory >= 0)
        close(memory);
    if (words && !same_clock(*words)) {
        munmap(words, sizeof(Shared));
        words = nullptr;
    }
    if (words)
        return {fd, words};
    if (fd >= 0)
        close(fd);
    return {-1, nullptr};
}

} // namespace fikit
