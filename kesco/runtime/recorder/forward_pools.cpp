// What kesco_check.h calls, in front of the real runtime: its streams are bound to those of the books.
#include "forward.h"

extern "C" {

void kesco_check_allocated(const void *pointer, std::size_t size, cudaStream_t stream) {
    forward::observe("KESCO_ALLOCATED", [&](const forward::Call &call) {
        dryrun::pool_hands_out(forward::in(pointer), size, forward::in(stream), call);
    });
}
void kesco_check_freed(const void *pointer, cudaStream_t stream) {
    forward::observe("KESCO_FREED", [&](const forward::Call &call) {
        dryrun::pool_takes_back(forward::in(pointer), forward::in(stream), call);
    });
}

} // extern "C"
