#include "guest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fikit {

Guest::~Guest() {
    if (words)
        munmap(words, sizeof(Shared));
    if (socket >= 0)
        close(socket);
}

int make_words(Guest &guest) {
    const int fd = memfd_create("kesco-fikit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    // Sealed, so that no client can cut it off under the daemon's feet.
    if (ftruncate(fd, sizeof(Shared)) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        close(fd);
        return -1;
    }
    void *place = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (place == MAP_FAILED) {
        close(fd);
        return -1;
    }
    guest.words = static_cast<Shared *>(place);
    return fd;
}

std::string shown(const char *text, std::size_t most) {
    std::string result;
    for (std::size_t i = 0; i < most && text[i]; ++i) {
        const char one = text[i];
        result += one < ' ' || one > '~' || one == '"' || one == '\\' ? '?' : one;
    }
    return result;
}

void predict(Predicted *table, std::uint64_t identity, std::uint64_t time) {
    for (std::size_t attempt = 0; identity && attempt < kPredictedTries; ++attempt) {
        Predicted &one = table[predicted_slot(identity, attempt)];
        const std::uint64_t there = one.identity.load(std::memory_order_relaxed);
        if (there && there != identity)
            continue;
        if (one.time.load(std::memory_order_relaxed) != time)
            one.time.store(time, std::memory_order_relaxed);
        if (!there)
            one.identity.store(identity, std::memory_order_release);
        return;
    }
}

void publish_credit(Guest &g, const KescoPolicy *policy) {
    KescoCredit credit;
    kesco_policy_credit(policy, g.task, &credit);
    const bool same = credit.number == g.credit.number && credit.flight_ns == g.credit.flight_ns &&
                      credit.unknown_ns == g.credit.unknown_ns;
    if (same && credit.until == g.credit.until)
        return;
    Shared &words = *g.words;
    if (!same && credit.until) {
        words.credit_until.store(0, std::memory_order_release);
        words.credit_number.store(credit.number, std::memory_order_relaxed);
        words.credit_flight_ns.store(credit.flight_ns, std::memory_order_relaxed);
        words.credit_launches.store(credit.flight_launches, std::memory_order_relaxed);
        words.credit_unknown.store(credit.unknown_ns, std::memory_order_relaxed);
    }
    words.credit_until.store(credit.until, std::memory_order_release);
    g.credit = credit;
}

namespace {

void learn_names(Guest &g, Recorder &recorder) {
    const std::uint64_t head = g.words->names_head.load(std::memory_order_acquire);
    if (head - g.names_tail > kNames)
        g.names_tail = head - kNames;
    for (; g.names_tail != head; ++g.names_tail) {
        Name &one = g.words->names[g.names_tail & (kNames - 1)];
        char copy[kName];
        const std::uint64_t before = one.sequence.load(std::memory_order_acquire);
        const std::uint64_t identity = one.identity.load(std::memory_order_relaxed);
        memcpy(copy, one.text, sizeof copy);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (before == g.names_tail + 1 && one.sequence.load(std::memory_order_relaxed) == before &&
            (g.names.size() < 4096 || g.names.count(identity)))
            recorder.named(g.task, identity, g.names[identity] = shown(copy, sizeof copy));
    }
}

struct Said {
    std::uint64_t identity, ticket, time;
    What what;
};

enum class Read { Whole, Overwritten, NotYet };

Read read_record(const Guest &g, Said &said) {
    Record &one = g.words->records[g.tail & (kRecords - 1)];
    const std::uint64_t before = one.sequence.load(std::memory_order_acquire);
    said = {one.identity.load(std::memory_order_relaxed), one.ticket.load(std::memory_order_relaxed),
            one.time.load(std::memory_order_relaxed), What(one.what.load(std::memory_order_relaxed))};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before == g.tail + 1 && one.sequence.load(std::memory_order_relaxed) == before)
        return Read::Whole;
    return before > g.tail + 1 ? Read::Overwritten : Read::NotYet;
}

// When the last of so many ended launches was seen not to have; 0: nobody knows, as where a later report is under way.
std::uint64_t unready(const Shared &words, std::uint64_t completed) {
    const std::uint64_t before = words.unready_of.load(std::memory_order_acquire);
    const std::uint64_t at = words.unready_at.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    return before == completed && words.unready_of.load(std::memory_order_relaxed) == completed ? at : 0;
}

void ended(Guest &g, KescoPolicy *policy, Recorder &recorder, std::uint64_t completed, std::uint64_t unready_at,
           std::uint64_t at) {
    const std::uint64_t done = completed > g.lost ? completed - g.lost : 0;
    kesco_policy_done_late(policy, at, g.task, done, at - std::min(unready_at, at));
    recorder.done(at, g.task, done);
}

void tell(Guest &g, KescoPolicy *policy, Recorder &recorder, const Said &said, std::uint64_t time) {
    switch (said.what) {
    case What::Passed:
        kesco_policy_passed(policy, time, g.task, said.identity);
        recorder.passed(time, g.task, said.identity);
        break;
    case What::Waits:
        if (kesco_policy_waits(policy, time, g.task, said.identity, said.ticket) == 0) {
            g.waiting = said.ticket;
            g.waiting_identity = said.identity;
            recorder.waits(time, g.task, said.ticket, said.identity);
            predict(g.words->predicted, said.identity, kesco_policy_predicts(policy, g.task, said.identity));
        }
        break;
    case What::Credited:
        kesco_policy_credited(policy, time, g.task, said.identity, said.ticket);
        recorder.credited(time, g.task, said.identity);
        predict(g.words->predicted, said.identity, kesco_policy_predicts(policy, g.task, said.identity));
        break;
    case What::Began:
        kesco_policy_begins(policy, time, g.task, said.ticket);
        recorder.began(time, g.task, said.ticket);
        break;
    case What::Abandoned:
        kesco_policy_abandoned(policy, time, g.task, said.ticket);
        recorder.abandoned(time, g.task, said.ticket);
        g.waiting = g.waiting == said.ticket ? 0 : g.waiting;
        break;
    case What::Ended:
        ended(g, policy, recorder, said.ticket, unready(*g.words, said.ticket), time);
        kesco_policy_waited(policy, time, g.task, said.identity);
        break;
    }
}

} // namespace

bool listen(Guest &g, KescoPolicy *policy, Recorder &recorder, std::uint64_t now) {
    // First what has ended, then what was launched: all that has ended is then known to have been launched.
    const std::uint64_t completed = g.words->completed.load(std::memory_order_acquire);
    const std::uint64_t completed_at = g.words->completed_at.load(std::memory_order_relaxed);
    const std::uint64_t unready_at = unready(*g.words, completed);
    const std::uint64_t head = g.words->head.load(std::memory_order_acquire);
    bool heard = false;
    if (head - g.tail > kRecords) {
        g.lost += head - kRecords - g.tail;
        g.tail = head - kRecords;
    }
    learn_names(g, recorder);
    while (g.tail != head) {
        Said said;
        const Read how = read_record(g, said);
        if (how == Read::NotYet) { // by a thread that is just writing, or that was ended while it did
            g.stuck_at = g.stuck_at ? g.stuck_at : now;
            if (now - g.stuck_at < 10000000)
                break;
        }
        g.stuck_at = 0;
        ++g.tail;
        heard = true;
        if (how != Read::Whole) {
            ++g.lost;
            continue;
        }
        tell(g, policy, recorder, said, std::min(said.time, now));
    }
    if (completed != g.completed) {
        g.completed = completed;
        heard = true;
        ended(g, policy, recorder, completed, unready_at, std::min(completed_at, now));
    }
    return heard;
}

} // namespace fikit
