#include "policy_times.h"

#include <algorithm>

namespace kesco::fikit {
namespace {

double percent_of(const KescoTimes &times, int knot) {
    return static_cast<double>(times.parts[knot]) * 100 / KESCO_WHOLE;
}

double value_at(const KescoTimes &times, double percent) {
    for (int n = 1; n < KESCO_KNOTS; ++n) {
        if (percent > percent_of(times, n))
            continue;
        double below = percent_of(times, n - 1), wide = percent_of(times, n) - below;
        double part = wide > 0 ? std::max(percent - below, 0.0) / wide : 0;
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
    double below = percent_of(times, above - 1);
    return below + part * (percent_of(times, above) - below);
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
    uint64_t sorted[KESCO_KNOTS];
    count = std::min<uint32_t>(count, KESCO_KNOTS);
    std::copy(values, values + count, sorted);
    std::sort(sorted, sorted + count);
    KescoTimes times = {};
    times.count = count;
    for (uint32_t n = 0; n < count; ++n)
        times.mean += sorted[n] / count;
    for (uint32_t n = 0; n < KESCO_KNOTS; ++n) {
        times.knots[n] = sorted[std::min(n, count - 1)];
        times.parts[n] = n + 1 >= count ? (n ? KESCO_WHOLE : 0) : uint64_t{KESCO_WHOLE} * n / (count - 1);
    }
    return times;
}

bool sensible(const KescoTimes &times) {
    if (times.count && (times.mean > kLongest || times.knots[KESCO_KNOTS - 1] > kLongest))
        return false;
    for (int n = 1; times.count && n < KESCO_KNOTS; ++n)
        if (times.knots[n - 1] > times.knots[n] || times.parts[n - 1] > times.parts[n])
            return false;
    return !times.count || (times.parts[0] == 0 && times.parts[KESCO_KNOTS - 1] == KESCO_WHOLE);
}

} // namespace kesco::fikit
