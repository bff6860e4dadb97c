// The C interface: what is asked for is checked here or where it is done; nothing throws through it.
#include "policy.h"

#include "policy_core.h"
#include "policy_times.h"

#include <new>

void kesco_policy_defaults(KescoPolicySettings *settings, uint32_t kind) {
    *settings = {};
    settings->version = KESCO_POLICY_VERSION;
    settings->kind = kind;
    settings->threshold_ns = 100'000;
    settings->guard_ns = 30'000;
    settings->switch_ns = 50'000;
    settings->inflight_ns = 1'000'000; // three kernels of 300 us: the next ones are there while a report is on its way
    // One, as Tally does. Who predicts is bounded by time, and the report of an end may be under way for longer than 16
    // kernels of 10 us take.
    settings->inflight_launches = kind == KESCO_REACTIVE ? 1 : kind >= KESCO_MEAN ? 32 : 16;
    settings->time_percent = 95;
    settings->gap_percent = 10;
    settings->drift_limit = 12; // by chance, with one in ten wrong: once in 100 000 records
    settings->unknown_ns = 1'000'000;
    settings->away_ns = 5'000'000;
    settings->react_ns = 100'000; // as Tally
    settings->quantum_ns = 10'000'000;
    settings->deadline_ns = 400'000'000; // a kernel of 20 ms that nothing has room for costs others 5 % then
    settings->credit_ns = 1'000'000;
    settings->react_permille = 30;
}

KescoPolicy *kesco_policy_new(const KescoPolicySettings *settings) {
    if (!settings || settings->version != KESCO_POLICY_VERSION || settings->kind >= KESCO_KINDS ||
        !settings->inflight_launches || !settings->quantum_ns || settings->time_percent > 100 ||
        settings->gap_percent > 100 || settings->drift_limit > 32)
        return nullptr;
    for (uint64_t time :
         {settings->threshold_ns, settings->guard_ns, settings->switch_ns, settings->inflight_ns, settings->unknown_ns,
          settings->away_ns, settings->react_ns, settings->quantum_ns, settings->deadline_ns, settings->age_ns,
          settings->harm_permille, settings->credit_ns, settings->react_permille, settings->beside_permille})
        if (time > kesco::fikit::kLongest)
            return nullptr;
    return new (std::nothrow) KescoPolicy(*settings);
}

void kesco_policy_free(KescoPolicy *policy) {
    delete policy;
}

int kesco_policy_cost(KescoPolicy *policy, uint32_t task, uint64_t identity, const KescoCost *cost) try {
    if (!cost || !kesco_cost_sensible(cost) || !policy->active(task))
        return -1;
    policy->active(task)->costs.put(identity, *cost);
    return 0;
} catch (const std::bad_alloc &) {
    return -1;
}

int kesco_policy_kernels(KescoPolicy *policy, uint32_t task, const KescoKernel *kernels, size_t count) try {
    if (!policy->active(task))
        return -1;
    policy->active(task)->costs.borrow(kernels, count);
    return 0;
} catch (const std::bad_alloc &) {
    return -1;
}

int kesco_cost_sensible(const KescoCost *cost) {
    return kesco::fikit::sensible(cost->time) && kesco::fikit::sensible(cost->gap);
}

int kesco_policy_task_arrives(KescoPolicy *policy, uint64_t now, uint32_t task, int priority) {
    return policy->arrives(now, task, priority);
}

int kesco_policy_task_leaves(KescoPolicy *policy, uint64_t now, uint32_t task) {
    return policy->leaves(now, task);
}

int kesco_policy_passed(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t identity) {
    return policy->passed(now, task, identity);
}

int kesco_policy_waits(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t identity, uint64_t ticket) {
    return policy->waits(now, task, identity, ticket);
}

int kesco_policy_begins(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t ticket) {
    return policy->begins(now, task, ticket);
}

int kesco_policy_abandoned(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t ticket) {
    return policy->abandoned(now, task, ticket);
}

int kesco_policy_credited(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t identity, uint64_t credit) {
    return policy->credited(now, task, identity, credit);
}

int kesco_policy_done(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t launches) {
    return policy->done(now, task, launches, 0);
}

int kesco_policy_done_late(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t launches, uint64_t late) {
    return policy->done(now, task, launches, late);
}

int kesco_policy_waited(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t waited) {
    return policy->waited(now, task, waited);
}

int kesco_policy_tell_return(KescoPolicy *policy, uint32_t task, uint64_t at) {
    if (!policy->active(task))
        return -1;
    policy->active(task)->told_return = at;
    return 0;
}

int kesco_policy_tell_time(KescoPolicy *policy, uint32_t task, uint64_t ticket, uint64_t time_ns) {
    auto *found = policy->active(task);
    if (time_ns > kesco::fikit::kLongest)
        return -1;
    for (uint32_t place = 0; found && place < found->state.waiting; ++place) {
        if (found->tickets[place].number != ticket)
            continue;
        found->tickets[place].told = time_ns;
        return 0;
    }
    return -1;
}

size_t kesco_policy_decide(KescoPolicy *policy, uint64_t now, KescoGrant *grants, size_t room, uint64_t *wake) {
    return policy->decide(now, grants, room, wake);
}

int kesco_policy_holder(const KescoPolicy *policy) {
    return policy->holder();
}

int kesco_policy_acting(const KescoPolicy *policy) {
    return policy->acting_task;
}

int kesco_policy_credit(const KescoPolicy *policy, uint32_t task, KescoCredit *credit) {
    const auto *found = policy->active(task);
    *credit = {};
    if (!found || !found->credit.until)
        return 0;
    *credit = {found->credit.number, found->credit.until, found->credit.flight_ns, policy->settings.inflight_launches,
               policy->unknown_on_credit(*found)};
    return 1;
}

uint64_t kesco_policy_predicts(const KescoPolicy *policy, uint32_t task, uint64_t identity) {
    return policy->predicts(task, identity);
}

const KescoTaskState *kesco_policy_task(const KescoPolicy *policy, uint32_t task) {
    return task < KESCO_POLICY_TASKS && policy->tasks[task] ? &policy->tasks[task]->state : nullptr;
}
