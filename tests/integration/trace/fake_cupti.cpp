// A CUPTI that needs no GPU: it gives one buffer of activities when it is flushed, and remembers what was enabled.
#include <cupti.h>

#include <cstdlib>
#include <cstring>

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];

template <typename T> static T *add(uint8_t *buffer, size_t *at, CUpti_ActivityKind kind) {
    if (!enabled[kind])
        std::abort();
    T *made = reinterpret_cast<T *>(buffer + *at);
    std::memset(static_cast<void *>(made), 0, sizeof(T));
    made->kind = kind;
    *at += (sizeof(T) + 7) / 8 * 8;
    return made;
}

static size_t size_of(CUpti_ActivityKind kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return (sizeof(CUpti_ActivityKernel9) + 7) / 8 * 8;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return (sizeof(CUpti_ActivityMemcpy5) + 7) / 8 * 8;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return (sizeof(CUpti_ActivityMemset4) + 7) / 8 * 8;
    default:
        return (sizeof(CUpti_ActivitySynchronization) + 7) / 8 * 8;
    }
}

extern "C" {
CUptiResult cuptiGetVersion(uint32_t *version) {
    return *version = CUPTI_API_VERSION, CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushPeriod(uint32_t) {
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    if (std::getenv("FAKE_REFUSES") != nullptr)
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    return enabled[kind] = true, CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc a, CUpti_BuffersCallbackCompleteFunc b) {
    return request = a, complete = b, CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **one) {
    uint8_t *next = *one == nullptr ? buffer : reinterpret_cast<uint8_t *>(*one) + size_of((*one)->kind);
    if (next >= buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    return *one = reinterpret_cast<CUpti_Activity *>(next), CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t *lost) {
    return *lost = 3, CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
    if (!enabled[CUPTI_ACTIVITY_KIND_MEMCPY])
        return CUPTI_SUCCESS;
    uint8_t *buffer;
    size_t size, most, at = 0;
    request(&buffer, &size, &most);
    auto *copy = add<CUpti_ActivityMemcpy5>(buffer, &at, CUPTI_ACTIVITY_KIND_MEMCPY);
    copy->start = 1'000'000, copy->end = 1'004'000, copy->bytes = 40'000, copy->copyKind = 1;
    copy->contextId = 1, copy->streamId = 13;
    for (int n = 0; n < 2; ++n) {
        auto *kernel = add<CUpti_ActivityKernel9>(buffer, &at, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        kernel->start = 1'002'000 + n * 4'000, kernel->end = 1'008'000 + n * 4'000;
        kernel->gridX = 64, kernel->gridY = kernel->gridZ = 1, kernel->blockX = 256,
        kernel->blockY = kernel->blockZ = 1;
        kernel->registersPerThread = 32, kernel->dynamicSharedMemory = 512, kernel->contextId = 1;
        kernel->streamId = 14 + n, kernel->name = "_Z6squarePKfPfl";
    }
    auto *set = add<CUpti_ActivityMemset4>(buffer, &at, CUPTI_ACTIVITY_KIND_MEMSET);
    set->start = 1'020'000, set->end = 1'021'000, set->bytes = 4, set->contextId = 1, set->streamId = 13;
    auto *wait = add<CUpti_ActivitySynchronization>(buffer, &at, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    wait->start = 1'003'000, wait->end = 1'023'000, wait->contextId = 1;
    wait->type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    complete(nullptr, 0, buffer, size, at);
    return CUPTI_SUCCESS;
}
}
