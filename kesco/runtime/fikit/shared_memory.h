// What a client and the daemon share: one sealed memfd for each client, made by the daemon and passed over its socket.
//
// Each word has one writer. The daemon trusts nothing that the client writes: it masks every index, does a bounded
// amount of work for what it finds, and takes a time from the future for now. So a client can spoil its own turn only.
// All clients and the daemon are of one version (the handshake says so); nothing of this is kept on disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fikit {

constexpr std::uint32_t kVersion = 6;
constexpr std::size_t kRecords = 1024;                        // a power of two
constexpr std::size_t kNames = 1024;                          // likewise
constexpr std::size_t kName = 112;                            // bytes, with the final zero
constexpr std::size_t kWorth = 4096;                          // bits, a power of two
constexpr std::size_t kPredicted = 2048, kPredictedTries = 8; // kernels with a known time; a power of two

// Whose end a client says. Nobody wants to know: none. Some: of what leaves the device idle for long, and of what the
// program waits for; each other launch counts with the next one.
enum class Track : std::uint32_t { None = 0, Each = 1, Some = 2 };

enum class What : std::uint32_t { Passed = 1, Waits = 2, Abandoned = 3, Credited = 4, Began = 5, Ended = 6 };
// Credited has the credit for a ticket. Began: what was granted is launched now, its client is awake. Ended: the
// holder has waited for all that it launched, so many launches; for an identity it has the nanoseconds in which it
// waited since the last time. So what a request is and when it ended is known also where the daemon slept.

// One launch, in the order in which the client's threads came to it.
struct Record {
    std::atomic<std::uint64_t> sequence; // its place in the whole stream, from 1; written last
    std::atomic<std::uint64_t> identity;
    std::atomic<std::uint64_t> ticket;
    std::atomic<std::uint64_t> time; // as `now` in clock.h tells it
    std::atomic<std::uint32_t> what; // What
};

// How a kernel is called: said once for each identity.
struct Name {
    std::atomic<std::uint64_t> sequence; // as in Record
    std::atomic<std::uint64_t> identity;
    char text[kName];
};

// What a kernel is taken for. A client that writes here plans its own turn badly.
struct Predicted {
    std::atomic<std::uint64_t> identity; // 0: free
    std::atomic<std::uint64_t> time;     // nanoseconds; 0: it has to ask
};

struct Shared {
    // Written by the daemon.
    alignas(64) std::atomic<std::uint32_t> gate;    // 1: the holder, which goes straight through
    std::atomic<std::uint32_t> track;               // Track; a futex
    std::atomic<std::uint32_t> asleep;              // 1: write a byte to the socket when something waits
    alignas(64) std::atomic<std::uint64_t> granted; // the last ticket that was granted; they are granted in order
    std::atomic<std::uint32_t> grant_word;          // a futex: changes with `granted`
    std::atomic<std::uint64_t> beat;                // when the daemon was last seen to work
    // The credit: see KescoCredit. It is read before each launch, and 0 as soon as the daemon saw the holder come back.
    alignas(64) std::atomic<std::uint64_t> credit_until; // as `now` tells it; written last
    std::atomic<std::uint64_t> credit_number, credit_flight_ns, credit_launches,
        credit_unknown; // what a kernel without a known time is taken for on it; 0: it has to ask
    alignas(64) Predicted predicted[kPredicted];
    // By identity, a bit for each: a gap that is worth filling may follow. Two that share a bit cost an event.
    alignas(64) std::atomic<std::uint64_t> worth[kWorth / 64];
    // Written by the client.
    alignas(64) std::atomic<std::uint64_t> head;      // records written
    alignas(64) std::atomic<std::uint64_t> completed; // launches that have ended
    std::atomic<std::uint64_t> completed_at;          // when that was seen,
    std::atomic<std::uint64_t> unready_at;            // and when it was seen last that they had not all ended,
    std::atomic<std::uint64_t> unready_of;            // of so many; 0 while it is written
    alignas(64) Record records[kRecords];
    alignas(64) std::atomic<std::uint64_t> names_head;
    Name names[kNames];
};

inline std::uint64_t worth_bit(std::uint64_t identity) {
    return std::uint64_t(1) << (identity & 63);
}
inline std::size_t worth_word(std::uint64_t identity) {
    return std::size_t(identity >> 6) & (kWorth / 64 - 1);
}

inline std::size_t predicted_slot(std::uint64_t identity, std::size_t attempt) {
    return std::size_t((identity * 0x9E3779B97F4A7C15U >> 40) + attempt) & (kPredicted - 1);
}
// What a kernel is taken for, in nanoseconds; 0: not known.
inline std::uint64_t prediction(const Shared &shared, std::uint64_t identity) {
    for (std::size_t attempt = 0; attempt < kPredictedTries; ++attempt) {
        const Predicted &one = shared.predicted[predicted_slot(identity, attempt)];
        if (one.identity.load(std::memory_order_acquire) == identity)
            return one.time.load(std::memory_order_relaxed);
    }
    return 0;
}

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "shared between processes");

} // namespace fikit
