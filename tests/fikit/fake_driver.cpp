// A libcuda.so.1 without a GPU: what the runtime's client needs of it, and a device that takes as long as it is told.
//
// A kernel takes `gridX` microseconds. One device for all processes that name the same file in FAKE_GPU: it does one
// kernel at a time, in the order of launches, whoever they are from, as a GPU does without MPS. With FAKE_STREAMS each
// stream has a device of its own; with FAKE_OWN each process has, as under an MPS that costs nothing. With
// FAKE_DEAF=THREAD no event has ended for a thread of that name, whose questions are not counted. With FAKE_POINT all
// it is asked is a point of cancellation. With FAKE_CAPTURE some thread captures a stream all the time: who asks for an
// event outside the relaxed mode ends that and has error 900. Made with OLD_DRIVER it knows neither these modes nor
// numbers of streams.
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace {

struct Device {
    std::atomic<std::uint64_t> free_at; // when all that was launched has ended
    std::atomic<std::uint64_t> launches;
    std::atomic<std::uint64_t> events;      // recorded
    std::atomic<std::uint64_t> queries;     // of events
    std::atomic<std::uint64_t> invalidated; // captures
};

Device *device() {
    static Device *const one = [] {
        const char *path = getenv("FAKE_GPU");
        const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
        if (fd >= 0 && ftruncate(fd, sizeof(Device)) == 0)
            return static_cast<Device *>(mmap(nullptr, sizeof(Device), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        return new Device{};
    }();
    return one;
}

std::uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::uint64_t(time.tv_sec) * 1000000000U + std::uint64_t(time.tv_nsec);
}

// A handle is used again where the stream was destroyed; its number is not.
void *const made_stream = reinterpret_cast<void *>(0x60);
std::atomic<std::uint64_t> streams_made{0};
unsigned long long number_of(void *stream) {
    return stream == made_stream ? 1000 + streams_made.load() : reinterpret_cast<std::uintptr_t>(stream) + 1;
}
thread_local std::uint64_t ends[16]; // when this thread's last kernel on a stream ends
std::uint64_t &mine(void *stream) {
    return ends[number_of(stream) % 16];
}

struct Event {
    std::uint64_t at;
};
thread_local int capture_mode = 0; // global; 2: relaxed

void point() {
    static const bool is = getenv("FAKE_POINT");
    if (is)
        pthread_testcancel();
}

int launch(unsigned microseconds, void *stream) {
    point();
    static const bool parallel = getenv("FAKE_STREAMS");
    Device *d = device();
    if (parallel) {
        const std::uint64_t time = now();
        mine(stream) = std::max(mine(stream), time) + microseconds * 1000ULL;
        d->launches.fetch_add(1);
        return 0;
    }
    static const bool own = getenv("FAKE_OWN");
    static std::atomic<std::uint64_t> own_free_at{0};
    std::atomic<std::uint64_t> &free_at = own ? own_free_at : d->free_at;
    std::uint64_t before = free_at.load(), end;
    do {
        const std::uint64_t time = now();
        end = (before > time ? before : time) + microseconds * 1000ULL;
    } while (!free_at.compare_exchange_weak(before, end));
    d->launches.fetch_add(1);
    mine(stream) = end;
    return 0;
}

} // namespace

// With FAKE_FIRST the first one keeps its thread for so many microseconds.
SHOWN int cuLaunchKernel(void *, unsigned x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *stream,
                         void **, void **) {
    static const char *const first = getenv("FAKE_FIRST");
    static const int slept = first ? usleep(useconds_t(atoi(first))) : 0;
    return slept + launch(x, stream);
}
SHOWN int cuLaunchKernel_ptsz(void *, unsigned x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              void *stream, void **, void **) {
    return launch(x, stream);
}
SHOWN int cuLaunchKernelEx(const unsigned *config, void *, void **, void **) {
    return launch(config[0], nullptr);
}
SHOWN int cuLaunchCooperativeKernel(void *, unsigned x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    void *stream, void **) {
    return launch(x, stream);
}
SHOWN int cuGraphLaunch(void *, void *stream) {
    return launch(100, stream);
}
SHOWN int cuStreamSynchronize(void *stream) {
    while (now() < mine(stream))
        usleep(mine(stream) - now() > 200000 ? 100 : 10);
    return 0;
}
SHOWN int cuCtxSynchronize_v2(void *) {
    for (const std::uint64_t &one : ends)
        while (now() < one)
            usleep(10);
    return 0;
}
SHOWN int cuStreamCreate(void **stream, unsigned) {
    streams_made.fetch_add(1);
    *stream = made_stream;
    return 0;
}
#ifndef OLD_DRIVER
SHOWN int cuStreamGetId(void *stream, unsigned long long *number) {
    *number = number_of(stream);
    return 0;
}
#endif
SHOWN int cuEventCreate(void **event, unsigned) {
    *event = new Event{0};
    return 0;
}
SHOWN int cuEventRecord(void *event, void *stream) {
    point();
    const std::uint64_t time = now();
    device()->events.fetch_add(1);
    static_cast<Event *>(event)->at = std::max(mine(stream), time);
    return 0;
}
SHOWN int cuEventQuery(void *event) {
    point();
    static const char *const deaf = getenv("FAKE_DEAF"), *const captures = getenv("FAKE_CAPTURE");
    char name[16] = "";
    if (deaf && pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strcmp(name, deaf) == 0)
        return 600;
    if (captures && capture_mode != 2) {
        device()->invalidated.fetch_add(1);
        return 900;
    }
    device()->queries.fetch_add(1);
    return now() < static_cast<Event *>(event)->at ? 600 : 0;
}
SHOWN int cuEventSynchronize(void *event) {
    while (cuEventQuery(event))
        usleep(10);
    return 0;
}
SHOWN int cuEventElapsedTime(float *result, void *from, void *to) {
    const auto a = static_cast<Event *>(from)->at, b = static_cast<Event *>(to)->at;
    *result = float(double(std::int64_t(b - a)) / 1e6);
    return 0;
}
SHOWN int cuStreamIsCapturing(void *stream, int *status) {
    point();
    *status = stream == reinterpret_cast<void *>(0xca); // the stream that captures
    return 0;
}
SHOWN int cuCtxGetCurrent(void **context) {
    *context = device();
    return 0;
}
SHOWN int cuCtxSetCurrent(void *) {
    return 0;
}
#ifndef OLD_DRIVER
SHOWN int cuThreadExchangeStreamCaptureMode(int *mode) {
    std::swap(*mode, capture_mode);
    return 0;
}
#endif
SHOWN int cuFuncGetName(const char **name, void *function) {
    point();
    *name = static_cast<const char *>(function);
    return 0;
}
SHOWN int cuGetProcAddress_v2(const char *name, void **function, int, std::uint64_t flags, int *status) {
    char full[80];
    strncpy(full, name, 60);
    full[60] = '\0';
    if (flags & 2)
        strcat(full, "_ptsz");
    void *own = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    *function = dlsym(own, full);
    if (!*function)
        *function = dlsym(own, name);
    if (status)
        *status = 0;
    return *function ? 0 : 500;
}
