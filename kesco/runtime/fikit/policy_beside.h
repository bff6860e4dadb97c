// Whether other work may run beside a task that is busy: by what that was measured to cost it.
//
// Under MPS a lower task runs on SMs that the holder leaves, not only in its gaps. Whether that slows the holder down
// nobody can say before: where launches are its bottleneck it costs nothing, where the GPU is, almost everything. So it
// is tried, and measured all the time:
//
// 1. A *burst* is what the holder does from a launch until it has waited for all that it launched: mostly a request.
//    Bursts are of one kind where they begin with the same kernel and have as many launches.
// 2. Of each kind it is known how long the last ones took that had the GPU for themselves, and how long of that the
//    holder waited. Its own work others do not change, and that may be twice as long in one second as in the next. What
//    they take from the GPU is seen in the waiting alone.
// 3. With enough of those, others run beside it. Each burst then tells how much longer it was waited for than for its
//    kind, as a part of the whole burst.
// 4. As soon as it is certain that this is more than the limit on the mean, or it is so over a whole window, that ends,
//    and is tried again after a pause, which becomes four times as long each time.
// 5. Behind every two windows, and before a trial, some bursts have the GPU for themselves, and no gap is filled. And
//    where it went well until now, what is known of bursts alone is found anew before it ends.
//
// A burst that is longer than a second tells nothing in time, so nobody runs beside it. What never waits has no bursts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kesco::fikit {

class Beside {
  public:
    /// A launch; of a burst that is not under way the first one.
    void begins(uint64_t now, uint64_t identity, bool others);
    void launches() { ++launches_; }
    void other() { others_ = true; } // something of others was launched
    void ends(uint64_t now, uint64_t waited, uint64_t limit_permille);
    /// What was under way tells nothing: another task holds the GPU.
    void interrupted() { running_ = false; }
    /// Begins a trial where there is one to begin and somebody who wants it; ends what takes too long.
    void look(uint64_t now, bool wanted);
    bool on() const { return on_; }
    bool wants_quiet() const { return quiet_; }      // no gap is to be filled
    uint64_t began() const { return began_; }        // how often
    uint64_t slow_permille() const { return slow_; } // of the last bursts beside others, over alone; 0: not known

  private:
    static constexpr size_t kKinds = 8, kAlone = 16, kEnough = 8, kLeast = 4, kWindow = 32, kProbe = 3, kTries = 12;
    struct Kind {
        uint64_t key = 0, used = 0;
        size_t many = 0;
        uint64_t whole[kAlone] = {}, waits[kAlone] = {};
        double median = 0, wait = 0; // of whole bursts, and of the waiting in them
        double mean = 0, doubt = 0;  // of the waiting beyond that, as parts of a burst, and how uncertain that is
    };
    Kind kinds_[kKinds];
    bool running_ = false, others_ = false, was_on_ = false;
    uint64_t since_ = 0, ended_ = 0, identity_ = 0, launches_ = 0;
    uint64_t bursts_ = 0;
    const Kind *latest_ = nullptr; // that was seen alone

    bool on_ = false, probing_ = false, quiet_ = false;
    uint64_t quiet_since_ = 0;
    uint64_t began_ = 0, again_at_ = 0, pause_ = 0, slow_ = 0;
    size_t strange_ = 0;            // bursts beside others of kinds that are not known, one behind the other
    size_t many_ = 0, windows_ = 0; // of this window, and whole ones since the last probe
    double sum_ = 0, squares_ = 0, doubt_ = 0;
    size_t probes_ = 0, tries_ = 0; // bursts alone that are still to come, and how many may pass meanwhile

    Kind &kind(uint64_t key);
    void alone(Kind &kind, uint64_t whole, uint64_t waited);
    void beside(const Kind &kind, uint64_t waited, uint64_t now, uint64_t limit_permille);
    void anew();
    void back(uint64_t now, bool far);
    void new_window() { many_ = 0, sum_ = squares_ = doubt_ = 0; }
};

} // namespace kesco::fikit
