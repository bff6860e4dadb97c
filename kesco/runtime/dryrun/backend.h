// What the record's two back ends do differently. In a dry run nothing runs: calls are judged here, memory of the host
// stands for the device's, and copies are made with it (pages.cpp, nothing_runs.cpp). In front of the real runtime
// every call has been made, and has succeeded, before it comes here (../recorder/real_runs.cpp).
#pragma once

#include "streams.h"

namespace dryrun {

namespace backend {

extern const bool judges;      // whether calls are refused here
extern const char *const name; // of its variables in the environment: name_RECORD, …

// Gives an allocation an address; false if there is no memory. `guarded` says whether the host may be watched.
bool obtain(Allocation &made);
void give_back(const Allocation &allocation);
// The bytes of an operation, when it is issued.
void move(const Copy &what);
void set(const Range &what, std::size_t slices, std::size_t slice, unsigned value, unsigned element);
// The words that are stored in an allocation and could be pointers; false if that cannot be known.
bool words_in(const Allocation &allocation, std::vector<std::uintptr_t> &words);
// What a kernel's run leaves in the memory that it writes.
void compute(const Kernel &kernel, const std::vector<std::string> &arguments);
// An argument of a kernel, with its pointers as the record names them.
void as_recorded(std::string &argument);
// A host function of the program, on a stream.
void host_runs(const std::function<void()> &function);
// The record cannot be written (any more).
void no_space(int file);
// The function that was called cannot be followed: it ends the program, or the call.
[[noreturn]] void give_up();

} // namespace backend

// Lets the recorder itself, or the program, touch a range of watched memory; after it the device may touch it.
void open_range(std::uintptr_t low, std::size_t size);
void arm(Allocation *allocation, const Range *range);

} // namespace dryrun
