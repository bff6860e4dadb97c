#include "policy_state.h"

#include "policy_times.h"

#include <algorithm>

namespace kesco::fikit {

void Record::saw(uint64_t value) {
    values[seen++ % kRecent] = value;
    if (relearned)
        learned = times_of(values, std::min(seen, kRecent));
}

void Record::relearn(uint32_t limit) {
    if (relearned || !drifted(limit) || seen < kEnough)
        return;
    relearned = true;
    misses = 0;
    learned = times_of(values, std::min(seen, kRecent));
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

void Costs::put(uint64_t identity, const KescoCost &cost) {
    if (int32_t place = find(identity); place != kUnknown) {
        (*this)[place].cost = cost;
        return;
    }
    if (2 * (known_.size() + 1) > slots_.size()) {
        slots_.assign(std::max<size_t>(16, 2 * slots_.size()), kUnknown);
        for (size_t n = 0; n < known_.size(); ++n)
            slots_[slot_of(known_[n].identity)] = static_cast<int32_t>(n);
    }
    size_t slot = slot_of(identity);
    known_.push_back({identity, cost, {}, {}});
    slots_[slot] = static_cast<int32_t>(known_.size() - 1);
}

void Costs::clear() {
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
