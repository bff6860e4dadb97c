// What a distribution of measured times says: a quantile, and a quantile of what is left once some of it has passed.
#pragma once

#include "policy.h"

namespace kesco::fikit {

/// Nanoseconds that `percent` of the times do not exceed, linear between the knots; 0 where nothing is known.
uint64_t quantile(const KescoTimes &times, uint32_t percent);

/// Of the times longer than `passed`: what `percent` of them do not exceed, less `passed`. 0: none was as long.
uint64_t left_after(const KescoTimes &times, uint64_t passed, uint32_t percent);

/// The next knot beyond `passed`, where what is left changes most; KESCO_NEVER beyond the last one.
uint64_t next_knot(const KescoTimes &times, uint64_t passed);

/// More than any real time, and so little that sums of some of them do not overflow.
constexpr uint64_t kLongest = uint64_t{1} << 56;

/// The distribution of some values, at least one and at most KESCO_KNOTS.
KescoTimes times_of(const uint64_t *values, uint32_t count);

/// Whether knots and parts ascend and are times at all. What is not known (count 0) is in order.
bool sensible(const KescoTimes &times);

} // namespace kesco::fikit
