// The few functions of the CUDA driver that the client itself needs, found where the program has loaded it. No header
// and no library of CUDA is needed to build this. Every pointer is null where there is no driver (a dry run).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fikit {

using Result = int; // CUresult
constexpr Result kSuccess = 0, kNotReady = 600;

struct Driver {
    Result (*event_create)(void **event, unsigned flags);
    Result (*event_record)(void *event, void *stream);
    Result (*event_record_ptsz)(void *event, void *stream);
    Result (*event_query)(void *event);
    Result (*event_synchronize)(void *event);
    Result (*event_elapsed)(float *milliseconds, void *from, void *to);
    Result (*is_capturing)(void *stream, int *status);
    Result (*is_capturing_ptsz)(void *stream, int *status);
    Result (*stream_id)(void *stream, unsigned long long *id); // of CUDA 12.0; a handle may be used again
    Result (*stream_id_ptsz)(void *stream, unsigned long long *id);
    Result (*context)(void **context);
    Result (*set_context)(void *context);
    Result (*exchange_capture_mode)(int *mode);
    Result (*function_name)(const char **name, void *function);
    Result (*kernel_name)(const char **name, void *kernel);
};

// Found once, when the driver is there; null before.
const Driver *driver() noexcept;
// Whether work on a stream is being captured, or may be.
bool capturing(void *stream, bool per_thread) noexcept;
// The calling thread's; null: none, or there is no driver.
void *current_context() noexcept;
// Never used again, as a handle may be; 0: not known.
unsigned long long stream_number(void *stream, bool per_thread) noexcept;
// The true dlsym: the program's own calls come to the shim's.
void *true_dlsym(void *handle, const char *name) noexcept;
using Dlsym = void *(*)(void *, const char *);
Dlsym dlsym_address() noexcept;

} // namespace fikit
