// The client: what a process does around its launches while it shares a GPU.
//
// The holder writes a record and reads an open gate: no wait, no system call. Anyone else stops at the launch until its
// ticket is granted, for at most its deadline. Without a daemon, or when it dies or hangs, everything goes on at once.
// The whole process stops at its gate, never a single stream. What is captured, and what must not be held (cooperative
// launches, NCCL), is never held.
//
// A thread may be cancelled in the driver, and never come back to the second half of what it began. No frame that the
// driver is called from has anything to destroy: this library has an unwinder of its own, which the C library's does
// not go together with. What was begun is put right when the thread ends.
#pragma once

#include <atomic>
#include <cstdint>

namespace fikit {

struct Launch {
    std::uint64_t identity;
    const char *name;                  // of the kernel, for people; may be null
    std::atomic<std::uint32_t> *told;  // the epoch in which it was said; may be null
    void *stream;                      // CUstream or cudaStream_t
    bool per_thread;                   // a null stream means the thread's own
    bool never_held;                   // cooperative, NCCL
    const std::uint32_t *grid, *block; // three numbers each
    std::uint64_t shared;              // dynamic, in bytes
};

// Around a launch, by the thread that launches. Nested calls (a hook around cudaLaunchKernel around cuLaunchKernel)
// count once: `enter` is false inside, and then `leave` is not called.
bool enter(const Launch &launch) noexcept;
void leave(const Launch &launch, bool launched) noexcept;
// Whether this thread is between the two.
bool inside() noexcept;
// Launches and waits of this thread go straight to the driver while this is on, as where nothing is asked for. It is
// for measuring what the client costs within one process, and nothing else: nobody is told of such launches.
void pass_by(bool on) noexcept;
// Whether anything is asked for at all: a daemon's socket or a measurement is named.
bool wanted() noexcept;
// Around a wait for the device: what was launched before it on the stream, or at all, has ended after it.
struct Wait {
    void *stream;
    bool per_thread;
    bool all; // of the context
};
// Begins, and says how many launches there were until then. Until its end nothing is taken for ended that nobody has
// seen to be.
std::uint64_t wait_begins() noexcept;
void wait_ends() noexcept;
void after_wait(std::uint64_t before, const Wait &wait) noexcept;
// The thread has waited for something else: what has ended can be said at once.
void synchronized() noexcept;

} // namespace fikit
