// Writing the record: a file that is mapped into memory, so that nothing is lost however the program ends.
#include "backend.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <unordered_map>

namespace dryrun {

const char *variable(const char *which) {
    return std::getenv((std::string(backend::name) + which).c_str());
}

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 22; // the file grows by this many bytes
constexpr std::size_t kDepth = 16;                   // return addresses kept of one stack

struct Hash {
    std::size_t operator()(const std::vector<std::uintptr_t> &addresses) const {
        std::size_t result = addresses.size();
        for (std::uintptr_t one : addresses)
            result = result * 1099511628211U ^ one;
        return result;
    }
};

// Never destroyed: destructors of the program's globals may still call CUDA.
struct State {
    std::recursive_mutex lock;
    int file = -1;
    char *chunk = nullptr;
    std::size_t used = kChunk; // of the chunk
    std::size_t chunks = 0;
    std::atomic<bool> silent = false; // in a child process, or without a file
    std::unordered_map<std::vector<std::uintptr_t>, std::uint32_t, Hash> stacks;
};

int load_base(dl_phdr_info *info, std::size_t, void *base) { // the first one is the program itself
    *static_cast<std::uintptr_t *>(base) = info->dlpi_addr;
    return 1;
}

// Where the name of the record ends in this each process has one of its own, with its number in that place: those that
// a launcher, a shell or an interpreter starts are recorded, too.
constexpr const char *kEach = "%p";

bool for_each_process(const char *name) {
    return name != nullptr && std::strstr(name, kEach) != nullptr;
}

int open_record(const char *name) {
    constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC;
    if (!for_each_process(name))
        return open(name, kFlags | O_TRUNC, 0600);
    std::string own(name);
    own.replace(own.find(kEach), std::strlen(kEach), std::to_string(getpid()));
    int file = open(own.c_str(), kFlags | O_EXCL, 0600);
    for (int again = 1; file < 0 && errno == EEXIST && again < 1000; ++again) // it became another program
        file = open((own + "." + std::to_string(again)).c_str(), kFlags | O_EXCL, 0600);
    return file;
}

std::atomic<bool> begun = false; // the record has its first line

State &state() {
    static State &one = []() -> State & {
        auto &made = *new State;
        const char *name = variable("_RECORD");
        made.file = name == nullptr ? -1 : open_record(name);
        if (name != nullptr && made.file < 0)
            backend::no_space(-1);
        made.silent = made.file < 0;
        if (!for_each_process(name)) // what this program starts must not write over it
            unsetenv((std::string(backend::name) + "_RECORD").c_str());
        return made;
    }();
    return one;
}

void next_chunk(State &own) {
    if (own.chunk != nullptr)
        munmap(own.chunk, kChunk);
    const auto offset = static_cast<off_t>(own.chunks++ * kChunk);
    void *place = MAP_FAILED;
    if (posix_fallocate(own.file, offset, kChunk) == 0)
        place = mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_SHARED, own.file, offset);
    if (place == MAP_FAILED) {
        own.chunk = nullptr;
        own.silent = true;
        backend::no_space(own.file);
        return;
    }
    own.chunk = static_cast<char *>(place);
    own.used = 0;
}

void append(const char *data, std::size_t size) {
    State &own = state();
    while (!own.silent && size > 0) {
        if (own.used == kChunk)
            next_chunk(own);
        if (own.silent)
            return;
        const std::size_t part = size < kChunk - own.used ? size : kChunk - own.used;
        std::memcpy(own.chunk + own.used, data, part);
        own.used += part;
        data += part;
        size -= part;
    }
}

struct Bounds {
    std::uintptr_t low = 0, high = 0;
};

Bounds stack_bounds() {
    Bounds result;
    pthread_attr_t attributes;
    void *low = nullptr;
    std::size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
        result = {reinterpret_cast<std::uintptr_t>(low), reinterpret_cast<std::uintptr_t>(low) + size};
    }
    return result;
}

// The memory that an address lies in: a program may have stacks of its own, beside those of its threads. It is read
// anew each time, since such a stack may go, and less may come in its place.
Bounds mapping_of(std::uintptr_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        Bounds found;
        if (std::sscanf(line.c_str(), "%zx-%zx", &found.low, &found.high) == 2 && found.low <= address &&
            address < found.high)
            return found;
    }
    return {};
}

struct Nesting {
    int depth = 0;
    std::uint32_t stack = 0; // of the outermost call, which is the program's own
    std::vector<std::function<void()>> later;
};
Nesting &nesting() {
    thread_local Nesting own;
    return own;
}

void begin_record() {
    begun = true;
    std::uintptr_t base = 0;
    dl_iterate_phdr(load_base, &base);
    record("V 1 " + hexadecimal(base));
    pthread_atfork(nullptr, nullptr, [] { state().silent = true; });
}

// A process that never calls CUDA has no record, where each has one of its own.
__attribute__((constructor)) void begin() {
    if (!for_each_process(variable("_RECORD")))
        begin_record();
}

__attribute__((destructor)) void end() {
    if (begun)
        record("Q");
}

} // namespace

void (*on_call)() = nullptr;

Call::Call() : stack_(0) {
    state().lock.lock();
    Nesting &own = nesting();
    if (own.depth++ == 0) {
        if (on_call != nullptr)
            on_call();
        own.stack = stack_number(walk_stack());
    }
    stack_ = own.stack;
}

Call::~Call() {
    Nesting &own = nesting();
    own.depth--;
    state().lock.unlock();
    if (own.depth > 0)
        return;
    const auto functions = std::move(own.later);
    own.later.clear();
    for (const auto &function : functions)
        function();
}

cudaError_t Call::operator()(cudaError_t error) const {
    if (error != cudaSuccess)
        thread().error = error;
    return error;
}

void Call::later(std::function<void()> function) {
    nesting().later.push_back(std::move(function));
}

Thread &thread() {
    thread_local Thread own;
    return own;
}

namespace {

int setting(const char *name, int otherwise) {
    const char *wanted = std::getenv(name);
    return wanted == nullptr ? otherwise : std::atoi(wanted);
}

} // namespace

int device_count() {
    static const int count = setting("CUDA_DRY_RUN_DEVICES", 1);
    return count;
}

int architecture() {
    static const int number = setting("CUDA_DRY_RUN_ARCH", 90);
    return number;
}

void record(const std::string &text) {
    const std::lock_guard<std::recursive_mutex> guard(state().lock);
    if (!begun && for_each_process(variable("_RECORD"))) // it has one from its first call on
        begin_record();
    append(text.data(), text.size());
    append("\n", 1);
}

void refuse(const char *function) {
    record(std::string("U ") + std::to_string(stack_number(walk_stack())) + " " + function);
    backend::give_up();
}

std::uint32_t stack_number(const std::vector<std::uintptr_t> &addresses) {
    State &own = state();
    const std::lock_guard<std::recursive_mutex> guard(own.lock);
    const auto found = own.stacks.find(addresses);
    if (found != own.stacks.end())
        return found->second;
    look_at_modules();
    const auto number = static_cast<std::uint32_t>(own.stacks.size());
    own.stacks.emplace(addresses, number);
    std::string line = "P " + std::to_string(number);
    for (std::uintptr_t one : addresses)
        line += " " + hexadecimal(one);
    record(line);
    return number;
}

std::vector<std::uintptr_t> walk_stack() {
    thread_local const Bounds own = stack_bounds();
    std::vector<std::uintptr_t> found;
    auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const Bounds bounds = frame >= own.low && frame < own.high ? own : mapping_of(frame);
    while (found.size() < kDepth && frame >= bounds.low && frame + 16 <= bounds.high && frame % 8 == 0) {
        const auto *pair = reinterpret_cast<const std::uintptr_t *>(frame); // the caller's frame, the return address
        if (pair[1] < 4096)
            break;
        found.push_back(pair[1]);
        if (pair[0] <= frame)
            break;
        frame = pair[0];
    }
    return found;
}

std::string hexadecimal(std::uintptr_t value) {
    char text[20];
    std::snprintf(text, sizeof text, "%zx", static_cast<std::size_t>(value));
    return text;
}

bool silent() {
    return state().silent;
}

} // namespace dryrun
