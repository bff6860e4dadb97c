// The back end in front of the real runtime: what a call did is done already, and only the books are kept.
//
// Pointers that are stored in the device's memory are known as far as the host copied them there; of memory that the
// host may read they are read.
#include "forward.h"

#include <unistd.h>

#include <cstring>
#include <map>
#include <set>

namespace dryrun {

void open_range(std::uintptr_t, std::size_t) {}
void arm(Allocation *, const Range *) {}

namespace {

constexpr std::uintptr_t kHighest = std::uintptr_t{1} << 47; // of what a program can have
constexpr std::uintptr_t kInvented = 0xa000000000000000;     // no address of any machine begins like this

// Words that were copied to the device and could be pointers, by where they are.
std::map<std::uintptr_t, std::uintptr_t> &stored() {
    static auto &one = *new std::map<std::uintptr_t, std::uintptr_t>;
    return one;
}

void forget(std::uintptr_t low, std::size_t size) {
    stored().erase(stored().lower_bound(low), stored().lower_bound(low + size));
}

bool on_device(const Allocation *allocation) {
    return allocation != nullptr && (allocation->kind == Kind::device || allocation->kind == Kind::symbol);
}

// Allocations of the device in which other words than those in `stored` may be.
std::set<std::uint64_t> &unclear() {
    static auto &one = *new std::set<std::uint64_t>;
    return one;
}

// Whether the host may read where a copy came from. Of memory that is in no allocation only the real runtime knows;
// the kind of the copy is not enough, since it is not always checked.
bool readable(const Allocation *from, std::uintptr_t address) {
    if (from != nullptr)
        return from->on_host() || from->kind == Kind::managed;
    static const auto ask = forward::next<decltype(&cudaPointerGetAttributes)>("cudaPointerGetAttributes");
    cudaPointerAttributes known = {};
    return ask(&known, reinterpret_cast<const void *>(address)) == cudaSuccess && known.type != cudaMemoryTypeDevice;
}

void copy_words(std::uintptr_t to, std::uintptr_t from, std::size_t size, bool from_host) {
    if (from_host) {
        const std::uintptr_t lowest = lowest_address();
        for (std::size_t at = (8 - to % 8) % 8; at + 8 <= size; at += 8) {
            std::uintptr_t word = 0;
            std::memcpy(&word, reinterpret_cast<const void *>(from + at), sizeof word);
            if (word >= lowest && word < kHighest && allocation_at(word) != nullptr)
                stored()[to + at] = word;
        }
        return;
    }
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> found;
    for (auto one = stored().lower_bound(from); one != stored().end() && one->first < from + size; ++one)
        found.emplace_back(one->first - from + to, one->second);
    stored().insert(found.begin(), found.end());
}

bool managed_is_readable() { // while a kernel runs
    static const bool always = [] {
        using Ask = cudaError_t (*)(int *, cudaDeviceAttr, int);
        const auto ask = forward::next<Ask>("cudaDeviceGetAttribute");
        int value = 0;
        return ask(&value, cudaDevAttrConcurrentManagedAccess, thread().device) == cudaSuccess && value != 0;
    }();
    return always;
}

} // namespace

namespace backend {

const bool judges = false;
const char *const name = "CUDA_RECORDER";

bool obtain(Allocation &made) { // only for arrays, which have no address that anyone sees
    static std::uintptr_t next = kInvented;
    made.base = next;
    made.guarded = false;
    next += (made.size + 511) / 512 * 512;
    return true;
}

void give_back(const Allocation &allocation) {
    if (!follows_pointers())
        return;
    forget(allocation.base, allocation.size);
    unclear().erase(allocation.id);
}

void move(const Copy &what) {
    const Allocation *to = follows_pointers() ? allocation_at(what.to.low) : nullptr;
    if (!on_device(to))
        return;
    const Allocation *from = allocation_at(what.from.low);
    const bool host = readable(from, what.from.low);
    if (!host && (!on_device(from) || unclear().count(from->id) != 0))
        unclear().insert(to->id);
    for (std::size_t slice = 0; slice < what.slices; ++slice)
        for (std::size_t row = 0; row < what.to.rows; ++row) {
            const std::uintptr_t low = what.to.low + slice * what.to_slice + row * what.to.pitch;
            forget(low, what.to.width);
            copy_words(low, what.from.low + slice * what.from_slice + row * what.from.pitch, what.to.width, host);
        }
}

void set(const Range &what, std::size_t slices, std::size_t slice, unsigned, unsigned) {
    for (std::size_t i = 0; follows_pointers() && i < slices; ++i)
        for (std::size_t row = 0; row < what.rows; ++row)
            forget(what.low + i * slice + row * what.pitch, what.width);
}

bool words_in(const Allocation &allocation, std::vector<std::uintptr_t> &words) {
    if ((allocation.kind == Kind::managed && !managed_is_readable()) || unclear().count(allocation.id) != 0)
        return false;
    if (allocation.on_host() || allocation.kind == Kind::managed) {
        const auto *first = reinterpret_cast<const std::uintptr_t *>(allocation.base);
        words.assign(first, first + allocation.size / sizeof *first);
        return true;
    }
    for (auto one = stored().lower_bound(allocation.base); one != stored().end() && one->first < allocation.end();
         ++one)
        words.push_back(one->second);
    return true;
}

void compute(const Kernel &, const std::vector<std::string> &) {}

void as_recorded(std::string &argument) {
    for (std::size_t at = 0; at + sizeof(void *) <= argument.size(); at += sizeof(void *)) {
        const void *pointer = nullptr;
        std::memcpy(&pointer, argument.data() + at, sizeof pointer);
        pointer = forward::in(pointer);
        std::memcpy(&argument[at], &pointer, sizeof pointer);
    }
}

void host_runs(const std::function<void()> &) {}

// The program goes on without a record; what there is of it says so in its first letter.
void no_space(int file) {
    const bool said = file >= 0 && pwrite(file, "X", 1, 0) == 1;
    (void)said; // without a file there is nothing to say it in
}

void give_up() {
    throw forward::Lost{};
}

} // namespace backend
} // namespace dryrun
