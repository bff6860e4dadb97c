// Allocations: host memory that stands for the device's, so that copies really happen.
#pragma once

#include "recorder.h"

#include <set>

namespace dryrun {

enum class Kind : char { device = 'd', managed = 'm', pinned = 'p', registered = 'r', symbol = 's', array = 'y' };

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

struct Allocation {
    std::uint64_t id;
    Kind kind;
    std::uintptr_t base;
    std::size_t size;
    int device;
    unsigned flags = 0;
    bool guarded = false;                // the host may reach it, so its accesses are watched
    bool armed = false;                  // parts of it are protected now
    bool pooled = false;                 // from cudaMallocAsync
    std::set<std::uintptr_t> edges = {}; // where accesses of the device began and ended
    struct {
        std::uint32_t stack = kNobody;
        long stream = -1;
    } freeing = {}; // who is freeing it at this moment, in front of the real runtime

    std::uintptr_t end() const { return base + size; }
    bool on_host() const { return kind == Kind::pinned || kind == Kind::registered; }
};

// Rows of bytes, as 2D copies touch them; `rows` is 1 for a plain range.
struct Range {
    std::uintptr_t low;
    std::size_t width;
    std::size_t pitch = 0;
    std::size_t rows = 1;

    std::size_t extent() const { return rows == 0 || width == 0 ? 0 : (rows - 1) * pitch + width; }
    std::string text(char mode) const; // one word of a record's line
};

Allocation *allocate(Kind kind, std::size_t size, const Call &call, long stream = -1, bool watched = true);
// Makes memory that is there already known: a symbol, or what cudaHostRegister was given.
Allocation *adopt(Kind kind, const void *base, std::size_t size, std::uint32_t stack, const std::string &name = "",
                  long stream = -1);
void release(Allocation *allocation, std::uint32_t stack, long stream);
Allocation *allocation_at(std::uintptr_t address); // null if the address is in none
inline Allocation *allocation_at(const void *pointer) {
    return allocation_at(reinterpret_cast<std::uintptr_t>(pointer));
}
std::vector<Allocation *> allocations();
bool any_guarded();
std::uintptr_t lowest_address(); // of all allocations; 0 if there are none
std::size_t allocated();         // bytes of device memory

// The host is about to touch a range, through a call of the operating system that would fail on protected memory.
void host_touches(const void *low, std::size_t size, bool writes);

// Ids of all allocations that are reached through pointers stored in this one, any number of levels down; false if
// what is stored there cannot be known.
bool reach(Allocation *from, std::set<std::uint64_t> &found);

} // namespace dryrun
