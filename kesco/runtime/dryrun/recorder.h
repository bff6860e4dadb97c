// The record of a dry run: what every part of the dry-run CUDA runtime shares.
//
// Each API function of the program makes a `Call`, which takes the one lock, and writes lines with `record`. A line is
// words with single spaces; the first is a letter. What the letters mean is written in kesco/verify/trace.py, which
// reads them. Addresses are hexadecimal, everything else is decimal.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dryrun {

constexpr int kUnsupported = 86; // exit code of a program that called a function that is not in here
constexpr int kNoSpace = 87;     // exit code of a program whose record could not be written
constexpr int kEnough = 88;      // exit code of a program that made as many calls as it was allowed to

// One API call: the lock, and what must happen when it ends.
class Call {
  public:
    Call();
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    // Remembers an error for cudaGetLastError, and returns it.
    cudaError_t operator()(cudaError_t error) const;
    // The number of the stack of calls that led here.
    std::uint32_t stack() const { return stack_; }
    // Runs something when the lock is free again: host functions of the program, which may take locks of their own.
    static void later(std::function<void()> function);

  private:
    std::uint32_t stack_;
};

// What is to be told when the program calls CUDA, before anything else of that call; null: nothing (marks.cpp).
extern void (*on_call)();

// The last error of this thread, and the device it uses.
struct Thread {
    cudaError_t error = cudaSuccess;
    int device = 0;
};
Thread &thread();
int device_count();
int architecture(); // 90 for sm_90: what the program is compiled for

// Appends one line to the record. `text` has no line break.
void record(const std::string &text);
// Ends the program: the function cannot be run without a GPU, or not yet.
[[noreturn]] void refuse(const char *function);
// The number of a stack of return addresses, innermost first; the same stack has the same number.
std::uint32_t stack_number(const std::vector<std::uintptr_t> &addresses);
// The return addresses above the caller, found along the frame pointers.
std::vector<std::uintptr_t> walk_stack();
std::string hexadecimal(std::uintptr_t value);

// What `kesco check` knows of a kernel from its device code; the file's form is written in kesco/check/__init__.py.
struct Kernel {
    std::vector<std::size_t> sizes;                           // of its parameters
    std::vector<std::pair<std::size_t, std::size_t>> through; // parameter and offset of pointers to pointers
    std::vector<std::string> symbols;                         // device symbols that hold pointers it follows
    std::vector<std::pair<std::size_t, std::size_t>> writes;  // parameter and offset of pointers that it writes through
};
const Kernel *kernel_named(const std::string &name); // null if nothing is known of it
bool follows_pointers();                             // whether there is a kernel that follows pointers in memory
// The name that the device code of `kesco check` has for a kernel or symbol that a program registers. Clang and nvcc
// mangle names alike but for static functions and anonymous namespaces.
std::string name_on_device(const std::string &registered);
// Programs and libraries that were loaded since the last look: where they are, and what they say of their kernels.
void look_at_modules();
const char *variable(const char *which); // one of the back end's in the environment
bool silent();                           // nothing is recorded: in a child process, or without a file

} // namespace dryrun
