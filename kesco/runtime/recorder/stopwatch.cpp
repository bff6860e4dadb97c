// Events around an operation, behind a kernel that does nothing for some 30 microseconds: so the device finds all three
// in its queue, and what it takes the host to issue them is not measured. The program waits for each operation, so that
// each runs alone. What two events with nothing between them measure is taken off.
//
// The program must not notice: nothing is measured while an error of its own is pending, or while a stream is captured;
// an error of a call that is made here is taken away again.
#include "stopwatch.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace forward {
namespace {

// For %1 cycles. The target is one that every driver of today knows, or an older one.
constexpr const char *kSpin = R"(.version 6.3
.target %s
.address_size 64
.visible .entry kesco_spin(.param .u64 cycles) {
  .reg .u64 %rd<4>;
  .reg .pred %p;
  ld.param.u64 %rd0, [cycles];
  mov.u64 %rd1, %clock64;
again:
  mov.u64 %rd2, %clock64;
  sub.u64 %rd3, %rd2, %rd1;
  setp.lt.u64 %p, %rd3, %rd0;
  @%p bra again;
  ret;
}
)";
constexpr unsigned long long kCycles = 60000;
constexpr int kEmpty = 15; // how often two events with nothing between them are measured

bool wanted() {
    static const bool one = std::getenv("CUDA_RECORDER_TIMES") != nullptr;
    return one;
}

// The driver's functions, as far as they are needed; its library is there if a GPU is.
struct Driver {
    using Load = int (*)(void **, const void *);
    using Find = int (*)(void **, void *, const char *);
    using Launch = int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cudaStream_t,
                           void **, void **);
    using Name = int (*)(char *, int, int);
    Load load = nullptr;
    Find find = nullptr;
    Launch launch = nullptr;
    Name name = nullptr;
    Driver() {
        void *library = dlopen("libcuda.so.1", RTLD_LAZY);
        if (library == nullptr)
            return;
        load = reinterpret_cast<Load>(dlsym(library, "cuModuleLoadData"));
        find = reinterpret_cast<Find>(dlsym(library, "cuModuleGetFunction"));
        launch = reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernel"));
        name = reinterpret_cast<Name>(dlsym(library, "cuDeviceGetName"));
    }
    static const Driver &get() {
        static const auto &one = *new Driver;
        return one;
    }
};

struct Real {
#define REAL_MEMBER(function) decltype(&::function) function = next<decltype(&::function)>(#function)
    REAL_MEMBER(cudaEventCreate);
    REAL_MEMBER(cudaEventRecord);
    REAL_MEMBER(cudaEventSynchronize);
    REAL_MEMBER(cudaStreamIsCapturing);
    REAL_MEMBER(cudaPeekAtLastError);
    REAL_MEMBER(cudaGetLastError);
    REAL_MEMBER(cudaGetDevice);
    REAL_MEMBER(cudaDeviceGetAttribute);
    REAL_MEMBER(cudaDriverGetVersion);
    REAL_MEMBER(cudaRuntimeGetVersion);
    REAL_MEMBER(cudaFuncGetAttributes);
    using Elapsed = cudaError_t (*)(float *, cudaEvent_t, cudaEvent_t);
    Elapsed elapsed = next<Elapsed>("cudaEventElapsedTime");
    static const Real &get() {
        static const auto &one = *new Real;
        return one;
    }
};

// What measures on one device for one thread.
struct Watch {
    cudaEvent_t begin = nullptr, end = nullptr;
    void *spin = nullptr; // the kernel that does nothing, or null
    double empty = 0;     // milliseconds
};

bool spins(const Watch &watch, cudaStream_t stream) {
    unsigned long long cycles = kCycles;
    void *arguments[] = {&cycles};
    return watch.spin != nullptr &&
           Driver::get().launch(watch.spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) == 0;
}

void say_gpu(int device) {
    const Real &real = Real::get();
    std::string line = "G";
    for (const cudaDeviceAttr one : {cudaDevAttrMultiProcessorCount, cudaDevAttrMaxThreadsPerMultiProcessor,
                                     cudaDevAttrMaxBlocksPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor,
                                     cudaDevAttrMaxSharedMemoryPerMultiprocessor}) {
        int value = 0;
        real.cudaDeviceGetAttribute(&value, one, device);
        line += " " + std::to_string(value);
    }
    int driver = 0, runtime = 0;
    real.cudaDriverGetVersion(&driver);
    real.cudaRuntimeGetVersion(&runtime);
    char name[256] = "";
    if (Driver::get().name == nullptr || Driver::get().name(name, sizeof name, device) != 0)
        name[0] = 0;
    record(line + " " + std::to_string(driver) + " " + std::to_string(runtime) + " " + name);
}

Watch *made(int device) {
    auto &watch = *new Watch;
    const Real &real = Real::get();
    if (real.cudaEventCreate(&watch.begin) != cudaSuccess || real.cudaEventCreate(&watch.end) != cudaSuccess)
        return nullptr;
    const Driver &driver = Driver::get();
    for (const char *target : {"sm_75", "sm_52"}) {
        void *module = nullptr;
        std::string text = kSpin;
        text.replace(text.find("%s"), 2, target);
        if (watch.spin == nullptr && driver.load != nullptr && driver.load(&module, text.c_str()) == 0 &&
            driver.find(&watch.spin, module, "kesco_spin") != 0)
            watch.spin = nullptr;
    }
    std::vector<float> times;
    for (int i = 0; i < kEmpty; ++i) {
        float milliseconds = 0;
        spins(watch, nullptr);
        if (real.cudaEventRecord(watch.begin, nullptr) == cudaSuccess &&
            real.cudaEventRecord(watch.end, nullptr) == cudaSuccess &&
            real.cudaEventSynchronize(watch.end) == cudaSuccess &&
            real.elapsed(&milliseconds, watch.begin, watch.end) == cudaSuccess)
            times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    watch.empty = times.empty() ? 0 : times[times.size() / 2];
    say_gpu(device);
    return &watch;
}

Watch *watch_of_this_thread() {
    thread_local std::map<int, Watch *> own;
    int device = 0;
    if (Real::get().cudaGetDevice(&device) != cudaSuccess)
        return nullptr;
    const auto found = own.find(device);
    return found != own.end() ? found->second : own[device] = made(device);
}

} // namespace

Stopwatch::Stopwatch(cudaStream_t stream, bool per_thread)
    : stream_(stream == nullptr && per_thread ? cudaStreamPerThread : stream), wanted_(wanted() && !silent()) {
    if (!wanted_)
        return;
    const Real &real = Real::get();
    if (real.cudaPeekAtLastError() != cudaSuccess)
        return;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const bool idle = real.cudaStreamIsCapturing(stream_, &status) == cudaSuccess;
    Watch *watch = idle && status == cudaStreamCaptureStatusNone ? watch_of_this_thread() : nullptr;
    if (watch != nullptr) {
        queued_ = spins(*watch, stream_);
        if (real.cudaEventRecord(watch->begin, stream_) == cudaSuccess)
            watch_ = watch;
    }
    real.cudaGetLastError(); // of the calls made here: there was none before
}

void Stopwatch::stop(cudaError_t result) {
    if (watch_ == nullptr || result != cudaSuccess)
        return;
    const Real &real = Real::get();
    const auto *watch = static_cast<const Watch *>(watch_);
    if (real.cudaPeekAtLastError() != cudaSuccess)
        return;
    float milliseconds = 0;
    if (real.cudaEventRecord(watch->end, stream_) == cudaSuccess &&
        real.cudaEventSynchronize(watch->end) == cudaSuccess &&
        real.elapsed(&milliseconds, watch->begin, watch->end) == cudaSuccess)
        nanoseconds_ = static_cast<long long>(std::max(0.0, milliseconds - watch->empty) * 1e6 + 0.5);
    real.cudaGetLastError(); // an error of the operation is returned by whatever the program calls next
}

void Stopwatch::write(const void *stub) const {
    if (!wanted_)
        return;
    cudaFuncAttributes facts = {};
    const bool known = stub != nullptr && nanoseconds_ >= 0 &&
                       Real::get().cudaFuncGetAttributes(&facts, stub) == cudaSuccess;
    if (stub != nullptr && nanoseconds_ >= 0 && !known)
        Real::get().cudaGetLastError();
    record("D " + std::to_string(nanoseconds_) + " " + (known ? std::to_string(facts.numRegs) : "-1") + " " +
           (known ? std::to_string(facts.sharedSizeBytes) : "-1") + " " +
           (known ? std::to_string(facts.localSizeBytes) : "-1") + (queued_ ? " 1" : " 0"));
}

} // namespace forward
