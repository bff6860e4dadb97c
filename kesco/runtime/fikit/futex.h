// Sleeping on a word of shared memory, and waiting without sleep.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <mutex>

namespace fikit {

// Sleeps while the word is `seen`, for at most so many nanoseconds. May come back early.
inline void futex_wait(std::atomic<std::uint32_t> *word, std::uint32_t seen, std::uint64_t nanoseconds) {
    const timespec time{time_t(nanoseconds / 1000000000), long(nanoseconds % 1000000000)};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0);
}
inline void futex_wake(std::atomic<std::uint32_t> *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Locked. Where that is for a few calls only, to sleep and be woken takes longer than to look again.
inline std::unique_lock<std::mutex> soon(std::mutex &lock) {
    for (int i = 0; i < 100; ++i, pause())
        if (lock.try_lock())
            return {lock, std::adopt_lock};
    return std::unique_lock<std::mutex>(lock);
}

} // namespace fikit
