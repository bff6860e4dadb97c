// What is known of tasks before they come: the profile, and what follows from it alone, worked out once. So a client
// whose profile is long keeps nobody waiting when it comes.
#pragma once

#include "costs_file.h"
#include "guest.h"

#include <array>
#include <map>
#include <memory>
#include <string>

namespace fikit {

class Profiles {
  public:
    // What is wrong, or an empty text.
    std::string read(const std::string &path, const KescoPolicySettings &settings);
    // Tells the policy and the client all that is known of it; this must outlive both.
    void give(Guest &guest, KescoPolicy *policy) const;

  private:
    struct Profile {
        kesco::fikit::TaskCosts costs;
        std::unique_ptr<Predicted[]> predicted{new Predicted[kPredicted]()}; // as a client's table
        std::array<std::uint64_t, kWorth / 64> worth{};
    };
    std::map<std::string, Profile> profiles_; // by task
};

} // namespace fikit
