// A CUDA runtime in host memory, whose work runs late and in any order that streams, events and the default stream
// allow. FAKE_SEED chooses the order, FAKE_BYTES is how much memory there is. Kernels are functions; launches are
// rewritten. FAKE_FAULT is the launch that fails as it runs, which every later wait says. At the end it says how often memory of the host was pinned, and fails if some still is.
#pragma once
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#define __global__ static
#define CUDART_VERSION 12000
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static dim3 blockIdx, threadIdx, blockDim, gridDim;
enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9, cudaErrorNotReady = 600, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaEventDisableTiming = 2, cudaStreamDefault = 0, cudaEnableDefault = 0, cudaDevAttrPageableMemoryAccess = 88 };
enum { cudaHostAllocDefault = 0, cudaHostAllocMapped = 2, cudaHostRegisterDefault = 0 };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost };
struct cudaPointerAttributes {
    cudaMemoryType type;
};
struct FakeStream {
    int last = -1;
    std::set<int> waits;
};
struct FakeEvent {
    int at = -1;
};
using cudaStream_t = FakeStream *;
using cudaEvent_t = FakeEvent *;
#define cudaStreamLegacy (static_cast<cudaStream_t>(nullptr))

struct FakeTask {
    std::function<void()> work;
    std::set<int> behind;
    bool done = false;
};
static std::vector<FakeTask> fake_tasks;
static std::vector<FakeStream *> fake_streams;
static FakeStream fake_legacy;
static std::map<char *, std::size_t> fake_memory;
static std::map<char *, unsigned long long> fake_numbers;
static std::size_t fake_used = 0;
static cudaError_t fake_error = cudaSuccess, fake_fault = cudaSuccess;
static int fake_left = std::getenv("FAKE_FAULT") != nullptr ? std::atoi(std::getenv("FAKE_FAULT")) : 0;

inline unsigned fake_random() {
    static unsigned state = std::getenv("FAKE_SEED") ? std::atoi(std::getenv("FAKE_SEED")) * 2654435761u + 1 : 1;
    return state = state * 1664525u + 1013904223u, state >> 16;
}

inline void fake_issue(FakeStream *stream, std::function<void()> work) {
    FakeTask task;
    task.work = std::move(work);
    const int number = static_cast<int>(fake_tasks.size());
    if (stream == nullptr) {
        stream = &fake_legacy;
        for (FakeStream *one : fake_streams)
            task.behind.insert(one->last);
    }
    task.behind.insert({stream->last, fake_legacy.last});
    task.behind.insert(stream->waits.begin(), stream->waits.end());
    stream->waits.clear();
    stream->last = number;
    fake_tasks.push_back(std::move(task));
}

// Until this task is done, or all are: some of those that may run, one after the other.
inline void fake_run(int last) {
    static std::size_t first = 0;
    while (last < 0 || !fake_tasks[last].done) {
        std::vector<int> ready;
        for (std::size_t i = first; i < fake_tasks.size(); ++i) {
            bool free = !fake_tasks[i].done;
            for (int one : fake_tasks[i].behind)
                free = free && (one < 0 || fake_tasks[one].done);
            if (free)
                ready.push_back(static_cast<int>(i));
        }
        if (ready.empty())
            break;
        FakeTask &task = fake_tasks[ready[fake_random() % ready.size()]];
        task.work();
        task.done = true;
    }
    while (first < fake_tasks.size() && fake_tasks[first].done)
        ++first;
}
inline void fake_run_all() {
    fake_run(-1);
}

template <typename Kernel> void fake_launch(dim3 grid, dim3 block, unsigned, cudaStream_t stream, Kernel kernel) {
    if (grid.x == 0) {
        fake_error = cudaErrorInvalidConfiguration;
        return;
    }
    const bool fails = --fake_left == 0;
    fake_issue(stream, [=] {
        if (fails)
            fake_fault = cudaErrorLaunchFailure;
        gridDim = grid, blockDim = block;
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
            for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x)
                kernel();
    });
}

inline std::size_t fake_bytes() {
    const char *given = std::getenv("FAKE_BYTES");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::size_t{1} << 40;
}
template <typename T> cudaError_t cudaMalloc(T **pointer, std::size_t size) {
    if (fake_used + size > fake_bytes())
        return fake_error = cudaErrorMemoryAllocation;
    char *made = static_cast<char *>(std::malloc(size + 1));
    for (std::size_t i = 0; i < size; ++i)
        made[i] = static_cast<char>(fake_random() | 1);
    fake_memory[made] = size, fake_used += size;
    static unsigned long long fake_allocations = 0;
    fake_numbers[made] = ++fake_allocations;
    *pointer = reinterpret_cast<T *>(made);
    return cudaSuccess;
}
template <typename T> cudaError_t cudaMallocHost(T **pointer, std::size_t size) {
    *pointer = static_cast<T *>(std::calloc(size + 1, 1));
    return cudaSuccess;
}
struct FakePins {
    std::map<const char *, std::size_t> ranges;
    int often = 0;
    ~FakePins() {
        if (often > 0)
            std::printf("pinned %d times\n", often);
        if (!ranges.empty())
            std::abort();
    }
    bool has(const void *pointer) const {
        auto one = ranges.upper_bound(static_cast<const char *>(pointer));
        return one != ranges.begin() && (--one, static_cast<const char *>(pointer) < one->first + one->second);
    }
};
static FakePins fake_pins;
inline cudaError_t cudaHostRegister(void *pointer, std::size_t size, unsigned) {
    fake_pins.ranges[static_cast<const char *>(pointer)] = size;
    return ++fake_pins.often, cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void *pointer) {
    fake_run_all();
    return fake_pins.ranges.erase(static_cast<const char *>(pointer)) == 1 ? cudaSuccess : fake_error = cudaErrorNotReady;
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    attributes->type = fake_pins.has(pointer) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void **, std::size_t, unsigned) {
    return fake_error = cudaErrorMemoryAllocation;
}
inline cudaError_t cudaHostGetDevicePointer(void **, void *, unsigned) {
    return fake_error = cudaErrorMemoryAllocation;
}
inline cudaError_t cudaGetDevice(int *device) {
    return *device = 0, cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int *value, int, int) {
    return *value = 0, cudaSuccess;
}
inline cudaError_t cudaFree(void *pointer) {
    fake_run_all();
    const auto one = fake_memory.find(static_cast<char *>(pointer));
    if (one == fake_memory.end())
        return cudaSuccess;
    std::memset(pointer, 0xff, one->second);
    fake_used -= one->second;
    fake_memory.erase(one);
    return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t *left, std::size_t *whole) {
    *whole = fake_bytes(), *left = *whole - fake_used;
    return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t size, cudaMemcpyKind,
                                   cudaStream_t s = nullptr) {
    fake_issue(s, [=] { std::memcpy(to, from, size); });
    return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, std::size_t size, cudaMemcpyKind kind) {
    cudaMemcpyAsync(to, from, size, kind);
    fake_run_all();
    return fake_fault;
}
inline cudaError_t cudaMemsetAsync(void *to, int value, std::size_t size, cudaStream_t stream = nullptr) {
    fake_issue(stream, [=] { std::memset(to, value, size); });
    return cudaSuccess;
}
inline cudaError_t cudaMemset(void *to, int value, std::size_t size) {
    return cudaMemsetAsync(to, value, size);
}
inline cudaError_t cudaDeviceSynchronize() {
    return fake_run_all(), fake_fault;
}
inline cudaError_t cudaGetLastError() {
    return std::exchange(fake_error, cudaSuccess);
}
inline cudaError_t cudaPeekAtLastError() {
    return fake_error;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const FakeStream *const one = stream == nullptr ? &fake_legacy : stream;
    return one->last >= 0 ? fake_run(one->last) : void(), fake_fault;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return event->at >= 0 ? fake_run(event->at) : void(), fake_fault;
}
// Whether there is work left is a matter of chance; where there is none, all has been done.
inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (stream->last >= 0 && !fake_tasks[stream->last].done && fake_random() % 2)
        return fake_error = cudaErrorNotReady;
    return fake_run_all(), cudaSuccess;
}
inline const char *cudaGetErrorString(cudaError_t) {
    return "error";
}
inline cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    fake_streams.push_back(*stream = new FakeStream);
    return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    return *event = new FakeEvent, cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    fake_issue(stream, [] {});
    event->at = (stream == nullptr ? &fake_legacy : stream)->last;
    return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (event->at < 0)
        return cudaSuccess;
    (stream == nullptr ? &fake_legacy : stream)->waits.insert(event->at);
    fake_issue(stream, [] {});
    return cudaSuccess;
}
inline int fake_context(void *, unsigned long long *id) {
    return *id = 1, 0;
}
inline int fake_range(unsigned long long *base, std::size_t *size, unsigned long long at) {
    auto one = fake_memory.upper_bound(reinterpret_cast<char *>(at));
    if (one == fake_memory.begin())
        return 1;
    --one;
    if (at >= reinterpret_cast<unsigned long long>(one->first) + one->second)
        return 1;
    *base = reinterpret_cast<unsigned long long>(one->first), *size = one->second;
    return 0;
}
// An allocation's number, which no other one has.
inline int fake_attribute(void *id, int, unsigned long long at) {
    const auto one = fake_memory.find(reinterpret_cast<char *>(at));
    if (one == fake_memory.end())
        return 1;
    return *static_cast<unsigned long long *>(id) = fake_numbers[one->first], 0;
}
inline cudaError_t cudaGetDriverEntryPoint(const char *name, void **entry, int) {
    const std::string asked(name);
    *entry = asked == "cuMemGetAddressRange"    ? reinterpret_cast<void *>(fake_range)
             : asked == "cuPointerGetAttribute" ? reinterpret_cast<void *>(fake_attribute)
                                                : reinterpret_cast<void *>(fake_context);
    return cudaSuccess;
}
