#include "credit.h"

#include "attachment.h"
#include "clock.h"
#include "policy.h"

#include <algorithm>

namespace fikit {
namespace {

constexpr std::uint64_t kAhead = 64; // launches that are remembered; a power of two

struct Ahead {
    std::uint64_t launch; // its number, as `markers_made` counts
    std::uint64_t predicted;
};

// What this process launched since it was held last, in order. Kept under the gate.
struct Book {
    Ahead ring[kAhead];
    std::uint64_t first = 0, next = 0;
    std::uint64_t outstanding = 0; // predicted time of what is in it
    std::uint64_t unknown = 0;     // launches in it that nothing is known of
    std::uint64_t latest = 0;      // the number of the last launch
    std::uint32_t epoch = 0;       // of the daemon
};
Book book;

void forget_ended() {
    if (book.epoch != epoch())
        book = Book{};
    book.epoch = epoch();
    const std::uint64_t ended = markers_ended();
    for (; book.first != book.next && book.ring[book.first % kAhead].launch <= ended; ++book.first) {
        const Ahead &one = book.ring[book.first % kAhead];
        book.outstanding -= one.predicted;
        book.unknown -= one.predicted == 0;
    }
}

void remember(std::uint64_t predicted) {
    if (book.next - book.first == kAhead)
        return; // then there are more launches than are known here, and no credit is taken
    book.latest = std::max(book.latest, markers_made()) + 1; // another thread may be about to launch as well
    book.ring[book.next++ % kAhead] = {book.latest, predicted};
    book.outstanding += predicted;
    book.unknown += predicted == 0;
}

std::uint64_t taken_for(const Shared *shared, std::uint64_t identity) {
    const std::uint64_t known = identity ? prediction(*shared, identity) : 0;
    return known ? known : shared->credit_unknown.load(std::memory_order_relaxed);
}

bool allowed(const Shared *shared, std::uint64_t until, std::uint64_t predicted) {
    forget_ended();
    const std::uint64_t many = book.next - book.first;
    if (book.unknown || many == kAhead || markers_made() - markers_ended() > many)
        return false;
    const KescoCredit credit = {1, until, shared->credit_flight_ns.load(std::memory_order_relaxed),
                                shared->credit_launches.load(std::memory_order_relaxed), 0};
    return kesco_credit_allows(&credit, now(), book.outstanding, many, predicted) != 0;
}

} // namespace

std::uint64_t take_credit(Shared *shared, std::uint64_t identity, std::uint64_t &predicted) noexcept {
    if (!shared->credit_until.load(std::memory_order_acquire))
        return 0;
    predicted = taken_for(shared, identity);
    if (!predicted)
        return 0;
    bool good = allowed(shared, shared->credit_until.load(std::memory_order_acquire), predicted);
    if (!good && book.next != book.first) {
        publish(shared); // something may have ended since it was last asked
        good = allowed(shared, shared->credit_until.load(std::memory_order_acquire), predicted);
    }
    const std::uint64_t number = good ? shared->credit_number.load(std::memory_order_relaxed) : 0;
    if (number)
        remember(predicted);
    return number;
}

Step step_of(const Shared *shared) noexcept {
    return {shared->credit_flight_ns.load(std::memory_order_relaxed) / 4,
            shared->credit_launches.load(std::memory_order_relaxed) / 4};
}

void launched_by_grant(const Shared *shared, std::uint64_t identity) noexcept {
    forget_ended();
    remember(taken_for(shared, identity));
}

} // namespace fikit
