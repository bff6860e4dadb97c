#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>
#include <initializer_list>

namespace fikit {
namespace {

// Looked up by version, because the plain name is the shim's own. Which one is there depends on the machine.
Dlsym find_dlsym() {
    for (const char *version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"})
        if (void *found = dlvsym(RTLD_NEXT, "dlsym", version))
            return reinterpret_cast<Dlsym>(found);
    return nullptr;
}

template <typename Function> void look(void *library, Function &target, const char *name) {
    target = reinterpret_cast<Function>(true_dlsym(library, name));
}

} // namespace

Dlsym dlsym_address() noexcept {
    static const Dlsym real = find_dlsym();
    if (!real)
        abort(); // a C library without dlsym: nothing could be loaded into it
    return real;
}

void *true_dlsym(void *handle, const char *name) noexcept {
    return dlsym_address()(handle, name);
}

const Driver *driver() noexcept {
    static std::atomic<const Driver *> known{nullptr};
    if (const Driver *found = known.load(std::memory_order_acquire))
        return found;
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        return nullptr;
    auto *made = new Driver{};
    look(library, made->event_create, "cuEventCreate");
    look(library, made->event_record, "cuEventRecord");
    look(library, made->event_record_ptsz, "cuEventRecord_ptsz");
    look(library, made->event_query, "cuEventQuery");
    look(library, made->event_synchronize, "cuEventSynchronize");
    look(library, made->event_elapsed, "cuEventElapsedTime");
    look(library, made->is_capturing, "cuStreamIsCapturing");
    look(library, made->is_capturing_ptsz, "cuStreamIsCapturing_ptsz");
    look(library, made->stream_id, "cuStreamGetId");
    look(library, made->stream_id_ptsz, "cuStreamGetId_ptsz");
    look(library, made->context, "cuCtxGetCurrent");
    look(library, made->set_context, "cuCtxSetCurrent");
    look(library, made->exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    look(library, made->function_name, "cuFuncGetName");
    look(library, made->kernel_name, "cuKernelGetName");
    const Driver *none = nullptr;
    if (!known.compare_exchange_strong(none, made)) { // another thread was faster
        delete made;
        return none;
    }
    return made;
}

bool capturing(void *stream, bool per_thread) noexcept {
    const Driver *d = driver();
    int status = 0;
    const auto ask = d ? (per_thread ? d->is_capturing_ptsz : d->is_capturing) : nullptr;
    return ask && (ask(stream, &status) != kSuccess || status != 0);
}

void *current_context() noexcept {
    const Driver *d = driver();
    void *current = nullptr;
    return d && d->context && d->context(&current) == kSuccess ? current : nullptr;
}

unsigned long long stream_number(void *stream, bool per_thread) noexcept {
    const Driver *d = driver();
    const auto ask = d ? (per_thread && d->stream_id_ptsz ? d->stream_id_ptsz : d->stream_id) : nullptr;
    unsigned long long number = 0;
    return ask && ask(stream, &number) == kSuccess ? number : 0;
}

} // namespace fikit
