// Long runs by chance, for policy_driver.cpp: of tasks that do anything, and of others beside a regular holder.
#pragma once

#include "policy_checked.h"
#include "policy_made.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace {

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
        else if (what < 60 && what % 2 && checked.may(task, 1 + what % 3))
            checked.use_credit(task, 1 + what % 3);
        else if (what == 97 && one.waits.empty()) // also of a credit that it never had
            checked.late_credit(task, random_number(5), checked.latest_credit(task) + random_number(2));
        else if (what < 30 && one.waits.size() < KESCO_POLICY_TICKETS && (one.waits.empty() || what < 5))
            checked.launch(task, random_number(5));
        else if (what < 90 && !one.flights.empty())
            checked.complete(task, random_number(3) ? one.flights.size() : 1);
        else if (what >= 93 && what < 97)
            checked.begin(task, one.last_ticket - std::min<uint64_t>(one.last_ticket, random_number(4)));
        else if (what == 98 && !one.waits.empty())
            checked.abandon(task);
        else if (what == 99 && random_number(10) == 0)
            checked.leave(task);
        else if (checked.wake != KESCO_NEVER && checked.wake > checked.now && random_number(4) == 0)
            checked.wait_for(checked.wake);
    }
    std::printf(
        "runs 1 grants %llu holder %llu free %llu fill %llu aged %llu deadline %llu react %llu "
        "credited %llu\n",
        static_cast<unsigned long long>(checked.grants), static_cast<unsigned long long>(checked.reasons[0]),
        static_cast<unsigned long long>(checked.reasons[1]), static_cast<unsigned long long>(checked.reasons[2]),
        static_cast<unsigned long long>(checked.reasons[3]), static_cast<unsigned long long>(checked.reasons[4]),
        static_cast<unsigned long long>(checked.reasons[5]), static_cast<unsigned long long>(checked.credited));
    return 0;
}

// One step of a lower task: of kernels that are known, and of one that is not.
void step_below(Checked &checked, uint32_t task) {
    Seen &one = checked.seen[task];
    const uint64_t kernel = random_number(8) ? 1 + random_number(3) : 9;
    if (random_number(2) && !one.flights.empty())
        checked.complete(task, 1 + random_number(one.flights.size()));
    else if (checked.may(task, kernel))
        checked.use_credit(task, kernel);
    else if (one.waits.size() < 3)
        checked.launch(task, kernel);
}

// The holder is alone at first, and waits for longer now and then: so others run beside it, and are sent away again.
int beside_runs(uint64_t seed) {
    random_state = seed * 0x9E3779B97F4A7C15ULL + 1;
    KescoPolicySettings settings = small(KESCO_QUANTILE, 0);
    settings.beside_permille = 100;
    Checked checked(settings, 1 + random_number(8));
    checked.arrive(0, 9, costs());
    for (int request = 0; request < 4000; ++request) {
        if (request == 20)
            checked.arrive(1, 5, costs()), checked.arrive(2, 3, costs());
        const bool slow = request / 500 % 2 && request > 20;
        const uint64_t launches = 1 + request / 100 % 3;
        for (uint64_t launch = 0; launch < launches; ++launch) {
            checked.launch(0, 1);
            for (uint64_t step = random_number(4); request > 20 && step > 0; --step) {
                checked.now += 50;
                step_below(checked, 1 + static_cast<uint32_t>(random_number(2)));
            }
            checked.now += 500;
        }
        checked.complete(0, launches);
        checked.waited(0, 100 + random_number(20) + (slow ? 2000 : 0));
        checked.now += random_number(3) ? 100 : 1000000;
        if (request > 20)
            step_below(checked, 1 + static_cast<uint32_t>(random_number(2)));
    }
    std::printf("runs 1 grants %llu credited %llu beside %llu\n", static_cast<unsigned long long>(checked.grants),
                static_cast<unsigned long long>(checked.credited), static_cast<unsigned long long>(checked.besides));
    return 0;
}

} // namespace
