#include "names.h"

#include "identity.h"

#include <stdio.h>
#include <string.h>

#include <atomic>
#include <mutex>

namespace fikit {
namespace {

constexpr std::size_t kSlots = 8192; // a power of two; a process with more kernels asks anew for the rest

struct Slot {
    std::atomic<const void *> handle;
    std::atomic<const Called *> called;
};
Slot slots[kSlots];
std::atomic<std::uint32_t> nameless{0};

Slot *slot_of(const void *handle) {
    std::size_t at = (reinterpret_cast<std::uintptr_t>(handle) * UINT64_C(0x9e3779b97f4a7c15)) >> 51;
    for (int tries = 0; tries < 64; ++tries, ++at) {
        Slot &one = slots[at & (kSlots - 1)];
        const void *there = one.handle.load(std::memory_order_acquire);
        if (!there && one.handle.compare_exchange_strong(there, handle))
            return &one;
        if (there == handle)
            return &one;
    }
    return nullptr;
}

const Called &none() {
    static const Called one{0, "", false};
    return one;
}

template <typename Make> const Called &find(const void *handle, Make make) noexcept {
    Slot *slot = slot_of(handle);
    if (!slot)
        return none();
    if (const Called *known = slot->called.load(std::memory_order_acquire))
        return *known;
    const Called *made = make(), *before = nullptr;
    if (slot->called.compare_exchange_strong(before, made, std::memory_order_acq_rel))
        return *made;
    return *before; // another thread was faster; the other one is lost, once
}

Called *make(const char *name, std::uint64_t hash) {
    return new Called{hash, strdup(name), strstr(name, "nccl") != nullptr};
}

} // namespace

const Called &called(const void *handle, const char *(*resolve)(const void *), const char *otherwise) noexcept {
    return find(handle, [&] {
        const char *name = resolve ? resolve(handle) : nullptr;
        char text[64];
        if (!name || !*name) {
            snprintf(text, sizeof text, "%s#%u", otherwise, nameless.fetch_add(1) + 1);
            name = text;
        }
        return make(name, kesco_identity_text(KESCO_IDENTITY_BEGIN, name));
    });
}

const Called &called_at(const void *site, const char *kernel, const char *file, std::uint32_t line,
                        std::uint32_t column) noexcept {
    return find(site, [&] {
        std::uint64_t hash = kesco_identity_text(KESCO_IDENTITY_BEGIN, kernel);
        hash = kesco_identity_number(kesco_identity_number(kesco_identity_text(hash, file), line), column);
        return make(kernel ? kernel : "", hash);
    });
}

} // namespace fikit
