// The back end of a dry run, for operations: copies and memsets happen at once in memory of the host, kernels do
// nothing.
#include "backend.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace dryrun::backend {

constexpr std::size_t kMostComputed = 1 << 20; // bytes through one pointer

const bool judges = true;
const char *const name = "CUDA_DRY_RUN";

void move(const Copy &what) {
    open_range(what.to.low, (what.slices - 1) * what.to_slice + what.to.extent());
    open_range(what.from.low, (what.slices - 1) * what.from_slice + what.from.extent());
    for (std::size_t slice = 0; slice < what.slices; ++slice)
        for (std::size_t row = 0; row < what.to.rows; ++row)
            std::memmove(reinterpret_cast<void *>(what.to.low + slice * what.to_slice + row * what.to.pitch),
                         reinterpret_cast<void *>(what.from.low + slice * what.from_slice + row * what.from.pitch),
                         what.to.width);
}

void set(const Range &what, std::size_t slices, std::size_t slice, unsigned value, unsigned element) {
    open_range(what.low, (slices - 1) * slice + what.extent());
    for (std::size_t i = 0; i < slices; ++i)
        for (std::size_t row = 0; row < what.rows; ++row) {
            auto *begin = reinterpret_cast<unsigned char *>(what.low + i * slice + row * what.pitch);
            if (element == 1)
                std::memset(begin, static_cast<int>(value), what.width);
            for (std::size_t at = 0; element > 1 && at + element <= what.width; at += element)
                std::memcpy(begin + at, &value, element);
        }
}

bool words_in(const Allocation &allocation, std::vector<std::uintptr_t> &words) {
    open_range(allocation.base, allocation.size);
    const auto *first = reinterpret_cast<const std::uintptr_t *>(allocation.base);
    words.assign(first, first + allocation.size / sizeof *first);
    return true;
}

// Nothing, or what CUDA_DRY_RUN_RESULTS asks for: 1 is ones, any other number begins a row of random words of the kind
// that steer a host: flags, counts, small numbers.
void compute(const Kernel &kernel, const std::vector<std::string> &arguments) {
    static const char *wanted = std::getenv("CUDA_DRY_RUN_RESULTS");
    static const unsigned seed = wanted == nullptr ? 0 : static_cast<unsigned>(std::atoi(wanted));
    static unsigned state = seed;
    static const unsigned kinds[] = {0, 1, 1, 2, 3, 7, ~0U, 0x3f800000U}; // the last one is 1.0F
    for (const auto &[parameter, offset] : seed == 0 ? decltype(kernel.writes){} : kernel.writes) {
        std::uintptr_t low = 0;
        if (parameter < arguments.size() && offset + sizeof low <= arguments[parameter].size())
            std::memcpy(&low, arguments[parameter].data() + offset, sizeof low);
        const Allocation *written = low == 0 ? nullptr : allocation_at(low);
        const std::size_t words = written == nullptr ? 0 : std::min(written->end() - low, kMostComputed) / sizeof state;
        if (words > 0)
            open_range(written->base, written->size);
        for (std::size_t i = 0; i < words; ++i) {
            state = state * 1664525U + 1013904223U;
            std::memcpy(reinterpret_cast<void *>(low + i * sizeof state), &kinds[seed == 1 ? 1 : state >> 29],
                        sizeof state);
        }
    }
}

void as_recorded(std::string &) {}

void host_runs(const std::function<void()> &function) {
    Call::later(function); // it may take locks of its own
}

void no_space(int) {
    _exit(kNoSpace);
}

void give_up() {
    _exit(kUnsupported);
}

} // namespace dryrun::backend

extern "C" {

void kesco_check_allocated(const void *pointer, std::size_t size, cudaStream_t stream) {
    const dryrun::Call call;
    dryrun::pool_hands_out(pointer, size, stream, call);
}
void kesco_check_freed(const void *pointer, cudaStream_t stream) {
    const dryrun::Call call;
    dryrun::pool_takes_back(pointer, stream, call);
}

} // extern "C"
