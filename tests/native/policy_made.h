// The kernels and settings of policy_driver.cpp's runs.
#pragma once

#include "policy.h"

#include <utility>
#include <vector>

namespace {

KescoTimes about(uint64_t value, uint64_t longest) {
    KescoTimes times = {};
    times.count = 100;
    times.mean = value;
    for (uint64_t n = 0; n < KESCO_KNOTS; ++n) {
        times.knots[n] = value;
        times.parts[n] = KESCO_WHOLE * n / (KESCO_KNOTS - 1);
    }
    times.knots[0] = value / 2;
    times.knots[KESCO_KNOTS - 1] = longest;
    return times;
}

// Identities 1 to 3: a short kernel with a long gap behind it, a long one with a short gap, one with two kinds of gaps.
std::vector<std::pair<uint64_t, KescoCost>> made_costs() {
    KescoCost one = {about(100, 150), about(2000, 3000)}, two = {about(900, 1000), about(50, 60)};
    KescoCost three = {about(300, 400), about(0, 5000)};
    for (int n = 22; n < KESCO_KNOTS - 1; ++n)
        three.gap.knots[n] = 4000;
    three.gap.knots[KESCO_KNOTS - 1] = 5000;
    KescoCost arrival = {{}, about(1500, 1600)};
    return {{0, arrival}, {1, one}, {2, two}, {3, three}};
}

const std::vector<std::pair<uint64_t, KescoCost>> &costs() {
    static const auto made = made_costs();
    return made;
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
    settings.react_permille = 500;
    settings.credit_ns = 3000;
    settings.quantum_ns = 4000;
    settings.deadline_ns = 20000;
    settings.age_ns = age;
    return settings;
}

} // namespace
