// What clients report: the books of launches, tickets, gaps and harm.
#include "policy_core.h"
#include "policy_times.h"

#include <algorithm>
#include <new>

using kesco::fikit::Flight;
using kesco::fikit::kUnknown;
using kesco::fikit::Ticket;

KescoPolicy::Task *KescoPolicy::active(uint32_t number) {
    Task *task = number < KESCO_POLICY_TASKS ? tasks[number].get() : nullptr;
    return task && task->state.active ? task : nullptr;
}

const KescoPolicy::Task *KescoPolicy::active(uint32_t number) const {
    return const_cast<KescoPolicy *>(this)->active(number);
}

size_t KescoPolicy::rank_of(uint32_t number) const {
    return static_cast<size_t>(std::find(order_.begin(), order_.begin() + active_, number) - order_.begin());
}

// Behind all of its priority; for who came first has the GPU, behind all.
void KescoPolicy::sort_in(uint32_t number) {
    int priority = settings.kind == KESCO_EXCLUSIVE ? -1 : tasks[number]->state.priority;
    size_t rank = active_++;
    for (; rank > 0 && at_rank(rank - 1).state.priority < priority; --rank)
        order_[rank] = order_[rank - 1];
    order_[rank] = number;
    if (rank == 0)
        turn_began_ = now_;
}

// What happens next happens now; what was on the GPU until then is counted in the gap that it filled.
void KescoPolicy::clock(uint64_t at) {
    if (at <= now_)
        return;
    if (beside())
        at_rank(0).state.beside_ns += at - now_;
    if (on_gpu_ && acting_task >= 0 && tasks[static_cast<size_t>(acting_task)]->idle)
        tasks[static_cast<size_t>(acting_task)]->gap_busy += at - now_;
    now_ = at;
}

int KescoPolicy::arrives(uint64_t at, uint32_t number, int priority) {
    if (number >= KESCO_POLICY_TASKS || priority < 0 || priority > 9 || active(number))
        return -1;
    if (latest_ == tasks[number].get())
        latest_ = nullptr;
    if (filler_ == tasks[number].get())
        filler_ = nullptr;
    auto task = std::unique_ptr<Task>(new (std::nothrow) Task);
    if (!task || !(task->flights = std::unique_ptr<Flight[]>(new (std::nothrow) Flight[KESCO_POLICY_FLIGHT])))
        return -1;
    clock(at);
    task->state.active = 1;
    task->state.priority = priority;
    task->arrived = now_;
    becomes_idle(*task);
    tasks[number] = std::move(task);
    sort_in(number);
    return 0;
}

int KescoPolicy::leaves(uint64_t at, uint32_t number) {
    Task *task = active(number);
    if (!task)
        return -1;
    clock(at);
    while (task->state.waiting)
        task->drop_ticket(0, now_);
    task->credit.until = 0;
    on_gpu_ -= task->in_flight();
    while (task->in_flight())
        task->end();
    size_t rank = rank_of(number);
    std::copy(order_.begin() + rank + 1, order_.begin() + active_, order_.begin() + rank);
    --active_;
    if (rank == 0)
        turn_began_ = now_;
    harmed_ -= task->harmed;
    task->harmed = task->idle = false;
    task->state.active = 0;
    task->costs.clear();
    if (acting_task == static_cast<int>(number))
        acting_task = -1;
    anchor_ = now_;
    settle_harms();
    return 0;
}

int KescoPolicy::passed(uint64_t at, uint32_t number, uint64_t identity) {
    Task *task = active(number);
    if (!task)
        return -1;
    clock(at);
    came_back(number);
    ++task->state.passed;
    if (settings.beside_permille && rank_of(number) == 0)
        task->beside.begins(now_, identity, lower_in_flight(0));
    int32_t cost = identity ? task->costs.find(identity) : kUnknown;
    launch(*task, cost, occupied(*task, {0, identity, now_, 0, cost}), false);
    return 0;
}

int KescoPolicy::waits(uint64_t at, uint32_t number, uint64_t identity, uint64_t ticket) {
    Task *task = active(number);
    if (!task || !ticket || task->state.waiting == KESCO_POLICY_TICKETS)
        return -1;
    Ticket *end = task->tickets + task->state.waiting;
    if (std::any_of(task->tickets, end, [&](const Ticket &one) { return one.number == ticket; }))
        return -1;
    clock(at);
    came_back(number);
    *end = {ticket, identity, now_, 0, identity ? task->costs.find(identity) : kUnknown};
    ++task->state.waiting;
    ++task->state.holds;
    return 0;
}

// Until now the GPU had nothing of it: neither was the gap filled by it, nor does it take that much longer.
int KescoPolicy::begins(uint64_t at, uint32_t number, uint64_t ticket) {
    Task *task = active(number);
    if (!task || !ticket)
        return -1;
    clock(at);
    Flight *flight = task->granted(ticket);
    if (!flight)
        return 0;
    flight->ticket = 0;
    const bool only = flight->alone && flight->sequence == launches_;
    if (only && acting_task >= 0) {
        Task &acting = *tasks[static_cast<size_t>(acting_task)];
        if (acting.idle)
            acting.gap_busy -= std::min(acting.gap_busy, now_ - std::max(flight->began, acting.idle_since));
    }
    if (only)
        anchor_ = now_;
    flight->began = now_;
    return 0;
}

int KescoPolicy::abandoned(uint64_t at, uint32_t number, uint64_t ticket) {
    Task *task = active(number);
    if (!task || !ticket)
        return -1;
    clock(at);
    for (uint32_t place = 0; place < task->state.waiting; ++place) {
        Ticket gone = task->tickets[place];
        if (gone.number != ticket)
            continue;
        task->drop_ticket(place, now_);
        ++task->state.abandoned;
        launch(*task, gone.cost, occupied(*task, gone), false);
        return 0;
    }
    return 0;
}

int KescoPolicy::done(uint64_t at, uint32_t number, uint64_t launches, uint64_t late) {
    Task *task = active(number);
    if (!task)
        return -1;
    clock(at);
    uint64_t until = std::min(launches, task->state.launched); // a client's counter may be ahead of its records
    if (until <= task->state.done)
        return 0;
    if (task->in_flight() == 1) // it took until now, which may be later by what was read before
        observe(*task, task->flight(task->state.done), std::min(late, now_) + (now_ - at));
    on_gpu_ -= until - task->state.done;
    while (task->state.done < until)
        task->end();
    anchor_ = now_;
    if (task->empty())
        becomes_idle(*task);
    settle_harms();
    return 0;
}

int KescoPolicy::waited(uint64_t at, uint32_t number, uint64_t time) {
    Task *task = active(number);
    if (!task)
        return -1;
    clock(at);
    if (rank_of(number) == 0)
        task->beside.ends(now_, std::min(time, kesco::fikit::kLongest), settings.beside_permille);
    else
        task->beside.interrupted();
    return 0;
}

void KescoPolicy::launch(Task &task, int32_t cost, uint64_t time, bool fill) {
    Task &first = at_rank(0);
    if (&task == &first)
        first.beside.launches();
    else
        first.beside.other();
    Flight flight;
    flight.cost = cost;
    flight.unknown = !believed(task, cost) && !beside();
    flight.fill = fill;
    flight.alone = on_gpu_ == 0;
    flight.sequence = ++launches_;
    flight.began = now_;
    flight.predicted = time;
    task.begin(flight);
    latest_ = &task;
    ++on_gpu_;
}

// A kernel that was alone from its launch to its end tells how long it takes, the way to the GPU and back included.
// Where only the report may have taken too long it tells nothing.
void KescoPolicy::observe(Task &task, const Flight &ended, uint64_t late) {
    if (settings.kind != KESCO_QUANTILE || ended.cost == kUnknown || !ended.alone || ended.sequence != launches_)
        return;
    Known &known = task.costs[ended.cost];
    if (!known.cost->time.count)
        return;
    bool before = known.time.drifted(settings.drift_limit);
    uint64_t expected = kesco::fikit::quantile(known.time.times(known.cost->time), settings.time_percent) +
                        settings.guard_ns + settings.switch_ns;
    uint64_t took = std::min(now_ - ended.began, kesco::fikit::kLongest);
    if (took > expected && took - std::min(took, late) <= expected)
        return;
    known.time.add(took > expected);
    known.time.saw(took > settings.switch_ns ? took - settings.switch_ns : 1); // a switch is added where it is due
    task.state.drifted += !before && known.time.drifted(settings.drift_limit);
    known.time.relearn(settings.drift_limit);
}

void KescoPolicy::becomes_idle(Task &task) {
    task.idle = true;
    task.idle_since = now_;
    task.gap_busy = 0;
    task.wanted = KESCO_NEVER;
    task.reacted = false;
    task.promise = {};
    task.told_return = 0;
}

// The end of a gap: what was promised of it, and who is in the way.
void KescoPolicy::came_back(uint32_t number) {
    Task &task = *tasks[number];
    if (!task.idle)
        return;
    task.idle = false;
    ++task.state.gaps;
    uint64_t gap = now_ - task.idle_since;
    task.state.gap_ns += gap;
    end_gap(task, gap);
    settle_promise(task);
    if (Known *known = task.gap(); known && settings.kind == KESCO_QUANTILE) {
        known->gap.saw(std::min(gap, kesco::fikit::kLongest));
        known->gap.relearn(settings.drift_limit);
    }
    size_t rank = rank_of(number);
    if (task.harmed || beside() || settings.kind == KESCO_SHARING || !lower_in_flight(rank))
        return;
    task.harmed = true;
    task.harmed_since = now_;
    ++harmed_;
    ++task.state.harms;
    for (size_t lower = rank + 1; lower < active_; ++lower)
        at_rank(lower).state.overruns += at_rank(lower).fills;
}

// What a gap was, and how much of it was made use of.
void KescoPolicy::end_gap(Task &task, uint64_t gap) {
    if (gap >= settings.threshold_ns) {
        ++task.state.wide_gaps;
        task.state.wide_ns += gap;
        if (task.wanted != KESCO_NEVER && gap >= settings.guard_ns && gap - settings.guard_ns >= task.wanted) {
            task.state.fillable_ns += gap - settings.guard_ns;
            task.state.busy_ns += std::min(task.gap_busy, gap);
        }
    }
    if (task.reacted)
        owes(task, settings.switch_ns); // back to its context
}

// So much time was lost: nothing more is risked until it is a small part of the time since then.
void KescoPolicy::owes(Task &task, uint64_t harm) {
    if (settings.react_permille)
        task.paid_at = std::max(task.paid_at, now_) + harm * 1000 / settings.react_permille;
}

bool KescoPolicy::lower_in_flight(size_t rank) {
    for (size_t lower = rank + 1; lower < active_; ++lower)
        if (at_rank(lower).in_flight())
            return true;
    return false;
}

// The harm to a task ends when no lower work is in its way any more, or it has none of its own.
void KescoPolicy::settle_harms() {
    for (size_t rank = 0; harmed_ && rank < active_; ++rank) {
        Task &task = at_rank(rank);
        if (!task.harmed || (!task.idle && lower_in_flight(rank)))
            continue;
        task.harmed = false;
        task.state.harm_ns += now_ - task.harmed_since;
        owes(task, now_ - task.harmed_since);
        --harmed_;
    }
}

// Only of lower priority than the holder, and where what they have in flight is bounded.
bool KescoPolicy::beside() const {
    return active_ > 1 && tasks[order_[0]]->beside.on() &&
           tasks[order_[1]]->state.priority < tasks[order_[0]]->state.priority;
}

void KescoPolicy::look_beside() {
    if (!settings.beside_permille || settings.kind != KESCO_QUANTILE || !active_)
        return;
    Task &first = at_rank(0);
    bool wanted = false;
    for (size_t rank = 1; rank < active_; ++rank)
        wanted |= at_rank(rank).state.waiting || at_rank(rank).in_flight();
    first.beside.look(now_, wanted);
    first.state.beside = beside();
    first.state.trials = first.beside.began();
    first.state.slow_permille = first.beside.slow_permille();
}
