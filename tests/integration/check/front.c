/* Stands between the recorder and the dry run's runtime: functions that this one does not have, and other answers. */
/* Pinned memory is always the same, and while it is being freed somebody else is given it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

struct handle {
    char reserved[64];
};

int cudaIpcOpenMemHandle(void **pointer, struct handle given, unsigned flags) {
    for (int i = 0; i < 64; ++i)
        if (given.reserved[i] != i)
            return 1;
    *pointer = (void *)0x1234;
    return flags == 1 ? 0 : 1;
}

int cudaGetSymbolAddress(void **pointer, const void *symbol) {
    *pointer = (char *)0x600000000000 + (symbol == NULL);
    return 0;
}

int cudaMalloc(void **pointer, size_t size) {
    if (size == 12345)
        return 2; /* out of memory */
    return ((int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc"))(pointer, size);
}

int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
    if (from == (void *)0x1234)
        return 0; /* memory that only this runtime knows */
    return ((int (*)(void *, const void *, size_t, int, void *))dlsym(RTLD_NEXT, "cudaMemcpyAsync"))(to, from, size,
                                                                                                     kind, stream);
}

int cudaPointerGetAttributes(
    struct cudaPointerAttributes {
        int type, device;
        void *at, *host;
        long rest[8];
    } * found,
    const void *pointer) {
    found->type = pointer == (void *)0x1234 ? 2 : 0;
    return 0;
}

static char pinned[1 << 16];

int cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
    *pointer = pinned;
    return size > sizeof pinned || flags > 15;
}

int cudaFreeHost(void *pointer) {
    void *again;
    return ((int (*)(void **, size_t, unsigned))dlsym(RTLD_DEFAULT, "cudaHostAlloc"))(&again, 64, 0) ||
           again != pointer;
}
