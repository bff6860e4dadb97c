// Daemons that answer anything, to be linked with greeting.cpp and clock.cpp: `greeting_attack SOCKET COUNT SEED`.
//
// Greets as often, each time a daemon that says something else and hands out other descriptors. What is believed is
// read and written to its end. Ends with 0 where no descriptor and no memory is left over, and prints how many were
// believed.
#include "../../kesco/runtime/fikit/clock.h"
#include "../../kesco/runtime/fikit/greeting.h"
#include "../../kesco/runtime/fikit/protocol.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace fikit;

namespace {

std::mt19937_64 randomly;
std::uint64_t below(std::uint64_t end) {
    return randomly() % end;
}

int memory() {
    const int fd = memfd_create("lies", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const std::size_t sizes[] = {0, 1, 4096, sizeof(Shared) - 1, sizeof(Shared), sizeof(Shared), 2 * sizeof(Shared)};
    const std::uint64_t times[] = {0, 1, now(), now(), now(), now() + 1000000000000, ~std::uint64_t(0)};
    if (ftruncate(fd, off_t(sizes[below(7)])) != 0)
        exit(3);
    const std::uint64_t beat = times[below(7)];
    if (below(4) && pwrite(fd, &beat, sizeof beat, offsetof(Shared, beat)) < 0)
        exit(3);
    const int seals[] = {F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_WRITE, F_SEAL_GROW, 0};
    if (fcntl(fd, F_ADD_SEALS, seals[below(3) ? 0 : below(5)]) != 0)
        exit(3);
    return fd;
}

int descriptor() {
    switch (below(8)) {
    case 0:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case 1:
        return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    case 2:
        return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    default:
        return memory();
    }
}

void answer(int fd) {
    unsigned char bytes[200];
    for (auto &one : bytes)
        one = static_cast<unsigned char>(randomly());
    std::size_t size = below(4) ? sizeof(Welcome) : below(sizeof bytes);
    if (below(4)) {
        Welcome good{kMagic, kVersion, 0, std::int32_t(below(12))};
        memcpy(bytes, &good, sizeof good);
        if (!below(4))
            bytes[below(sizeof good)] ^= static_cast<unsigned char>(1U << below(8));
    }
    int given[4];
    const std::size_t count = below(3) ? 1 : below(5);
    for (std::size_t i = 0; i < count; ++i)
        given[i] = descriptor();
    iovec part{bytes, size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof given)] = {};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    if (count) {
        message.msg_control = control, message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), given, count * sizeof(int));
    }
    if (size && sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
        perror("sendmsg");
    for (std::size_t i = 0; i < count; ++i)
        close(given[i]);
}

int descriptors() {
    int count = 0;
    for (int fd = 0; fd < 1000; ++fd)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

long mappings() {
    FILE *file = fopen("/proc/self/maps", "r");
    long lines = 0;
    for (int one; (one = fgetc(file)) != EOF;)
        lines += one == '\n';
    fclose(file);
    return lines;
}

} // namespace

int main(int count, char **words) {
    if (count < 4)
        return 2;
    Settings settings;
    settings.socket = words[1];
    settings.task = std::string(100, 'x');
    const long times = atol(words[2]);
    randomly.seed(std::uint64_t(atol(words[3])));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 || listen(listening, 8) != 0)
        return 4;
    const int own = descriptors();
    std::thread daemon([&] {
        for (long i = 0; i < times; ++i) {
            const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
            Hello hello;
            if (recv(fd, &hello, sizeof hello, MSG_WAITALL) == ssize_t(sizeof hello))
                answer(fd);
            close(fd);
        }
    });
    long believed = 0, before = 0;
    for (long i = 0; i < times; ++i) {
        before = i == times / 2 ? mappings() : before;
        const Found found = greet(settings);
        if (!found.words)
            continue;
        ++believed;
        for (std::size_t at = 0; at < sizeof(Shared); at += 512)
            ++reinterpret_cast<volatile unsigned char *>(found.words)[at];
        munmap(found.words, sizeof(Shared));
        close(found.socket);
    }
    daemon.join();
    const int left = descriptors();
    const long mapped = mappings();
    printf("%ld believed of %ld, %d descriptors of %d, %ld mappings of %ld\n", believed, times, left, own, mapped,
           before);
    return left != own || mapped > before + 8 || believed == 0 || believed > times / 3;
}
