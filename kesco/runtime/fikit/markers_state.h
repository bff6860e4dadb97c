// What is known of the launches that are counted: for markers.cpp alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace fikit {

constexpr int kEvents = 512;

struct Marker {
    void *event;
    std::uint64_t weight; // launches that it stands for
    std::uint64_t upto;   // the last of them, as counted in `made`
    std::uint32_t epoch;
    bool close; // right behind a launch: until it has ended that one has not
};
struct Asked {
    void *event;
    bool close;
};

// Which stream all launches since the last full stop were on: none, one, or several.
constexpr std::uintptr_t kNoStream = 0, kSeveral = 3, kLegacy = 1;
constexpr std::uintptr_t kPerThreadHandle = 2; // CU_STREAM_PER_THREAD

// Launches on credits that no event stands for yet, all on one stream.
struct Owed {
    std::uintptr_t stream = kNoStream; // kNoStream: there are none; kSeveral: none that can be told by an event
    unsigned long long id = 0;         // of the stream
    std::uint64_t launches = 0;        // how many
    std::uint64_t time = 0;            // predicted, of all of them
    std::uint64_t at = 0;              // when the last one was launched
};

// The counters may be read and added to without `lock`; all the rest is kept under it. It is held for no longer than a
// few calls that do not wait; events are asked without it.
struct Markers {
    std::mutex lock;
    std::atomic<std::uint64_t> made{0};   // launches, in order
    std::atomic<std::uint64_t> marked{0}; // of these so many are done or have an event: see `upto`
    std::atomic<std::uint64_t> at{0};     // when the last event was recorded
    std::atomic<std::uintptr_t> stream{kNoStream};
    std::atomic<int> count{0};
    std::atomic<std::uint64_t> ended{0}; // of `made`
    std::atomic<int> waits{0};           // of threads of the program, under way
    void *context = nullptr;             // events belong to one; a second GPU is another daemon's
    void *spare[kEvents];
    int spares = 0, created = 0;
    Marker pending[kEvents];
    bool asking = false;  // some thread asks them, without the lock; none of them is recorded anew until it has
    Asked asked[kEvents]; // by that thread
    void *back[kEvents];  // meanwhile no longer pending
    int kept_back = 0;
    std::uint64_t done = 0, before = 0; // launches that have ended since the reset, and that were made before it
    std::uint32_t epoch = 0;
    unsigned long long id = 0; // of `stream`, as of the last event on it
    std::uint64_t unready = 0; // when an event close behind a launch was last asked that had not ended
    Owed owed;
    std::uint64_t steps_from = 0; // before this each launch has an event

    void ends(std::uint64_t launches) {
        done += launches;
        ended.store(before + done, std::memory_order_relaxed);
    }
    // These events have ended, or their context did.
    template <typename Which> void drop(const Which &which) {
        int kept = 0;
        const int number = count.load(std::memory_order_relaxed);
        for (int i = 0; i < number; ++i) {
            const Marker one = pending[i];
            if (!which(one)) {
                pending[kept++] = one;
                continue;
            }
            if (one.epoch == epoch)
                ends(one.weight);
            (asking ? back[kept_back++] : spare[spares++]) = one.event;
        }
        count.store(kept, std::memory_order_relaxed);
    }
};

} // namespace fikit
