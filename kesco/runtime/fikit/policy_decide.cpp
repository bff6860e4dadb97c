// Who is granted now. In order: who waited too long; the holder; the acting task, where that is not the holder; and
// from below it what fits its gap.
#include "policy_core.h"

#include <algorithm>

struct KescoPolicy::Grants {
    KescoGrant *grants;
    size_t room;
    size_t size = 0;

    bool full() const { return size == room; }
};

int KescoPolicy::holder() const {
    return settings.kind == KESCO_SHARING || !active_ ? -1 : static_cast<int>(order_[0]);
}

size_t KescoPolicy::decide(uint64_t at, KescoGrant *grants, size_t room, uint64_t *wake) {
    clock(at);
    filling_ = {};
    Grants out{grants, room};
    if (settings.kind == KESCO_SHARING)
        for (size_t rank = 0; rank < active_; ++rank)
            all_of(out, order_[rank], KESCO_GRANT_FREE);
    look_beside();
    size_t acting = take_turns();
    count_flights();
    overdue(out);
    if (active_ && settings.kind != KESCO_SHARING) {
        all_of(out, order_[0], KESCO_GRANT_HOLDER);
        free_for(out, acting);
        fill_gap(out, acting);
    }
    settle_credits(acting);
    if (wake)
        *wake = when_to_ask(acting);
    return out.size;
}

// The rank of the acting task; `active_` where all are away. Among tasks of its priority it stands first, so that it is
// the holder if they are the highest; after its time another one that waits takes that place.
size_t KescoPolicy::take_turns() {
    size_t acting = 0;
    while (acting < active_ && ((acting == 0 && beside()) || away(at_rank(acting))))
        ++acting;
    if (settings.kind == KESCO_EXCLUSIVE || acting == active_) {
        acting_task = active_ && acting < active_ ? static_cast<int>(order_[acting]) : -1;
        return acting;
    }
    int priority = at_rank(acting).state.priority;
    size_t first = acting, end = acting + 1, chosen = acting;
    while (first > 0 && at_rank(first - 1).state.priority == priority)
        --first;
    while (end < active_ && at_rank(end).state.priority == priority)
        ++end;
    if (acting_task != static_cast<int>(order_[acting])) {
        turn_began_ = now_;
    } else if (now_ - turn_began_ >= settings.quantum_ns) {
        for (size_t next = end; next-- > acting + 1;)
            if (at_rank(next).state.waiting)
                chosen = next;
        if (chosen != acting)
            turn_began_ = now_;
    }
    std::rotate(order_.begin() + first, order_.begin() + chosen, order_.begin() + end);
    acting_task = static_cast<int>(order_[first]);
    return first;
}

void KescoPolicy::count_flights() {
    bool none = flights_ == 0;
    flights_ = flight_ns_ = flights_unknown_ = 0;
    for (size_t rank = 1; rank < active_; ++rank) {
        const Task &task = at_rank(rank);
        flights_ += task.in_flight();
        flight_ns_ += task.predicted;
        flights_unknown_ += task.unknown;
    }
    if (none && flights_)
        anchor_ = now_;
}

void KescoPolicy::grant(Grants &out, uint32_t number, KescoGrantReason reason, uint64_t left) {
    Task &task = *tasks[number];
    Ticket ticket = task.tickets[0];
    uint64_t time = occupied(task, ticket);
    out.grants[out.size++] = {number, static_cast<uint32_t>(reason), ticket.number, ticket.identity, time, left};
    task.drop_ticket(0, now_);
    ++task.state.grants[reason];
    const bool fill = reason == KESCO_GRANT_FILL || reason == KESCO_GRANT_REACT;
    if (fill) {
        task.state.filled_ns += predicted(task, ticket);
        filler_ = &task;
    }
    if (fill || reason == KESCO_GRANT_FREE)
        task.credit.used = now_;
    launch(task, ticket.cost, time, fill);
    task.flight(task.state.launched - 1).ticket = ticket.number;
    if (static_cast<int>(number) == holder())
        return;
    if (!flights_++)
        anchor_ = now_;
    flight_ns_ += time;
    flights_unknown_ += !believed(task, ticket.cost) && !beside();
}

void KescoPolicy::all_of(Grants &out, uint32_t number, KescoGrantReason reason) {
    while (tasks[number]->state.waiting && !out.full())
        grant(out, number, reason);
}

// Whatever else holds: nobody waits for ever.
void KescoPolicy::overdue(Grants &out) {
    for (size_t rank = 0; rank < active_; ++rank) {
        Task &task = at_rank(rank);
        while (task.state.waiting && !out.full()) {
            uint64_t waited = now_ - task.tickets[0].since;
            bool late = settings.deadline_ns && waited >= settings.deadline_ns;
            if (!late && !(settings.age_ns && waited >= settings.age_ns))
                break;
            grant(out, order_[rank], late ? KESCO_GRANT_DEADLINE : KESCO_GRANT_AGED);
        }
    }
}

// Every higher task is away. So that one which comes back finds little in its way, what is in flight stays bounded.
void KescoPolicy::free_for(Grants &out, size_t acting) {
    if (acting == 0 || acting >= active_)
        return;
    Task &task = at_rank(acting);
    while (task.state.waiting && !out.full()) {
        if (harm_spent(acting))
            task.state.held_reason = KESCO_HELD_HARM;
        else if (!room_in_flight(task, free_flight()))
            task.state.held_reason = KESCO_HELD_IN_FLIGHT;
        else {
            grant(out, order_[acting], KESCO_GRANT_FREE);
            continue;
        }
        break;
    }
}

// BestPrioFit, again and again, until nothing fits what is left of the acting task's gap.
void KescoPolicy::fill_gap(Grants &out, size_t acting) {
    if (acting >= active_)
        return;
    Task &task = at_rank(acting);
    if (!task.idle)
        return hold_below(acting, KESCO_HELD_BUSY);
    want(acting);
    if (at_rank(0).beside.wants_quiet())
        return hold_below(acting, KESCO_HELD_NO_GAP);
    filling_ = filling(acting);
    if (!filling_.until)
        return hold_below(acting, task.promise.made && !task.promise.believed ? KESCO_HELD_DRIFT : KESCO_HELD_NO_GAP);
    if (harm_spent(acting + 1)) {
        filling_ = {};
        return hold_below(acting, KESCO_HELD_HARM);
    }
    hold_below(acting, KESCO_HELD_IN_FLIGHT);
    while (!out.full() && !overlong(settings.guard_ns)) {
        uint64_t begin = flights_ ? std::max(now_, anchor_ + flight_ns_) : now_;
        int best = best_fit(acting, begin);
        if (best < 0)
            return;
        const bool promised = filling_.reason == KESCO_GRANT_FILL;
        task.reacted |= !promised;
        grant(out, static_cast<uint32_t>(best), filling_.reason, promised ? filling_.until - begin : 0);
    }
}

// Of the highest priority that has a fit the longest head that fits; of equals, who waited longest. -1: none.
// While somebody has a credit and uses it, who is of lower priority waits.
int KescoPolicy::best_fit(size_t acting, uint64_t begin) {
    int best = -1;
    uint64_t longest = 0, since = 0;
    bool fits_later = false;
    for (size_t rank = acting + 1; rank < active_; ++rank) {
        Task &task = at_rank(rank);
        if ((best >= 0 || fits_later) && task.state.priority != at_rank(rank - 1).state.priority)
            break;
        fits_later |= task.credit.until && task.in_flight();
        if (!task.state.waiting)
            continue;
        uint64_t time = occupied(task, task.tickets[0]);
        if (begin >= filling_.until || filling_.until - begin < time) {
            task.state.held_reason = KESCO_HELD_NO_FIT;
        } else if (!room_in_flight(task, filling_.flight_ns)) {
            task.state.held_reason = KESCO_HELD_IN_FLIGHT;
            fits_later = true;
        } else if (best < 0 || time > longest || (time == longest && task.tickets[0].since < since)) {
            best = static_cast<int>(order_[rank]);
            longest = time;
            since = task.tickets[0].since;
        }
    }
    return best;
}

bool KescoPolicy::room_in_flight(const Task &task, uint64_t most) const {
    if (flights_ == 0)
        return true;
    if (flights_ >= settings.inflight_launches)
        return false;
    if (!predicts())
        return true;
    const Ticket &ticket = task.tickets[0];
    if (flights_unknown_ || (settings.kind != KESCO_CLAIRVOYANT && !believed(task, ticket.cost) && !beside()))
        return false;
    return flight_ns_ + occupied(task, ticket) <= most;
}

// Whether one of the first `ranks` tasks has lost more than its part; `*until` is then when it no longer has.
bool KescoPolicy::harm_spent(size_t ranks, uint64_t *until) {
    bool spent = false;
    for (size_t rank = 0; settings.harm_permille && rank < ranks; ++rank) {
        const Task &task = at_rank(rank);
        uint64_t needed = task.state.harm_ns * 1000 / settings.harm_permille;
        if (needed <= now_ - task.arrived)
            continue;
        spent = true;
        if (until)
            *until = std::max(*until, task.arrived + needed);
    }
    return spent;
}

void KescoPolicy::hold_below(size_t rank, KescoHeldReason reason) {
    for (size_t lower = rank + 1; lower < active_; ++lower)
        at_rank(lower).state.held_reason = at_rank(lower).state.waiting ? reason : KESCO_NOT_HELD;
}

uint64_t KescoPolicy::when_to_ask(size_t acting) {
    uint64_t wake = KESCO_NEVER;
    bool any = false, equal = false;
    for (size_t rank = 0; rank < active_; ++rank) {
        const Task &task = at_rank(rank);
        if (!task.state.waiting)
            continue;
        any = true;
        equal |= acting < rank && task.state.priority == at_rank(acting).state.priority;
        for (uint64_t limit : {settings.deadline_ns, settings.age_ns})
            if (limit)
                wake = std::min(wake, task.tickets[0].since + limit);
    }
    if (credits_)
        wake = std::min(wake, when_credits_change(acting));
    if (!any || acting >= active_ || settings.kind == KESCO_SHARING)
        return wake;
    if (equal && settings.kind != KESCO_EXCLUSIVE)
        wake = std::min(wake, std::max(turn_began_ + settings.quantum_ns, now_ + 1));
    if (at_rank(acting).idle)
        wake = std::min(wake, next_change(acting));
    uint64_t allowed = now_;
    if (harm_spent(acting + 1, &allowed))
        wake = std::min(wake, allowed);
    return wake;
}
