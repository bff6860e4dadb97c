// What the policy knows of each task: its costs, its launches that are not done, its tickets and its gap.
#pragma once

#include "policy.h"
#include "policy_beside.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace kesco::fikit {

/// Whether the last 32 predictions of one kind held, and the last 32 values that were seen. Where the profile is wrong
/// too often, what was seen lately takes its place; where that is wrong too often as well, nothing is believed. Fixed
/// memory, which is there from the first value on, and it forgets: who is right again is believed again.
class Record {
  public:
    void add(bool missed) { misses_ = misses_ << 1 | (missed ? 1 : 0); }
    void saw(uint64_t value);
    bool drifted(uint32_t limit) const { return limit && static_cast<uint32_t>(__builtin_popcount(misses_)) >= limit; }
    /// Takes what was seen for true from now on, if the profile is no longer believed and there is enough of it.
    void relearn(uint32_t limit);
    const KescoTimes &times(const KescoTimes &profile) const { return relearned_ ? seen_->learned : profile; }

  private:
    static constexpr uint32_t kRecent = 32, kEnough = 8;
    struct Seen {
        uint32_t many = 0;
        uint64_t values[kRecent] = {};
        KescoTimes learned = {}; // of the values; kept up to date once it counts
    };

    uint32_t misses_ = 0; // a bit for each prediction, the latest one lowest
    bool relearned_ = false;
    std::unique_ptr<Seen> seen_;
};

/// One kernel of a task's profile.
struct Known {
    uint64_t identity = 0;
    const KescoCost *cost = nullptr;
    Record time, gap;
};

constexpr int32_t kUnknown = -1;

/// The costs of one task by identity: an open hash table of places in a list, so that a place stays good when it grows.
class Costs {
  public:
    int32_t find(uint64_t identity) const; // kUnknown where there is none
    void put(uint64_t identity, const KescoCost &cost);
    void borrow(const KescoKernel *kernels, size_t count); // which are not copied
    void clear();
    Known &operator[](int32_t place) { return known_[static_cast<size_t>(place)]; }
    const Known &operator[](int32_t place) const { return known_[static_cast<size_t>(place)]; }

  private:
    size_t slot_of(uint64_t identity) const;
    void make_room(size_t count);
    void set(uint64_t identity, const KescoCost *cost);
    std::deque<KescoCost> own_;
    std::vector<Known> known_;
    std::vector<int32_t> slots_;
};

/// A launch that is not done.
struct Flight {
    int32_t cost = kUnknown;
    bool unknown = false;   // in flight alone
    bool fill = false;      // granted to fill a gap
    bool alone = false;     // nothing else was on the GPU when it was launched
    uint64_t ticket = 0;    // under which it was granted; 0: it was not held, or is known to have begun
    uint64_t sequence = 0;  // of all launches
    uint64_t began = 0;     // launched or granted
    uint64_t predicted = 0; // nanoseconds
};

/// A launch that waits.
struct Ticket {
    uint64_t number = 0;
    uint64_t identity = 0;
    uint64_t since = 0;
    uint64_t told = 0; // KESCO_CLAIRVOYANT: its true time; 0: not told
    int32_t cost = kUnknown;
};

/// A prediction that an idle task stays idle until a time.
struct Promise {
    bool made = false;
    bool believed = true;
    uint64_t until = 0;
};

/// That a task may launch without asking. It stands as of a decision.
struct Credit {
    uint64_t number = 0; // of the latest one
    uint64_t until = 0;  // 0: withdrawn
    uint64_t flight_ns = 0;
    uint64_t used = 0; // when it was last granted something to the same end, or used it
    bool fill = false;
};

/// One task. `state` is what others may see.
struct Task {
    KescoTaskState state = {};
    Costs costs;

    std::unique_ptr<Flight[]> flights; // a ring by the launch's number
    uint64_t predicted = 0;            // of all that are remembered in it
    uint64_t unknown = 0, fills = 0;   // how many of these there are among them

    Ticket tickets[KESCO_POLICY_TICKETS]; // in order; the first `state.waiting`
    uint64_t arrived = 0;

    bool idle = false;
    uint64_t idle_since = 0;
    int32_t last = kUnknown; // the kernel launched last
    Promise promise;
    uint64_t told_return = 0;      // KESCO_CLAIRVOYANT: 0: not told
    uint64_t gap_busy = 0;         // of the gap: lower tasks had work on the GPU
    uint64_t wanted = KESCO_NEVER; // the shortest kernel that would have filled it
    bool reacted = false;          // something was let in that no prediction had room for
    Credit credit;
    Beside beside; // of the holder

    bool harmed = false; // it came back, and lower work is in its way
    uint64_t harmed_since = 0;
    uint64_t paid_at = 0; // when its harm until now is no more than react_permille of its time since then

    uint64_t in_flight() const { return state.launched - state.done; }
    Flight &flight(uint64_t number) { return flights[number % KESCO_POLICY_FLIGHT]; }
    /// What was granted under this ticket and is not done, or null; of the latest ones.
    Flight *granted(uint64_t ticket);
    bool empty() const { return in_flight() == 0 && state.waiting == 0; }
    /// What the device is predicted to stand idle for after the last kernel, or null.
    Known *gap();

    void begin(const Flight &flight); // a launch; the oldest one is forgotten where too many are not done
    void end();                       // the oldest launch that is not done is done
    void drop_ticket(uint32_t place, uint64_t now);

  private:
    void forget(uint64_t number);
};

} // namespace kesco::fikit
