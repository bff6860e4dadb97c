// What is of this process alone: whether it is still the one in which the client began, threads that no handler of the
// program's runs on, and descriptors that the program does not see.
//
// A child has the client's memory as it was, ties of its parent and locks of threads that it lacks among it. The kernel
// tells: it wipes a word in every child, also where `_Fork` or `clone` call no handler.
//
// A program may close descriptors that it did not open, and then be given the same numbers. So the client has none in
// the program's table. Each thread that needs some has a table of its own: what the program closes, forks or leaves to
// a child does not touch it, and it ends with the process and where that executes another program.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace fikit {

// Whether this process has begun. `begin` has it begin where it has not: one thread calls `anew`, others wait for it.
struct Beginning {
    enum : std::uint32_t { Wiped = 0, Under = 1, Done = 2 };
    std::atomic<std::uint32_t> state;
};
extern std::atomic<Beginning *> beginning; // null before the first one
inline bool begun() noexcept {
    const Beginning *one = beginning.load(std::memory_order_acquire);
    return one && one->state.load(std::memory_order_acquire) == Beginning::Done;
}
void begin(void (*anew)() noexcept) noexcept;

// Starts a thread with all signals blocked; whether it could.
bool start(void *(*run)(void *)) noexcept;

// Gives the calling thread a table of descriptors of its own, with nothing in it; false where that is not allowed.
bool own_descriptors() noexcept;

// For as long as it lives this thread is not cancelled: around whatever waits, or calls the driver, which may do what
// is a point of cancellation. Nothing of that is to be left halfway. It takes 10 ns, so the way of a launch that nobody
// holds goes without.
class Uncancelled {
  public:
    Uncancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
    Uncancelled(const Uncancelled &) = delete;
    Uncancelled &operator=(const Uncancelled &) = delete;

  private:
    int before_ = 0;
};

} // namespace fikit
