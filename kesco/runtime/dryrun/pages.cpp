// The back end of a dry run, for memory: pages of the host stand for the device's, and their protection shows what the
// host does with them.
//
// Pinned and managed memory is protected whenever the device is given work on it. The first access of the host then
// faults: it is recorded, and the pages around it are opened up to where another access of the device begins or ends.
#include "backend.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>

namespace dryrun {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostEdges = 256;
constexpr std::size_t kSmall = 64 * 1024; // smaller ones of the device share pages

std::uintptr_t pages(std::size_t size) {
    void *place = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return place == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(place);
}

std::size_t whole_pages(std::size_t size) {
    return (size + kPage - 1) / kPage * kPage;
}

// Addresses are never given out twice, so that a pointer to freed memory is known as one.
std::uintptr_t small_piece(std::size_t size) {
    static std::uintptr_t pool = 0, pool_end = 0;
    size = (size + 511) / 512 * 512;
    if (pool_end - pool < size) {
        pool = pages(16 * kSmall);
        pool_end = pool == 0 ? 0 : pool + 16 * kSmall;
    }
    if (pool == 0)
        return 0;
    pool += size;
    return pool - size;
}

void protect(std::uintptr_t low, std::uintptr_t high, int how) {
    mprotect(reinterpret_cast<void *>(low), high - low, how);
}

// The pages around an address that lie between the edges next to it.
std::pair<std::uintptr_t, std::uintptr_t> window(const Allocation &allocation, std::uintptr_t address) {
    const std::uintptr_t page = address / kPage * kPage;
    std::uintptr_t low = allocation.base, high = allocation.base + whole_pages(allocation.size);
    const auto above = allocation.edges.upper_bound(page + kPage - 1);
    if (above != allocation.edges.end() && *above < high)
        high = *above / kPage * kPage;
    const auto below = allocation.edges.upper_bound(page);
    if (below != allocation.edges.begin() && *std::prev(below) > low)
        low = whole_pages(*std::prev(below));
    return {low < page ? low : page, high > page + kPage ? high : page + kPage};
}

void touched(Allocation &allocation, std::uintptr_t address, bool writes, std::uint32_t stack) {
    record(std::string("T ") + (writes ? "w " : "r ") + hexadecimal(address) + " " + std::to_string(stack));
    const auto [low, high] = window(allocation, address);
    protect(low, high, writes ? PROT_READ | PROT_WRITE : PROT_READ);
}

void on_fault(int signal, siginfo_t *info, void *context) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    Call call; // takes the lock
    Allocation *allocation = allocation_at(address);
    if (allocation == nullptr || !allocation->armed) { // the program's own fault: let it end as it would have
        ::signal(signal, SIG_DFL);
        return;
    }
#ifdef __x86_64__
    const bool writes = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    const bool writes = true;
#endif
    void *addresses[24];
    const int count = backtrace(addresses, 24);
    std::vector<std::uintptr_t> stack;
    for (int i = 2; i < count; ++i) // this function and the frame of the signal come first
        stack.push_back(reinterpret_cast<std::uintptr_t>(addresses[i]) + (i == 2 ? 1 : 0));
    touched(*allocation, address, writes, stack_number(stack));
}

void watch() {
    static const bool done = [] {
        void *warm[2];
        backtrace(warm, 2); // loads what it needs now, not in the handler
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_NODEFER;
        sigaction(SIGSEGV, &action, nullptr);
        return true;
    }();
    (void)done;
}

} // namespace

bool backend::obtain(Allocation &made) {
    const bool guarded = made.kind == Kind::managed || made.kind == Kind::pinned;
    const bool small = !guarded && made.size < kSmall;
    made.base = small ? small_piece(made.size) : pages(whole_pages(made.size));
    made.guarded = guarded && made.guarded && std::getenv("CUDA_DRY_RUN_BLIND") == nullptr;
    if (made.guarded && made.base != 0)
        watch();
    return made.base != 0;
}

void backend::give_back(const Allocation &allocation) {
    if (allocation.kind == Kind::pinned)
        munmap(reinterpret_cast<void *>(allocation.base), whole_pages(allocation.size));
    else if (allocation.kind != Kind::registered && (allocation.kind == Kind::managed || allocation.size >= kSmall))
        mmap(reinterpret_cast<void *>(allocation.base), whole_pages(allocation.size), PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0); // the memory goes, the addresses stay
}

void open_range(std::uintptr_t low, std::size_t size) {
    Allocation *allocation = allocation_at(low);
    if (allocation != nullptr && allocation->armed && size > 0) {
        protect(allocation->base, allocation->base + whole_pages(allocation->size), PROT_READ | PROT_WRITE);
        allocation->armed = false;
    }
}

void arm(Allocation *allocation, const Range *range) {
    if (allocation == nullptr || !allocation->guarded || allocation->size == 0)
        return;
    if (range != nullptr) {
        if (allocation->edges.size() > kMostEdges)
            allocation->edges.clear();
        allocation->edges.insert(range->low);
        allocation->edges.insert(range->low + range->extent());
    }
    protect(allocation->base, allocation->base + whole_pages(allocation->size), PROT_NONE);
    allocation->armed = true;
}

void host_touches(const void *low, std::size_t size, bool writes) {
    if (size == 0 || !any_guarded())
        return;
    Call call;
    const auto address = reinterpret_cast<std::uintptr_t>(low);
    Allocation *allocation = allocation_at(address);
    if (allocation == nullptr || !allocation->armed)
        return;
    touched(*allocation, address, writes, call.stack());
    open_range(address, size);
}

} // namespace dryrun
