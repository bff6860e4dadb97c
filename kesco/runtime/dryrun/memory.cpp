// Allocations, and the protection of pages by which accesses of the host are seen.
//
// Pinned and managed memory is protected whenever the device is given work on it. The first access of the host then
// faults: it is recorded, and the pages around it are opened up to where another access of the device begins or ends.
#include "memory.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <map>

namespace dryrun {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostEdges = 256;
constexpr std::size_t kSmall = 64 * 1024; // smaller ones of the device share pages

struct Heap {
    std::map<std::uintptr_t, Allocation> live;
    std::uint64_t next = 0;
    std::size_t bytes = 0;
    std::uintptr_t pool = 0, pool_end = 0;
};
Heap &heap() {
    static auto &one = *new Heap;
    return one;
}

std::uintptr_t pages(std::size_t size) {
    void *place = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return place == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(place);
}

std::size_t whole_pages(std::size_t size) {
    return (size + kPage - 1) / kPage * kPage;
}

// Addresses are never given out twice, so that a pointer to freed memory is known as one.
std::uintptr_t small_piece(std::size_t size) {
    Heap &own = heap();
    size = (size + 511) / 512 * 512;
    if (own.pool_end - own.pool < size) {
        own.pool = pages(16 * kSmall);
        own.pool_end = own.pool == 0 ? 0 : own.pool + 16 * kSmall;
    }
    if (own.pool == 0)
        return 0;
    own.pool += size;
    return own.pool - size;
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

Allocation *enter(Allocation made, std::uint32_t stack, long stream, const std::string &name) {
    Heap &own = heap();
    made.id = own.next++;
    record(std::string("A ") + std::to_string(made.id) + " " + static_cast<char>(made.kind) + " " +
           hexadecimal(made.base) + " " + std::to_string(made.size) + " " + std::to_string(stack) + " " +
           std::to_string(stream) + (name.empty() ? "" : " " + name));
    if (!made.on_host() && made.kind != Kind::symbol)
        own.bytes += made.size;
    return &(own.live[made.base] = made);
}

} // namespace

std::string Range::text(char mode) const {
    std::string result = std::string(1, mode) + ":" + hexadecimal(low) + ":" + std::to_string(width);
    if (rows > 1)
        result += ":" + std::to_string(pitch) + ":" + std::to_string(rows);
    return result;
}

Allocation *allocate(Kind kind, std::size_t size, const Call &call, long stream, bool watched) {
    const bool guarded = kind == Kind::managed || kind == Kind::pinned;
    const bool small = !guarded && size < kSmall;
    const std::uintptr_t base = small ? small_piece(size) : pages(whole_pages(size));
    if (base == 0)
        return nullptr;
    Allocation made{0, kind, base, size, thread().device};
    made.guarded = guarded && watched && std::getenv("CUDA_DRY_RUN_BLIND") == nullptr;
    made.pooled = stream >= 0;
    if (made.guarded)
        watch();
    return enter(made, call.stack(), stream, "");
}

Allocation *adopt(Kind kind, const void *base, std::size_t size, std::uint32_t stack, const std::string &name) {
    return enter({0, kind, reinterpret_cast<std::uintptr_t>(base), size, thread().device}, stack, -1, name);
}

void release(Allocation *allocation, std::uint32_t stack, long stream) {
    record("F " + hexadecimal(allocation->base) + " " + std::to_string(stack) + " " + std::to_string(stream) + " " +
           std::to_string(allocation->device));
    Heap &own = heap();
    if (!allocation->on_host() && allocation->kind != Kind::symbol)
        own.bytes -= allocation->size;
    if (allocation->kind == Kind::pinned) {
        munmap(reinterpret_cast<void *>(allocation->base), whole_pages(allocation->size));
    } else if (allocation->kind != Kind::registered &&
               (allocation->kind == Kind::managed || allocation->size >= kSmall)) {
        mmap(reinterpret_cast<void *>(allocation->base), whole_pages(allocation->size), PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0); // the memory goes, the addresses stay
    }
    own.live.erase(allocation->base);
}

Allocation *allocation_at(std::uintptr_t address) {
    Heap &own = heap();
    auto found = own.live.upper_bound(address);
    if (found == own.live.begin())
        return nullptr;
    --found;
    Allocation &one = found->second;
    return address < one.end() || address == one.base ? &one : nullptr;
}

std::vector<Allocation *> allocations() {
    std::vector<Allocation *> result;
    for (auto &entry : heap().live)
        result.push_back(&entry.second);
    return result;
}

std::size_t allocated() {
    return heap().bytes;
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
    if (size == 0 || heap().live.empty())
        return;
    Call call;
    const auto address = reinterpret_cast<std::uintptr_t>(low);
    Allocation *allocation = allocation_at(address);
    if (allocation == nullptr || !allocation->armed)
        return;
    touched(*allocation, address, writes, call.stack());
    open_range(address, size);
}

void reach(Allocation *from, std::set<std::uint64_t> &found) {
    if (from == nullptr)
        return;
    open_range(from->base, from->size);
    const auto *words = reinterpret_cast<const std::uintptr_t *>(from->base);
    for (std::size_t i = 0; i < from->size / sizeof *words; ++i) {
        Allocation *to = words[i] == 0 ? nullptr : allocation_at(words[i]);
        if (to != nullptr && found.insert(to->id).second && to != from)
            reach(to, found);
    }
}

} // namespace dryrun
