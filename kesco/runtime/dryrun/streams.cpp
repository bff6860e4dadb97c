// Streams, events, capture, and copies as operations; the functions that no per-thread variant exists of.
#include "backend.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>

namespace dryrun {
namespace {

struct Streams {
    std::map<Stream *, std::unique_ptr<Stream>> live;
    std::map<Event *, std::unique_ptr<Event>> events;
    std::map<int, Stream *> legacy;
    long next_stream = 0, next_event = 0;
};
Streams &all() {
    static auto &one = *new Streams;
    return one;
}

Stream *per_thread_stream() {
    thread_local std::map<int, Stream *> own;
    Stream *&stream = own[thread().device];
    if (stream == nullptr)
        stream = new_stream('p', 0, 0, stack_number({}));
    return stream;
}

// What operations take, in microseconds, by their first word: a kernel's name or a copy's function. From a file that
// CUDA_DRY_RUN_MODEL names, a line each. Where there is one, the clock of events is what the operations took.
const std::map<std::string, double> *modelled() {
    static const std::map<std::string, double> *const one = [] {
        const char *name = std::getenv("CUDA_DRY_RUN_MODEL");
        if (name == nullptr)
            return static_cast<std::map<std::string, double> *>(nullptr);
        auto *made = new std::map<std::string, double>;
        std::ifstream file(name);
        std::string word;
        double microseconds = 0;
        while (file >> word >> microseconds)
            (*made)[word] = microseconds;
        return made;
    }();
    return one;
}
double worked = 0; // seconds, with a model

void works(const Operation &operation) {
    if (modelled() == nullptr)
        return;
    const auto found = modelled()->find(operation.head.substr(0, operation.head.find(' ')));
    worked += found == modelled()->end() ? 0 : found->second * 1e-6;
}

double now() {
    if (modelled() != nullptr)
        return worked;
    static const auto begin = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool writes_device(cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}
bool reads_device(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}
bool inside_device(const Allocation *allocation) {
    return allocation != nullptr && !allocation->on_host();
}

// The rules of "API synchronization behavior" in the runtime's manual. Memory that is in no allocation is pageable, or
// the real device's own, which then only the kind of the copy tells.
Sync copy_sync(const Allocation *to, const Allocation *from, cudaMemcpyKind kind, bool async) {
    const bool to_device = to == nullptr ? writes_device(kind) : inside_device(to);
    const bool from_device = from == nullptr ? reads_device(kind) : inside_device(from);
    if (!to_device && !from_device)
        return Sync::both;
    if (async || (to_device && from_device))
        return Sync::none;
    if (to_device && from == nullptr)
        return Sync::before; // pageable memory is staged: the copy to the device may still be under way
    return Sync::after;
}

bool fits(const Allocation *allocation, const Range &range, std::size_t slices, std::size_t slice) {
    return allocation == nullptr || range.low + (slices - 1) * slice + range.extent() <= allocation->end();
}

// A range that covers all slices, for the record.
Range hull(const Range &range, std::size_t slices, std::size_t slice) {
    if (slices <= 1)
        return range;
    if (range.rows * range.pitch == slice || range.rows == 1)
        return {range.low, range.width, range.rows == 1 ? slice : range.pitch, range.rows * slices};
    return {range.low, (slices - 1) * slice + range.extent()};
}

} // namespace

Node *Graph::add(Operation operation, std::vector<Node *> after, cudaGraphNodeType type) {
    nodes.push_back(std::make_unique<Node>(Node{std::move(operation), std::move(after), type}));
    return nodes.back().get();
}

Stream *new_stream(char kind, unsigned flags, int priority, std::uint32_t stack) {
    Streams &own = all();
    auto made = std::make_unique<Stream>(Stream{own.next_stream++, thread().device, kind, flags, priority});
    record("S " + std::to_string(made->id) + " " + std::to_string(made->device) + " " + kind + " " +
           std::to_string(stack));
    Stream *result = made.get();
    own.live.emplace(result, std::move(made));
    return result;
}

Stream *stream_of(cudaStream_t handle, bool per_thread) {
    if (handle == cudaStreamPerThread || (handle == nullptr && per_thread))
        return per_thread_stream();
    if (handle == cudaStreamLegacy || handle == nullptr) {
        Stream *&stream = all().legacy[thread().device];
        if (stream == nullptr)
            stream = new_stream('l', 0, 0, stack_number({}));
        return stream;
    }
    auto *stream = reinterpret_cast<Stream *>(handle);
    return all().live.count(stream) != 0 ? stream : nullptr;
}

std::vector<Stream *> streams() {
    std::vector<Stream *> result;
    for (const auto &entry : all().live)
        result.push_back(entry.first);
    return result;
}

void destroy_stream(Stream *stream) {
    all().live.erase(stream);
}

Event *event_of(cudaEvent_t handle) {
    auto *event = reinterpret_cast<Event *>(handle);
    return all().events.count(event) != 0 ? event : nullptr;
}

void submit(Stream *stream, Operation operation, cudaGraphNodeType type) {
    if (stream->capture != nullptr) {
        stream->last = {stream->capture->add(std::move(operation), stream->last, type)};
        return;
    }
    std::string line = operation.letter + " " + std::to_string(stream->id) + " " + std::to_string(operation.stack) +
                       (operation.head.empty() ? "" : " ") + operation.head;
    if (operation.effect)
        operation.effect(line);
    works(operation);
    record(line);
}

void record_event(Event *event, Stream *stream, std::uint32_t stack) {
    event->capture = stream->capture;
    event->last = stream->last;
    if (stream->capture != nullptr)
        return;
    event->recorded = true;
    event->time = now();
    record("R " + std::to_string(event->id) + " " + std::to_string(stream->id) + " " + std::to_string(stack));
}

void wait_event(Stream *stream, Event *event, std::uint32_t stack) {
    if (event->capture == nullptr) {
        record("W " + std::to_string(event->id) + " " + std::to_string(stream->id) + " " + std::to_string(stack));
        return;
    }
    if (stream->capture == nullptr)
        stream->last.clear();
    stream->capture = event->capture; // the stream joins the capture
    stream->last.insert(stream->last.end(), event->last.begin(), event->last.end());
}

// Each node runs on a stream of the graph's own, behind one it follows where that is still the last one there.
cudaError_t launch_graph(const Graph &graph, Stream *stream, std::uint32_t stack) {
    if (stream->capture != nullptr)
        refuse("cudaGraphLaunch in a captured stream");
    static std::vector<Stream *> lanes;
    static std::vector<long> events; // one for each node
    auto event = [&](std::size_t number) {
        while (events.size() <= number)
            events.push_back(all().next_event++);
        return std::to_string(events[number]);
    };
    const std::string at = " " + std::to_string(stack);
    auto put = [&](const char *what, std::size_t number, const Stream *where) {
        record(what + event(number) + " " + std::to_string(where->id) + at);
    };
    put("R ", 0, stream);
    std::map<const Node *, std::size_t> number;
    std::vector<const Node *> last;
    std::map<const Node *, bool> followed;
    for (const auto &node : graph.nodes) {
        std::size_t lane = last.size();
        for (std::size_t i = 0; i < last.size() && lane == last.size(); ++i)
            for (const Node *before : node->after)
                lane = before == last[i] ? i : lane;
        if (lane == last.size())
            last.push_back(nullptr);
        while (lanes.size() <= lane)
            lanes.push_back(new_stream('g', cudaStreamNonBlocking, 0, stack));
        put("W ", 0, lanes[lane]);
        for (const Node *before : node->after) {
            followed[before] = true;
            if (before != last[lane])
                put("W ", number.at(before), lanes[lane]);
        }
        last[lane] = node.get();
        if (!node->operation.letter.empty())
            submit(lanes[lane], node->operation, node->type);
        const std::size_t mine = number.size() + 1;
        number[node.get()] = mine;
        put("R ", mine, lanes[lane]);
    }
    for (const auto &node : graph.nodes)
        if (!followed[node.get()])
            put("W ", number.at(node.get()), stream);
    return cudaSuccess;
}

void refused(const char *name, std::uintptr_t to, std::uintptr_t from, const Call &call) {
    record("Z " + std::to_string(call.stack()) + " " + name + " " + hexadecimal(to) + " " + hexadecimal(from));
}

bool copy(const char *name, Copy what, cudaMemcpyKind kind, bool async, const Call &call, Operation &made) {
    Allocation *to = allocation_at(what.to.low), *from = allocation_at(what.from.low);
    if (backend::judges &&
        ((writes_device(kind) && to == nullptr) || (reads_device(kind) && from == nullptr) ||
         !fits(to, what.to, what.slices, what.to_slice) || !fits(from, what.from, what.slices, what.from_slice))) {
        refused(name, what.to.low, what.from.low, call);
        return false;
    }
    what.kind = kind;
    const Range write = hull(what.to, what.slices, what.to_slice), read = hull(what.from, what.slices, what.from_slice);
    made.letter = "M";
    made.head = std::string(name) + " " + std::to_string(static_cast<int>(copy_sync(to, from, kind, async)));
    made.stack = call.stack();
    made.effect = [=](std::string &line) {
        backend::move(what);
        line += " " + read.text('r') + " " + write.text('w');
        arm(allocation_at(write.low), &write);
        arm(allocation_at(read.low), &read);
    };
    return true;
}

bool fill(const char *name, Range what, std::size_t slices, std::size_t slice, unsigned value, unsigned element,
          bool async, const Call &call, Operation &made) {
    Allocation *allocation = allocation_at(what.low);
    if (backend::judges && (allocation == nullptr || !fits(allocation, what, slices, slice))) {
        refused(name, what.low, 0, call);
        return false;
    }
    const Range write = hull(what, slices, slice);
    const bool waits = !async && allocation != nullptr && (allocation->on_host() || allocation->kind == Kind::managed);
    made.letter = "M";
    made.head = std::string(name) + " " + std::to_string(static_cast<int>(waits ? Sync::after : Sync::none));
    made.stack = call.stack();
    made.effect = [=](std::string &line) {
        backend::set(what, slices, slice, value, element);
        line += " " + write.text('w');
        arm(allocation_at(write.low), &write);
    };
    return true;
}

Copy rows_of(const cudaMemcpy3DParms &p) {
    // An extent is in elements where an array takes part, and in bytes otherwise; so are positions, each for its own.
    const Array *to = array_of(p.dstArray), *from = array_of(p.srcArray);
    const std::size_t unit = to != nullptr ? to->element : from != nullptr ? from->element : 1;
    const std::size_t width = p.extent.width * unit;
    auto side = [&](const Array *array, const cudaPitchedPtr &pointer, const cudaPos &at, std::size_t &slice) {
        const std::size_t element = array != nullptr ? array->element : 1;
        const std::size_t pitch = array != nullptr ? array->width * element : pointer.pitch;
        const std::size_t height = array != nullptr ? (array->height == 0 ? 1 : array->height) : pointer.ysize;
        slice = pitch * height;
        const auto base = array != nullptr ? array->memory->base : reinterpret_cast<std::uintptr_t>(pointer.ptr);
        return Range{base + at.z * slice + at.y * pitch + at.x * element, width, pitch, p.extent.height};
    };
    Copy result;
    result.slices = p.extent.depth;
    result.to = side(to, p.dstPtr, p.dstPos, result.to_slice);
    result.from = side(from, p.srcPtr, p.srcPos, result.from_slice);
    return result;
}

Operation host_function(cudaHostFn_t function, void *data, std::uint32_t stack) {
    return {"L", "", [=](std::string &) { backend::host_runs([=] { function(data); }); }, stack};
}

} // namespace dryrun

using namespace dryrun;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    Call call;
    if (stream == nullptr)
        return call(cudaErrorInvalidValue);
    const char kind = (flags & cudaStreamNonBlocking) != 0 ? 'n' : 'b';
    *stream = reinterpret_cast<cudaStream_t>(new_stream(kind, flags, priority, call.stack()));
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    Call call;
    return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    Call call;
    return cudaStreamCreateWithPriority(stream, 0, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    Call call;
    Stream *stream = stream_of(handle, false);
    if (handle == nullptr || stream == nullptr || stream->kind == 'l' || stream->kind == 'p')
        return call(cudaErrorInvalidResourceHandle);
    destroy_stream(stream); // returns at once: what is on it still runs
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    Call call;
    auto made = std::make_unique<Event>(Event{all().next_event++});
    made->flags = flags;
    *event = reinterpret_cast<cudaEvent_t>(made.get());
    all().events.emplace(made.get(), std::move(made));
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) {
    Call call;
    return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    Call call;
    const Event *event = event_of(handle);
    if (event == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    record("e " + std::to_string(event->id));
    all().events.erase(event_of(handle));
    return call(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    Call call;
    Event *event = event_of(handle);
    if (event == nullptr)
        return call(cudaErrorInvalidResourceHandle);
    if (event->capture != nullptr)
        return call(cudaErrorCapturedEvent);
    record("H e " + std::to_string(event->id) + " " + std::to_string(call.stack()));
    return cudaSuccess;
}
// Everything has finished as soon as somebody asks, and the answer is as good as a synchronize.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
    Call call;
    return cudaEventSynchronize(handle);
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    Call call;
    const Event *first = event_of(from), *last = event_of(to);
    if (first == nullptr || last == nullptr || !first->recorded || !last->recorded)
        return call(cudaErrorInvalidResourceHandle);
    *milliseconds = static_cast<float>((last->time - first->time) * 1000);
    return cudaSuccess;
}
#if CUDART_VERSION < 13000
cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    Call call;
    return cudaEventElapsedTime(milliseconds, from, to);
}
#endif
cudaError_t cudaDeviceSynchronize(void) {
    Call call;
    record("H d " + std::to_string(thread().device) + " " + std::to_string(call.stack()));
    return cudaSuccess;
}

} // extern "C"
