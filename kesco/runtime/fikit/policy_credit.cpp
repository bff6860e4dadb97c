// Who fills the acting task's gap without a word for each launch, and where nothing is predicted, what is risked.
//
// In a gap a credit goes to one task: the one that was granted something last, while nobody of its priority waits
// beside it; and to who acts in place of another one. It ends as soon as a decision says so; what was launched on it
// until then is counted when its client tells it.
#include "policy_core.h"
#include "policy_times.h"

#include <algorithm>

using kesco::fikit::Credit;
using kesco::fikit::Known;
using kesco::fikit::kUnknown;
using kesco::fikit::Ticket;

uint64_t KescoPolicy::predicts(uint32_t number, uint64_t identity) const {
    const Task *task = active(number);
    const int32_t cost = task && identity && predicts() ? task->costs.find(identity) : kUnknown;
    return task && believed(*task, cost) ? std::max<uint64_t>(predicted(*task, {0, identity, 0, 0, cost}), 1) : 0;
}

// Beside a task that is busy nothing has to be done in time. What is not known is bounded by its number.
uint64_t KescoPolicy::unknown_on_credit(const Task &task) const {
    return beside() && !task.credit.fill ? unknown_beside() : 0;
}

int KescoPolicy::credited(uint64_t at, uint32_t number, uint64_t identity, uint64_t credit) {
    Task *task = active(number);
    if (!task)
        return -1;
    if (!credit || credit != task->credit.number)
        return passed(at, number, identity);
    clock(at);
    came_back(number);
    const Ticket ticket = {0, identity, now_, 0, identity ? task->costs.find(identity) : kUnknown};
    ++task->state.credited;
    task->credit.used = now_;
    if (task->credit.fill) {
        task->state.filled_ns += predicted(*task, ticket);
        filler_ = task;
    }
    launch(*task, ticket.cost, occupied(*task, ticket), task->credit.fill);
    bool late = false; // a higher task came back before this was known
    for (size_t above = rank_of(number); above-- > 0;) {
        Task &high = at_rank(above);
        if (high.idle) {
            high.wanted = std::min(high.wanted, predicted(*task, ticket) + settings.switch_ns);
            continue;
        }
        if (above == 0 && beside())
            continue;
        late = true;
        if (!high.harmed) {
            high.harmed = true;
            high.harmed_since = now_;
            ++harmed_;
            ++high.state.harms;
        }
    }
    task->state.overruns += late && task->credit.fill;
    return 0;
}

// What was promised of the gap, or else what is risked: no longer than it has lasted already, and no more than has
// room in half of the gaps that last as long.
KescoPolicy::Filling KescoPolicy::filling(size_t acting) {
    Task &task = at_rank(acting);
    if (task.promise.made && task.promise.believed) {
        const uint64_t until = task.promise.until;
        return {KESCO_GRANT_FILL, until > settings.guard_ns ? until - settings.guard_ns : 0, settings.inflight_ns};
    }
    const uint64_t lasted = now_ - task.idle_since;
    if (settings.kind != KESCO_QUANTILE || !settings.react_permille || lasted < settings.react_ns || !paid(acting + 1))
        return {};
    uint64_t until = now_ + lasted;
    if (Known *known = task.gap(); known && known->cost->gap.count && !known->gap.drifted(settings.drift_limit)) {
        const KescoTimes &gaps = known->gap.times(known->cost->gap);
        const uint64_t beyond = outlasted(task);
        if (kesco::fikit::next_knot(gaps, beyond) != KESCO_NEVER)
            until = std::min(until, task.idle_since + beyond + kesco::fikit::left_after(gaps, beyond, 50));
    }
    return {KESCO_GRANT_REACT, until, std::min(settings.inflight_ns, settings.react_ns)};
}

// Whether what the first `ranks` tasks have lost is a small part of the time since then.
bool KescoPolicy::paid(size_t ranks) const {
    for (size_t rank = 0; rank < ranks; ++rank)
        if (tasks[order_[rank]]->paid_at > now_)
            return false;
    return true;
}

// The gap could be filled with this: for who asks afterwards how much of what could be filled was.
void KescoPolicy::want(size_t acting) {
    Task &task = at_rank(acting);
    for (size_t rank = acting + 1; rank < active_; ++rank)
        if (at_rank(rank).state.waiting)
            task.wanted =
                std::min(task.wanted, predicted(at_rank(rank), at_rank(rank).tickets[0]) + settings.switch_ns);
}

void KescoPolicy::settle_credits(size_t acting) {
    credits_ = false;
    if (!settings.credit_ns || !predicts())
        return;
    for (size_t rank = 0; rank < active_; ++rank) {
        Task &task = at_rank(rank);
        Credit &credit = task.credit;
        const bool fill = rank > acting;
        uint64_t until = 0;
        if (keeps_credit(rank, acting))
            until = fill ? filling_.until : now_ + settings.credit_ns;
        if (until && (!credit.until || credit.fill != fill))
            ++credit.number;
        credit.until = until;
        credit.fill = fill;
        credit.flight_ns = fill ? filling_.flight_ns : free_flight();
        credits_ |= until != 0;
    }
}

bool KescoPolicy::keeps_credit(size_t rank, size_t acting) {
    const Task &task = at_rank(rank);
    const bool late = overlong(settings.threshold_ns) && !(rank == acting && beside()); // nobody waits for its end
    if (rank == 0 || rank < acting || acting >= active_ || late || task.unknown || !task.credit.used ||
        now_ - task.credit.used > settings.credit_ns)
        return false;
    if (rank == acting)
        return !harm_spent(acting);
    if (filler_ != &task || filling_.until <= now_ || task.credit.used < at_rank(acting).idle_since ||
        flights_ != task.in_flight())
        return false;
    for (size_t other = acting + 1; other < active_; ++other)
        if (other != rank && at_rank(other).state.waiting && at_rank(other).state.priority >= task.state.priority)
            return false;
    return true;
}

uint64_t KescoPolicy::when_credits_change(size_t acting) {
    uint64_t wake = acting < active_ && at_rank(acting).idle ? next_change(acting) : KESCO_NEVER;
    for (size_t rank = 1; rank < active_; ++rank) {
        const Credit &credit = at_rank(rank).credit;
        if (!credit.until)
            continue;
        wake = std::min(wake, credit.used + settings.credit_ns + 1);
        if (!credit.fill)
            wake = std::min(wake, now_ + settings.credit_ns / 2 + 1);
    }
    return wake;
}
