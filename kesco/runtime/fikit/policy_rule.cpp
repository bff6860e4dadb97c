// What a credit allows: the one rule of the policy that clients follow by themselves.
#include "policy.h"

int kesco_credit_allows(const KescoCredit *credit, uint64_t now, uint64_t outstanding, uint64_t launches,
                        uint64_t predicted) {
    if (!predicted || credit->until <= now || launches >= credit->flight_launches)
        return 0;
    const uint64_t left = credit->until - now;
    if (outstanding > left || predicted > left - outstanding)
        return 0;
    return !launches || (outstanding <= credit->flight_ns && predicted <= credit->flight_ns - outstanding);
}
