#include "process.h"

#include "futex.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#ifndef SYS_close_range
#define SYS_close_range 436 // on every machine
#endif

namespace fikit {
namespace {

constexpr unsigned kUnshare = 2;                            // CLOSE_RANGE_UNSHARE
constexpr rlim_t kMostDescriptors = 1 << 20, kLeast = 1024; // that are closed one by one

Beginning kept; // where no page can be wiped

void wipe() {
    beginning.load()->state.store(Beginning::Wiped);
}

// Which is Wiped in every child.
Beginning *make() {
    const auto size = std::size_t(sysconf(_SC_PAGESIZE));
    void *page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool wiped = page != MAP_FAILED && madvise(page, size, 18 /* MADV_WIPEONFORK */) == 0;
    Beginning *mine = wiped ? new (page) Beginning{} : &kept, *before = nullptr;
    const bool first = beginning.compare_exchange_strong(before, mine);
    if (first && !wiped)
        pthread_atfork(nullptr, nullptr, wipe); // then at least `fork` is noticed
    if (page != MAP_FAILED && !(first && wiped))
        munmap(page, size);
    return first ? mine : before;
}

void close_each() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const int end = int(std::min(std::max(limit.rlim_cur, kLeast), kMostDescriptors));
    for (int fd = 0; fd < end; ++fd)
        close(fd);
}

} // namespace

std::atomic<Beginning *> beginning{nullptr};

void begin(void (*anew)() noexcept) noexcept {
    Beginning *one = beginning.load(std::memory_order_acquire);
    if (!one)
        one = make();
    std::uint32_t seen = Beginning::Wiped;
    if (one->state.compare_exchange_strong(seen, Beginning::Under)) {
        anew();
        one->state.store(Beginning::Done, std::memory_order_release);
        futex_wake(&one->state);
    }
    while (one->state.load(std::memory_order_acquire) == Beginning::Under)
        futex_wait(&one->state, Beginning::Under, 1000000);
}

bool start(void *(*run)(void *)) noexcept {
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    pthread_t thread;
    const bool good = pthread_create(&thread, nullptr, run, nullptr) == 0;
    if (good)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return good;
}

bool own_descriptors() noexcept {
    if (syscall(SYS_close_range, 0U, ~0U, kUnshare) == 0)
        return true;
    if (unshare(CLONE_FILES) != 0) // before Linux 5.9
        return false;
    close_each();
    return true;
}

} // namespace fikit
