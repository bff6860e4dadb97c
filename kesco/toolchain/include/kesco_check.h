// For `kesco check`: what a pool of the program's own does with memory. Where the program is not checked, nothing
// happens. The file needs nothing else of kesco's: it may be copied, or included where it is there:
//
//   #if __has_include(<kesco_check.h>)
//   #include <kesco_check.h>
//   #else
//   #define KESCO_ALLOCATED(pointer, bytes, stream)
//   #define KESCO_FREED(pointer, stream)
//   #endif
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stddef.h>

// The pool hands out `bytes` from `pointer` on, for work on `stream`. What used that memory before must be over when
// work that is put on the stream from now on begins.
#define KESCO_ALLOCATED(pointer, bytes, stream) kesco_check_told_allocated((pointer), (bytes), (stream))
// The pool takes it back, behind the work that is on `stream` now. What uses it on other streams must be over by then.
#define KESCO_FREED(pointer, stream) kesco_check_told_freed((pointer), (stream))

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define KESCO_CHECK_STREAM(stream) ((stream) == 0 ? cudaStreamPerThread : (stream))
#else
#define KESCO_CHECK_STREAM(stream) (stream)
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*kesco_check_allocated_function)(const void *, size_t, cudaStream_t);
typedef void (*kesco_check_freed_function)(const void *, cudaStream_t);

static inline void kesco_check_told_allocated(const void *pointer, size_t bytes, cudaStream_t stream) {
    static kesco_check_allocated_function told;
    static int asked;
    if (!asked) {
        told = (kesco_check_allocated_function)dlsym(RTLD_DEFAULT, "kesco_check_allocated");
        asked = 1;
    }
    if (told)
        told(pointer, bytes, KESCO_CHECK_STREAM(stream));
}

static inline void kesco_check_told_freed(const void *pointer, cudaStream_t stream) {
    static kesco_check_freed_function told;
    static int asked;
    if (!asked) {
        told = (kesco_check_freed_function)dlsym(RTLD_DEFAULT, "kesco_check_freed");
        asked = 1;
    }
    if (told)
        told(pointer, KESCO_CHECK_STREAM(stream));
}

#ifdef __cplusplus
}
#endif
