#include "process.h"

#include "futex.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#ifndef SYS_close_range
#define SYS_close_range 436 // on every machine
#endif

namespace fikit {
namespace {

using Word = std::atomic<std::uint32_t>;
enum : std::uint32_t { Wiped = 0, Beginning = 1, Begun = 2 };

constexpr unsigned kUnshare = 2;                            // CLOSE_RANGE_UNSHARE
constexpr rlim_t kMostDescriptors = 1 << 20, kLeast = 1024; // that are closed one by one

std::atomic<Word *> known{nullptr};
Word kept; // where no page can be wiped

void wipe() {
    known.load()->store(Wiped);
}

// A word that is Wiped in every child.
Word *make_word() {
    const auto size = std::size_t(sysconf(_SC_PAGESIZE));
    void *page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool wiped = page != MAP_FAILED && madvise(page, size, 18 /* MADV_WIPEONFORK */) == 0;
    Word *mine = wiped ? new (page) Word{Wiped} : &kept, *before = nullptr;
    const bool first = known.compare_exchange_strong(before, mine);
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

bool begun() noexcept {
    const Word *word = known.load(std::memory_order_acquire);
    return word && word->load(std::memory_order_acquire) == Begun;
}

void begin(void (*anew)() noexcept) noexcept {
    Word *word = known.load(std::memory_order_acquire);
    if (!word)
        word = make_word();
    std::uint32_t seen = Wiped;
    if (word->compare_exchange_strong(seen, Beginning)) {
        anew();
        word->store(Begun, std::memory_order_release);
        futex_wake(word);
    }
    while ((seen = word->load(std::memory_order_acquire)) == Beginning)
        futex_wait(word, Beginning, 1000000);
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
