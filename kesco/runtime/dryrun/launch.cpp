// Kernels: what the compiler's start-up code registers, launches as operations, and questions about functions.
#include "backend.h"

#include <unwind.h>

#include <cstring>
#include <map>
#include <unordered_map>

namespace dryrun {
namespace {

struct Registered {
    std::unordered_map<const void *, std::string> kernels; // by the address of the host's stub
    std::map<std::string, const void *> symbols;
    std::unordered_map<const void *, int> shared; // what cudaFuncSetAttribute allowed
};
Registered &registered() {
    static auto &one = *new Registered;
    return one;
}

struct Configuration {
    dim3 grid, block;
    std::size_t shared = 0;
    cudaStream_t stream = nullptr;
};
std::vector<Configuration> &configurations() {
    thread_local std::vector<Configuration> own;
    return own;
}

constexpr const char *kUnseen = "unseen_kernel"; // one that was registered nowhere
constexpr std::size_t kShared = 48 * 1024, kMostShared = 227 * 1024;

bool launchable(const void *function, dim3 grid, dim3 block, std::size_t shared) {
    const std::size_t threads = std::size_t{block.x} * block.y * block.z;
    const auto allowed = registered().shared.find(function);
    const std::size_t most = allowed == registered().shared.end() ? kShared : static_cast<std::size_t>(allowed->second);
    return threads > 0 && threads <= 1024 && block.z <= 64 && grid.x > 0 && grid.y > 0 && grid.z > 0 &&
           grid.x <= 0x7fffffffU && grid.y <= 65535 && grid.z <= 65535 && shared <= (most > kShared ? most : kShared);
}

std::string dimensions(dim3 one) {
    return std::to_string(one.x) + "," + std::to_string(one.y) + "," + std::to_string(one.z);
}

std::string bytes(const std::string &data) {
    static const char digits[] = "0123456789abcdef";
    std::string result;
    for (const char one : data) {
        result += digits[static_cast<unsigned char>(one) >> 4];
        result += digits[one & 15];
    }
    return result;
}

// Everything watched that the kernel may reach is closed to the host again, which is then seen to come back.
void arm_what_is_reached(const Kernel *kernel, const std::vector<std::string> &arguments,
                         const std::set<std::uint64_t> &reached) {
    if (!any_guarded())
        return;
    std::set<std::uint64_t> given = reached;
    for (const std::string &argument : arguments)
        for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= argument.size(); at += sizeof(std::uintptr_t)) {
            std::uintptr_t value = 0;
            std::memcpy(&value, argument.data() + at, sizeof value);
            if (const Allocation *one = value == 0 ? nullptr : allocation_at(value))
                given.insert(one->id);
        }
    for (Allocation *one : allocations())
        if (one->guarded && (kernel == nullptr || given.count(one->id) != 0))
            arm(one, nullptr);
}

// False if it cannot be known what the kernel reaches.
bool follow(const Kernel &kernel, const std::vector<std::string> &arguments, std::set<std::uint64_t> &reached) {
    bool known = true;
    for (const auto &[parameter, offset] : kernel.through) {
        std::uintptr_t value = 0;
        if (parameter < arguments.size() && offset + sizeof value <= arguments[parameter].size())
            std::memcpy(&value, arguments[parameter].data() + offset, sizeof value);
        if (value != 0)
            known = reach(allocation_at(value), reached) && known;
    }
    for (const std::string &symbol : kernel.symbols) {
        const auto found = registered().symbols.find(symbol);
        if (found != registered().symbols.end())
            known = reach(allocation_at(found->second), reached) && known;
    }
    return known;
}

// Where the function begins that an address is in.
std::uintptr_t function_around(std::uintptr_t address) {
    static auto &known = *new std::unordered_map<std::uintptr_t, std::uintptr_t>;
    const auto [found, added] = known.try_emplace(address, 0);
    if (added)
        found->second =
            reinterpret_cast<std::uintptr_t>(_Unwind_FindEnclosingFunction(reinterpret_cast<void *>(address - 1)));
    return found->second;
}

} // namespace

std::uint32_t launch_stack(const void *function) {
    std::vector<std::uintptr_t> frames = walk_stack();
    for (auto one = frames.begin(); one != frames.end(); ++one)
        if (function_around(*one) == reinterpret_cast<std::uintptr_t>(function)) {
            frames.erase(frames.begin(), one + 1);
            break;
        }
    return stack_number(frames);
}

Operation kernel_launch(const void *function, dim3 grid, dim3 block, void **arguments, std::size_t shared,
                        std::uint32_t stack, cudaError_t &refused) {
    const auto found = registered().kernels.find(function);
    const bool registers = found != registered().kernels.end();
    if (backend::judges && (!registers || !launchable(function, grid, block, shared))) {
        refused = registers ? cudaErrorInvalidConfiguration : cudaErrorInvalidDeviceFunction;
        return {};
    }
    const std::string name = registers ? found->second : kUnseen;
    const Kernel *kernel = kernel_named(name);
    std::vector<std::string> values;
    if (kernel != nullptr && arguments != nullptr)
        for (std::size_t i = 0; i < kernel->sizes.size(); ++i)
            backend::as_recorded(values.emplace_back(static_cast<const char *>(arguments[i]), kernel->sizes[i]));
    std::string head = name + " " + dimensions(grid) + " " + dimensions(block) + " " + std::to_string(shared);
    auto effect = [=](std::string &line) {
        std::set<std::uint64_t> reached;
        const bool known =
            kernel != nullptr && values.size() == kernel->sizes.size() && follow(*kernel, values, reached);
        line += known ? " =" : " ?";
        for (const std::string &value : values)
            line += " " + bytes(value);
        for (const std::uint64_t id : reached)
            line += " *" + std::to_string(id);
        if (kernel != nullptr)
            backend::compute(*kernel, values);
        arm_what_is_reached(kernel, values, reached);
    };
    return {"K", head, effect, stack};
}

} // namespace dryrun

using namespace dryrun;

extern "C" {

void **__cudaRegisterFatBinary(void *) {
    static void *handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterFunction(void **, const char *stub, char *, const char *name, int, void *, void *, dim3 *, dim3 *,
                            int *) {
    const Call call;
    registered().kernels[stub] = name_on_device(name);
}
void __cudaRegisterVar(void **, char *shadow, char *, const char *name, int, std::size_t size, int, int) {
    const Call call;
    const std::string known = name_on_device(name);
    adopt(Kind::symbol, shadow, size, stack_number({}), known);
    registered().symbols[known] = shadow;
}
char __cudaInitModule(void **) {
    return 1;
}
// nvcc's stubs ask for their kernel once, and launch it by what they are given.
#if CUDART_VERSION >= 12010
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    const Call call;
    if (registered().kernels.count(function) == 0)
        return call(cudaErrorInvalidDeviceFunction);
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(function));
    return cudaSuccess;
}
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    const Call call;
    return __cudaGetKernel(kernel, function);
}
#endif
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
    configurations().push_back({grid, block, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, std::size_t *shared, void *stream) {
    if (configurations().empty())
        return cudaErrorMissingConfiguration;
    const Configuration last = configurations().back();
    configurations().pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared = last.shared;
    *static_cast<cudaStream_t *>(stream) = last.stream;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    const Call call;
    if (registered().kernels.count(function) == 0)
        return call(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || static_cast<std::size_t>(value) > kMostShared)
            return call(cudaErrorInvalidValue);
        registered().shared[function] = value;
    }
    return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) {
    return cudaSuccess;
}
cudaError_t cudaFuncSetSharedMemConfig(const void *, cudaSharedMemConfig) {
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
    const Call call;
    if (registered().kernels.count(function) == 0)
        return call(cudaErrorInvalidDeviceFunction);
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = architecture();
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(kShared);
    return cudaSuccess;
}
#if CUDART_VERSION >= 12030
cudaError_t cudaFuncGetName(const char **name, const void *function) {
    const Call call;
    const auto found = registered().kernels.find(function);
    if (found == registered().kernels.end())
        return call(cudaErrorInvalidDeviceFunction);
    *name = found->second.c_str();
    return cudaSuccess;
}
#endif
// Occupancy by threads and blocks alone: registers and shared memory of a kernel are not known here.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                   std::size_t shared, unsigned) {
    const Call call;
    if (registered().kernels.count(function) == 0 || threads < 1 || threads > 1024)
        return call(threads < 1 ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction);
    const int rounded = (threads + 31) / 32 * 32;
    *blocks = 2048 / rounded < 32 ? 2048 / rounded : 32;
    if (shared > 0 && *blocks > static_cast<int>(kMostShared / shared))
        *blocks = static_cast<int>(kMostShared / shared);
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                          std::size_t shared) {
    const Call call;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t *shared, const void *, int blocks, int) {
    const Call call;
    if (blocks < 1)
        return call(cudaErrorInvalidValue);
    *shared = kMostShared / static_cast<std::size_t>(blocks);
    return cudaSuccess;
}

} // extern "C"
