#include "policy_state.h"

#include "policy_times.h"

#include <algorithm>
#include <new>

namespace kesco::fikit {

void Record::saw(uint64_t value) {
    if (!seen_)
        seen_.reset(new (std::nothrow) Seen);
    if (!seen_) // without memory nothing is learned
        return;
    seen_->values[seen_->many++ % kRecent] = value;
    if (relearned_)
        seen_->learned = times_of(seen_->values, std::min(seen_->many, kRecent));
}

void Record::relearn(uint32_t limit) {
    if (relearned_ || !drifted(limit) || !seen_ || seen_->many < kEnough)
        return;
    relearned_ = true;
    misses_ = 0;
    seen_->learned = times_of(seen_->values, std::min(seen_->many, kRecent));
}

size_t Costs::slot_of(uint64_t identity) const {
    size_t mask = slots_.size() - 1;
    size_t slot = (identity * 0x9E3779B97F4A7C15ULL >> 32) & mask; // Fibonacci hashing: identities may be small numbers
    while (slots_[slot] != kUnknown && (*this)[slots_[slot]].identity != identity)
        slot = (slot + 1) & mask;
    return slot;
}

int32_t Costs::find(uint64_t identity) const {
    return slots_.empty() ? kUnknown : slots_[slot_of(identity)];
}

void Costs::make_room(size_t count) {
    size_t size = std::max<size_t>(16, slots_.size());
    while (2 * count > size)
        size *= 2;
    if (size == slots_.size())
        return;
    slots_.assign(size, kUnknown);
    for (size_t n = 0; n < known_.size(); ++n)
        slots_[slot_of(known_[n].identity)] = static_cast<int32_t>(n);
}

void Costs::set(uint64_t identity, const KescoCost *cost) {
    if (int32_t place = find(identity); place != kUnknown) {
        (*this)[place].cost = cost;
        return;
    }
    make_room(known_.size() + 1);
    size_t slot = slot_of(identity);
    known_.push_back({identity, cost, {}, {}});
    slots_[slot] = static_cast<int32_t>(known_.size() - 1);
}

void Costs::put(uint64_t identity, const KescoCost &cost) {
    set(identity, &own_.emplace_back(cost));
}

void Costs::borrow(const KescoKernel *kernels, size_t count) {
    known_.reserve(known_.size() + count);
    make_room(known_.size() + count);
    for (size_t n = 0; n < count; ++n)
        set(kernels[n].identity, &kernels[n].cost);
}

void Costs::clear() {
    own_.clear();
    known_.clear();
    slots_.clear();
}

Known *Task::gap() {
    int32_t place = state.launched ? last : costs.find(0); // before its first launch: the gap after its arrival
    return place == kUnknown ? nullptr : &costs[place];
}

Flight *Task::granted(uint64_t ticket) {
    const uint64_t many = std::min<uint64_t>(in_flight(), KESCO_POLICY_TICKETS);
    for (uint64_t back = 1; ticket && back <= many; ++back)
        if (Flight &one = flight(state.launched - back); one.ticket == ticket)
            return &one;
    return nullptr;
}

void Task::begin(const Flight &launched) {
    if (in_flight() >= KESCO_POLICY_FLIGHT)
        forget(state.launched - KESCO_POLICY_FLIGHT);
    flight(state.launched) = launched;
    predicted += launched.predicted;
    unknown += launched.unknown;
    fills += launched.fill;
    ++state.launched;
    state.unknown += launched.cost == kUnknown;
    last = launched.cost;
}

void Task::end() {
    if (in_flight() <= KESCO_POLICY_FLIGHT)
        forget(state.done);
    ++state.done;
}

void Task::forget(uint64_t number) {
    Flight &gone = flight(number);
    predicted -= gone.predicted;
    unknown -= gone.unknown;
    fills -= gone.fill;
    gone = {};
}

void Task::drop_ticket(uint32_t place, uint64_t now) {
    uint64_t waited = now - tickets[place].since;
    state.waited_ns += waited;
    state.longest_ns = std::max(state.longest_ns, waited);
    std::move(tickets + place + 1, tickets + state.waiting, tickets + place);
    --state.waiting;
    if (state.waiting == 0)
        state.held_reason = KESCO_NOT_HELD;
}

} // namespace kesco::fikit
