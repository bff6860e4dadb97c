// The book of allocations: which there are, and which one an address is in.
#include "backend.h"

#include <map>

namespace dryrun {
namespace {

struct Heap {
    std::map<std::uintptr_t, Allocation> live;
    std::uint64_t next = 0;
    std::size_t bytes = 0, guarded = 0;
};
Heap &heap() {
    static auto &one = *new Heap;
    return one;
}

Allocation *overlapping(const Allocation &made) {
    auto after = heap().live.lower_bound(made.base + (made.size == 0 ? 1 : made.size));
    if (after == heap().live.begin())
        return nullptr;
    Allocation &last = std::prev(after)->second;
    return last.end() > made.base || last.base == made.base ? &last : nullptr;
}

Allocation *enter(Allocation made, std::uint32_t stack, long stream, const std::string &name) {
    Heap &own = heap();
    for (Allocation *gone = nullptr;
         !backend::judges && (gone = overlapping(made)) != nullptr;) // it was freed by means that are not in the record
        release(gone, gone->freeing.stack != kNobody ? gone->freeing.stack : stack, gone->freeing.stream);
    made.id = own.next++;
    record(std::string("A ") + std::to_string(made.id) + " " + static_cast<char>(made.kind) + " " +
           hexadecimal(made.base) + " " + std::to_string(made.size) + " " + std::to_string(stack) + " " +
           std::to_string(stream) + (name.empty() ? "" : " " + name));
    if (!made.on_host() && made.kind != Kind::symbol)
        own.bytes += made.size;
    own.guarded += made.guarded ? 1 : 0;
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
    Allocation made{0, kind, 0, size, thread().device};
    made.guarded = watched;
    made.pooled = stream >= 0;
    return backend::obtain(made) ? enter(made, call.stack(), stream, "") : nullptr;
}

Allocation *adopt(Kind kind, const void *base, std::size_t size, std::uint32_t stack, const std::string &name,
                  long stream) {
    return enter({0, kind, reinterpret_cast<std::uintptr_t>(base), size, thread().device}, stack, stream, name);
}

void release(Allocation *allocation, std::uint32_t stack, long stream) {
    record("F " + hexadecimal(allocation->base) + " " + std::to_string(stack) + " " + std::to_string(stream) + " " +
           std::to_string(allocation->device));
    Heap &own = heap();
    if (!allocation->on_host() && allocation->kind != Kind::symbol)
        own.bytes -= allocation->size;
    backend::give_back(*allocation);
    own.guarded -= allocation->guarded ? 1 : 0;
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

std::uintptr_t lowest_address() {
    return heap().live.empty() ? 0 : heap().live.begin()->first;
}

bool any_guarded() {
    return heap().guarded > 0;
}

std::size_t allocated() {
    return heap().bytes;
}

bool reach(Allocation *from, std::set<std::uint64_t> &found) {
    std::vector<std::uintptr_t> words;
    if (from == nullptr)
        return true;
    if (!backend::words_in(*from, words))
        return false;
    bool known = true;
    for (const std::uintptr_t word : words) {
        Allocation *to = word == 0 ? nullptr : allocation_at(word);
        if (to != nullptr && found.insert(to->id).second && to != from)
            known = reach(to, found) && known;
    }
    return known;
}

} // namespace dryrun
