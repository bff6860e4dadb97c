/* What a kernel is known by: 64 bits over its name, its dimensions, its dynamic shared memory and, where the compiler
 * put the hook, the place of the launch. FNV-1a, so that the Python side computes the same number. 0: not known. */
#ifndef KESCO_FIKIT_IDENTITY_H
#define KESCO_FIKIT_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KESCO_IDENTITY_BEGIN UINT64_C(14695981039346656037)

/* Continues a hash over `size` bytes. */
static inline uint64_t kesco_identity_bytes(uint64_t hash, const void *data, size_t size) {
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < size; ++i)
        hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Continues a hash over a text and its final zero; null is the empty text. */
static inline uint64_t kesco_identity_text(uint64_t hash, const char *text) {
    for (; text && *text; ++text)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash * UINT64_C(1099511628211);
}

/* Continues a hash over a number of 32 bits, the lowest byte first on every machine. */
static inline uint64_t kesco_identity_number(uint64_t hash, uint32_t number) {
    for (int i = 0; i < 4; ++i, number >>= 8)
        hash = (hash ^ (number & 255)) * UINT64_C(1099511628211);
    return hash;
}

/* The identity of a launch. `name` is a hash that began with KESCO_IDENTITY_BEGIN and went over the kernel's name and,
 * for a compiled hook, file, line and column of the launch. */
static inline uint64_t kesco_kernel_identity(uint64_t name, const uint32_t grid[3], const uint32_t block[3],
                                             uint64_t shared) {
    uint64_t hash = name;
    for (int i = 0; i < 3; ++i)
        hash = kesco_identity_number(hash, grid[i]);
    for (int i = 0; i < 3; ++i)
        hash = kesco_identity_number(hash, block[i]);
    hash = kesco_identity_number(hash, (uint32_t)shared);
    return hash ? hash : 1;
}

#ifdef __cplusplus
}
#endif

#endif
