#include "profiles.h"

#include "policy_times.h"

namespace fikit {
namespace {

// Whether a gap behind this kernel is predicted to be one to fill. Where it is one now and then, an event for each
// would be paid by the many launches behind which there is none.
bool worth_watching(const KescoTimes &gap, const KescoPolicySettings &settings) {
    const std::uint64_t predicted =
        settings.kind == KESCO_MEAN ? gap.mean : kesco::fikit::quantile(gap, settings.gap_percent);
    return gap.count && predicted >= settings.threshold_ns / 2;
}

} // namespace

std::string Profiles::read(const std::string &path, const KescoPolicySettings &settings) {
    std::string why;
    auto found = kesco::fikit::read_costs(path, why);
    if (!found)
        return why;
    for (auto &[key, costs] : *found) {
        Profile &one = profiles_[key];
        one.costs = std::move(costs);
        // A policy of its own, in which the task has just come: what it then predicts.
        const std::unique_ptr<KescoPolicy, decltype(&kesco_policy_free)> policy(kesco_policy_new(&settings),
                                                                                kesco_policy_free);
        kesco_policy_task_arrives(policy.get(), 0, 0, 0);
        kesco_policy_kernels(policy.get(), 0, one.costs.data(), one.costs.size());
        for (const KescoKernel &kernel : one.costs) {
            predict(one.predicted.get(), kernel.identity, kesco_policy_predicts(policy.get(), 0, kernel.identity));
            if (worth_watching(kernel.cost.gap, settings))
                one.worth[worth_word(kernel.identity)] |= worth_bit(kernel.identity);
        }
    }
    return "";
}

void Profiles::give(Guest &guest, KescoPolicy *policy) const {
    const auto found = profiles_.find(guest.key);
    if (found == profiles_.end())
        return;
    const Profile &one = found->second;
    kesco_policy_kernels(policy, guest.task, one.costs.data(), one.costs.size());
    for (std::size_t n = 0; n < kPredicted; ++n) {
        Predicted &to = guest.words->predicted[n];
        to.time.store(one.predicted[n].time.load(std::memory_order_relaxed), std::memory_order_relaxed);
        to.identity.store(one.predicted[n].identity.load(std::memory_order_relaxed), std::memory_order_release);
    }
    for (std::size_t n = 0; n < one.worth.size(); ++n)
        guest.words->worth[n].store(one.worth[n], std::memory_order_relaxed);
}

} // namespace fikit
