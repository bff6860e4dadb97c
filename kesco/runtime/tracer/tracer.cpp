// What `kesco trace` has in a program: CUPTI's record of what the device did, as lines of a file.
//
// The driver loads this library where CUDA_INJECTION64_PATH names it, and calls InitializeInjection. CUPTI then fills
// buffers with activities; each becomes a line. The program is not held anywhere: kernels still run side by side.
// Whatever fails here, the program goes on, and the record says why it is empty. kesco/tracing/record.py reads the
// lines:
//
//   V version cupti pid                            the first line
//   K start end device context stream gridX gridY gridZ blockX blockY blockZ registers static dynamic graph name
//   M start end device context stream bytes kind   a copy, kind as CUpti_ActivityMemcpyKind has it
//   S start end device context stream bytes        a memset
//   Y start end context stream type                the host waited, type as CUpti_ActivitySynchronizationType has it
//   D count                                        activities were lost
//   E function number                              a call of CUPTI failed
//   Q                                              the program ended by itself
//
// Times are nanoseconds of one clock.
#include <cupti.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unistd.h>

namespace {

constexpr size_t kBuffer = 4u << 20;
constexpr size_t kAlignment = 8; // as CUPTI asks for

std::mutex guard;
FILE *record = nullptr;
pid_t owner = 0;

void failed(const char *function, CUptiResult result) {
    std::lock_guard<std::mutex> lock(guard);
    if (record != nullptr) {
        std::fprintf(record, "E %s %d\n", function, static_cast<int>(result));
        std::fflush(record);
    }
}

bool good(const char *function, CUptiResult result) {
    if (result != CUPTI_SUCCESS)
        failed(function, result);
    return result == CUPTI_SUCCESS;
}

void give(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = static_cast<uint8_t *>(std::aligned_alloc(kAlignment, kBuffer));
    *size = *buffer != nullptr ? kBuffer : 0;
    *most = 0;
}

void write_one(const CUpti_Activity *one) {
    switch (one->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
        // later versions of this structure only add members behind these
        const auto *k = reinterpret_cast<const CUpti_ActivityKernel9 *>(one);
        std::fprintf(record, "K %" PRIu64 " %" PRIu64 " %u %u %u %d %d %d %d %d %d %u %d %d %u %s\n", k->start, k->end,
                     k->deviceId, k->contextId, k->streamId, k->gridX, k->gridY, k->gridZ, k->blockX, k->blockY,
                     k->blockZ, static_cast<unsigned>(k->registersPerThread), k->staticSharedMemory,
                     k->dynamicSharedMemory, k->graphId, k->name != nullptr ? k->name : "?");
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto *c = reinterpret_cast<const CUpti_ActivityMemcpy5 *>(one);
        std::fprintf(record, "M %" PRIu64 " %" PRIu64 " %u %u %u %" PRIu64 " %u\n", c->start, c->end, c->deviceId,
                     c->contextId, c->streamId, c->bytes, static_cast<unsigned>(c->copyKind));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto *m = reinterpret_cast<const CUpti_ActivityMemset4 *>(one);
        std::fprintf(record, "S %" PRIu64 " %" PRIu64 " %u %u %u %" PRIu64 "\n", m->start, m->end, m->deviceId,
                     m->contextId, m->streamId, m->bytes);
        break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const auto *y = reinterpret_cast<const CUpti_ActivitySynchronization *>(one);
        std::fprintf(record, "Y %" PRIu64 " %" PRIu64 " %u %u %u\n", y->start, y->end, y->contextId, y->streamId,
                     static_cast<unsigned>(y->type));
        break;
    }
    default:
        break;
    }
}

void take(CUcontext context, uint32_t stream, uint8_t *buffer, size_t, size_t valid) {
    CUpti_Activity *one = nullptr;
    {
        std::lock_guard<std::mutex> lock(guard);
        while (record != nullptr && cuptiActivityGetNextRecord(buffer, valid, &one) == CUPTI_SUCCESS)
            write_one(one);
        size_t lost = 0;
        if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS && lost > 0 && record != nullptr)
            std::fprintf(record, "D %zu\n", lost);
        if (record != nullptr)
            std::fflush(record);
    }
    std::free(buffer);
}

void at_exit() {
    if (getpid() != owner)
        return; // a child that was forked has its parent's handlers, but not its device
    good("cuptiActivityFlushAll", cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    std::lock_guard<std::mutex> lock(guard);
    if (record == nullptr)
        return;
    std::fputs("Q\n", record);
    std::fclose(record);
    record = nullptr;
}

} // namespace

/// Begins the record, in the file that CUDA_TRACE_RECORD names followed by a dot and the process's number.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    static bool begun = false;
    const char *name = std::getenv("CUDA_TRACE_RECORD");
    if (begun || name == nullptr)
        return 1;
    begun = true;
    owner = getpid();
    record = std::fopen((std::string(name) + "." + std::to_string(owner)).c_str(), "we");
    if (record == nullptr)
        return 1;
    uint32_t version = 0;
    good("cuptiGetVersion", cuptiGetVersion(&version));
    std::fprintf(record, "V 1 %u %d\n", version, static_cast<int>(owner));
    std::fflush(record);
    if (!good("cuptiActivityRegisterCallbacks", cuptiActivityRegisterCallbacks(give, take)))
        return 1;
    for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION})
        good("cuptiActivityEnable", cuptiActivityEnable(kind));
    good("cuptiActivityFlushPeriod", cuptiActivityFlushPeriod(1000));
    std::atexit(at_exit);
    return 1;
}
