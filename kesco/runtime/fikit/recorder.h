// What happened, in order, as lines of text: for `kesco fikit explain` and Perfetto. Times are nanoseconds.
//
//     kesco-fikit-events 1
//     T <time> <task> <priority> <pid> <name>             it came
//     K <task> <identity, 16 hex digits> <name>           what a kernel of it is called
//     P <time> <task> <identity>                          launched without being held
//     W <time> <task> <ticket> <identity>                 stopped at its launch
//     G <time> <task> <ticket> <KescoGrantReason> <KescoHeldReason before> <predicted> <left of the gap>
//     B <time> <task> <ticket>                            awake: what was granted is launched
//     C <time> <task> <identity>                          launched on a credit
//     A <time> <task> <ticket>                            let itself go
//     D <time> <task> <launches>                          so many have ended, in all
//     L <time> <task>                                     it left
#pragma once

#include "policy.h"

#include <cstdint>
#include <cstdio>
#include <string>

namespace fikit {

class Recorder {
  public:
    Recorder() = default;
    ~Recorder();
    Recorder(const Recorder &) = delete;
    Recorder &operator=(const Recorder &) = delete;
    // What is wrong, or an empty text. The file is this one's alone from then on, and never longer than `most` bytes.
    std::string open(const std::string &path, std::uint64_t most);
    bool on() const { return file_ != nullptr; }
    void came(std::uint64_t time, std::uint32_t task, int priority, long pid, const std::string &name);
    void named(std::uint32_t task, std::uint64_t identity, const std::string &name);
    void passed(std::uint64_t time, std::uint32_t task, std::uint64_t identity);
    void waits(std::uint64_t time, std::uint32_t task, std::uint64_t ticket, std::uint64_t identity);
    void credited(std::uint64_t time, std::uint32_t task, std::uint64_t identity);
    void granted(std::uint64_t time, const KescoGrant &grant, std::uint32_t held);
    void began(std::uint64_t time, std::uint32_t task, std::uint64_t ticket);
    void abandoned(std::uint64_t time, std::uint32_t task, std::uint64_t ticket);
    void done(std::uint64_t time, std::uint32_t task, std::uint64_t launches);
    void left(std::uint64_t time, std::uint32_t task);

  private:
    template <typename... Values> void line(const char *form, Values... values);
    std::FILE *file_ = nullptr;
    std::uint64_t written_ = 0, most_ = 0; // bytes
    bool full_ = false;
};

} // namespace fikit
