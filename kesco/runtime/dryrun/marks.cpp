// What a program says of itself where its host code was instrumented (tests/execution): which call of CUDA it is about
// to make, and which calls of functions led there.
//
// Functions are entered far more often than CUDA is called, so each thread keeps its own stack of them, and what of it
// is not in the record yet is written when a call of CUDA comes. A frame's address says which functions are over,
// however they ended: all those below it on the stack.
#include "recorder.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace dryrun {
namespace {

struct Entered {
    std::uintptr_t frame;
    unsigned function, from; // `from` is the number of the caller's call
    unsigned last;           // the number of its own last call
    long id;                 // in the record; -1 where it is not there yet
};
struct Entries {
    long thread;
    std::vector<Entered> open;
    unsigned through; // the number of a call through a pointer, as long as it may be CUDA itself that is called
};
Entries &entries() {
    static std::atomic<long> threads{0};
    thread_local auto &own = *new Entries{threads++, {}, 0};
    return own;
}

// The function that runs in this frame: those below are over. Null in a function that said nothing when it began.
Entered *running(const void *frame, bool begins) {
    std::vector<Entered> &open = entries().open;
    const auto at = reinterpret_cast<std::uintptr_t>(frame);
    while (!open.empty() && (begins ? open.back().frame <= at : open.back().frame < at))
        open.pop_back();
    return open.empty() || open.back().frame != at ? nullptr : &open.back();
}

long told(std::vector<Entered> &open) {
    static std::atomic<long> next{0};
    long outer = -1;
    for (Entered &one : open) {
        if (one.id < 0) {
            one.id = next++;
            record("I " + std::to_string(one.id) + " " + std::to_string(entries().thread) + " " +
                   std::to_string(outer) + " " + std::to_string(one.function) + " " + std::to_string(one.from));
        }
        outer = one.id;
    }
    return outer;
}

long most() {
    const char *wanted = std::getenv("CUDA_DRY_RUN_MOST_CALLS");
    return wanted == nullptr ? -1 : std::atol(wanted);
}

void mark(unsigned number) {
    static const long most = dryrun::most();
    static std::atomic<long> made{0};
    if (most >= 0 && made++ >= most) // a loop that waits for what no kernel computes
        _exit(kEnough);
    entries().through = 0;
    const long caller = told(entries().open);
    record("C " + std::to_string(caller) + " " + std::to_string(number));
}

void called() {
    if (entries().through != 0)
        mark(entries().through);
}

} // namespace
} // namespace dryrun

extern "C" {

// A function begins.
void __cudaDryRunEnter(unsigned function, const void *frame) {
    dryrun::running(frame, true);
    dryrun::Entries &own = dryrun::entries();
    const unsigned from = own.open.empty() ? 0 : own.open.back().last;
    own.open.push_back({reinterpret_cast<std::uintptr_t>(frame), function, from, 0, -1});
    own.through = 0;
}
// It is about to call another one, which may call CUDA.
void __cudaDryRunCall(unsigned number, const void *frame) {
    if (dryrun::Entered *own = dryrun::running(frame, false))
        own->last = number;
    dryrun::entries().through = 0;
}
// It is about to call through a pointer, which may be CUDA that is called.
void __cudaDryRunThrough(unsigned number, const void *frame) {
    __cudaDryRunCall(number, frame);
    dryrun::on_call = dryrun::called;
    dryrun::entries().through = number;
}
// It is about to call CUDA: what comes in the record up to the next such line is what that does.
void __cudaDryRunMark(unsigned number, const void *frame) {
    __cudaDryRunCall(number, frame);
    dryrun::mark(number);
}

} // extern "C"
