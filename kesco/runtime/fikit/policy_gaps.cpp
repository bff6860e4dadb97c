// How long an idle task stays idle, and how long a waiting kernel takes: the predictions of each kind of policy.
#include "policy_core.h"
#include "policy_times.h"

#include <algorithm>

using kesco::fikit::Known;
using kesco::fikit::kUnknown;
using kesco::fikit::Ticket;

namespace {

uint64_t sum(uint64_t one, uint64_t other) {
    return one > KESCO_NEVER - other ? KESCO_NEVER : one + other;
}

} // namespace

bool KescoPolicy::believed(const Task &task, int32_t cost) const {
    return cost != kUnknown && task.costs[cost].cost->time.count &&
           !task.costs[cost].time.drifted(settings.drift_limit);
}

uint64_t KescoPolicy::predicted(const Task &task, const Ticket &ticket) const {
    if (settings.kind == KESCO_CLAIRVOYANT && ticket.told)
        return ticket.told;
    if (!believed(task, ticket.cost))
        return beside() ? unknown_beside() : settings.unknown_ns;
    const Known &known = task.costs[ticket.cost];
    const KescoTimes &times = known.time.times(known.cost->time);
    return settings.kind == KESCO_MEAN ? times.mean : kesco::fikit::quantile(times, settings.time_percent);
}

// With the switch of contexts before it.
uint64_t KescoPolicy::occupied(const Task &task, const Ticket &ticket) const {
    return predicted(task, ticket) + (latest_ && latest_ != &task ? settings.switch_ns : 0);
}

// Which gaps a gap is longer than: the report that ends one may be under way for as long as the guard.
uint64_t KescoPolicy::outlasted(const Task &task) const {
    const uint64_t lasted = now_ - task.idle_since;
    return lasted > settings.guard_ns ? lasted - settings.guard_ns : 0;
}

// Makes a promise for an idle task where the profile says that the gap is worth filling. A promise stands until it is
// over; only then what is left of the gap is asked anew, of the gaps that lasted as long. So a promise is broken as
// often as `gap_percent` says, however often anybody asks.
void KescoPolicy::promise(Task &task) {
    if (!predicts() || !task.idle || (task.promise.made && now_ < task.promise.until))
        return;
    if (settings.kind == KESCO_CLAIRVOYANT) {
        if (task.told_return > now_ && task.told_return - now_ >= settings.threshold_ns)
            task.promise = {true, true, task.told_return};
        return;
    }
    settle_promise(task);
    Known *known = task.gap();
    if (!known || !known->cost->gap.count)
        return;
    uint64_t until = now_;
    if (settings.kind == KESCO_MEAN)
        until = std::max(now_, sum(task.idle_since, known->cost->gap.mean));
    else
        until = sum(task.idle_since + outlasted(task), kesco::fikit::left_after(known->gap.times(known->cost->gap),
                                                                                outlasted(task), settings.gap_percent));
    if (until > now_ && until - now_ >= settings.threshold_ns)
        task.promise = {true, !known->gap.drifted(settings.drift_limit), until};
}

// A promise is over: it held, or the task came back before. The guard at its end is for just that: nothing that was
// granted is under way there, and a report that comes late makes each gap that much shorter than it was measured.
void KescoPolicy::settle_promise(Task &task) {
    if (!task.promise.made)
        return;
    bool broken = sum(now_, settings.guard_ns) < task.promise.until;
    ++task.state.promises;
    task.state.broken += broken;
    task.promise = {};
    Known *known = task.gap();
    if (settings.kind != KESCO_QUANTILE || !known)
        return;
    bool before = known->gap.drifted(settings.drift_limit);
    known->gap.add(broken);
    task.state.drifted += !before && known->gap.drifted(settings.drift_limit);
}

bool KescoPolicy::away(Task &task) {
    if (!task.idle || settings.kind == KESCO_EXCLUSIVE)
        return false;
    if (settings.kind == KESCO_STRICT)
        return true;
    uint64_t passed = now_ - task.idle_since;
    if (settings.kind == KESCO_REACTIVE)
        return passed >= settings.react_ns;
    promise(task);
    if (settings.kind == KESCO_CLAIRVOYANT && task.told_return > now_)
        return false;
    if (passed < settings.away_ns || (task.promise.made && task.promise.believed))
        return false;
    Known *known = task.gap();
    if (settings.kind != KESCO_QUANTILE || !known || known->gap.drifted(settings.drift_limit))
        return true;
    return kesco::fikit::next_knot(known->gap.times(known->cost->gap), passed) ==
           KESCO_NEVER; // some gaps lasted longer: soon, then
}

// When an idle task's prediction changes if it does not come back, or what is risked without one.
uint64_t KescoPolicy::next_change(size_t acting) {
    Task &task = at_rank(acting);
    auto later = [&](uint64_t at) { return at > now_ ? at : KESCO_NEVER; };
    if (!predicts())
        return settings.kind == KESCO_REACTIVE ? later(sum(task.idle_since, settings.react_ns)) : KESCO_NEVER;
    uint64_t change = later(sum(task.idle_since, settings.away_ns));
    if (task.promise.made)
        change = task.promise.believed ? later(task.promise.until) : std::min(change, later(task.promise.until));
    else if (Known *known = task.gap(); known && settings.kind == KESCO_QUANTILE)
        change =
            std::min(change, later(sum(task.idle_since + settings.guard_ns,
                                       kesco::fikit::next_knot(known->gap.times(known->cost->gap), outlasted(task)))));
    if (settings.kind != KESCO_QUANTILE || !settings.react_permille || (task.promise.made && task.promise.believed))
        return change;
    uint64_t react = sum(task.idle_since, settings.react_ns);
    for (size_t rank = 0; rank <= acting; ++rank)
        react = std::max(react, at_rank(rank).paid_at);
    change = std::min(change, later(react));
    if (task.wanted != KESCO_NEVER)
        change = std::min(change, later(std::max(react, sum(task.idle_since, task.wanted))));
    return change;
}
