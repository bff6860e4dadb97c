// Streams, events and the operations that are put on them; captured operations become nodes of a graph.
#pragma once

#include "memory.h"

#include <map>
#include <memory>

namespace dryrun {

// What an operation does when it is issued: it appends what it touched to its line of the record.
using Effect = std::function<void(std::string &line)>;

struct Operation {
    std::string letter; // of its line
    std::string head;   // the words behind stream and stack
    Effect effect;
    std::uint32_t stack;
};

struct Node {
    Operation operation;
    std::vector<Node *> after;
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
};

struct Graph {
    std::vector<std::unique_ptr<Node>> nodes; // in a graph to launch, each behind those it waits for
    std::map<const Node *, Node *> copies;    // of the nodes of the graph that this one was made from
    Node *add(Operation operation, std::vector<Node *> after, cudaGraphNodeType type);
};

struct Stream {
    long id = 0;
    int device = 0;
    char kind = 'b'; // l legacy, p per-thread, b blocking, n non-blocking, g inside a graph
    unsigned flags = 0;
    int priority = 0;
    Graph *capture = nullptr;      // the graph that it is captured into
    bool origin = false;           // where the capture began
    std::vector<Node *> last = {}; // what the next captured operation follows
};

struct Event {
    long id = 0;
    bool recorded = false;
    unsigned flags = 0;
    double time = 0; // seconds since the program began
    Graph *capture = nullptr;
    std::vector<Node *> last = {};
};

// The stream behind a handle; `per_thread` says what the null handle means. Null if there is no such stream.
Stream *stream_of(cudaStream_t handle, bool per_thread);
Stream *new_stream(char kind, unsigned flags, int priority, std::uint32_t stack);
Event *event_of(cudaEvent_t handle);
void destroy_stream(Stream *stream);
std::vector<Stream *> streams();

void submit(Stream *stream, Operation operation, cudaGraphNodeType type);
// A pool of the program's own hands out memory, or takes it back, in the order of a stream.
void pool_hands_out(const void *pointer, std::size_t size, cudaStream_t handle, const Call &call);
void pool_takes_back(const void *pointer, cudaStream_t handle, const Call &call);
void record_event(Event *event, Stream *stream, std::uint32_t stack);
void wait_event(Stream *stream, Event *event, std::uint32_t stack);
cudaError_t launch_graph(const Graph &graph, Stream *stream, std::uint32_t stack);

// A kernel's launch as an operation; the arguments are copied now. `refused` is set if a launch would fail.
Operation kernel_launch(const void *function, dim3 grid, dim3 block, void **arguments, std::size_t shared,
                        std::uint32_t stack, cudaError_t &refused);
// The stack that led to a launch, without what the compiler makes of a kernel: its stub, and what that calls.
std::uint32_t launch_stack(const void *function);
Operation host_function(cudaHostFn_t function, void *data, std::uint32_t stack);

enum class Sync : int { none = 0, before = 1, after = 2, both = 3 }; // what the host waits for

struct Copy {
    Range to, from;
    std::size_t slices = 1; // of a 3D copy: each `to_slice` and `from_slice` bytes behind the one before
    std::size_t to_slice = 0, from_slice = 0;
    cudaMemcpyKind kind = cudaMemcpyDefault;
};
// The line of a copy or memset that an address was wrong for.
void refused(const char *name, std::uintptr_t to, std::uintptr_t from, const Call &call);

#if CUDART_VERSION >= 13000
using Place = cudaMemLocation;
#else
using Place = int;
#endif
// Moves nothing, and orders nothing but its own stream; to the device it is in the record for who wants to know how
// long a run would take.
cudaError_t prefetch(const void *low, std::size_t size, const Place &to, const Stream *stream);
// A copy as an operation; false if an address is in no allocation where it must be.
bool copy(const char *name, Copy what, cudaMemcpyKind kind, bool async, const Call &call, Operation &made);
bool fill(const char *name, Range what, std::size_t slices, std::size_t slice, unsigned value, unsigned element,
          bool async, const Call &call, Operation &made);
// A 3D copy's parameters as rows and slices.
Copy rows_of(const cudaMemcpy3DParms &parameters);

// One of the driver's functions by its name, or null.
void *driver_entry(const char *symbol);

struct Array {
    Allocation *memory;
    std::size_t element, width, height, depth;
    cudaChannelFormatDesc format;
    unsigned flags;
};
inline Array *array_of(cudaArray_const_t handle) {
    return reinterpret_cast<Array *>(const_cast<cudaArray *>(handle));
}

} // namespace dryrun
