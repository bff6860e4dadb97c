#include "policy_times.h"

#include <algorithm>

namespace kesco::fikit {
namespace {

constexpr double kPercents[KESCO_KNOTS] = {0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100};

double value_at(const KescoTimes &times, double percent) {
    for (int n = 1; n < KESCO_KNOTS; ++n) {
        if (percent > kPercents[n])
            continue;
        double part = (percent - kPercents[n - 1]) / (kPercents[n] - kPercents[n - 1]);
        double low = static_cast<double>(times.knots[n - 1]), high = static_cast<double>(times.knots[n]);
        return low + part * (high - low);
    }
    return static_cast<double>(times.knots[KESCO_KNOTS - 1]);
}

// The part of the times that are at most `value`, in percent.
double percent_at(const KescoTimes &times, uint64_t value) {
    int above = 0;
    while (above < KESCO_KNOTS && times.knots[above] <= value)
        ++above;
    if (above == 0)
        return 0;
    if (above == KESCO_KNOTS)
        return 100;
    double low = static_cast<double>(times.knots[above - 1]), high = static_cast<double>(times.knots[above]);
    double part = (static_cast<double>(value) - low) / (high - low);
    return kPercents[above - 1] + part * (kPercents[above] - kPercents[above - 1]);
}

} // namespace

uint64_t quantile(const KescoTimes &times, uint32_t percent) {
    return times.count ? static_cast<uint64_t>(value_at(times, percent)) : 0;
}

uint64_t left_after(const KescoTimes &times, uint64_t passed, uint32_t percent) {
    if (!times.count || passed >= times.knots[KESCO_KNOTS - 1])
        return 0;
    double gone = percent_at(times, passed);
    auto then = static_cast<uint64_t>(value_at(times, gone + (100 - gone) * percent / 100));
    return then > passed ? then - passed : 0;
}

uint64_t next_knot(const KescoTimes &times, uint64_t passed) {
    for (int n = 0; times.count && n < KESCO_KNOTS; ++n)
        if (times.knots[n] > passed)
            return times.knots[n];
    return KESCO_NEVER;
}

KescoTimes times_of(const uint64_t *values, uint32_t count) {
    uint64_t sorted[32];
    count = std::min<uint32_t>(count, 32);
    std::copy(values, values + count, sorted);
    std::sort(sorted, sorted + count);
    KescoTimes times = {};
    times.count = count;
    for (uint32_t n = 0; n < count; ++n)
        times.mean += sorted[n] / count;
    for (int n = 0; n < KESCO_KNOTS; ++n) {
        double place = kPercents[n] / 100 * (count - 1);
        auto below = static_cast<uint32_t>(place);
        double low = static_cast<double>(sorted[below]);
        double high = static_cast<double>(sorted[std::min(below + 1, count - 1)]);
        times.knots[n] = static_cast<uint64_t>(low + (place - below) * (high - low));
    }
    return times;
}

bool sensible(const KescoTimes &times) {
    if (times.count && (times.mean > kLongest || times.knots[KESCO_KNOTS - 1] > kLongest))
        return false;
    for (int n = 1; times.count && n < KESCO_KNOTS; ++n)
        if (times.knots[n - 1] > times.knots[n])
            return false;
    return true;
}

} // namespace kesco::fikit
