#include "policy_beside.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kesco::fikit {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPause = kSecond, kLongestPause = 64 * kSecond;
constexpr uint64_t kLongestBurst = kSecond;
constexpr double kMost = 1;     // bursts that a wait counts as at most: a host that was away says nothing
constexpr double kCertain = 2;  // standard errors
constexpr double kHopeless = 4; // times the limit: one is enough then, and the next trial is far away

double median(const uint64_t *values, size_t many) {
    uint64_t sorted[32];
    std::copy(values, values + many, sorted);
    std::nth_element(sorted, sorted + many / 2, sorted + many);
    return double(sorted[many / 2]);
}

} // namespace

// The kind with this key, or in place of the one that was not seen for longest.
Beside::Kind &Beside::kind(uint64_t key) {
    Kind *found = std::find_if(kinds_, kinds_ + kKinds, [&](const Kind &one) { return one.key == key && one.used; });
    if (found == kinds_ + kKinds) {
        const auto older = [](const Kind &one, const Kind &other) { return one.used < other.used; };
        found = std::min_element(kinds_, kinds_ + kKinds, older);
        *found = {};
        found->key = key;
    }
    found->used = bursts_;
    return *found;
}

void Beside::begins(uint64_t now, uint64_t identity, bool others) {
    if (std::exchange(running_, true))
        return;
    others_ = others;
    was_on_ = on_;
    since_ = now;
    identity_ = identity;
    launches_ = 0;
}

void Beside::ends(uint64_t now, uint64_t waited, uint64_t limit_permille) {
    if (!running_ || now == since_)
        return;
    running_ = false;
    ended_ = now;
    ++bursts_;
    tries_ -= tries_ > 0;
    Kind &one = kind(identity_ * 0x9E3779B97F4A7C15U + launches_);
    if (!on_ && !was_on_ && !others_)
        return alone(one, now - since_, waited);
    if (!on_ || !was_on_ || !others_)
        return;
    if (one.many >= kEnough)
        beside(one, waited, now, limit_permille);
    else if (++strange_ == kWindow)
        anew();
}

void Beside::alone(Kind &kind, uint64_t whole, uint64_t waited) {
    kind.whole[kind.many % kAlone] = whole;
    kind.waits[kind.many % kAlone] = waited;
    ++kind.many;
    latest_ = &kind;
    probes_ -= probes_ > 0;
    const size_t many = std::min(kind.many, kAlone);
    kind.median = median(kind.whole, many);
    kind.wait = median(kind.waits, many);
    double sum = 0, squares = 0;
    for (size_t n = 0; n < many; ++n) {
        const double part = std::min((double(kind.waits[n]) - kind.wait) / kind.median, kMost);
        sum += part;
        squares += part * part;
    }
    kind.mean = sum / double(many);
    kind.doubt = std::max(squares / double(many) - kind.mean * kind.mean, 0.0) / double(many);
}

void Beside::beside(const Kind &kind, uint64_t waited, uint64_t now, uint64_t limit_permille) {
    const double more = std::min((double(waited) - kind.wait) / kind.median, kMost) - kind.mean;
    ++many_;
    strange_ = 0;
    sum_ += more;
    squares_ += more * more;
    doubt_ += kind.doubt;
    if (many_ < kLeast)
        return;
    const double many = double(many_), mean = sum_ / many, limit = double(limit_permille) / 1000;
    const double doubt = std::sqrt((std::max(squares_ / many - mean * mean, 0.0) + doubt_) / many);
    slow_ = uint64_t(std::max(1000 * (1 + mean), 1.0));
    const bool hopeless = mean - doubt > kHopeless * limit;
    if (hopeless || mean - kCertain * doubt > limit || (many_ == kWindow && mean > limit))
        return windows_ ? anew() : back(now, hopeless);
    if (many_ < kWindow)
        return;
    new_window();
    pause_ /= 4;
    if (++windows_ % 2 == 0) {
        on_ = false; // for a moment
        probing_ = true;
        probes_ = kProbe;
        tries_ = kTries;
    }
}

// What is known of bursts alone may be old.
void Beside::anew() {
    for (Kind &one : kinds_)
        one.many = 0;
    on_ = false;
    probing_ = true;
    windows_ = strange_ = 0;
    new_window();
}

void Beside::back(uint64_t now, bool far) {
    on_ = probing_ = quiet_ = false;
    windows_ = strange_ = 0;
    pause_ = std::min(std::max(4 * pause_, far ? 4 * kPause : kPause), kLongestPause);
    again_at_ = now + pause_;
    probes_ = kEnough;
    tries_ = ~size_t(0);
    new_window();
}

void Beside::look(uint64_t now, bool wanted) {
    if (running_ && on_ && now - since_ > kLongestBurst)
        back(now, true);
    const bool due = !on_ && wanted && bursts_ && now >= again_at_;
    const bool known = latest_ && latest_->many >= kEnough && !(probes_ && tries_);
    const bool quiet = due && !known && now - std::max(ended_, since_) <= kLongestBurst;
    if (quiet && !quiet_)
        quiet_since_ = now;
    quiet_ = quiet;
    if (quiet && now - quiet_since_ > kLongestBurst)
        back(now, true); // nothing that could be compared comes: gaps are filled meanwhile
    if (!due || !known)
        return;
    on_ = true;
    began_ += !std::exchange(probing_, false);
    new_window();
}

} // namespace kesco::fikit
