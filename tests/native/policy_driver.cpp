// Drives the policy through its C interface and checks after every decision what must always hold.
//
//   policy_driver explore KIND AGE   every interleaving of the events of small sets of tasks
//   policy_driver random KIND SEED   long runs of many tasks, chosen at random
//   policy_driver beside SEED        others beside a holder that makes request after request
//   policy_driver costs FILE         reads a file of costs as the daemon does, and prints what it read
//   policy_driver million KIND       a million launches; the hot calls must not allocate
//
// It prints what it did and ends with 0, or prints the first broken rule and the events before it, and ends with 1.
#include "costs_file.h"
#include "policy.h"
#include "policy_checked.h"
#include "policy_made.h"
#include "policy_random.h"

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
             uint64_t totals[5]) {
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
                if (more && checked.may(task, plans[task].kernels[step[task] - 1]))
                    events[many++] = {6, task};
                if (mishap && more && one.waits.empty() && !one.credit.until && checked.latest_credit(task))
                    events[many++] = {7, task};
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
            case 6:
                checked.use_credit(event.task, plans[event.task].kernels[step[event.task]++ - 1]);
                break;
            case 7: {
                --mishap;
                const uint64_t number = checked.latest_credit(event.task);
                checked.late_credit(event.task, plans[event.task].kernels[step[event.task]++ - 1], number);
                break;
            }
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
        totals[4] += checked.credited;
    } while (run.next());
}

int explore_all(uint32_t kind, uint64_t age) {
    uint64_t totals[5] = {};
    KescoPolicySettings settings = small(kind, age);
    explore({{9, {1, 1}}, {3, {2, 1}}}, settings, 2, 1, 8, totals);
    explore({{9, {3, 1}}, {3, {1, 9}}}, settings, 3, 0, 1, totals); // 9 is unknown
    explore({{9, {1}}, {5, {1}}, {2, {2}}}, settings, 1, 0, 2, totals);
    explore({{4, {1, 1}}, {4, {1, 2}}}, settings, 2, 0, 8, totals);     // they take turns
    explore({{9, {1, 1}}, {3, {1, 1, 1}}}, settings, 2, 1, 8, totals);  // more than one on a credit
    explore({{9, {1}}, {3, {1}}, {3, {9}}}, settings, 1, 0, 2, totals); // one waits beside another's credit
    settings.harm_permille = 50;
    explore({{9, {1, 1}}, {3, {2, 1}}}, settings, 2, 0, 8, totals);
    std::printf("runs %llu grants %llu decisions %llu checks %llu credited %llu\n",
                static_cast<unsigned long long>(totals[0]), static_cast<unsigned long long>(totals[1]),
                static_cast<unsigned long long>(totals[2]), static_cast<unsigned long long>(totals[3]),
                static_cast<unsigned long long>(totals[4]));
    return 0;
}

// A holder and three lower tasks: half a million gaps, each filled with one launch; more launches in flight than are
// remembered; no call of the loop allocates, once each kernel was seen.
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
        if (round == 1000)
            before = allocations;
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
    for (int n = 0; n < KESCO_KNOTS; ++n)
        std::printf(" %llu %llu", static_cast<unsigned long long>(times.parts[n]),
                    static_cast<unsigned long long>(times.knots[n]));
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
    if (!std::strcmp(words[1], "beside"))
        return beside_runs(std::strtoull(words[2], nullptr, 10));
    auto kind = static_cast<uint32_t>(std::atoi(words[2]));
    uint64_t value = count > 3 ? std::strtoull(words[3], nullptr, 10) : 0;
    if (!std::strcmp(words[1], "explore"))
        return explore_all(kind, value);
    if (!std::strcmp(words[1], "random"))
        return random_runs(kind, value);
    return !std::strcmp(words[1], "million") ? million(kind) : 2;
}
