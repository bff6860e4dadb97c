// A policy of which everything is checked after each decision that must always hold. For policy_driver.cpp.
#pragma once

#include "policy.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <utility>
#include <vector>

struct Waiting {
    uint64_t ticket, since;
};

struct Seen { // of one task
    bool here = false;
    int priority = 0;
    std::deque<Waiting> waits;
    std::deque<uint64_t> flights; // predicted time of granted launches, 0 of others
    uint64_t launched = 0, done = 0, last_ticket = 0;
    uint64_t idle_since = 0;
    KescoCredit credit = {}; // until 0: none now
    uint64_t credited = 0;   // launched on one
};

class Checked {
  public:
    explicit Checked(const KescoPolicySettings &chosen, size_t room = 8)
        : settings(chosen), room_(room), policy_(kesco_policy_new(&chosen)) {
        require(policy_ != nullptr, "the settings are good");
    }
    ~Checked() { kesco_policy_free(policy_); }

    void arrive(uint32_t task, int priority, const std::vector<std::pair<uint64_t, KescoCost>> &costs) {
        say("arrive", task, static_cast<uint64_t>(priority));
        require(kesco_policy_task_arrives(policy_, now, task, priority) == 0, "it may arrive");
        require(kesco_policy_task_arrives(policy_, now, task, priority) == -1, "but once");
        for (const auto &[identity, cost] : costs)
            require(kesco_policy_cost(policy_, task, identity, &cost) == 0, "its costs are taken");
        seen[task] = {};
        seen[task].here = true;
        seen[task].priority = priority;
        seen[task].idle_since = now;
        decide();
    }
    void leave(uint32_t task) {
        say("leave", task, 0);
        require(kesco_policy_task_leaves(policy_, now, task) == 0, "it may leave");
        require(kesco_policy_task_leaves(policy_, now, task) == -1, "but once");
        require(kesco_policy_waits(policy_, now, task, 1, 1) == -1, "who left does not wait");
        seen[task].here = false;
        seen[task].waits.clear();
        seen[task].flights.clear();
        latest_.erase(task);
        decide();
    }
    void launch(uint32_t task, uint64_t identity) { // as a client does it: through an open gate, or it waits
        Seen &one = seen[task];
        if (kesco_policy_holder(policy_) == static_cast<int>(task) && one.waits.empty()) {
            say("pass", task, identity);
            require(kesco_policy_passed(policy_, now, task, identity) == 0, "the holder passes");
            one.flights.push_back(0);
            ++one.launched;
        } else {
            say("wait", task, identity);
            uint64_t ticket = ++one.last_ticket;
            require(kesco_policy_waits(policy_, now, task, identity, ticket) == 0, "it waits");
            require(kesco_policy_waits(policy_, now, task, identity, ticket) == -1, "a ticket waits once");
            one.waits.push_back({ticket, now});
        }
        decide();
    }
    // Whether its client would launch this without asking.
    bool may(uint32_t task, uint64_t identity) {
        const Seen &one = seen[task];
        uint64_t outstanding = 0;
        for (uint64_t time : one.flights)
            outstanding += time;
        return one.credit.until && one.waits.empty() &&
               kesco_credit_allows(&one.credit, now, outstanding, one.flights.size(),
                                   kesco_policy_predicts(policy_, task, identity));
    }
    void use_credit(uint32_t task, uint64_t identity) {
        Seen &one = seen[task];
        const uint64_t predicted = kesco_policy_predicts(policy_, task, identity);
        say("credit", task, identity);
        require(predicted > 0, "what nobody knows has to ask");
        one.flights.push_back(predicted);
        uint64_t all = 0;
        for (uint64_t time : one.flights)
            all += time;
        require(one.flights.size() <= settings.inflight_launches, "no more in flight than a credit allows");
        require(one.flights.size() == 1 || all <= one.credit.flight_ns, "nor for longer");
        require(now + all <= one.credit.until, "and done in time");
        ++one.launched;
        ++one.credited;
        ++credited;
        require(kesco_policy_credited(policy_, now, task, identity, one.credit.number) == 0, "it is taken");
        decide();
    }
    // A client that did not know yet that its credit is over; with a number that it never had it passes.
    void late_credit(uint32_t task, uint64_t identity, uint64_t number) {
        Seen &one = seen[task];
        say("late credit", task, number);
        one.flights.push_back(0);
        ++one.launched;
        one.credited += number && number == latest_[task];
        require(kesco_policy_credited(policy_, now, task, identity, number) == 0, "it is counted");
        decide();
    }
    uint64_t latest_credit(uint32_t task) { return latest_[task]; }
    void abandon(uint32_t task) {
        Seen &one = seen[task];
        uint64_t ticket = one.waits.back().ticket; // not only the head: another thread's deadline
        say("abandon", task, ticket);
        require(kesco_policy_abandoned(policy_, now, task, ticket) == 0, "it is let go");
        require(kesco_policy_abandoned(policy_, now, task, ticket) == 0, "a late word of it changes nothing");
        one.waits.pop_back();
        one.flights.push_back(0);
        ++one.launched;
        decide();
    }
    // Also of what still waits, is done, or never was.
    void begin(uint32_t task, uint64_t ticket) {
        say("begin", task, ticket);
        const KescoTaskState before = *kesco_policy_task(policy_, task);
        require(kesco_policy_begins(policy_, now, task, ticket) == (ticket ? 0 : -1), "a word that it begins is heard");
        const KescoTaskState &after = *kesco_policy_task(policy_, task);
        require(before.launched == after.launched && before.done == after.done && before.waiting == after.waiting,
                "which launches nothing");
        decide();
    }
    void complete(uint32_t task, uint64_t many = 1) {
        Seen &one = seen[task];
        say("done", task, many);
        one.done += many;
        one.flights.erase(one.flights.begin(), one.flights.begin() + static_cast<long>(many));
        if (one.flights.empty())
            one.idle_since = now;
        require(kesco_policy_done(policy_, now, task, one.done) == 0, "it is done");
        decide();
    }
    // It has waited for all that it launched.
    void waited(uint32_t task, uint64_t time) {
        say("waited", task, time);
        require(kesco_policy_waited(policy_, now, task, time) == 0, "it is heard");
        decide();
        besides += beside(task);
    }
    void wait_for(uint64_t until) {
        say("clock", 0, until);
        now = until;
        decide();
    }

    KescoPolicySettings settings;
    uint64_t now = 1000, wake = KESCO_NEVER, grants = 0, decisions = 0, checks = 0;
    uint64_t reasons[KESCO_GRANT_REASONS] = {}, credited = 0, besides = 0;
    std::map<uint32_t, Seen> seen;
    KescoPolicy *policy() { return policy_; }

  private:
    void say(const char *what, uint32_t task, uint64_t value) {
        if (log_.size() < 200)
            log_.push_back({what, task, value, now});
        ++events_;
    }
    void require(bool holds, const char *rule) {
        ++checks;
        if (holds)
            return;
        std::printf("broken: %s, after %zu events\n", rule, events_);
        for (const auto &one : log_)
            std::printf("  %llu %s %u %llu\n", static_cast<unsigned long long>(one.at), one.what, one.task,
                        static_cast<unsigned long long>(one.value));
        std::exit(1);
    }
    void decide() {
        KescoGrant out[8];
        size_t many = 0;
        do {
            ++decisions;
            many = kesco_policy_decide(policy_, now, out, room_, &wake);
            require(many <= room_, "no more than there is room for");
            for (size_t n = 0; n < many; ++n)
                granted(out[n]);
        } while (many == room_);
        credits();
        settled();
    }
    // What must hold of a grant, before it is counted.
    void granted(const KescoGrant &grant) {
        ++grants;
        require(grant.reason < KESCO_GRANT_REASONS, "a reason");
        ++reasons[grant.reason];
        require(seen.count(grant.task) && seen[grant.task].here, "only who is here");
        Seen &one = seen[grant.task];
        require(!one.waits.empty() && one.waits.front().ticket == grant.ticket, "a head that waits, and once");
        int holder = kesco_policy_holder(policy_), acting = kesco_policy_acting(policy_);
        uint64_t waited = now - one.waits.front().since;
        uint64_t others = 0, predicted = 0;
        for (const auto &[number, other] : seen)
            if (static_cast<int>(number) != holder) {
                others += other.flights.size();
                for (uint64_t time : other.flights)
                    predicted += time;
            }
        switch (grant.reason) {
        case KESCO_GRANT_HOLDER:
            require(static_cast<int>(grant.task) == holder, "as the holder only the holder");
            break;
        case KESCO_GRANT_DEADLINE:
            require(settings.deadline_ns && waited >= settings.deadline_ns, "its deadline has come");
            break;
        case KESCO_GRANT_AGED:
            require(settings.age_ns && waited >= settings.age_ns, "it has aged");
            break;
        case KESCO_GRANT_FREE:
            if (settings.kind == KESCO_SHARING)
                break;
            require(static_cast<int>(grant.task) == acting, "free is only who acts");
            bounded(grant, others, predicted);
            quiet_above(one.priority);
            break;
        case KESCO_GRANT_FILL: {
            require(settings.kind >= KESCO_MEAN && acting >= 0, "only predictions fill");
            const Seen &above = seen[static_cast<uint32_t>(acting)];
            require(above.flights.empty() && above.waits.empty(), "filling stops when the task is back");
            require(above.priority >= one.priority, "only lower ones fill");
            require(grant.predicted_ns <= grant.gap_left_ns, "it fits");
            bounded(grant, others, predicted);
            quiet_above(above.priority);
            break;
        }
        case KESCO_GRANT_REACT: {
            require(settings.kind == KESCO_QUANTILE && settings.react_permille && acting >= 0, "who may react");
            const Seen &above = seen[static_cast<uint32_t>(acting)];
            require(above.flights.empty() && above.waits.empty(), "reacting stops when the task is back");
            const uint64_t lasted = now - above.idle_since;
            require(lasted >= settings.react_ns, "only after a while");
            require(grant.predicted_ns <= lasted, "no longer than it has been idle");
            bounded(grant, others, predicted);
            quiet_above(above.priority);
            break;
        }
        }
        one.waits.pop_front();
        one.flights.push_back(std::max<uint64_t>(grant.predicted_ns, 1));
        ++one.launched;
    }
    // Whether lower tasks may run beside this one, which is the holder, and is asked for it.
    bool beside(uint32_t task) const {
        const KescoTaskState *state = kesco_policy_task(policy_, task);
        return settings.beside_permille && kesco_policy_holder(policy_) == static_cast<int>(task) && state->beside;
    }
    uint64_t wider() const {
        const int holder = kesco_policy_holder(policy_);
        return holder >= 0 && beside(static_cast<uint32_t>(holder)) ? 4 : 1;
    }
    void bounded(const KescoGrant &grant, uint64_t others, uint64_t predicted) {
        require(others < settings.inflight_launches, "not too many in flight");
        bool first = others == 0 || settings.kind < KESCO_MEAN;
        const uint64_t most = settings.inflight_ns * (grant.reason == KESCO_GRANT_FREE ? wider() : 1);
        require(first || predicted + grant.predicted_ns <= most, "not too much time in flight");
    }
    void quiet_above(int priority) {
        for (const auto &[number, other] : seen)
            require(!other.here || other.priority <= priority || beside(number) ||
                        (other.flights.empty() && other.waits.empty()),
                    "nothing of a higher task is on the GPU");
    }
    // What must hold of the credits that there are now.
    void credits() {
        const int holder = kesco_policy_holder(policy_), acting = kesco_policy_acting(policy_);
        int fills = 0;
        for (auto &[number, one] : seen) {
            KescoCredit credit;
            const bool has = kesco_policy_credit(policy_, number, &credit) != 0;
            require(has == (credit.until != 0), "a credit has an end");
            require(!has || one.here, "who is not here has no credit");
            if (!has) {
                one.credit = {};
                continue;
            }
            require(settings.kind >= KESCO_MEAN && settings.credit_ns, "only predictions give credit");
            require(static_cast<int>(number) != holder, "the holder needs none");
            require(credit.until > now && credit.number, "it is not over");
            require(one.credit.until || credit.number != latest_[number], "a new one has a new number");
            require(credit.flight_ns <= settings.inflight_ns * wider() &&
                        credit.flight_launches == settings.inflight_launches,
                    "it allows no more than grants do");
            latest_[number] = credit.number;
            one.credit = credit;
            quiet_above(one.priority);
            if (static_cast<int>(number) == acting)
                continue;
            require(acting >= 0 && ++fills == 1, "one fills");
            const Seen &above = seen[static_cast<uint32_t>(acting)];
            require(above.flights.empty() && above.waits.empty(), "a credit ends when the task is back");
            for (const auto &[other, its] : seen)
                require(other == number || !its.here || static_cast<int>(other) == acting || its.waits.empty() ||
                            its.priority < one.priority || its.priority > above.priority,
                        "nobody of its priority waits beside it");
        }
    }
    // What must hold when a decision is complete.
    void settled() {
        int holder = kesco_policy_holder(policy_);
        int highest = -1;
        for (const auto &[number, one] : seen) {
            const KescoTaskState *state = kesco_policy_task(policy_, number);
            require(state ? state->active == one.here : !one.here, "it is here or not");
            if (!one.here)
                continue;
            highest = std::max(highest, one.priority);
            require(state->waiting == one.waits.size() && state->launched == one.launched && state->done == one.done &&
                        state->credited == one.credited,
                    "the counters are right");
            require((state->held_reason == KESCO_NOT_HELD) == one.waits.empty() || settings.kind == KESCO_EXCLUSIVE,
                    "who waits is told why");
            if (one.waits.empty())
                continue;
            require(static_cast<int>(number) != holder, "the holder is never held");
            uint64_t since = one.waits.front().since;
            require(!settings.deadline_ns || now - since < settings.deadline_ns, "every hold has a deadline");
            require(!settings.age_ns || now - since < settings.age_ns, "nobody grows older than that");
            require(!settings.deadline_ns || wake <= since + settings.deadline_ns, "the policy wants to be asked then");
        }
        require(wake > now, "it need not be asked again at once");
        if (settings.kind != KESCO_SHARING)
            require((holder >= 0) == (highest >= 0), "somebody holds the GPU");
        if (settings.kind != KESCO_SHARING && settings.kind != KESCO_EXCLUSIVE && holder >= 0)
            require(seen[static_cast<uint32_t>(holder)].priority == highest, "the holder has the highest priority");
    }

    struct Said {
        const char *what;
        uint32_t task;
        uint64_t value, at;
    };
    size_t room_;
    KescoPolicy *policy_;
    std::vector<Said> log_;
    std::map<uint32_t, uint64_t> latest_; // the number of a task's last credit
    size_t events_ = 0;
};
