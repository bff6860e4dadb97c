// All other functions of the runtime: they go straight through to the real one, whatever their arguments are. One that
// does more than to ask is named in the record, once, since what it did is missing there.
//
// `kFunctions` and the entry points of these functions are made of the CUDA headers when this library is built: each
// entry point puts its number into a register and jumps to `recorder_pass`. On other machines than x86-64 this library
// has none of them, so that the program calls the real ones itself, and the record does not name them.
#include "forward.h"

#include <atomic>
#include <cstring>

#ifdef __x86_64__

namespace forward {

struct Function {
    const char *name;
    bool known; // the books need not hear of it
};
extern const Function kFunctions[];
extern std::atomic<void *> kReal[];

extern "C" __attribute__((visibility("hidden"))) void *recorder_resolve(unsigned number) {
    void *real = kReal[number].load(std::memory_order_acquire);
    if (real != nullptr)
        return real;
    const Function &function = kFunctions[number];
    real = next_symbol(function.name);
    kReal[number].store(real, std::memory_order_release);
    if (!function.known)
        observe(function.name, [&](const Call &) {
            if (std::strstr(function.name, "Graph") != nullptr || std::strstr(function.name, "Capture") != nullptr)
                graphs_are_unclear();
            missing(function.name);
        });
    return real;
}

} // namespace forward

// Keeps all that may hold an argument, asks for the real function, and leaves everything as it was for it.
asm(R"(
    .text
    .hidden recorder_pass
    .globl recorder_pass
    .type recorder_pass, @function
recorder_pass:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $192, %rsp
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)
    movups %xmm0, 64(%rsp)
    movups %xmm1, 80(%rsp)
    movups %xmm2, 96(%rsp)
    movups %xmm3, 112(%rsp)
    movups %xmm4, 128(%rsp)
    movups %xmm5, 144(%rsp)
    movups %xmm6, 160(%rsp)
    movups %xmm7, 176(%rsp)
    movl %r11d, %edi
    call recorder_resolve
    movq %rax, %r11
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %rax
    movups 64(%rsp), %xmm0
    movups 80(%rsp), %xmm1
    movups 96(%rsp), %xmm2
    movups 112(%rsp), %xmm3
    movups 128(%rsp), %xmm4
    movups 144(%rsp), %xmm5
    movups 160(%rsp), %xmm6
    movups 176(%rsp), %xmm7
    leave
    .cfi_def_cfa %rsp, 8
    jmp *%r11
    .cfi_endproc
    .size recorder_pass, .-recorder_pass
)");

#endif
