// A daemon that lends: `lender SOCKET PREDICTED_NS FLIGHT_NS FLIGHT_LAUNCHES`.
//
// Each client is lower, and has a credit from its first wait on. Whoever waits goes on once all its launches have
// ended. Every kernel is taken for PREDICTED_NS. When a client has left it prints what it saw of it: launches on
// credits, waits, how many of these took longer than 60 ms, all launches, those said to have ended, and each change of
// that: [microseconds since the first launch, ended, for how many microseconds before nobody had looked; -1: not
// known].
#include "../../kesco/runtime/fikit/clock.h"
#include "../../kesco/runtime/fikit/futex.h"
#include "../../kesco/runtime/fikit/protocol.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

using namespace fikit;

namespace {

std::uint64_t predicted, flight_ns, flight_launches;

Shared *welcome(int fd) {
    Hello hello;
    if (recv(fd, &hello, sizeof hello, MSG_WAITALL) != ssize_t(sizeof hello) || hello.version != kVersion)
        return nullptr;
    int memory = memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ftruncate(memory, sizeof(Shared)) != 0 || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        return nullptr;
    auto *words = static_cast<Shared *>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    words->beat.store(now());
    words->track.store(std::uint32_t(Track::Each));
    Welcome said{kMagic, kVersion, 0, 1};
    iovec part{&said, sizeof said};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &memory, sizeof memory);
    const bool sent = sendmsg(fd, &message, MSG_NOSIGNAL) == ssize_t(sizeof said);
    close(memory);
    return sent ? words : nullptr;
}

struct Seen {
    std::uint64_t credited = 0, waits = 0, slow = 0, launched = 0, ended = 0, first = 0;
    std::string changes;
};

struct Client {
    Shared &words;
    Seen seen;
    std::uint64_t tail = 0, ticket = 0, since = 0;

    void read(Record &one) {
        const std::uint64_t time = one.time.load();
        const auto what = What(one.what.load());
        if (what == What::Waits) {
            ++seen.waits;
            ticket = one.ticket.load();
            since = time;
            lend(one.identity.load());
            return;
        }
        if (!seen.launched++)
            seen.first = time;
        seen.credited += what == What::Credited;
        if (what == What::Began || what == What::Abandoned) {
            seen.slow += time - since > 60000000;
            ticket = 0;
        }
    }
    void lend(std::uint64_t identity) {
        for (std::size_t attempt = 0; attempt < kPredictedTries; ++attempt) {
            Predicted &one = words.predicted[predicted_slot(identity, attempt)];
            if (one.identity.load() && one.identity.load() != identity)
                continue;
            one.time.store(predicted);
            one.identity.store(identity);
            return;
        }
    }
    void go_on(std::uint64_t time) {
        words.credit_number.fetch_add(1);
        words.credit_flight_ns.store(flight_ns);
        words.credit_launches.store(flight_launches);
        words.credit_until.store(time + 60000000000U);
        words.granted.store(ticket);
        words.grant_word.fetch_add(1);
        futex_wake(&words.grant_word);
        ticket = 0;
    }
    void look() {
        const std::uint64_t time = now(), ended = words.completed.load(), head = words.head.load();
        words.beat.store(time);
        for (; tail != head && words.records[tail & (kRecords - 1)].sequence.load() == tail + 1; ++tail)
            read(words.records[tail & (kRecords - 1)]);
        if (ended != seen.ended && seen.changes.size() < 20000) {
            const std::uint64_t at = words.completed_at.load();
            const long late = words.unready_of.load() == ended ? long(at - words.unready_at.load()) / 1000 : -1;
            seen.changes += (seen.changes.empty() ? "[" : ", [") + std::to_string((at - seen.first) / 1000) + ", " +
                            std::to_string(ended) + ", " + std::to_string(late) + "]";
        }
        seen.ended = ended;
        if (ticket && ended >= seen.launched)
            go_on(time);
    }
};

void serve(int fd) {
    Shared *words = welcome(fd);
    if (!words)
        exit(3);
    Client client{*words, {}};
    char byte;
    while (true) {
        client.look();
        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
            break;
        usleep(1);
    }
    client.look();
    const Seen &s = client.seen;
    printf("{\"credited\": %lu, \"waits\": %lu, \"slow\": %lu, \"launched\": %lu, \"ended\": %lu, \"changes\": [%s]}\n",
           s.credited, s.waits, s.slow, s.launched, s.ended, s.changes.c_str());
    fflush(stdout);
}

} // namespace

int main(int count, char **words) {
    if (count < 5)
        return 2;
    predicted = strtoull(words[2], nullptr, 10), flight_ns = strtoull(words[3], nullptr, 10);
    flight_launches = strtoull(words[4], nullptr, 10);
    common_clock();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 || listen(listening, 8) != 0)
        return 4;
    printf("ready\n");
    fflush(stdout);
    while (true) {
        const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0)
            std::thread(serve, fd).detach();
    }
}
