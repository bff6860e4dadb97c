// In front of the real CUDA runtime: each function here calls the real one first, with the program's own arguments, and
// returns what that returned. If it succeeded, the same call is made to the dry run's runtime, which only keeps the
// books in this library (its functions have another name here: model_cudaMalloc, …) and so writes the same record.
//
// No lock is held while the real runtime works. Whatever goes wrong in the books is a line of the record that says
// which call is missing from it; the program never notices.
#pragma once

#include "../dryrun/backend.h"

#include <dlfcn.h>

#include <unordered_map>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name) // with the suffix of the per-thread variants
#define JOINED(a, b) a##b
#define PREFIXED(a, b) JOINED(a, b)
#define MODEL(name) PREFIXED(model_, name)
// The real function, and a declaration of the one that keeps the books.
#define REAL(name) static const auto real = forward::next<decltype(&name)>(TEXT(name))
#define MODELED(name) extern "C" decltype(name) MODEL(name)

namespace forward {

using namespace dryrun;

// A function of the real runtime by its name; where it has none of that name, one that says so.
void *next_symbol(const char *name);
template <typename Function> Function next(const char *name) {
    return reinterpret_cast<Function>(next_symbol(name));
}

// What the program calls something, and what the books call it.
template <typename Handle> std::unordered_map<Handle, Handle> &bound() {
    static auto &one = *new std::unordered_map<Handle, Handle>;
    return one;
}
template <typename Handle> void bind(Handle theirs, Handle ours) {
    bound<Handle>()[theirs] = ours;
}
// Thrown where the books do not know what a call is about.
struct Lost {};
template <typename Handle> Handle known(Handle theirs) {
    const auto found = bound<Handle>().find(theirs);
    if (found == bound<Handle>().end())
        throw Lost{};
    return found->second;
}

// The same argument for the books.
template <typename T> T in(T value) {
    return value;
}
void *in(void *pointer);
const void *in(const void *pointer);
cudaStream_t in(cudaStream_t stream);
cudaEvent_t in(cudaEvent_t event);
cudaArray_t in(cudaArray_t array);
cudaArray_const_t in(cudaArray_const_t array);
cudaPitchedPtr in(cudaPitchedPtr pointer);
cudaMemcpy3DParms in(const cudaMemcpy3DParms &parameters);
cudaResourceDesc in(const cudaResourceDesc &resource);
// From now on addresses from `other` on stand for those from `base` on.
void same_memory(std::uintptr_t other, std::uintptr_t base, std::size_t size);

// Lines of the record: a call that is not in it, and one that the real runtime refused.
void missing(const char *name);
void failed(const char *name, cudaError_t error, std::uint32_t stack);
inline void failed(const char *name, cudaError_t error, const Call &call) {
    failed(name, error, call.stack());
}

// Keeps the books of one call, which has succeeded.
template <typename Books> void observe(const char *name, Books books) {
    if (silent())
        return;
    try {
        const Call call;
        try {
            books(call);
        } catch (...) {
            missing(name);
        }
    } catch (...) { // no memory: nothing can be said either
    }
}
inline void expect(cudaError_t result) {
    if (result != cudaSuccess)
        throw Lost{};
}

// What most functions do.
template <typename Real, typename Model, typename... A>
cudaError_t both(const char *name, Real real, Model model, A... arguments) {
    const cudaError_t result = real(arguments...);
    observe(name, [&](const Call &call) {
        if (result == cudaSuccess)
            expect(model(in(arguments)...));
        else
            failed(name, result, call);
    });
    return result;
}

// For advice about where memory is. What the real runtime refused may be about memory that is freed; else it changes
// nothing, and is nobody's concern.
template <typename Real, typename Model, typename... A>
cudaError_t places(const char *name, Real real, Model model, const void *low, A... arguments) {
    const cudaError_t result = real(low, arguments...);
    observe(name, [&](const Call &call) {
        const auto at = reinterpret_cast<std::uintptr_t>(low);
        if (result == cudaSuccess)
            expect(model(in(low), in(arguments)...));
        else if (result == cudaErrorInvalidValue && allocation_at(at) == nullptr)
            refused(name, at, 0, call);
    });
    return result;
}

// For a handle that a call makes: what the real one was given is bound to what the books were given.
template <typename Handle, typename Real, typename Model>
cudaError_t makes(const char *name, Handle *made, Real real, Model model) {
    const cudaError_t result = real();
    observe(name, [&](const Call &call) {
        Handle ours = nullptr;
        if (result == cudaSuccess) {
            expect(model(&ours));
            bind(*made, ours);
        } else {
            failed(name, result, call);
        }
    });
    return result;
}

// For a handle that a call destroys. Another thread may get the same one before the books hear of it.
template <typename Handle, typename Real, typename Model>
cudaError_t destroys(const char *name, Handle theirs, Real real, Model model) {
    Handle ours = nullptr;
    observe(name, [&](const Call &) {
        const auto found = bound<Handle>().find(theirs);
        ours = found == bound<Handle>().end() ? nullptr : found->second;
    });
    const cudaError_t result = real(theirs);
    observe(name, [&](const Call &call) {
        if (result != cudaSuccess)
            return failed(name, result, call);
        const auto found = bound<Handle>().find(theirs);
        if (found != bound<Handle>().end() && found->second == ours)
            bound<Handle>().erase(found);
        if (ours != nullptr)
            expect(model(ours));
    });
    return result;
}

// Memory is being freed. Another thread may be given the same address before the books hear of it; then it has been
// freed in them by then, as the call said that makes this.
class Freeing {
  public:
    template <typename Stream> Freeing(const void *pointer, const char *name, Stream stream) : name_(name) {
        observe(name, [&](const Call &call) {
            if (Allocation *one = pointer == nullptr ? nullptr : allocation_at(pointer)) {
                id_ = one->id;
                one->freeing = {call.stack(), stream()};
                allocation_ = reinterpret_cast<std::uintptr_t>(pointer);
            }
        });
    }
    template <typename Model> void ends(cudaError_t result, Model model) const {
        observe(name_, [&](const Call &call) {
            Allocation *one = allocation_ == 0 ? nullptr : allocation_at(allocation_);
            const bool still = one != nullptr && one->id == id_;
            if (result != cudaSuccess)
                failed(name_, result, call);
            if (still && result == cudaSuccess)
                expect(model());
            else if (still)
                one->freeing = {};
        });
    }

  private:
    const char *name_;
    std::uint64_t id_ = 0;
    std::uintptr_t allocation_ = 0;
};

// The host's stub of a kernel, whichever way it is named.
const void *stub_of(const void *function);
#if CUDART_VERSION >= 12010
inline const void *stub_of(cudaKernel_t kernel) {
    return stub_of(static_cast<const void *>(kernel));
}
#endif

// Graphs: once a graph was changed by means that the books do not know, a launch of any may touch everything.
void graphs_are_unclear();
bool graphs_unclear();

} // namespace forward

#define BOTH(name, parameters, ...)                                                                                    \
    MODELED(name);                                                                                                     \
    extern "C" cudaError_t name parameters {                                                                           \
        REAL(name);                                                                                                    \
        return forward::both(#name, real, MODEL(name), __VA_ARGS__);                                                   \
    }
#define PLACES(name, parameters, ...)                                                                                  \
    MODELED(name);                                                                                                     \
    extern "C" cudaError_t name parameters {                                                                           \
        REAL(name);                                                                                                    \
        return forward::places(#name, real, MODEL(name), __VA_ARGS__);                                                 \
    }
