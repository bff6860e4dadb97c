// Drives the policy through its C interface and checks after every decision what must always hold.
//
//   policy_driver explore KIND AGE   every interleaving of the events of small sets of tasks
//   policy_driver random KIND SEED   long runs of many tasks, chosen at random
//   policy_driver costs FILE         reads a file of costs as the daemon does, and prints what it read
//   policy_driver million KIND       a million launches; the hot calls must not allocate
//
// It prints what it did and ends with 0, or prints the first broken rule and the events before it, and ends with 1.
#include "costs_file.h"
#include "policy.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <string>
#include <vector>

static uint64_t allocations = 0;

[[gnu::noinline]] void *operator new(size_t size) {
    ++allocations;
    if (void *found = std::malloc(size))
        return found;
    throw std::bad_alloc();
}
[[gnu::noinline]] void *operator new(size_t size, const std::nothrow_t &) noexcept {
    ++allocations;
    return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void *place) noexcept {
    std::free(place);
}
[[gnu::noinline]] void operator delete(void *place, size_t) noexcept {
    std::free(place);
}

namespace {

struct Waiting {
    uint64_t ticket, since;
};

struct Seen { // of one task
    bool here = false;
    int priority = 0;
    std::deque<Waiting> waits;
    std::deque<uint64_t> flights; // predicted time of granted launches, 0 of others
    uint64_t launched = 0, done = 0, last_ticket = 0;
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
    void complete(uint32_t task, uint64_t many = 1) {
        Seen &one = seen[task];
        say("done", task, many);
        one.done += many;
        one.flights.erase(one.flights.begin(), one.flights.begin() + static_cast<long>(many));
        require(kesco_policy_done(policy_, now, task, one.done) == 0, "it is done");
        decide();
    }
    void wait_for(uint64_t until) {
        say("clock", 0, until);
        now = until;
        decide();
    }

    KescoPolicySettings settings;
    uint64_t now = 1000, wake = KESCO_NEVER, grants = 0, decisions = 0, checks = 0;
    uint64_t reasons[KESCO_GRANT_REASONS] = {};
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
        }
        one.waits.pop_front();
        one.flights.push_back(std::max<uint64_t>(grant.predicted_ns, 1));
        ++one.launched;
    }
    void bounded(const KescoGrant &grant, uint64_t others, uint64_t predicted) {
        require(others < settings.inflight_launches, "not too many in flight");
        bool first = others == 0 || settings.kind < KESCO_MEAN;
        require(first || predicted + grant.predicted_ns <= settings.inflight_ns, "not too much time in flight");
    }
    void quiet_above(int priority) {
        for (const auto &[number, other] : seen)
            require(!other.here || other.priority <= priority || (other.flights.empty() && other.waits.empty()),
                    "nothing of a higher task is on the GPU");
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
            require(state->waiting == one.waits.size() && state->launched == one.launched && state->done == one.done,
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
    size_t events_ = 0;
};

KescoTimes about(uint64_t value, uint64_t longest) {
    KescoTimes times = {};
    times.count = 100;
    times.mean = value;
    for (uint64_t &knot : times.knots)
        knot = value;
    times.knots[0] = value / 2;
    times.knots[KESCO_KNOTS - 1] = longest;
    return times;
}

// Identities 1 to 3: a short kernel with a long gap behind it, a long one with a short gap, one with two kinds of gaps.
std::vector<std::pair<uint64_t, KescoCost>> costs() {
    KescoCost one = {about(100, 150), about(2000, 3000)}, two = {about(900, 1000), about(50, 60)};
    KescoCost three = {about(300, 400), about(0, 5000)};
    for (int n = 10; n < KESCO_KNOTS - 1; ++n)
        three.gap.knots[n] = 4000;
    three.gap.knots[KESCO_KNOTS - 1] = 5000;
    KescoCost arrival = {{}, about(1500, 1600)};
    return {{0, arrival}, {1, one}, {2, two}, {3, three}};
}

KescoPolicySettings small(uint32_t kind, uint64_t age) {
    KescoPolicySettings settings;
    kesco_policy_defaults(&settings, kind);
    settings.threshold_ns = 200;
    settings.guard_ns = 100;
    settings.switch_ns = 50;
    settings.inflight_ns = 700;
    settings.inflight_launches = 2;
    settings.unknown_ns = 1000;
    settings.away_ns = 6000;
    settings.react_ns = 1000;
    settings.quantum_ns = 4000;
    settings.deadline_ns = 20000;
    settings.age_ns = age;
    return settings;
}

// One run of a set of tasks; what happens next is chosen by `choices`, which is extended by zeros. `widths` says how
// many choices there were at each place. So all runs are visited by counting up.
struct Run {
    std::vector<int> choices, widths;
    size_t at = 0;

    int choose(int many) {
        if (at == choices.size()) {
            choices.push_back(0);
            widths.push_back(many);
        }
        widths[at] = many;
        return choices[at++];
    }
    bool next() {
        while (!choices.empty() && choices.back() + 1 >= widths[choices.size() - 1])
            choices.pop_back();
        if (choices.empty())
            return false;
        ++choices.back();
        widths.resize(choices.size());
        at = 0;
        return true;
    }
};

struct Plan {
    int priority;
    std::vector<uint64_t> kernels;
};

// All runs of some tasks: each arrives, launches its kernels (asynchronously: several may be in flight), completes
// them, leaves. In between the clock may go to where the policy wants to be asked (`ticks` times), one hold may be
// abandoned and one task may leave too early.
void explore(const std::vector<Plan> &plans, const KescoPolicySettings &settings, int ticks, int mishaps, size_t room,
             uint64_t totals[4]) {
    Run run;
    do {
        Checked checked(settings, room);
        std::vector<size_t> step(plans.size(), 0); // 0: not here; then launches made or waiting, plus 1
        std::vector<bool> left(plans.size(), false);
        int clocks = ticks, mishap = mishaps;
        while (true) {
            struct Event {
                int what;
                uint32_t task;
            };
            Event events[32];
            int many = 0;
            for (uint32_t task = 0; task < plans.size(); ++task) {
                if (left[task])
                    continue;
                const Seen &one = checked.seen[task];
                if (step[task] == 0) {
                    events[many++] = {0, task};
                    continue;
                }
                bool more = step[task] <= plans[task].kernels.size();
                if (more && one.waits.empty())
                    events[many++] = {1, task};
                if (!one.flights.empty())
                    events[many++] = {2, task};
                if (!more && one.flights.empty() && one.waits.empty())
                    events[many++] = {3, task};
                if (mishap && !one.waits.empty())
                    events[many++] = {4, task};
                if (mishap && more && step[task] > 1)
                    events[many++] = {3, task};
            }
            bool stuck = many == 0;
            if (checked.wake != KESCO_NEVER && (clocks > 0 || stuck))
                events[many++] = {5, 0};
            if (many == 0)
                break;
            Event event = events[run.choose(many)];
            checked.now += 10;
            switch (event.what) {
            case 0:
                checked.arrive(event.task, plans[event.task].priority, costs());
                step[event.task] = 1;
                break;
            case 1:
                checked.launch(event.task, plans[event.task].kernels[step[event.task]++ - 1]);
                break;
            case 2:
                checked.complete(event.task);
                break;
            case 3:
                mishap -= step[event.task] <= plans[event.task].kernels.size();
                checked.leave(event.task);
                left[event.task] = true;
                break;
            case 4:
                --mishap;
                checked.abandon(event.task);
                break;
            default:
                --clocks;
                checked.wait_for(std::max(checked.now, checked.wake));
            }
        }
        for (uint32_t task = 0; task < plans.size(); ++task)
            if (!left[task]) {
                std::printf("broken: task %u never came to its end\n", task);
                std::exit(1);
            }
        ++totals[0];
        totals[1] += checked.grants;
        totals[2] += checked.decisions;
        totals[3] += checked.checks;
    } while (run.next());
}

int explore_all(uint32_t kind, uint64_t age) {
    uint64_t totals[4] = {};
    KescoPolicySettings settings = small(kind, age);
    explore({{9, {1, 1}}, {3, {2, 1}}}, settings, 2, 1, 8, totals);
    explore({{9, {3, 1}}, {3, {1, 9}}}, settings, 3, 0, 1, totals); // 9 is unknown
    explore({{9, {1}}, {5, {1}}, {2, {2}}}, settings, 1, 0, 2, totals);
    explore({{4, {1, 1}}, {4, {1, 2}}}, settings, 2, 0, 8, totals); // they take turns
    settings.harm_permille = 50;
    explore({{9, {1, 1}}, {3, {2, 1}}}, settings, 2, 0, 8, totals);
    std::printf("runs %llu grants %llu decisions %llu checks %llu\n", static_cast<unsigned long long>(totals[0]),
                static_cast<unsigned long long>(totals[1]), static_cast<unsigned long long>(totals[2]),
                static_cast<unsigned long long>(totals[3]));
    return 0;
}

uint64_t random_state = 1;
uint64_t random_number(uint64_t below) { // xorshift64*
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545F4914F6CDD1DULL >> 33) % below;
}

int random_runs(uint32_t kind, uint64_t seed) {
    random_state = seed * 0x9E3779B97F4A7C15ULL + 1;
    KescoPolicySettings settings = small(kind, random_number(2) * 15000);
    settings.harm_permille = random_number(3) * 30;
    Checked checked(settings, 1 + random_number(8));
    for (int event = 0; event < 60000; ++event) {
        uint64_t many = event / 10000 % 2 ? 12 : 3; // crowded and not
        auto task = static_cast<uint32_t>(random_number(many)) * 23;
        Seen &one = checked.seen[task];
        checked.now += random_number(20) ? random_number(200) : random_number(8000);
        uint64_t what = random_number(100);
        if (!one.here)
            checked.arrive(task, static_cast<int>(random_number(10)), costs());
        else if (what < 30 && one.waits.size() < KESCO_POLICY_TICKETS && (one.waits.empty() || what < 5))
            checked.launch(task, random_number(5));
        else if (what < 90 && !one.flights.empty())
            checked.complete(task, random_number(3) ? one.flights.size() : 1);
        else if (what == 98 && !one.waits.empty())
            checked.abandon(task);
        else if (what == 99 && random_number(10) == 0)
            checked.leave(task);
        else if (checked.wake != KESCO_NEVER && checked.wake > checked.now && random_number(4) == 0)
            checked.wait_for(checked.wake);
    }
    std::printf(
        "runs 1 grants %llu holder %llu free %llu fill %llu aged %llu deadline %llu\n",
        static_cast<unsigned long long>(checked.grants), static_cast<unsigned long long>(checked.reasons[0]),
        static_cast<unsigned long long>(checked.reasons[1]), static_cast<unsigned long long>(checked.reasons[2]),
        static_cast<unsigned long long>(checked.reasons[3]), static_cast<unsigned long long>(checked.reasons[4]));
    return 0;
}

// A holder and three lower tasks: half a million gaps, each filled with one launch; more launches in flight than are
// remembered; no call of the loop allocates.
int million(uint32_t kind) {
    KescoPolicySettings settings = small(kind, 0);
    KescoPolicy *policy = kesco_policy_new(&settings);
    uint64_t now = 1000, wake = 0, launched[4] = {}, decisions = 0, most = 0;
    for (uint32_t task = 0; task < 4; ++task) {
        kesco_policy_task_arrives(policy, now, task, task ? 3 : 9);
        for (const auto &[identity, cost] : costs())
            kesco_policy_cost(policy, task, identity, &cost);
    }
    uint64_t before = allocations;
    KescoGrant grants[4];
    auto decide = [&] {
        ++decisions;
        size_t many = kesco_policy_decide(policy, now, grants, 4, &wake);
        for (size_t n = 0; n < many; ++n)
            ++launched[grants[n].task];
        most = std::max<uint64_t>(most, many);
    };
    for (int round = 0; round < 500000; ++round) {
        auto lower = static_cast<uint32_t>(1 + round % 3);
        kesco_policy_passed(policy, now += 10, 0, 1);
        ++launched[0];
        decide();
        if (kesco_policy_task(policy, lower)->waiting == 0)
            kesco_policy_waits(policy, now, lower, 1, static_cast<uint64_t>(round + 1));
        kesco_policy_done(policy, now += 100, 0, launched[0]);
        decide();
        kesco_policy_done(policy, now += 150, lower, launched[lower]);
        decide();
        now += 2500;
    }
    for (int extra = 0; extra < 3 * KESCO_POLICY_FLIGHT; ++extra, ++launched[0])
        kesco_policy_passed(policy, now, 0, 1);
    kesco_policy_done(policy, now += 1000, 0, launched[0] - 5);
    kesco_policy_done(policy, now += 1000, 0, launched[0] + 7); // ahead of what is known
    decide();
    bool counted = kesco_policy_task(policy, 0)->done == launched[0];
    uint64_t made = allocations - before;
    uint64_t sum = launched[0] + launched[1] + launched[2] + launched[3];
    std::printf("launches %llu decisions %llu allocations %llu\n", static_cast<unsigned long long>(sum),
                static_cast<unsigned long long>(decisions), static_cast<unsigned long long>(made));
    kesco_policy_free(policy);
    return made || !counted ? 1 : 0;
}

void print(const KescoTimes &times) {
    std::printf(" %llu %llu", static_cast<unsigned long long>(times.count),
                static_cast<unsigned long long>(times.mean));
    for (uint64_t knot : times.knots)
        std::printf(" %llu", static_cast<unsigned long long>(knot));
}

int read_file(const char *path) {
    std::string why;
    auto found = kesco::fikit::read_costs(path, why);
    if (!found) {
        std::printf("%s\n", why.c_str());
        return 1;
    }
    for (const auto &[key, kernels] : *found) {
        std::printf("task %s\n", key.c_str());
        for (const auto &[identity, cost] : kernels) {
            std::printf("kernel %016llx", static_cast<unsigned long long>(identity));
            print(cost.time);
            print(cost.gap);
            std::printf("\n");
        }
    }
    std::printf("end\n");
    return 0;
}

} // namespace

int main(int count, char **words) {
    if (count < 3)
        return 2;
    if (!std::strcmp(words[1], "costs"))
        return read_file(words[2]);
    auto kind = static_cast<uint32_t>(std::atoi(words[2]));
    uint64_t value = count > 3 ? std::strtoull(words[3], nullptr, 10) : 0;
    if (!std::strcmp(words[1], "explore"))
        return explore_all(kind, value);
    if (!std::strcmp(words[1], "random"))
        return random_runs(kind, value);
    return !std::strcmp(words[1], "million") ? million(kind) : 2;
}
